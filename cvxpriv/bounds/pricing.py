"""The interface between column generation and a model's pricing.

The master program sees a column only through its cost c and its rows m. With multipliers y its reduced cost is
``c - y.m``; a column below zero would improve the master. For any y, and any number `least` that no column's reduced
cost is below, weak duality gives a bound on the whole problem: `Pricing.bound`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from cvxpriv.numerics.arrays import Array

Clock: TypeAlias = Callable[[], bool]
"""A clock that returns True once the time is over."""

OUT_OF_TIME, INTERRUPTED = "the time limit was reached", "the keyboard ended the search"


@dataclass(frozen=True)
class Priced:
    """The columns that local pricing found.

    `columns`: (symbols, n).
    `values`, (n,): Their reduced costs.
    `duals`, (rows,): Multipliers to price at next, where the model knows better ones than the master program's will be.
    `solved`: Whether `duals` solve the optimality conditions, and verification costs no more than another search.
    """

    columns: Array
    values: Array
    duals: Array | None = None
    solved: bool = False


@dataclass(frozen=True)
class Verified:
    """The result of verification at one vector of multipliers.

    `least`: Lower bound of every column's reduced cost, rounding included.
    `columns`, (symbols, n): Columns found below the requested level; they go back into the master.
    `reason`: "" if the search was complete, otherwise the reason why not.
    """

    least: float
    columns: Array
    reason: str


class Pricing(Protocol):
    """The pricing of a model's columns."""

    def rows(self, columns: Array) -> tuple[Array, Array]:
        """Return costs (n,) and rows (rows, n) of columns (symbols, n)."""

    def search(self, duals: Array, active: Array, level: float) -> Priced:
        """Return columns, found locally, whose reduced cost is below `level` < 0, the most negative first.

        `active` are the columns in use, (symbols, k): a good place to start from.
        """

    def verify(self, duals: Array, level: float, out_of_time: Clock) -> Verified:
        """Show that no column's reduced cost is below `level` < 0, or find some."""

    def bound(self, duals: Array, least: float) -> float:
        """Return a bound on the whole problem from multipliers and `least`, rounding included."""
