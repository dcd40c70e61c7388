"""Private choice of the support: the K columns whose noisy gradient at 0 is largest, before the fit on them.

All d entries of the gradient at 0 are one Gaussian release. A row's gradient is clipped in Euclidean norm, so that its
noise for d entries is no larger than for the largest of them; choosing K one by one with report-noisy-max would cost
sqrt(K) times the noise for the same mu. The choice follows from released numbers.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cvxpriv.errors import PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import GaussianNoise, Noise, Release

from .clipping import ClippedGradient
from .problem import Problem

#: Part of mu^2 that the choice gets.
SHARE = 0.25
STEP = "scores of columns"


@dataclass(frozen=True, eq=False)
class Selection:
    """The columns that were chosen. `chosen`, (K,): Their positions, ascending. `left`: The mu that is left."""

    chosen: npt.NDArray[np.intp]
    release: Release
    left: float

    def columns(self, problem: Problem) -> Problem:
        """Return the problem with these columns alone, and its intercept."""
        places = np.append(self.chosen, problem.features) if problem.intercept else self.chosen
        names = tuple(problem.names[place] for place in self.chosen)
        return replace(problem, design=problem.design[:, places], names=names)

    def spread_out(self, theta: Array, size: int) -> Array:
        """Return coefficients of all columns, (size,), from those of the chosen ones and an intercept."""
        whole = np.zeros(size)
        whole[self.chosen] = theta[: self.chosen.size]
        whole[size - (theta.size - self.chosen.size) :] = theta[self.chosen.size :]
        return whole


def require_support(support: int | None, features: int) -> None:
    """Refuse a number of columns that there are not."""
    if support is None:
        return
    whole = isinstance(support, (int, np.integer)) and not isinstance(support, bool)
    if not (whole and 1 <= support <= features):
        raise PrivacyError(f"support={support!r}: pass a whole number of columns to keep, from 1 to {features}")


def select(average: ClippedGradient, count: int, mu: float, adjacency: str, noise: Noise) -> Selection:
    """Return the `count` columns with the largest noisy gradient at 0, for a part of mu."""
    problem = average.problem
    cost = mu * float(np.sqrt(SHARE))
    gaussian = GaussianNoise(average.sensitivity(adjacency), cost, problem.features)
    scores = gaussian.release(average.at(np.zeros(problem.size))[: problem.features], noise)
    largest = np.argsort(-np.abs(scores), kind="stable")[:count]
    return Selection(np.sort(largest), Release(mu=gaussian.mu, step=STEP), mu * float(np.sqrt(1.0 - SHARE)))
