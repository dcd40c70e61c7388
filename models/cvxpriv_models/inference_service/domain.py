"""Mechanisms and distributions from a solver's numbers, which are only nearly feasible."""

from __future__ import annotations

import numpy as np

from cvxpriv.numerics.arrays import Array

__all__ = ["floored_rows", "lifted_rows", "projected_rows"]

#: Share of each symbol's mass that `lifted_rows` moves.
LIFTED = 1e-10


def floored_rows(rows: Array, floor: float) -> Array:
    """Return rows, (..., |U|), that are at least `floor` and sum to 1: the part above the floor is rescaled."""
    above = np.maximum(rows - floor, 0.0)
    total = above.sum(axis=-1, keepdims=True)
    room = 1.0 - rows.shape[-1] * floor
    shares = np.where(total > 0.0, above / np.where(total > 0.0, total, 1.0), 1.0 / rows.shape[-1])
    return np.asarray(floor + room * shares)


def lifted_rows(rows: Array, q: Array, floor: float) -> Array:
    """Return rows, (..., |U|), moved towards q, (|U|,), by at most `LIFTED` of its mass: no cell is 0 where q is not.

    Where p f(q/p) is infinite at p = 0, a solver's 0 would be worth -inf. At an optimum only cells of symbols that are
    hardly ever sent come out as 0, and those symbols are given to every row alike, which costs nothing.
    """
    share = np.minimum(1.0, LIFTED / np.maximum(q, LIFTED))
    return floored_rows((1.0 - share) * rows + share * q, floor)


def projected_rows(rows: Array, floor: float) -> Array:
    """Return the nearest rows, (..., |U|), that are at least `floor` and sum to 1.

    Examples
    --------
    >>> projected_rows(np.array([0.9, 0.5, -0.4]), 0.0).round(12).tolist()
    [0.7, 0.3, 0.0]
    """
    size = rows.shape[-1]
    room = 1.0 - size * floor
    shifted = rows - floor
    falling = -np.sort(-shifted, axis=-1)
    excess = (np.cumsum(falling, axis=-1) - room) / np.arange(1, size + 1)
    kept = np.maximum((falling > excess).sum(axis=-1, keepdims=True), 1)  # floor |U| = 1 keeps nothing by rounding
    threshold = np.take_along_axis(excess, kept - 1, axis=-1)
    return np.asarray(np.maximum(shifted - threshold, 0.0) + floor)
