"""The inner problem of the price for an f of straight pieces: each cell of x grows along segments, best ones first.

H(r) = r f(1/r) is straight on each piece too. So c_y x(y) - beta p(y) H(x(y)/p(y)) is made of segments whose slopes
fall, and the maximum over the simplex takes the steepest segments of all cells until x sums to 1: a fractional
knapsack, exact.
"""

from __future__ import annotations

import numpy as np

from cvxpriv.divergences import FDivergence
from cvxpriv.numerics.arrays import Array

from .any_conjugate import conjugate_of
from .linear_pieces import Pieces, pieces_of
from .pricing import Inner, Pricing

__all__ = ["solve_segments", "straight_pricing"]


def straight_pricing(channel: Array, p_y: Array, beta: float, divergence: FDivergence) -> Pricing | None:
    """Price over the whole simplex with an f of straight pieces; None where f has others."""
    pieces = pieces_of(divergence)
    if pieces is None:
        return None

    def solve(c: Array, limit: int, precision: float, near: Array | None) -> Inner:
        return solve_segments(c, p_y, beta, pieces)

    return Pricing(channel, p_y, beta, conjugate_of(divergence, 1.0 / float(p_y.min())), solve, smooth=False)


def solve_segments(c: Array, p_y: Array, beta: float, pieces: Pieces) -> Inner:
    """Maximise c.x - beta sum_y p(y) H(x(y)/p(y)) over the simplex, for each row of c; n is the last slope taken.

    Examples
    --------
    >>> from cvxpriv.divergences import divergence
    >>> pieces = pieces_of(divergence("total-variation"))
    >>> solve_segments(np.array([[1.0, 0.0]]), np.array([0.5, 0.5]), 0.2, pieces).x.tolist()
    [[1.0, 0.0]]
    """
    ends = np.concatenate([[0.0], 1.0 / pieces.kinks[::-1], [np.inf]])
    slopes = pieces.intercepts[::-1]
    upper = np.minimum(ends[1:], 1.0 / p_y[:, None])
    lengths = (np.maximum(upper - ends[:-1], 0.0) * p_y[:, None]).ravel()
    gains = (c[:, :, None] - beta * slopes).reshape(len(c), lengths.size)
    order = np.argsort(-gains, axis=1, kind="stable")
    filled = np.cumsum(lengths[order], axis=1)
    taken = np.zeros_like(gains)
    np.put_along_axis(taken, order, np.clip(1.0 - (filled - lengths[order]), 0.0, lengths[order]), axis=1)
    last = np.minimum((filled < 1.0).sum(axis=1, keepdims=True), order.shape[1] - 1)
    n = np.take_along_axis(gains, np.take_along_axis(order, last, axis=1), axis=1)[:, 0]
    # At r = 0 H is the slope of f at infinity. Whatever n is, this is an upper bound.
    value = n + np.maximum(gains - n[:, None], 0.0) @ lengths - beta * float(pieces.slopes[-1])
    x = taken.reshape(len(c), p_y.size, slopes.size).sum(axis=2)
    return Inner(value, x, np.zeros_like(x), n)
