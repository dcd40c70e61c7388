"""A user's constraints as rows of numbers, and those that bind near a point, named by a convex quadratic model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxpriv.blocks.declaration import Constraint, Known, constraints_of
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.numerics.arrays import Array
from cvxpriv.solvers.chain import try_solver
from cvxpriv.solvers.registry import fallback_chain, installed, solver_spec

from .problem import Problem

ASIDE = 1e-30
"""The mass of a cell that counts as empty."""

_LIGHT = 1e-7
_DAMPING = 1e-3
_ACCURACY = 1e-11

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Live:
    """The cells of the columns that carry mass, as one vector x, and the linear constraints on it.

    `rows`, `columns`, (n,): Place of each cell in u.
    `matrix`, `extra`, `bound`, (m, n) and (m, k) and (m,): ``matrix @ x + extra @ t``: row sums and the constraints'
    equations, then cells >= 0 and the constraints' inequalities.
    """

    rows: Indices
    columns: Indices
    matrix: sp.csr_array
    extra: sp.csr_array
    bound: Array
    equalities: int
    shape: tuple[int, int]

    @classmethod
    def of(cls, u: Array, problem: Problem, constraints: ConstraintRows) -> Live:
        """Return the cells of u's live columns, and what holds for them."""
        rows, columns = np.nonzero(np.broadcast_to(u.sum(axis=0) >= _LIGHT, u.shape))
        count, extra = rows.size, constraints.extra.shape[1]
        sums = sp.csr_array((np.ones(count), (rows, np.arange(count))), shape=(len(u), count))
        constrained = constraints.cells[:, rows * u.shape[1] + columns]
        split = constraints.equalities
        matrix = sp.vstack([sums, constrained[:split], -sp.eye_array(count), constrained[split:]])
        widened = [
            sp.csr_array((len(u), extra)),
            constraints.extra[:split],
            sp.csr_array((count, extra)),
            constraints.extra[split:],
        ]
        bound = np.concatenate([problem.p_x, constraints.bound[:split], np.zeros(count), constraints.bound[split:]])
        return cls(
            rows, columns, sp.csr_array(matrix), sp.csr_array(sp.vstack(widened)), bound, len(u) + split, u.shape
        )

    def table(self, x: Array) -> Array:
        """Return x as a table, (|X|, |Y|), whose other cells are 0."""
        u = np.zeros(self.shape)
        u[self.rows, self.columns] = x
        return u


@dataclass(frozen=True, eq=False)
class Face:
    """A point, the constraints that bind there, and their multipliers.

    `x`, `t`: (n,), (k,).
    `free`: The cells that do not stand at 0.
    `binding`: The rows of `Live` that hold as equations; cells at 0 are not among them.
    `prices`: Multipliers of the binding rows.
    `lam`: Multiplier of I(X;Y) >= R.
    """

    x: Array
    t: Array
    free: Indices
    binding: Indices
    prices: Array
    lam: float


def predicted(x: Array, problem: Problem, live: Live) -> Face | None:
    """Return the face of the convex quadratic model of I(S;Y) at x, or None where its rate is slack or it failed."""
    u = live.table(x)
    rise, log_w = (part[live.rows, live.columns] for part in slopes(u, problem))
    scale = np.sqrt(np.maximum(x, 1e-9))
    count, extra = x.size, live.extra.shape[1]
    bent = sp.csc_array(curvature(x, np.arange(count), 0.0, problem, live, scale))
    quadratic = sp.block_diag([bent + _DAMPING * sp.eye_array(count), sp.csc_array((extra, extra))])
    rows = sp.hstack([live.matrix @ sp.diags_array(scale), live.extra])
    rate = sp.csr_array(np.concatenate([-log_w * scale, np.zeros(extra)])[None])
    split = live.equalities
    matrix = sp.csc_array(sp.vstack([rows.tocsr()[:split], rate, rows.tocsr()[split:]]))
    slack = live.bound - live.matrix @ x
    bound = np.concatenate([slack[:split], [float(x @ log_w) - problem.target], slack[split:]])
    linear = np.concatenate([rise * scale, np.zeros(extra)])
    solved = _solve_quadratic(quadratic, linear, matrix, bound, split)
    if solved is None:
        return None
    found, left, prices = solved
    size = abs(matrix).max(axis=1).toarray().ravel()
    binds = prices * size > left / np.maximum(size, 1e-300)
    if not binds[split]:
        return None
    rest = np.flatnonzero(np.delete(binds, split)[split:]) + split
    at_zero = rest[rest < split + count] - split
    constrained = rest[rest >= split + count]
    x = np.maximum(x + scale * found[:count], 0.0)
    x[at_zero] = 0.0
    free = np.setdiff1d(np.arange(count), at_zero)
    x[free] = np.maximum(x[free], 1e-12)
    binding = np.concatenate([np.arange(split), constrained])
    return Face(x, found[count:], free, binding, np.delete(prices, split)[binding], float(prices[split]))


