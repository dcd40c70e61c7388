"""Noise for privacy: from the operating system's secure randomness, unless a test asks for a seed.

A caveat that no library of floating-point numbers is free of: a double of Gaussian or Laplace noise has gaps between
its values, and their pattern can tell what it was added to (Mironov 2012). The exact guarantees of this package are
statements about real numbers. Round what is released to a public grid far coarser than the noise's own gaps where an
adversary sees every bit.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

from cvxpriv.errors import PrivacyError
from cvxpriv.numerics.arrays import Array

__all__ = ["Noise", "PrivacyWarning", "noise_source"]

Shape = int | tuple[int, ...]


class PrivacyWarning(UserWarning):
    """A privacy guarantee rests on something that the library cannot see."""


@dataclass(frozen=True)
class Noise:
    """A source of privacy noise.

    Attributes
    ----------
    generator : numpy.random.Generator, optional
        None: each draw reads the operating system's secure randomness.
    """

    generator: np.random.Generator | None = field(default=None)

    @property
    def secure(self) -> bool:
        """Whether draws come from the operating system's secure randomness."""
        return self.generator is None

    def normal(self, scale: float, shape: Shape) -> Array:
        """Return independent N(0, scale^2) draws; every entry has its own."""
        if not (np.isfinite(scale) and scale >= 0.0):
            raise PrivacyError(f"scale={scale!r} is no standard deviation: pass a finite number >= 0")
        if self.generator is not None:
            return np.asarray(scale * self.generator.standard_normal(shape))
        words = self._words(shape)
        # One bit for the sign and 63 for the tail: a half-normal reaches 9.2 standard deviations.
        tail = (np.right_shift(words, 1).astype(np.float64) + 0.5) * 2.0**-64
        sign = np.where(words & 1, 1.0, -1.0)
        return np.asarray(scale * sign * -ndtri(tail))

    def uniform(self, shape: Shape) -> Array:
        """Return independent draws from the open interval (0, 1)."""
        if self.generator is not None:
            return np.asarray(1.0 - self.generator.random(shape))
        return np.asarray((np.right_shift(self._words(shape), 11).astype(np.float64) + 0.5) * 2.0**-53)

    def gamma_ball(self, dimension: int, rate: float, count: int) -> Array:
        """Return `count` vectors, (count, dimension), of density proportional to exp(-rate ||b||).

        The direction is uniform and the norm is Gamma(dimension, 1/rate): a sum of exponentials.
        """
        if not (np.isfinite(rate) and rate > 0.0):
            raise PrivacyError(f"rate={rate!r} is no noise rate: pass a finite number > 0")
        direction = self.normal(1.0, (count, dimension))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        norm = -np.log(self.uniform((count, dimension))).sum(axis=1) / rate
        return np.asarray(norm[:, None] * direction)

    def _words(self, shape: Shape) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
        size = int(np.prod(shape))
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64).reshape(shape)


def noise_source(noise_seed: int | None = None) -> Noise:
    """Return the source of a run's privacy noise.

    Parameters
    ----------
    noise_seed : int, optional
        None, the only right choice for real data: secure randomness. A seed makes the noise repeatable and warns that
        whoever knows or guesses the seed can take the noise off again.

    Raises
    ------
    PrivacyError
        The seed is not a whole number >= 0.
    """
    if noise_seed is None:
        return Noise()
    if isinstance(noise_seed, bool) or not isinstance(noise_seed, (int, np.integer)) or noise_seed < 0:
        raise PrivacyError(f"noise_seed={noise_seed!r} is not a seed: pass a whole number >= 0, or None for real data")
    warnings.warn(
        "noise_seed makes the privacy noise repeatable: the guarantee then holds only while the seed is secret, and "
        "too large to be guessed; leave it out for real data",
        PrivacyWarning,
        stacklevel=3,
    )
    return Noise(np.random.default_rng(noise_seed))
