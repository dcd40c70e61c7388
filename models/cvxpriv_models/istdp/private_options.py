"""The public numbers of a private solve, checked before anything reads the data: bounds, step, and number of rows.

Where the number of rows is private, their number with noise divides the sum of gradients. That count is a release of
its own, before all others: it has a hundredth of mu^2, or a fiftieth of a pure epsilon. What follows may depend on it
as on any public number.
"""

from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import PrivacyError
from cvxpriv.privacy import BallNoise, GaussianNoise, Noise, Release

from .problem import Problem

SMALLEST, LARGEST = 1e-100, 1e100
"""Bounds of a row whose products and quotients with counts and steps are doubles: a sensitivity must not round to 0."""


def public_step_limit(problem: Problem, row_bound: float) -> float:
    """Return the greatest step, 1/L: up to it a step without noise lowers F, whatever the penalty.

    L = smoothness row_bound^2 bounds the Lipschitz constant of the average gradient; ||X||^2 would be smaller, but it
    is a fact about the data. Beyond 1/weak_convexity the proximal step is still the exact minimiser, but thresholds
    hard.
    """
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        limit = float(1.0 / (problem.loss.smoothness * np.square(row_bound)))
    if not 0.0 < limit < np.inf:
        raise PrivacyError(
            f"row_bound={row_bound!r} gives a step of {limit:g}: scale the columns of X, so that its rows have norms "
            "near 1"
        )
    return limit


def require_bounds(problem: Problem, clip: float | None, row_bound: float | None) -> tuple[float, float]:
    """Return the clip and the row bound; either follows from the other by the loss's greatest slope."""
    slope = problem.loss.slope
    if clip is None and (row_bound is None or not np.isfinite(slope)):
        raise PrivacyError(
            "clip is missing, and no noise hides an unbounded row: pass the most that its gradient counts"
            + (", or row_bound, a public bound of the rows' norms" if np.isfinite(slope) else "")
        )
    if row_bound is None and not np.isfinite(slope):
        raise PrivacyError(
            f"row_bound is missing: the step is 1/L, and the slope of loss={problem.loss.name!r} has no bound that L "
            "follows from; pass row_bound, a public bound of the rows' norms, for example that of scaled columns"
        )
    most = slope * row_bound if clip is None and row_bound is not None else clip
    assert most is not None
    if not SMALLEST <= most <= LARGEST:
        name = "row_bound" if clip is None else "clip"
        raise PrivacyError(
            f"{name}={row_bound if clip is None else clip!r} gives a step of no size, or noise of none: scale the "
            "columns of X, so that its rows have norms near 1"
        )
    return float(most), float(most / slope if row_bound is None else row_bound)


def column_bound(problem: Problem, row_bound: float | None) -> float | None:
    """Return the bound of the rows' norms without the 1 of an intercept; None where none was given."""
    if row_bound is None or not problem.intercept or not row_bound > 1.0:
        return row_bound
    return float(np.sqrt(row_bound**2 - 1.0))


#: Share of mu, and of a pure epsilon, that the count gets.
PART, PURE_PART = 0.1, 0.02
LEAST = 2
STEP = "number of rows"


@dataclass(frozen=True)
class Divisor:
    """The divisor of a sum over the rows. `left`: Remaining budget, a mu or a pure epsilon. `ledger`: The count, where
    one was released.
    """

    number: int
    left: float
    ledger: tuple[Release, ...] = ()


def public_divisor(problem: Problem, adjacency: str, public_rows: int | None) -> int | None:
    """Return n where it is public, or the public number that stands for it; None where there is neither."""
    if adjacency == "add-remove":
        known = problem.schema.rows if public_rows is None and problem.schema is not None else public_rows
        return None if known is None else int(known)
    if public_rows is not None:
        raise PrivacyError(f"public_rows={public_rows!r} is for adjacency='add-remove': replacing a row keeps n public")
    return problem.rows


def counted_rows(rows: int, budget: float, noise: Noise, *, pure: bool) -> Divisor:
    """Return the number of rows with noise, for a part of the budget: a mu, or a pure epsilon.

    Examples
    --------
    >>> found = counted_rows(1000, 0.5, Noise(np.random.default_rng(0)), pure=False)
    >>> 850 < found.number < 1150, round(found.left**2 + found.ledger[0].mu**2, 12)
    (True, 0.25)
    """
    query = np.array([float(rows)])
    if pure:
        cost = PURE_PART * budget
        ball = BallNoise.within(1.0, cost, 1)
        released, entry, left = ball.release(query, noise), Release(epsilon=cost, step=STEP), budget - cost
    else:
        gaussian = GaussianNoise(1.0, PART * budget, 1)
        released, entry = gaussian.release(query, noise), Release(mu=gaussian.mu, step=STEP)
        left = budget * float(np.sqrt(1.0 - PART**2))
    return Divisor(max(round(float(released[0])), LEAST), left, (entry,))
