"""The master program: a linear program over columns that arrive over time, kept warm in HiGHS.

    minimise  c . w   subject to   lower <= M w <= upper,  w >= 0

Its duals are only proposals: the bounds derived from them hold for any numbers. So a looser tolerance costs quality and
never truth. Where highspy is not installed, scipy's HiGHS solves each program from scratch: `ColdMaster`.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.errors import SolverFailure
from cvxpriv.kkt.conic.data import finite
from cvxpriv.numerics.arrays import Array, Flags, Values, starts_in
from cvxpriv.solvers.chain import FARTHEST, NOT_THE_SOLVER, raised
from cvxpriv.solvers.place import quiet_highs
from cvxpriv.solvers.registry import among_installed

_LOG = logging.getLogger(__name__)

TOLERANCES = (1e-10, 1e-9, 1e-7)
"""Feasibility tolerances of HiGHS, tried in this order: the first sometimes ends in "unknown"."""

MOST_STEPS, FOR_EACH = 20_000, 20
"""Simplex steps after which a solve counts as cycling, and as many more for each row and column: thousands of columns
take fewer. On Adult's 10 x 160 cells one went round for minutes within the tightest tolerance."""

PRIMAL = 4
"""HiGHS's number of the primal simplex method: from scratch its dual one can stop at "excessive dual values"."""

COST_SCALE = 1024.0
"""Costs are scaled by this inside HiGHS, whose tolerance on reduced costs would else end the search at 1e-10."""

SMALLEST_ENTRY = 1e-12
"""Entries below this are dropped by HiGHS (its own default is 1e-9, which is too much for posteriors)."""


@dataclass(frozen=True)
class MasterPoint:
    """A solution of the master program.

    `weights`, (columns,): Weights of the columns, not negative.
    `duals`, (rows,): Multipliers y with ``c - M' y >= 0``; not positive for a row that only has an upper end.
    `value`: The objective ``c . w``.
    """

    weights: Array
    duals: Array
    value: float


