"""A user's constraints as rows of numbers, where they are linear or become so with a few variables more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.blocks.declaration import Constraint, Known, constraints_of
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.numerics.arrays import Array

from .problem import Problem


@dataclass(frozen=True, eq=False)
class ConstraintRows:
    """``cells @ u + extra @ t = bound`` in the first `equalities` rows, ``<= bound`` in the others.

    `cells`, (rows, |X| |Y|): Coefficients of u = P(X,Y), row by row.
    `extra`, (rows, some): Coefficients of the variables t that cvxpy adds for atoms such as `max` and `abs`.
    `bound`: (rows,).
    """

    cells: sp.csr_array
    extra: sp.csr_array
    bound: Array
    equalities: int


def linear_rows(problem: Problem, constraints: Sequence[tuple[str, Constraint]]) -> ConstraintRows | None:
    """Return the constraints' rows, or None where a constraint needs other cones than linear ones.

    Raises ModelError: As for `constraints_of`.
    """
    shape = (problem.p_x.size, problem.size_y)
    mechanism = cp.Variable(shape, name="mechanism")
    known = Known.of_table(problem.table)
    written = [one for name, constraint in constraints for one in constraints_of(name, constraint, mechanism, known)]
    stated = cp.Problem(cp.Minimize(0), written)
    if not stated.variables():  # a constraint that always holds
        return ConstraintRows(sp.csr_array((0, mechanism.size)), sp.csr_array((0, 0)), np.zeros(0), 0)
    program = ConeProgram.from_problem(stated, "CLARABEL")
    layout = program.layout
    if layout.size != layout.zero + layout.nonneg:
        return None
    names = [name for name, _ in program.columns]
    first = sum(size for _, size in program.columns[: names.index("mechanism")])
    ours = first + np.arange(mechanism.size).reshape(shape, order="F").ravel()
    others = np.setdiff1d(np.arange(program.c.size), ours)
    rows = sp.csc_array(program.A)
    per_mass = sp.diags_array(np.repeat(1.0 / problem.p_x, problem.size_y))
    return ConstraintRows(
        sp.csr_array(rows[:, ours] @ per_mass), sp.csr_array(rows[:, others]), np.asarray(program.b), layout.zero
    )
