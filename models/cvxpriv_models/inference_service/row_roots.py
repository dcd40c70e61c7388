"""Scalar equations under the blocks: the x >= 0 with beta f_x(x, q) + weight x = level, element by element.

f_x grows with x, so there is one root, or none above 0, and then x is 0. Three of the paper's f have closed forms:
Lambert W for -log t, a cubic for Le Cam and for squared Hellinger. The others are bracketed and polished by Newton,
kinked ones segment by segment between their kinks.
"""

import numpy as np
from scipy.special import wrightomega

from cvxpriv.bounds import linear_pieces
from cvxpriv.divergences import FDivergence
from cvxpriv.divergences.sides import TINY, built_in, slopes_of
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.roots import Rows, increasing_root

POLISHES = 3
#: A bracket this narrow, relative, is one number.
NARROW = 4.0 * float(np.finfo(float).eps)


def row_roots(divergence: FDivergence, level: Array, q: Array, weight: Array | float, beta: float) -> Array:
    """The root x >= 0 of ``beta f_x(x, q) + weight x = level``; 0 where the left side is above at x = 0. `level`, `q`,
    `weight`: They broadcast; weight > 0, q >= 0. A level of -inf gives 0. Returns: x, of the broadcast shape.
    """
    level, q, weight = (np.asarray(one) for one in np.broadcast_arrays(level, q, weight))
    with np.errstate(all="ignore"):
        pieces = linear_pieces.pieces_of(divergence)
        if pieces is not None:
            return linear_pieces.row_roots(pieces, level, q, weight, beta)
        if not divergence.smooth:
            return _kinked(divergence, level, q, weight, beta)
        form = built_in(divergence)
        if form in CLOSED:
            x = CLOSED[form](level, np.maximum(q, TINY), weight, beta)
            return _polished(divergence, x, level, q, weight, beta)
        return _bracketed(divergence, level, q, weight, beta, np.zeros_like(level), np.full_like(level, np.inf))


def _lambert(level: Array, q: Array, weight: Array, beta: float) -> Array:
    """-log t: x = (beta/weight) W((weight/beta) q exp(level/beta - 1)); W(exp(y)) is Wright's omega of y."""
    exponent = np.log(weight * q / beta) + level / beta - 1.0
    return np.asarray(beta / weight * wrightomega(exponent))


def _le_cam(level: Array, q: Array, weight: Array, beta: float) -> Array:
    """The root of weight s^3 + (beta/2 - weight q - level) s^2 = 2 beta q^2, with s = x + q."""
    root = positive_cubic_root((level + weight * q - 0.5 * beta) / (2.0 * beta), weight * q / (2.0 * beta))
    return np.asarray(np.maximum(q / root - q, 0.0))


def _hellinger(level: Array, q: Array, weight: Array, beta: float) -> Array:
    """The root of weight s^3 + (beta - level) s = beta sqrt q, with s = sqrt x."""
    root = positive_cubic_root((beta - level) / weight, beta * np.sqrt(q) / weight)
    return np.asarray(root * root)


CLOSED = {"mutual-information": _lambert, "le-cam": _le_cam, "hellinger": _hellinger}


def positive_cubic_root(linear: Array, constant: Array) -> Array:
    """The positive root of ``s^3 + linear s = constant``, constant > 0, without cancellation.

    Examples
    --------
    >>> float(positive_cubic_root(np.array(-1.0), np.array(6.0)).round(12))
    2.0
    """
    linear, constant = np.asarray(linear, dtype=float), np.asarray(constant, dtype=float)
    # Scaled by the larger of the two lengths of the equation, nothing overflows.
    length = np.maximum(np.sqrt(np.abs(linear)), np.cbrt(constant))
    p, r = linear / length**2 / 3.0, constant / length**3 / 2.0
    discriminant = r * r + p**3
    cube = np.cbrt(r + np.sqrt(np.maximum(discriminant, 0.0)))
    one_root = np.where(p > 0.0, 2.0 * r / (cube * cube + p + (p / cube) ** 2), cube - p / cube)
    spread = np.sqrt(np.maximum(-p, 0.0))
    angle = np.arccos(np.clip(r / np.maximum(spread**3, TINY), -1.0, 1.0)) / 3.0
    s = np.where(discriminant >= 0.0, one_root, 2.0 * spread * np.cos(angle))
    for _ in range(POLISHES):
        s = s - (s * (s * s + 3.0 * p) - 2.0 * r) / (3.0 * (s * s + p))
    return np.asarray(s * length)


def _polished(divergence: FDivergence, x: Array, level: Array, q: Array, weight: Array, beta: float) -> Array:
    """One Newton step on the equation itself, where it is a step and not noise."""
    slope, curvature = slopes_of(divergence).in_x(np.maximum(x, TINY), np.maximum(q, TINY))
    step = (beta * slope + weight * x - level) / (beta * curvature + weight)
    return np.where(np.abs(step) < 1e-6 * (x + q), np.maximum(x - step, 0.0), x)


def _bracketed(
    divergence: FDivergence, level: Array, q: Array, weight: Array, beta: float, low: Array, high: Array
) -> Array:
    """The root inside [low, high] where f is smooth there, found in log x; at most TINY is 0."""
    in_x = slopes_of(divergence).in_x
    safe_q = np.maximum(q, TINY)
    # At x >= q the slope is at least that at q, which bounds the root from above.
    ceiling = np.maximum(safe_q, (level - beta * in_x(safe_q, safe_q)[0]) / weight)
    low = np.maximum(low, TINY)
    high = np.minimum(high, np.maximum(ceiling * (1.0 + 1e-12), low))
    positive = beta * in_x(low, safe_q)[0] + weight * low < level
    level, own, weight = level[positive], safe_q[positive], weight[positive]

    def excess(log_x: Array, rows: Rows) -> tuple[Array, Array]:
        x, held = np.exp(log_x), weight[rows]
        slope, curvature = in_x(x, own[rows])
        return beta * slope + held * x - level[rows], (beta * curvature + held) * x

    root = np.exp(increasing_root(excess, np.log(low[positive]), np.log(high[positive]), np.log(own)))
    x = np.where(low > TINY, low, 0.0)
    x[positive] = _polished(divergence, root, level, own, weight, beta)
    return x


def _kinked(divergence: FDivergence, level: Array, q: Array, weight: Array, beta: float) -> Array:
    """Find the kink, or the segment between two kinks, where the level lies; a segment is smooth."""
    low, high = np.zeros_like(level), np.full_like(level, np.inf)
    x = np.full_like(level, np.nan)
    for kink in divergence.kinks:
        at = q / kink
        below, above = (beta * one * np.ones_like(level) + weight * at for one in jump_at(divergence, kink))
        low, high = (
            np.where(level > above, np.maximum(low, at), low),
            np.where(level < below, np.minimum(high, at), high),
        )
        x = np.where((level >= below) & (level <= above) & (q > 0.0), at, x)
    inner_low, inner_high = low * (1.0 + NARROW), high * (1.0 - NARROW)
    smooth = _bracketed(divergence, level, q, weight, beta, inner_low, inner_high)
    return np.where(np.isnan(x), smooth, x)


def jump_at(divergence: FDivergence, kink: float) -> tuple[float, float]:
    """f_x just below and just above x = q/kink: f(t) - t f'(t) with f' from the right and from the left of the kink."""
    beside = kink * (1.0 - 1e-9)
    value = float(np.asarray(divergence.f(np.array([kink])))[0])
    right, left = (float(divergence.derivative(np.array([t]))[0]) for t in (kink, beside))
    return value - kink * right, value - kink * left
