"""Pricing under constraints on sums over columns: each adds a convex cost to a column, with a multiplier of its own.

The price of a column x of a class of outputs is g(x) - alpha.x - sum_k mu_k m_k(x). Every m_k is convex: the peak
max_y x(y)/p(y), total variation |x(y)/p(y) - 1| / 2, a distortion d.x. So the inner problem stays concave, and the
cells of s verify it as they do without constraints.
"""

from dataclasses import dataclass, replace

import numpy as np

from cvxpriv.bounds.columns import OUT_OF_TIME, Clock, Priced, Verified
from cvxpriv.bounds.linear_pieces import Hinges
from cvxpriv.bounds.lines import Lines
from cvxpriv.numerics.arrays import Array

from .cells_of_s import verify
from .linear_master import CLIMB, JOINING, NEAR, PARTS
from .priced_constraints import ratios_within
from .pricing import LEAST, ULPS, Pricing, distinct
from .summed_columns import SummedColumns
from .summed_costs import BentCosts, SummedCosts, under_lines

#: Steps of a climb where costs bend; by how much climbs are longer in the last round.
BENT_CLIMB, LONGER = 30, 4
#: Share of the earlier multipliers in those at which columns are looked for: the master's own wander. It is halved
#: where they find none, down to none.
MEMORY, LEAST_MEMORY = 0.7, 0.05


