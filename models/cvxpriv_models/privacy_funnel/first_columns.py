"""The columns that column generation begins with: single symbols, merged pairs, and a grid where symbols are few."""

from __future__ import annotations

import math
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cvxpriv.numerics.arrays import Array

from .pricing_search import on_all_symbols

IntArray: TypeAlias = NDArray[np.intp]

SMALL_X = 6
"""Number of public symbols up to which posteriors on a grid are the first columns."""

GRID_POINTS = 600
"""Most points of the grid: the first program is then solved in less than a millisecond, near the optimum."""

FIRST_PAIRS = 3
"""Merged pairs to begin with, for each symbol of X; more of them only make the first programs larger."""


def first_columns(p_x: Array, a: Array) -> Array:
    """Return singletons, P(X), pairs merged at their prior weights, and for a small X a grid of posteriors, (|X|, n).

    `p_x`: ``(|X|,)``. `a`, ``(|S|, |X|)``: P(S|X).
    """
    size_s, size_x = a.shape
    grid = [_grid(size_x)] if size_s > 2 and 2 < size_x <= SMALL_X else []
    return np.concatenate([np.eye(size_x), p_x[:, None], _merged_pairs(p_x, a), *grid], axis=1)


def _merged_pairs(p_x: Array, a: Array) -> Array:
    size = len(p_x)
    i, j = np.triu_indices(size, 1)
    if len(i) > FIRST_PAIRS * size:  # those with the most alike P(S|x)
        far = np.zeros(len(i))
        for row in a:
            far += np.abs(row[i] - row[j])
        near = np.argsort(far)[: FIRST_PAIRS * size]
        i, j = i[near], j[near]
    weights = np.stack([p_x[i], p_x[j]], axis=1)
    return on_all_symbols(size, np.stack([i, j], axis=1), weights / weights.sum(axis=1, keepdims=True))


@cache
def _grid(size: int) -> Array:
    """The points of the simplex whose coordinates are multiples of 1/n, without its corners, (size, points)."""
    n = 2
    while math.comb(n + size, size - 1) <= GRID_POINTS:
        n += 1
    bars = np.array(np.meshgrid(*[np.arange(n + 1)] * (size - 1), indexing="ij")).reshape(size - 1, -1)
    bars = bars[:, (np.diff(bars, axis=0) >= 0).all(axis=0)]
    points = np.diff(np.vstack([np.zeros_like(bars[:1]), bars, np.full_like(bars[:1], n)]), axis=0)
    grid: Array = points[:, points.max(axis=0) < n] / n
    grid.flags.writeable = False
    return grid
