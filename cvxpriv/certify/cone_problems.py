"""Cone programs as cvxpy problems, and with fewer rows, columns and digits, to shrink a bug."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.cones import ConeLayout, triangle_indices
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.numerics.arrays import Array


def problem_of_program(program: ConeProgram) -> cp.Problem:
    """Return a cone program as a cvxpy problem of one variable ``x``, whose constraints are its blocks.

    Raises ModelError: It has a power cone of more than three entries.
    """
    x = cp.Variable(program.c.size, name="x")
    value = program.c @ x + program.d
    if program.P.nnz:
        value = value + cp.quad_form(x, cp.psd_wrap(program.P)) / 2
    constraints: list[Any] = []
    for name, piece in program.layout.slices.items():
        rows = program.b[piece] - sp.csr_array(program.A)[piece.start : piece.stop] @ x
        constraints.append(_constraint(program.layout, name, rows))
    sense = cp.Maximize(-value) if program.maximise else cp.Minimize(value)
    return cp.Problem(sense, constraints)


def _constraint(layout: ConeLayout, name: str, rows: Any) -> Any:
    """One block's constraint."""
    kind, number = name.rstrip("]").split("[")
    if kind == "zero":
        return rows == 0
    if kind == "nonneg":
        return rows >= 0
    if kind == "soc":
        return cp.SOC(rows[0], rows[1:]) if rows.size > 1 else rows >= 0
    if kind == "exp":
        return cp.ExpCone(rows[0], rows[1], rows[2])
    if kind == "psd":
        return _matrix(rows, layout.psd[int(number)], layout.triangle) >> 0
    alpha = layout.power[int(number)]
    if len(alpha) != 2:
        raise ModelError(f"{name} has {len(alpha) + 1} entries: only power cones of three are written out")
    return cp.PowCone3D(rows[0], rows[1], rows[2], alpha[0])


def _matrix(rows: Any, order: int, triangle: Any) -> Any:
    """The symmetric matrix of a scaled triangle."""
    i, j = triangle_indices(order, triangle)
    weights = np.where(i == j, 1.0, 1.0 / np.sqrt(2.0))
    places = np.arange(i.size)
    pairs = np.concatenate([i + order * j, j + order * i]), np.concatenate([places, places])
    halves = np.where(np.concatenate([i == j, i == j]), 0.5, 1.0) * np.concatenate([weights, weights])
    spread = sp.csr_array(sp.coo_array((halves, pairs), shape=(order * order, i.size)))
    return cp.reshape(spread @ rows, (order, order), order="F")


def with_blocks(program: ConeProgram, names: Sequence[str]) -> ConeProgram:
    """Return a program with some of its blocks only."""
    kept = set(names)
    layout, slices = program.layout, program.layout.slices
    rows = [np.arange(piece.start, piece.stop) for name, piece in slices.items() if name in kept]
    chosen = np.concatenate([np.zeros(0, dtype=int), *rows])

    def numbers(kind: str) -> list[int]:
        return [int(name.split("[")[1][:-1]) for name in slices if name in kept and name.startswith(f"{kind}[")]

    fewer = replace(
        layout,
        zero=len(numbers("zero")),
        nonneg=len(numbers("nonneg")),
        soc=tuple(layout.soc[k] for k in numbers("soc")),
        psd=tuple(layout.psd[k] for k in numbers("psd")),
        exp=len(numbers("exp")),
        power=tuple(layout.power[k] for k in numbers("power")),
    )
    return replace(program, A=sp.csc_array(sp.csr_array(program.A)[chosen]), b=program.b[chosen], layout=fewer)


def with_columns(program: ConeProgram, columns: Sequence[int]) -> ConeProgram:
    """Return a program with some of its columns only: the others are zero."""
    kept = np.array(sorted(columns), dtype=int)
    P = sp.csc_array(sp.csc_array(program.P[:, kept])[kept])
    return replace(program, P=P, c=program.c[kept], A=sp.csc_array(program.A[:, kept]), columns=(("x", kept.size),))


def rounded(program: ConeProgram, digits: int) -> ConeProgram:
    """Return a program whose numbers have so many significant digits.

    >>> x = cp.Variable()
    >>> rounded(ConeProgram.from_problem(cp.Problem(cp.Minimize(1.25 * x), [x >= 0]), "SCS"), 1).c.tolist()
    [1.0]
    """

    def short(values: Array) -> Array:
        return np.array([float(f"{value:.{digits - 1}e}") for value in np.ravel(values)])

    P, A = sp.csc_array(program.P, copy=True), sp.csc_array(program.A, copy=True)
    P.data, A.data = short(P.data), short(A.data)
    return replace(program, P=P, A=A, c=short(program.c), b=short(program.b), d=float(short(np.array([program.d]))[0]))