class Master:
    """A linear program over columns.

    `lower`, `upper`, (rows,): The ends of the rows; equal ends make an equation, infinite ones are none.

    >>> master = Master(np.array([1.0]), np.array([1.0]))
    >>> master.add(np.array([3.0, 2.0]), np.array([[1.0, 1.0]]))
    >>> point = master.solve()
    >>> point.value, point.duals.tolist()
    (2.0, [2.0])
    """

    def __new__(cls, lower: Array, upper: Array) -> "Master":
        """Return a master program by the HiGHS that this machine has."""
        return object.__new__(cls if among_installed("HIGHS") else ColdMaster)

    def __init__(self, lower: Array, upper: Array) -> None:
        self._lower, self._upper = np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64)
        self._begin()

    def _begin(self) -> None:
        solver = quiet_highs()
        for option, value in {
            "solver": "simplex",
            "presolve": "off",  # it costs more than the first solve, and later ones start from a basis
            "small_matrix_value": SMALLEST_ENTRY,
        }.items():
            solver.setOptionValue(option, value)
        self._solver = solver
        none = np.zeros(0, dtype=np.int32)
        self._solver.addRows(
            len(self._lower), self._lower, self._upper, 0, np.zeros(len(self._lower), dtype=np.int32), none, np.zeros(0)
        )

    @property
    def size(self) -> int:
        """Number of columns."""
        return int(self._solver.getNumCol())

    def add(self, costs: Array, matrix: Array) -> None:
        """Add columns.

        `costs`: (n,).
        `matrix`: (rows, n).
        """
        count = len(costs)
        column, row = np.nonzero(np.abs(matrix.T) > SMALLEST_ENTRY)
        starts = np.searchsorted(column, np.arange(count)).astype(np.int32)
        self._solver.addCols(
            count,
            COST_SCALE * np.asarray(costs, dtype=np.float64),
            np.zeros(count),
            np.full(count, np.inf),
            len(row),
            starts,
            row.astype(np.int32),
            np.ascontiguousarray(matrix.T[column, row], dtype=np.float64),
        )

    def drop(self, useless: Flags) -> None:
        """Remove the columns that a mask marks, (columns,); the others keep their order and the basis."""
        index = np.flatnonzero(useless).astype(np.int32)
        if len(index):
            self._solver.deleteCols(len(index), index)

    def set_row(self, row: int, lower: float, upper: float) -> None:
        """Change the ends of one row; the basis stays, so the next solve is a few dual steps."""
        self._lower[row], self._upper[row] = lower, upper
        self._solver.changeRowBounds(row, float(lower), float(upper))

    def set_costs(self, costs: Array) -> None:
        """Change the costs of all columns, (columns,); the basis stays."""
        index = np.arange(self.size, dtype=np.int32)
        self._solver.changeColsCost(len(index), index, COST_SCALE * np.asarray(costs, dtype=np.float64))

    def solve(self) -> MasterPoint:
        """Solve from the last basis; where a tolerance fails, with the next looser one, and then from scratch.

        Raises SolverFailure: HiGHS ends without an optimum at every tolerance.
        """
        import highspy  # here: the models are imported, and solve, without HiGHS

        said: list[str] = []
        most = MOST_STEPS + FOR_EACH * (self.size + len(self._lower))
        for scratch in (False, True):
            for tolerance in TOLERANCES:
                self._solver.setOptionValue("primal_feasibility_tolerance", tolerance)
                self._solver.setOptionValue("dual_feasibility_tolerance", tolerance)
                if scratch:
                    self._solver.clearSolver()
                    self._solver.setOptionValue("simplex_strategy", PRIMAL)
                self._solver.setOptionValue("simplex_iteration_limit", most)
                try:
                    self._solver.run()
                    status = self._solver.getModelStatus()
                    if status == highspy.HighsModelStatus.kOptimal and (point := self._point()):
                        return point
                    said.append(self._solver.modelStatusToString(status))
                except NOT_THE_SOLVER:
                    raise
                except BaseException as error:  # as in the chain: a solver may raise anything
                    said.append(raised(error))
        raise self._failure(said)

    def _judged(self, point: MasterPoint) -> MasterPoint | None:
        """Return an answer that does not refute itself, whatever HiGHS calls it.

        No column has a weight where a row asks for one, or the duals are worth something else.
        """
        ends = np.where(point.duals > 0.0, self._lower, self._upper)
        worth = float(point.duals @ np.where(np.isfinite(ends), ends, 0.0))
        nothing = not point.weights.any() and bool((self._lower > 0.0).any())
        return None if nothing or not abs(worth - point.value) <= FARTHEST * (1.0 + abs(point.value)) else point

    def _failure(self, said: list[str]) -> SolverFailure:
        failure = SolverFailure(
            f"the master program of {self.size} columns has no optimum: HiGHS says {', '.join(dict.fromkeys(said))}; "
            "loosen gap or check the table for probabilities below 1e-12"
        )
        failure.statuses = tuple(said)
        return failure

    def _point(self) -> MasterPoint | None:
        solution = self._solver.getSolution()
        found, prices = finite(solution.col_value, self.size), finite(solution.row_dual, len(self._lower))
        if found is None or prices is None:
            return None
        value = float(self._solver.getInfo().objective_function_value) / COST_SCALE
        return self._judged(MasterPoint(np.maximum(found, 0.0), prices / COST_SCALE, value))


