"""The attack on floating-point noise: which doubles can be mean + scale * z at all."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cvxpriv.numerics.arrays import Array

__all__ = ["reachable"]


def reachable(released: Array, mean: Array, scale: float) -> npt.NDArray[np.bool_]:
    """Return of each entry whether some double z near (released - mean)/scale gives it back, to the last bit."""
    guess = (released - mean) / scale
    found = np.zeros(released.shape, dtype=bool)
    for steps in range(-3, 4):
        z = guess.copy()
        for _ in range(abs(steps)):
            z = np.nextafter(z, np.copysign(np.inf, steps))
        found |= mean + scale * z == released
    return found
