"""Roots of many increasing functions of one variable, by Newton's method inside a bracket."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvxpriv.kkt.conic.cones._types import Array

EPS = float(np.finfo(float).eps)
DOUBLINGS = 1100  # enough to walk from 1 to the largest double
STEPS = 200  # Newton takes about eight; halving alone would take sixty from any bracket that doubling leaves


def increasing_root(
    equation: Callable[[Array, np.ndarray], tuple[Array, Array]],
    low: Array,
    high: Array,
    start: Array,
) -> Array:
    """Root of each function, to the resolution of a double.

    Parameters
    ----------
    equation : callable
        ``equation(t, rows)`` gives values and slopes of the functions numbered ``rows`` at ``t``. Values are negative
        left of the root and positive right of it; they may be infinite. A slope only steers the search.
    low, high : array (m,)
        The interval of each root; ends may be infinite and need not bracket to the last digit.
    start : array (m,)
        First guess inside the interval.

    Returns
    -------
    array (m,)
    """
    low, high = _bracket(equation, low, high, start)
    t = np.clip(start, low, high)
    last = high - low
    probed = np.zeros(t.size, dtype=bool)
    rows = np.flatnonzero(high > low)
    for _ in range(STEPS):
        if rows.size == 0:
            break
        here = t[rows]
        value, slope = equation(here, rows)
        left = value < 0
        low[rows[left]] = here[left]
        high[rows[~left]] = here[~left]
        lo, hi = low[rows], high[rows]
        resolution = 2.0 * EPS * np.maximum(1.0, np.abs(here))
        done = (value == 0) | (hi - lo <= 2.0 * resolution)
        with np.errstate(all="ignore"):
            step = -value / slope
        # A Newton step must at least halve the step before it. One below the resolution is lengthened to cross the
        # root; if it did not cross (beside a singularity of the function), the next step halves the bracket.
        good = (slope > 0) & (np.abs(step) <= 0.5 * last[rows]) & ~probed[rows]
        probed[rows] = good & (np.abs(step) <= resolution)
        step = np.where(probed[rows], np.where(left, resolution, -resolution), step)
        good &= (here + step >= lo) & (here + step <= hi)
        candidate = np.where(good, here + step, lo + 0.5 * (hi - lo))
        last[rows] = np.where(good, np.abs(step), hi - lo)
        t[rows] = np.where(done, here, candidate)
        rows = rows[~done]
    return t


def _bracket(
    equation: Callable[[Array, np.ndarray], tuple[Array, Array]], low: Array, high: Array, start: Array
) -> tuple[Array, Array]:
    """A finite bracket around each root, by doubling steps away from the start."""
    low, high = low.copy(), high.copy()
    value, _ = equation(start, np.arange(start.size))
    for sign, near, far in ((1.0, low, high), (-1.0, high, low)):
        rows = np.flatnonzero(value < 0) if sign > 0 else np.flatnonzero(~(value < 0))
        near[rows] = start[rows]
        step = 1.0
        for _ in range(DOUBLINGS):
            if rows.size == 0:
                break
            t = start[rows] + sign * step
            beyond = t >= far[rows] if sign > 0 else t <= far[rows]
            rows, t = rows[~beyond], t[~beyond]
            here, _ = equation(t, rows)
            crossed = ~(here < 0) if sign > 0 else here < 0
            far[rows[crossed]] = t[crossed]
            near[rows[~crossed]] = t[~crossed]
            rows = rows[~crossed]
            step *= 2.0
    return low, high
