"""Objective perturbation (Chaudhuri, Monteleoni and Sarwate 2011, Algorithm 2): a random linear term in F.

Released is the exact minimiser of J = (1/m) sum_i l(x_i theta, y_i) + (lam + more)/2 ||theta||^2 + b'theta/m, b of
density proportional to exp(-rate ||b||). Exactly one b leads to each theta, and the density of theta is that of b there
times the determinant of the Hessian of J:

* b moves by at most G between neighbours: slope row_bound where a row is added or removed, twice that where it is
  replaced. That costs rate G.
* The Hessian that neighbours share is at least (lam + more) I. The row that they do not share adds a matrix of rank one
  and of norm at most smoothness row_bound^2 / m, on either side. So the determinants have a ratio of at most
  1 + smoothness row_bound^2 / (m (lam + more)), whose logarithm is the other cost. (Chaudhuri's is twice as large.)

`more` is there where that logarithm is above half of epsilon. The argument needs a loss and a penalty whose second
derivatives are continuous, and an exact solve. It is no Gaussian release: b is not added to what is released. The
guarantee is pure epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve

from cvxpriv.errors import ModelError, PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import LOSSES
from cvxpriv.privacy import Noise, Release, account_ledger

from .clipping import ADJACENCIES, clipped_rows, neighbours
from .gradient_descent import smooth_weight
from .output_perturbation import require_bounded_slope
from .private_run import PrivateSettings, PrivateSparseRun
from .problem import Design, Problem

__all__ = ["Spending", "solve_objective_perturbation", "spend"]

#: Most Newton steps and halvings of each, and the gradient at which J counts as solved, in units of 1 + ||b||/m.
STEPS, HALVINGS, EXACT = 100, 50, 1e-12


@dataclass(frozen=True)
class Spending:
    """Where epsilon goes.

    Attributes
    ----------
    rate : float
        Of the density exp(-rate ||b||).
    more : float
        What is added to lam.
    determinant : float
        The epsilon that the Hessian costs.
    """

    rate: float
    more: float
    determinant: float


def spend(epsilon: float, lam: float, bend: float, moved: float) -> Spending:
    """Return the split of epsilon between b and the Hessian; b gets half of it at least.

    Parameters
    ----------
    epsilon : float
    lam : float
        Of the l2 penalty.
    bend : float
        smoothness row_bound^2 / m.
    moved : float
        The most by which b differs between neighbours.
    """
    half = 0.5 * epsilon
    least = bend * float(np.exp(-half) / -np.expm1(-half))  # bend / (e^half - 1), which overflows
    more = max(least - lam, 0.0)
    determinant = half if lam <= least else float(np.log1p(bend / lam))
    return Spending((epsilon - determinant) / moved, more, determinant)


def solve_objective_perturbation(
    problem: Problem, epsilon: float, row_bound: float, adjacency: str, divisor: int, noise: Noise
) -> PrivateSparseRun:
    """Minimise J over rows of norm at most `row_bound`, exactly.

    Raises
    ------
    ModelError
        The loss is not the logistic one, the penalty is not l2, or there is an intercept.
    PrivacyError
        J was not solved exactly.
    """
    if problem.loss is not LOSSES["logistic"]:
        raise ModelError(
            f"loss={problem.loss.name!r}: objective perturbation is proven for a loss that is convex and twice "
            "differentiable, with bounded slope; pass loss='logistic', or algorithm='istdp'"
        )
    require_bounded_slope(problem)
    lam = smooth_weight(problem.penalty)
    slope, smoothness = problem.loss.slope, problem.loss.smoothness
    moved = ADJACENCIES[adjacency] * slope * row_bound
    spent = spend(epsilon, lam, smoothness * row_bound**2 / divisor, moved)
    b = noise.gamma_ball(problem.size, spent.rate, 1)[0]
    rows = clipped_rows(problem.design, row_bound)
    theta = _minimiser(problem, rows, lam + spent.more, b, divisor)
    note = f"pure; {spent.determinant:.3g} of it for the Hessian, {spent.more:.3g} added to lam"
    ledger = (Release(epsilon=epsilon, step="coefficients", iteration=1, note=note),)
    return PrivateSparseRun(
        theta=theta,
        loss=problem.loss,
        penalty=problem.penalty,
        classes=problem.classes,
        names=problem.names,
        accounting=account_ledger(ledger, neighbours=neighbours(adjacency, divisor), secure=noise.secure),
        ledger=ledger,
        settings=PrivateSettings(
            "objective-perturbation", 1, slope * row_bound, "none", adjacency, "last", 1.0 / spent.rate, step_limit=0.0
        ),
        history=pd.DataFrame(),
    )


def _minimiser(problem: Problem, rows: Design, lam: float, b: Array, divisor: int) -> Array:
    """Newton steps, shortened until J falls, up to a gradient of 0."""
    loss, y = problem.loss, problem.y
    linear = b / divisor
    exact = EXACT * (1.0 + float(np.linalg.norm(linear)))

    def height(at: Array) -> float:
        return float(loss.value(rows @ at, y).sum() / divisor + 0.5 * lam * at @ at + linear @ at)

    def slope(at: Array) -> Array:
        return np.asarray(rows.T @ loss.gradient(rows @ at, y) / divisor + lam * at + linear)

    theta = np.zeros(problem.size)
    for _ in range(STEPS):
        gradient = slope(theta)
        if float(np.linalg.norm(gradient)) <= exact:
            return theta
        weight = loss.curvature(rows @ theta, y) / divisor
        weighted = rows * weight[:, None] if isinstance(rows, np.ndarray) else rows.multiply(weight[:, None])
        hessian = rows.T @ weighted
        dense = np.asarray(hessian if isinstance(hessian, np.ndarray) else hessian.toarray())
        direction = -cho_solve(cho_factor(dense + lam * np.eye(problem.size)), gradient)
        length, before = 1.0, height(theta)
        for _ in range(HALVINGS):
            trial = theta + length * direction
            # Near the end J falls by less than its rounding: then the gradient must.
            if height(trial) < before or np.linalg.norm(slope(trial)) < np.linalg.norm(gradient):
                break
            length *= 0.5
        theta = trial
    raise PrivacyError(
        f"J was not solved to a gradient of {exact:.1e}, and objective perturbation is private only where it is solved "
        "exactly: raise lam of the penalty, or pass algorithm='istdp'"
    )
