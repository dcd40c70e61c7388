"""First-order residuals of the privacy funnel.

The whole problem is ``min I(S;Y) s.t. I(X;Y) >= R`` over u with row sums p. With
``g = S' log(T / r) - lam log w``, T = S u, the cell-wise derivative of its Lagrangian, a mechanism without
empty outputs is stationary iff each row's mass sits where g is least:

    stationarity     sum_ij u_ij (g_ij - min_j' g_ij')
    complementarity  lam |I(X;Y) - R|
    feasibility      (R - I(X;Y))_+ and the worst row sum.

An empty output may take any posterior, and these terms price the one that is stored: `optimum.free_symbol` prices all.
Measured against the row's *mean* instead of its least, every deterministic mechanism would pass, the identity included.
Nothing here uses a solver. Shapes are those of :mod:`cvxpriv_models.privacy_funnel.closed_form`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cvxpriv.numerics.arrays import Array, parts, worst
from cvxpriv_models.privacy_funnel import closed_form
from cvxpriv_models.privacy_funnel.problem import Problem

_TINY = float(np.finfo(np.float64).tiny)
_SEARCHES = 80
_BINDING = 1e-12


@dataclass(frozen=True)
class FunnelResiduals:
    """Residuals of the whole problem, one entry per start, (B,), in nats."""

    stationarity: Array
    complementarity: Array
    feasibility: Array
    lam: Array
    """The multiplier they are measured with."""

    @property
    def largest(self) -> Array:
        """The largest of the three, (B,)."""
        return np.maximum(np.maximum(self.stationarity, self.complementarity), self.feasibility)

    def of(self, start: int) -> PointResiduals:
        """The residuals of one start."""
        parts = (self.stationarity, self.complementarity, self.feasibility, self.lam)
        return PointResiduals(*(float(part[start]) for part in parts))


@dataclass(frozen=True)
class PointResiduals:
    """Residuals of the whole problem at one mechanism, in nats, and the multiplier they are measured with."""

    stationarity: float
    complementarity: float
    feasibility: float
    lam: float
    free: float = 0.0
    """Gain of the best use of a free output; 0 where no output is free."""

    @property
    def largest(self) -> float:
        """The largest of them."""
        return worst((self.stationarity, self.complementarity, self.feasibility, self.free))


class LagrangianSlopes:
    """The derivatives of I(S;Y) and I(X;Y) by u, up to row constants, of some rows at a time.

    `log_u`: (B, M, N). `s`: P(s | x), (K, M).
    """

    def __init__(self, log_u: Array, s: Array) -> None:
        self._log_u, self._s, size = log_u, s, log_u.shape[0] * log_u.shape[-1]
        self._kept: list[tuple[Array, Array, Array]] = []
        self._rows = parts(size, log_u.shape[1])
        self._log_r = closed_form.marginal(log_u)
        told = [s[:, rows] @ np.exp(closed_form.posterior(log_u[:, rows], self._log_r)) for rows in self._rows]
        self._log_t = np.log(np.maximum(np.sum(told, axis=0), _TINY))
        if len(self._rows) == 1:
            self._kept = list(self.parts())

    def parts(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield u, ``S' log(T / r)`` and ``log w`` of some rows, (B, m, N) each: of all of them where they are few."""
        yield from self._kept
        for rows in self._rows[len(self._kept) :]:
            log_w = closed_form.posterior(self._log_u[:, rows], self._log_r)
            yield np.exp(self._log_u[:, rows]), self._s[:, rows].T @ self._log_t, log_w

    def stationarity(self, lam: Array) -> tuple[Array, Array]:
        """Return ``sum_ij u_ij (g_ij - min_j' g_ij')`` and its slope in lam, (B,) each."""
        value, slope = np.zeros(len(lam)), np.zeros(len(lam))
        for u, rise, log_w in self.parts():
            g = rise - lam[:, None, None] * log_w
            least = g.argmin(axis=-1) + np.arange(0, g.size, g.shape[-1]).reshape(g.shape[:-1])  # places in the array
            value += (u * (g - g.ravel()[least][..., None])).sum(axis=(-2, -1))
            slope += (u * (log_w.ravel()[least][..., None] - log_w)).sum(axis=(-2, -1))
        return value, slope


