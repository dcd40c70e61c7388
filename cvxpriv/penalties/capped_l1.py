"""Capped l1: soft thresholding below the cap, none beyond."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.penalties.contract import Form, Pieces, Separable, require_weight


@door
@dataclass(frozen=True)
class CappedL1(Separable):
    """The capped l1 penalty lam min(|t|, cap) (Zhang 2010): its kink at the cap is concave.

    Parameters
    ----------
    lam : float
        Weight, >= 0.
    cap : float
        Size at which the penalty is capped, > 0.
    """

    lam: float
    cap: float = 1.0

    def __post_init__(self) -> None:
        require_weight(self.lam, "capped l1")
        if not (np.isfinite(self.cap) and self.cap > 0.0):
            raise ModelError(f"cap={self.cap!r}: capped l1 needs a finite cap > 0")

    @property
    def name(self) -> str:
        return f"capped-l1:{self.lam:g}:{self.cap:g}"

    @property
    def weak_convexity(self) -> float:
        """Infinite: no quadratic makes a concave kink convex."""
        return float("inf") if self.lam > 0.0 else 0.0

    def terms(self, x: Array) -> Array:
        return self.lam * np.minimum(np.abs(x), self.cap)

    def slope(self, x: Array) -> Array:
        return np.where(np.abs(x) <= self.cap, self.lam, 0.0)

    def bend(self, x: Array) -> Array:
        return np.zeros_like(x)

    def prox(self, s: Array, step: float) -> Array:
        """See `Penalty.prox`: the lower of the two pieces' minima."""
        size = np.abs(s)
        soft = np.clip(size - step * self.lam, 0.0, self.cap)
        return self.lowest(s, step, [np.zeros_like(size), soft, np.maximum(size, self.cap)])

    def residual(self, x: Array, gradient: Array) -> Array:
        """See `Penalty.residual`. At the cap the limiting subgradients are 0 and lam, and none between them."""
        below = super().residual(x, gradient)
        return np.where(np.abs(x) == self.cap, np.minimum(below, np.abs(gradient)), below)

    def expression(self, x: cp.Expression) -> Form:
        if self.lam > 0.0:
            raise ModelError(f"penalty={self!r} declares no convex form: no quadratic mends its kink")
        return 0.0, []

    def pieces(self, step: float) -> Pieces:
        return Pieces(1.0, step * self.lam, self.cap, self.cap, step * self.lam * self.cap)
