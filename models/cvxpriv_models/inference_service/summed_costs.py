"""The inner problem of the price with what a column costs beside g.

`SummedCosts` has its peak, its total variation, and cells that are 0.

`under_lines` has costs that are largest values of lines, each with a price. Such a value is at least any mixture of the
lines: so any w that the prices allow bounds the inner problem by one without costs, at c less what w costs. An
interior-point method looks for the best w of each row.

`BentCosts` has costs that bend: f-information, Renyi divergences. They are at least any of their tangents, which are
lines. So what is paid for a column less a tangent and weighted lines bounds the inner problem from above, exactly where
both are those of its best column. Newton's method looks for that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cvxpriv.bounds.bent_columns import LAST_WITH_LINES, BentColumns, Priced, smoothed
from cvxpriv.bounds.conjugates import Conjugate, moved_away, within
from cvxpriv.bounds.lines import Lines, Weights, until
from cvxpriv.numerics.arrays import Array, Flags, IntArray

from .pricing import LIMIT, SUM, ULPS, Inner, Pricing, solve_simplex

#: A t at which H* is -H(0), or above it by less than rounding.
FAR = -1e12


@dataclass(frozen=True, eq=False)
class SummedCosts:
    """The cost of a column x of one class of outputs.

    `plain`: The pricing without these costs.
    `bare`: Conjugate of f, without limits of the ratios.
    `allowed`, (|Y|,): Cells that may be above 0.
    `peak`: Price of max_y x(y)/p(y).
    `away`, (|Y|,): Price of |x(y)/p(y) - 1|, of beta p(y).
    `limits`: Limits of the ratios.
    """

    plain: Pricing
    bare: Conjugate
    allowed: Flags
    peak: float
    away: Array
    limits: tuple[float, float] | None

    def solver(self) -> Callable[[Array, int, float, Array | None], Inner]:
        """The solver of the inner problem: see `Pricing.solve`."""
        plain, allowed = self.plain, self.allowed
        if self.peak == 0.0 and not self.away.any() and allowed.all():
            return plain.solve
        p_y, beta, beside = plain.p_y[allowed], plain.beta, plain.beta * self.away[allowed]
        limited = self.bare if self.limits is None else within(self.bare, *self.limits)
        conjugate = moved_away(limited, self.away[allowed]) if self.away.any() else limited

        def solve(c: Array, limit: int, precision: float, near: Array | None) -> Inner:
            net = levelled(c, p_y, self.peak, beside) if self.peak > 0.0 else c
            return solve_simplex(net, p_y, beta, conjugate, limit, precision, near)

        if allowed.all():
            return solve
        least = float(self.bare.value(np.array([FAR]))[0])
        nothing = beta * float(plain.p_y[~allowed] @ (least - self.away[~allowed]))

        def among_allowed(c: Array, limit: int, precision: float, near: Array | None) -> Inner:
            found = solve(c[:, allowed], limit, precision, near)
            x, spread = np.zeros(c.shape), np.zeros(c.shape)
            x[:, allowed], spread[:, allowed] = found.x, found.spread
            return Inner(found.value + nothing, x, spread, found.n)

        return among_allowed

    def as_lines(self) -> list[tuple[Lines, Array]]:
        """Return the costs, and the limits, as lines with their prices."""
        p_y, ratios, found = self.plain.p_y, np.diag(1.0 / self.plain.p_y), list[tuple[Lines, Array]]()
        if self.peak > 0.0:
            found.append((Lines("most", ratios), np.array([self.peak])))
        if self.away.any():
            found.append((Lines("away", ratios - 1.0), self.plain.beta * p_y * self.away))
        if self.limits is not None:
            low, high = self.limits
            found.append((Lines("never", np.hstack([ratios / high - 1.0, low - ratios])), np.zeros(0)))
        return found


def levelled(c: Array, p_y: Array, price: float, beside: Array) -> Array:
    """Return c less what the largest ratio of a column costs: price max_y r_y is the largest v.r over v of sum price.

    Every such v >= 0 bounds the inner problem from above at c - v / p(y), and the v that cuts c - beside to one level
    is the best: the cells above it then have equal ratios.

    `c`: (B, |Y|). `p_y`: (|Y|,). `price`: > 0. `beside`, (|Y|,): Other cost of ratios above 1.

    Examples
    --------
    >>> levelled(np.array([[3.0, 1.0]]), np.array([0.5, 0.5]), 0.5, np.zeros(2)).tolist()
    [[2.0, 1.0]]
    """
    net = c - beside
    order = np.argsort(-net, axis=1, kind="stable")
    mass = np.cumsum(p_y[order], axis=1)
    level = (np.cumsum(p_y[order] * np.take_along_axis(net, order, axis=1), axis=1) - price) / mass
    return np.asarray(np.minimum(net, level.max(axis=1, keepdims=True)) + beside)


#: Steps; the complementarity that ends them; the first barrier, and its share of the complementarity after a step.
STEPS, FLAT, BARRIER, SHARE = 60, 1e-11, 1e-2, 0.1
#: By what a step is cut and lengthened; the shortest.
CUT, LONGER, SHORTEST = 0.25, 2.0, 1e-6
#: Numbers in one batch.
BATCH = 2_000_000

Solve = Callable[[Array, int, float, Array | None], Inner]


def under_lines(solve: Solve, every: Sequence[Lines], prices: Array) -> Solve:
    """Return a solver of the inner problem less the prices of costs, in the order of `Lines.ends`."""
    weights = Weights.of(every, prices)
    if not weights.lines.shape[1]:
        return solve

    def solved(c: Array, limit: int, precision: float, near: Array | None) -> Inner:
        size = max(BATCH // weights.lines.size, 1)
        parts = [slice(first, first + size) for first in range(0, max(len(c), 1), size)]
        return joined([_lowest(solve, weights, c[part], limit, precision)[0] for part in parts])

    return solved


def weights_under(solve: Solve, every: Sequence[Lines], prices: Array, c: Array) -> tuple[Inner, Array]:
    """Return the same inner problem at rows of c, and the weights of all lines, (B, K), behind its bound.

    A line of "away" has its mirror image after those of its cost.
    """
    if not every:
        return solve(c, LIMIT, SUM, None), np.zeros((len(c), 0))
    weights = Weights.of(every, prices)
    full = np.zeros((len(c), len(weights.kept)))
    if not weights.lines.shape[1]:
        return solve(c, LIMIT, SUM, None), full
    found, full[:, weights.kept] = _lowest(solve, weights, c, LIMIT, SUM)
    return found, full


def joined(found: Sequence[Inner]) -> Inner:
    """Return the inner problems of batches as one."""
    return Inner(*(np.concatenate([getattr(one, name) for one in found]) for name in ("value", "x", "spread", "n")))


def _lowest(solve: Solve, weights: Weights, c: Array, limit: int, precision: float) -> tuple[Inner, Array]:
    """The lowest bound over w of each row of c, and its w, by a primal-dual interior-point method."""
    lines, high = weights.lines, weights.high
    w = np.tile(weights.first(), (len(c), 1))
    best = here = solve(c - w @ lines.T, limit, precision, None)
    best, cost, lowest = Inner(*(np.copy(one) for one in best[:4])), w @ np.abs(lines).T, w.copy()
    barrier, length = np.full(len(c), BARRIER), np.ones(len(c))
    down, up = barrier[:, None] / w, barrier[:, None] / (high - w)
    work = np.arange(len(c))
    for _ in range(STEPS):
        slope, room = -here.x @ lines, high - w
        step = _step(weights, here.spread, slope - barrier[:, None] * (1.0 / w - 1.0 / room), down / w + up / room)
        most = np.minimum(until(w, step), until(room, -step))
        trial = w + (length * most)[:, None] * step
        there = solve(c - trial @ lines.T, limit, precision, here.n)
        fall = here.value - there.value + barrier * (_logs(trial, high) - _logs(w, high))
        good = fall > -FLAT
        more = barrier[:, None] / w - down - down / w * step, barrier[:, None] / room - up + up / room * step
        onward = length * np.minimum(until(down, more[0]), until(up, more[1]))
        down, up = (
            np.where(good[:, None], old + onward[:, None] * new, old) for old, new in zip((down, up), more, strict=True)
        )
        w = np.where(good[:, None], trial, w)
        here = there.where(good, here)
        length = np.where(good, np.minimum(LONGER * length, 1.0), CUT * length)
        apart = down * w + up * np.where(np.isfinite(high), high - w, 0.0)
        barrier = np.where(good, np.minimum(barrier, SHARE * apart.mean(axis=1)), barrier)
        lower = here.value < best.value[work]
        for old, new in zip(best[:4], here[:4], strict=True):
            old[work[lower]] = new[lower]
        cost[work[lower]], lowest[work[lower]] = w[lower] @ np.abs(lines).T, w[lower]
        going = (apart.sum(axis=1) > FLAT * (1.0 + np.abs(here.value))) & (length > SHORTEST)
        if not going.any():
            break
        if not going.all():
            work, c, w, down, up, barrier, length = (one[going] for one in (work, c, w, down, up, barrier, length))
            here = here.at(going)
    return best._replace(value=best.value + ULPS * cost.max(axis=1)), lowest


def _logs(w: Array, high: Array) -> Array:
    """The sum of the logarithms of the distances to both ends, (B,)."""
    room = np.where(np.isfinite(high), high - w, 1.0)
    return np.asarray(np.log(w).sum(axis=1) + np.log(room).sum(axis=1))


def _step(weights: Weights, spread: Array, slope: Array, bend: Array) -> Array:
    """Newton's step d, (B, K): the Hessian is diag(bend) + L'SL, S of rank |Y| - 1, and each sum stays.

    With y = S L d and the multipliers v of the sums, bend d = -slope - L'y - E'v: a system in y and v alone.
    """
    lines, group, size = weights.lines, weights.group, spread.shape[1]
    total = np.maximum(spread.sum(axis=1), 1e-300)[:, None, None]
    second = spread[:, :, None] * np.eye(size) - spread[:, :, None] * spread[:, None, :] / total
    rows = np.vstack([lines, group])
    product = (rows / bend[:, None, :]) @ rows.T
    product[:, :size] = second @ product[:, :size]
    product[:, :size, :size] += np.eye(size)
    right = (-slope / bend) @ rows.T
    right[:, :size] = (second @ right[:, :size, None])[:, :, 0]
    try:
        found = np.linalg.solve(product, right[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:  # with inputs of hardly any mass: the step along the slope alone
        found = np.zeros_like(right)
    step = (-slope - found @ rows) / bend
    own = 1.0 / bend  # what rounding leaves of each sum goes where the Hessian bends least
    left = (step @ group.T) / np.maximum(own @ group.T, 1e-300)
    return np.asarray(step - own * (left @ group))


#: The last barrier, where few steps are asked and without lines.
LOOSE, LAST_BARRIER = 1e-6, 1e-13
#: The last barrier where nothing bends: the weights of lines are only as right as it is small.
LAST_STRAIGHT = 1e-7


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
            last = last if self.bent else LAST_STRAIGHT
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

    def climb(self, pricing: Pricing, share: Array, alpha: Array, steps: int) -> Array:
        """Columns, (B, |Y|), worth the most near rows s, (B, |S|): KL is replaced by its tangent at each step."""

        def paid(x: Array, rows: IntArray) -> Array:
            return np.asarray(pricing.mu_of(x @ pricing.channel.T) @ pricing.channel - alpha)

        x = self.middle(pricing.solve(pricing.mu_of(share) @ pricing.channel - alpha, LIMIT, SUM, None).x)
        return self.best(self.weights(), paid, x, LAST_WITH_LINES, 1.0, steps)[0]
