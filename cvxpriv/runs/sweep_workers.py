"""The workers of a sweep: this process, joblib's, or those of a Dask cluster; a worker that dies loses its task's try.

joblib ends all its work when a worker dies. The tasks without a result are then given to new workers; where three pools
in a row die without a result, each task left is done alone, so that the death is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TypeAlias

from joblib import Parallel, delayed, effective_n_jobs, parallel_config

from cvxpriv.errors import ModelError, printable, shown, suggest
from cvxpriv.numerics.arguments import require_workers
from cvxpriv.runs.sweep_fit import Fitted

BACKENDS = ("dask",)
LIVES = 3
"""Number of pools without any result, and of workers of one task alone, that may die."""
PATIENCE = 10
"""Seconds to reach a scheduler."""

Jobs: TypeAlias = Mapping[int, Callable[[], Fitted]]


@contextmanager
def workers(n_jobs: int, backend: str | None, scheduler: Any) -> Iterator[int]:
    """Make joblib use the workers asked for, and yield their number.

    `backend`: None: processes of this machine. "dask": the workers of a Dask cluster.
    `scheduler`: The cluster; None: a new one on this machine, reachable from nowhere else.
    Raises ModelError: The backend is not known, its package is missing, or the scheduler does not answer.
    """
    require_workers(n_jobs)
    if backend is None:
        if scheduler is not None:
            raise ModelError(f"scheduler={shown(scheduler)} without a backend: pass backend='dask' too")
        with parallel_config(backend="loky", n_jobs=n_jobs, inner_max_num_threads=1):
            yield effective_n_jobs(n_jobs)
        return
    if backend not in BACKENDS:
        raise ModelError(f"backend={shown(backend)} is not known: {suggest(str(backend), BACKENDS)}, or None")
    if find_spec("distributed") is None:
        raise ModelError("backend='dask' needs distributed, which is not installed: pip install 'cvxpriv[distributed]'")
    with _cluster(n_jobs, scheduler) as client, parallel_config(backend="dask", n_jobs=n_jobs, client=client):
        yield effective_n_jobs(n_jobs)


def each_fitted(jobs: Jobs, processes: bool) -> Iterator[tuple[int, Fitted]]:
    """Yield each job's number and result as it comes.

    `processes`: Whether joblib's workers do the jobs; else this process does, in order.
    """
    if not processes:
        yield from ((number, job()) for number, job in jobs.items())
        return
    left, fruitless = dict(jobs), 0
    while left and fruitless < LIVES:
        before = len(left)
        try:
            for number, fitted in _in_parallel(left):
                del left[number]
                yield number, fitted
        except Exception:  # of a worker: a job turns its own errors into rows
            fruitless = 0 if len(left) < before else fruitless + 1
    for number, job in left.items():
        yield number, _alone(number, job)


def _in_parallel(jobs: Jobs) -> Iterator[tuple[int, Fitted]]:
    parallel = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
    work: Iterator[tuple[int, Fitted]] = parallel(delayed(_numbered)(number, job) for number, job in list(jobs.items()))
    return work


def _alone(number: int, job: Callable[[], Fitted]) -> Fitted:
    """Return the result of a job that has its workers to itself; their deaths become a row."""
    for _ in range(LIVES):
        try:
            return next(fitted for _, fitted in _in_parallel({number: job}))
        except Exception as error:  # as above
            said = f"{LIVES} workers died of it, or it cannot be sent to one: {printable(str(error))}"
            row = {"status": "failed", "error_type": type(error).__name__, "error": said, "warnings": []}
    return Fitted(row, 0.0)


def _numbered(number: int, job: Callable[[], Fitted]) -> tuple[int, Fitted]:
    return number, job()


@contextmanager
def _cluster(n_jobs: int, scheduler: Any) -> Iterator[Any]:
    """Yield a client of the cluster; one that was made here ends with it."""
    import distributed

    if isinstance(scheduler, distributed.Client):
        yield scheduler
        return
    if scheduler is None:
        with (
            distributed.LocalCluster(
                n_workers=effective_n_jobs(n_jobs),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=PATIENCE)
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(
            f"scheduler={shown(scheduler)} does not answer ({error}): start it by `dask scheduler`, and pass its "
            "address, such as tcp://127.0.0.1:8786"
        ) from error
    with client:
        yield client
