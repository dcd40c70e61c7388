"""Costs of a column that are largest values of lines, each with a price.

Most constraints on a mechanism are sums over outputs of a convex cost of the column x, or ask that such a cost is not
above 0: (epsilon, delta)-local differential privacy of (a r_y - r_y')_+ with the ratios r_y = x(y)/p(y), group fairness
of |d.x|, Bayes vulnerability of the largest gain.x, metric privacy of r_y - e^d r_y'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cvxpriv.numerics.arrays import Array, Flags

#: The part of the way to an end that a step may go.
TOUCH = 0.995
#: The first weight of a line without an end.
START = 0.1


@dataclass(frozen=True, eq=False)
class Lines:
    """Costs of a column x, each from lines.

    `sort`: "above", a cost (l.x)_+ for each line; "away", |l.x| for each; "most", one cost, the largest l.x of all;
    "never", l.x <= 0 for each line.
    `lines`: (|Y|, J).
    `upper`: Upper end of the sum of each cost over columns; none for "never".
    """

    sort: str
    lines: Array
    upper: float = 0.0

    @property
    def ends(self) -> list[float]:
        """The upper ends of the sums."""
        count = {"never": 0, "most": 1}.get(self.sort)
        return (self.lines.shape[1] if count is None else count) * [self.upper]

    @property
    def size(self) -> int:
        """The number of lines, each of "away" with its mirror image."""
        return int(self.lines.shape[1]) * (2 if self.sort == "away" else 1)

    def costs(self, x: Array) -> Array:
        """Return the costs of columns, (n, k).

        Examples
        --------
        >>> Lines("above", np.array([[2.0, -2.0], [-2.0, 2.0]]), 0.1).costs(np.array([[1.0, 0.0]])).tolist()
        [[2.0, 0.0]]
        """
        value = x @ self.lines
        if self.sort == "most":
            return np.asarray(value.max(axis=1, keepdims=True))
        return np.asarray({"above": np.maximum(value, 0.0), "away": np.abs(value)}.get(self.sort, value[:, :0]))

    def active(self, x: Array, prices: Array) -> Array:
        """Return the weights of lines with which they touch the costs at columns, (n, size), where those have prices.

        Examples
        --------
        >>> Lines("away", np.array([[2.0], [-2.0]]), 0.1).active(np.array([[0.2, 0.8]]), np.array([3.0])).tolist()
        [[0.0, 3.0]]
        """
        value = x @ self.lines
        if self.sort == "most":
            return np.asarray(prices[0] * np.eye(self.size)[value.argmax(axis=1)])
        above = (value > 0.0) * prices
        return np.hstack([above, (value < 0.0) * prices]) if self.sort == "away" else np.asarray(above)

    @property
    def sides(self) -> Array:
        """The lines, each of "away" with its mirror image after all, (|Y|, size)."""
        return np.hstack([self.lines, -self.lines]) if self.sort == "away" else self.lines

    def kept(self, x: Array, prior: Array) -> Array:
        """Return columns, (n, |Y|), moved towards the prior until none breaks what each of them has to obey."""
        if self.sort != "never":
            return x
        over, room = np.maximum(x @ self.lines, 0.0), np.maximum(-(prior @ self.lines), 0.0)
        share = np.divide(over, over + room, out=np.zeros_like(over), where=over > 0.0).max(axis=1, initial=0.0)[
            :, None
        ]
        return np.asarray((1.0 - share) * x + share * prior)


class Weights(NamedTuple):
    """All lines, (|Y|, K), and what w may be: between 0 and its high end, and for "most" of a given sum.

    `lines`: A line of "away" stands here with its mirror image, and half of each price: |t| is t_+ + (-t)_+.
    `high`: (K,). `group`, (G, K): Which lines have a sum. `sums`: (G,). `kept`: Mask of the lines that are here.
    """

    lines: Array
    high: Array
    group: Array
    sums: Array
    kept: Flags

    @classmethod
    def of(cls, every: Sequence[Lines], prices: Array) -> Weights:
        """Return those of costs at prices in the order of `Lines.ends`; lines that no price allows are left out."""
        lines, high, group, sums = [], [], [], list[float]()
        for one in every:
            own, prices = prices[: len(one.ends)], prices[len(one.ends) :]
            sides = [one.lines, -one.lines] if one.sort == "away" else [one.lines]
            limits = {"never": np.inf, "most": 2.0 * own.sum() if one.sort == "most" else 0.0}.get(one.sort, own)
            for side in sides:
                lines.append(side)
                high.append(np.broadcast_to(limits, side.shape[1]))
                group.append(np.full(side.shape[1], len(sums) if one.sort == "most" else -1))
            sums += own.tolist() if one.sort == "most" else []
        kept = np.concatenate(high) > 0.0
        member = np.concatenate(group)[kept] == np.arange(len(sums))[:, None]
        alive = member.any(axis=1)
        some, ends = np.hstack(lines)[:, kept], np.concatenate(high)[kept]
        return cls(some, ends, 1.0 * member[alive], np.array(sums)[alive], kept)

    def first(self) -> Array:
        """The w to begin with: the middle, and equal shares of each sum."""
        start = np.where(np.isfinite(self.high), self.high / 2.0, START)
        shares = self.sums / self.group.sum(axis=1)
        return np.asarray(np.where(self.group.any(axis=0), shares @ self.group, start))


def until(value: Array, step: Array) -> Array:
    """The largest part of a step, at most 1, that keeps values above 0, (B,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(step < 0.0, value / -step, np.inf).min(axis=1)
    return np.asarray(np.minimum(TOUCH * share, 1.0))
