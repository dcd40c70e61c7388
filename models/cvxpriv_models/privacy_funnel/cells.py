"""The cells of u = P(X,Y) that a solver sees, and what every block that solves for them shares.

A solver sees the cells whose mass it can resolve. Rows of u sum to p, it carries the rate, and constraints see P(Y|X).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxpriv.blocks.declaration import Declaration, Known
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.chain import Solution

from .closed_form import FLOOR
from .problem import Problem

#: Shares below this are not shown to a solver: its answers are no finer.
RESOLUTION = 1e-9


@dataclass(frozen=True, eq=False)
class Cells:
    """Some cells of a (rows, columns) table, as one vector in C order.

    `mask`: (rows, columns).
    """

    mask: npt.NDArray[np.bool_]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cells) and np.array_equal(self.mask, other.mask)

    def __hash__(self) -> int:
        return hash((self.mask.shape, self.mask.tobytes()))

    @property
    def count(self) -> int:
        """Number of cells."""
        return int(self.mask.sum())

    @cached_property
    def index(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Row and column of each cell."""
        rows, columns = np.nonzero(self.mask)
        return rows, columns

    @cached_property
    def columns(self) -> npt.NDArray[np.intp]:
        """The columns that have a cell."""
        return np.flatnonzero(self.mask.any(axis=0))

    def sums(self, axis: int, weight: Array | None = None) -> sp.csr_array:
        """Return the matrix that sums a vector of cells along an axis, for each row, or each column that has a cell.

        `weight`: A factor for each cell.
        """
        along: Any = self.index[1 - axis]
        weight = np.ones(self.count) if weight is None else weight
        shape = self.mask.shape[1 - axis], self.count
        sums = sp.csr_array((weight, (along, np.arange(self.count))), shape=shape)
        return sums if axis else sums[self.columns]

    def normalised(self, values: Array, *, axis: int, to: Array | float = 1.0) -> Array:
        """Scale a vector of cells so that its sums along `axis` are `to`; values below zero become tiny first.

        `axis` is the one summed over: 0 gives columns a sum, 1 gives rows one.
        """
        along = self.index[1 - axis]
        kept = np.maximum(values, RESOLUTION**2)
        totals = np.bincount(along, weights=kept, minlength=self.mask.shape[1 - axis])
        return np.asarray(kept * (to / np.where(totals > 0.0, totals, 1.0))[along])

    def log_spread(self, values: Array) -> Array:
        """Return the log of the table, (rows, columns), whose other cells are at `FLOOR`."""
        table = np.full(self.mask.shape, FLOOR)
        table[self.mask] = np.maximum(np.log(values), FLOOR)
        return table

    def expression(self, vector: cp.Expression, scale: Array) -> cp.Expression:
        """Return the table as a cvxpy expression, (rows, columns), each row times its scale."""
        rows, columns = self.index
        spread = sp.csr_array(
            (scale[rows], (rows * self.mask.shape[1] + columns, np.arange(self.count))),
            shape=(self.mask.size, self.count),
        )
        return cp.reshape(spread @ vector, self.mask.shape, order="C")


RATE = "I(X;Y) >= R"
ROWS = "sum_j u_ij = p_i"


def joint_declaration(
    problem: Problem,
    alive: Cells,
    u: cp.Variable,
    *,
    objective: cp.Expression,
    parameters: dict[str, cp.Parameter] | None = None,
    constraints: dict[str, cp.Constraint] | None = None,
    variables: dict[str, cp.Variable] | None = None,
) -> Declaration:
    """Declare a problem in u: its rows sum to p, (5b), it carries the rate, (5d), and its constraints see P(Y|X)."""
    log_w = cp.Parameter(alive.count, name="log w")
    needed = cp.Parameter(name="R^")
    return Declaration(
        objective=cp.Minimize(objective),
        constraints={ROWS: alive.sums(1) @ u == problem.p_x, RATE: log_w @ u >= needed, **(constraints or {})},
        variables={"u": u, **(variables or {})},
        parameters={"log w": log_w, "R^": needed, **(parameters or {})},
        mechanism=alive.expression(u, scale=1.0 / problem.p_x),
        known=Known.of_table(problem.table),
    )


def rate_parameters(problem: Problem, view: Values, alive: Cells) -> Values:
    """Return the Parameters of the rate constraint (5d) at one start of the state."""
    # Raising a w that no mass follows to 1e-18 leaves sum u log w a lower bound of I(X;Y) - H(X).
    log_w = np.maximum(view["log_w"][alive.mask], 2.0 * np.log(RESOLUTION))
    return {"log w": log_w, "R^": np.asarray(problem.target)}


def multiplier(solution: Solution) -> Array:
    """Return lambda, the multiplier of the rate constraint."""
    return np.asarray(np.maximum(np.asarray(solution.duals[RATE], dtype=float), 0.0))


def softmax(exponent: Array) -> Array:
    """Return exp(exponent) with rows scaled to sum to 1, (|X|, |Y|)."""
    weights = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
