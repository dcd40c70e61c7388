"""Faster routes to a first-order point of the privacy funnel than plain alternation.

Each factory returns an accelerator ``accelerate(body, state, iteration) -> state``: it runs the body (one pass of PF
Algorithm 1), then moves on from there, and keeps the body's result wherever its own move is infeasible or
raises I(S;Y). States carry a leading axis of starts; every start moves on its own.

============  ===================================================================================================
interior      the default: a feasible Newton step per pass (``interior.py``); superlinear near strict optima
squarem       squared extrapolation of two passes
overrelaxed   the u block's gradient step lengthened beyond 1 (ERRATA PF 7), adapted per start
============  ===================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cvxpriv_models.privacy_funnel import closed_form, interior, kkt, measures
from cvxpriv_models.privacy_funnel.closed_form import FLOOR, Array, Indices, State

Body = Callable[[State], State]
Accelerator = Callable[[Body, State, int], State]

RISE = 1e-14
"""What I(S;Y) may rise in an accepted step: its own rounding."""

SHORTFALL = 1e-13
"""What I(X;Y) may fall short of R by."""

_FIRST_DAMPING = 0.03
_DAMPING = (1e-9, 10.0)
_NEWTON_BELOW = 1e-2
_NEAR = 1e-3
_WEIGHTLESS = 1e-15
_FREE_PRICE = -1e-9
_REST = 4
_HALVINGS = 30
_DOUBLINGS = 6
_CHUNK = 4_000_000
_NEW_MASSES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)


def interior_newton(p: Array, s: Array, target: float) -> Accelerator:
    """A feasible Newton step after each pass (see :func:`advance`).

    Examples
    --------
    >>> from cvxpriv_models.privacy_funnel import starts
    >>> p, s = np.array([0.5, 0.3, 0.2]), np.array([[0.9, 0.2, 0.4], [0.1, 0.8, 0.6]])
    >>> target = 0.5 + float(p @ np.log(p))
    >>> state = closed_form.complete(starts.feasible_starts(p, 0.5, 4, count=3), s)
    >>> accelerate = interior_newton(p, s, target)
    >>> for k in range(40):
    ...     state = accelerate(lambda state: closed_form.iteration(state, p, s, target), state, k)
    >>> bool(kkt.residuals(state["log_u"], p, s, target).worst.max() < 1e-7)
    True
    """

    def accelerate(body: Body, state: State, iteration: int) -> State:
        return advance(body(state), p, s, target)

    return accelerate


def polish(state: State, p: Array, s: Array, target: float, tolerance: float = 1e-9, limit: int = 300) -> State:
    """Passes and Newton steps until the whole problem's residual is at most ``tolerance``, start by start.

    Cells that died may come back: a light column whose price is negative is given mass again. I(S;Y) does not rise.

    Parameters
    ----------
    state
        Feasible, every cell positive.
    p, s, target
        The problem.
    tolerance, limit
        When to stop; a start that is not there after ``limit`` passes is returned as it then is.

    Returns
    -------
    State
        With "damping" and "rest" among its keys (see :func:`advance`).
    """
    whole = {key: value.copy() for key, value in _with_memory(state).items()}
    work = np.arange(len(whole["lam"]))
    for _ in range(limit):
        found = kkt.residuals(whole["log_u"][work], p, s, target, whole["lam"][work])
        work = work[found.worst > tolerance]
        if not work.size:
            break
        part = {key: value[work] for key, value in whole.items()}
        part = advance(closed_form.iteration(part, p, s, target), p, s, target)
        for key, value in whole.items():
            value[work] = part[key]
    return whole


def advance(state: State, p: Array, s: Array, target: float) -> State:
    """One feasible Newton step for each start: I(S;Y) does not rise, I(X;Y) stays at least R.

    Two keys of the state carry what a step teaches the next: "damping" (B,), and "rest" (B,), the number of steps for
    which the plain Newton model is set aside. Both are made where they are missing.

    Parameters
    ----------
    state
        Feasible, every cell positive.
    p, s, target
        P(x) (M,), P(s | x) (K, M), and R^.

    Returns
    -------
    State
        With phi, log r, log w solved for the new u, and the model's multiplier. A start whose step fails is as it was.
    """
    state = _with_memory(state)
    count, rows, columns = state["log_u"].shape
    size = max(1, _CHUNK // (rows * columns * len(s)))
    parts = [
        _advance({key: value[k : k + size] for key, value in state.items()}, p, s, target)
        for k in range(0, count, size)
    ]
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _with_memory(state: State) -> State:
    count = len(state["lam"])
    return {"damping": np.full(count, _FIRST_DAMPING), "rest": np.zeros(count), **state}


def _advance(state: State, p: Array, s: Array, target: float) -> State:
    lam, damping, rest = state["lam"], state["damping"], state["rest"]
    at = interior.point(np.exp(state["log_u"]), s)
    close = interior.stationarity(at, lam)
    changed = _light_columns(at, lam, close < _NEAR, p, s, target)
    at = at if changed is None else interior.point(changed, s)
    newton = np.where((rest <= 0.0) & (close < _NEWTON_BELOW), 1.0, 0.0)
    towards = interior.direction(at, lam, damping, newton, p, s, target)
    search = _LineSearch(at, towards, p, s, target)
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


class _LineSearch:
    """Backtracking, and lengthening, along a direction; cells lose at most 99% a step, so that none blocks the rest."""

    def __init__(self, at: interior.Point, towards: interior.Direction, p: Array, s: Array, target: float) -> None:
        self._at, self._towards = at, towards
        self._p, self._s, self._target = p, s, target
        self._before = _value(at.u, s)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            worst = np.min(towards.step / at.u, axis=(-2, -1))
            self._room = np.minimum(1.0, 0.99 / np.maximum(-worst, 0.99))
        finite = np.isfinite(towards.step).all(axis=(-2, -1)) & np.isfinite(towards.lift).all(axis=(-2, -1))
        self._usable = finite & (towards.slope <= RISE)

    def run(self, newton: Array) -> tuple[Array, Array, Array]:
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

    def _trial(self, work: Indices, length: Array) -> tuple[Array, Array, Array]:
        """u + length d, the slack spent again along -lift: the new u, its value, and whether it is feasible."""
        old, lift = self._at.u[work], self._towards.lift[work]
        u = np.maximum(old + length[:, None, None] * self._towards.step[work], 0.01 * old)
        u = interior.mechanism_of(u, self._p)
        value, (rate, log_w) = _value(u, self._s), _rate(u)
        # I(X;Y) is convex: giving up its excess along its tangent at u cannot make it infeasible.
        gain = np.sum(log_w * lift, axis=(-2, -1))
        spend = (rate - self._target) / np.where(gain > 0.0, gain, np.inf)
        spend = np.where((spend > 0.0) & (self._towards.lam[work] > 0.0), spend, 0.0)
        share = np.max(spend[:, None, None] * lift / u, axis=(-2, -1))
        spend *= np.minimum(1.0, 0.9 / np.maximum(share, 0.9))
        spent = interior.mechanism_of(u - spend[:, None, None] * lift, self._p)
        lower = _value(spent, self._s)
        better = lower < value
        u = np.where(better[:, None, None], spent, u)
        return u, np.where(better, lower, value), _rate(u)[0] >= self._target - SHORTFALL


def _light_columns(
    at: interior.Point, lam: Array, near: npt.NDArray[np.bool_], p: Array, s: Array, target: float
) -> Array | None:
    """Columns of almost no mass, where a start is near its end: the useful ones return, the others follow a live one.

    Column j's price is ``sum_i w_ij (g_ij - alpha_i)``: what one unit of mass with posterior w_j adds to the Lagrangian.
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


