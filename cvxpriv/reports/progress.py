"""Progress bars for long work: shown on a terminal when asked for, silent everywhere else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from cvxpriv.numerics.arrays import Array

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")
Watch = Callable[[str, int, Mapping[str, Array]], "bool | None"]


@contextmanager
def _bar(shown: bool, remark: str = "") -> Iterator[Progress | None]:
    """Yield a bar on standard error; None unless `shown` and that is a terminal.

    `remark`: The last column, of which a task's fields are parts. By default the time passed and the time left.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield None
        return
    last = (TextColumn(remark),) if remark else (TimeElapsedColumn(), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *last)
    with Progress(*columns, console=console, transient=True) as bar:
        yield bar


def track(items: Iterable[T], *, total: int, description: str, shown: bool) -> Iterator[T]:
    """Yield the items, with a bar on standard error when `shown` and that is a terminal.

    >>> list(track([1, 2], total=2, description="rates", shown=False))
    [1, 2]
    """
    if not shown:
        yield from items
        return
    with _bar(shown) as bar:
        task = None if bar is None else bar.add_task(description, total=total)
        for item in items:
            yield item
            if bar is not None and task is not None:
                bar.advance(task)


def with_bar(callback: Watch | None, total: int, shown: bool) -> Watch | None:
    """Return a callback that moves a bar by one step a pass, and then calls the given one; the bar stands at once."""
    if not shown:
        return callback
    bar = iter(track(range(total), total=total, description="passes", shown=shown))
    next(bar, None)  # the first pass may be long in coming

    def moved(loop: str, iteration: int, measured: Mapping[str, Array]) -> bool | None:
        next(bar, None)
        return None if callback is None else callback(loop, iteration, measured)

    return moved


@dataclass
class Pace:
    """The pace of a sweep.

    `left`: Number of tasks without a result.
    `finished`: Number of tasks that were finished now; those that a checkpoint held tell nothing of the pace.
    `failed`: Number of these that failed.
    `seconds`: Sum of their times.

    >>> pace = Pace(left=5, workers=2)
    >>> pace.remaining
    inf
    >>> pace.done(3.0), pace.remaining
    (None, 6.0)
    """

    left: int
    workers: int
    finished: int = 0
    failed: int = 0
    seconds: float = 0.0

    def done(self, seconds: float, failed: bool = False) -> None:
        """Count a task."""
        self.left -= 1
        self.finished += 1
        self.failed += failed
        self.seconds += seconds

    @property
    def remaining(self) -> float:
        """Seconds to the end: rounds of work that are left, at the mean time of a task; infinite before the first."""
        if not self.finished:
            return math.inf if self.left else 0.0
        return math.ceil(self.left / max(self.workers, 1)) * self.seconds / self.finished

    def text(self, now: datetime) -> str:
        """Return the pace in words, such as "ends about 14:32 (3.1 s a task, mean of 12)"."""
        failed = f"{self.failed} failed, " if self.failed else ""
        if not self.finished:
            return "the end is not known before the first result"
        if not self.left:
            return f"{failed}done"
        end = now + timedelta(seconds=min(self.remaining, 1e9))
        day = f"{end:%H:%M}" if end.date() == now.date() else f"{end:%Y-%m-%d %H:%M}"
        return f"{failed}ends about {day} ({self.seconds / self.finished:.2g} s a task, mean of {self.finished})"


@contextmanager
def shown_pace(total: int, pace: Pace, shown: bool) -> Iterator[Pace]:
    """Show the pace beside a bar on standard error, when `shown` and that is a terminal."""
    with _bar(shown, "{task.fields[said]}") as bar:
        if bar is None:
            yield pace
            return
        place = bar.add_task("sweep", total=total, completed=total - pace.left, said=pace.text(datetime.now()))
        moved = partial(bar.update, place)

        class Moving(Pace):
            def done(self, seconds: float, failed: bool = False) -> None:
                super().done(seconds, failed)
                moved(completed=total - self.left, said=self.text(datetime.now()))

        yield Moving(pace.left, pace.workers)
