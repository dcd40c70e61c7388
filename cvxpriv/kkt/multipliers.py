"""Best multipliers: bounded least squares for the stationarity condition, without a solver.

    minimise  1/2 || w * part(g + M y) ||^2   over  low <= y <= high

``g`` is the objective's gradient, the columns of ``M`` are the constraints' gradients and the directions of kinks.
``part`` keeps of an entry what no bound on that variable can absorb: all of it for a free variable, the negative part
at a lower bound, the positive part at an upper bound, nothing where both bounds meet. So thousands of bounds on
variables cost no unknowns. The function is convex with a piecewise linear gradient: Newton's method on the free entries
of ``y`` with a projected line search ends after a few steps.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.numerics.arrays import Array, Flags

NEWTON_STEPS = 100
FIRST_ORDER_STEPS = 3000
RIDGE = 1e-13
DENSE = 20_000
"""Entries up to which a matrix is worked with as a dense one: small sparse ones cost more than they save."""


def absorbed(r: Array, at_low: Flags, at_high: Flags) -> Array:
    """Return the rest of ``r`` when bounds absorb the part that pushes against them."""
    r = np.where(at_low, np.minimum(r, 0.0), r)
    return np.where(at_high, np.maximum(r, 0.0), r)


def bounded_least_squares(
    g: Array, M: Any, low: Array, high: Array, at_low: Flags, at_high: Flags, weights: Array
) -> Array:
    """Return the minimiser described in `cvxpriv.kkt.multipliers`.

    `g`: (n,).
    `M`: (n, k).
    `low`, `high`, (k,): Bounds of ``y``, which may be infinite.
    `at_low`, `at_high`, (n,): Variables that stand at a bound.
    `weights`: (n,).
    Returns: (k,).
    """
    y = np.clip(np.zeros(M.shape[1]), low, high)
    if not y.size:
        return y
    dense = M.shape[0] * M.shape[1] <= DENSE
    M = M.toarray() if dense else M
    scale = np.sqrt(np.asarray((M * M).sum(axis=0)).ravel())
    scale = np.where(scale > 0, scale, 1.0)
    M = M / scale if dense else sp.csc_array(M @ sp.diags_array(1.0 / scale))
    low, high, y = low * scale, high * scale, y * scale
    squares = weights * weights

    def cost(y: Array) -> tuple[float, Array]:
        left = absorbed(g + M @ y, at_low, at_high)
        with np.errstate(over="ignore"):  # squares of prices of 1e300 are infinite, and fit no worse for it
            return float(0.5 * left @ (squares * left)), left

    value, left = cost(y)
    for _ in range(NEWTON_STEPS):
        gradient = M.T @ (squares * left)
        free = ~((y <= low) & (gradient >= 0)) & ~((y >= high) & (gradient <= 0))
        step = _newton_step(M, squares * (left != 0), gradient, free)
        found = _line_search(cost, y, step, gradient, low, high, value)
        if found is None:
            break
        y, value, left = found
    return y / scale


def _newton_step(M: Any, curvature: Array, gradient: Array, free: Flags) -> Array:
    step = np.zeros(gradient.size)
    kept = np.flatnonzero(free)
    if not kept.size:
        return step
    if isinstance(M, np.ndarray):
        part = M[:, kept]
        gram = part.T @ (curvature[:, None] * part)
        size = max(float(gram.diagonal().max()), 1e-300)
        step[kept] = -np.linalg.solve(gram + RIDGE * size * np.eye(kept.size), gradient[kept])
    else:
        columns = sp.csc_array(M[:, kept])
        normal: Any = columns.T @ (sp.diags_array(curvature) @ columns)
        size = max(float(normal.diagonal().max()), 1e-300)
        factor = splu(sp.csc_matrix(normal + RIDGE * size * sp.eye_array(kept.size)))
        step[kept] = -factor.solve(gradient[kept])
    return step


def _line_search(
    cost: object, y: Array, step: Array, gradient: Array, low: Array, high: Array, value: float
) -> tuple[Array, float, Array] | None:
    """Return the first halving of the projected step that lowers the cost, or None at the minimum."""
    length = 1.0
    for _ in range(40):
        trial = np.clip(y + length * step, low, high)
        found, left = cost(trial)  # type: ignore[operator]
        if found < value and found <= value + 1e-4 * float(gradient @ (trial - y)):
            return trial, found, left
        length *= 0.5
    return None


def conic_least_squares(
    g: Array,
    M: sp.csc_array,
    low: Array,
    high: Array,
    at_low: Flags,
    at_high: Flags,
    weights: Array,
    cone: tuple[sp.csc_array, ConeLayout],
) -> tuple[Array, Array]:
    """Return the same minimiser with further unknowns ``z`` in ``K*``, which enter as ``cone[0] @ z``.

    It uses accelerated projected gradients with restarts; ``y`` is refitted exactly at the end.
    """
    N, layout = cone
    both = sp.csc_array(sp.hstack([M, N]))
    k = M.shape[1]
    scaled = sp.csc_array(sp.diags_array(weights) @ both)
    size = _largest_square(scaled)
    if size == 0.0:
        return bounded_least_squares(g, M, low, high, at_low, at_high, weights), np.zeros(layout.size)

    whole: Any = both.toarray() if both.shape[0] * both.shape[1] <= DENSE else both
    pull, squares = whole.T, weights * weights / size

    def onto(v: Array) -> Array:
        return np.concatenate([np.clip(v[:k], low, high), layout.project(v[k:], dual=True)])

    v = onto(np.zeros(k + layout.size))
    ahead, momentum = v, 1.0
    for _ in range(FIRST_ORDER_STEPS):
        left = absorbed(g + whole @ ahead, at_low, at_high)
        moved = onto(ahead - pull @ (squares * left))
        change = moved - v
        if np.abs(moved - ahead).max() <= 1e-15 * max(1.0, float(np.abs(moved).max())):
            v = moved
            break
        if (ahead - moved) @ change > 0:
            momentum = 1.0
        grown = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        ahead, v, momentum = moved + (momentum - 1.0) / grown * change, moved, grown
    z = v[k:]
    return bounded_least_squares(g + N @ z, M, low, high, at_low, at_high, weights), z


def _largest_square(matrix: sp.csc_array) -> float:
    """Return an upper bound of the largest squared singular value."""
    rows = float(abs(matrix).sum(axis=1).max(initial=0.0))
    columns = float(abs(matrix).sum(axis=0).max(initial=0.0))
    return rows * columns
