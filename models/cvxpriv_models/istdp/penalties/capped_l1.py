"""Capped l1: soft thresholding below the cap, none beyond."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

from .contract import Penalty, require_weight
from .separable import lowest, separable_residual

__all__ = ["CappedL1"]


@dataclass(frozen=True)
class CappedL1(Penalty):
    """The capped l1 penalty lam min(|t|, cap) (Zhang 2010): its kink at the cap is concave.

    Parameters
    ----------
    lam : float
        >= 0.
    cap : float
        > 0.
    """

    lam: float
    cap: float = 1.0

    def __post_init__(self) -> None:
        require_weight(self.lam, "capped l1")
        if not (np.isfinite(self.cap) and self.cap > 0.0):
            raise ModelError(f"cap={self.cap!r}: capped l1 needs a finite cap > 0")

    @property
    def name(self) -> str:
        """See `Penalty.name`."""
        return f"capped-l1:{self.lam:g}:{self.cap:g}"

    @property
    def weak_convexity(self) -> float:
        """Inf: no quadratic mends a concave kink."""
        return float("inf") if self.lam > 0.0 else 0.0

    def terms(self, theta: Array) -> Array:
        """See `Penalty.terms`."""
        return self.lam * np.minimum(np.abs(theta), self.cap)

    def slope(self, theta: Array) -> Array:
        """Return p'(|theta|), elementwise; at the cap the one from below."""
        return np.where(np.abs(theta) <= self.cap, self.lam, 0.0)

    def bend(self, theta: Array) -> Array:
        """Return p''(|theta|), elementwise."""
        return np.zeros_like(theta)

    def prox(self, s: Array, step: float) -> Array:
        """See `Penalty.prox`: the lower of the two pieces' leasts."""
        size = np.abs(s)
        soft = np.clip(size - step * self.lam, 0.0, self.cap)
        return lowest(s, step, [np.zeros_like(size), soft, np.maximum(size, self.cap)], self)

    def residual(self, theta: Array, gradient: Array) -> Array:
        """See `Penalty.residual`; at the cap the limiting subgradients are 0 and lam, and nothing between."""
        size = np.abs(theta)
        inside = separable_residual(theta, gradient, np.full_like(theta, self.lam), self.lam)
        beyond = np.abs(gradient)
        at_cap = np.minimum(inside, beyond)
        return np.where(size < self.cap, inside, np.where(size > self.cap, beyond, at_cap))
