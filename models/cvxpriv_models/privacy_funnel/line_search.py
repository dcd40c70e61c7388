"""The step along a direction of ``interior.py``: I(S;Y) must fall, I(X;Y) must stay at least R."""

from __future__ import annotations

import numpy as np

from cvxpriv.numerics.arrays import Array, Flags, IntArray
from cvxpriv_models.privacy_funnel import closed_form, interior

RISE = 1e-14
"""Largest rise of I(S;Y) in an accepted step: its own rounding."""

SHORTFALL = 1e-13
"""Largest distance of I(X;Y) below R."""

_SHORTEST = 0.01
_HALVINGS = 30
_LONGER = 4.0 ** np.arange(1, 7)
_CELLS_AT_ONCE = 20_000


def value_of(u: Array, s: Array) -> Array:
    """-H(S|Y): I(S;Y) up to a constant, (B,)."""
    joint = s @ u
    mass = u.sum(axis=-2)
    return interior.over_cells(joint, np.log(np.maximum(joint / mass[:, None, :], 1e-300)))


def rate_of(u: Array) -> tuple[Array, Array]:
    """``sum u log w``, (B,), and log w."""
    log_w = np.log(u / u.sum(axis=-2)[:, None, :])
    return interior.over_cells(u, log_w), log_w


def is_feasible(u: Array, target: float) -> Flags:
    """Whether I(X;Y) >= R to ``SHORTFALL``, (B,)."""
    feasible: Flags = rate_of(u)[0] >= target - SHORTFALL
    return feasible


def feasible_rows(log_u: Array, p: Array, target: float) -> Array:
    """The rows tilted by their own log w until I(X;Y) >= R: the u block with phi + log r replaced by log u."""
    log_r = closed_form.marginal(log_u)
    tilted, _ = closed_form.mechanism(closed_form.posterior(log_u, log_r), log_r, log_u - log_r[:, None, :], p, target)
    return tilted


class LineSearch:
    """Backtracking, and lengthening, along a direction; cells lose at most 99% a step, so that none blocks the rest.

    Small problems try several lengths in one call; the length taken is the same.
    """

    def __init__(self, at: interior.Point, towards: interior.Direction, p: Array, s: Array, target: float) -> None:
        self._at, self._towards = at, towards
        self._p, self._s, self._target = p, s, target
        self._before = value_of(at.u, s)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            worst = (towards.step / at.u).reshape(len(at.u), -1).min(axis=-1)
            self._room = np.minimum(1.0, 0.99 / np.maximum(-worst, 0.99))
        finite = np.isfinite(towards.step).all(axis=(-2, -1)) & np.isfinite(towards.lift).all(axis=(-2, -1))
        self._usable = finite & (towards.slope <= RISE)
        self._at_once = int(np.clip(_CELLS_AT_ONCE // at.u.size, 1, 4))

    def run(self, newton: Array) -> tuple[Array, Array, Flags]:
        """The new u, the accepted length, 0 where none was, and whether one was accepted."""
        best, value, length = self._at.u.copy(), self._before.copy(), np.zeros(len(newton))
        ladder = self._shorter(newton)
        fall = 1e-4 * np.minimum(self._towards.slope, 0.0)
        todo = np.flatnonzero(self._usable)
        for k in range(0, len(ladder), self._at_once):
            if not todo.size:
                break
            tried = ladder[k : k + self._at_once, todo]
            u, reached, feasible = self._trials(todo, tried)
            good = feasible & (tried > 0.0) & (reached <= self._before[todo] + tried * fall[todo] + RISE)
            won = np.flatnonzero(good.any(axis=0))
            first = good.argmax(axis=0)[won]
            best[todo[won]], value[todo[won]], length[todo[won]] = u[first, won], reached[first, won], tried[first, won]
            todo = todo[~good.any(axis=0) & (tried[-1] > 0.0)]
        self._lengthen(np.flatnonzero((length == 1.0) & (newton == 0.0)), best, value, length)
        return best, length, length > 0.0

    def _shorter(self, newton: Array) -> Array:
        """Lengths to try in turn, (tries, B): 1, then geometric from where no cell dies; 0 where too short."""
        powers = np.where(newton > 0.0, 0.25, 0.5) ** np.arange(_HALVINGS)[:, None]
        ladder = np.concatenate([np.ones((1, len(newton))), np.clip(self._room, 0.1, 0.5) * powers])
        return np.where(ladder >= _SHORTEST * self._room, ladder, 0.0)

    def _lengthen(self, work: IntArray, best: Array, value: Array, length: Array) -> None:
        """Four times the length while I(S;Y) falls: the convex-concave model is too cautious along a valley."""
        for k in range(0, len(_LONGER), self._at_once):
            if not work.size:
                break
            tried = np.repeat(_LONGER[k : k + self._at_once, None], work.size, axis=1)
            u, reached, feasible = self._trials(work, tried)
            falls = feasible & (reached < np.concatenate([value[None, work], reached[:-1]]) - RISE)
            good = np.logical_and.accumulate(falls, axis=0)
            won = np.flatnonzero(good[0])
            last = good.sum(axis=0)[won] - 1
            best[work[won]], value[work[won]], length[work[won]] = u[last, won], reached[last, won], tried[last, won]
            work = work[good[-1]]

    def _trials(self, work: IntArray, lengths: Array) -> tuple[Array, Array, Flags]:
        """:meth:`_trial` of each start at each of its lengths, (tries, work)."""
        u, value, feasible = self._trial(np.tile(work, len(lengths)), lengths.ravel())
        return u.reshape(*lengths.shape, *u.shape[1:]), value.reshape(lengths.shape), feasible.reshape(lengths.shape)

    def _trial(self, work: IntArray, length: Array) -> tuple[Array, Array, Flags]:
        """u + length d, the slack spent again along -lift: the new u, its value, and whether it is feasible."""
        old, lift = self._at.u[work], self._towards.lift[work]
        u = np.maximum(old + length[:, None, None] * self._towards.step[work], 0.01 * old)
        u = interior.mechanism_of(u, self._p)
        value, (rate, log_w) = value_of(u, self._s), rate_of(u)
        # I(X;Y) is convex: giving up its excess along its tangent at u cannot make it infeasible.
        gain = interior.over_cells(log_w, lift)
        spend = (rate - self._target) / np.where(gain > 0.0, gain, np.inf)
        spend = np.where((spend > 0.0) & (self._towards.lam[work] > 0.0), spend, 0.0)
        share = spend * (lift / u).reshape(len(u), -1).max(axis=-1)
        spend *= np.minimum(1.0, 0.9 / np.maximum(share, 0.9))
        spent = interior.mechanism_of(u - spend[:, None, None] * lift, self._p)
        lower = value_of(spent, self._s)
        better = lower < value
        u = np.where(better[:, None, None], spent, u)
        return u, np.where(better, lower, value), is_feasible(u, self._target)
