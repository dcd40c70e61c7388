"""What the penalties of one coordinate each share."""

from __future__ import annotations

import numpy as np

from cvxpriv.numerics.arrays import Array

from .contract import Penalty

__all__ = ["lowest", "separable_residual"]


def separable_residual(theta: Array, gradient: Array, slope: Array, at_zero: float) -> Array:
    """Return the distances for p with p'(|theta|) = `slope` off zero and subgradients [-at_zero, at_zero] at zero."""
    off = np.abs(gradient + np.sign(theta) * slope)
    return np.asarray(np.where(theta != 0.0, off, np.maximum(np.abs(gradient) - at_zero, 0.0)))


def lowest(s: Array, step: float, candidates: list[Array], penalty: Penalty) -> Array:
    """Return the candidate of |t| with the lowest h, by coordinate; the first of equals. Signs are those of s."""
    size = np.abs(s)
    stacked = np.stack(candidates)
    heights = 0.5 * (stacked - size) ** 2 + step * penalty.terms(stacked)
    chosen = np.take_along_axis(stacked, np.argmin(heights, axis=0)[None], axis=0)[0]
    return np.asarray(np.sign(s) * chosen)
