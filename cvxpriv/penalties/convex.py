"""The convex penalties of a coefficient's size (elastic net, l1, l2), and the group lasso, which drops whole groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.penalties.contract import Form, Penalty, Separable, require_weight


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
        # The weight comes first: the square of a coefficient of 1e160 is no double, and a tiny weight of it is one.
        return np.asarray(self.lam * self.ratio * np.abs(x) + 0.5 * self.lam * (1.0 - self.ratio) * x * x)

    def slope(self, x: Array) -> Array:
        return np.asarray(self.lam * (self.ratio + (1.0 - self.ratio) * np.abs(x)))

    def bend(self, x: Array) -> Array:
        return np.full_like(x, self.lam * (1.0 - self.ratio))

    def prox(self, s: Array, step: float) -> Array:
        linear, square = self.lam * self.ratio, self.lam * (1.0 - self.ratio)  # a step of inf times 0 is no number
        soft = np.sign(s) * np.maximum(np.abs(s) - step * linear, 0.0) if linear > 0.0 else s
        return np.asarray(soft / (1.0 + step * square) if square > 0.0 else soft)

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


@door
@dataclass(frozen=True)
class GroupLasso(Penalty):
    """lam times the sum over groups of sqrt(size) ||x_group|| (Yuan and Lin 2006), convex.

    Parameters
    ----------
    groups : sequence of sequences of int
        Indices of coefficients, each in at most one group.
    lam : float
        Weight, >= 0.
    """

    groups: Sequence[Sequence[int]]
    lam: float = 1.0

    def __post_init__(self) -> None:
        require_weight(self.lam, "the group lasso")
        flat = [index for one in self.groups for index in one]
        if not all(self.groups) or len(set(flat)) != len(flat):
            raise ModelError(f"groups={self.groups!r} overlap or hold an empty one: give every index to at most one")
        object.__setattr__(self, "groups", tuple(tuple(int(index) for index in one) for one in self.groups))

    @property
    def name(self) -> str:
        """Name of the penalty; `penalty_named` does not read it."""
        return "group"

    def _weighted(self) -> Iterator[tuple[float, npt.NDArray[np.intp]]]:
        for one in self.groups:
            yield self.lam * float(np.sqrt(len(one))), np.asarray(one, dtype=np.intp)

    def value(self, x: Array) -> float:
        return float(sum(weight * np.linalg.norm(x[one]) for weight, one in self._weighted()))

    def prox(self, s: Array, step: float) -> Array:
        t = s.copy()
        for weight, one in self._weighted():
            t[one] = _beyond(s[one], step * weight)
        return t

    def residual(self, x: Array, gradient: Array) -> Array:
        """See `Penalty.residual`. At 0 the subgradients of a group are a ball."""
        off = gradient.copy()
        for weight, one in self._weighted():
            size = float(np.linalg.norm(x[one]))
            off[one] = gradient[one] + weight * x[one] / size if size > 0.0 else _beyond(gradient[one], weight)
        return off

    def expression(self, x: cp.Expression) -> Form:
        return sum(weight * cp.norm2(x[one]) for weight, one in self._weighted()), []


def _beyond(v: Array, radius: float) -> Array:
    """Return the part of v outside the ball."""
    size = float(np.linalg.norm(v))
    return v * (max(0.0, size - radius) / size) if size > 0.0 else v
