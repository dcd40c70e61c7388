"""The progress of a sweep: an end time from the mean of the finished tasks, and none before the first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn


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
    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield pace
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[said]}"))
    with Progress(*columns, console=console, transient=True) as bar:
        place = bar.add_task("sweep", total=total, completed=total - pace.left, said=pace.text(datetime.now()))

        class Moving(Pace):
            def done(self, seconds: float, failed: bool = False) -> None:
                super().done(seconds, failed)
                bar.update(place, completed=total - self.left, said=self.text(datetime.now()))

        yield Moving(pace.left, pace.workers)
