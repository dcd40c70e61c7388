"""Released symbols of almost no mass: the useful ones return, the others follow a live one.

The derivatives of a column without mass say nothing by cell: what counts is its price, what a unit of mass with the
column's posterior adds to the Lagrangian.
"""

from __future__ import annotations

import numpy as np

from cvxpriv.numerics.arrays import Array, Flags, IntArray
from cvxpriv_models.privacy_funnel import interior

from .line_search import RISE, SHORTFALL, feasible_rows, is_feasible, rate_of, value_of

_AKIN = 1e-2
_TINY = float(np.finfo(np.float64).tiny)
_FREE_PRICE = -1e-9
_NEW_MASSES = np.array([1e-1, 1e-2, 1e-3, 1e-4, 1e-5])


def settle_light_columns(
    at: interior.Point, lam: Array, near: Flags, p: Array, s: Array, target: float
) -> Array | None:
    """Columns of almost no mass, where a start is near its end: the useful ones return, the others follow a live one.

    Column j's price is ``sum_i w_ij (g_ij - alpha_i)``: what a unit of mass with posterior w_j adds to the Lagrangian.
    """
    light = (at.mass < interior.LIGHT) & near[:, None]
    if not light.any():
        return None
    slopes = at.rise - lam[:, None, None] * at.log_w - interior.row_prices(at, lam)[..., None]
    price = np.where(light, np.sum(np.exp(at.log_w) * slopes, axis=-2), 0.0)
    idle, work = light & (price > _FREE_PRICE), np.flatnonzero(price.min(axis=-1) < _FREE_PRICE)
    if not work.size:
        return _retired(at, idle, p)
    column = price[work].argmin(axis=-1)
    revived, better = _revive(at.u[work], np.exp(at.log_w[work]), column, p, s, target)
    idle[work, column] = ~better  # what no mass helps is idle too
    u = _retired(at, idle, p)
    u[work[better]] = revived[better]
    return u


def _retired(at: interior.Point, idle: Flags, p: Array) -> Array:
    """u with each idle column at the posterior of the live column nearest to it, where that is not felt.

    Its own would get there too, but only as 1/k. The two take the posterior of their sum: rows keep their sums, and
    I(X;Y) loses the idle column's mass times the divergence of the posteriors.
    """
    u = at.u.copy()
    some = np.flatnonzero(idle.any(axis=-1))
    w, log_w, mass = np.exp(at.log_w[some]), at.log_w[some], at.mass[some]
    distance = np.sum(w * log_w, axis=-2)[..., None] - np.swapaxes(w, -1, -2) @ log_w
    distance = np.where((mass < interior.LIGHT)[:, None, :], np.inf, distance)
    least = distance.min(axis=-1)
    # A column far from every live one may still find a posterior of use: it keeps its own until nothing is left of it.
    unfelt = idle[some] & (mass * least < np.where(least < _AKIN, SHORTFALL, RISE / 10.0))
    follows = np.where(unfelt, distance.argmin(axis=-1), np.arange(mass.shape[-1]))
    joined = u[some] @ (follows[..., None] == np.arange(mass.shape[-1]))
    posterior = joined / np.maximum(joined.sum(axis=-2, keepdims=True), _TINY)
    u[some] = interior.mechanism_of(mass[:, None, :] * np.take_along_axis(posterior, follows[:, None, :], axis=-1), p)
    return u


def _revive(u: Array, w: Array, column: IntArray, p: Array, s: Array, target: float) -> tuple[Array, Flags]:
    """Mass for one column of each start, as much as lowers I(S;Y) most among a few sizes, and whether one does."""
    count, everyone = len(u), np.arange(len(u))
    posterior = w[everyone, :, column]
    most = 0.5 / np.max(posterior / p, axis=-1)
    part = np.minimum(_NEW_MASSES[:, None], most)[..., None] * posterior
    cells = u * (1.0 - part / p)[..., None]
    cells[:, everyone, :, column] += np.swapaxes(part, 0, 1)
    cells = cells.reshape(-1, *u.shape[1:])
    cells = _spend(np.exp(feasible_rows(np.log(cells), p, target)), p, target)
    value = np.where(is_feasible(cells, target), value_of(cells, s), np.inf).reshape(-1, count)
    best = value.argmin(axis=0)
    return cells.reshape(-1, *u.shape)[best, everyone], value[best, everyone] < value_of(u, s) - RISE


def _spend(u: Array, p: Array, target: float) -> Array:
    """Give up the excess of I(X;Y) over R along its own gradient: it is convex, so R still holds after the step."""
    rate, log_w = rate_of(u)
    lift = u * (log_w - np.sum(u * log_w, axis=-1, keepdims=True) / p[:, None])
    gain = np.sum(log_w * lift, axis=(-2, -1))
    length = np.maximum(rate - target, 0.0) / np.where(gain > 0.0, gain, np.inf)
    steepest = np.max(length[:, None, None] * lift / u, axis=(-2, -1))
    length *= np.minimum(1.0, 0.9 / np.maximum(steepest, 0.9))
    return interior.mechanism_of(u - length[:, None, None] * lift, p)
