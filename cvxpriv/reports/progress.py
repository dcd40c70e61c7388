"""Progress bars for long work: shown on a terminal when asked for, silent everywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from cvxpriv.numerics.arrays import Array

T = TypeVar("T")
Watch = Callable[[str, int, Mapping[str, Array]], "bool | None"]


def track(items: Iterable[T], *, total: int, description: str, shown: bool) -> Iterator[T]:
    """Yield the items, with a bar on standard error when `shown` and that is a terminal.

    >>> list(track([1, 2], total=2, description="rates", shown=False))
    [1, 2]
    """
    if not shown:
        yield from items
        return
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
    if not console.is_terminal:
        yield from items
        return
    clocks = (TimeElapsedColumn(), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *clocks)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(description, total=total)
        for item in items:
            yield item
            bar.advance(task)


def with_bar(callback: Watch | None, total: int, description: str, shown: bool) -> Watch | None:
    """Return a callback that moves a bar by one step a pass, and then calls the given one; the bar stands at once."""
    if not shown:
        return callback
    bar = iter(track(range(total), total=total, description=description, shown=shown))
    next(bar, None)  # the first pass may be long in coming

    def moved(loop: str, iteration: int, measured: Mapping[str, Array]) -> bool | None:
        next(bar, None)
        return None if callback is None else callback(loop, iteration, measured)

    return moved
