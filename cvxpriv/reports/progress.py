"""Progress bars for long work: shown on a terminal when asked for, silent everywhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["track"]

T = TypeVar("T")


def track(items: Iterable[T], *, total: int, description: str, shown: bool) -> Iterator[T]:
    """Yield the items, with a bar on standard error when `shown` and that is a terminal.

    >>> list(track([1, 2], total=2, description="rates", shown=False))
    [1, 2]
    """
    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield from items
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(description, total=total)
        for item in items:
            yield item
            bar.advance(task)
