"""Roots of many increasing functions of one variable at once: Newton's method inside a bracket that is verified."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cvxpriv.numerics.arrays import Array

#: The functions that are evaluated: all of them, or their numbers.
Rows = slice | npt.NDArray[np.intp]
Equation = Callable[[Array, Rows], tuple[Array, Array]]

#: Resolution at a double of size 1; beside larger ones it grows with them.
RESOLUTION = 2.0 * float(np.finfo(float).eps)
#: Largest number of steps: Newton takes about eight; halving alone takes sixty from any bracket that doubling steps
#: leave, and walking 1100 at most.
STEPS = 1200
#: Distance from which an end is searched by doubling steps as an infinite one is: halving from 1e300 takes a thousand.
FAR = 1e12


def increasing_root(equation: Equation, low: Array, high: Array, start: Array, close: float = 0.0) -> Array:
    """Return the root of each function, to the resolution of a double or to a value within `close`.

    `equation`: ``equation(t, rows)`` gives values and slopes of the functions ``rows`` at ``t``. Values are negative
    left of the root and positive right of it; they may be infinite. A slope only steers the search.
    `low`, `high`, (m,): The interval of each root. An end that is infinite, or further than `FAR`, is replaced by one
    where the sign is right, found by doubling steps; a finite end is the answer where the function has no root before
    it.
    `start`, (m,): First guesses.
    `close`: A value of this size counts as 0.
    Returns (m,): The last point at which each function was evaluated.

    >>> increasing_root(lambda t, rows: (t**3 - 2.0, 3.0 * t**2), np.zeros(1), np.full(1, np.inf), np.ones(1))
    array([1.25992105])
    """
    low, high = (np.array(np.broadcast_to(end, start.shape), dtype=float) for end in (low, high))
    found = np.clip(start, low, high)
    rows: Rows = slice(None)
    if not (high > low).all():
        rows = np.flatnonzero(high > low)
        low, high = low[rows], high[rows]
    with np.errstate(all="ignore"):
        _search(equation, found, rows, low, high, close)
    return found


def _search(equation: Equation, found: Array, rows: Rows, low: Array, high: Array, close: float) -> None:
    """Write the roots of the functions `rows` into `found`, which holds a point of each bracket."""
    t = found[rows]
    last, reach, probed = np.full(t.shape, np.inf), 1.0, np.zeros(t.shape, dtype=bool)
    for _ in range(STEPS):
        if t.size == 0:
            return
        value, slope = equation(t, rows)
        left = value < 0.0
        low, high = np.where(left, t, low), np.where(left, high, t)
        width = high - low
        resolution = RESOLUTION * np.maximum(1.0, np.abs(t))
        step = -value / slope
        size = np.abs(step)
        # A Newton step must at least halve the step before it, and stay inside. One below the resolution is lengthened
        # to cross the root; if it did not cross (beside a singularity of the function), the bracket is halved next.
        good = (size <= 0.5 * last) & ~probed
        probed = good & (size <= resolution)
        if probed.any():
            step = np.where(probed, np.where(left, resolution, -resolution), step)
        after = t + step
        good &= (after >= low) & (after <= high)
        other = low + 0.5 * width
        walking = ~(width <= FAR)  # of infinite ends the width may be no number
        if walking.any():
            good &= ~walking | (size <= reach)
            further = t + np.where(left, reach, -reach)
            inside = ((further > low) & (further < high)) | ~np.isfinite(other)
            other = np.where(walking & inside, further, other)
            reach *= 2.0
        done = (width <= 2.0 * resolution) | (np.abs(value) <= close)
        last, after = np.where(good, size, width), np.where(good, after, other)
        if done.any():
            found[rows] = t
            kept = ~done
            rows = np.flatnonzero(kept) if isinstance(rows, slice) else rows[kept]
            low, high, after, last, probed = low[kept], high[kept], after[kept], last[kept], probed[kept]
        t = after
    found[rows] = t
