"""What a model's pricing has to offer to column generation: the small interface between the two.

The master program sees a column only through its cost c and its rows m. With multipliers y its reduced cost is
``c - y.m``; a column below zero would improve the master. For any y, and any number `least` that no column's reduced
cost is below, weak duality gives a bound on the whole problem: `Pricing.bound`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from cvxpriv.numerics.arrays import Array

__all__ = ["INTERRUPTED", "OUT_OF_TIME", "Clock", "Priced", "Pricing", "Verified"]


Clock: TypeAlias = Callable[[], bool]
"""Whether the time is up."""

OUT_OF_TIME, INTERRUPTED = "the time limit was reached", "the keyboard ended the search"


@dataclass(frozen=True)
class Priced:
    """Columns that local pricing found.

    Attributes
    ----------
    columns : array, ``(symbols, n)``
    values : array, ``(n,)``
        Their reduced costs.
    """

    columns: Array
    values: Array


@dataclass(frozen=True)
class Verified:
    """What verification has shown at one vector of multipliers.

    Attributes
    ----------
    least : float
        No column's reduced cost is below this, rounding included.
    columns : array, ``(symbols, n)``
        Columns found below the level asked for; they go back into the master.
    reason : str
        "" if the search was complete, else why it was not.
    """

    least: float
    columns: Array
    reason: str


class Pricing(Protocol):
    """A model's columns, priced."""

    def rows(self, columns: Array) -> tuple[Array, Array]:
        """Costs (n,) and rows (rows, n) of columns (symbols, n)."""
        ...

    def search(self, duals: Array, active: Array, level: float) -> Priced:
        """Columns with a reduced cost below `level` < 0, the most negative first, found locally.

        `active` are the columns in use, (symbols, k): a good place to start from.
        """
        ...

    def verify(self, duals: Array, level: float, out_of_time: Clock) -> Verified:
        """Show that no column is below `level` < 0, or find some."""
        ...

    def bound(self, duals: Array, least: float) -> float:
        """A bound on the whole problem from multipliers and `least`, rounding included."""
        ...
