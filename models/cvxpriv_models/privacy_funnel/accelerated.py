"""A faster route to a first-order point of the privacy funnel than plain alternation.

After a pass of PF Algorithm 1 comes a feasible Newton step (`interior`), superlinear near strict optima; a start stays
where its step is infeasible or raises I(S;Y). States carry a leading axis of starts; every start moves on its own.
"""

import numpy as np

from cvxpriv.numerics.arrays import Array, Flags, IntArray

from . import closed_form, interior
from .closed_form import FLOOR, State
from .interior import RISE, SHORTFALL, LineSearch, feasible_rows, rate_of, value_of

_FIRST_DAMPING = 0.1
_DAMPING = (1e-5, 10.0)
_NEWTON_BELOW = 1e-2
_NEAR = 1e-3
_REST = 4
_CHUNK = 4_000_000


def advance(state: State, p: Array, s: Array, target: float) -> State:
    """One feasible Newton step for each start: I(S;Y) does not rise, I(X;Y) stays at least R.

    Two keys of the state carry what a step teaches the next: "damping" (B,), and "rest" (B,), the number of steps for
    which the plain Newton model is set aside. Both are made where they are missing.

    `state`: Feasible, every cell positive. `p`, `s`, `target`: P(x) (M,), P(s | x) (K, M), and R^.
    Returns: With phi, log r, log w solved for the new u, and the model's multiplier. A start whose step fails is as it
    was.
    """
    count, rows, columns = state["log_u"].shape
    state = {"damping": np.full(count, _FIRST_DAMPING), "rest": np.zeros(count), **state}
    size = max(1, _CHUNK // (rows * columns * len(s)))
    parts = [
        _advance({key: value[k : k + size] for key, value in state.items()}, p, s, target)
        for k in range(0, count, size)
    ]
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _advance(state: State, p: Array, s: Array, target: float) -> State:
    lam, damping, rest = state["lam"], state["damping"], state["rest"]
    at = interior.point(np.exp(state["log_u"]), s)
    close = interior.stationarity(at, lam)
    changed = settle_light_columns(at, lam, close < _NEAR, p, s, target)
    at = at if changed is None else interior.point(changed, s)
    newton = np.where((rest <= 0.0) & (close < _NEWTON_BELOW), 1.0, 0.0)
    towards = interior.direction(at, lam, damping, newton, p, s, target)
    search = LineSearch(at, towards, p, s, target)
    u, length, moved = search.run(newton)
    moved &= np.isfinite(u).all(axis=(-2, -1))
    u = np.where(moved[:, None, None], u, at.u)
    failed = (newton > 0.0) & (~moved | (length < 0.3))
    eased = damping * np.where(length >= 0.5, 0.3, np.where(length < 0.05, 2.0, 1.0))
    stiffened = np.where(newton > 0.0, damping, 4.0 * damping)
    log_u = np.maximum(np.log(u), FLOOR)
    return {
        **state,
        **closed_form.complete(log_u, s, np.where(moved, towards.lam, lam)),
        "damping": np.clip(np.where(moved, eased, stiffened), *_DAMPING),
        "rest": np.where(failed, float(_REST), rest - 1.0),
    }


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
    price = np.where(light, np.sum(np.exp(at.log_w) * interior.reduced_costs(at, lam), axis=-2), 0.0)
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
    value = np.where(rate_of(cells)[0] >= target - SHORTFALL, value_of(cells, s), np.inf).reshape(-1, count)
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
