"""The root that a proximal step asks for, all samples at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvxpriv.state import Array

__all__ = ["monotone_root"]

#: Newton steps, of which bisection takes over the ones that leave the bracket; 64 halvings end any bracket.
LIMIT = 100
#: Of the terms that cancel at a root: it is right to the last few bits.
PRECISION = 2.0 * np.finfo(float).eps


def monotone_root(
    derivative: Callable[[Array], Array], second: Callable[[Array], Array], v: Array, ratio: Array, guess: Array
) -> Array:
    """Return the root of derivative(t) + ratio (t - v), which increases, elementwise.

    For an increasing derivative the root lies between v and v - derivative(v)/ratio: plain Newton from v fails on up to
    half of the logistic cases with a small ratio (ERRATA SHARING 2), Newton inside the bracket never. For a loss that
    is not convex the bracket is widened until the sign changes.

    Parameters
    ----------
    derivative, second : callable
        phi' and phi''; phi'' + ratio > 0.
    v, ratio, guess : ndarray
    """
    shift = derivative(v) / ratio
    low, high = np.minimum(v, v - shift), np.maximum(v, v - shift)
    _widen(derivative, v, ratio, low, high)
    t = np.clip(guess, low, high)
    moved = high - low
    for _ in range(LIMIT):
        slope = derivative(t)
        gap = slope + ratio * (t - v)
        settled = np.abs(gap) <= PRECISION * (np.abs(slope) + ratio * (np.abs(t) + np.abs(v)))
        if settled.all():
            break
        above = gap > 0.0
        np.copyto(high, t, where=above)
        np.copyto(low, t, where=~above)
        step = t - gap / (second(t) + ratio)
        # Newton may jump from end to end where the derivative saturates: it has to halve its step, or bisection does.
        slow = (step < low) | (step > high) | (np.abs(step - t) > 0.5 * moved)
        step = np.where(settled, t, np.where(slow, 0.5 * (low + high), step))
        moved = np.abs(step - t)
        t = step
    return t


def _widen(derivative: Callable[[Array], Array], v: Array, ratio: Array, low: Array, high: Array) -> None:
    """Move the ends of brackets, in place, until the gap is at most 0 below and at least 0 above."""
    for end, sign in ((low, 1.0), (high, -1.0)):
        width = np.maximum(high - low, 1e-6)
        for _ in range(LIMIT):
            short = sign * (derivative(end) + ratio * (end - v)) > 0.0
            if not short.any():
                break
            end[short] -= sign * width[short]
            width = width * 2.0
