"""The simplex of distributions: the nearest point of it, and a grid over it."""

from itertools import combinations

import numpy as np

from cvxpriv.numerics.arrays import Array


def projected_rows(rows: Array, floor: float = 0.0) -> Array:
    """Return the nearest rows, (..., n), that are at least `floor`, which is at most 1/n, and sum to 1.

    >>> projected_rows(np.array([0.9, 0.5, -2.0])).round(12).tolist()
    [0.7, 0.3, 0.0]
    """
    size = rows.shape[-1]
    # Constants do not move a row's projection, and entries more than 1 below the largest end at the floor: with both
    # taken out, the cumulative sums stay exact for rows of any size.
    shifted = np.maximum(rows - rows.max(axis=-1, keepdims=True), -2.0)
    falling = -np.sort(-shifted, axis=-1)
    excess = np.cumsum(falling, axis=-1) - (1.0 - size * floor)
    kept = (falling * np.arange(1, size + 1) > excess).sum(axis=-1, keepdims=True)
    kept = np.maximum(kept, 1)  # floor n = 1 keeps nothing by rounding
    level = np.take_along_axis(excess, kept - 1, axis=-1) / kept
    return np.asarray(np.maximum(shifted - level, 0.0) + floor)


def simplex_grid(size: int, parts: int) -> Array:
    """Return the distributions on `size` symbols whose entries are multiples of 1/parts, (size, n).

    >>> simplex_grid(2, 2).tolist()
    [[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]]
    """
    bars = np.array(list(combinations(range(parts + size - 1), size - 1)), dtype=int)
    ends = np.hstack([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), parts + size - 1)])
    return np.asarray((np.diff(ends, axis=1) - 1).T / parts)
