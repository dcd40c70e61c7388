"""The row block of IAS (20) as a system: beta f_x(x, q) + weight x = kappa - nu, x >= floor, sum x = 1.

Newton on x and nu together from the last row takes a few cheap steps; where it does not settle, nu is bracketed and
x follows element by element from beta f_x(x, q) + weight x = level (`row_roots`). Rows are (B, |U|): one per start.

f_x grows with x, so there is one root x >= 0, or none above 0, and then x is 0. It is bracketed and polished by Newton,
for a kinked f segment by segment between its kinks.
"""

import numpy as np
import numpy.typing as npt

from cvxpriv.bounds import linear_pieces
from cvxpriv.divergences import FDivergence
from cvxpriv.divergences.sides import TINY, Slopes, slopes_of
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.roots import Rows, increasing_root

#: A bracket this narrow, relative, is one number.
NARROW = 4.0 * float(np.finfo(float).eps)


def row_roots(divergence: FDivergence, level: Array, q: Array, weight: Array | float, beta: float) -> Array:
    """The root x >= 0 of ``beta f_x(x, q) + weight x = level``; 0 where the left side is above at x = 0.

    `level`, `q`, `weight`: They broadcast; weight > 0, q >= 0. A level of -inf gives 0.
    Returns: x, of the broadcast shape.
    """
    level, q, weight = (np.asarray(one) for one in np.broadcast_arrays(level, q, weight))
    with np.errstate(all="ignore"):
        pieces = linear_pieces.pieces_of(divergence)
        if pieces is not None:
            return linear_pieces.row_roots(pieces, level, q, weight, beta)
        if not divergence.smooth:
            return _kinked(divergence, level, q, weight, beta)
        return _bracketed(divergence, level, q, weight, beta, np.zeros_like(level), np.full_like(level, np.inf))


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


QUICK_LIMIT = 30
#: Newton is quadratic: after a relative step of 1e-8 what is left is rounding.
SMALL_STEP, SUM_TOLERANCE = 1e-8, 2e-15
#: exp(-20): the most that one step shrinks a cell by.
LONGEST_FALL = -20.0
UNREACHABLE = -1e9


def solve_rows(
    divergence: FDivergence, start: Array, kappa: Array, q: Array, beta: float, weight: float, floor: float
) -> Array:
    """Solve the row block.

    `start`, (B, |U|): First point, usually the last row.
    `kappa`, (B, |U|): -D - lam + rho c; -inf puts the cell at the floor.
    `q`: (B, |U|).
    `beta`, `weight`, `floor`: weight = rho p(y) > 0.
    Returns: x, (B, |U|), rows sum to 1 to rounding.
    """
    least = np.isneginf(kappa)
    if least.any():
        kappa, start = np.maximum(kappa, UNREACHABLE), np.where(least, floor, start)
    with np.errstate(all="ignore"):
        pieces = linear_pieces.pieces_of(divergence)
        if pieces is not None:
            return linear_pieces.simplex_rows(pieces, kappa, q, weight, beta, floor)
        if not divergence.smooth:
            return _nested(divergence, kappa, q, beta, weight, floor)
        x, settled = quick_rows(slopes_of(divergence), start, kappa, np.maximum(q, TINY), beta, weight, floor)
        if not settled:
            lost = ~_settled(slopes_of(divergence), x, kappa, q, beta, weight, floor)
            x[lost] = _nested(divergence, kappa[lost], q[lost], beta, weight, floor)
            share = np.maximum(q, TINY)
            total = share.sum(axis=-1, keepdims=True)
            # f overflows at so small a q: beside it the rest is rounding, and x is in proportion to q.
            swamped = np.isposinf(slopes_of(divergence).in_x(np.ones_like(total), total)[0])
            x = np.where(swamped, floor + (1.0 - x.shape[-1] * floor) * share / total, x)
        return x


def quick_rows(
    slopes: Slopes, x: Array, kappa: Array, q: Array, beta: float, weight: float, floor: float
) -> tuple[Array, bool]:
    """Newton on (x, nu) until every start has settled; the second return says whether all did.

    A cell at the floor stays out of the step while its slope says so. Steps are taken in log(x + shift), in which the
    equations are nearly straight: shift 0 where f_x is steep at 0, else q.
    """
    bottom = max(floor, TINY) if slopes.steep_x else floor
    top = 1.0 - (x.shape[-1] - 1) * floor
    shift = 0.0 if slopes.steep_x else q
    total = np.add.reduce
    x = np.maximum(x, bottom)
    missing = total(x, axis=-1, keepdims=True) - 1.0
    for _ in range(QUICK_LIMIT):
        slope, curvature = slopes.in_x(x, q)
        slope *= beta
        excess = weight * x
        excess += slope
        excess -= kappa
        curvature *= beta
        curvature += weight
        free = (x > bottom) / curvature
        nu = (missing - np.vecdot(excess, free)[..., None]) / total(free, axis=-1, keepdims=True)
        excess += nu
        excess /= curvature
        base = x + shift
        excess /= base
        step = np.maximum(np.negative(excess, out=excess), LONGEST_FALL)
        after = base * np.exp(step)
        after -= shift
        after = np.minimum(np.maximum(after, bottom), top)
        missing = total(after, axis=-1, keepdims=True) - 1.0
        moved = np.abs(after - x)
        moved /= base
        x = after
        if moved.max() <= SMALL_STEP and np.abs(missing).max() <= SUM_TOLERANCE * x.shape[-1]:
            return x, True
    return x, False


