"""Output perturbation (Chaudhuri, Monteleoni and Sarwate 2011, Algorithm 1): Gaussian noise on the minimiser.

F is strongly convex with modulus lam. A row whose gradient has a norm of at most slope row_bound then moves the
minimiser by at most slope row_bound / (m lam) where it is added or removed, and by twice that where it is replaced; m
is the divisor of the sum. Chaudhuri's noise of density exp(-rate ||b||) is pure; Gaussian noise of the same sensitivity
is smaller, and its accounting exact.
"""

from dataclasses import replace

import numpy as np

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.errors import ModelError, PrivacyError
from cvxpriv.learning.matrices import shortened
from cvxpriv.numerics.rounding import sum_rounding
from cvxpriv.penalties import ElasticNet, Penalty
from cvxpriv.privacy import GaussianNoise, Noise, Release

from .algorithm import schedule, solve_from
from .clipping import ADJACENCIES, MOST_ROWS
from .private_options import Divisor
from .problem import Problem
from .run import PrivateSettings, PrivateSparseRun, Settings

#: KKT residual at which the minimiser stops. The sensitivity includes the error that remains, and rounding.
TOLERANCE = 1e-10
#: Largest number of passes of that minimisation.
LIMIT = 1000
#: Largest ratio of the loss's curvature in rows of norm `row_bound` to the modulus: up to a hundred times this the
#: minimiser of all rows of a search was found. Beyond, whether it is found could tell of a row.
FLATTEST = 1e8


def minimiser_sensitivity(problem: Problem, row_bound: float, adjacency: str, divisor: int) -> float:
    """Return the largest Euclidean norm by which a neighbour moves the minimiser that was found."""
    modulus = require_bounded_minimiser(problem, row_bound)
    loss, times = problem.loss, MOST_ROWS if adjacency == "add-remove" else 1
    # A residual r leaves the minimiser within ||r||/modulus. The minimiser's norm is at most steepest/modulus.
    steepest = loss.slope * row_bound * times
    rounding = sum_rounding(times * divisor + problem.size + 16) * steepest
    rounding *= 2.0 + loss.smoothness * row_bound**2 * times / modulus
    inexact = 2.0 * (np.sqrt(problem.size) * TOLERANCE + rounding) / modulus
    return float(ADJACENCIES[adjacency] * loss.slope * row_bound / (divisor * modulus) + inexact)


def require_bounded_minimiser(problem: Problem, row_bound: float) -> float:
    """Return the modulus of strong convexity, lam."""
    require_bounded_slope(problem)
    modulus, least = _modulus(problem.penalty), problem.loss.smoothness * row_bound**2 / FLATTEST
    if modulus < least:
        raise PrivacyError(
            f"penalty={problem.penalty!r} is so weak for rows of norms up to {row_bound:g} that the minimiser of some "
            f"might not be found, and that would tell of them: raise lam (1 - ratio) to {least:.3g} or more"
        )
    return modulus


def require_bounded_slope(problem: Problem) -> None:
    """Refuse an unbounded minimiser: a loss that bends down or is steep far out, or an intercept, which has no lam."""
    loss = problem.loss
    if not (loss.convex and np.isfinite(loss.slope)):
        raise ModelError(
            f"loss={loss.name!r} is not convex with a bounded slope, and nothing else bounds how far one row moves the "
            "minimiser: pass loss='logistic', or method='istdp'"
        )
    if problem.intercept:
        raise ModelError(
            "intercept=True has no penalty, and nothing else bounds how far one row moves it: append a column of ones "
            "to X and pass allow_constant=True, or method='istdp'"
        )


def solve_output_perturbation(
    problem: Problem, divisor: Divisor, delta: float, row_bound: float, adjacency: str, noise: Noise
) -> PrivateSparseRun:
    """Minimise F over rows of norm at most `row_bound`, and release the minimiser with noise."""
    count = divisor.number
    sensitivity = minimiser_sensitivity(problem, row_bound, adjacency, count)
    gaussian = GaussianNoise(sensitivity, divisor.left, problem.size)
    ledger = (*divisor.ledger, Release(mu=gaussian.mu, step="coefficients", iteration=1))
    settings = PrivateSettings(
        "output-perturbation", 1, problem.loss.slope * row_bound, "none", adjacency, "last", gaussian.scale, 0.0
    )
    theta = gaussian.release(_minimiser(problem, row_bound, count), noise)
    return PrivateSparseRun.of(problem, theta, settings, ledger, count, delta=delta, secure=noise.secure)


def _minimiser(problem: Problem, row_bound: float, divisor: int) -> np.ndarray:
    """Return the minimiser of sum/divisor + P; the model averages over its own rows, so P is reweighted instead."""
    if problem.rows == 0:
        return np.zeros(problem.size)
    share = divisor / problem.rows
    penalty = problem.penalty
    assert isinstance(penalty, ElasticNet)  # `minimiser_sensitivity` refused every other
    bounded = replace(
        problem, design=shortened(problem.design, row_bound), penalty=ElasticNet(share * penalty.lam, penalty.ratio)
    )
    tol = TOLERANCE * share
    settings = Settings("gist", "closed_form", "bb1", "auto", LIMIT, tol)
    loop = schedule(bounded, settings.step, settings.accelerate, tol, LIMIT)
    zero = np.zeros(bounded.size)
    run = solve_from(bounded, zero, loop=loop, engine=ClosedForm(), settings=settings)
    if not run.converged:
        raise PrivacyError(
            f"the minimiser was not found to {TOLERANCE:g}, which its sensitivity rests on: raise lam of the penalty, "
            "or pass method='istdp'"
        )
    return run.theta


def _modulus(penalty: Penalty) -> float:
    if isinstance(penalty, ElasticNet) and penalty.lam * (1.0 - penalty.ratio) > 0.0:
        return penalty.lam * (1.0 - penalty.ratio)
    raise ModelError(
        f"penalty={penalty!r} is not strongly convex, and nothing else bounds how far one row moves the minimiser: "
        "pass penalty='l2:<lam>' or 'elastic-net:<lam>:<ratio>' with ratio < 1, or method='istdp'"
    )
