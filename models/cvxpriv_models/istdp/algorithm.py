"""The algorithms without privacy, as schedules: the private ones stand in `private`."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.engines import Engine
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array, single
from cvxpriv.penalties.proximal import proximal_block
from cvxpriv.reports.progress import with_bar
from cvxpriv.runs.shared_options import Watch
from cvxpriv.schedules.history import History
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Accelerator, Context, Loop

from .gist import LOOP, gist, initial_state
from .line_search import Search
from .problem import Problem
from .run import Settings, SparseRun
from .support_newton import suits, support_newton
from .working_set import warmed, wide

METHODS = ("gist",)


def schedule(problem: Problem, step: str, accelerate: str, search: Search, tol: float, limit: int) -> Loop:
    """Return the whole algorithm: passes until the KKT residual of ISTDP (2) is at most `tol`.

    Raises ModelError: There is no such rule for the step, or the penalty does not suit the acceleration.
    """
    return gist(problem, step, search, tol, limit, _acceleration(problem, accelerate, tol))


def blocks(problem: Problem) -> dict[str, Block]:
    """Return the model's blocks by name: the proximal problem (4) is the only one."""
    return {"prox": proximal_block(problem.penalty, problem.features)}


def _acceleration(problem: Problem, accelerate: str, tol: float) -> Accelerator | None:
    if accelerate == "newton" and not suits(problem):
        raise ModelError(
            f"accelerate='newton' needs slope(theta) and bend(theta) of penalty={problem.penalty!r}, p' and p'' of "
            "|theta|: add them, or pass accelerate='none'"
        )
    return support_newton(problem, tol) if accelerate != "none" and suits(problem) else None


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
    passes = 0
    if wide(problem, settings):
        theta, passes = warmed(problem, theta, search, settings, context)
        loop = replace(loop, limit=loop.limit - passes)
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
        iterations=passes + int(context.reports[LOOP].iterations[0]),
        settings=settings,
        seconds=time.perf_counter() - begun,
        log=context.history,
        interrupted=context.interrupted,
        overdue=context.overdue,
    )
