"""A user's constraints as rows of numbers, and those that bind near a point, named by a convex quadratic model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxpriv.blocks.declaration import Constraint, Known, constraints_of
from cvxpriv.errors import SolverFailure
from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.conic.program import ConeProgram, solved_by_clarabel
from cvxpriv.numerics.arrays import Array
from cvxpriv.solvers.place import supervised

from .problem import Problem

#: The mass of a cell that counts as empty.
ASIDE = 1e-30
_LIGHT = 1e-7
_DAMPING = 1e-3
_ACCURACY = 1e-11

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Live:
    """The cells of the columns that carry mass and the constraints' own variables, as one vector x, and what holds.

    `rows`, `columns`, (n,): Place of each cell in u; x begins with the cells.
    `matrix`, `bound`, (m, n + k) and (m,): Row sums and the constraints' equations, then cells >= 0 and the
    constraints' inequalities.
    """

    rows: Indices
    columns: Indices
    matrix: sp.csr_array
    bound: Array
    equalities: int
    shape: tuple[int, int]

    @classmethod
    def of(cls, u: Array, problem: Problem, constraints: ConstraintRows) -> Live:
        """Return the cells of u's live columns, and what holds for them."""
        rows, columns = np.nonzero(np.broadcast_to(u.sum(axis=0) >= _LIGHT, u.shape))
        count, split = rows.size, constraints.equalities
        kept = np.concatenate([rows * u.shape[1] + columns, np.arange(u.size, constraints.matrix.shape[1])])
        constrained = constraints.matrix[:, kept]
        sums = sp.csr_array((np.ones(count), (rows, np.arange(count))), shape=(len(u), kept.size))
        matrix = sp.vstack([sums, constrained[:split], -sp.eye_array(count, kept.size), constrained[split:]])
        bound = np.concatenate([problem.p_x, constraints.bound[:split], np.zeros(count), constraints.bound[split:]])
        return cls(rows, columns, sp.csr_array(matrix), bound, len(u) + split, u.shape)

    def table(self, x: Array) -> Array:
        """Return the cells of x as a table, (|X|, |Y|), whose other cells are 0."""
        u = np.zeros(self.shape)
        u[self.rows, self.columns] = x[: self.rows.size]
        return u


@dataclass(frozen=True, eq=False)
class Face:
    """A point, the constraints that bind there, and their multipliers.

    `x`: (n + k,).
    `free`: The places in x but for the cells that stand at 0.
    `binding`: The rows of `Live` that hold as equations; cells at 0 are not among them.
    `prices`: Multipliers of the binding rows.
    `lam`: Multiplier of I(X;Y) >= R.
    """

    x: Array
    free: Indices
    binding: Indices
    prices: Array
    lam: float


def predicted(x: Array, problem: Problem, live: Live) -> Face | None:
    """Return the face of the convex quadratic model of I(S;Y) at cells x; None where its rate is slack or it failed."""
    u = live.table(x)
    rise, log_w = (part[live.rows, live.columns] for part in slopes(u, problem))
    count, size = x.size, live.matrix.shape[1]
    own = np.zeros(size - count)
    scale = np.append(np.sqrt(np.maximum(x, 1e-9)), own + 1.0)
    bent = curvature(x, np.arange(size), 0.0, problem, live, scale) + _DAMPING * np.diag(np.arange(size) < count)
    rows = (live.matrix @ sp.diags_array(scale)).tocsr()
    rate = sp.csr_array(np.append(-log_w * scale[:count], own)[None])
    split = live.equalities
    matrix = sp.csc_array(sp.vstack([rows[:split], rate, rows[split:]]))
    slack = live.bound - live.matrix[:, :count] @ x
    bound = np.concatenate([slack[:split], [float(x @ log_w) - problem.target], slack[split:]])
    cones = ConeLayout(zero=split, nonneg=len(bound) - split)
    linear = np.append(rise * scale[:count], own)
    asked = (sp.csc_array(bent), matrix, bound, cones, _ACCURACY, linear)
    try:
        found, prices = supervised("the quadratic model", solved_by_clarabel, *asked)
    except SolverFailure:
        return None
    if found is None or prices is None:
        return None
    left = np.maximum(bound - matrix @ found, 0.0)
    largest = abs(matrix).max(axis=1).toarray().ravel()
    binds = prices * largest > left / np.maximum(largest, 1e-300)
    if not binds[split]:
        return None
    rest = np.flatnonzero(np.delete(binds, split)[split:]) + split
    at_zero = rest[rest < split + count] - split
    x = np.append(np.maximum(x + scale[:count] * found[:count], 1e-12), found[count:])
    x[at_zero] = 0.0
    binding = np.concatenate([np.arange(split), rest[rest >= split + count]])
    free = np.setdiff1d(np.arange(size), at_zero)
    return Face(x, free, binding, np.delete(prices, split)[binding], float(prices[split]))


def slopes(u: Array, problem: Problem) -> tuple[Array, Array]:
    """S' log(T/r) and log w, (|X|, |Y|); of columns and cells without mass they mean nothing."""
    s, mass = problem.p_s_given_x, np.maximum(u.sum(axis=0), ASIDE)
    return s.T @ np.log(np.maximum(s @ u, ASIDE) / mass), np.log(np.maximum(u, ASIDE) / mass)


def curvature(x: Array, some: Indices, lam: float, problem: Problem, live: Live, scale: Array) -> Array:
    """The Hessian of I(S;Y) - lam I(X;Y) at some places of x, in order, both sides times `scale`.

    ``S' diag(1/T_j) S - (1 - lam) 11'/r_j - lam diag(1/u_j)`` in each column j, nothing elsewhere.
    """
    u, s = live.table(x), problem.p_s_given_x
    joint, mass = np.maximum(s @ u, ASIDE), u.sum(axis=0)
    cells = some[some < live.rows.size]
    rows, columns = live.rows[cells], live.columns[cells]
    hessian = np.zeros((some.size, some.size))
    for column in np.unique(columns):
        here = np.flatnonzero(columns == column)
        likely = s[:, rows[here]] * scale[here]
        within = likely.T @ (likely / joint[:, [column]])
        within -= (1.0 - lam) / mass[column] * np.outer(scale[here], scale[here])
        hessian[np.ix_(here, here)] = within
    if lam:
        place = np.arange(cells.size)
        hessian[place, place] -= lam * scale[place] ** 2 / x[cells]
    return hessian


@dataclass(frozen=True, eq=False)
class ConstraintRows:
    """``matrix @ (u, t) = bound`` in the first `equalities` rows, ``<= bound`` in the others.

    `matrix`, (rows, |X| |Y| + k): Coefficients of u = P(X,Y), row by row, and of the k variables t that cvxpy adds for
    atoms such as `max` and `abs`.
    `bound`: (rows,).
    """

    matrix: sp.csr_array
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
        return ConstraintRows(sp.csr_array((0, mechanism.size)), np.zeros(0), 0)
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
    matrix = sp.hstack([rows[:, ours] @ per_mass, rows[:, others]])
    return ConstraintRows(sp.csr_array(matrix), np.asarray(program.b), layout.zero)
