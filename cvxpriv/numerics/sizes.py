"""Estimates of the time and memory that work takes, and the limits above which it is refused before it begins.

The estimates are of every pass that is allowed, where most runs stop earlier. The constants were measured on one core
of 2.5 GHz, and agree with the time of mechanisms and the bootstrap within a factor of about 3. Limits of searches,
which end early, are measured by a clock (`now`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TypeVar

from cvxpriv.errors import ModelError

LONGEST = 86_400.0
"""The limit in seconds: a day."""
LARGEST = 4.0 * 2**30
"""The limit in bytes: 4 GiB."""
MOST_POINTS = 10_000
"""The most points of a curve."""

MOST = 10**30
"""Counts above it are taken for it: what is refused need not be told exactly, and doubles hold it."""
PASS = 1.5e-3
"""Seconds of a pass over all blocks by exact updates, whatever its size."""
CELL = 6e-7
"""Seconds for a cell of the mechanism, a start and a pass, and a quarter of it more for each private symbol."""
SOLVE = 0.03
"""Seconds of a pass of one start by a solver, whatever its size."""
SOLVED_CELL = 1e-3
"""Seconds for a cell of the mechanism there."""
COMPILED = 7e3
"""Bytes for an entry of the blocks that are compiled for a solver."""
LARGEST_TENSOR, TENSOR = 10_000_000, 45.0
"""Largest product of a block's Parameter entries and variable entries for which Parameters stay symbolic, and the block
is compiled once; and the bytes of cvxpy's tensor for each of it. At the limit that takes half a gigabyte and a second;
at eight times the product, three and ten. Without it each solve compiles, in hundredths of a second."""
ARRAYS = 20
"""Arrays of the mechanism's size that a start holds."""
RECORD = 1_000
"""Bytes that a pass of a start leaves in the history."""
ENTRY = 3e-8
"""Seconds for an entry of the rows, a start and a pass."""
COPIES = 4
"""Arrays of the rows' size that a fit holds."""
STATES = 40
"""Numbers a row and a column that a fit holds beside them: its state, and what acceleration remembers of it."""
SOLVED_ENTRY = 1e-4
"""Seconds for an entry of a problem's variables, a start and a pass by a solver."""
RESAMPLED = 2e-8
"""Seconds for a cell of a resampled table and, an eighth of it, a cell of what is released of it."""


@dataclass(frozen=True)
class Size:
    """An estimate of what work takes.

    `what`: The work in words: "a mechanism of 8,834 x 8,835 cells".
    `held`: Bytes of the arrays.
    `remedy`: The remedy that makes it smaller.
    `logged`: Bytes of the history, which grows with time.
    `proof`: Seconds after which a search for a proof ends, beside `seconds`; 0 for no such search.
    """

    what: str
    seconds: float
    held: float
    remedy: str
    logged: float = 0.0
    proof: float = 0.0

    @property
    def limit(self) -> str:
        """The estimate in words.

        >>> of_mechanism(2, 30, 31, starts=1, passes=500).limit
        'the work takes at most about 1.2 s and 1 MB'
        """
        more = f", the proof at most {_time(self.proof)} more" * bool(self.proof)
        memory = max((self.held + self.logged) / 1e6, 1.0)
        return f"the work takes at most about {_time(self.seconds)} and {memory:,.0f} MB{more}"

    def repeated(self, times: int, what: str) -> Size:
        """Return the size of doing it several times, one after the other."""
        return replace(
            self,
            what=f"{self.what}, {what}" if what else self.what,
            seconds=self.seconds * times,
            proof=self.proof * times,
        )

    def within(self, time_limit: float | None) -> Size:
        """Return the size of work that ends after a time."""
        if time_limit is None or self.seconds <= 2.0 * time_limit:
            return self
        seconds = 2.0 * time_limit
        return replace(self, seconds=seconds, logged=self.logged * seconds / self.seconds)


def require_feasible(size: Size, oversize: bool | None = None) -> None:
    """Refuse work above the limits, unless that is wanted; None where it cannot be.

    >>> require_feasible(of_mechanism(2, 8834, 8835, starts=1, passes=500), oversize=False)
    Traceback (most recent call last):
    cvxpriv.errors.ModelError: a mechanism of 8,834 x 8,835 cells, 1 start, 500 passes can take 9.8 h and 12 GB, ...
    """
    memory = size.held + size.logged
    if oversize or (size.seconds <= LONGEST and memory <= LARGEST):
        return
    wish = "" if oversize is None else ", or go on with oversize=True (--yes)"
    raise ModelError(
        f"{size.what} can take {_time(size.seconds)} and {memory / 1e9:.2g} GB, above the limits of a day and 4.3 "
        f"GB: {size.remedy}{wish}"
    )


