"""The root that a proximal step asks for, all samples at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvxpriv.numerics.arrays import Array

__all__ = ["falling_sigmoid", "falling_slope", "logistic_root", "monotone_root"]

#: Newton steps, of which bisection takes over the ones that leave the bracket; 64 halvings end any bracket.
LIMIT = 100
#: Of the terms that cancel at a root: it is right to the last few bits.
PRECISION = 2.0 * np.finfo(float).eps
#: Halley's steps of the logistic root before the bracketed one takes over, and the step after which a cubic method is
#: right to the last bits.
HALLEY_STEPS, HALLEY_SETTLED = 8, 1e-6


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


def logistic_root(v: Array, ratio: Array, guess: Array) -> Array:
    """Return the root of ratio (t - v) - sigmoid(-t), elementwise: the logistic loss's proximal step.

    Halley's steps, clipped to the bracket [v, v + 1/ratio]. The slope f' of the gap changes slowly, |f''| <= f', so a
    short step s leaves an error of the order s^3: from a good guess two passes leave nothing but rounding. Samples that
    do not settle have the bracketed root.

    Parameters
    ----------
    v, ratio, guess : ndarray
    """
    high = v + 1.0 / ratio
    t = np.minimum(np.maximum(guess, v), high)
    for _ in range(HALLEY_STEPS):
        p = falling_sigmoid(t)
        bend = p * (1.0 - p)
        slope = bend + ratio
        newton = (ratio * (t - v) - p) / slope
        # f'' = -p (1 - p) (1 - 2 p); far from the root Halley's denominator may vanish, and half of it is enough.
        step = newton / np.maximum(1.0 + newton * (bend * (0.5 - p) / slope), 0.5)
        t = np.minimum(np.maximum(t - step, v), high)
        rest = np.abs(step) > HALLEY_SETTLED
        if not rest.any():
            return t
    t[rest] = monotone_root(lambda s: -falling_sigmoid(s), falling_slope, v[rest], ratio[rest], t[rest])
    return t


def falling_sigmoid(t: Array) -> Array:
    """Return 1/(1 + e^t), three times faster than scipy's expit(-t); e^t may overflow to inf, which gives 0."""
    with np.errstate(over="ignore"):
        p = np.exp(t)
    p += 1.0
    return np.reciprocal(p, out=p)


def falling_slope(t: Array) -> Array:
    """Return e^t/(1 + e^t)^2, the size of the sigmoid's slope."""
    p = falling_sigmoid(t)
    return p * (1.0 - p)


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
