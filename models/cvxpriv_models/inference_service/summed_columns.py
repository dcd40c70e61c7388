"""Columns of the master program under constraints on sums over columns, each of which is a row of its own."""

from dataclasses import dataclass, field

import numpy as np

from cvxpriv.bounds.any_conjugate import conjugate_of
from cvxpriv.bounds.conjugates import Conjugate
from cvxpriv.bounds.master import Master
from cvxpriv.bounds.output_names import alike
from cvxpriv.divergences import FDivergence
from cvxpriv.numerics.arrays import Array, Flags, IntArray

from .priced_constraints import PricedConstraints
from .pricing import LEAST, Pricing
from .smoothed_master import starting_shares

#: Columns that cost more than this are no starts: f may be infinite where a cell is 0.
DEAR = 1e6
#: Error of sums of P_Y, at most.
ROUNDING = 1e-12
#: Mass below which a row of P_Y is loose, up to it.
LIGHT = 1e-9
#: Share of P_Y in the first columns; further ones where costs bend, which cost the more the farther they are from it.
SHARED, SHARES = 1e-3, (0.3, 0.6, 0.8, 0.9, 0.95)


@dataclass
class SummedColumns:
    """The columns of the master program: each is (1 + |Y|,), its class of outputs, and x.

    A class below 0 is no column: it fills one row at a cost that no mechanism pays.

    `plain`: The pricing without the sums, of a table whose rows may be merged.
    `divergence`: f.
    `bare`: Conjugate of f, without limits of the ratios.
    `grid`, (N, |S|): Points s to start from.
    `usable`: The classes whose outputs may have mass.
    """

    plain: Pricing
    divergence: FDivergence
    asked: PricedConstraints
    bare: Conjugate = field(init=False)
    first: IntArray = field(init=False)
    classes: IntArray = field(init=False)

    def __post_init__(self) -> None:
        named = [matrix.T for matrix, _ in self.asked.distortions]
        if self.asked.forbidden is not None:
            named.append(self.asked.forbidden.T.astype(float))
        self.first, self.classes = alike(np.hstack(named)) if named else alike(np.zeros((1, 1)))
        self.bare = conjugate_of(self.divergence, 1.0 / float(self.plain.p_y.min()))
        self.grid = starting_shares(self.plain.channel)
        self.usable = [c for c in range(len(self.first)) if self._usable(c)]

    def allowed(self, c: int) -> Flags:
        """Return the symbols that may have mass in a class, (|Y|,)."""
        forbidden = self.asked.forbidden
        return np.asarray(
            np.ones(len(self.plain.p_y), dtype=bool) if forbidden is None else ~forbidden[:, self.first[c]]
        )

    def _usable(self, c: int) -> bool:
        """Whether an output of a class may have mass: a cell of 0 must not cost everything, or break a limit."""
        allowed = self.allowed(c)
        if allowed.all():
            return True
        room = float(self.plain.p_y[allowed].sum()) * self.asked.high >= 1.0 - ROUNDING if allowed.any() else False
        room = room and not any(line.sort == "never" for line in self.asked.lines)
        with np.errstate(all="ignore"):
            finite = float(self.bare.price(np.array([LEAST]))[0]) < 100.0
            prior = np.where(allowed, self.plain.p_y, 0.0)[None] / max(float(self.plain.p_y[allowed].sum()), LEAST)
            finite = finite and all((one.values(prior) < DEAR).all() for one in self.asked.bent)
        return room and self.asked.low == 0.0 and finite

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
        """The master program without columns; rows of hardly any mass are within HiGHS's tolerances, and loose."""
        p_y, none = self.plain.p_y, np.full(len(self.upper), -np.inf)
        light = p_y < LIGHT
        least, most = np.where(light, 0.0, p_y), np.where(light, LIGHT, p_y)
        return Master(np.concatenate([least, none]), np.concatenate([most, self.upper]))

    def first_columns(self) -> Array:
        """P_Y and single symbols in every class, and what fills the rows before there are better columns, (., n)."""
        p_y, count = self.plain.p_y, len(self.plain.p_y) + len(self.upper)
        found = [np.vstack([-1.0 - np.arange(count), np.zeros((len(p_y), count))])]
        for c in self.usable:
            allowed = self.allowed(c)
            prior = np.where(allowed, p_y, 0.0) / p_y[allowed].sum()
            x = np.vstack(
                [prior, np.eye(len(p_y))[allowed], (1.0 - SHARED) * np.eye(len(p_y))[allowed] + SHARED * prior]
            )
            if self.asked.bent:
                best = self.plain.inner(self.plain.mu_of(self.grid), np.zeros(len(p_y))).x * allowed
                best = best[best.sum(axis=1) > 0.5]
                far = np.vstack([x, best / best.sum(axis=1, keepdims=True)])
                x = np.vstack([x, *((1.0 - share) * far + share * prior for share in SHARES)])
            x = self.kept(c, x[self.obeying(x)])
            x = x[self.plain.gain(x) > -DEAR * max(self.plain.beta, 1.0)]
            x = x[(self.sums(np.full(len(x), c), x) < DEAR).all(axis=1)]
            found.append(np.vstack([np.full(len(x), float(c)), x.T]))
        return np.concatenate(found, axis=1)

    def kept(self, c: int, x: Array) -> Array:
        """Return columns of a class moved as little to the prior as makes each obey what is asked of it alone."""
        allowed, asked = self.allowed(c), self.asked
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