def _retire(u: Array, at: interior.Point, idle: npt.NDArray[np.bool_], p: Array) -> None:
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
    result, best = u.copy(), _value(u, s)
    for mass in _NEW_MASSES:
        part = np.minimum(mass, 0.5 / np.max(posterior / p, axis=-1))[:, None] * posterior
        cells = u * (1.0 - part / p)[..., None]
        cells[everyone, :, column] += part
        cells = np.exp(_feasible(np.log(cells), p, target))
        value = _value(cells, s)
        good = (value < best - RISE) & (_rate(cells)[0] >= target - SHORTFALL)
        best[good], result[good] = value[good], cells[good]
    return result


def _feasible(log_u: Array, p: Array, target: float) -> Array:
    """The rows tilted by their own log w until I(X;Y) >= R: the u block with phi + log r replaced by log u."""
    log_r = closed_form.marginal(log_u)
    tilted, _ = closed_form.mapping(closed_form.posterior(log_u, log_r), log_r, log_u - log_r[:, None, :], p, target)
    return tilted


def _value(u: Array, s: Array) -> Array:
    """-H(S|Y): I(S;Y) up to a constant, (B,)."""
    joint = s @ u
    mass = u.sum(axis=-2)
    value: Array = np.sum(joint * np.log(np.maximum(joint / mass[:, None, :], 1e-300)), axis=(-2, -1))
    return value


