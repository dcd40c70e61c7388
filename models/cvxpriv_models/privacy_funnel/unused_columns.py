"""Released symbols that a constrained funnel does not use: which posterior stands for them.

A column without mass has no posterior, so its slopes say nothing. It gets a trace of mass with a posterior at which the
slopes tell whether the column is rightly unused. That of a live column does, where the user's constraints treat both
alike (`copied`); else the posterior that would bring the Lagrangian down most (`priced`).
"""

from __future__ import annotations

import numpy as np

from cvxpriv.numerics.arrays import Array

from .closed_form import FLOOR
from .faces import ASIDE, ConstraintRows, Face, Indices, Live
from .problem import Problem

_STEPS = 2000
_STILL = 1e-12


def unused(u: Array) -> Indices:
    """Return the indices of the columns of u, (|X|, |Y|), without mass."""
    return np.asarray(np.flatnonzero(u.sum(axis=0) <= 0.0))


def copied(u: Array, before: Array) -> Array:
    """Return log u where each unused column has the posterior of the live one nearest to its own.

    `u`, `before`, (|X|, |Y|): P(X,Y) with and without its unused columns set to 0.
    Returns (|X|, |Y|).
    """
    live = np.flatnonzero(u.sum(axis=0) > 0.0)
    log_u = np.log(np.maximum(u, np.exp(FLOOR)))
    posterior = np.log(np.maximum(u[:, live], ASIDE) / u[:, live].sum(axis=0))
    for column in unused(u):
        near = live[int((-before[:, column] @ posterior).argmin())]
        log_u[:, column] = np.maximum(log_u[:, near] + np.log(ASIDE), FLOOR)
    return log_u


def priced(u: Array, face: Face, problem: Problem, live: Live, constraints: ConstraintRows) -> Array:
    """Return log u where each unused column has a posterior of least price among those near a live one's.

    The price of a posterior w is ``sum_i w_i (rise_i - lam log w_i + c_i)``, c_i what a unit of mass in that cell costs
    at the multipliers of the row sums and the constraints: what the column would add to the Lagrangian. Exponentiated
    gradient steps of length 1 lower it, as those of PF Algorithm 1 do.

    Returns
    -------
    ndarray, (|X|, |Y|)
    """
    s, log_u = problem.p_s_given_x, np.log(np.maximum(u, np.exp(FLOOR)))
    starts = u[:, u.sum(axis=0) > 0.0]
    starts = 0.99 * starts / starts.sum(axis=0) + 0.01 * problem.p_x[:, None]
    costs = _costs(face, problem, live, constraints)
    for column in unused(u):
        log_w = np.log(starts)
        for _ in range(_STEPS):
            w = np.exp(log_w)
            slope = s.T @ np.log(s @ w) - face.lam * log_w + costs[:, [column]]
            price = np.sum(w * slope, axis=0)
            moved = np.maximum(log_w - (slope - price), FLOOR)
            moved -= np.log(np.exp(moved).sum(axis=0))
            still = np.abs(np.exp(moved) - w).max() <= _STILL
            log_w = moved
            if still:
                break
        log_u[:, column] = np.maximum(log_w[:, int(price.argmin())] + np.log(ASIDE), FLOOR)
    return log_u


def _costs(face: Face, problem: Problem, live: Live, constraints: ConstraintRows) -> Array:
    """Return the cost of a unit of mass in each cell at the multipliers of row sums and constraints, (|X|, |Y|)."""
    rows = problem.p_x.size
    prices = np.zeros(live.bound.size)
    prices[face.binding] = face.prices
    of_constraints = np.concatenate([prices[rows : live.equalities], prices[live.equalities + live.rows.size :]])
    costs: Array = prices[:rows, None] + (constraints.cells.T @ of_constraints).reshape(live.shape)
    return costs
