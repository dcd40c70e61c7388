"""The inner problem of the price where f is made of straight pieces: segments filled in the order of their gains.

Limits of the ratios x/P_Y are a box. Local differential privacy is a union of boxes, one for each least ratio; at a
fixed n the best worth is straight between those least ratios at which an end of the box is at a kink, so that mixtures
of columns of these few boxes do.
"""

from collections.abc import Sequence

import numpy as np

from cvxpriv.bounds.any_conjugate import conjugate_of
from cvxpriv.bounds.linear_pieces import Pieces, pieces_of
from cvxpriv.divergences import FDivergence
from cvxpriv.numerics.arrays import Array

from .pricing import Inner, Pricing

#: Halvings of the bracket of n where boxes are mixed.
HALVINGS = 48


def straight_pricing(
    channel: Array,
    p_y: Array,
    beta: float,
    divergence: FDivergence,
    limits: tuple[float, float],
    epsilon: float | None,
) -> Pricing | None:
    """Price the columns whose ratios x/P_Y are limited, with an f of straight pieces; None where f has others.

    `limits`: The least and the largest ratio.
    `epsilon`: Local differential privacy, in place of them.
    """
    pieces = pieces_of(divergence)
    if pieces is None:
        return None
    conjugate = conjugate_of(divergence, 1.0 / float(p_y.min()))
    tilt = float(conjugate.price(np.array([2.0]))[0] - 2.0 * divergence.f(np.array([0.5]))[0])
    boxes = [limits]
    if epsilon is not None:  # a column's price is straight in its least ratio between these
        width, ratios = float(np.exp(epsilon)), 1.0 / pieces.kinks
        least = np.clip(np.concatenate([[1.0 / width, 1.0], ratios, ratios / width]), 1.0 / width, 1.0)
        boxes = [(one, width * one) for one in np.unique(least).tolist()]

    def solve(c: Array, limit: int, precision: float, near: Array | None) -> Inner:
        found = solve_segments(c, p_y, beta, pieces, boxes)
        return found._replace(n=found.n - beta * tilt)  # n goes with the conjugate, which has a multiple of r - 1 more

    return Pricing(channel, p_y, beta, conjugate, solve, smooth=False)


class _Box:
    """The columns whose ratios are within limits: at their least, and on segments of the price to fill.

    `gains`, (B, L): What a unit of x adds on each. `lengths`, (L,). `base`, (B,): The worth of the least column.
    """

    def __init__(self, c: Array, p_y: Array, beta: float, pieces: Pieces, low: float, high: float) -> None:
        ends = np.concatenate([[0.0], 1.0 / pieces.kinks[::-1], [np.inf]])
        slopes, self.low, self.p_y = pieces.intercepts[::-1], low, p_y
        upper = np.minimum(ends[1:], (np.full_like(p_y, high) if np.isfinite(high) else 1.0 / p_y)[:, None])
        lengths = np.maximum(upper - np.maximum(ends[:-1], low), 0.0) * p_y[:, None]
        self.lengths, self.gains = lengths.ravel(), (c[:, :, None] - beta * slopes).reshape(len(c), lengths.size)
        # At r = 0 H is the slope of f at infinity.
        price = float(pieces.slopes[-1]) + float(np.maximum(np.minimum(ends[1:], low) - ends[:-1], 0.0) @ slopes)
        self.base = low * (c @ p_y) - beta * price

    def worth(self, n: Array) -> Array:
        """The largest worth of columns less n for each unit of x, (B,)."""
        return np.asarray(self.base - n * self.low + np.maximum(self.gains - n[:, None], 0.0) @ self.lengths)

    def filled(self) -> tuple[Array, Array]:
        """The best column of each row that sums to 1, (B, |Y|), and the slope of the segment filled last, (B,)."""
        order, room = np.argsort(-self.gains, axis=1, kind="stable"), 1.0 - self.low
        filled, taken = np.cumsum(self.lengths[order], axis=1), np.zeros_like(self.gains)
        left = np.clip(room - (filled - self.lengths[order]), 0.0, self.lengths[order])
        np.put_along_axis(taken, order, left, axis=1)
        last = np.minimum((filled < room).sum(axis=1, keepdims=True), order.shape[1] - 1)
        n = np.take_along_axis(self.gains, np.take_along_axis(order, last, axis=1), axis=1)[:, 0]
        return self.column(taken), n

    def column(self, taken: Array) -> Array:
        """The columns of what is taken of each segment."""
        return np.asarray(
            self.low * self.p_y
            + taken.reshape(len(taken), self.p_y.size, self.lengths.size // self.p_y.size).sum(axis=2)
        )


def solve_segments(
    c: Array, p_y: Array, beta: float, pieces: Pieces, boxes: Sequence[tuple[float, float]] = ((0.0, np.inf),)
) -> Inner:
    """Maximise c.x - beta sum_y p(y) H(x(y)/p(y)), for each row of c, over columns that sum to 1.

    `boxes`: Limits of the ratios, several of which are mixed. Whatever n is, the value is an upper bound.

    Examples
    --------
    >>> from cvxpriv.divergences import divergence
    >>> pieces = pieces_of(divergence("total-variation"))
    >>> solve_segments(np.array([[1.0, 0.0]]), np.array([0.5, 0.5]), 0.2, pieces).x.tolist()
    [[1.0, 0.0]]
    >>> solve_segments(np.array([[1.0, 0.0]]), np.array([0.5, 0.5]), 0.2, pieces, [(0.5, 2.0)]).x.tolist()
    [[0.75, 0.25]]
    """
    every = [_Box(c, p_y, beta, pieces, *one) for one in boxes]
    x, n = every[0].filled()
    if len(every) > 1:
        x, n = _mixed(every)
    value = n + np.max([one.worth(n) for one in every], axis=0)
    return Inner(value, x, np.zeros_like(x), n)


def _mixed(every: Sequence[_Box]) -> tuple[Array, Array]:
    """The best mixtures of columns of several boxes that sum to 1, and their n: the bracket of n is halved."""
    own = np.array([one.filled()[1] for one in every])
    low, high = own.min(axis=0), own.max(axis=0)
    for _ in range(HALVINGS):
        n = (low + high) / 2.0
        _, total = _best(every, n, above=False)
        low, high = np.where(total >= 1.0, n, low), np.where(total >= 1.0, high, n)
    (more, most), (less, least) = _best(every, low, above=True), _best(every, high, above=False)
    share = np.clip((1.0 - least) / np.maximum(most - least, 1e-300), 0.0, 1.0)[:, None]
    return share * more + (1.0 - share) * less, high


def _best(every: Sequence[_Box], n: Array, above: bool) -> tuple[Array, Array]:
    """The column that is worth most at n, with segments whose gain is n if `above`, and its sum, (B,)."""
    best = np.argmax([one.worth(n) for one in every], axis=0)
    x = np.zeros((len(n), every[0].p_y.size))
    for which, one in enumerate(every):
        rows = best == which
        gains, limit = one.gains[rows], n[rows, None]
        x[rows] = one.column(np.where(gains >= limit if above else gains > limit, one.lengths, 0.0))
    return x, x.sum(axis=1)
