"""MCP: firm thresholding, or hard for long steps."""

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
class MCP(Separable):
    """The minimax concave penalty (Zhang 2010): p' falls from lam to 0 over alpha lam.

    Parameters
    ----------
    lam : float
        Weight, >= 0.
    alpha : float
        Shape, > 1; a large one is near l1.

    Examples
    --------
    >>> MCP(lam=1.0, alpha=3.0).prox(np.array([0.5]), step=0.1).round(4)
    array([0.4138])
    """

    lam: float
    alpha: float = 3.0

    def __post_init__(self) -> None:
        require_weight(self.lam, "MCP")
        if not (np.isfinite(self.alpha) and self.alpha > 1.0):
            raise ModelError(f"alpha={self.alpha!r}: MCP needs alpha > 1, for example 3")

    @property
    def name(self) -> str:
        return f"mcp:{self.lam:g}:{self.alpha:g}"

    @property
    def weak_convexity(self) -> float:
        """1/alpha."""
        return 1.0 / self.alpha if self.lam > 0.0 else 0.0

    def terms(self, x: Array) -> Array:
        size = np.minimum(np.abs(x), self.alpha * self.lam)
        return np.asarray(self.lam * size - size**2 / (2.0 * self.alpha))

    def slope(self, x: Array) -> Array:
        return np.maximum(self.lam - np.abs(x) / self.alpha, 0.0)

    def bend(self, x: Array) -> Array:
        return np.where(np.abs(x) < self.alpha * self.lam, -1.0 / self.alpha, 0.0)

    def prox(self, s: Array, step: float) -> Array:
        """See `Penalty.prox`; firm thresholding below alpha, hard thresholding from alpha on (MATH ISTDP)."""
        size = np.abs(s)
        if step >= self.alpha:
            return np.where(size > self.lam * np.sqrt(step * self.alpha), s, 0.0)
        firm = np.sign(s) * np.maximum(size - step * self.lam, 0.0) / (1.0 - step / self.alpha)
        return np.where(size <= self.alpha * self.lam, firm, s)

    def expression(self, x: cp.Expression) -> Form:
        """See `Penalty.expression`. The added square straightens P up to alpha lam, and bends it beyond."""
        if self.lam == 0.0:
            return 0.0, []
        beyond = cp.sum_squares(cp.pos(cp.abs(x) - self.alpha * self.lam))
        return self.lam * cp.norm1(x) + 0.5 / self.alpha * beyond, []

    def pieces(self, step: float) -> Pieces:
        """See `Penalty.pieces`. The near one is concave, so its chord replaces it, which has the same minimum."""
        lam, alpha = self.lam, self.alpha
        return Pieces(0.0, 0.5 * lam * (alpha + step), alpha * lam, alpha * lam, 0.5 * step * alpha * lam**2)
