"""The exact solution of the joint block, IAS (10), without a solver: a primal-dual interior-point method.

(10) is a smooth convex problem in P(U|Y) with row sums and a floor. Its Hessian falls apart into blocks whose inverses
are known (`curvature`): a Newton step costs a few |Y| x |U| products and one |Y| x |Y| system. All starts run at once.
At every iterate there is a certified gap (`kkt`), which says when to stop.
"""

from typing import NamedTuple

import numpy as np

from cvxpriv.divergences.sides import TINY, slopes_of
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.sizes import late

from . import closed_form
from .blocks import PRICE_LIMIT
from .problem import Problem, floored_rows

LIMIT = 200
#: Largest share of the way to the boundary in a step, and largest relative change of p/p(u) in it.
REACH, BEND = 0.995, 0.9
FIRST_BARRIER = 0.1
#: Gap that is small enough, and number of iterations without a smaller gap after which rounding has taken over.
GAP, PATIENCE = 1e-12, 20


class Point(NamedTuple):
    """An iterate of each start: p - floor, its duals (B, |Y|, |U|), and the rows' multipliers (B, |Y|)."""

    room: Array
    dual: Array
    nu: Array


class Slopes(NamedTuple):
    """The derivatives of F at an iterate: the gradient of -F and h = beta p(y) f_xx, (B, |Y|, |U|)."""

    gradient: Array
    h: Array


def maximise(problem: Problem, posterior: Array) -> tuple[Array, Array]:
    """Maximise F of (10) at posteriors, (B, |S|, |U|).

    `problem`: The problem, with a smooth f. `posterior`: (B, |S|, |U|).
    Returns: Mechanisms (B, |Y|, |U|), and how far the F of each can be below the optimum (B,), usually below 1e-9; more
    where `sizes.late` ended it.
    """
    shape = (len(posterior), problem.p_y.size, problem.size_u)
    price = np.minimum(closed_form.cost(posterior, problem.p_s_given_y), PRICE_LIMIT)
    space = 1.0 - problem.size_u * problem.floor
    if space < 1e-12:
        return np.full(shape, 1.0 / problem.size_u), np.zeros(shape[0])
    room = np.full(shape, space / problem.size_u)
    point = Point(room, FIRST_BARRIER * problem.p_y[:, None] / room, np.zeros(shape[:2]))
    best, gap = room.copy(), np.full(shape[0], np.inf)
    work, stale = np.arange(shape[0]), np.zeros(shape[0], dtype=int)
    with np.errstate(all="ignore"):
        for _ in range(LIMIT):
            slopes, found = _evaluate(problem, point.room, price[work])
            better = found < gap[work]
            stale[work] = np.where(better, 0, stale[work] + 1)
            best[work[better]], gap[work[better]] = point.room[better], found[better]
            going = (found > GAP) & (stale[work] < PATIENCE)
            if not going.any() or late():
                break
            work = work[going]
            point = _step(problem, Point(*(one[going] for one in point)), Slopes(*(one[going] for one in slopes)))
    return floored_rows(problem.floor + best, problem.floor), gap


def _evaluate(problem: Problem, room: Array, price: Array) -> tuple[Slopes, Array]:
    """The slopes, and the certified gap."""
    mechanism = problem.floor + room
    p_y, beta = problem.p_y, problem.beta
    derivatives, m = slopes_of(problem.divergence), (p_y @ mechanism)[:, None, :]
    in_x, in_xx = derivatives.in_x(mechanism, m)
    in_q, _ = derivatives.in_q(mechanism, m)
    s = -beta * (in_x + (p_y @ in_q)[:, None, :]) - price
    short = (room * (s.max(axis=-1, keepdims=True) - s)).sum(axis=-1)
    return Slopes(-p_y[:, None] * s, beta * p_y[:, None] * in_xx), short @ p_y


def _step(problem: Problem, point: Point, slopes: Slopes) -> Point:
    """One predictor-corrector step; the products of room and dual aim at a multiple of p(y)."""
    p_y, (room, dual, nu) = problem.p_y, point
    mechanism, space = problem.floor + room, 1.0 - problem.size_u * problem.floor
    curved = inverse(mechanism, p_y, slopes.h, dual / room)
    system, missing = curved.total(), space - room.sum(axis=-1)

    def direction(target: Array) -> tuple[Array, Array, Array]:
        free = curved.times(nu[..., None] - slopes.gradient + target / room)
        rise = np.linalg.solve(system, (missing - free.sum(axis=-1))[..., None])
        move = free + curved.times(np.broadcast_to(rise, free.shape))
        return move, (target - dual * move) / room - dual, rise[..., 0]

    def level(step: Array, move: Array, turn: Array) -> Array:
        return np.asarray(((room + step * move) * (dual + step * turn)).mean(axis=(-2, -1), keepdims=True) / p_y.mean())

    move, turn, _ = direction(np.zeros_like(room))
    step = _length(point, mechanism, p_y, move, turn)
    now = level(np.zeros_like(step), move, turn)
    aim = now * np.clip((level(step, move, turn) / now) ** 3, 1e-4, 0.9)
    move, turn, rise = direction(aim * p_y[:, None] - step * move * turn)
    step = _length(point, mechanism, p_y, move, turn, REACH)
    growth, bend = _split(mechanism, p_y, move)
    # p = m (p/m): with the product of both changes a dying symbol keeps the right p/m.
    after = np.maximum(room + step * move + step * step * mechanism * growth * bend, (1.0 - REACH) * room)
    after *= space / after.sum(axis=-1, keepdims=True)
    return Point(after, dual + step * turn, nu + step[..., 0] * rise)


