"""What happens to released symbols of almost no mass: the useful ones return, the others follow a live one.

The derivatives of a column without mass say nothing by cell: what counts is its price, what a unit of mass with the
column's posterior adds to the Lagrangian.
"""

from __future__ import annotations

import numpy as np

from cvxpriv_models.privacy_funnel import interior
from cvxpriv_models.privacy_funnel.closed_form import Array, Flags, Indices
from cvxpriv_models.privacy_funnel.line_search import RISE, feasible_rows, is_feasible, rate_of, value_of

_WEIGHTLESS = 1e-15
_FREE_PRICE = -1e-9
_NEW_MASSES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)


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
    u = at.u.copy()
    _retire(u, at, light & (at.mass < _WEIGHTLESS) & (price > _FREE_PRICE), p)
    work = np.flatnonzero(price.min(axis=-1) < _FREE_PRICE)
    if work.size:
        u[work] = _revive(u[work], np.exp(at.log_w[work]), price[work].argmin(axis=-1), p, s, target)
    return u


def _retire(u: Array, at: interior.Point, idle: Flags, p: Array) -> None:
    """Give each idle column the posterior of the live column nearest to it.

    Its own would get there too, but only as 1/k; its mass is too small to be felt in either information.
    """
    for start, column in zip(*np.nonzero(idle), strict=True):
        posterior = at.log_w[start, :, column, None]
        distance = np.sum(np.exp(posterior) * (posterior - at.log_w[start]), axis=0)
        distance[at.mass[start] < interior.LIGHT] = np.inf
        nearest = int(distance.argmin())
        u[start, :, column] = at.mass[start, column] * np.exp(at.log_w[start, :, nearest])
    changed = idle.any(axis=-1)
    u[changed] = interior.mechanism_of(u[changed], p)


def _revive(u: Array, w: Array, column: Indices, p: Array, s: Array, target: float) -> Array:
    """Mass for one column of each start, as much as lowers I(S;Y) most among a few sizes; none where none does."""
    everyone = np.arange(len(u))
    posterior = w[everyone, :, column]
    result, best = u.copy(), value_of(u, s)
    for mass in _NEW_MASSES:
        part = np.minimum(mass, 0.5 / np.max(posterior / p, axis=-1))[:, None] * posterior
        cells = u * (1.0 - part / p)[..., None]
        cells[everyone, :, column] += part
        cells = _spend(np.exp(feasible_rows(np.log(cells), p, target)), p, target)
        value = value_of(cells, s)
        good = (value < best - RISE) & is_feasible(cells, target)
        best[good], result[good] = value[good], cells[good]
    return result


def _spend(u: Array, p: Array, target: float) -> Array:
    """Give up the excess of I(X;Y) over R along its own gradient: it is convex, so R still holds after the step."""
    rate, log_w = rate_of(u)
    lift = u * (log_w - np.sum(u * log_w, axis=-1, keepdims=True) / p[:, None])
    gain = np.sum(log_w * lift, axis=(-2, -1))
    length = np.maximum(rate - target, 0.0) / np.where(gain > 0.0, gain, np.inf)
    steepest = np.max(length[:, None, None] * lift / u, axis=(-2, -1))
    length *= np.minimum(1.0, 0.9 / np.maximum(steepest, 0.9))
    return interior.mechanism_of(u - length[:, None, None] * lift, p)
