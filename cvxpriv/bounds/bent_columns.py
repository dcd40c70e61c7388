"""The best column under costs that bend and costs from lines, by a barrier method.

Newton's method climbs the worth of a column less its costs, with a barrier at the ends of the simplex. A cost from
lines is the largest value of weights of them, which have a barrier too: so kinks are met as smooth turns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cvxpriv.numerics.arrays import Array, Flags, IntArray

from .column_costs import Bent
from .lines import Lines, Weights, until

#: The barrier: the first, its share that a step leaves, and the last with lines: at smaller ones the weight of a line
#: whose cost has its kink at the column is rounding. The most steps.
FIRST_BARRIER, BARRIER_LEFT, LAST_WITH_LINES = 1e-2, 0.03, 1e-10
STEPS = 70
#: By what a step is cut and lengthened; a fall of this share of the barrier is rounding.
CUT, LONGER, FLAT = 0.25, 2.0, 1e-11
#: The share of the last barrier that Newton's method may still promise.
CENTRED = 1e-8
#: The largest weight of a line that no column may be above, and Newton steps for the level of the largest line.
LARGEST_WEIGHT, LEVEL_STEPS = 1e4, 30
#: Addition to the diagonal of a Newton system, whose entries are 1: it can be solved where costs bend as one.
REGULAR = 1e-14
#: Units in the last place that a sum of a few products may be off, each relative to its largest part.
ULPS = 16.0 * float(np.finfo(float).eps)

Curved = Callable[[Array, Array], tuple[Array, Array, Array]]
Priced = Sequence[tuple[Lines, Array]]


@dataclass(frozen=True, eq=False)
class BentColumns:
    """The worth of columns, c.x and more, less their costs.

    `bent`: Costs that bend, each with its prices.
    `lines`: Costs from lines, each with its prices.
    `allowed`, (|Y|,): Cells that may be above 0.
    `p_y`: (|Y|,).
    `base`: c and columns to their worth without costs, its slope, and minus its second derivatives.
    """

    bent: Sequence[tuple[Bent, Array]]
    lines: Priced
    allowed: Flags
    p_y: Array
    base: Curved

    @property
    def every(self) -> Priced:
        """All costs from lines."""
        return self.lines

    def weights(self) -> Weights:
        """Return the lines of all costs, with what their weights may be."""
        none = Lines("above", np.zeros((len(self.p_y), 0))), np.zeros(0)
        every = (none, *self.every)
        return Weights.of([one for one, _ in every], np.concatenate([own for _, own in every]))

    def middle(self, x: Array) -> Array:
        """Return columns half of the way from the prior."""
        prior = np.where(self.allowed, self.p_y, 0.0)
        return np.asarray(0.5 * x / x.sum(axis=1, keepdims=True) + 0.5 * prior / prior.sum())

    def best(
        self,
        weights: Weights,
        paid: Callable[[Array, IntArray], Array],
        x: Array,
        last: float,
        left: float = CENTRED,
        steps: int = STEPS,
    ) -> tuple[Array, Array]:
        """Return the best columns, and the barrier at which Newton's method left each, (n,).

        `paid`: Columns and their rows to c. `x`, (n, |Y|): Columns to begin with. `left`: The share of the last
        barrier that Newton's method may still promise.
        """
        some = self.allowed
        barrier, length = np.full(len(x), FIRST_BARRIER), np.ones(len(x))
        work, found, ended = np.arange(len(x)), x.copy(), barrier.copy()
        for _ in range(steps):
            c = paid(x, work)
            here, step, rise = self._step(weights, c, x, barrier)
            trial = x + (length * until(x[:, some], step[:, some]))[:, None] * step
            trial = trial / trial.sum(axis=1, keepdims=True)
            good = self._merit(weights, c, trial, barrier) - here >= -FLAT * barrier - ULPS * (1.0 + np.abs(here))
            x = np.where(good[:, None], trial, x)
            near = good & (rise * length <= np.where(barrier > last, 1.0, left) * barrier)
            found[work], ended[work] = x, barrier
            going = ~(near & (barrier <= last))
            if not going.any():
                break
            barrier = np.where(near, np.maximum(BARRIER_LEFT * barrier, last), barrier)
            length = np.where(good, np.minimum(LONGER * length, 1.0), CUT * length)
            if not going.all():
                work, x, barrier, length = (one[going] for one in (work, x, barrier, length))
        return found, ended

    def _merit(self, weights: Weights, c: Array, x: Array, barrier: Array) -> Array:
        some = self.allowed
        cost = sum(one.smooth(x) @ prices for one, prices in self.bent)
        lines = smoothed(weights, x @ weights.lines, barrier)[0]
        return np.asarray(self.base(c, x)[0] - cost - lines + barrier * (np.log(x[:, some]) @ self.p_y[some]))

    def _step(self, weights: Weights, c: Array, x: Array, barrier: Array) -> tuple[Array, Array, Array]:
        """The merit, Newton's step on the simplex, and the rise that it promises."""
        some, p = self.allowed, self.p_y[self.allowed]
        _, slope, bend = self.base(c, x)
        _, w, turn = smoothed(weights, x @ weights.lines, barrier)
        g = (slope - self.tangent(x) - w @ weights.lines.T)[:, some] + barrier[:, None] * p / x[:, some]
        second = sum(one.bends(x, prices) for one, prices in self.bent) + weights.lines @ (turn @ weights.lines.T)
        second = second[:, some][:, :, some]
        second = second + (bend[:, some] + barrier[:, None] * p / x[:, some] ** 2)[:, :, None] * np.eye(len(p))
        scale = 1.0 / np.sqrt(np.einsum("nyy->ny", second))
        right = np.stack([g * scale, scale], axis=2)
        scaled = second * scale[:, :, None] * scale[:, None, :] + REGULAR * np.eye(len(p))
        both = np.linalg.solve(scaled, right) * scale[:, :, None]
        up, level = both[:, :, 0], both[:, :, 1]
        step = np.zeros_like(x)
        step[:, some] = up - (up.sum(axis=1) / level.sum(axis=1))[:, None] * level
        return self._merit(weights, c, x, barrier), step, (step[:, some] * g).sum(axis=1)

    def tangent(self, x: Array) -> Array:
        """Return the slope of the costs that bend, without their kinks, (n, |Y|)."""
        return np.asarray(
            sum((np.einsum("k,kyn->ny", own, one.tangents(x)) for one, own in self.bent), np.zeros_like(x))
        )