def _rate(u: Array) -> tuple[Array, Array]:
    """``sum u log w``, (B,), and log w."""
    log_w = np.log(u / u.sum(axis=-2)[:, None, :])
    rate: Array = np.sum(u * log_w, axis=(-2, -1))
    return rate, log_w


def squarem(p: Array, s: Array, target: float) -> Accelerator:
    """Two passes, then log u extrapolated from them by the ratio of first to second differences, per start.

    The extrapolated point is tilted back to I(X;Y) >= R and kept only where I(S;Y) is no larger than after the two
    passes. Varadhan and Roland (2008), scheme S3.
    """

    def accelerate(body: Body, state: State, iteration: int) -> State:
        once = body(state)
        twice = body(once)
        first = once["log_u"] - state["log_u"]
        second = twice["log_u"] - once["log_u"] - first
        # Cells without mass fall for ever: they would dominate both norms, so each cell counts by its mass.
        weight = np.exp(twice["log_u"])
        norms = [np.sqrt(np.sum(weight * change**2, axis=(-2, -1))) for change in (first, second)]
        length = np.maximum(1.0, norms[0] / np.maximum(norms[1], 1e-300))[:, None, None]
        length = np.minimum(length, 1e6)
        leap = state["log_u"] + 2.0 * length * first + length**2 * second
        return _keep_better(twice, leap, p, s, target)

    return accelerate


def overrelaxed(p: Array, s: Array, target: float, growth: float = 1.5) -> Accelerator:
    """The u block with its gradient step lengthened: ``log u + step (phi + log r - log u) + lam log w``.

    Step 1 is PF Algorithm 1; 1/eta, eta the contraction coefficient of P(s|x), is the largest that is always
    monotone (ERRATA PF 7). Each start's step, the key "step" of the state, grows by ``growth`` when the pass lowers
    I(S;Y) and is halved when it does not; a pass that does not is replaced by the body's.
    """

    def accelerate(body: Body, state: State, iteration: int) -> State:
        plain = body(state)
        step = state.get("step", np.ones(len(state["lam"])))
        phi = closed_form.expectation(state["log_u"], s)
        base = state["log_u"] + step[:, None, None] * (phi + state["log_r"][:, None, :] - state["log_u"])
        log_u, lam = closed_form.mapping(
            base - state["log_r"][:, None, :], state["log_r"], state["log_w"], p, target, state["lam"]
        )
        kept = _keep_better({**plain, "step": step}, log_u, p, s, target)
        better = np.any(kept["log_u"] != plain["log_u"], axis=(-2, -1)) | (step == 1.0)
        kept["lam"] = np.where(better, lam, plain["lam"])
        kept["step"] = np.clip(np.where(better, growth * step, 0.5 * step), 1.0, 1e6)
        return kept

    return accelerate


def _keep_better(safe: State, log_u: Array, p: Array, s: Array, target: float) -> State:
    """The safe state, with ``log_u`` in place of its own where that is feasible and leaks no more."""
    rows = log_u - log_u.max(axis=-1, keepdims=True)
    rows += np.log(p)[:, None] - np.log(np.exp(rows).sum(axis=-1, keepdims=True))
    tried = _feasible(np.maximum(rows, FLOOR), p, target)
    with np.errstate(invalid="ignore"):
        good = measures.conditional_entropy(tried, s) >= measures.conditional_entropy(safe["log_u"], s)
        good &= _rate(np.exp(tried))[0] >= target - SHORTFALL
    chosen = np.where(good[:, None, None], tried, safe["log_u"])
    return {**safe, **closed_form.complete(chosen, s, safe["lam"])}
