"""Pricing for two private symbols: the exact minimum of phi over every edge of the simplex.

At fixed P(S|y) the priced function is concave in the posterior, so a best posterior has at most two symbols i, j. On
the edge ``(1 - x) e_i + x e_j``, with a = P(S=1|X), t = a_i + d x and d = a_j - a_i,

    phi(x) = -h(t) + lam h(x) - (1 - x) nu_i - x nu_j,      phi'' = d^2 / (t (1 - t)) - lam / (x (1 - x)),

whose sign is that of a quadratic: concave, convex, concave. The least value is at an end or at the one root of phi'
in the convex stretch. Everything is computed in z = logit(x), which keeps both x and 1 - x to full precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from cvxpriv.numerics.arrays import Array

IntArray: TypeAlias = NDArray[np.intp]

STEPS = 60
FARTHEST = 700.0
"""The largest |logit|: x = 1e-304."""

ROUNDING = 2e-14
"""Rounding error of phi and of phi' per unit of their largest term: under a hundred operations of 2.2e-16 each."""


@dataclass(frozen=True)
class EdgeMinima:
    """The inner minima of phi on edges, those below a level.

    `first`, `second`: The symbols of each edge.
    `weight`: P(second symbol).
    `rest`: P(first symbol), exact where `weight` is next to 1.
    `value`: phi there.
    `least`: No edge of those asked for has a smaller phi, rounding included; vertices are not edges.
    """

    first: IntArray
    second: IntArray
    weight: Array
    rest: Array
    value: Array
    least: float


def edge_minima(a: Array, lam: float, nu: Array, first: IntArray, second: IntArray) -> EdgeMinima:
    """Minimise phi inside edges.

    `a`: P(S=1|X).
    `lam`: The multiplier of the rate, >= 0.
    `nu`: The multipliers of P(X).
    `first`, `second`: The edges.
    """
    stretch = _convex_stretch(a[first], a[second], lam)
    some = stretch[2]
    first, second, low, high = first[some], second[some], stretch[0][some], stretch[1][some]
    edge = _Edges(a[first], a[second], lam, nu[first], nu[second])
    inside = (edge.slope(low) < 0.0) & (edge.slope(high) > 0.0)
    first, second, low, high = first[inside], second[inside], low[inside], high[inside]
    edge = _Edges(a[first], a[second], lam, nu[first], nu[second])
    z = edge.root(low, high)
    value, slope = edge.value(z), edge.slope(z)
    # A tangent at z bounds phi on the whole convex stretch, whose length is at most 1; outside of it phi is concave.
    margin = ROUNDING * (1.0 + np.abs(nu).max(initial=0.0) + lam) + ROUNDING * (1.0 + lam) * np.abs(z)
    least = float((value - np.abs(slope) - margin).min(initial=np.inf))
    return EdgeMinima(first, second, expit(z), expit(-z), value, least)


def _convex_stretch(a_i: Array, a_j: Array, lam: float) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Ends of the convex stretch in logits, and whether there is one.

    With odds w = x / (1 - x) the quadratic is ``lam a_j (1 - a_j) w^2 - (d^2 - lam m) w + lam a_i (1 - a_i) < 0``,
    m = a_i (1 - a_j) + a_j (1 - a_i).
    """
    d = a_j - a_i
    square, constant = lam * a_j * (1.0 - a_j), lam * a_i * (1.0 - a_i)
    middle = d * d - lam * (a_i * (1.0 - a_j) + a_j * (1.0 - a_i))
    discriminant = middle * middle - 4.0 * square * constant
    some = (middle > 0.0) & (discriminant > 0.0)
    larger = 0.5 * (middle + np.sqrt(np.maximum(discriminant, 0.0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(some, np.log(constant / larger), 0.0)
        high = np.where(some, np.log(larger / square), 0.0)
    return np.clip(low, -FARTHEST, FARTHEST), np.clip(high, -FARTHEST, FARTHEST), some


@dataclass(frozen=True)
class _Edges:
    a_i: Array
    a_j: Array
    lam: float
    nu_i: Array
    nu_j: Array

    def _mixed(self, z: Array) -> tuple[Array, Array, Array, Array]:
        """Return x, 1 - x, t, 1 - t, each a sum of positive terms."""
        x, y = expit(z), expit(-z)
        return x, y, self.a_i * y + self.a_j * x, (1.0 - self.a_i) * y + (1.0 - self.a_j) * x

    def value(self, z: Array) -> Array:
        x, y, t, u = self._mixed(z)
        concave = -self.lam * (xlogy(x, x) + xlogy(y, y))
        return np.asarray(xlogy(t, t) + xlogy(u, u) + concave - y * self.nu_i - x * self.nu_j)

    def slope(self, z: Array) -> Array:
        _, _, t, u = self._mixed(z)
        return np.asarray((self.a_j - self.a_i) * (np.log(t) - np.log(u)) - self.lam * z - (self.nu_j - self.nu_i))

    def root(self, low: Array, high: Array) -> Array:
        """The root of the slope, which rises on the stretch: Newton's method in z inside a shrinking bracket."""
        z = 0.5 * (low + high)
        for _ in range(STEPS):
            x, y, t, u = self._mixed(z)
            slope = (self.a_j - self.a_i) * (np.log(t) - np.log(u)) - self.lam * z - (self.nu_j - self.nu_i)
            low, high = np.where(slope <= 0.0, z, low), np.where(slope >= 0.0, z, high)
            rise = (self.a_j - self.a_i) ** 2 * x * y / (t * u) - self.lam
            step = np.divide(slope, rise, out=np.zeros_like(slope), where=rise > 0.0)
            trial = np.where(rise > 0.0, z - step, low)
            outside = (trial <= low) | (trial >= high)
            trial = np.where(outside, 0.5 * (low + high), trial)
            if np.abs(trial - z).max(initial=0.0) <= 1e-14 * max(1.0, np.abs(z).max(initial=0.0)):
                return trial
            z = trial
        return z
