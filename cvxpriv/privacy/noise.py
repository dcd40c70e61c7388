"""Noise for privacy: random bits from the operating system's secure source, unless a test gives a seed.

A release goes through `grid`: there a query is rounded to a public grid first, and the noise is an exactly drawn
multiple of the grid's step. Doubles of Gaussian or Laplace noise have gaps between their values, and their pattern
reveals the query (Mironov 2012); on a grid every value is reachable from every query. OpenDP and diffprivlib guard
against the same: OpenDP by discrete noise on a grid, diffprivlib by adding up several numbers.

`normal` and `gamma_ball` draw plain doubles. They serve noise that is not released by itself, as inside an objective,
and mechanisms as papers print them.
"""

import os
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cvxpriv.errors import PrivacyError, shown, warn
from cvxpriv.numerics.arguments import is_whole
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy.sampling import balls, exact_coins, half_normals, rounded_balls, rounded_normals

Shape = int | tuple[int, ...]


class PrivacyWarning(UserWarning):
    """A privacy guarantee rests on a condition that the library cannot check."""


@dataclass(frozen=True)
class Noise:
    """A source of privacy noise.

    `generator`: Source of seeded noise. None: each draw reads the operating system's secure randomness.
    """

    generator: np.random.Generator | None = field(default=None)

    @property
    def secure(self) -> bool:
        """Whether draws come from the operating system's secure randomness."""
        return self.generator is None

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return `count` random words of 64 bits."""
        if self.generator is not None:
            return self.generator.bit_generator.random_raw(count)
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)

    def rounded_normals(self, sigma: float, count: int) -> npt.NDArray[np.int64]:
        """Return exactly rounded numbers of N(0, sigma^2), (count,): see `sampling.rounded_normals`."""
        return rounded_normals(self.words, sigma, count)

    def rounded_ball(self, scale: float, dimension: int) -> npt.NDArray[np.int64]:
        """Return one vector of density exp(-||x||/scale), (dimension,), rounded entry by entry, exactly."""
        return rounded_balls(self.words, scale, 1, dimension).ravel()

    def coins(self, epsilon: float, count: int) -> npt.NDArray[np.bool_]:
        """Return coins, (count,), that are True with probability 1/(1 + exp(epsilon)), exactly."""
        return exact_coins(self.words, epsilon, count)

    def normal(self, scale: float, shape: Shape) -> Array:
        """Return independent N(0, scale^2) doubles, one scale per entry. They are not for a release."""
        if not (np.isfinite(scale) and scale >= 0.0):
            raise PrivacyError(f"scale={scale!r} is no standard deviation: pass a finite number >= 0")
        size, sign, _ = half_normals(self.words(int(np.prod(shape))))
        return np.asarray(scale * sign * size).reshape(shape)

    def gamma_ball(self, dimension: int, rate: float, count: int) -> Array:
        """Return `count` vectors, (count, dimension), of density proportional to exp(-rate ||b||).

        The direction is uniform and the norm is Gamma(dimension, 1/rate): a sum of exponentials. Each vector is within
        `sampling.BALL_ERROR` times its norm of a real vector of this law. They are doubles, and not for a release.
        """
        if not (np.isfinite(rate) and rate > 0.0):
            raise PrivacyError(f"rate={rate!r} is no noise rate: pass a finite number > 0")
        return balls(self.words, 1.0 / rate, count, dimension)


def noise_source(noise_seed: int | None = None) -> Noise:
    """Return the source of a run's privacy noise.

    `noise_seed`: None, the only right choice for real data, reads secure randomness. A seed makes the noise repeatable
    and warns: anyone who knows or guesses the seed can remove the noise.
    Raises PrivacyError: The seed is not a whole number >= 0.
    """
    if noise_seed is None:
        return Noise()
    if not is_whole(noise_seed, 0):
        raise PrivacyError(
            f"noise_seed={shown(noise_seed)} is not a seed: pass a whole number >= 0, or None for real data"
        )
    warn(
        "noise_seed makes the privacy noise repeatable: the guarantee then holds only while the seed is secret, and "
        "too large to be guessed; leave it out for real data",
        PrivacyWarning,
    )
    return Noise(np.random.default_rng(noise_seed))
