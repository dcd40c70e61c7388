"""A cone program in other units, in which its numbers are near one, and a solver's answer taken back from there.

With positive ``D`` (columns), ``E`` (rows, one number for each cone) and scalars ``size`` and ``cost``::

    x = size D x',   s = size s' / E,   z = cost E z' / size,   objective = cost objective'

give a program of the same kind. ``D`` and ``E`` even out the largest entries of rows and columns (Ruiz, 2001), `size`
is that of the right-hand side then, and `cost` that of the objective. A solver's tolerance means something else in
these units. Its answer is measured in the units of the original program, as any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxpriv.kkt.conic.data import ConeData, extract
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.kkt.conic.solving import ConicSolution, asked
from cvxpriv.numerics.arrays import Array

ROUNDS = 25
LEAST, MOST = 1e-10, 1e10
"""Range of the units of columns and rows."""
NEAR, ENOUGH = (0.0, 1.0, 0.5), 1e-9
"""Choices of the right-hand side that has the size 1 (the largest, the least, one between), tried in turn until an
answer's largest residual is this small: a constraint that is far away should not set the units; a far optimum should.
"""


@dataclass(frozen=True, eq=False)
class Units:
    """Units of a cone program: see `cvxpriv.kkt.conic.scaling`.

    `columns`, `rows`, (n,) and (m,): ``D`` and ``E``.
    """

    columns: Array
    rows: Array
    size: float
    cost: float

    def point(self, x: Array) -> Array:
        """Return a point of the scaled program in the units of the original one."""
        return self.size * self.columns * x

    def dual(self, z: Array) -> Array:
        """Return a dual of the scaled program in the units of the original one."""
        return self.cost / self.size * self.rows * z


def units_of(program: ConeProgram, bounded: int = 0, near: float = 0.0) -> Units:
    """Return units in which a program's numbers are near one.

    `bounded`: Number of rows at the end that bound one variable each: they follow its unit.
    `near`: 0 makes the largest right-hand side 1, 1 the least one; between them the mean of their logarithms.

    >>> t = cp.Variable(name="t")
    >>> program = ConeProgram.from_problem(cp.Problem(cp.Minimize(t), [1e-8 * t >= 1]), "CLARABEL")
    >>> round(float(units_of(program).point(np.ones(1))[0]), -2)
    100000000.0
    """
    free = program.b.size - bounded
    A, P = abs(program.A[:free]).tocoo(), abs(program.P).tocoo()
    D, E = np.ones(program.c.size), np.ones(free)
    for _ in range(ROUNDS):
        rows = _largest(E.size, (A.row, E[A.row] * A.data * D[A.col]))
        E = np.clip(E / np.sqrt(_per_cone(program, rows)), LEAST, MOST)
        terms = ((one.col, left[one.row] * one.data * D[one.col]) for one, left in ((A, E), (P, D)))
        D = np.clip(D / np.sqrt(_largest(D.size, *terms)), LEAST, MOST)
    E = np.concatenate([E, 1.0 / D[abs(program.A[free:]).argmax(axis=1)]]) if bounded else E
    sides = np.abs(E * program.b)
    sides = sides[sides > 0.0] if sides.any() else np.ones(1)
    size = float(sides.max() ** (1.0 - near) * sides.min() ** near)
    quadratic = float((D[P.row] * P.data * D[P.col]).max(initial=0.0))
    cost = max(size**2 * quadratic, size * float(np.abs(D * program.c).max(initial=0.0)))
    return Units(D, E, size, cost or 1.0)


def _largest(count: int, *parts: tuple[npt.NDArray[np.signedinteger[Any]], Array]) -> Array:
    """Return the largest number at each place, of places and numbers; 1 where there is none."""
    found = np.zeros(count)
    for places, numbers in parts:
        np.maximum.at(found, places, numbers)
    return np.where(found > 0.0, found, 1.0)


def _per_cone(program: ConeProgram, rows: Array) -> Array:
    """Return the largest of the rows of each cone for all its rows; equalities and inequalities stand alone."""
    starts = program.layout.starts
    starts = starts[starts < rows.size]
    if not rows.size:
        return rows
    return np.repeat(np.maximum.reduceat(rows, starts), np.diff(np.append(starts, rows.size)))


def solve_scaled(
    problem: cp.Problem, solver: str, options: Mapping[str, object]
) -> tuple[ConicSolution, dict[int, Array] | None]:
    """Solve a problem in other units; return the answer in its own, and the entries of its variables by id.

    The problem's variables keep their values.

    Raises ModelError: As `cvxpriv.kkt.conic.solving.solve_conic`.
    """
    compiled = extract(problem, solver, options)
    program = ConeProgram(**compiled.fields)
    best: ConicSolution | None = None
    for near in NEAR:
        units = units_of(program, compiled.bounded[0].size, near)
        found = _solved(problem, compiled, program, units, options)
        best = found if best is None or _off(found) < _off(best) else best
        if _off(best) <= ENOUGH:
            break
    assert best is not None  # there is one for each of NEAR
    values = None if best.x is None else compiled.variables(best.x)
    return (replace(best, direction=values) if best.status.startswith("unbounded") else best), values


def _off(solution: ConicSolution) -> float:
    """Return the largest residual of an answer in its own units; of a claim that there is none, that of its proof."""
    if solution.status == cp.OPTIMAL and solution.residuals is not None:
        return solution.residuals.largest
    proof = solution.certificate
    return float("inf") if proof is None or not proof.valid else proof.off


def _solved(
    problem: cp.Problem, compiled: ConeData, program: ConeProgram, units: Units, options: Mapping[str, object]
) -> ConicSolution:
    """Solve in some units, and take the answer back from there."""
    found = asked(problem, _in_units(compiled, program, units), options)
    x, z = None if found.x is None else units.point(found.x), None if found.z is None else units.dual(found.z)
    return replace(found, program=program, x=x, z=z, raw=None)


def _in_units(compiled: ConeData, program: ConeProgram, units: Units) -> ConeData:
    """Return the solver's data in other units."""
    D, E, size, cost = units.columns, units.rows, units.size, units.cost
    columns, held = sp.diags_array(D), dict(compiled.data)
    if held.get("P") is not None:
        held["P"] = sp.csc_array(columns @ held["P"] @ columns) * (size**2 / cost)
    linear = "q" if "q" in held else "c"
    held[linear] = size / cost * D * np.asarray(held[linear], dtype=float)
    own = np.empty(compiled.order.size)
    own[compiled.order] = E[: compiled.order.size]  # in the solver's own order
    start = 0
    for matrix, vector in (("A", "b"), ("F", "G") if "F" in held else ("G", "h")):
        if held.get(matrix) is None or vector not in held:
            continue
        part = own[start : start + held[matrix].shape[0]]
        start += part.size
        kind = type(held[matrix])
        held[matrix] = kind(sp.diags_array(part) @ held[matrix] @ columns)
        held[vector] = part / size * np.asarray(held[vector], dtype=float).ravel()
    for bound in ("lower_bounds", "upper_bounds"):
        if held.get(bound) is not None:
            held[bound] = np.asarray(held[bound], dtype=float) / (size * D)
    fields = {
        **compiled.fields,
        "P": sp.csc_array(columns @ program.P @ columns) * (size**2 / cost),
        "c": size / cost * D * program.c,
        "A": sp.csc_array(sp.diags_array(E) @ program.A @ columns),
        "b": E / size * program.b,
    }
    return replace(compiled, fields=fields, data=held)
