"""The divisor of the sum of gradients where the number of rows is private: their number with noise, accounted for.

The count is a release of its own, before all others: it has a hundredth of mu^2, or a fiftieth of a pure epsilon. What
follows may depend on it as on any public number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import PrivacyError
from cvxpriv.privacy import BallNoise, GaussianNoise, Noise, Release

from .problem import Problem

#: Share of mu, and of a pure epsilon, that the count gets.
PART, PURE_PART = 0.1, 0.02
LEAST = 2
STEP = "number of rows"


@dataclass(frozen=True)
class Divisor:
    """The divisor of a sum over the rows.

    `left`: Remaining budget, a mu or a pure epsilon.
    `ledger`: The count, where one was released.
    """

    number: int
    left: float
    ledger: tuple[Release, ...] = ()


def public_divisor(problem: Problem, adjacency: str, public_rows: int | None) -> int | None:
    """Return n where it is public, or the public number that stands for it; None where there is neither.

    Raises PrivacyError: A number that stands for n where n itself is public.
    """
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