@dataclass
class SummedPricing(SummedColumns):
    """Satisfies `cvxpriv.bounds.columns.Pricing`.

    `deadline`: A value of `time.monotonic`.
    """

    deadline: float = np.inf
    cells: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._hinges, self._turn = Hinges(self.divergence), 0
        self._centre, self._memory = np.zeros(len(self.plain.p_y) + len(self.upper)), MEMORY

    def split(self, duals: Array) -> tuple[Array, Array]:
        """alpha, (|Y|,), and mu >= 0, (k,), of the master's multipliers."""
        size = len(self.plain.p_y)
        return -duals[:size], np.maximum(-duals[size:], 0.0)

    def of_class(self, c: int, duals: Array) -> tuple[Pricing, Array]:
        """Return the pricing of columns of one class, and its alpha."""
        costs, alpha, mu = self.costs_of_class(c, duals)
        solve, bent = costs.solver(), self._bent(costs, mu)
        if bent is not None:
            solve = bent.under(solve)
        elif self.asked.lines:
            solve = under_lines(solve, self.asked.lines, mu)
        return replace(self.plain, solve=solve, smooth=False), alpha

    def _bent(self, costs: SummedCosts, mu: Array) -> BentCosts | None:
        """The demands of costs that bend on a column, with all beside them; None where none has a price.

        With an f of straight pieces lines take the same way: the interior-point method on their weights needs a column
        that moves with them.
        """
        asked, every, at = self.asked, list[Array](), 0
        for one in asked.costs:
            every.append(mu[at : at + len(one.ends)])
            at += len(one.ends)
        own = every[len(asked.lines) :]
        bent = [(one, price) for one, price in zip(asked.bent, own, strict=True) if price.any()]
        if not bent and not (self._hinges.straight and self.asked.lines):
            return None
        lines = [*zip(asked.lines, every, strict=False)]
        lines += [(one.kinks[0], price[0] * one.kinks[1]) for one, price in bent if one.kinks is not None]
        known = costs.as_lines()
        if len(self._hinges.kinks):
            p_y, rises = self.plain.p_y, self._hinges.rises
            kinks = Lines("above", self._hinges.lines(np.diag(1.0 / p_y)))
            known.append((kinks, self.plain.beta * np.outer(p_y, rises).ravel()))
        return BentCosts(bent, lines, costs.allowed, self.plain.p_y, self._curved, known)

    def _curved(self, c: Array, x: Array) -> tuple[Array, Array, Array]:
        """The worth of a column without kinks of f, its slope, and minus its second derivatives."""
        p_y, beta, hinges = self.plain.p_y, self.plain.beta, self._hinges
        ratio = np.maximum(x / p_y, LEAST)
        cost, slope = self.bare.price(ratio), self.bare.slope(ratio)
        turn = np.maximum(self.bare.response(slope)[1], LEAST)
        bend = np.zeros_like(x) if hinges.straight else np.minimum(beta / (turn * p_y), 1.0 / LEAST)
        if len(hinges.kinks):
            intercept, level = hinges.plane(1.0 / ratio)
            cost, slope = intercept * ratio + level, intercept
        return (c * x).sum(axis=1) - beta * (cost @ p_y), c - beta * slope, bend

    def costs_of_class(self, c: int, duals: Array) -> tuple[SummedCosts, Array, Array]:
        """Return the costs of columns of one class without lines, its alpha, and the multipliers of lines."""
        plain, asked, (alpha, mu) = self.plain, self.asked, self.split(duals)
        for (matrix, _), price in zip(asked.distortions, mu, strict=False):
            alpha = alpha + price * matrix[:, self.first[c]]
        mu = mu[len(asked.distortions) :]
        peak, away = 0.0, np.zeros(len(plain.p_y))
        if asked.peak < np.inf:
            peak, mu = float(mu[0]), mu[1:]
        if asked.moved_on_average < np.inf:
            away, mu = away + mu[0] / (2.0 * plain.beta), mu[1:]
        if asked.moved < np.inf:
            size = len(plain.p_y)
            away, mu = away + mu[:size] / (2.0 * plain.beta * plain.p_y), mu[size:]
        limits = ratios_within(asked, plain.p_y) if asked.low > 0.0 or asked.high < np.inf else None
        return SummedCosts(plain, self.bare, self.allowed(c), peak, away, limits), alpha, mu

    def _worth(self, c: int, x: Array, duals: Array) -> Array:
        """-g + alpha.x + mu.sums, what columns add to the master's value for each unit of them, (n,)."""
        alpha, mu = self.split(duals)
        return np.asarray(x @ alpha + self.sums(np.full(len(x), c), x) @ mu - self.plain.gain(x))

    def search(self, duals: Array, active: Array, level: float) -> Priced:
        """Columns below `level`: a few starts at smoothed multipliers find them in most rounds, then at the master's.

        All starts have to find none, each climbing to its end, in the last.
        """
        self._turn += 1
        some = self.grid[self._turn % PARTS :: PARTS]
        if self._memory > LEAST_MEMORY:
            self._centre = duals + self._memory * (self._centre - duals)
            found = self._searched(self._centre, duals, active, level, some)
            if len(found.values):
                return found
            self._memory *= 0.5
        for starts, longer in ((some, 1), (self.grid, LONGER)):
            found = self._searched(duals, duals, active, level, starts, longer)
            if len(found.values):
                break
        return found

    def _searched(self, at: Array, duals: Array, active: Array, level: float, starts: Array, longer: int = 1) -> Priced:
        """Columns that climb from some starts at one vector of multipliers, and are below `level` at the duals."""
        columns, values = [np.zeros((len(active), 0))], [np.zeros(0)]
        for c in self.usable:
            pricing, alpha = self.of_class(c, at)
            own = active[1:, active[0] == c].T @ self.plain.channel.T
            costs, _, mu = self.costs_of_class(c, at)
            first, bent = np.vstack([own, starts]), self._bent(costs, mu)
            if bent is None:
                x = pricing.inner(pricing.mu_of(pricing.climb(first, alpha, longer * CLIMB)), alpha).x
            else:
                x = bent.climb(replace(self.plain, solve=costs.solver()), first, alpha, longer * BENT_CLIMB)
            x, value = self._found(c, x, duals, level)
            columns.append(np.vstack([np.full(len(x), float(c)), x.T]))
            values.append(value)
        together, price = np.concatenate(columns, axis=1), np.concatenate(values)
        order = np.argsort(price, kind="stable")[:JOINING]
        return Priced(together[:, order], price[order])

    def steadier(self, duals: Array, active: Array) -> tuple[Array, float]:
        """Return the master's or the smoothed multipliers, those that promise more, and the least worth found there."""
        every = []
        for one in (duals, self._centre):
            found = self._searched(one, one, active, 0.0, self.grid, LONGER)
            least = float(found.values.min(initial=0.0))
            every.append((self.bound(one, least), one, least))
        return max(every, key=lambda each: each[0])[1:]

    def _found(self, c: int, x: Array, duals: Array, level: float) -> tuple[Array, Array]:
        """Those of some columns whose worth is below a level, moved into what is asked of each, and that worth."""
        x = self.kept(c, x / x.sum(axis=1, keepdims=True))
        worth = self._worth(c, x, duals)
        order = np.argsort(worth, kind="stable")
        x = distinct(x[order[worth[order] < level]], NEAR)[:JOINING]
        return x, self._worth(c, x, duals)

    def verify(self, duals: Array, level: float, out_of_time: Clock) -> Verified:
        """Prove that no column of any class is below `level`, or find some."""
        least, reason, columns = np.inf, "", [np.zeros((1 + len(self.plain.p_y), 0))]
        deadline = -np.inf if out_of_time() else self.deadline
        for c in self.usable:
            pricing, alpha = self.of_class(c, duals)
            shown = verify(pricing, alpha, -level, deadline)
            self.cells += shown.cells
            least = min(least, -shown.bound)
            if len(shown.above):
                x, _ = self._found(c, pricing.inner(pricing.mu_of(shown.above), alpha).x, duals, level)
                columns.append(np.vstack([np.full(len(x), float(c)), x.T]))
            elif not shown.complete:
                reason = OUT_OF_TIME
        return Verified(float(least), np.concatenate(columns, axis=1), reason)

    def bound(self, duals: Array, least: float) -> float:
        """-alpha.P_Y - mu.upper + least, rounding included: the best objective is at most minus that."""
        alpha, mu = self.split(duals)
        size = float(np.abs(alpha) @ self.plain.p_y + mu @ np.abs(self.upper))
        rounding = ULPS * (size * np.log2(len(duals) + 2) + (abs(least) if np.isfinite(least) else 0.0))
        return float(least - alpha @ self.plain.p_y - mu @ self.upper - rounding)
