"""Column generation: solve the master, price locally until nothing is found, and only then verify.

The master program sees a column only through its cost c and its rows m. With multipliers y its reduced cost is
``c - y.m``; a column below zero would improve the master. For any y, and any number `least` that no column's reduced
cost is below, weak duality gives a bound on the whole problem: `Pricing.bound`. Verification is expensive at immature
multipliers and cheap at good ones. The columns that it finds go back into the master.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from cvxpriv.bounds.master import Master, MasterPoint
from cvxpriv.errors import SolverFailure
from cvxpriv.numerics.arrays import Array, Flags, IntArray, parts

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


LOCAL_SHARE = 0.05
"""Share of the gap at which local pricing stops."""

VERIFIED_SHARE = 0.85
"""Share of the gap that verification may leave; the rest is for the mechanism and for rounding."""

MOST_COLUMNS, PER_ROW = 1000, 4
"""Number of columns beyond which the master drops those that are far from paying, and the further ones for each row. A
large pool makes each solve slow: at |X| = 160, 7000 columns take four times as long as 1600."""

LARGE_POOL, LARGE_PER_ROW = 1700, 2
"""The same with many rows: so many columns in all, or for each row."""

IDLE_SHARE = 1e-3
"""Default share of the gap: a pass that lowers the master by less is idle."""

LEFT_SHARE = 0.01
"""Share of what is left above a known bound, below which a pass is idle where a model says what idle is."""

MOST_IDLE = 5
"""Number of idle passes in a row after which local pricing gives way to verification; ten times as many mean that
rounding has won."""

IN_USE = 1e-12
"""Weight below which a column is not in use."""


@dataclass(frozen=True)
class Generated:
    """The result of column generation.

    `value`: Value of the master, without the model's constant.
    `bound`: The model's bound from the best multipliers; it holds however the generation ended.
    `duals`, (rows,): The multipliers of `bound`.
    `columns`, (symbols, k): The columns in use.
    `weights`: (k,).
    `reason`: "" if the wanted gap was proved, otherwise the reason why not.
    """

    value: float
    bound: float
    duals: Array
    columns: Array
    weights: Array
    reason: str


@dataclass(frozen=True, eq=False)
class Pool:
    """Columns, (symbols, n), one after the other.

    `symbols`: Number of rows.
    `values`, `rows`, (entries,): The entries that are not zero, and where they stand.
    `counts`, (n,): Number of entries of each column.

    >>> pool = Pool.of(np.array([[0.5, 0.0], [0.5, 1.0]]))
    >>> pool.size, pool.taken(np.array([False, True])).tolist()
    (2, [[0.0], [1.0]])
    """

    symbols: int
    values: Array
    rows: IntArray
    counts: IntArray

    @classmethod
    def of(cls, columns: Array) -> Pool:
        """Return the columns of an array, (symbols, n)."""
        upright = columns.T
        column, row = upright.nonzero()
        counts = np.bincount(column, minlength=len(upright))
        return cls(len(columns), upright[column, row], row.astype(np.int32), counts)

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.counts)

    def joined(self, other: Pool) -> Pool:
        """Return these columns, then the other ones."""
        names = ("values", "rows", "counts")
        return Pool(self.symbols, *(np.concatenate([getattr(one, name) for one in (self, other)]) for name in names))

    def kept(self, some: Flags) -> Pool:
        """Return the columns that a mask marks, (n,)."""
        entries = np.repeat(some, self.counts)
        return Pool(self.symbols, self.values[entries], self.rows[entries], self.counts[some])

    def taken(self, some: Flags | slice) -> Array:
        """Return the columns that a mask or a slice marks as an array, (symbols, k)."""
        marked = np.zeros(self.size, dtype=bool)
        marked[some] = True
        held = self.kept(marked)
        columns = np.zeros((self.symbols, held.size))
        columns[held.rows, np.repeat(np.arange(held.size), held.counts)] = held.values
        return columns


class Generation:
    """Column generation for one problem; it may be run again after a row of the master has changed.

    `master`: A master without columns.
    `columns`, (symbols, n): The first columns; the master has to be feasible with them.
    """

    def __init__(self, pricing: Pricing, master: Master, columns: Array) -> None:
        self.pricing, self.master = pricing, master
        self.pool, self._kept = Pool.of(columns[:, :0]), columns.shape[1]
        self._proposed: Array | None = None
        self._solved = False
        self.add(columns)

    def add(self, columns: Array) -> None:
        """Add columns, (symbols, n), to the master; a few at once, since their rows are as large as they are."""
        for part in parts(*columns.shape):
            self.master.add(*self.pricing.rows(columns[:, part]))
        self.pool = self.pool.joined(Pool.of(columns))

    def drop(self, useless: Flags) -> None:
        """Remove the columns that a mask marks."""
        self.master.drop(useless)
        self.pool = self.pool.kept(~useless)

    def run(
        self,
        gap: float,
        out_of_time: Clock,
        floor: float = -np.inf,
        constant: float = 0.0,
        idle_below: float | None = None,
    ) -> Generated:
        """Generate columns until the master's value is within `gap` of a proved bound.

        A keyboard interrupt ends it as a time limit does, and returns what is proved so far.

        `gap`: The wanted gap, in the objective's unit.
        `out_of_time`: Returns True once the time is over; the best bound so far is then returned.
        `floor`: A bound that is known already: there is nothing to prove once the objective is within `gap` of it.
        `constant`: Difference of the objective and the master's value.
        `idle_below`: A pass that lowers the master by less than this is idle, or by less than `LEFT_SHARE` of what is
        left above `floor`; `IDLE_SHARE` of the gap by default.
        """
        least = IDLE_SHARE * gap
        best, best_duals, reason, last = -np.inf, np.zeros(0), "", np.inf
        idle, self._proposed, held = 0, None, Pool.of(np.zeros((0, 0)))
        try:
            while True:
                if held is not self.pool:
                    try:
                        point, held = self.master.solve(), self.pool
                    except SolverFailure as failure:
                        if not held.symbols:
                            raise
                        reason = str(failure)
                        break
                proposed, duals = self._proposed, point.duals if self._proposed is None else self._proposed
                if idle_below is not None:
                    least = max(min(idle_below, LEFT_SHARE * (constant + point.value - floor)), IDLE_SHARE * gap)
                idle = idle + 1 if point.value >= last - least else 0
                last = point.value
                if not len(best_duals):
                    best_duals = point.duals
                if constant + point.value - floor <= VERIFIED_SHARE * gap:
                    break
                if out_of_time():
                    reason = OUT_OF_TIME
                    break
                settled = self._solved and proposed is not None
                if not settled and idle < MOST_IDLE and self._improve(point, duals, gap):
                    continue
                proposed, duals = self._proposed, duals if self._proposed is None else self._proposed
                shown = self.pricing.verify(duals, -VERIFIED_SHARE * gap, out_of_time)
                bound = self.pricing.bound(duals, shown.least)
                if bound > best:
                    best, best_duals = bound, duals
                if constant + point.value - best <= gap:
                    break
                self._proposed = None
                if proposed is not None and not shown.reason:  # the master's own multipliers may do better
                    self.add(shown.columns)
                    continue
                if not shown.columns.shape[1] or idle >= 10 * MOST_IDLE:
                    reason = shown.reason or "rounding leaves more than the gap"
                    break
                self.add(shown.columns)
        except KeyboardInterrupt:
            reason, point = INTERRUPTED, self._solved_again()
            held = self.pool
        if best == -np.inf and reason:  # a bound that costs little: what the search says before it starts
            shown = self.pricing.verify(point.duals, -gap, lambda: True)
            best, best_duals = self.pricing.bound(point.duals, shown.least), point.duals
        used = point.weights > IN_USE
        return Generated(point.value, best, best_duals, held.taken(used), point.weights[used], reason)

    def _solved_again(self) -> MasterPoint:
        """Return the master's solution over the known columns, wherever an interrupt fell."""
        self.master.drop(np.arange(self.master.size) >= self.pool.size)
        self.pool = self.pool.kept(np.arange(self.pool.size) < self.master.size)
        return self.master.solve()

    def _improve(self, point: MasterPoint, duals: Array, gap: float) -> bool:
        """Price locally; return whether columns were added."""
        found = self.pricing.search(duals, self.pool.taken(point.weights > IN_USE), -LOCAL_SHARE * gap)
        self._proposed = self._proposed if found.duals is None else found.duals
        self._solved = found.solved
        if not found.columns.shape[1]:
            return False
        self._proposed = found.duals
        self._tidy(point)
        self.add(found.columns)
        return True

    def _tidy(self, point: MasterPoint) -> None:
        """Drop the worse half of the columns once there are too many, but none of the first: they keep it feasible."""
        size = len(point.duals)
        if self.master.size <= min(MOST_COLUMNS + PER_ROW * size, max(LARGE_POOL, LARGE_PER_ROW * size)):
            return
        reduced = np.empty(self.master.size)
        for part in parts(self.pool.symbols, len(reduced)):  # all rows would be the most memory of a search
            costs, rows = self.pricing.rows(self.pool.taken(part))
            reduced[part] = costs - point.duals @ rows
        useless = (reduced > np.median(reduced)) & (point.weights <= IN_USE)
        useless[: self._kept] = False
        self.drop(useless)
