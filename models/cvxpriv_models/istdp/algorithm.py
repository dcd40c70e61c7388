"""The algorithms without privacy, as schedules: the private ones stand in `private`.

Where columns are many, GIST begins on few of them (`warmed`). A round solves the problem on the coefficients other than
zero and on the zeros that are farthest from stationary, as many again, to a tenth of the largest residual of all. So
the support grows from below, and a pass costs what its few columns do. The passes over all columns that follow decide
whether the end is stationary.

`path_table` solves along a range of weights, each started from the one before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.engines import Engine
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arguments import few, real_numbers, require_at_most, require_counts
from cvxpriv.numerics.arrays import Array, single
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import MOST_POINTS
from cvxpriv.penalties import Penalty
from cvxpriv.penalties.proximal import proximal_block
from cvxpriv.reports.progress import with_bar
from cvxpriv.runs.shared_options import Watch
from cvxpriv.schedules.history import Context, History
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Loop, Update

from .gist import LOOP, gist, initial_state
from .problem import Problem
from .run import Settings, SparseRun
from .support_newton import LARGEST, suits, support_newton

#: The least weight of a path as a share of the largest, where only their number is given.
LEAST = 0.01


def path_table(
    problem: Problem,
    lams: Iterable[float] | int,
    init: ArrayLike | None,
    solve: Callable[[Penalty, ArrayLike | None], SparseRun],
) -> pd.DataFrame:
    """Return the table of `ISTDP.path`; `solve` takes a penalty and a start."""
    weights = _weights(lams, problem)
    columns = _columns(problem)
    start = init
    rows = []
    for lam in weights:
        run = solve(_reweighted(problem.penalty, lam), start)
        start = run.theta
        figures = {
            "objective": run.objective,
            "kkt": run.kkt.largest,
            "converged": run.converged,
            "support": run.support.size,
            "iterations": run.iterations,
            "seconds": run.seconds,
        }
        rows.append({**figures, **dict(zip(columns, run.theta, strict=True))})
    return pd.DataFrame(rows, index=pd.Index(weights, name="lam"))


def _weights(lams: Iterable[float] | int, problem: Problem) -> list[float]:
    if isinstance(lams, (int, np.integer)):
        require_counts(lams=lams)
        require_at_most(MOST_POINTS, lams=lams)
        return [float(problem.lambda_max * share) for share in np.geomspace(1.0, LEAST, int(lams))]
    weights = real_numbers(few("lams", lams, MOST_POINTS), "lams", ModelError).ravel()
    require_at_most(MOST_POINTS, lams=weights.size)
    if not weights.size or not (weights >= 0.0).all():
        raise ModelError(f"lams={weights.tolist()!r} holds no weights: pass numbers >= 0, or how many")
    return [float(weight) for weight in np.sort(weights)[::-1]]


def _columns(problem: Problem) -> tuple[str, ...]:
    names = tuple(f"theta[{name}]" for name in problem.names)
    return (*names, "(intercept)") if problem.intercept else names


def _reweighted(penalty: Penalty, lam: float) -> Penalty:
    if not is_dataclass(penalty) or "lam" not in {one.name for one in fields(penalty)}:
        raise ModelError(f"penalty={penalty!r} has no weight lam: a path needs a dataclass with a field lam")
    return replace(penalty, lam=lam)


#: Name of the inner loop in a run's history.
WORKING_SET = "working set"
#: Number of columns that a round adds at least; the part of the largest residual that it solves to; rounds at most.
FEWEST, PART, ROUNDS = 100, 0.1, 50


def wide(problem: Problem, settings: Settings) -> bool:
    """Return whether working sets pay: Newton steps on all columns would be refused, and those on few are allowed."""
    exact = settings.engine == "closed_form" and settings.accelerate != "none"
    return exact and problem.features > LARGEST and suits(problem)


def warmed(problem: Problem, theta: Array, settings: Settings, context: Context) -> tuple[Array, int]:
    """Return a point that is nearly stationary, from a start, (size,), and the number of passes that it took."""
    passes = 0
    for _ in range(ROUNDS):
        gradient = problem.gradient(problem.predictions(theta))
        off = np.abs(problem.penalty.residual(theta[: problem.features], gradient[: problem.features]))
        tol = max(settings.tol, PART * float(off.max()))
        kept = np.flatnonzero(theta[: problem.features])
        left = settings.max_iter - passes - 1
        if off.max() <= settings.tol or kept.size > LARGEST or left < 1 or context.ended:
            break
        worst = np.argsort(-off)[: max(FEWEST, kept.size)]
        few = np.union1d(kept, worst[off[worst] > 0.0])
        part = problem.restricted(few)
        whole = np.append(few, np.arange(problem.features, problem.size))
        loop = replace(gist(part, settings.step, tol, left, support_newton(part, tol)), name=WORKING_SET)
        final = single(run(loop, initial_state(part, theta[whole]), context), 0)
        passes += int(context.reports[WORKING_SET].iterations[0])
        theta = np.zeros(problem.size)
        theta[whole] = final["theta"]
    return theta, passes


METHODS = ("gist",)


def schedule(problem: Problem, step: str, accelerate: str, tol: float, limit: int) -> Loop:
    """Return the whole algorithm: passes until the KKT residual of ISTDP (2) is at most `tol`."""
    return gist(problem, step, tol, limit, _acceleration(problem, accelerate, tol))


def blocks(problem: Problem) -> dict[str, Block]:
    """Return the model's blocks by name: the proximal problem (4) is the only one."""
    return {"prox": proximal_block(problem.penalty, problem.features)}


def _acceleration(problem: Problem, accelerate: str, tol: float) -> Update | None:
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
    engine: Engine,
    settings: Settings,
    progress: bool = False,
    callback: Watch | None = None,
) -> SparseRun:
    """Run the algorithm from one start, (size,)."""
    begun = time.perf_counter()
    watch = with_bar(callback, settings.max_iter, progress)
    context = Context(engine, History(), watch, starts=np.arange(1))
    passes = 0
    if wide(problem, settings):
        theta, passes = warmed(problem, theta, settings, context)
        loop = replace(loop, limit=loop.limit - passes)
    final = single(run(loop, initial_state(problem, theta), context), 0)
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
