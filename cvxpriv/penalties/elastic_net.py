"""The convex penalties of a coefficient's size: elastic net, l1 and l2."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.penalties.contract import Form, Separable, require_weight


@door
@dataclass(frozen=True)
class ElasticNet(Separable):
    """lam (ratio |t| + (1 - ratio) t^2 / 2), convex.

    Parameters
    ----------
    lam : float
        Weight, >= 0.
    ratio : float
        Share of the l1 part, in [0, 1]: 1 is l1, 0 is l2.

    Examples
    --------
    >>> ElasticNet(1.0, 0.5).prox(np.array([2.0, 0.1]), 1.0)
    array([1., 0.])
    """

    lam: float = 1.0
    ratio: float = 0.5

    def __post_init__(self) -> None:
        require_weight(self.lam, "the elastic net")
        if not 0.0 <= self.ratio <= 1.0:
            raise ModelError(f"ratio={self.ratio!r} of the elastic net is not in [0, 1]: 1 is l1, 0 is l2")

    @property
    def name(self) -> str:
        """See `Penalty.name`; a weight of 1 is left out."""
        if self.lam == 0.0:
            return "none"
        if self.ratio not in (0.0, 1.0):
            return f"elastic-net:{self.lam:g}:{self.ratio:g}"
        kind = "l1" if self.ratio == 1.0 else "l2"
        return kind if self.lam == 1.0 else f"{kind}:{self.lam:g}"

    @property
    def ridge(self) -> float | None:
        return self.lam * (1.0 - self.ratio) if self.lam * self.ratio == 0.0 else None

    def terms(self, x: Array) -> Array:
        return np.asarray(self.lam * (self.ratio * np.abs(x) + 0.5 * (1.0 - self.ratio) * x**2))

    def slope(self, x: Array) -> Array:
        return np.asarray(self.lam * (self.ratio + (1.0 - self.ratio) * np.abs(x)))

    def bend(self, x: Array) -> Array:
        return np.full_like(x, self.lam * (1.0 - self.ratio))

    def prox(self, s: Array, step: float) -> Array:
        soft = np.sign(s) * np.maximum(np.abs(s) - step * self.lam * self.ratio, 0.0)
        return np.asarray(soft / (1.0 + step * self.lam * (1.0 - self.ratio)))

    def expression(self, x: cp.Expression) -> Form:
        linear, square = self.lam * self.ratio, 0.5 * self.lam * (1.0 - self.ratio)
        parts = [weight * atom(x) for weight, atom in ((linear, cp.norm1), (square, cp.sum_squares)) if weight > 0.0]
        return sum(parts) if parts else 0.0, []


def L1(lam: float = 1.0) -> ElasticNet:
    """Return lam ||x||_1."""
    return ElasticNet(lam, 1.0)


def L2(lam: float = 1.0) -> ElasticNet:
    """Return (lam/2) ||x||^2."""
    return ElasticNet(lam, 0.0)
