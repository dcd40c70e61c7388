"""The multiplier of I(X;Y) >= R in the u block of PF Algorithm 1: the root of G, and the rows there.

Row i of the block is ``p_i softmax_j(base + lam log w)`` with base = phi + log r, and

    G(lam) = sum_i p_i E_i[log w] - R^,    G'(lam) = sum_i p_i Var_i(log w) >= 0    (docs/errata.md).

Shapes are those of :mod:`cvxpriv_models.privacy_funnel.closed_form`: a leading axis of starts, each with its own root.
"""

from __future__ import annotations

from functools import cached_property, lru_cache, partial

import numpy as np

from cvxpriv.numerics.arrays import Array, Flags, IntArray

FLOOR = -700.0
ROOT_TOLERANCE = 1e-13
ROOT_LIMIT = 60
LARGEST_MULTIPLIER = 1e9
_NEAR = 0.01
_LARGE = 4096
_SAFE_TOTALS = (1e-200, 1e200)
_ALL = slice(None)
# A logit this far below the largest of its row or column is below rounding, even after a move of _NEAR at log w = -700.
_UNSEEN = 75.0
# Share of the cells up to which they are looked at alone; every how many of them are asked first.
_FEW, _SAMPLE = 0.3, 8
# Largest logit at which rows are shifted.
_FAR = 30.0
# Rows that overflow are shifted and evaluated again; a flat G sends the step to infinity, which is outside.
_UNHEEDED = partial(np.errstate, over="ignore", divide="ignore", invalid="ignore")


def constraint_gap(base: Array, log_w: Array, lam: Array, p: Array, target: float) -> tuple[Array, Array]:
    """G and its slope at ``lam``, (B,) each; base and log w are (B, M, N)."""
    with _UNHEEDED():
        rows = TiltedRows(np.array(base), log_w, lam, p, target)
    return rows.gap, rows.slope()


def rows_at_root(base: Array, log_w: Array, p: Array, target: float, start: Array | None = None) -> TiltedRows:
    """The rows at the root of G over ``lam >= 0``, or at 0 where ``G(0) >= 0``.

    `base`, `log_w`: (B, M, N). Rows of ``base`` may be shifted in place, which does not change the answer.
    `p`, `target`: P(x) and R^.
    `start`: A first guess of the multiplier per start, (B,); None is 0.
    Returns: Where G is negative everywhere, which is where ``sum_i p_i max_j log w_ij < R^``, ``lam`` is the largest
    multiplier tried. This never occurs after a feasible step: a row's largest log w is at least its mean, and the mean
    is I(X;Y) - H(X).
    """
    with _UNHEEDED():
        rows = TiltedRows(base, log_w, np.zeros(len(base)) if start is None else start, p, target)
        bracket, half, unsettled = _Bracket(len(base)), np.inf, np.full(len(base), True)
        for _ in range(ROOT_LIMIT):
            error = np.abs(rows.gap)
            unsettled &= error > ROOT_TOLERANCE
            if not np.count_nonzero(unsettled):
                break
            change = -rows.gap / rows.slope()
            end = rows.lam + change
            # Where plain Newton halves |G| each time it needs no bracket. Each start decides for itself, so that it
            # is solved the same alone and in a batch.
            plain = unsettled & (error <= half) & (end > 0.0) & (end < 4.0 * rows.lam + 1.0)
            if np.count_nonzero(plain) < len(base):
                step = bracket.step(rows.lam, rows.gap, change, unsettled & ~plain)
                change = np.where(plain, change, np.where(unsettled, step, 0.0))
                unsettled &= plain | (np.abs(change) > 1e-15 * rows.lam)
            half = 0.5 * error
            rows.move(change)
        rows.settle()
    return rows


