"""Private gradient descent: ISTDP's loop without the proximal step, or DP-SGD with the whole data as one batch."""

from __future__ import annotations

import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Values
from cvxpriv.penalties import ElasticNet, Penalty
from cvxpriv.schedules.steps import Update

from .problem import Problem


def smooth_weight(penalty: Penalty) -> float:
    """Return lam of an l2 penalty.

    Raises ModelError: The penalty has no gradient at 0.
    """
    if isinstance(penalty, ElasticNet) and (penalty.ratio == 0.0 or penalty.lam == 0.0):
        return penalty.lam
    raise ModelError(
        f"penalty={penalty!r} has no gradient at 0, and this algorithm takes no proximal step: pass "
        "penalty='l2:<lam>', 'l2:0' for none, or method='istdp'"
    )


def descent(problem: Problem) -> Update:
    """Return the step theta - step (xi + lam theta), with the noisy gradient xi; an intercept has no lam."""
    weights = np.zeros(problem.size)
    weights[: problem.features] = smooth_weight(problem.penalty)

    def fn(state: Values) -> Values:
        trial = state["center"] - state["step"][:, None] * weights * state["last_theta"]
        return {"trial": trial, "far": np.full(len(trial), np.nan)}

    return Update("descent", fn, frozenset({"center", "step", "last_theta"}), frozenset({"trial", "far"}))
