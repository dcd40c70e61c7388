"""From the final states of all starts to the run that is returned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cvxpriv.numerics.arrays import Values, single
from cvxpriv.schedules.history import History
from cvxpriv.schedules.steps import Context

from . import algorithm, closed_form, optimum
from .algorithm import Constraints
from .bound import FunnelBound
from .problem import Problem
from .run import FunnelRun, Settings

__all__ = ["best_run"]

#: Two starts whose leakages differ by less are one answer: the converged one is kept.
SAME_LEAKAGE = 1e-9


def best_run(
    problem: Problem,
    constraints: Constraints,
    pieces: Sequence[tuple[Values, Context]],
    origins: Sequence[str],
    settings: Settings,
    seconds: float,
    bound: FunnelBound | None = None,
) -> FunnelRun:
    """Return the run of the best start among those of all pieces.

    The best is the one of least leakage; of several within `SAME_LEAKAGE` of it, a converged one of least residual.
    Without constraints its residual includes what the best use of a free output would gain.
    """
    state = {name: np.concatenate([piece[name] for piece, _ in pieces]) for name in pieces[0][0]}
    state = {**state, **closed_form.complete(state["log_u"], problem.p_s_given_x, state["lam"])}
    measured = algorithm.measure(problem, constraints)(state)
    residual = measured["kkt"] if constraints else algorithm.residuals_of(problem, state["log_u"]).largest
    reports = [context.reports[algorithm.LOOP] for _, context in pieces]
    starts = pd.DataFrame(
        {
            "origin": origins,
            "leakage": measured["objective"],
            "utility": measured["utility"],
            "kkt": residual,
            "iterations": np.concatenate([report.iterations for report in reports]),
            "converged": residual <= settings.tol,
        }
    )
    starts.index.name = "start"
    near = starts[starts["leakage"] <= starts["leakage"].min() + SAME_LEAKAGE]
    start = int(near["kkt"].idxmin())
    if not constraints:
        chosen = np.exp(state["log_u"][start])
        gain = optimum.free_symbol(problem, chosen / chosen.sum(axis=1, keepdims=True))
        starts.loc[start, "kkt"] = max(float(starts["kkt"].iloc[start]), gain)
        starts.loc[start, "converged"] = bool(starts["kkt"].iloc[start] <= settings.tol)
    log = History()
    for offset, (_, context) in zip(np.cumsum([0, *[r.iterations.size for r in reports]])[:-1], pieces, strict=True):
        log.extend(context.history, shift=int(offset))
    interrupted = any(context.interrupted for _, context in pieces)
    final = single(state, start)
    return FunnelRun(problem, final, starts, start, settings, seconds, log, constraints, interrupted, bound)
