"""Releases on a public grid: the guarantee on paper holds for the released bits.

A query q, of d doubles, is rounded to whole multiples k of a step g, a power of two that follows from public numbers.
Released is g (k + n), where n is a real random vector rounded to whole numbers, drawn exactly (`sampling`).

**Theorem.** As k is whole, k + round(z) = round(k + z): the release is a function of g k + g z, the query on the grid
plus real noise. Whatever holds for adding real noise to a query of sensitivity D' holds for the release, where
D' = max ||g k - g k'|| over neighbours. Rounding moves each entry by at most g/2, so that D' <= D + g sqrt(d), with D
the sensitivity of the doubles q.

- Gaussian noise of standard deviation s: mu = D'/s, and the exact composition of Gaussian releases.
- Noise of density proportional to exp(-r ||b||): epsilon = r D', pure.

The support is the whole grid, whatever the data. Its cost is g sqrt(d) in the sensitivity, at most a part of 2^-12 of
D, and less where the noise is not far larger than D. D is the sensitivity of what the computer computes: a caller adds
to that of the formula what rounding may do to it (`numerics.rounding`).

What it does not cover: the time that a computation takes, and other programs on the same machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy.noise import Noise

#: Bounds of g sqrt(d): at most this part of the noise's standard deviation, and at most that part of the sensitivity...
OF_NOISE, OF_SENSITIVITY = 2.0**-20, 2.0**-12
#: ...unless the grid were so fine that doubles cannot hold the noise as whole numbers.
FINEST = 2.0**-40
#: Entries of k are clipped at this size, which moves no two of them apart; no useful query is so far out.
MOST = 2.0**61
#: Least step: smaller ones are near the end of the doubles.
LEAST_STEP = 2.0**-900


def grid_step(deviation: float, sensitivity: float, size: int) -> float:
    """Return the grid's step, a power of two, for noise of one standard deviation per entry in `size` entries.

    >>> grid_step(1.0, 1.0, 1) == 2.0**-20, grid_step(1.0, 2.0**-10, 4) == 2.0**-23
    (True, True)
    """
    whole = max(min(deviation * OF_NOISE, sensitivity * OF_SENSITIVITY), deviation * FINEST)
    step = float(2.0 ** np.floor(np.log2(whole / np.sqrt(size))))
    if not LEAST_STEP <= step < np.inf:
        raise PrivacyError(
            f"a grid of step {step:g} is beyond the doubles: scale the data, so that sensitivity and noise are near 1"
        )
    return step


def on_grid(query: Array, step: float) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return the nearest whole multiples of `step`, exactly, as whole numbers.

    Raises PrivacyError: An entry is NaN.
    """
    if np.isnan(query).any():
        raise PrivacyError("a query holds NaN, and nothing of it was released: scale the data")
    with np.errstate(over="ignore"):
        return np.clip(np.rint(query / step), -MOST, MOST).astype(np.int64)


@dataclass(frozen=True)
class GaussianNoise:
    """Gaussian noise for a release on a grid, scaled to a budget.

    Attributes
    ----------
    sensitivity : float
        Largest Euclidean norm by which one neighbour's change moves the query as it is computed. Like all of these, it
        is public.
    mu : float
        The mu of the release, with the grid accounted for.
    size : int
        Number of entries of the query.

    Raises
    ------
    PrivacyError
        The sensitivity is not a finite bound, or mu is not positive.

    Examples
    --------
    >>> noise = GaussianNoise(sensitivity=1.0, mu=0.5, size=3)
    >>> released = noise.release(np.array([1.0, 2.0, 3.0]), Noise())
    >>> bool(np.all(released / noise.step == np.rint(released / noise.step))), round(noise.scale, 4)
    (True, 2.0)
    """

    sensitivity: float
    mu: float
    size: int

    def __post_init__(self) -> None:
        _require_bound(self.sensitivity)
        if not (np.isfinite(self.mu) and self.mu > 0.0):
            raise PrivacyError(f"mu={self.mu!r} leaves no noise that is finite: pass a number > 0")

    @property
    def step(self) -> float:
        """Step of the grid."""
        return grid_step(self.sensitivity / self.mu, self.sensitivity, self.size)

    @property
    def scale(self) -> float:
        """Standard deviation of each entry's noise: (sensitivity + step sqrt(size))/mu."""
        return float((self.sensitivity + self.step * np.sqrt(self.size)) / self.mu)

    def release(self, query: Array, noise: Noise) -> Array:
        """Return the query with noise, (size,), on the grid."""
        whole = on_grid(query, self.step) + noise.rounded_normals(self.scale / self.step, self.size)
        return self.step * whole.astype(np.float64)


@dataclass(frozen=True)
class BallNoise:
    """Noise of density proportional to exp(-rate ||b||) for a release on a grid: pure, without a delta.

    Attributes
    ----------
    sensitivity : float
        As in `GaussianNoise`.
    rate, step : float
    size : int

    Raises
    ------
    PrivacyError
        The sensitivity is not a finite bound, or the rate is not positive.

    Examples
    --------
    >>> noise = BallNoise.within(sensitivity=1.0, epsilon=0.5, size=3)
    >>> round(noise.epsilon, 12), round(noise.rate, 3)
    (0.5, 0.5)
    """

    sensitivity: float
    rate: float
    step: float
    size: int

    @classmethod
    def of_rate(cls, sensitivity: float, rate: float, size: int) -> BallNoise:
        """Return the noise of a given rate."""
        _require_bound(sensitivity)
        if not (np.isfinite(rate) and rate > 0.0):
            raise PrivacyError(f"rate={rate!r} is no noise rate: pass a finite number > 0")
        return cls(sensitivity, rate, grid_step(float(np.sqrt(size + 1.0)) / rate, sensitivity, size), size)

    @classmethod
    def within(cls, sensitivity: float, epsilon: float, size: int) -> BallNoise:
        """Return the noise with which a release costs `epsilon`, the grid included."""
        _require_bound(sensitivity)
        step = cls.of_rate(sensitivity, epsilon / sensitivity, size).step
        return cls(sensitivity, float(epsilon / (sensitivity + step * np.sqrt(size))), step, size)

    @property
    def epsilon(self) -> float:
        """Privacy loss of the release: rate (sensitivity + step sqrt(size))."""
        return float(self.rate * (self.sensitivity + self.step * np.sqrt(self.size)))

    def release(self, query: Array, noise: Noise) -> Array:
        """Return the query with noise, (size,), on the grid."""
        whole = on_grid(query, self.step) + noise.rounded_ball(1.0 / (self.rate * self.step), self.size)
        return self.step * whole.astype(np.float64)


def _require_bound(sensitivity: float) -> None:
    if not (np.isfinite(sensitivity) and sensitivity > 0.0):
        raise PrivacyError(
            f"sensitivity={sensitivity!r} is not a bound: clip what is released, or pass a finite public bound > 0"
        )
