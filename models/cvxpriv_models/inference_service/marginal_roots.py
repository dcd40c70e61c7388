"""The P_U block of IAS (21), symbol by symbol: beta sum_y p(y) f_q(p(u|y), q) + rho q = lam + rho m, clipped at q = 0.

Closed forms for -log t (a quadratic) and squared Hellinger (a cubic in sqrt q); bracketed Newton for every other f.
Arrays are (B, |U|), the mechanism (B, |Y|, |U|).
"""

from __future__ import annotations

import numpy as np

from cvxpriv.divergences import FDivergence
from cvxpriv.numerics.arrays import Array

from . import linear_pieces
from .row_roots import positive_cubic_root
from .slopes import TINY, Slopes, slopes_of

__all__ = ["solve_marginal"]

QUICK_LIMIT, LIMIT = 25, 200
SMALL_STEP = 1e-8
NARROW = 4.0 * float(np.finfo(float).eps)
KINK_TOLERANCE = 1e-12


def solve_marginal(
    divergence: FDivergence, start: Array, mechanism: Array, level: Array, p_y: Array, beta: float, rho: float
) -> Array:
    """Solve the P_U block.

    Parameters
    ----------
    divergence : FDivergence
    start : array, (B, |U|)
        Where Newton begins, usually the last q.
    mechanism : array, (B, |Y|, |U|)
    level : array, (B, |U|)
        lam + rho m.
    p_y : array, (|Y|,)
    beta, rho : float

    Returns
    -------
    Array
        q >= 0, (B, |U|); its sum is left to the multiplier, as in the paper.
    """
    slopes = slopes_of(divergence)
    with np.errstate(all="ignore"):
        match slopes.form:
            case "mutual-information":
                return _logarithm(level, p_y @ mechanism, beta, rho)
            case "hellinger":
                return _hellinger(level, p_y @ np.sqrt(mechanism), beta, rho)
        pieces = linear_pieces.pieces_of(divergence)
        if pieces is not None:
            return linear_pieces.marginal_roots(pieces, mechanism, level, p_y, beta, rho)
        settled = False
        if divergence.smooth:
            q, settled = _quick(slopes, start, mechanism, level, p_y, beta, rho)
        if not settled:
            q = _bracketed(divergence, mechanism, level, p_y, beta, rho)
    if np.isinf(divergence.limit_slope):  # p f(q/p) is then infinite at p = 0 for any q > 0
        q = np.where((mechanism == 0.0).any(axis=-2), 0.0, q)
    return q


def _logarithm(level: Array, m: Array, beta: float, rho: float) -> Array:
    """-log t: rho q^2 - level q = beta m, the root that is not negative, without cancellation."""
    root = np.sqrt(level * level + 4.0 * rho * beta * m)
    above = (level + root) / (2.0 * rho)
    below = 2.0 * beta * m / np.maximum(root - level, TINY)
    return np.where(level >= 0.0, above, below)


def _hellinger(level: Array, roots: Array, beta: float, rho: float) -> Array:
    """Squared Hellinger, z = sqrt q: rho z^3 - (level - beta) z = beta sum_y p(y) sqrt p(u|y)."""
    constant = beta * roots / rho
    z = positive_cubic_root((beta - level) / rho, np.maximum(constant, TINY))
    unused = np.maximum((level - beta) / rho, 0.0)  # a symbol that no row sends
    return np.where(constant > 0.0, z * z, unused)


def _quick(
    slopes: Slopes, q: Array, mechanism: Array, level: Array, p_y: Array, beta: float, rho: float
) -> tuple[Array, bool]:
    """Newton from the last q, in log(q + shift): shift 0 where f_q is steep at 0, else p(u)."""
    shift = 0.0 if slopes.steep_q else np.maximum(p_y @ mechanism, TINY)
    bottom = TINY if slopes.steep_q else 0.0
    mechanism = np.maximum(mechanism, TINY)
    weights = beta * p_y
    q = np.maximum(q, TINY)
    for _ in range(QUICK_LIMIT):
        slope, curvature = slopes.in_q(mechanism, q[..., None, :])
        excess = weights @ slope
        excess += rho * q
        excess -= level
        base = q + shift
        step = excess / ((weights @ curvature + rho) * base)
        after = np.maximum(base * np.exp(-np.clip(step, -5.0, 20.0)) - shift, bottom)
        moved = np.abs(after - q)
        moved /= base
        q = after
        if moved.max() <= SMALL_STEP:
            return np.where(q > TINY, q, 0.0), True
    return q, False


def _bracketed(divergence: FDivergence, mechanism: Array, level: Array, p_y: Array, beta: float, rho: float) -> Array:
    """Newton inside a bracket, halving it where Newton leaves it; a kink is met exactly."""
    in_q = slopes_of(divergence).in_q
    rows = np.maximum(mechanism, TINY)
    flat = float(divergence.derivative(np.ones(1))[0])
    low, high = np.zeros_like(level), np.maximum(mechanism.max(axis=-2), (level - beta * flat) / rho) * (1.0 + 1e-9)
    high = np.maximum(high, TINY)
    q = np.minimum(np.maximum(p_y @ mechanism, TINY), high)
    for _ in range(LIMIT):
        slope, curvature = in_q(rows, np.maximum(q, TINY)[..., None, :])
        excess = beta * (p_y @ slope) + rho * q - level
        low, high = np.where(excess < 0.0, q, low), np.where(excess >= 0.0, q, high)
        newton = q - excess / (beta * (p_y @ curvature) + rho)
        middle = np.where(low > 0.0, 0.5 * (low + high), np.where(high > 1e-30, 1e-2 * high, 0.0))
        after = np.where((newton > low) & (newton < high), newton, np.where(excess == 0.0, q, middle))
        settled = (np.abs(after - q) <= NARROW * q) | (high - low <= NARROW * high) | (high <= TINY)
        q = after
        if settled.all():
            break
    return _at_kinks(divergence, np.where(q > TINY, q, 0.0), mechanism)


def _at_kinks(divergence: FDivergence, q: Array, mechanism: Array) -> Array:
    """Move a q that is a kink up to rounding onto it, q = kink * p(u|y)."""
    for kink in divergence.kinks:
        at = kink * mechanism
        nearest = np.abs(at - q[..., None, :]).argmin(axis=-2)
        value = np.take_along_axis(at, nearest[..., None, :], axis=-2)[..., 0, :]
        q = np.where(np.abs(value - q) <= KINK_TOLERANCE * q, value, q)
    return q
