"""SCAD: soft thresholding near 0, none far out."""

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
class SCAD(Separable):
    """The smoothly clipped absolute deviation (Fan and Li 2001): p' is lam up to lam, then falls to 0 at a lam.

    Parameters
    ----------
    lam : float
        Weight, >= 0.
    a : float
        Shape, > 2; 3.7 is its authors' choice.
    """

    lam: float
    a: float = 3.7

    def __post_init__(self) -> None:
        require_weight(self.lam, "SCAD")
        if not (np.isfinite(self.a) and self.a > 2.0):
            raise ModelError(f"a={self.a!r}: SCAD needs a > 2, for example 3.7")

    @property
    def name(self) -> str:
        return f"scad:{self.lam:g}:{self.a:g}"

    @property
    def weak_convexity(self) -> float:
        """1/(a - 1)."""
        return 1.0 / (self.a - 1.0) if self.lam > 0.0 else 0.0

    def terms(self, x: Array) -> Array:
        size = np.abs(x)
        bend = (2.0 * self.a * self.lam * size - size**2 - self.lam**2) / (2.0 * (self.a - 1.0))
        flat = self.lam**2 * (self.a + 1.0) / 2.0
        return np.where(size <= self.lam, self.lam * size, np.where(size <= self.a * self.lam, bend, flat))

    def slope(self, x: Array) -> Array:
        return np.clip((self.a * self.lam - np.abs(x)) / (self.a - 1.0), 0.0, self.lam)

    def bend(self, x: Array) -> Array:
        size = np.abs(x)
        return np.where((size > self.lam) & (size < self.a * self.lam), -1.0 / (self.a - 1.0), 0.0)

    def prox(self, s: Array, step: float) -> Array:
        """See `Penalty.prox`: the lowest of each piece's own minimum."""
        size = np.abs(s)
        soft = np.clip(size - step * self.lam, 0.0, self.lam)
        beyond = np.maximum(size, self.a * self.lam)
        candidates = [np.zeros_like(size), soft, beyond]
        bend = 1.0 - step / (self.a - 1.0)
        if bend > 0.0:
            middle = (size - step * self.a * self.lam / (self.a - 1.0)) / bend
            candidates.insert(2, np.clip(middle, self.lam, self.a * self.lam))
        return self.lowest(s, step, candidates)

    def expression(self, x: cp.Expression) -> Form:
        """See `Penalty.expression`. As huber(x, lam) = x^2 - (|x| - lam)_+^2, it takes the concave part of P out."""
        if self.lam == 0.0:
            return 0.0, []
        bent = cp.huber(x, self.lam) + cp.square(cp.pos(cp.abs(x) - self.a * self.lam))
        return self.lam * cp.norm1(x) + 0.5 / (self.a - 1.0) * cp.sum(bent), []

    def pieces(self, step: float) -> Pieces:
        lam, a = self.lam, self.a
        return Pieces(1.0, step * lam, lam, a * lam, 0.5 * step * lam**2 * (a + 1.0))
