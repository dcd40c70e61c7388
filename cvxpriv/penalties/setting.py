"""The setting that the checks of a penalty share: sizes, steps in each regime, centres, and a search's minimum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties.contract import Penalty

POINTS, CENTERS = 400, 20
#: Steps around the one where the proximal problem stops being convex, as multiples of it.
AROUND = (0.05, 0.5, 0.95, 1.05, 2.0, 10.0)


@dataclass(frozen=True)
class PenaltySetting:
    """A penalty, the sizes its coefficients will have, and the seed of random points."""

    penalty: Penalty
    interval: tuple[float, float]
    seed: int

    @cached_property
    def sizes(self) -> Array:
        """Sizes with equal ratios, (POINTS,)."""
        return np.geomspace(*self.interval, POINTS)

    def heights(self, t: Array) -> Array:
        """Return p(t), coordinate by coordinate, for a penalty that is a sum over coordinates."""
        return np.array([float(self.penalty.value(np.array([one]))) for one in t.ravel()]).reshape(t.shape)

    @cached_property
    def steps(self) -> Array:
        """Steps in each regime of the proximal problem."""
        bend = float(self.penalty.weak_convexity)
        at = 1.0 / bend if 0.0 < bend < np.inf else 1.0
        return at * np.array(AROUND)

    @cached_property
    def centers(self) -> Array:
        """Random centres of both signs, with sizes in the interval, (CENTERS,)."""
        random = np.random.default_rng(self.seed)
        low, high = np.log(self.interval)
        return np.asarray(np.exp(random.uniform(low, high, CENTERS)) * random.choice([-1.0, 1.0], CENTERS))

    @cached_property
    def additive(self) -> bool:
        """Whether P is the sum of its coordinates."""
        whole = float(self.penalty.value(self.centers))
        apart = sum(float(self.penalty.value(alone)) for alone in np.diag(self.centers))
        return bool(np.isclose(whole, apart, rtol=1e-12, atol=1e-12))

    def objective(self, t: Array, step: float, centers: Array) -> float:
        """Return the proximal problem's objective at t."""
        return 0.5 * float(((t - centers) ** 2).sum()) + step * float(self.penalty.value(t))

    def one_by_one(self, step: float) -> Array:
        """Return the proximal steps of the centres, computed one at a time."""
        return np.array([float(self.penalty.prox(np.array([s]), step)[0]) for s in self.centers])

    def lowest(self, s: float, step: float) -> float:
        """Return the least height of the proximal problem on a grid over [0, s], refined around its lowest point."""
        t, best = np.linspace(0.0, s, 101), np.inf
        for _ in range(5):
            found = 0.5 * (t - s) ** 2 + step * self.heights(t)
            lowest = int(np.argmin(found))
            best = min(best, float(found[lowest]))
            t = np.linspace(t[max(lowest - 1, 0)], t[min(lowest + 1, t.size - 1)], 21)
        return best

    def bends(self) -> Array:
        """Return second differences of p around each size, on its own side of 0; 0 where P is infinite."""
        t = self.sizes
        h = 1e-2 * t
        with np.errstate(invalid="ignore"):
            bends = (self.heights(t + h) - 2.0 * self.heights(t) + self.heights(t - h)) / h**2
        return np.nan_to_num(bends, nan=0.0)
