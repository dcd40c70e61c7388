"""The inner problem of the price under costs of a column that bend: f-information, Renyi divergences.

Such a cost is at least any of its tangents, which are lines; costs from lines are at least any weights of them that
their prices allow. So what is paid for a column less a tangent and weighted lines bounds the inner problem from above,
exactly where both are those of its best column. Newton's method looks for that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.bounds.bent_columns import LAST_WITH_LINES, BentColumns, Priced, smoothed
from cvxpriv.bounds.lines import Weights
from cvxpriv.numerics.arrays import Array, IntArray

from .line_costs import BATCH, Solve, joined
from .pricing import LIMIT, SUM, ULPS, Inner, Pricing

#: The last barrier, where few steps are asked and without lines.
LOOSE, LAST_BARRIER = 1e-6, 1e-13
#: The most steps of a climb: columns that are not there yet are those of the next one.
CLIMB = 30


@dataclass(frozen=True, eq=False)
class BentCosts(BentColumns):
    """The costs of a column beside g, where some of them bend.

    `known`: Costs from lines, each with its prices, which the solver of the inner problem counts by itself.
    """

    known: Priced = ()

    def under(self, solve: Solve) -> Solve:
        """Return a solver of the inner problem less all costs; `solve` counts those that are known to it."""
        weights = self.weights()
        own = int(weights.kept[: sum(one.size for one, _ in self.lines)].sum())

        def solved(c: Array, limit: int, precision: float, near: Array | None) -> Inner:
            size = max(BATCH // (len(self.p_y) * max(len(self.p_y), weights.lines.shape[1])), 1)
            last = LOOSE if limit < LIMIT else LAST_WITH_LINES if weights.lines.size else LAST_BARRIER
            parts = [c[first : first + size] for first in range(0, max(len(c), 1), size)]
            return joined([self._solved(solve, weights, own, part, last) for part in parts])

        return solved

    @property
    def every(self) -> Priced:
        """All costs from lines."""
        return (*self.lines, *self.known)

    def _solved(self, solve: Solve, weights: Weights, own: int, c: Array, last: float) -> Inner:
        """The bound at the tangents and weights of the columns that a barrier method finds."""
        x, barrier = self.best(weights, lambda _, rows: c[rows], self.middle(solve(c, LIMIT, SUM, None).x), last)
        lines = weights.lines[:, :own]
        v, w = self.tangent(x), smoothed(weights, x @ weights.lines, barrier)[1][:, :own]
        inner = solve(c - v - w @ lines.T, LIMIT, SUM, None)
        size = np.abs(v).max(axis=1) + (w @ np.abs(lines).T).max(axis=1)
        return inner._replace(value=inner.value + ULPS * size, x=x)

    def climb(self, pricing: Pricing, share: Array, alpha: Array) -> Array:
        """Columns, (B, |Y|), worth the most near rows s, (B, |S|): KL is replaced by its tangent at each step."""

        def paid(x: Array, rows: IntArray) -> Array:
            return np.asarray(pricing.mu_of(x @ pricing.channel.T) @ pricing.channel - alpha)

        x = self.middle(pricing.solve(pricing.mu_of(share) @ pricing.channel - alpha, LIMIT, SUM, None).x)
        return self.best(self.weights(), paid, x, LAST_WITH_LINES, 1.0, CLIMB)[0]
