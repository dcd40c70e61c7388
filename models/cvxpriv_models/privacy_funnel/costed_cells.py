"""The least phi over all posteriors where convex costs of a column have prices, by cutting the simplex.

    phi(pi) = -H(A pi) + lam H(pi) - nu.pi + sum_k mu_k m_k(pi)

In a cell, a simplex, every convex part is at least its tangent at a point of the cell, and lam H at least its chord:
the corners of the cell bound the sum. A cost from lines is one of them on either side of a kink, so that cells are cut
there first; cells where a column breaks what each has to obey are dropped. No other argument is needed, at any |S|; the
cells have |X| - 1 dimensions, so that |X| has to be small.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxpriv.bounds.bent_columns import ULPS
from cvxpriv.bounds.column_costs import Bent
from cvxpriv.bounds.columns import OUT_OF_TIME, Clock, Verified
from cvxpriv.bounds.lines import Lines
from cvxpriv.numerics.arrays import Array, Flags, IntArray
from cvxpriv.tables.information import entropy

#: Cells in one batch, columns that end a search, and points tried for the tangent of a cell.
BATCH, ENOUGH, TANGENTS = 20_000, 200, 6
#: Room for rounding where a cell is cut at the end of what a column has to obey.
OUTSIDE = 1e-10
#: A kink is cut where it may take this share of what the bound of a cell lacks; the weight of one that no column may
#: pass.
KINK_SHARE, STEEP = 0.25, 1e6
#: A cost above this is none that a column is worth.
DEAR = 1e6
LEAST = 1e-300


@dataclass(frozen=True, eq=False)
class Phi:
    """phi at given multipliers.

    `a`, (|S|, |X|): P(S|X).
    `linear`, (|X|,): What stands in place of -nu.
    `lines`, `bent`: Costs with their prices.
    `allowed`, (|X|,): Symbols that may have mass.
    """

    a: Array
    lam: float
    linear: Array
    lines: Sequence[tuple[Lines, Array]]
    bent: Sequence[tuple[Bent, Array]]
    allowed: Flags

    def at(self, x: Array) -> Array:
        """Return phi at rows of columns, (n, |X|); infinite where a column breaks what each has to obey."""
        value = self.lam * entropy(x, axis=1) - entropy(x @ self.a.T, axis=1) + x @ self.linear
        for one, prices in self.bent:
            value = value + np.minimum(one.values(x), DEAR) @ prices
        for line, prices in self.lines:
            value = value + line.costs(x) @ prices
            if line.sort == "never":
                value = np.where((x @ line.lines > 0.0).any(axis=1), np.inf, value)
        return np.asarray(value)

    def tangent(self, x: Array) -> Array:
        """Return lines, (n, |X|), that the convex parts of phi are nowhere below, and touch at x."""
        found = np.log(np.maximum(x @ self.a.T, LEAST)) @ self.a + self.linear
        for one, prices in self.bent:
            found = found + np.einsum("k,kyn->ny", prices, one.tangents(x))
        for line, prices in self.every_line():
            if line.sort != "never":
                found = found + line.active(x, prices) @ line.sides.T
        return np.asarray(found)

    def every_line(self) -> list[tuple[Lines, Array]]:
        """Return all costs from lines that have a price, kinks of those that bend too, with their prices."""
        kinks = [(one.kinks[0], prices[0] * one.kinks[1]) for one, prices in self.bent if one.kinks is not None]
        return [(line, own) for line, own in (*self.lines, *kinks) if line.sort == "never" or own.any()]

    def kinks(self) -> tuple[Array, Array]:
        """Return lines, (|X|, K), at which phi has a kink or ends, and how steep each is, (K,); one that ends: inf."""
        lines, steep = [np.zeros((len(self.linear), 0))], [np.zeros(0)]
        for line, prices in self.every_line():
            if line.sort == "most":
                first, second = np.triu_indices(line.lines.shape[1], k=1)
                lines.append(line.lines[:, first] - line.lines[:, second])
                steep.append(np.full(len(first), prices[0]))
            else:
                lines.append(line.lines)
                ends = np.full(line.lines.shape[1], np.inf)
                steep.append(ends if line.sort == "never" else (1.0 + (line.sort == "away")) * prices)
        every, worth = np.hstack(lines), np.concatenate(steep)
        return every[:, worth > 0.0], worth[worth > 0.0]


def least_phi(phi: Phi, level: float, out_of_time: Clock) -> Verified:
    """Prove phi >= `level` everywhere, or find columns below it; the clock ends it with the bound so far."""
    lines, steep = phi.kinks()
    ends = ~np.isfinite(steep)
    corners = np.eye(len(phi.linear))[phi.allowed][None]
    waiting, lows = [corners], [np.array([-np.inf])]
    found, count = [np.zeros((0, len(phi.linear)))], 0
    while waiting:
        over = out_of_time()
        if over or count >= ENOUGH:
            least = min(level, *(float(low.min()) for low in lows))
            return Verified(least, np.concatenate(found).T, OUT_OF_TIME if over else "")
        cells, _ = waiting.pop(), lows.pop()
        side = cells @ lines
        outside = np.all(side[:, :, ends] > OUTSIDE / 2.0, axis=1)
        inside = ~np.any(outside, axis=1)
        cells, side = cells[inside], side[inside]
        low, _ = _lows(phi, cells, level)
        left = low < level
        cells, side, low = cells[left], side[left], low[left]
        if not len(cells):
            continue
        flat = cells.reshape(-1, cells.shape[2])
        value = phi.at(flat)
        below = np.flatnonzero(value < level)
        found.append(flat[below[np.argsort(value[below], kind="stable")[:ENOUGH]]])
        count += len(found[-1])
        halves, *_ = _halves(cells, side, steep, level - low)
        both = np.concatenate([low, low])
        for first in range(0, len(halves), BATCH):
            waiting.append(halves[first : first + BATCH])
            lows.append(both[first : first + BATCH])
    return Verified(level, np.concatenate(found).T, "")


def tree_of(phi: Phi, level: float, most: int, out_of_time: Clock) -> tuple[list[Any], list[Array]]:
    """Return cells that prove phi >= `level`, and a point in each at which the convex parts' tangents do.

    A node is the number of a point, or a cut [i, j, share] and the numbers of the two nodes behind it. At `most` nodes,
    or once the time is over, cells stay as they are. No line may be one that a column never passes.
    """
    lines, steep = phi.kinks()
    cells, names = np.eye(len(phi.linear))[phi.allowed][None], np.array([0])
    nodes, points = list[Any]([None]), list[Array]()
    while True:
        low, at = _lows(phi, cells, level)
        done = (low >= level) | (len(nodes) > most) | (cells.shape[1] == 1) | out_of_time()
        for name, point in zip(names[done].tolist(), at[done], strict=True):
            nodes[name] = len(points)
            points.append(point)
        names, cells = names[~done], cells[~done]
        if not len(names):
            return nodes, points
        cells, first, second, share = _halves(cells, cells @ lines, steep, level - low[~done])
        later = len(nodes) + np.arange(2 * len(names))
        for k, name in enumerate(names.tolist()):  # the half in which the second corner stays is the first
            cut = [int(first[k]), int(second[k]), float(share[k])]
            nodes[name] = (cut, int(later[k]), int(later[len(names) + k]))
        nodes += [None] * len(later)
        names = later


def _lows(phi: Phi, cells: Array, level: float) -> tuple[Array, Array]:
    """A bound of phi in each cell, (n,), from the best of a few tangents, and where that one touches, (n, |X|)."""
    chord = phi.lam * entropy(cells, axis=2)
    point = cells.mean(axis=1)
    low, work, best = np.full(len(cells), -np.inf), np.arange(len(cells)), point.copy()
    for trial in range(TANGENTS + 1):
        slope = phi.tangent(point)
        value = np.einsum("nky,ny->nk", cells[work], slope) + chord[work]
        size = np.abs(slope).max(axis=1, initial=0.0) + chord[work].max(axis=1, initial=0.0) + 1.0
        # a tangent that is not a number is no better: it proves nothing
        here = value.min(axis=1) - len(phi.linear) * ULPS * size
        better = here > low[work]
        low[work[better]], best[work[better]] = here[better], point[better]
        going = low[work] < level
        if not going.any():
            break
        work, worst = work[going], value[going].argmin(axis=1)
        step = 1.4 / (trial + 3.0)  # Frank and Wolfe's way to the lowest point of the cell
        point = point[going] + step * (cells[work, worst] - point[going])
    return low, best


def _halves(cells: Array, side: Array, steep: Array, lacking: Array) -> tuple[Array, IntArray, IntArray, Array]:
    """The halves of cells, cut where a kink takes much of what their bound lacks, else across the longest edge.

    Beside them the corners that are cut between, and the share of the way from the first to the second.
    """
    row = np.arange(len(cells))
    apart = np.square(cells[:, :, None] - cells[:, None]).sum(axis=3).reshape(len(cells), -1)
    first, second = np.divmod(apart.argmax(axis=1), cells.shape[1])
    share = np.full(len(cells), 0.5)
    if len(steep):
        over = np.minimum(side.max(axis=1), -side.min(axis=1))
        loss = np.where(over > 2.0 * OUTSIDE, over * np.minimum(steep, STEEP), 0.0)
        kink = loss.argmax(axis=1)
        cut = loss[row, kink] > KINK_SHARE * lacking
        value = side[row, :, kink]
        low, high = value.argmin(axis=1), value.argmax(axis=1)
        goal = np.where(np.isfinite(steep[kink]), 0.0, OUTSIDE)
        with np.errstate(divide="ignore", invalid="ignore"):
            there = (goal - value[row, low]) / (value[row, high] - value[row, low])
        first, second = np.where(cut, low, first), np.where(cut, high, second)
        share = np.where(cut, there, share)
    middle = cells[row, first] + share[:, None] * (cells[row, second] - cells[row, first])
    one, other = cells.copy(), cells.copy()
    one[row, first], other[row, second] = middle, middle
    return np.concatenate([one, other]), first, second, share
