"""The inner problem of the price under costs of a column that are largest values of lines, each with a price.

A largest value of lines is at least any mixture of them: so any w that the prices allow bounds the inner problem by one
without costs, at c less what w costs. An interior-point method looks for the best w of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cvxpriv.bounds.lines import Lines, Weights, until
from cvxpriv.numerics.arrays import Array

from .pricing import LIMIT, SUM, ULPS, Inner

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
    found = np.linalg.solve(product, right[:, :, None])[:, :, 0]
    step = (-slope - found @ rows) / bend
    own = 1.0 / bend  # what rounding leaves of each sum goes where the Hessian bends least
    left = (step @ group.T) / np.maximum(own @ group.T, 1e-300)
    return np.asarray(step - own * (left @ group))
