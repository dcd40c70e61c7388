"""Residual balancing of rho (He, Yang and Wang 2000; Boyd et al. 2011, 3.4.1), relative residuals (Wohlberg 2017)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvxpriv.numerics.arrays import Values, single
from cvxpriv.schedules.steps import Update

from . import kkt
from .factor import Factor
from .problem import Problem

#: Number of passes between two changes: a new rho is a new factorisation, and needs a few passes to take effect.
EVERY = 10
#: Number of passes after which rho stays: convergence is proved for a penalty that changes finitely often.
UNTIL = 200
#: Ratio of the residuals from which on rho changes, and the factor by which it is multiplied or divided.
UNEQUAL, BY = 5.0, 2.0


def balance(problem: Problem, factors: Sequence[Factor]) -> Update:
    """Return the step that doubles rho while S = z lags behind, and halves it while stationarity does.

    It writes `rho`, and `passes`, the number of passes.
    """

    def step(state: Values) -> Values:
        passes = state["passes"] + 1.0
        due = (passes % EVERY == 0.0) & (passes <= UNTIL)
        rho = state["rho"].copy()
        for start in np.flatnonzero(due):
            rho[start] *= change(single(state, int(start)))
        return {"rho": rho, "passes": passes}

    def change(view: Values) -> float:
        found = kkt.residuals(problem, factors, view)
        primal = found.primal / max(1.0, found.scales[0])
        dual = max(found.stationarity) / max(1.0, found.scales[1])
        return BY if primal > UNEQUAL * dual else 1.0 / BY if dual > UNEQUAL * primal else 1.0

    shares = {f"{kind}/{m}" for kind in "xv" for m in range(problem.parties)}
    return Update("rho", step, frozenset({"z", "y", "rho", "passes", *shares}), frozenset({"rho", "passes"}))