def slopes(u: Array, problem: Problem) -> tuple[Array, Array]:
    """S' log(T/r) and log w, (|X|, |Y|); of columns and cells without mass they mean nothing."""
    s, mass = problem.p_s_given_x, np.maximum(u.sum(axis=0), ASIDE)
    return s.T @ np.log(np.maximum(s @ u, ASIDE) / mass), np.log(np.maximum(u, ASIDE) / mass)


def curvature(x: Array, some: Indices, lam: float, problem: Problem, live: Live, scale: Array) -> Array:
    """The Hessian of I(S;Y) - lam I(X;Y) in some of the cells, both sides times `scale`.

    ``S' diag(1/T_j) S - (1 - lam) 11'/r_j - lam diag(1/u_j)`` in each column j, nothing between two columns.
    """
    u, s = live.table(x), problem.p_s_given_x
    joint, mass = np.maximum(s @ u, ASIDE), u.sum(axis=0)
    rows, columns = live.rows[some], live.columns[some]
    hessian = np.zeros((some.size, some.size))
    for column in np.unique(columns):
        here = np.flatnonzero(columns == column)
        likely = s[:, rows[here]] * scale[here]
        within = likely.T @ (likely / joint[:, [column]])
        within -= (1.0 - lam) / mass[column] * np.outer(scale[here], scale[here])
        hessian[np.ix_(here, here)] = within
    if lam:
        hessian[np.arange(some.size), np.arange(some.size)] -= lam * scale**2 / x[some]
    return hessian


def _solve_quadratic(
    quadratic: Any, linear: Array, matrix: Any, bound: Array, equalities: int
) -> tuple[Array, Array, Array] | None:
    """Point, slack and multipliers of a quadratic program whose first rows are equations, or None."""
    if "CLARABEL" not in installed():
        return _by_cvxpy(quadratic, linear, matrix, bound, equalities)
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _ACCURACY
    cones = [clarabel.ZeroConeT(equalities), clarabel.NonnegativeConeT(matrix.shape[0] - equalities)]
    upper = sp.csc_matrix(sp.triu(quadratic))
    found = clarabel.DefaultSolver(upper, linear, sp.csc_matrix(matrix), bound, cones, settings).solve()
    if str(found.status) not in ("Solved", "AlmostSolved"):
        return None
    point, slack, prices = (np.asarray(part, dtype=float) for part in (found.x, found.s, found.z))
    return point, slack, prices


def _by_cvxpy(
    quadratic: Any, linear: Array, matrix: Any, bound: Array, equalities: int
) -> tuple[Array, Array, Array] | None:
    """Do the same by the first solver that is installed; one that is less accurate makes more Newton steps."""
    rows, solver = sp.csr_array(matrix), solver_spec(fallback_chain(None)[0])
    x = cp.Variable(linear.size)
    equal, below = rows[:equalities] @ x == bound[:equalities], rows[equalities:] @ x <= bound[equalities:]
    objective = 0.5 * cp.quad_form(x, cp.psd_wrap(sp.csc_array(quadratic))) + linear @ x
    problem = cp.Problem(cp.Minimize(objective), [equal, below])
    if try_solver(problem, solver.name, solver.full_options(None, {})).status not in (
        cp.OPTIMAL,
        cp.OPTIMAL_INACCURATE,
    ):
        return None
    prices = np.concatenate([np.atleast_1d(equal.dual_value), np.atleast_1d(below.dual_value)])
    return np.asarray(x.value), np.maximum(bound - rows @ x.value, 0.0), prices


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
