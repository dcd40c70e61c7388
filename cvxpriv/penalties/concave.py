"""The penalties that are concave away from zero, and so shrink large coefficients less than l1 does."""

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
