"""The convex penalties: elastic net, l1 and l2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

from .contract import Penalty, require_weight
from .separable import separable_residual

__all__ = ["L1", "L2", "ElasticNet"]


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """lam (ratio |t| + (1 - ratio) t^2 / 2), convex.

    Parameters
    ----------
    lam : float
        >= 0.
    ratio : float
        In [0, 1]: 1 is l1, 0 is l2.
    """

    lam: float
    ratio: float = 0.5

    def __post_init__(self) -> None:
        require_weight(self.lam, "the elastic net")
        if not 0.0 <= self.ratio <= 1.0:
            raise ModelError(f"ratio={self.ratio!r} of the elastic net is not in [0, 1]: 1 is l1, 0 is l2")

    @property
    def name(self) -> str:
        """See `Penalty.name`."""
        whole = {1.0: f"l1:{self.lam:g}", 0.0: f"l2:{self.lam:g}"}
        return whole.get(self.ratio, f"elastic-net:{self.lam:g}:{self.ratio:g}")

    @property
    def weak_convexity(self) -> float:
        """0."""
        return 0.0

    def terms(self, theta: Array) -> Array:
        """See `Penalty.terms`."""
        return np.asarray(self.lam * (self.ratio * np.abs(theta) + 0.5 * (1.0 - self.ratio) * theta**2))

    def slope(self, theta: Array) -> Array:
        """Return p'(|theta|), elementwise."""
        return np.asarray(self.lam * (self.ratio + (1.0 - self.ratio) * np.abs(theta)))

    def bend(self, theta: Array) -> Array:
        """Return p''(|theta|), elementwise."""
        return np.full_like(theta, self.lam * (1.0 - self.ratio))

    def prox(self, s: Array, step: float) -> Array:
        """See `Penalty.prox`."""
        soft = np.sign(s) * np.maximum(np.abs(s) - step * self.lam * self.ratio, 0.0)
        return np.asarray(soft / (1.0 + step * self.lam * (1.0 - self.ratio)))

    def residual(self, theta: Array, gradient: Array) -> Array:
        """See `Penalty.residual`."""
        weight = self.lam * self.ratio
        bent = gradient + self.lam * (1.0 - self.ratio) * theta
        return separable_residual(theta, bent, np.full_like(theta, weight), weight)


def L1(lam: float) -> ElasticNet:
    """Return lam ||theta||_1."""
    return ElasticNet(lam, 1.0)


def L2(lam: float) -> ElasticNet:
    """Return (lam/2) ||theta||^2."""
    return ElasticNet(lam, 0.0)