class ColdMaster(Master):
    """The same program where highspy is not installed: scipy's HiGHS solves it from scratch each time."""

    def _begin(self) -> None:
        _say_cold()
        self._costs, self._matrix = np.zeros(0), np.zeros((len(self._lower), 0))

    @property
    def size(self) -> int:
        return len(self._costs)

    def add(self, costs: Array, matrix: Array) -> None:
        self._costs, self._matrix = np.append(self._costs, costs), np.hstack([self._matrix, matrix])

    def drop(self, useless: Flags) -> None:
        self._costs, self._matrix = self._costs[~useless], self._matrix[:, ~useless]

    def set_row(self, row: int, lower: float, upper: float) -> None:
        self._lower[row], self._upper[row] = lower, upper

    def set_costs(self, costs: Array) -> None:
        self._costs = np.array(costs, dtype=np.float64)

    def solve(self) -> MasterPoint:
        equal = self._lower == self._upper
        above, below = ~equal & np.isfinite(self._upper), ~equal & np.isfinite(self._lower)
        said: list[str] = []
        for tolerance in TOLERANCES:
            found = linprog(
                COST_SCALE * self._costs,
                np.vstack([self._matrix[above], -self._matrix[below]]),
                np.append(self._upper[above], -self._lower[below]),
                self._matrix[equal],
                self._upper[equal],
                method="highs",
                options={
                    "presolve": False,
                    "primal_feasibility_tolerance": tolerance,
                    "dual_feasibility_tolerance": tolerance,
                },
            )
            weights = finite(found.x, self.size)
            if found.status == 0 and weights is not None:
                duals, inner = np.zeros(len(self._lower)), found.ineqlin.marginals / COST_SCALE
                duals[equal] = found.eqlin.marginals / COST_SCALE
                duals[above] = inner[: above.sum()]
                duals[below] -= inner[above.sum() :]
                point = self._judged(MasterPoint(np.maximum(weights, 0.0), duals, float(self._costs @ weights)))
                if point is not None:
                    return point
            said.append(str(found.message))
        raise self._failure(said)


@cache
def _say_cold() -> None:
    _LOG.warning("highspy is not installed: scipy's HiGHS solves the programs of columns, slower: pip install highspy")


#: The state entry that the block writes.
WEIGHTS = "weights"


def master_block(costs: Array, rows: Mapping[str, tuple[Array, Array, bool]], constant: float = 0.0) -> Block:
    """Return the block ``minimise constant + c . w`` over ``w >= 0`` and named rows; its exact update is `Master`.

    `costs`: (columns,).
    `rows`, (k, columns), (k,): Matrix, right side, and whether ``M w`` equals the right side or is at most that.

    >>> block = master_block(np.array([3.0, 2.0]), {"sum": (np.ones((1, 2)), np.ones(1), True)})
    >>> block.direct({})["weights"].tolist()
    [[0.0, 1.0]]
    """
    size = len(costs)

    def declare(_: object) -> Declaration:
        w = cp.Variable(size, name=WEIGHTS)
        written: dict[str, cp.Constraint] = {
            name: matrix @ w == right if equal else matrix @ w <= right for name, (matrix, right, equal) in rows.items()
        }
        return Declaration(
            objective=cp.Minimize(costs @ w + constant),
            constraints={**written, "weights": w >= 0},
            variables={WEIGHTS: w},
        )

    def direct(state: Values) -> Values:
        lower = [np.where(equal, right, -np.inf) for _, right, equal in rows.values()]
        master = Master(np.concatenate(lower), np.concatenate([right for _, right, _ in rows.values()]))
        master.add(costs, np.vstack([matrix for matrix, _, _ in rows.values()]))
        return {WEIGHTS: np.repeat(master.solve().weights[None], starts_in(state) if state else 1, axis=0)}

    return Block(
        name="columns",
        reads=frozenset(),
        writes=frozenset({WEIGHTS}),
        declare=declare,
        parameters=lambda view: {},
        embed=lambda point, at: {WEIGHTS: point[WEIGHTS]},
        repair=lambda values, view: {WEIGHTS: np.maximum(values[WEIGHTS], 0.0)},
        write=lambda solution, view: {WEIGHTS: solution.values[WEIGHTS]},
        direct=direct,
    )
