"""How far to go along a direction of ``interior.py``: I(S;Y) must fall, I(X;Y) must stay at least R."""

from __future__ import annotations

import numpy as np

from cvxpriv_models.privacy_funnel import closed_form, interior
from cvxpriv_models.privacy_funnel.closed_form import Array, Flags, Indices

RISE = 1e-14
"""What I(S;Y) may rise in an accepted step: its own rounding."""

SHORTFALL = 1e-13
"""What I(X;Y) may fall short of R by."""

_HALVINGS = 30
_DOUBLINGS = 6


def value_of(u: Array, s: Array) -> Array:
    """-H(S|Y): I(S;Y) up to a constant, (B,)."""
    joint = s @ u
    mass = u.sum(axis=-2)
    value: Array = np.sum(joint * np.log(np.maximum(joint / mass[:, None, :], 1e-300)), axis=(-2, -1))
    return value


def rate_of(u: Array) -> tuple[Array, Array]:
    """``sum u log w``, (B,), and log w."""
    log_w = np.log(u / u.sum(axis=-2)[:, None, :])
    rate: Array = np.sum(u * log_w, axis=(-2, -1))
    return rate, log_w


def is_feasible(u: Array, target: float) -> Flags:
    """Whether I(X;Y) >= R to ``SHORTFALL``, (B,)."""
    feasible: Flags = rate_of(u)[0] >= target - SHORTFALL
    return feasible


def feasible_rows(log_u: Array, p: Array, target: float) -> Array:
    """The rows tilted by their own log w until I(X;Y) >= R: the u block with phi + log r replaced by log u."""
    log_r = closed_form.marginal(log_u)
    tilted, _ = closed_form.mapping(closed_form.posterior(log_u, log_r), log_r, log_u - log_r[:, None, :], p, target)
    return tilted


class LineSearch:
    """Backtracking, and lengthening, along a direction; cells lose at most 99% a step, so that none blocks the rest."""

    def __init__(self, at: interior.Point, towards: interior.Direction, p: Array, s: Array, target: float) -> None:
        self._at, self._towards = at, towards
        self._p, self._s, self._target = p, s, target
        self._before = value_of(at.u, s)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            worst = np.min(towards.step / at.u, axis=(-2, -1))
            self._room = np.minimum(1.0, 0.99 / np.maximum(-worst, 0.99))
        finite = np.isfinite(towards.step).all(axis=(-2, -1)) & np.isfinite(towards.lift).all(axis=(-2, -1))
        self._usable = finite & (towards.slope <= RISE)

    def run(self, newton: Array) -> tuple[Array, Array, Flags]:
        """The new u, the accepted length (the last one tried where none was), and whether one was accepted."""
        best, length = self._at.u.copy(), np.ones(len(newton))
        value, moved = self._before.copy(), np.zeros(len(newton), dtype=np.bool_)
        todo = self._usable.copy()
        for k in range(_HALVINGS):
            work = np.flatnonzero(todo)
            if not work.size:
                break
            u, reached, feasible = self._trial(work, length[work])
            wanted = self._before[work] + 1e-4 * length[work] * np.minimum(self._towards.slope[work], 0.0) + RISE
            good = feasible & (reached <= wanted)
            won, lost = work[good], work[~good]
            best[won], value[won], moved[won], todo[won] = u[good], reached[good], True, False
            shorter = np.where(newton[lost] > 0.0, 0.25, 0.5) * length[lost]
            length[lost] = np.clip(self._room[lost], 0.1, 0.5) if k == 0 else shorter
            todo &= (newton == 0.0) | (length >= 0.01 * self._room)
        self._lengthen(np.flatnonzero(moved & (length == 1.0) & (newton == 0.0)), best, value, length)
        return best, length, moved

    def _lengthen(self, work: Indices, best: Array, value: Array, length: Array) -> None:
        """Four times the length while I(S;Y) falls: the convex-concave model is too cautious along a valley."""
        for k in range(1, _DOUBLINGS + 1):
            if not work.size:
                break
            u, reached, feasible = self._trial(work, np.full(work.size, 4.0**k))
            good = feasible & (reached < value[work] - RISE)
            work = work[good]
            best[work], value[work], length[work] = u[good], reached[good], 4.0**k

    def _trial(self, work: Indices, length: Array) -> tuple[Array, Array, Flags]:
        """u + length d, the slack spent again along -lift: the new u, its value, and whether it is feasible."""
        old, lift = self._at.u[work], self._towards.lift[work]
        u = np.maximum(old + length[:, None, None] * self._towards.step[work], 0.01 * old)
        u = interior.mechanism_of(u, self._p)
        value, (rate, log_w) = value_of(u, self._s), rate_of(u)
        # I(X;Y) is convex: giving up its excess along its tangent at u cannot make it infeasible.
        gain = np.sum(log_w * lift, axis=(-2, -1))
        spend = (rate - self._target) / np.where(gain > 0.0, gain, np.inf)
        spend = np.where((spend > 0.0) & (self._towards.lam[work] > 0.0), spend, 0.0)
        share = np.max(spend[:, None, None] * lift / u, axis=(-2, -1))
        spend *= np.minimum(1.0, 0.9 / np.maximum(share, 0.9))
        spent = interior.mechanism_of(u - spend[:, None, None] * lift, self._p)
        lower = value_of(spent, self._s)
        better = lower < value
        u = np.where(better[:, None, None], spent, u)
        return u, np.where(better, lower, value), is_feasible(u, self._target)
