"""Many independent runs in order, in parallel, and with a bar; the number of workers never changes the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from cvxpriv.numerics.arguments import require_workers
from cvxpriv.reports.progress import track

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_each(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    n_jobs: int = 1,
    progress: bool = False,
    description: str = "runs",
    last: Callable[[Result], bool] | None = None,
) -> list[Result]:
    """Do the same work on every item, in the items' order.

    >>> run_each(abs, [-1, 2])
    [1, 2]
    """
    require_workers(n_jobs)
    if n_jobs == 1 or len(items) < 2:
        done = (work(item) for item in items)
    else:
        from joblib import Parallel, delayed

        done = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(work)(item) for item in items)
    results: list[Result] = []
    try:
        shown = track(done, total=len(items), description=description, shown=True) if progress else done
        for result in shown:
            results.append(result)
            if last is not None and last(result):
                break
    except KeyboardInterrupt:
        if last is None:
            raise
    return results


def run_pieces(
    work: Callable[[Sequence[Item]], Result], items: Sequence[Item], *, n_jobs: int, progress: bool
) -> list[Result]:
    """Do the same work on starts, cut into one piece per worker."""
    cut = [items[piece.start : piece.stop] for piece in pieces(len(items), n_jobs)]
    return run_each(work, cut, n_jobs=n_jobs, progress=progress, description="starts")


def pieces(count: int, n_jobs: int) -> list[range]:
    """Return `count` starts cut into one piece per worker.

    >>> pieces(30, 2)
    [range(0, 15), range(15, 30)]
    """
    from joblib import effective_n_jobs

    require_workers(n_jobs)
    parts = max(1, min(count, effective_n_jobs(n_jobs)))
    edges = [count * part // parts for part in range(parts + 1)]
    return [range(low, high) for low, high in pairwise(edges)]
