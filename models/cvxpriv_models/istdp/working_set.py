"""A start for GIST where columns are many: ISTDP (2) on few of them, then on those that their gradient adds.

A round solves the problem on the coefficients other than zero and on the zeros that are farthest from stationary, as
many again, to a tenth of the largest residual of all. So the support grows from below, and a pass costs what its few
columns do. The passes over all columns that follow decide whether the end is stationary.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cvxpriv.numerics.arrays import Array, single
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Context

from .gist import gist, initial_state
from .line_search import Search
from .problem import Problem
from .run import Settings
from .support_newton import LARGEST, suits, support_newton

#: Name of the inner loop in a run's history.
LOOP = "working set"
#: Number of columns that a round adds at least; the part of the largest residual that it solves to; rounds at most.
FEWEST, PART, ROUNDS = 100, 0.1, 50


def wide(problem: Problem, settings: Settings) -> bool:
    """Return whether working sets pay: Newton steps on all columns would be refused, and those on few are allowed."""
    exact = settings.engine == "closed_form" and settings.accelerate != "none"
    return exact and problem.features > LARGEST and suits(problem)


def warmed(problem: Problem, theta: Array, search: Search, settings: Settings, context: Context) -> tuple[Array, int]:
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
        loop = replace(gist(part, settings.step, search, tol, left, support_newton(part, tol)), name=LOOP)
        final = single(run(loop, initial_state(part, theta[whole], search), context), 0)
        passes += int(context.reports[LOOP].iterations[0])
        theta = np.zeros(problem.size)
        theta[whole] = final["theta"]
    return theta, passes
