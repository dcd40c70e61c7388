"""The multiplier of I(X;Y) >= R in the u block of PF Algorithm 1: the root of G, and the rows there.

Row i of the block is ``p_i softmax_j(base + lam log w)`` with base = phi + log r, and

    G(lam) = sum_i p_i E_i[log w] - R^,    G'(lam) = sum_i p_i Var_i(log w) >= 0    (docs/errata.md).

Shapes are those of :mod:`cvxpriv_models.privacy_funnel.closed_form`: a leading axis of starts, each with its own root.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from cvxpriv.numerics.arrays import Array, Flags, IntArray

FLOOR = -700.0
_LEAST = np.exp(FLOOR)
ROOT_TOLERANCE = 1e-13
ROOT_LIMIT = 60
LARGEST_MULTIPLIER = 1e9
_SAFE_TOTALS = (1e-200, 1e200)
# |G| below which Newton's step needs no correction, and the largest correction, as a part of that step.
_STRAIGHT, _BENT = 1e-8, 0.5
# Steps on a few cells, and the error of the multiplier that is left to the whole.
_FEW_STEPS, _CLOSE = 6, 1e-14
# Rows that overflow are shifted and evaluated again; a flat G sends the step to infinity, which is outside.
_UNHEEDED = partial(np.errstate, over="ignore", divide="ignore", invalid="ignore")


def constraint_gap(base: Array, log_w: Array, lam: Array, p: Array, target: float) -> tuple[Array, Array]:
    """G and its slope at ``lam``, (B,) each; base and log w are (B, M, N)."""
    with _UNHEEDED():
        rows = TiltedRows(np.array(base), log_w, lam, p, target)
    return rows.gap, rows.slope()


def rows_at_root(
    base: Array, log_w: Array, p: Array, target: float, start: Array | None = None, heavy: list[IntArray] | None = None
) -> TiltedRows:
    """The rows at the root of G over ``lam >= 0``, or at 0 where ``G(0) >= 0``.

    `base`, `log_w`: (B, M, N). ``base`` is written over.
    `p`, `target`: P(x) and R^.
    `start`: A first guess of the multiplier per start, (B,); None is 0.
    `heavy`: The cells that weigh, by flat index for each start, where they are few: the guess is first made better on
    them alone, and cells at the floor are not put through exp.
    Returns: Where G is negative everywhere, which is where ``sum_i p_i max_j log w_ij < R^``, ``lam`` is the largest
    multiplier tried. This never occurs after a feasible step: a row's largest log w is at least its mean, and the mean
    is I(X;Y) - H(X).
    """
    with _UNHEEDED():
        first = np.zeros(len(base)) if start is None else start
        if heavy is not None:
            each = zip(base, log_w, first, heavy, strict=True)
            first = np.array([_root_of_few(one, logs, lam, p, target, few) for one, logs, lam, few in each])
        rows = TiltedRows(base, log_w, first, p, target, heavy is not None)
        bracket, half, unsettled = None, np.inf, np.full(len(base), True)
        for _ in range(ROOT_LIMIT):
            error = np.abs(rows.gap)
            unsettled &= error > ROOT_TOLERANCE
            if not np.count_nonzero(unsettled):
                break
            change = rows.step()
            end = rows.lam + change
            # Where the plain step halves |G| each time it needs no bracket. Each start decides for itself, so that it
            # is solved the same alone and in a batch.
            plain = unsettled & (error <= half) & (end > 0.0) & (end < 4.0 * rows.lam + 1.0)
            if np.count_nonzero(plain) < len(base):
                bracket = bracket or _Bracket(len(base))
                step = bracket.step(rows.lam, rows.gap, change, unsettled & ~plain)
                change = np.where(plain, change, np.where(unsettled, step, 0.0))
                unsettled &= plain | (np.abs(change) > 1e-15 * rows.lam)
            half = 0.5 * error
            rows.move(change)
        rows.settle()
    return rows


class TiltedRows:
    """The rows of the u block at a multiplier that moves, each move one exp of an M x N array per start, in place.

    `sparse`: Most cells are at the floor: their exp, a constant, is not computed.

    `lam`, (B,): The multiplier.
    `logits`, `weights`, (B, M, N): base + lam log w, not below ``floor``, and its exp; at the end log u comes instead.
    `share`, (B, M): p over the row sums of the weights.
    `gap`, (B,): G at lam.
    `floor`, (M, N): ``FLOOR`` as an array: a maximum of two arrays takes half the time of one with a number.
    """

    def __init__(self, base: Array, log_w: Array, lam: Array, p: Array, target: float, sparse: bool = False) -> None:
        self.lam = np.array(lam, dtype=np.float64)
        self.logits, self.weights = np.empty(base.shape), np.empty(base.shape)  # one after the other, as `ravel` needs
        self.floor, self._ones = _constants(*base.shape[1:])
        self._base, self._log_w, self._p, self._target, self._sparse = base, log_w, p, target, sparse
        self.share: Array
        self._evaluate()

    def move(self, change: Array) -> None:
        """Add ``change``, (B,), to the multipliers. A start's arithmetic does not depend on the others."""
        self.lam = self.lam + change
        self._evaluate()

    def settle(self) -> None:
        """Turn the logits into log u. The base, which is not needed any more, is written over."""
        np.copyto(self._base, np.log(self.share)[..., None])  # faster than a sum that broadcasts
        self.logits += self._base
        np.maximum(self.logits, self.floor, out=self.logits)

    def slope(self) -> Array:
        """G', (B,), from the same exp. The weights are written over: a move makes them anew."""
        self.weights *= self._log_w
        self.weights *= self._log_w
        self._spread = self.weights @ self._ones
        return np.asarray(
            np.vecdot(self.share, self._spread) - np.vecdot((self.share * self._means) ** 2, 1.0 / self._p)
        )

    def step(self) -> Array:
        """The step towards the root, (B,): Newton's near it, and else that of third order. The weights go with it."""
        slope = self.slope()
        newton: Array = -self.gap / slope
        far = np.abs(self.gap) > _STRAIGHT
        if not np.count_nonzero(far):
            return newton
        self.weights *= self._log_w
        means = self.share * self._means / self._p
        third = self.weights @ self._ones - 3.0 * means * self._spread
        bend = np.vecdot(self.share, third) + 2.0 * np.vecdot(means * means * means, self._p)
        part = 0.5 * newton * bend / slope
        part[~(far & (np.abs(part) < _BENT))] = 0.0
        return np.asarray(newton * (1.0 - part))

    def _evaluate(self) -> None:
        np.multiply(self._log_w, self.lam[:, None, None], out=self.logits)
        self.logits += self._base
        np.maximum(self.logits, self.floor, out=self.logits)  # an exp that underflows is six times as slow
        if self._sparse:
            self.weights.fill(_LEAST)
            cells = np.flatnonzero(self.logits > FLOOR)
            self.weights.ravel()[cells] = np.exp(self.logits.ravel()[cells])
        else:
            np.exp(self.logits, out=self.weights)
        totals = self.weights @ self._ones
        if totals.min() < _SAFE_TOTALS[0] or totals.max() > _SAFE_TOTALS[1]:
            # Rows near underflow or overflow are lowered by their largest exponent.
            lost = (totals < _SAFE_TOTALS[0]) | (totals > _SAFE_TOTALS[1])
            top = (self._base + self.lam[:, None, None] * self._log_w).max(axis=-1)
            self._base -= np.where(lost, top, 0.0)[..., None]
            self._evaluate()
            return
        self._means, self.share = np.vecdot(self.weights, self._log_w), self._p / totals
        self.gap = np.vecdot(self.share, self._means) - self._target


