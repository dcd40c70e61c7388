"""One fit of a sweep, as a worker does it: whatever happens becomes a row of plain data."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from cvxpriv.errors import CvxprivError, printable
from cvxpriv.reports.document import plain_data
from cvxpriv.runs.sweep_tasks import Task


@dataclass(frozen=True)
class Order:
    """The part that all tasks of a sweep share.

    `budget`: The file of the budget of private fits; None: the fits are not private.
    `kept`: Whether the run's file is wanted.
    `process`: The process that asks. In another one the linear algebra stays at one thread.
    """

    model: type[Any]
    budget: str | None
    kept: bool
    process: int


@dataclass(frozen=True)
class Fitted:
    """The result of a task.

    `row`: Status, facts, error, warnings: plain data.
    `seconds`: Wall time.
    `document`: The content of the run's file, where it is wanted.
    `interrupted`: Whether the keyboard ended the fit: its row is no result.
    """

    row: Mapping[str, Any]
    seconds: float
    document: dict[str, Any] | None = None
    interrupted: bool = False


def fit(order: Order, task: Task, *data: Any) -> Fitted:
    """Pose and solve one task with one thread of linear algebra; an error becomes a row with its type and message."""
    begun = time.perf_counter()
    limits = threadpool_limits(1)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            row, document, interrupted = _fitted(order, task, data)
    except KeyboardInterrupt:
        return Fitted({}, 0.0, interrupted=True)
    except Exception as error:  # of any class: a model may be anybody's, and the others go on
        row = {"status": "failed", "error_type": type(error).__name__, "error": _told(order, error)}
        document, interrupted, caught = None, False, []
    finally:
        if os.getpid() == order.process:
            limits.restore_original_limits()
    said = dict.fromkeys(str(one.message) for one in caught or () if one.category.__module__.startswith("cvxpriv"))
    took = time.perf_counter() - begun
    if order.budget is None:  # the time of a private fit was not released
        row["seconds"] = took
    return Fitted({**row, "warnings": list(said)}, took, document, interrupted)


def _told(order: Order, error: Exception) -> str:
    """Return the message of an error; of a private fit only cvxpriv's own, which quote no row."""
    if order.budget is not None and not isinstance(error, CvxprivError):
        return "not told: the fit is private, and the message could quote its rows"
    return printable(str(error))


def _fitted(order: Order, task: Task, data: tuple[Any, ...]) -> tuple[dict[str, Any], dict[str, Any] | None, bool]:
    model = order.model(*data, **task.posing)
    if order.budget is not None:
        run = model.solve_private(**task.solving, budget=order.budget)
    else:
        run = model.solve(**task.solving, seed=task.seed)
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
    return row, run.document() if order.kept else None, bool(facts.interrupted)
