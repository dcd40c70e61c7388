"""Pricing under constraints on sums over columns: each adds a convex cost to a column, with a multiplier of its own.

The price of a column x of a class of outputs is g(x) - alpha.x - sum_k mu_k m_k(x). Every m_k is convex: the peak
max_y x(y)/p(y), total variation |x(y)/p(y) - 1| / 2, a distortion d.x. So the inner problem stays concave, and the
cells of s verify it as they do without constraints.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from cvxpriv.bounds.any_conjugate import conjugate_of
from cvxpriv.bounds.columns import OUT_OF_TIME, Clock, Priced, Verified
from cvxpriv.bounds.conjugates import Conjugate
from cvxpriv.bounds.linear_pieces import Hinges
from cvxpriv.bounds.lines import Lines
from cvxpriv.bounds.master import Master
from cvxpriv.bounds.output_names import alike
from cvxpriv.divergences import FDivergence
from cvxpriv.numerics.arrays import Array, Flags, IntArray

from .cells_of_s import verify
from .linear_master import CLIMB, JOINING, NEAR, PARTS
from .priced_constraints import PricedConstraints, ratios_within
from .pricing import LEAST, ULPS, Pricing, distinct
from .smoothed_master import starting_shares
from .summed_costs import BentCosts, SummedCosts, under_lines

#: Columns that cost more than this are no starts: f may be infinite where a cell is 0.
DEAR = 1e6
#: Error of sums of P_Y, at most.
ROUNDING = 1e-12
#: Share of P_Y in the first columns.
SHARED = 1e-3


@dataclass
class SummedPricing:
    """Satisfies `cvxpriv.bounds.columns.Pricing`; a column is (1 + |Y|,): its class of outputs, and x.

    A class of -1 is no column: it fills one row at a cost that no mechanism pays.

    `plain`: The pricing without the sums, of a table whose rows may be merged.
    `divergence`: f.
    `deadline`: A value of `time.monotonic`.
    `bare`: Conjugate of f, without limits of the ratios.
    """

    plain: Pricing
    divergence: FDivergence
    asked: PricedConstraints
    deadline: float
    cells: int = 0
    bare: Conjugate = field(init=False)
    first: IntArray = field(init=False)
    classes: IntArray = field(init=False)

    def __post_init__(self) -> None:
        named = [matrix.T for matrix, _ in self.asked.distortions]
        if self.asked.forbidden is not None:
            named.append(self.asked.forbidden.T.astype(float))
        self.first, self.classes = alike(np.hstack(named)) if named else alike(np.zeros((1, 1)))
        self.bare = conjugate_of(self.divergence, 1.0 / float(self.plain.p_y.min()))
        self._hinges = Hinges(self.divergence)
        self.grid, self._turn = starting_shares(self.plain.channel), 0
        self.usable = [c for c in range(len(self.first)) if self._usable(c)]

    def _allowed(self, c: int) -> Flags:
        forbidden = self.asked.forbidden
        return np.asarray(
            np.ones(len(self.plain.p_y), dtype=bool) if forbidden is None else ~forbidden[:, self.first[c]]
        )

    def _usable(self, c: int) -> bool:
        """Whether an output of a class may have mass: a cell of 0 must not cost everything, or break a limit."""
        allowed = self._allowed(c)
        if allowed.all():
            return True
        room = float(self.plain.p_y[allowed].sum()) * self.asked.high >= 1.0 - ROUNDING if allowed.any() else False
        room = room and not any(line.sort == "never" for line in self.asked.lines)
        with np.errstate(all="ignore"):
            finite = float(self.bare.price(np.array([LEAST]))[0]) < 100.0
            prior = np.where(allowed, self.plain.p_y, 0.0)[None] / max(float(self.plain.p_y[allowed].sum()), LEAST)
            finite = finite and all((one.values(prior) < DEAR).all() for one in self.asked.bent)
        return room and self.asked.low == 0.0 and finite

    # --- the rows -----------------------------------------------------------------------------------------------------

    @property
    def upper(self) -> Array:
        """The upper ends of the sums, (k,)."""
        asked, ends = self.asked, [bound for _, bound in self.asked.distortions]
        if asked.peak < np.inf:
            ends.append(asked.peak)
        if asked.moved_on_average < np.inf:
            ends.append(asked.moved_on_average)
        size = len(self.plain.p_y)
        ends += size * [asked.moved] if asked.moved < np.inf else []
        ends += [end for one in asked.costs for end in one.ends]
        return np.array(ends)

    def sums(self, c: IntArray, x: Array) -> Array:
        """Return the part of columns in each sum, (n, k)."""
        asked, ratios = self.asked, x / self.plain.p_y
        found = [(matrix.T[self.first[c]] * x).sum(axis=1, keepdims=True) for matrix, _ in asked.distortions]
        if asked.peak < np.inf:
            found.append(ratios.max(axis=1, keepdims=True))
        if asked.moved_on_average < np.inf:
            found.append(0.5 * np.abs(x - self.plain.p_y).sum(axis=1, keepdims=True))
        if asked.moved < np.inf:
            found.append(0.5 * np.abs(ratios - 1.0))
        found += [line.costs(x) for line in asked.lines] + [np.minimum(one.values(x), DEAR) for one in asked.bent]
        return np.hstack(found) if found else np.zeros((len(x), 0))

    def master(self) -> Master:
        """The master program without columns."""
        return Master(
            np.concatenate([self.plain.p_y, np.full(len(self.upper), -np.inf)]),
            np.concatenate([self.plain.p_y, self.upper]),
        )

    def first_columns(self) -> Array:
        """P_Y and single symbols in every class, and what fills the rows before there are better columns, (., n)."""
        p_y, count = self.plain.p_y, len(self.plain.p_y) + len(self.upper)
        found = [np.vstack([-1.0 - np.arange(count), np.zeros((len(p_y), count))])]
        for c in self.usable:
            allowed = self._allowed(c)
            prior = np.where(allowed, p_y, 0.0) / p_y[allowed].sum()
            x = np.vstack(
                [prior, np.eye(len(p_y))[allowed], (1.0 - SHARED) * np.eye(len(p_y))[allowed] + SHARED * prior]
            )
            x = self.kept(c, x[self.obeying(x)])
            x = x[self.plain.gain(x) > -DEAR * max(self.plain.beta, 1.0)]
            found.append(np.vstack([np.full(len(x), float(c)), x.T]))
        return np.concatenate(found, axis=1)

    def kept(self, c: int, x: Array) -> Array:
        """Return columns of a class moved as little to the prior as makes each obey what is asked of it alone."""
        allowed, asked = self._allowed(c), self.asked
        prior = np.where(allowed, self.plain.p_y, 0.0) / self.plain.p_y[allowed].sum()
        ratios, middle = (x / self.plain.p_y)[:, allowed], 1.0 / self.plain.p_y[allowed].sum()
        least, most = ratios.min(axis=1), ratios.max(axis=1)
        over = np.stack([asked.low - least, most - asked.high])
        room = np.array([[middle - asked.low], [asked.high - middle]])
        if asked.epsilon is not None:
            loss = np.exp(asked.epsilon)
            over, room = (most - loss * least)[None], np.array([[loss * middle - middle]])
        share = np.maximum(over, 0.0) / np.maximum(np.maximum(over, 0.0) + np.maximum(room, 0.0), LEAST)
        share = share.max(axis=0)[:, None]
        x = (1.0 - share) * x + share * prior
        for line in asked.lines:
            x = line.kept(x, self.plain.p_y)
        return x

    def obeying(self, x: Array) -> Flags:
        """Return a mask of the columns that obey the conditions on each alone."""
        ratios = x / self.plain.p_y
        least, most = ratios.min(axis=1), ratios.max(axis=1)
        if self.asked.epsilon is not None:
            return np.asarray(most <= np.exp(self.asked.epsilon) * least)
        return np.asarray((least >= self.asked.low) & (most <= self.asked.high))

    def rows(self, columns: Array) -> tuple[Array, Array]:
        """Costs -g, (n,), and rows (x, sums), (|Y| + k, n)."""
        real = columns[0] >= 0.0
        rows, costs = np.zeros((len(self.plain.p_y) + len(self.upper), columns.shape[1])), np.zeros(columns.shape[1])
        x = columns[1:, real].T
        costs[real] = -self.plain.gain(x)
        rows[:, real] = np.hstack([x, self.sums(columns[0, real].astype(int), x)]).T
        filled = -1 - columns[0, ~real].astype(int)
        rows[filled, np.flatnonzero(~real)] = np.where(filled < len(self.plain.p_y), 1.0, -1.0)
        costs[~real] = 10.0 * (1.0 + np.abs(costs).max(initial=0.0))
        return costs, rows

    # --- the price ----------------------------------------------------------------------------------------------------

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
        return SummedCosts(plain, self.bare, self._allowed(c), peak, away, limits), alpha, mu

    def _worth(self, c: int, x: Array, duals: Array) -> Array:
        """-g + alpha.x + mu.sums, what columns add to the master's value for each unit of them, (n,)."""
        alpha, mu = self.split(duals)
        return np.asarray(x @ alpha + self.sums(np.full(len(x), c), x) @ mu - self.plain.gain(x))

    def search(self, duals: Array, active: Array, level: float) -> Priced:
        """Columns below `level`: some of the starts find them in most rounds, all have to find none in the last."""
        self._turn += 1
        for starts in (self.grid[self._turn % PARTS :: PARTS], self.grid):
            columns, values = [np.zeros((len(active), 0))], [np.zeros(0)]
            for c in self.usable:
                pricing, alpha = self.of_class(c, duals)
                own = active[1:, active[0] == c].T @ self.plain.channel.T
                costs, _, mu = self.costs_of_class(c, duals)
                first, bent = np.vstack([own, starts]), self._bent(costs, mu)
                if bent is None:
                    x = pricing.inner(pricing.mu_of(pricing.climb(first, alpha, CLIMB)), alpha).x
                else:
                    x = bent.climb(replace(self.plain, solve=costs.solver()), first, alpha)
                x, value = self._found(c, x, duals, level)
                columns.append(np.vstack([np.full(len(x), float(c)), x.T]))
                values.append(value)
            together, price = np.concatenate(columns, axis=1), np.concatenate(values)
            if len(price):
                break
        order = np.argsort(price, kind="stable")[:JOINING]
        return Priced(together[:, order], price[order])

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
