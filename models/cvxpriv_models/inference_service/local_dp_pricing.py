"""The inner problem of the price under local differential privacy, p(u|y) <= exp(eps) p(u|y').

A column x obeys it iff all its ratios r_y = x(y)/p(y) lie in [m, exp(eps) m] for one m. For any n, the price is at most
n + max over m of F(m), F(m) = sum_y p(y) max over r in [m, exp(eps) m] of (c_y - n) r - beta H(r), and F is concave: a
tangent at any m bounds it on [exp(-eps), 1], where m lies since sum_y p(y) r_y = 1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxpriv.bounds.conjugates import Conjugate
from cvxpriv.numerics.arrays import Array

from .pricing import Inner, Pricing

#: Steps for n, and steps for m in each; what the sum of x and what F' may be off.
STEPS, SUM, FLAT = 60, 1e-12, 1e-11
#: An interval this narrow is one number; a rate below this is none.
NARROW, TINY = 4e-16, 1e-300


def local_dp_pricing(channel: Array, p_y: Array, beta: float, conjugate: Conjugate, epsilon: float) -> Pricing:
    """Price over the columns that obey local differential privacy at epsilon >= 0."""

    def solve(c: Array, limit: int, precision: float, near: Array | None) -> Inner:
        return solve_cone(c, p_y, beta, conjugate, epsilon, precision)

    return Pricing(channel, p_y, beta, conjugate, solve, smooth=False)


class _Cone(NamedTuple):
    p_y: Array
    beta: float
    conjugate: Conjugate
    width: float

    def free_ratios(self, c: Array, n: Array) -> tuple[Array, Array]:
        """The ratios r that each cell would take alone, within what any m allows, and dr/dt where they are free.

        Those at an end are exactly there: `slopes` tells clamped cells by it.
        """
        low, high = 1.0 / self.width, self.width
        ends = self.conjugate.slope(np.array([low, high]))
        t = (c - n[:, None]) / self.beta
        ratios, turn = self.conjugate.response(np.clip(t, ends[0], ends[1]))
        return np.where(t <= ends[0], low, np.where(t >= ends[1], high, np.clip(ratios, low, high))), turn

    def slopes(self, c: Array, n: Array, m: Array, ratios: Array) -> tuple[Array, Array, Array]:
        """F'(m) at a fixed n; kappa = dx/dm of the clamped cells, 0 of the others; and -F''(m)."""
        ends = np.stack([m, self.width * m], axis=1)
        slope = self.conjugate.slope(ends)
        turn = np.maximum(self.conjugate.response(slope)[1], TINY)
        lower, upper = ratios <= ends[:, :1], ratios >= ends[:, 1:]
        kappa = np.where(upper, self.width, np.where(lower, 1.0, 0.0)) * self.p_y
        gain = (kappa * (c - n[:, None] - self.beta * np.where(upper, slope[:, 1:], slope[:, :1]))).sum(axis=1)
        mass = np.stack([lower @ self.p_y, (self.width**2) * (upper @ self.p_y)], axis=1)
        return gain, kappa, self.beta * (mass / turn).sum(axis=1)

    def movable(self, m: Array) -> NDArray[np.bool_]:
        """Whether m is at neither end."""
        return np.asarray((m * self.width > 1.0 + 1e-12) & (m < 1.0 - 1e-12))

    def best_m(self, c: Array, n: Array, m: Array, ratios: Array) -> Array:
        """The m in [exp(-eps), 1] with the largest F, started from m: F'(m) falls."""
        low, high = np.full(len(c), 1.0 / self.width), np.ones(len(c))
        falls, rises = self.slopes(c, n, low, ratios)[0] <= 0.0, self.slopes(c, n, high, ratios)[0] >= 0.0
        m = np.where(falls, low, np.where(rises, high, m))
        work = np.flatnonzero(~(falls | rises))
        for _ in range(STEPS):
            gain, _, bend = self.slopes(c[work], n[work], m[work], ratios[work])
            low[work] = np.where(gain >= 0.0, m[work], low[work])
            high[work] = np.where(gain <= 0.0, m[work], high[work])
            going = (np.abs(gain) > FLAT) & (high[work] - low[work] > NARROW)
            work = work[going]
            if not work.size:
                break
            m[work] = _inside(m[work] + gain[going] / np.maximum(bend[going], TINY), low[work], high[work])
        return m


def _inside(step: Array, low: Array, high: Array) -> Array:
    """The step, or the middle where it leaves the bracket."""
    return np.where((step > low) & (step < high), step, (low + high) / 2.0)


def solve_cone(
    c: Array, p_y: Array, beta: float, conjugate: Conjugate, epsilon: float, precision: float = SUM
) -> Inner:
    """Maximise c.x - beta sum_y p(y) H(x(y)/p(y)) over the simplex's part of the cone, for each row of c.

    The sum of x at the best m falls in n: the root is found by Newton's method inside a bracket.
    """
    cone = _Cone(p_y, beta, conjugate, float(np.exp(epsilon)))
    ends = conjugate.slope(np.array([1.0 / cone.width, cone.width]))
    low, high = c.min(axis=1) - beta * ends[1], c.max(axis=1) - beta * ends[0]
    m, n = np.full(len(c), (1.0 / cone.width + 1.0) / 2.0), np.clip(c @ p_y, low, high)
    work = np.arange(len(c))
    for _ in range(STEPS):
        rows = c[work]
        ratios, turn = cone.free_ratios(rows, n[work])
        m[work] = cone.best_m(rows, n[work], m[work], ratios)
        _, kappa, bend = cone.slopes(rows, n[work], m[work], ratios)
        off = np.clip(ratios, m[work, None], cone.width * m[work, None]) @ p_y - 1.0
        follows = np.where(cone.movable(m[work]), kappa.sum(axis=1) ** 2 / np.maximum(bend, TINY), 0.0)
        rate = (turn * (kappa == 0.0)) @ p_y / beta + follows
        low[work] = np.where(off >= 0.0, n[work], low[work])
        high[work] = np.where(off <= 0.0, n[work], high[work])
        going = (np.abs(off) > precision) & (high[work] - low[work] > NARROW * np.abs(n[work]))
        work = work[going]
        if not work.size:
            break
        n[work] = _inside(n[work] + off[going] / np.maximum(rate[going], TINY), low[work], high[work])
    return _bounded(cone, c, m, n)


def _bounded(cone: _Cone, c: Array, m: Array, n: Array) -> Inner:
    """The bound that n and m give, whatever they are; the steps of x that belong to them."""
    p_y, beta, conjugate, least = cone.p_y, cone.beta, cone.conjugate, 1.0 / cone.width
    ratios, turn = cone.free_ratios(c, n)
    gain, kappa, bend = cone.slopes(c, n, m, ratios)
    r = np.clip(ratios, m[:, None], cone.width * m[:, None])
    t, free = (c - n[:, None]) / beta, kappa == 0.0
    each = np.where(free, conjugate.value(np.where(free, t, 0.0)), t * r - conjugate.price(r))
    overshoot = np.maximum(np.maximum(gain * (1.0 - m), gain * (least - m)), 0.0)
    lead = np.where((cone.movable(m) & (bend > 0.0))[:, None], kappa / np.sqrt(np.maximum(bend, TINY))[:, None], 0.0)
    return Inner(n + beta * (each @ p_y) + overshoot, r * p_y, np.where(free, turn, 0.0) * p_y / beta, n, lead)
