"""The privacy funnel, PF (1): minimise I(S;Y) over P(Y|X) subject to I(X;Y) >= R; and its cells that a solver sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from numpy.typing import ArrayLike

from cvxpriv.blocks.declaration import Constraint
from cvxpriv.constraints import ReadyConstraint
from cvxpriv.errors import ModelError, shown, suggest
from cvxpriv.numerics.arguments import real_number
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.information import mutual_information
from cvxpriv.tables.joint import JointTable

from .multiplier import FLOOR

RATE_UNITS = ("fraction", "nats", "bits")

#: Distance above H(X) at which a rate still counts as H(X): the rounding of |X| logarithms in another order.
ROUNDING = 1e-12
#: Shares below this are not shown to a solver: its answers are no finer.
RESOLUTION = 1e-9


@dataclass(frozen=True)
class Problem:
    """The data of PF (1), validated.

    `table`: P(S, X), (|S|, |X|).
    `rate`: R in nats, 0 <= R <= H(X).
    `size_y`: |Y|.
    """

    table: JointTable
    rate: float
    size_y: int

    @property
    def p_x(self) -> Array:
        """P(X), (|X|,)."""
        return self.table.p_x

    @property
    def p_s_given_x(self) -> Array:
        """P(S|X), (|S|, |X|), columns sum to 1."""
        return self.table.p_s_given_x

    @property
    def target(self) -> float:
        """R^ = R + sum p log p, the paper's right side of (2d)."""
        return self.rate - self.table.entropy_x

    @classmethod
    def of(cls, p_sx: JointTable | ArrayLike, rate: float, rate_unit: str, size_y: int | None) -> Problem:
        """Validate what a user passes."""
        table = p_sx if isinstance(p_sx, JointTable) else JointTable.from_array(p_sx)
        nats = _rate_in_nats(rate, rate_unit, table.entropy_x)
        symbols = table.p_x.size + 1 if size_y is None else size_y
        most = min(float(np.log(symbols)), table.entropy_x)
        if nats > most + ROUNDING:
            raise ModelError(
                f"size_y={symbols} symbols carry at most {most:.6g} nats, less than rate={nats:.6g} nats: "
                "raise size_y or lower rate"
            )
        return cls(table, nats, int(symbols))

    def leakage(self, mechanism: Array) -> float:
        """Return I(S;Y) in nats of a mechanism P(Y|X), (|X|, |Y|): the objective of PF (1)."""
        return mutual_information(self.p_s_given_x @ (self.p_x[:, None] * mechanism))

    def utility(self, mechanism: Array) -> float:
        """Return I(X;Y) in nats of a mechanism P(Y|X), (|X|, |Y|)."""
        return mutual_information(self.p_x[:, None] * mechanism)


def _rate_in_nats(rate: float, unit: str, entropy_x: float) -> float:
    if unit not in RATE_UNITS:
        raise ModelError(f"rate_unit={unit!r} is not a unit: {suggest(str(unit), RATE_UNITS)}")
    number = real_number(rate, "rate", f"a rate in {unit}")
    nats = number * {"fraction": entropy_x, "nats": 1.0, "bits": float(np.log(2.0))}[unit]
    if not np.isfinite(nats) or nats < 0.0:
        raise ModelError(f"rate={rate!r} is not a rate: choose 0 <= rate <= H(X)={entropy_x:.6g} nats")
    if nats > entropy_x * (1.0 + ROUNDING):
        remedy = "rate <= 1" if unit == "fraction" else f'rate <= {entropy_x:.6g} nats or rate_unit="fraction"'
        raise ModelError(
            f"rate={shown(rate)} {unit} is {nats:.6g} nats and exceeds H(X)={entropy_x:.6g} nats by "
            f"{nats - entropy_x:.1e}: choose {remedy}"
        )
    return min(nats, entropy_x)


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


#: Kinds of constraints that treat all outputs alike, and allow any number of them.
ON_COLUMNS = (
    *("local_differential_privacy", "local_information_privacy", "pointwise_leakage"),
    *("maximal_leakage", "total_variation_to_prior"),
)


def usual_size(size_x: int, constraints: Sequence[tuple[str, Constraint]]) -> int:
    """Return |X| + 1, and one more for each constraint on one sum over all outputs.

    A vertex of the linear program over posteriors uses as many of them as it has rows: P(X), the rate, and the sums.
    Where any constraint names outputs, or is of a kind that is not known, it is |X| + 1: the constraint may have been
    written for so many. The bound on the total variation of each symbol of X is |X| sums, and is not counted either.
    """
    ready = [constraint for _, constraint in constraints if isinstance(constraint, ReadyConstraint)]
    if len(ready) < len(constraints) or any(one.kind not in ON_COLUMNS for one in ready):
        return size_x + 1
    sums = [one for one in ready if one.kind == "maximal_leakage" or one.parameters.get("average", False)]
    return size_x + 1 + len(sums)
