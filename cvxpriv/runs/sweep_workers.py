"""The workers of a sweep: this process, joblib's, or those of a Dask cluster; a worker that dies loses its task's try.

joblib ends all its work when a worker dies. The tasks without a result are then given to new workers; where three pools
in a row die without a result, each task left is done alone, so that the death is its own.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, TypeAlias

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from threadpoolctl import threadpool_limits

from cvxpriv.errors import CvxprivError, ModelError, printable, shown, suggest
from cvxpriv.numerics.arguments import require_workers
from cvxpriv.reports.document import plain_data
from cvxpriv.runs.sweep_tasks import Task


@dataclass(frozen=True)
class Order:
    """The part that all tasks of a sweep share.

    `budget`: The file of the budget of private fits; None: the fits are not private.
    `kept`: Whether the run's file is wanted.
    `process`: The process that asks. In another one the linear algebra stays at one thread.
    `along`: Whether a task starts from the answer before.
    """

    model: type[Any]
    budget: str | None
    kept: bool
    process: int
    along: bool = False


@dataclass(frozen=True)
class Fitted:
    """The result of a task.

    `row`: Status, facts, error, warnings: plain data.
    `seconds`: Wall time.
    `document`: The content of the run's file, where it is wanted.
    `interrupted`: Whether the keyboard ended the fit: its row is no result.
    `answer`: What `init` of the next fit takes, where it starts there.
    """

    row: Mapping[str, Any]
    seconds: float
    document: dict[str, Any] | None = None
    interrupted: bool = False
    answer: Any = None


def fit_along(order: Order, tasks: Sequence[Task], *data: Any) -> list[Fitted]:
    """Do tasks in order, each from the answer of the last one that has any; an interrupted one is the last."""
    done: list[Fitted] = []
    init = None
    for task in tasks:
        fitted = fit(order, task, *data, init=init)
        init = fitted.answer if fitted.answer is not None else init
        done.append(replace(fitted, answer=None))
        if fitted.interrupted:
            break
    return done


def fit(order: Order, task: Task, *data: Any, init: Any = None) -> Fitted:
    """Pose and solve one task with one thread of linear algebra; an error becomes a row with its type and message."""
    begun = time.perf_counter()
    limits = threadpool_limits(1)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            row, document, interrupted, answer = _fitted(order, task, data, init)
    except KeyboardInterrupt:
        return Fitted({}, 0.0, interrupted=True)
    except Exception as error:  # of any class: a model may be anybody's, and the others go on
        row = {"status": "failed", "error_type": type(error).__name__, "error": _told(order, error)}
        document, interrupted, answer, caught = None, False, None, []
    finally:
        if os.getpid() == order.process:
            limits.restore_original_limits()
    said = dict.fromkeys(str(one.message) for one in caught or () if one.category.__module__.startswith("cvxpriv"))
    took = time.perf_counter() - begun
    if order.budget is None:  # the time of a private fit was not released
        row["seconds"] = took
    return Fitted({**row, "warnings": list(said)}, took, document, interrupted, answer)


def _told(order: Order, error: Exception) -> str:
    """Return the message of an error; of a private fit only cvxpriv's own, which quote no row."""
    if order.budget is not None and not isinstance(error, CvxprivError):
        return "not told: the fit is private, and the message could quote its rows"
    return printable(str(error))


def _fitted(
    order: Order, task: Task, data: tuple[Any, ...], init: Any
) -> tuple[dict[str, Any], dict[str, Any] | None, bool, Any]:
    model = order.model(*data, **task.posing)
    if order.budget is not None:
        run = model.solve_private(**task.solving, budget=order.budget)
    else:
        begin = {} if init is None else {"init": init}
        run = model.solve(**task.solving, **begin, seed=task.seed)
    facts = run.facts
    values = {fact.name: plain_data(fact.value) for fact in facts.facts}
    row = {
        "status": "done",
        "converged": facts.converged,
        "facts": {
            name: value
            for name, value in values.items()
            if (value is None or isinstance(value, (str, int, float))) and name != "seconds"
        },
    }
    answer = order.model.init_of(run) if order.along else None
    return row, run.document() if order.kept else None, bool(facts.interrupted), answer


BACKENDS = ("dask",)
LIVES = 3
"""Number of pools without any result, and of workers of one task alone, that may die."""
PATIENCE = 10
"""Seconds to reach a scheduler."""

Jobs: TypeAlias = Mapping[int, Callable[[], list[Fitted]]]
"""Tasks to do in order, by number."""


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


def each_fitted(jobs: Jobs, processes: bool) -> Iterator[tuple[int, list[Fitted]]]:
    """Yield each job's number and results as they come: one for all its tasks, where workers died of it.

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


def _in_parallel(jobs: Jobs) -> Iterator[tuple[int, list[Fitted]]]:
    parallel = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
    return iter(parallel(delayed(_numbered)(number, job) for number, job in list(jobs.items())))


def _alone(number: int, job: Callable[[], list[Fitted]]) -> list[Fitted]:
    """Return the results of a job that has its workers to itself; their deaths become a row."""
    for _ in range(LIVES):
        try:
            return next(fitted for _, fitted in _in_parallel({number: job}))
        except Exception as error:  # as above
            said = f"{LIVES} workers died of it, or it cannot be sent to one: {printable(str(error))}"
            row = {"status": "failed", "error_type": type(error).__name__, "error": said, "warnings": []}
    return [Fitted(row, 0.0)]


def _numbered(number: int, job: Callable[[], list[Fitted]]) -> tuple[int, list[Fitted]]:
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