def _root_of_few(base: Array, log_w: Array, lam: float, p: Array, target: float, cells: IntArray) -> float:
    """The root of G of a few cells of (M, N), by flat index, from a guess; the guess where it does not end well."""
    rows = np.searchsorted(cells, np.arange(0, base.size, base.shape[1]))
    if rows[-1] == len(cells) or np.count_nonzero(rows[1:] == rows[:-1]):
        return lam  # a row has none of them
    base, log_w = base.ravel()[cells], log_w.ravel()[cells]
    found = lam
    for _ in range(_FEW_STEPS):
        weights = log_w * found
        weights += base
        np.exp(weights, out=weights)
        share = 1.0 / np.add.reduceat(weights, rows)
        moments = []
        for _ in range(3):
            weights *= log_w
            moments.append(share * np.add.reduceat(weights, rows))
        means, squares, cubes = moments
        gap, slope = p @ means - target, p @ (squares - means * means)
        newton = -gap / slope
        part = 0.5 * newton * (p @ (cubes - means * (3.0 * squares - 2.0 * means * means))) / slope
        found += float(newton * (1.0 - part) if abs(part) < _BENT else newton)
        if not 0.0 < found < 4.0 * lam + 1.0:
            return lam
        if abs(newton * part * part) < _CLOSE:
            return found
    return lam


@lru_cache(maxsize=8)
def _constants(rows: int, columns: int) -> tuple[Array, Array]:
    floor, ones = np.full((rows, columns), FLOOR), np.ones(columns)
    floor.flags.writeable = ones.flags.writeable = False
    return floor, ones


class _Bracket:
    """The known bracket of each root: G < 0 at ``low``, G >= 0 at ``high``; low < 0 and high = inf know nothing."""

    def __init__(self, count: int) -> None:
        self._low, self._high = np.full(count, -1.0), np.full(count, np.inf)

    def step(self, lam: Array, gap: Array, newton: Array, some: Flags) -> Array:
        """Return the step of lam: the Newton step where it stays inside, else bisection, else doubling.

        Only the starts in ``some`` are learnt from.
        """
        np.copyto(self._low, lam, where=some & (gap < 0.0))
        np.copyto(self._high, lam, where=some & (gap >= 0.0))
        end: Array = np.maximum(lam + newton, 0.0)
        inside = (end > self._low) & (end < np.minimum(self._high, 4.0 * lam + 1.0))
        if not inside.all():
            ends = np.maximum(self._low, 0.0), np.minimum(self._high, LARGEST_MULTIPLIER)
            middle = np.where(self._high < np.inf, 0.5 * (ends[0] + ends[1]), 2.0 * lam + 1.0)
            end = np.where(inside, end, middle)
        return np.minimum(end, LARGEST_MULTIPLIER) - lam
