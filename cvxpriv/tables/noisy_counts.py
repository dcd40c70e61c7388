"""Counts with noise made into counts: none below zero, with the right total. It reads nothing but the noisy numbers.

Cutting noisy counts at zero alone would add records: of the noise in empty cells only the positive half would stay, in
a table of many empty cells a large share. The nearest point of the simplex takes the same number from every cell that
stays positive, which is what the positive half brought in.
"""

import numpy as np

from cvxpriv.numerics.arrays import Array, IntArray


def nearest_shares(noisy: Array, total: float) -> Array:
    """Return the numbers >= 0 of a given sum that are nearest to the given ones, in Euclidean distance.

    `total`: > 0.

    >>> nearest_shares(np.array([5.0, -2.0, 1.0]), 5.0)
    array([4.5, 0. , 0.5])
    """
    return np.asarray(nearest_tables(np.asarray(noisy)[None], total)[0])


def nearest_tables(noisy: Array, total: float) -> Array:
    """Return `nearest_shares` of each of several tables, ``(tables, ...)``."""
    flat = np.asarray(noisy, dtype=np.float64).reshape(len(noisy), -1)
    falling = -np.sort(-flat, axis=1)
    shifts = (np.cumsum(falling, axis=1) - total) / np.arange(1, flat.shape[1] + 1)
    kept = flat.shape[1] - 1 - np.argmax((falling > shifts)[:, ::-1], axis=1)
    cut = shifts[np.arange(len(flat)), kept]
    return np.asarray(np.maximum(flat - cut[:, None], 0.0)).reshape(np.shape(noisy))


def whole_counts(shares: Array, total: int) -> IntArray:
    """Return whole numbers of the given sum, each within 1 of the share: the largest remainders are rounded up.

    >>> whole_counts(np.array([4.5, 0.2, 0.3]), 5)
    array([5, 0, 0])
    """
    counts = np.floor(shares).astype(np.int64)
    left = total - int(counts.sum())
    largest = np.argsort(-(shares - counts).ravel(), kind="stable")[:left]
    counts.ravel()[largest] += 1
    return counts
