"""The conjugate of a user's own f, kinks allowed: a scalar concave maximisation with a verified bracket.

Only values of f and its convexity are trusted. Whatever point the table proposes, secants of H beside it and at the
ends of its bracket bound the maximum from above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.interpolate import PchipInterpolator

from cvxpriv.divergences import FDivergence
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

from .conjugates import Conjugate, closed_form, within
from .linear_pieces import pieces_of

#: The least ratio r = p(y|u)/p(y) in the table; ratios of neighbouring nodes.
LEAST, SPACING = 1e-9, 2e-3
#: Relative distances from a point, and from a kink, at which secants are taken.
BESIDE, BESIDE_KINK = 1e-5, 1e-9
#: The largest ratio up to which a closed form is taken over all ratios: beyond, H' has no digits left at its limit. The
#: least ratio of the others.
WIDE, NARROW = 1e6, 1e-100
#: Least difference of the slopes of neighbouring nodes; straight pieces of f are bent by that.
BENT = 1e-11


def conjugate_of(divergence: FDivergence, largest: float) -> Conjugate:
    """Return the conjugate of a divergence, in closed form where there is one.

    `largest`: The largest r = p(y|u)/p(y) that can occur, 1 over the least p(y). Of a user's f, and where it is above
    `WIDE`, the maximum is taken up to it.

    Examples
    --------
    >>> from cvxpriv.divergences import divergence
    >>> half = conjugate_of(divergence("total-variation"), 10.0)
    >>> half.value(np.array([0.0, 0.25])).round(6).tolist()
    [0.0, 0.25]
    """
    found = closed_form(divergence)
    if found is not None:
        return found if largest <= WIDE else replace(within(found, NARROW, largest), boxed=False, ends=None)
    return _tabulated(divergence, float(largest))


@lru_cache(maxsize=32)
def _tabulated(divergence: FDivergence, largest: float) -> Conjugate:
    table = _Table.of(divergence, largest)
    return Conjugate(
        value=table.value,
        response=table.response,
        price=table.price,
        slope=table.slope,
        jumps=not divergence.strictly_convex or bool(divergence.kinks) or pieces_of(divergence) is not None,
        ends=(float(table.slopes[0]), float(table.slopes[-1]) + BENT),
    )


@dataclass(frozen=True, eq=False)
class _Table:
    """Nodes of r from `LEAST` to the largest, and the secants of H between them.

    `tilt`: About f'(1), so that H'(1) is about 0.
    `nodes`: (K,).
    `secants`, (K - 1,): Secants of H between neighbouring nodes, made to never fall.
    `inverse`: A slope of H to the logarithm of r.
    `slopes`, (K,): Those that `inverse` takes at the nodes.
    `kinks`: The r at which H' jumps.
    """

    divergence: FDivergence
    tilt: float
    nodes: Array
    secants: Array
    inverse: PchipInterpolator
    slopes: Array
    kinks: tuple[float, ...]

    @classmethod
    def of(cls, divergence: FDivergence, largest: float) -> _Table:
        count = int(np.ceil(np.log(largest / LEAST) / SPACING)) + 1
        kinks = [1.0 / kink for kink in sorted(divergence.kinks, reverse=True) if LEAST < 1.0 / kink < largest]
        nodes = np.unique(np.concatenate([np.geomspace(LEAST, largest, count), kinks]))
        tilt = float(divergence.derivative(np.ones(1))[0])
        values = _price(divergence, tilt, nodes)
        if not np.isfinite(values).all():
            at = 1.0 / nodes[~np.isfinite(values)][0]
            raise ModelError(
                f"f of divergence {divergence.name!r} is not finite at t = q/p = {at:.6g}: the bound asks for it up to "
                f"{1.0 / LEAST:g}; write f so that it neither overflows nor cancels there"
            )
        nodes, values = _hull(nodes, values)
        secants = np.diff(values) / np.diff(nodes)
        left, right = np.append(secants[0], secants), np.append(secants, secants[-1])
        bent = np.isin(nodes, kinks)
        at = np.concatenate([np.where(bent, left, (left + right) / 2.0), right[bent]])
        logs = np.concatenate([np.log(nodes), np.log(nodes[bent])])
        order = np.lexsort((at, logs))
        slopes = np.maximum.accumulate(at[order]) + BENT * np.arange(at.size)
        inverse = PchipInterpolator(slopes, logs[order], extrapolate=True)
        return cls(divergence, tilt, nodes, secants, inverse, slopes, tuple(kinks))

    def price(self, r: Array) -> Array:
        return _price(self.divergence, self.tilt, r)

    def slope(self, r: Array) -> Array:
        """H'(r) from the derivative of f, at a kink one of its two; below `LEAST` that there."""
        with np.errstate(all="ignore"):
            t = 1.0 / np.maximum(r, LEAST)  # far out f(t) and t f'(t) cancel
            return np.asarray(self.divergence.f(t) - t * self.divergence.derivative(t) + self.tilt)

    def response(self, t: Array) -> tuple[Array, Array]:
        inside = np.clip(t, self.slopes[0], self.slopes[-1])
        r = np.exp(self.inverse(inside))
        return r, np.where(inside == t, r * np.maximum(self.inverse(inside, 1), 0.0), 0.0)

    def value(self, t: Array) -> Array:
        """An upper bound of max over 0 < r <= largest of t r - H(r).

        At the node k with secants[k-1] <= t <= secants[k] the concave t r - H(r) rises before node k - 1 and falls
        after node k + 1. Between them it lies below each of its own secants, extended.
        """
        k = np.searchsorted(self.secants, t)
        below = np.where(k > 0, self.nodes[np.maximum(k - 1, 0)], 0.0)
        above = self.nodes[np.minimum(k + 1, self.nodes.size - 1)]
        proposed = np.clip(self.response(t)[0], np.maximum(below, self.nodes[0]), above)
        node = self.nodes[k]
        return np.minimum(self._at(t, proposed, below, above), self._at(t, node, below, above))

    def _at(self, t: Array, r: Array, below: Array, above: Array) -> Array:
        beside = np.where(np.isin(r, self.kinks), BESIDE_KINK, BESIDE)
        low, here, high = r * (1.0 - beside), self.price(r), r * (1.0 + beside)
        before, after = t - (here - self.price(low)) / (r - low), t - (self.price(high) - here) / (high - r)
        up = np.maximum(after * (above - r), before * (np.minimum(high, above) - r))
        down = np.maximum(before * (below - r), after * (np.maximum(low, below) - r))
        return np.asarray(t * r - here + np.maximum(np.maximum(up, down), 0.0))


def _hull(x: Array, y: Array) -> tuple[Array, Array]:
    """The lower convex hull of the points (x, y), x rising: what rounding lifts above it is dropped."""
    kept: list[int] = []
    px, py = x.tolist(), y.tolist()
    for i in range(len(px)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (py[b] - py[a]) * (px[i] - px[b]) < (py[i] - py[b]) * (px[b] - px[a]):
                break
            kept.pop()
        kept.append(i)
    return x[kept], y[kept]


def _price(divergence: FDivergence, tilt: float, r: Array) -> Array:
    """H(r) = r f(1/r) + tilt (r - 1)."""
    with np.errstate(all="ignore"):
        return np.asarray(r * divergence.f(1.0 / r) + tilt * (r - 1.0))