def residuals(log_u: Array, p: Array, s: Array, target: float, lam: Array | None = None) -> FunnelResiduals:
    """The whole problem's residuals at any mechanism.

    `log_u`: (B, M, N); cells without mass at ``FLOOR``.
    `p`, `s`, `target`: P(x) (M,), P(s | x) (K, M), and R^ = R + sum p log p.
    `lam`: The multipliers, (B,). None takes for each start the one with the least residual, by :func:`best_multiplier`;
    so does a zero where the constraint binds to rounding, since G(0) = 0 there whatever the true multiplier is.
    Returns: All zero only at a first-order point.
    """
    slopes, rows = LagrangianSlopes(log_u, s), np.abs(np.exp(log_u).sum(axis=-1) - p).max(axis=-1)
    excess = np.sum([np.sum(u * log_w, axis=(-2, -1)) for u, _, log_w in slopes.parts()], axis=0) - target
    chosen = np.full(len(log_u), np.nan) if lam is None else np.array(lam, dtype=np.float64)
    unknown = np.isnan(chosen) | ((chosen == 0.0) & (excess < _BINDING))
    if unknown.any():
        some = slopes if unknown.all() else LagrangianSlopes(log_u[unknown], s)
        chosen[unknown] = best_multiplier(some, excess[unknown])
    stationarity, _ = slopes.stationarity(chosen)
    return FunnelResiduals(stationarity, chosen * np.abs(excess), np.maximum(np.maximum(-excess, 0.0), rows), chosen)


def final_residuals(problem: Problem, log_u: Array, lam: Array, tol: float) -> FunnelResiduals:
    """Return each start's residuals at its own multiplier, or at the best one where its own leaves more than `tol`."""
    facts = problem.p_x, problem.p_s_given_x, problem.target
    own = residuals(log_u, *facts, lam)
    return own if (met := own.largest <= tol).all() else residuals(log_u, *facts, np.where(met, own.lam, np.nan))


def best_multiplier(slopes: LagrangianSlopes, excess: Array) -> Array:
    """The ``lam >= 0`` that minimises the larger of stationarity and complementarity, per start, (B,).

    Both are convex and piecewise linear in lam, so tangents at the ends of a bracket meet below the least value;
    the meeting point is the next end, until value and bound agree.
    """

    def evaluate(lam: Array) -> tuple[Array, Array]:
        value, slope = slopes.stationarity(lam)
        other, steepness = lam * np.abs(excess), np.abs(excess)
        return np.maximum(value, other), np.where(value >= other, slope, steepness)

    left, right = np.zeros(len(excess)), np.ones(len(excess))
    (low, low_slope), (high, high_slope) = evaluate(left), evaluate(right)
    for _ in range(30):
        falling = (high_slope < 0.0) & (low_slope < 0.0)
        if not falling.any():
            break
        left, low, low_slope = (
            np.where(falling, b, a) for a, b in ((left, right), (low, high), (low_slope, high_slope))
        )
        right = np.where(falling, 2.0 * right, right)
        high, high_slope = evaluate(right)
    at_zero = low_slope >= 0.0
    done = at_zero  # a start that has ended keeps its bits, however long the others take
    best, least = np.where(low <= high, left, right), np.minimum(low, high)
    for _ in range(_SEARCHES):
        gap = high_slope - low_slope
        meet = (low - high + high_slope * right - low_slope * left) / np.where(gap > 0.0, gap, 1.0)
        middle = np.clip(np.where(gap > 0.0, meet, left), left, right)
        value, slope = evaluate(middle)
        better = (value < least) & ~done
        best, least = np.where(better, middle, best), np.where(better, value, least)
        done = done | (least - (low + low_slope * (middle - left)) <= 1e-16 + 1e-9 * least)
        if done.all():
            break
        down = slope < 0.0
        left, low, low_slope = (np.where(down, b, a) for a, b in ((left, middle), (low, value), (low_slope, slope)))
        right, high, high_slope = (
            np.where(down, a, b) for a, b in ((right, middle), (high, value), (high_slope, slope))
        )
    return np.where(at_zero, 0.0, best)
