"""The way from a start to a `SparseRun`."""

from __future__ import annotations

import time

import numpy as np

from cvxpriv.blocks.engines import Engine
from cvxpriv.numerics.arrays import Array, single
from cvxpriv.reports.progress import with_bar
from cvxpriv.runs.shared_options import Watch
from cvxpriv.schedules.history import History
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Context, Loop

from .gist import LOOP, initial_state
from .line_search import Search
from .problem import Problem
from .run import Settings, SparseRun


def solve_from(
    problem: Problem,
    theta: Array,
    *,
    loop: Loop,
    search: Search,
    engine: Engine,
    settings: Settings,
    progress: bool = False,
    callback: Watch | None = None,
) -> SparseRun:
    """Run the algorithm from one start, (size,)."""
    begun = time.perf_counter()
    watch = with_bar(callback, settings.max_iter, "passes", progress)
    context = Context(engine, History(), watch, starts=np.arange(1))
    final = single(run(loop, initial_state(problem, theta, search), context), 0)
    return SparseRun(
        theta=final["theta"],
        loss=problem.loss,
        penalty=problem.penalty,
        classes=problem.classes,
        names=problem.names,
        gradient=final["gradient"],
        objective=float(final["value"]),
        step=float(final["taken"]),
        iterations=int(context.reports[LOOP].iterations[0]),
        settings=settings,
        seconds=time.perf_counter() - begun,
        log=context.history,
        interrupted=context.interrupted,
        overdue=context.overdue,
    )