def _settled(
    slopes: Slopes, x: Array, kappa: Array, q: Array, beta: float, weight: float, floor: float
) -> npt.NDArray[np.bool_]:
    """Whether each row solves the system to rounding, (B,)."""
    slope, curvature = slopes.in_x(np.maximum(x, TINY), np.maximum(q, TINY))
    above = beta * slope + weight * x - kappa
    free = (x > max(floor, TINY)) / (beta * curvature + weight)
    nu = -np.vecdot(above, free) / free.sum(axis=-1)
    off = np.abs(np.minimum(x - floor, above + nu[:, None])).max(axis=-1)
    return np.asarray((off <= 1e-13) & (np.abs(x.sum(axis=-1) - 1.0) <= 1e-13))


def _nested(divergence: FDivergence, kappa: Array, q: Array, beta: float, weight: float, floor: float) -> Array:
    """Newton on nu inside a bracket; the row's cells are roots of scalar equations at each nu."""

    def excess(nu: Array, rows: Rows) -> tuple[Array, Array]:
        own = q[rows]
        x = np.maximum(row_roots(divergence, kappa[rows] - nu[:, None], own, weight, beta), floor)
        return 1.0 - x.sum(axis=-1), _response(divergence, x, own, beta, weight, floor).sum(axis=-1)

    low, high = _bracket(divergence, kappa, q, beta, weight, floor)
    nu = increasing_root(excess, low, high, 0.5 * (low + high), close=SUM_TOLERANCE)[:, None]
    x = np.maximum(row_roots(divergence, kappa - nu, q, weight, beta), floor)
    return _sum_corrected(divergence, x, kappa - nu, q, beta, weight, floor)


def _bracket(
    divergence: FDivergence, kappa: Array, q: Array, beta: float, weight: float, floor: float
) -> tuple[Array, Array]:
    """Bounds of nu, (B,): some cell has at least 1/|U|, none has more than 1 less the others' floors."""
    size = kappa.shape[-1]

    def largest(x: float) -> Array:
        slope = slopes_of(divergence).in_x(np.full_like(q, x), np.maximum(q, TINY))[0]
        return np.asarray((kappa - beta * slope - weight * x).max(axis=-1))

    low, high = largest(1.0 - (size - 1) * floor), largest(1.0 / size)
    # f_x on the other side of a kink may lie lower or higher than the one taken.
    jump = beta * sum(abs(above - below) for below, above in (jump_at(divergence, kink) for kink in divergence.kinks))
    room = 1e-12 * (1.0 + np.abs(low) + np.abs(high))
    return low - jump - room, high + jump + room


def _response(divergence: FDivergence, x: Array, q: Array, beta: float, weight: float, floor: float) -> Array:
    """-dx/dnu of each cell, (B, |U|): 0 at the floor and at a kink."""
    _, curvature = slopes_of(divergence).in_x(np.maximum(x, TINY), np.maximum(q, TINY))
    fixed = x <= floor
    for kink in divergence.kinks:
        fixed |= x * kink == q
        fixed |= x == q / kink
    return np.asarray(np.where(fixed, 0.0, 1.0 / (beta * curvature + weight)))


def _sum_corrected(
    divergence: FDivergence, x: Array, level: Array, q: Array, beta: float, weight: float, floor: float
) -> Array:
    """One Newton step on (x, nu): what rounding in nu left of sum x = 1 is spread over the cells that can move."""
    response = _response(divergence, x, q, beta, weight, floor)
    slope, _ = slopes_of(divergence).in_x(np.maximum(x, TINY), np.maximum(q, TINY))
    excess = np.where(response > 0.0, beta * slope + weight * x - level, 0.0)
    total = response.sum(axis=-1, keepdims=True)
    nu = (x.sum(axis=-1, keepdims=True) - 1.0 - (excess * response).sum(axis=-1, keepdims=True)) / total
    step = (excess + nu) * response
    corrected = np.where(np.abs(step) <= 1e-6 * (x + q), np.maximum(x - step, floor), x)
    return np.where(total > 0.0, corrected, x)