class TiltedRows:
    """The rows of the u block at a multiplier that moves, each move one exp of an M x N array per start, in place.

    Where few cells are above the rounding of their rows, small moves look at them alone, and `settle` at all cells.

    `lam`, (B,): The multiplier.
    `logits`, `weights`, (B, M, N): base + lam log w, not below ``floor``, and its exp; at the end log u comes instead.
    `share`, (B, M): p over the row sums of the weights.
    `gap`, (B,): G at lam.
    `floor`, (M, N): ``FLOOR`` as an array: a maximum of two arrays takes half the time of one with a number.
    """

    def __init__(self, base: Array, log_w: Array, lam: Array, p: Array, target: float) -> None:
        self.lam = np.array(lam, dtype=np.float64)
        self.logits, self.weights = np.empty_like(base), np.empty_like(base)
        self.floor, self._ones = _constants(*base.shape[1:])
        self._base, self._log_w, self._p, self._target = base, log_w, p, target
        self.share: Array
        self._few: _FewCells | None = None
        self._begin()

    def move(self, change: Array) -> None:
        """Add ``change``, (B,), to the multipliers. A start's arithmetic does not depend on the others."""
        self.lam = self.lam + change
        if self._log_w[0].size < _LARGE:
            self._evaluate(_ALL, None)
            return
        if self._few is not None:
            if np.abs(self.lam - self._few.lam).max() <= _NEAR:
                self._sum_few(self._few)
            else:
                self._begin()
            return
        far = np.abs(change) > _NEAR
        for some, by in ((far, None), (~far & (change != 0.0), change)):
            if count := np.count_nonzero(some):
                self._evaluate(_ALL if count == change.size else np.flatnonzero(some), by)

    def settle(self) -> None:
        """Bring the weights of all cells to the multiplier, and turn the logits into log u."""
        if self._few is None:
            self.logits += np.log(self.share)[..., None]
            np.maximum(self.logits, self.floor, out=self.logits)
            return
        np.multiply(self._log_w, (self.lam - self._few.lam)[:, None, None], out=self.weights)
        self.logits += self.weights
        self.logits += np.log(self.share)[..., None]
        np.maximum(self.logits, self.floor, out=self.logits)
        seen = self.logits > self.logits.max(axis=-2, keepdims=True) - _UNSEEN  # of its column, whatever its row
        self.weights.fill(0.0)
        np.exp(self.logits, out=self.weights, where=seen)  # u: the rows' sums are those of P(X)
        self.share, self._few = np.ones_like(self.share), None

    def slope(self) -> Array:
        """G', (B,), from the same exp."""
        spread = np.vecdot(self.weights, self._squares) if self._few is None else self._spread
        slope: Array = np.vecdot(self.share, spread) - np.vecdot((self.share * self._means) ** 2, 1.0 / self._p)
        return slope

    @cached_property
    def _squares(self) -> Array:
        squares: Array = self._log_w * self._log_w
        return squares

    def _evaluate(self, some: slice | IntArray, change: Array | None) -> None:
        """Bring some starts to their multiplier; ``change`` is what a small move added to it."""
        logits, weights, log_w = self.logits[some], self.weights[some], self._log_w[some]
        if change is None:
            np.multiply(log_w, self.lam[some, None, None], out=logits)
            logits += self._base[some]
            np.maximum(logits, self.floor, out=logits)  # an exp that underflows is six times as slow
        else:  # small: cells at the floor stay near it
            np.multiply(log_w, change[some, None, None], out=weights)
            logits += weights
        np.exp(logits, out=weights)
        totals = weights @ self._ones
        if change is None and (totals.min() < _SAFE_TOTALS[0] or totals.max() > _SAFE_TOTALS[1]):
            self._shift(some, totals)
            self._evaluate(some, None)
            return
        means, share = np.vecdot(weights, log_w), self._p / totals
        gap = np.vecdot(share, means) - self._target
        if isinstance(some, slice):
            self._means, self.share, self.gap = means, share, gap
        else:
            self._means[some], self.share[some], self.gap[some] = means, share, gap
            self.logits[some], self.weights[some] = logits, weights

    def _begin(self) -> None:
        """Look at few cells where few count, and else at all."""
        self._few, log_w = None, self._log_w
        if log_w[0].size < _LARGE or np.count_nonzero(log_w[..., ::_SAMPLE] > -_UNSEEN) * _SAMPLE > _FEW * log_w.size:
            self._evaluate(_ALL, None)
            return
        np.multiply(log_w, self.lam[:, None, None], out=self.logits)
        self.logits += self._base
        top = self.logits.max(axis=-1, keepdims=True)
        if np.abs(top).max() > _FAR:
            self.logits -= top
            self._base -= top
            top = np.zeros(1)
        self._few = _FewCells(self.logits > top.min() - _UNSEEN, self.logits, log_w, self.lam)
        self._sum_few(self._few)

    def _sum_few(self, few: _FewCells) -> None:
        """Take the sums over rows that the few cells have."""
        totals, self._means, self._spread = few.sums(self.lam)
        self.share = self._p / totals
        self.gap = np.vecdot(self.share, self._means) - self._target

    def _shift(self, some: slice | IntArray, totals: Array) -> None:
        """Lower rows near underflow or overflow by their largest exponent."""
        lost = (totals < _SAFE_TOTALS[0]) | (totals > _SAFE_TOTALS[1])
        top = (self._base[some] + self.lam[some, None, None] * self._log_w[some]).max(axis=-1)
        self._base[some] -= np.where(lost, top, 0.0)[..., None]


class _FewCells:
    """The cells that a mask picks, (B, M, N), at least one in each row, in one vector, and sums over their rows."""

    def __init__(self, some: Flags, logits: Array, log_w: Array, lam: Array) -> None:
        places = np.flatnonzero(some)
        self.lam, self._shape = lam, some.shape[:2]
        self._first = np.searchsorted(places, np.arange(0, some.size, some.shape[2]))
        self._logits, self._log_w = logits.ravel()[places], log_w.ravel()[places]

    def sums(self, lam: Array) -> tuple[Array, Array, Array]:
        """The sums of the weights over each row, and those times log w and its square, (B, M) each."""
        change = lam - self.lam
        if len(lam) > 1:
            each = np.diff(self._first[:: self._shape[1]], append=len(self._logits))
            change = change.repeat(each)
        weights = np.exp(self._logits + self._log_w * change)
        totals = np.add.reduceat(weights, self._first).reshape(self._shape)
        weights *= self._log_w
        means = np.add.reduceat(weights, self._first).reshape(self._shape)
        weights *= self._log_w
        return totals, means, np.add.reduceat(weights, self._first).reshape(self._shape)


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
