"""Newton's method on the whole objective at a fixed number of outputs, safeguarded by joint steps.

At a stationary mechanism every column is a point of J = 0 with the same alpha: the conditions that the crossover
solves, columns priced or not. A step counts if it raises the objective; else the columns' mu are held back more, and
where even that does not do, two exact joint steps are taken. Near the end Newton's steps are quadratic.
"""

from dataclasses import replace

import numpy as np

from cvxpriv.bounds.any_conjugate import conjugate_of
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.sizes import now

from . import closed_form, interior, kkt
from .crossover import newton_step
from .pricing import LEAST, Pricing
from .problem import Problem
from .smoothed_master import Columns
from .starts import fitted

#: Steps, and the joint steps taken where none of Newton's rises.
STEPS, JOINT = 80, 2
#: The damping of the first step, the least one that is not 0, and the largest; by what it falls after a step that
#: counts, and rises after one that does not.
DAMPED, LEAST_DAMPED, MOST_DAMPED, FALL, GROWTH = 1.0, 1e-4, 1e5, 0.25, 8.0
#: Outputs with less mass are dropped; columns this near are one.
EMPTY, SAME = 1e-12, 1e-9
#: The residual that ends it, of the tolerance; after so many steps that rise by less than `RISE` rounding has won.
SHARE, PATIENCE, RISE = 0.1, 6, 1e-13
#: The largest difference of two values that counts as none: the residual then decides.
ROUNDING = 1e-15


def risen(problem: Problem, mechanism: Array, tol: float, deadline: float) -> Array:
    """Return a mechanism with the objective no lower, and with a residual within the tolerance where that is reached.

    `problem`: The problem, with a smooth f and no floor.
    `mechanism`: (|Y|, U).
    `tol`: The KKT residual to reach.
    `deadline`: A value of `time.monotonic`, looked at before every step.
    Returns (|Y|, |U|).
    """
    mechanism = _reduced(problem, fitted(problem, mechanism)[0])
    problem_now = replace(problem, size_u=mechanism.shape[1])
    conjugate = conjugate_of(problem.divergence, 1.0 / float(problem.p_y.min()))
    pricing = Pricing.of(problem.p_s_given_y, problem.p_y, problem.beta, conjugate)
    value, idle, damping = float(problem.objective(mechanism)), 0, DAMPED
    for _ in range(STEPS):
        residual = float(kkt.residuals(problem_now, mechanism[None]).largest[0])
        if residual <= SHARE * tol or now() > deadline:
            break
        after, damping = _newton(pricing, mechanism, value, residual, problem_now, damping)
        if after is None:
            after = _joint(problem_now, mechanism)
        gained = float(problem.objective(after)) - value
        idle = idle + 1 if gained <= RISE else 0
        if gained < -ROUNDING or idle >= PATIENCE:
            break
        mechanism, value = after, value + gained
    return np.asarray(fitted(problem, mechanism)[0])


def _reduced(problem: Problem, mechanism: Array) -> Array:
    """Return the mechanism without empty outputs, and with equal ones joined."""
    joint = problem.p_y[:, None] * mechanism
    joint = joint[:, joint.sum(axis=0) > EMPTY]
    columns, kept = (joint / joint.sum(axis=0)).T, np.zeros((0, len(joint)))
    where = np.zeros(len(columns), dtype=np.intp)
    for index, column in enumerate(columns):
        near = np.flatnonzero(np.abs(kept - column).sum(axis=1) <= SAME)
        where[index] = near[0] if near.size else len(kept)
        kept = kept if near.size else np.vstack([kept, column])
    merged = np.zeros((len(joint), len(kept)))
    np.add.at(merged.T, where, joint.T)
    return np.asarray(merged / merged.sum(axis=1, keepdims=True))


def _newton(
    pricing: Pricing, mechanism: Array, value: float, residual: float, problem: Problem, damping: float
) -> tuple[Array | None, float]:
    """The least damped step that raises the objective, or keeps it and lowers the residual, or None; the next damping.

    `value`, `residual`: Those of the mechanism.
    """
    columns = _conditions(pricing, mechanism)
    surface = pricing.surface(columns.mu, columns.alpha)
    while damping <= MOST_DAMPED:
        try:
            alpha, mu, q = newton_step(pricing, columns, surface, damping)
        except np.linalg.LinAlgError:
            break
        joint = np.maximum(q, 0.0) * pricing.surface(mu, alpha).inner.x.T
        total = joint.sum(axis=1, keepdims=True)
        if np.isfinite(joint).all() and (total > 0.0).all() and (q > EMPTY).all():
            found = np.asarray(joint / total)
            worth = float(problem.objective(found))
            kept = worth >= value - ROUNDING
            if worth > value + ROUNDING or (kept and kkt.residuals(problem, found[None]).largest[0] < residual):
                return found, FALL * damping if damping > LEAST_DAMPED else 0.0
        damping = max(GROWTH * damping, LEAST_DAMPED)
    return None, DAMPED


def _conditions(pricing: Pricing, mechanism: Array) -> Columns:
    """A mechanism as columns, with the alpha that is the average slope of the objective."""
    joint = pricing.p_y[:, None] * mechanism
    q = joint.sum(axis=0)
    x = (joint / q).T
    mu = pricing.mu_of(x @ pricing.channel.T)
    slope = mu @ pricing.channel - pricing.beta * pricing.conjugate.slope(np.maximum(x / pricing.p_y, LEAST))
    used = np.where(x > 0.0, x, 0.0)
    with np.errstate(invalid="ignore"):
        along = np.where(x > 0.0, used * slope, 0.0)
    level = pricing.gain(x) - along.sum(axis=1)
    alpha = (q[:, None] * (along + level[:, None] * used)).sum(axis=0) / pricing.p_y
    return Columns(alpha, mu, q, x, np.inf)


def _joint(problem: Problem, mechanism: Array) -> Array:
    """Joint steps: the exact optimum of (10) at the mechanism's own posterior, and again."""
    for _ in range(JOINT):
        posterior = closed_form.posterior(mechanism[None], problem.p_y, problem.p_s_given_y)
        mechanism = interior.maximise(problem, posterior)[0][0]
    return mechanism