def smoothed(weights: Weights, value: Array, barrier: Array) -> tuple[Array, Array, Array]:
    """Return the largest w.t + barrier sum log of the distances of w to its ends, w, and its derivative, (n, K, K).

    `value`: t, what the lines are at columns, (n, K).
    """
    if not value.shape[1]:
        return np.zeros(len(value)), value, np.zeros((len(value), 0, 0))
    mu, free = barrier[:, None], ~weights.group.any(axis=0)
    high = np.minimum(weights.high, LARGEST_WEIGHT)
    # Without a sum, w is a root of a quadratic; the smaller of the distances to both ends is computed.
    size = np.abs(value) * high
    root = np.sqrt(size**2 + 4.0 * mu**2)
    small = np.maximum(high / 2.0 * (2.0 * mu + 4.0 * mu**2 / (root + size)) / (root + 2.0 * mu), 1e-300)
    large = high - small
    w = np.where(value > 0.0, large, small)
    rate = 1.0 / (mu / small**2 + mu / large**2)
    turn = np.where(free, rate, 0.0)[:, :, None] * np.eye(free.size)
    logs = np.where(free, mu * (np.log(small) + np.log(large)), 0.0).sum(axis=1)
    for member, total in zip(weights.group > 0.0, weights.sums, strict=True):
        below = value[:, member].max(axis=1, keepdims=True) - value[:, member]
        above = mu / total
        for _ in range(LEVEL_STEPS):  # 1 / sum 1/(level - t) is concave: Newton's method does not pass the root
            inverse = 1.0 / (above + below)
            first = inverse.sum(axis=1, keepdims=True)
            move = (1.0 / (mu * first) - 1.0 / total) * mu * first**2 / (inverse**2).sum(axis=1, keepdims=True)
            above = above - move
            if (np.abs(move) <= 1e-15 * above).all():
                break
        share = mu / (above + below)
        w[:, member] = share * (total / share.sum(axis=1, keepdims=True))
        own = w[:, member] ** 2 / mu
        both = np.ix_(member, member)
        block = own[:, :, None] * np.eye(own.shape[1])
        block = block - own[:, :, None] * own[:, None, :] / own.sum(axis=1)[:, None, None]
        turn[(slice(None), *both)] = block
        logs = logs + (mu * np.log(w[:, member])).sum(axis=1)
    return (w * value).sum(axis=1) + logs, w, turn
