"""Projected gradient ascent on IAS (1): the method that the paper compares with (GA)."""

from __future__ import annotations

import numpy as np

from cvxpriv.numerics.arrays import Array, Values

from . import closed_form, kkt, measures
from .domain import projected_rows
from .problem import Problem

__all__ = ["ascent", "gradient"]

#: Value of an infinite gradient, at a cell of 0 for some f.
STEEPEST = 1e6
#: The first trial of a line search, and how often it is halved.
FIRST, HALVINGS = 4.0, 40
#: Armijo's constant: how much of the promised rise a step must deliver.
SUFFICIENT = 1e-4


def gradient(problem: Problem, mechanism: Array) -> Array:
    """Return dF/dp(u|y), (starts, |Y|, |U|); 0 at symbols that are never sent."""
    posterior = closed_form.posterior(mechanism, problem.p_y, problem.p_s_given_y)
    rise = kkt.slopes(problem, mechanism, posterior)
    return np.asarray(problem.p_y[:, None] * np.nan_to_num(rise, nan=0.0, posinf=STEEPEST, neginf=-STEEPEST))


def ascent(problem: Problem, state: Values, step: float | None) -> Values:
    """Return the next mechanism: the projection of mechanism + step * gradient on the floored simplices.

    Parameters
    ----------
    step
        None halves each start's own step until F rises enough (Armijo), and stays where none does.
    """
    mechanism = state["mechanism"]
    slope = gradient(problem, mechanism)
    if step is not None:
        return {"mechanism": projected_rows(mechanism + step * slope, problem.floor)}
    current = _objective(problem, mechanism)
    best = mechanism.copy()
    open_starts = np.arange(len(mechanism))
    length = FIRST
    for _ in range(HALVINGS):
        here = mechanism[open_starts]
        trial = projected_rows(here + length * slope[open_starts], problem.floor)
        promised = np.sum(slope[open_starts] * (trial - here), axis=(-2, -1))
        good = _objective(problem, trial) > current[open_starts] + SUFFICIENT * promised
        best[open_starts[good]] = trial[good]
        open_starts, length = open_starts[~good], 0.5 * length
        if not open_starts.size:
            break
    return {"mechanism": best}


def _objective(problem: Problem, mechanism: Array) -> Array:
    return measures.objective(mechanism, problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)