def of_mechanism(
    private: int,
    inputs: int,
    outputs: int,
    *,
    starts: int,
    passes: int,
    exact: bool = True,
    effort: float = 1.0,
    blocks: Sequence[float] = (1.0,),
    compiled: float = COMPILED,
) -> Size:
    """Return the size of a search for a mechanism.

    `private`, `inputs`, `outputs`: Symbols of each.
    `exact`: Whether exact updates do the work; else solvers.
    `effort`: Number of plain passes that one pass costs.
    `blocks`: The sizes of the blocks that a solver gets, each as a multiple of the mechanism's.
    `compiled`: Bytes for an entry of them.
    """
    starts, passes, cells = min(starts, MOST), min(passes, MOST), float(inputs) * min(outputs, MOST)
    if exact:
        seconds = passes * effort * (PASS + CELL * (1.0 + private / 4.0) * cells * starts)
    else:
        seconds = passes * effort * starts * (SOLVE + SOLVED_CELL * cells)
    held = 8.0 * (ARRAYS * cells * starts + COPIES * float(private) * inputs)
    if not exact:
        squares = [(share * cells) ** 2 for share in blocks]
        tensor = max((square for square in squares if square <= LARGEST_TENSOR), default=0.0)
        held += compiled * cells * sum(blocks) + TENSOR * tensor
    what = f"a mechanism of {inputs:,} x {outputs:,} cells, {counted(starts, 'start')}, {counted(passes, 'pass')}"
    remedy = "merge symbols, lower size_y or size_u, or take fewer starts or passes (max_iter)"
    return Size(what, seconds, held, remedy, RECORD * float(passes) * starts)


def of_resampling(private: int, inputs: int, outputs: int, replicates: int) -> Size:
    """Return the size of intervals by resampling the records."""
    replicates = min(replicates, MOST)
    cells = float(private) * (inputs + outputs) + float(private) * inputs * outputs / 8.0
    held = 8.0 * (float(private) * (inputs + outputs) + 12.0 * replicates)
    return Size(f"{replicates:,} replicates", RESAMPLED * cells * replicates, held, "take fewer replicates (200 serve)")


def of_learning(
    rows: int,
    columns: int,
    *,
    starts: int = 1,
    passes: int,
    blocks: int = 1,
    exact: bool = True,
    planned: int = 0,
    stored: int | None = None,
    factors: int = 0,
) -> Size:
    """Return the size of a fit.

    `rows`, `columns`: Size of the data of all parties or nodes together.
    `stored`: Number of entries that are stored, fewer where the rows are sparse; None: all.
    `blocks`: Problems that a pass solves.
    `exact`: Whether exact updates do the work; else solvers.
    `planned`: Numbers a pass that stand before the first one: a table of penalties.
    `factors`: Numbers of the factored matrices.
    """
    starts, passes = min(starts, MOST), min(passes, MOST)
    entries = (float(rows) * columns if stored is None else float(stored)) + float(factors)
    each = PASS + ENTRY * entries if exact else SOLVE * blocks + 100.0 * ENTRY * entries
    remedy, logged = "take fewer columns, rows, starts or passes (max_iter)", RECORD * float(passes) * blocks * starts
    what = f"a fit of {rows:,} x {columns:,} rows, {counted(starts, 'start')}, {counted(passes, 'pass')}"
    held = 8.0 * (COPIES * entries + STATES * (float(rows) + columns) * starts + float(planned) * passes)
    return Size(what, each * passes * starts, held, remedy, logged)


def of_problem(entries: int, *, starts: int, passes: int, blocks: int = 1) -> Size:
    """Return the size of the search of a problem of cvxpy, each of whose blocks a solver solves in each pass.

    `entries`: Entries of all variables.
    """
    starts, passes = min(starts, MOST), min(passes, MOST)
    seconds = float(passes) * starts * blocks * (SOLVE + SOLVED_ENTRY * entries)
    what = f"a problem of {entries:,} entries, {counted(starts, 'start')}, {counted(passes, 'pass')}"
    remedy = "take fewer starts or passes (max_iter), or a smaller problem"
    return Size(what, seconds, 8.0 * COPIES * entries * starts, remedy, RECORD * float(passes) * starts * blocks)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> [counted(1, "row"), counted(2000, "pass"), counted(0, "party")]
    ['1 row', '2,000 passes', '0 parties']
    """
    several = {"pass": "passes", "party": "parties"}.get(noun, f"{noun}s")
    return f"{count:,} {noun if count == 1 else several}" if count < 10**15 else f"{float(count):.0e} {several}"


def _time(seconds: float) -> str:
    for unit, length in (("years", 3.156e7), ("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds:.2g} s"


_seconds: ContextVar[Callable[[], float]] = ContextVar("seconds", default=time.monotonic)


def now() -> float:
    """Return the seconds that a search's limits are measured in: by the clock, but within `processor_time`."""
    return _seconds.get()()


_end: ContextVar[float] = ContextVar("end", default=math.inf)


class OutOfTime(Exception):
    """The moment of `until` passed within a pass: its loop drops the pass, and ends with the last whole one."""


def late() -> bool:
    """Return whether the moment of `until` has passed: a long step then ends with its results so far."""
    return now() >= _end.get()


@contextmanager
def until(moment: float) -> Iterator[None]:
    """Let `late` say, within, whether a moment by `now` has passed.

    >>> with until(now() - 1.0):
    ...     late()
    True
    """
    before = _end.set(min(moment, _end.get()))
    try:
        yield
    finally:
        _end.reset(before)


Item = TypeVar("Item")


def in_time(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the first item, and the others while it is not `late`.

    >>> with until(now() - 1.0):
    ...     list(in_time("abc"))
    ['a']
    """
    for item in items:
        yield item
        if late():
            return


@contextmanager
def processor_time(usual: bool) -> Iterator[None]:
    """Measure `usual` limits, which nobody asked for, in the processor seconds of this thread, others by the clock.

    On a busy machine a search then ends after the same work.
    """
    before = _seconds.set(time.thread_time if usual else time.monotonic)
    try:
        yield
    finally:
        _seconds.reset(before)
