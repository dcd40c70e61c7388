"""The inner problem of the price under (epsilon, delta)-local differential privacy, where each pair y, y' has a price.

The constraint is sum_u p(u) (a r_y - r_y')_+ <= a delta for all pairs, with the ratios r of a column and a =
exp(-epsilon): one sum over columns for each pair. Since (t)_+ >= v t for every v in [0, 1], any w in [0, prices] bounds
the inner problem by one without pairs, at c less what w costs. Newton's method looks for the best w of each row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvxpriv.numerics.arrays import Array, Flags

from .pricing import ULPS, Inner

__all__ = ["pair_sums", "under_pairs"]

#: Newton steps; the slope of the bound, times the price, that ends them; the first damping and the last.
STEPS, FLAT, DAMPING, MOST = 40, 1e-8, 1e-8, 1e8
#: Damping is multiplied by the first after a step that lowers the bound, by the second after one that does not.
EASIER, HARDER = 0.1, 100.0

Solve = Callable[[Array, int, float, Array | None], Inner]


def pair_sums(x: Array, p_y: Array, epsilon: float) -> Array:
    """Return (a r_y - r_y')_+ of columns, (n, |Y|), for all pairs y, y', (n, |Y| (|Y| - 1)).

    Examples
    --------
    >>> pair_sums(np.array([[1.0, 0.0]]), np.array([0.5, 0.5]), 0.0).tolist()
    [[2.0, 0.0]]
    """
    return np.asarray(np.maximum(x @ _lines(p_y, epsilon), 0.0))


def _lines(p_y: Array, epsilon: float) -> Array:
    """Columns whose product with x is a r_y - r_y', (|Y|, |Y| (|Y| - 1))."""
    first, second = np.nonzero(~np.eye(len(p_y), dtype=bool))
    at, found = np.arange(len(first)), np.zeros((len(p_y), len(first)))
    found[first, at] = np.exp(-epsilon) / p_y[first]
    found[second, at] = -1.0 / p_y[second]
    return found


def under_pairs(solve: Solve, p_y: Array, epsilon: float, prices: Array) -> Solve:
    """Return a solver of the inner problem less the prices, (|Y| (|Y| - 1),), of the pairs."""
    priced = prices > 0.0
    lines, most = _lines(p_y, epsilon)[:, priced], prices[priced]
    if not priced.any():
        return solve

    def solved(c: Array, limit: int, precision: float, near: Array | None) -> Inner:
        w = np.zeros((len(c), len(most)))
        best = solve(c, limit, precision, near)
        damping, work = np.full(len(c), DAMPING), np.arange(len(c))
        for _ in range(STEPS):
            slope = -best.x[work] @ lines
            free = ~(((w[work] <= 0.0) & (slope >= 0.0)) | ((w[work] >= most) & (slope <= 0.0)))
            going = (np.where(free, np.abs(slope) * most, 0.0).max(axis=1) > FLAT) & (damping[work] < MOST)
            work, slope, free = work[going], slope[going], free[going]
            if not work.size:
                break
            trial = np.clip(w[work] + _step(best.spread[work], lines, slope, free, damping[work]), 0.0, most)
            there = solve(c[work] - trial @ lines.T, limit, precision, best.n[work])
            better = there.value < best.value[work]
            damping[work] *= np.where(better, EASIER, HARDER)
            w[work[better]] = trial[better]
            for old, new in zip(best[:4], there[:4], strict=True):
                old[work[better]] = new[better]
        return best._replace(value=best.value + ULPS * (w @ np.abs(lines).T).max(axis=1), lead=None)

    return solved


def _step(spread: Array, lines: Array, slope: Array, free: Flags, damping: Array) -> Array:
    """Newton's step of the cells of w that are free, (B, K)."""
    total = np.maximum(spread.sum(axis=1), 1e-300)
    across = spread @ lines
    second = lines.T @ (spread[:, :, None] * lines)
    second -= across[:, :, None] * (across / total[:, None])[:, None, :]
    damped = damping * np.maximum(np.diagonal(second, axis1=1, axis2=2).max(axis=1), 1e-12)
    second *= free[:, :, None] & free[:, None, :]
    second += np.eye(lines.shape[1]) * np.where(free, damped[:, None], 1.0)[:, :, None]
    return np.asarray(np.linalg.solve(second, np.where(free, -slope, 0.0)[:, :, None])[:, :, 0])
