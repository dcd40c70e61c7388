"""The setting that the checks of a divergence share: f with its noise, the working interval, and points in it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cvxpriv.divergences.definition import FDivergence
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

GRID = 2001
FINE = 100_001
"""Steps of 0.014% between 1e-3 and 1e3; they cost f two hundredths of a second."""
ROUNDING = 64.0 * np.finfo(float).eps
LARGEST, SPAN = 100.0, 1001.0
SMALLEST = 1e-4
"""Least p and q of a cone form's checks: at 1e-5, under powers, solvers lose the sixth digit."""
MODERATE, STEEP = 1e100, 1e250
"""Largest size of f that is checked, towards an end of the interval: differences and squares of larger values would
overflow. An f that has reached the second number before it has no value grows; it has no gap."""


def moderate(f: FDivergence, interval: tuple[float, float]) -> tuple[float, float]:
    """Return the part of an interval around 1 where f is no larger than `MODERATE`; the whole where f has a gap."""
    ends = []
    for end in interval:
        t = np.geomspace(1.0, end, GRID)
        try:
            with np.errstate(all="ignore"):
                size = np.abs(np.asarray(f.f(t.copy()), dtype=float))
        except (Exception, SystemExit):  # the user's own function: a check tells
            return interval
        large = size.shape == t.shape and bool((size > MODERATE).any())
        first = int(np.argmax(size > MODERATE)) if large else 0
        known = size[first:][np.isfinite(size[first:])] if large else size
        grows = (
            large
            and not np.isnan(size).any()
            and known.size > 0
            and (known.max() > STEEP or known.size == size.size - first)
        )
        ends.append(float(t[first - 1]) if grows and first > 1 else end)
    return ends[0], ends[1]


@dataclass(frozen=True)
class DivergenceSetting:
    """A divergence and its working interval.

    `interval`: The ratios t = q/p that will occur; it contains 1.
    `solvers`: Names of the solvers of the block. None is every installed one.
    """

    f: FDivergence
    interval: tuple[float, float]
    solvers: tuple[str, ...] | None
    seed: int

    @cached_property
    def grid(self) -> Array:
        """Points of the interval with equal ratios, including 1 and the kinks."""
        low, high = self.interval
        inside = [kink for kink in self.f.kinks if low < kink < high]
        return np.unique(np.concatenate([np.geomspace(low, high, GRID), [1.0], inside]))

    @cached_property
    def fine_grid(self) -> Array:
        """The interval in steps of one ratio, so many that a narrow bump or gap does not slip through."""
        return np.geomspace(*self.interval, FINE)

    @cached_property
    def scale(self) -> float:
        """Size of f around 1, at most 1: what is small is so beside it."""
        size = np.abs(self.values(np.array([0.25, 0.5, 2.0, 4.0]))).max()
        return float(size) if 0.0 < size < 1.0 else 1.0

    @cached_property
    def roughness(self) -> float:
        """Rounding error of f in units of that of its value, at least 1: large terms may cancel within f."""
        t, step = self.grid, 2.0**-44
        off = np.abs(self.values(t * (1.0 + step)) - 2.0 * self.values(t) + self.values(t * (1.0 - step)))
        return max(1.0, float(np.quantile(off / (ROUNDING * (1.0 + np.abs(self.values(t)))), 0.9)))

    def random(self, check: int) -> np.random.Generator:
        """Return the random numbers of one check, the same whichever other checks ran."""
        return np.random.default_rng([self.seed, check])

    def values(self, t: Array) -> Array:
        """Return f(t)."""
        given = t.copy()
        with np.errstate(all="ignore"):
            found = np.asarray(self.f.f(given))
        if found.shape != t.shape:
            raise ModelError(
                f"f takes an array of shape {t.shape} and returns {found.shape}: write it element by element"
            )
        if found.dtype.kind not in "fiu":
            raise ModelError(f"f returns values of type {found.dtype}: return real numbers")
        if not np.array_equal(given, t, equal_nan=True):
            raise ModelError("f changes the array that it is given: work on a copy, t = t - 1.0 and not t -= 1.0")
        return found.astype(float)

    def slopes(self, t: Array) -> Array:
        """Return f'(t) as the divergence gives it."""
        with np.errstate(all="ignore"):
            return np.broadcast_to(self.f.derivative(t), t.shape)

    def smooth_points(self, count: int) -> Array:
        """Return points of the interval that are far enough from ends and kinks for differences to stay on one side."""
        low, high = self.interval
        t = np.geomspace(low * 1.01, high / 1.01, count)
        far = [np.abs(t / kink - 1.0) > 0.01 for kink in self.f.kinks]
        return np.asarray(t[np.logical_and.reduce([np.full(t.shape, True), *far])])

    @cached_property
    def conic_interval(self) -> tuple[float, float]:
        """The part of the interval around 1 where cone solvers keep six digits: p, q <= 1 give terms up to LARGEST."""
        t = self.grid
        terms = np.abs(self.values(t)) / np.maximum(t, 1.0)
        wrong = ~(terms <= LARGEST) | (np.maximum(t, 1.0 / t) > SPAN)
        low, high = t[wrong & (t < 1.0)], t[wrong & (t > 1.0)]
        inside = t[(t > max(low, default=0.0)) & (t < min(high, default=np.inf))]
        return float(inside.min(initial=1.0)), float(inside.max(initial=1.0))

    def weights(self, random: np.random.Generator, size: int) -> tuple[Array, Array]:
        """Return random p and q, (size,), not normalised, whose ratios lie in `conic_interval`."""
        low, high = np.log(self.conic_interval)
        t = np.exp(random.uniform(low, high, size))
        scale = np.exp(random.uniform(np.log(0.02), np.log(5.0), size)) / np.maximum(t, 1.0)
        scale = np.maximum(scale, SMALLEST / np.minimum(t, 1.0))
        return scale, scale * t

    def distributions(self, random: np.random.Generator, count: int, size: int) -> tuple[Array, Array]:
        """Return pairs of distributions, (count, size), whose ratios lie in the interval."""
        # q/p = t / sum(p t) lies in [1/reach, reach] if t lies in [reach^-1/2, reach^1/2].
        reach = min(1.0 / self.interval[0], self.interval[1])
        p = random.dirichlet(np.full(size, 0.5), count) + 1e-12
        p /= p.sum(axis=1, keepdims=True)
        t = np.exp(random.uniform(-0.5, 0.5, (count, size)) * np.log(reach))
        return p, p * t / (p * t).sum(axis=1, keepdims=True)