def _split(mechanism: Array, p_y: Array, move: Array) -> tuple[Array, Array]:
    """The relative changes of p(u), (B, 1, |U|), and of p/p(u), (B, |Y|, |U|); f sees only the second."""
    growth = ((p_y @ move) / (p_y @ mechanism))[:, None, :]
    return growth, move / mechanism - growth


def _length(point: Point, mechanism: Array, p_y: Array, move: Array, turn: Array, reach: float = 1.0) -> Array:
    """Return the share of a step to take, (B, 1, 1): inside the domain, and p/p(u) within `BEND`."""
    growth, bend = _split(mechanism, p_y, move)
    boundary = np.minimum(_longest(point.room, move), _longest(point.dual, turn))
    gone = 1.0 / np.maximum(-growth, TINY).max(axis=(-2, -1), keepdims=True)
    bent = BEND / np.maximum(np.abs(bend).max(axis=(-2, -1), keepdims=True), TINY)
    return np.asarray(np.minimum(np.minimum(reach * np.minimum(boundary, gone), bent), 1.0))


def _longest(value: Array, move: Array) -> Array:
    """The largest step that keeps value + step * move >= 0, (B, 1, 1)."""
    return np.asarray(np.where(move < 0.0, -value / move, np.inf).min(axis=(-2, -1), keepdims=True))


#: Relative; with a single live symbol the sum of the inverses is of rank one up to rounding.
RIDGE = 1e-14


class Inverse(NamedTuple):
    """(H + diag(delta))^-1 = diag(1/scale) + vv v v' + vw (v w' + w v') - ww w w' for each start and symbol.

    `scale`, `v`, `w` are (B, |Y|, |U|), the three coefficients (B, 1, |U|).
    """

    scale: Array
    v: Array
    w: Array
    vv: Array
    vw: Array
    ww: Array

    def times(self, right: Array) -> Array:
        """Apply it to `right`, (B, |Y|, |U|)."""
        by_v = (self.v * right).sum(axis=-2, keepdims=True)
        by_w = (self.w * right).sum(axis=-2, keepdims=True)
        along_v, along_w = self.vv * by_v + self.vw * by_w, self.vw * by_v - self.ww * by_w
        return np.asarray(right / self.scale + self.v * along_v + self.w * along_w)

    def total(self) -> Array:
        """Its sum over symbols, (B, |Y|, |Y|)."""
        cross = (self.v * self.vw) @ self.w.mT
        result: Array = (self.v * self.vv) @ self.v.mT + cross + cross.mT - (self.w * self.ww) @ self.w.mT
        diagonal = np.arange(result.shape[-1])
        result[..., diagonal, diagonal] += (1.0 / self.scale).sum(axis=-1)
        result[..., diagonal, diagonal] *= 1.0 + RIDGE
        return result


def inverse(mechanism: Array, p_y: Array, h: Array, delta: Array) -> Inverse:
    """Return (H + diag(delta))^-1.

    `mechanism`, `h`, `delta`, (B, |Y|, |U|): h = beta p(y) f_xx >= 0, delta > 0. `p_y`: (|Y|,).
    """
    weight = p_y[:, None]
    xi = mechanism / (p_y @ mechanism)[:, None, :]
    scale = h + delta
    thin, thick = delta / scale, h / scale
    v, w = thick * xi, weight / scale
    # In d = (H + diag(delta))^-1 r two numbers are unknown, P_Y . d and (h xi) . G d; this is their 2 x 2 system.
    kept = (weight * thin * xi).sum(axis=-2, keepdims=True)
    tau = (weight * w).sum(axis=-2, keepdims=True)
    omega = (thick * delta * xi * xi).sum(axis=-2, keepdims=True)
    determinant = kept * kept + tau * omega
    return Inverse(scale, v, w, tau / determinant, kept / determinant, omega / determinant)
