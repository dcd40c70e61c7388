"""Sweeps: a model at every point of a grid of options, on all cores or a cluster; no result is lost or done twice."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cvxpriv.errors import ModelError, PrivacyError, shown, warn
from cvxpriv.numerics.arguments import few, is_whole
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd, versions
from cvxpriv.privacy.budget import Budget
from cvxpriv.reports.files import PathLike
from cvxpriv.reports.progress import Pace, shown_pace
from cvxpriv.runs.saved import write_run
from cvxpriv.runs.sweep_checkpoint import FORMAT, Checkpoint, CheckpointWarning, digest, opened
from cvxpriv.runs.sweep_tasks import MOST_TASKS, Task, choices_of, positional_data, require_along, tasks_of
from cvxpriv.runs.sweep_workers import Fitted, Order, each_fitted, fit_along, workers


@door
def sweep(
    model: type[Any],
    data: Any,
    *,
    seed: int | Sequence[int] = 0,
    n_jobs: int = 1,
    backend: str | None = None,
    scheduler: Any = None,
    checkpoint: PathLike | None = None,
    resume: bool = True,
    retry: bool = False,
    warm_along: str | None = None,
    keep: PathLike | None = None,
    budget: PathLike | None = None,
    progress: bool = False,
    **grid: Any,
) -> pd.DataFrame:
    """Solve a model at every point of a grid.

    The tasks are the product of the grid's values, of the tables and of the seeds. A task's own seed follows from its
    settings and the sweep's seed alone, and each fit has one thread of linear algebra, so that neither `n_jobs`, nor
    the order, nor the backend changes a result.

    Parameters
    ----------
    model : class
        A model, such as `cvxpriv.models.PrivacyFunnel`.
    data : object or mapping of str to object
        The data that the constructor needs: one object, or a tuple such as ``(X, y)``; several by name in a mapping.
    seed : int or sequence of int
        The sweep's seed; several are an axis of the grid.
    n_jobs : int
        Worker processes; -1 is one per core. 1 is this process.
    backend : {None, "dask"}
        None: processes of this machine, by joblib. "dask": a Dask cluster (extra `distributed`).
    scheduler : str or distributed.Client, optional
        The cluster's scheduler; None: a new cluster on this machine.
    checkpoint : path, optional
        A file of JSON lines, to which each result is appended as soon as it is there.
    resume : bool
        Take the results that the checkpoint holds for these tasks, data and versions. False does every task again;
        the old rows stay in the file.
    retry : bool
        Do tasks again that failed.
    warm_along : str, optional
        An option of the grid: a task starts from the answer at this option's value before, in the order given; the
        first one anew. The tasks of one such chain are done by one worker, and a chain with a gap is done from its
        first value. For models that learn, without privacy.
    keep : path, optional
        A folder to which each run is saved, under the name of its task, for `cvxpriv.load`.
    budget : path, optional
        The file of a `Budget`: the fits are private, by `solve_private`, and each spends from it.
    progress : bool
        Show a bar on a terminal, with the time at which the sweep will end by the mean of the finished tasks.
    **grid
        The options of the constructor and of the solve: a list, tuple, range or array of values, or one value. A value
        that is a list itself stands in a list of its own.

    Returns
    -------
    DataFrame
        One row a task, in the order of the grid: table (where there are several), the options, task, task_seed,
        status ("done", "failed"; "waiting" after a keyboard interrupt), converged, the values of the run's facts,
        seconds, warnings, error_type, error.

    Raises
    ------
    ModelError
        An option is not known or out of range, or the grid has more than 100,000 tasks, or the model has no warm start,
        before any work; or the backend cannot be had.
    DataError
        The checkpoint cannot be used, or another sweep writes to it.
    PrivacyError
        A private sweep without a budget, or without a folder for what it releases.

    Examples
    --------
    >>> from cvxpriv.models import PrivacyFunnel
    >>> frame = sweep(PrivacyFunnel, [[0.4, 0.1], [0.1, 0.4]], rate=[0.2, 1.0])
    >>> frame[["rate", "status"]].to_dict("list"), frame["leakage"].round(4).tolist()
    ({'rate': [0.2, 1.0], 'status': ['done', 'done']}, [0.0385, 0.1927])
    """
    named = {str(name): one for name, one in data.items()} if isinstance(data, Mapping) else {"": data}
    if not named:
        raise ModelError("data={} has no table: name at least one")
    _require_private(budget, backend, keep, resume, warm_along)
    choices = choices_of(model, grid, private=budget is not None)
    require_along(model, warm_along, choices)
    tables = {name: positional_data(model, one) for name, one in named.items()}
    tasks = tasks_of(model, tables, choices, _seeds(seed), warm_along)
    now = versions()
    private = None if budget is None else os.fspath(budget)
    order = Order(model, private, keep is not None, os.getpid(), warm_along is not None)
    with opened(checkpoint) as held:
        told = digest if budget is None else held.private_digest
        digests = {name: told(one) for name, one in tables.items()}
        found = _resumed(held, tasks, digests, now, retry) if resume else {}
        chains = _unfinished(tasks, found)
        jobs = {n: partial(fit_along, order, chain, *tables[chain[0].table]) for n, chain in enumerate(chains)}
        if jobs:
            with workers(n_jobs, backend, scheduler) as number:
                left = sum(task.key not in found for task in tasks)
                pace = Pace(left, min(number, len(jobs)))
                with shown_pace(len(tasks), pace, progress) as moving:
                    results = each_fitted(jobs, n_jobs != 1 or backend is not None)
                    for task, fitted in _until_interrupted(chains, results):
                        if task.key in found:
                            continue
                        if keep is not None and fitted.document is not None:
                            write_run(Path(keep) / f"{task.key[:16]}.json", model.__name__, fitted.document)
                        row = _row(model, task, digests[task.table], now, fitted)
                        held.add(row)
                        found[task.key] = row
                        moving.done(fitted.seconds, row["status"] == "failed")
    return _frame(tasks, found, several=isinstance(data, Mapping))


def _unfinished(tasks: Sequence[Task], found: Mapping[str, Any]) -> list[list[Task]]:
    """Return the chains of tasks, in their order, that lack a result."""
    chains: dict[str, list[Task]] = {}
    for task in tasks:
        chains.setdefault(task.chain, []).append(task)
    return [chain for chain in chains.values() if any(task.key not in found for task in chain)]


def _until_interrupted(
    chains: Sequence[Sequence[Task]], results: Iterator[tuple[int, list[Fitted]]]
) -> Iterator[tuple[Task, Fitted]]:
    """Yield results up to a keyboard interrupt, in this process or in a worker."""
    try:
        for number, several in results:
            for place, task in enumerate(chains[number]):
                fitted = several[min(place, len(several) - 1)]
                if fitted.interrupted:
                    return
                yield task, fitted
    except KeyboardInterrupt:
        return


def _require_private(
    budget: PathLike | None, backend: str | None, keep: PathLike | None, resume: bool, along: str | None
) -> None:
    """Refuse a private sweep whose cost cannot be kept, or whose releases would be lost."""
    if budget is None:
        return
    if backend is not None:
        raise PrivacyError(f"backend={backend!r} with a budget: its file is kept on this machine; leave backend out")
    if along is not None:
        raise PrivacyError(f"warm_along={shown(along)} with a budget: a private fit starts anew; leave warm_along out")
    if keep is None:
        raise PrivacyError("budget without keep: what is released would be lost and paid for; pass keep='folder'")
    if not resume:
        raise PrivacyError("resume=False with a budget: fits that were paid for would be paid again; name another file")
    Budget.open(budget)


def _seeds(seed: int | Sequence[int]) -> list[int]:
    listed = [seed] if isinstance(seed, (int, np.integer)) else few("seed", seed, MOST_TASKS)
    wrong = not all(is_whole(one, 0) for one in listed)
    if wrong or not listed or len(set(listed)) < len(listed):
        raise ModelError(f"seed={shown(seed)} is no seed: pass a whole number >= 0, or several that differ")
    return [int(one) for one in listed]


def _resumed(
    held: Checkpoint, tasks: Sequence[Task], digests: Mapping[str, str], now: Mapping[str, str], retry: bool
) -> dict[str, dict[str, Any]]:
    """Return the rows of a checkpoint that belong to the tasks, the data and the versions; tell of the others."""
    wanted = {task.key: digests[task.table] for task in tasks}
    found: dict[str, dict[str, Any]] = {}
    other_data = 0
    other_version: set[str] = set()
    for row in held.rows:
        if row["task"] not in wanted:
            continue
        if row["data"] != wanted[row["task"]]:
            other_data += 1
        elif row["versions"] != now:
            names = [name for name in now if row["versions"].get(name) != now[name]]
            other_version.add(", ".join(f"{name} {row['versions'].get(name)} (now {now[name]})" for name in names))
        else:
            found[row["task"]] = row
    reasons = [f"{other_data} rows are of other data"] if other_data else []
    reasons += [f"rows are of {said}" for said in sorted(other_version)]
    if reasons:
        warn(
            f"checkpoint={str(held.path)!r}: {'; '.join(reasons)}: they stay in the file and are not used, and their "
            "tasks are done now",
            CheckpointWarning,
        )
    return {key: row for key, row in found.items() if not (retry and row["status"] == "failed")}


def _row(model: type[Any], task: Task, data: str, now: Mapping[str, str], fitted: Fitted) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "model": model.__qualname__,
        "task": task.key,
        "data": data,
        "versions": dict(now),
        "table": task.table,
        "settings": dict(task.settings),
        "seed": task.seed,
        **fitted.row,
    }


def _frame(tasks: Sequence[Task], found: Mapping[str, Mapping[str, Any]], *, several: bool) -> pd.DataFrame:
    """Return the rows as a table, in the order of the tasks; a fact with the name of an option has "_found" added."""
    records = []
    for task in tasks:
        row = found.get(task.key, {"status": "waiting"})
        facts = {
            f"{name}_found" if name in task.settings else name: value for name, value in row.get("facts", {}).items()
        }
        records.append(
            {
                **({"table": task.table} if several else {}),
                **task.settings,
                "task": task.key[:16],
                "task_seed": task.seed,
                "status": row["status"],
                "converged": row.get("converged"),
                **facts,
                "seconds": row.get("seconds"),
                "warnings": "; ".join(row.get("warnings", ())),
                "error_type": row.get("error_type", ""),
                "error": row.get("error", ""),
            }
        )
    last = ("seconds", "warnings", "error_type", "error")
    names = list(dict.fromkeys(name for record in records for name in record if name not in last))
    return pd.DataFrame.from_records(records, columns=[*names, *last])
