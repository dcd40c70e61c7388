"""The convex penalties of a coefficient's size (elastic net, l1, l2), and the group lasso, which drops whole groups.

A set of allowed coefficients is one too: a box, and a penalty within one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxpriv.errors import ModelError, shown
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
        Indices of coefficients, from 0, each in at most one group.
    lam : float
        Weight, >= 0.
    """

    groups: Sequence[Sequence[int]]
    lam: float = 1.0

    def __post_init__(self) -> None:
        require_weight(self.lam, "the group lasso")
        flat = [index for one in self.groups for index in one]
        if not all(self.groups) or len(set(flat)) != len(flat):
            raise ModelError(
                f"groups={shown(self.groups)} overlap or hold an empty one: give every index to at most one"
            )
        object.__setattr__(self, "groups", tuple(tuple(int(index) for index in one) for one in self.groups))

    @property
    def name(self) -> str:
        """Name of the penalty; `penalty_named` does not read it."""
        return "group"

    def _weighted(self, x: Array | cp.Expression) -> Iterator[tuple[float, npt.NDArray[np.intp]]]:
        for one in self.groups:
            if min(one) < 0 or max(one) >= x.size:
                raise ModelError(f"groups hold {shown(one)}: the {x.size:,} coefficients are 0 to {x.size - 1:,}")
            yield self.lam * float(np.sqrt(len(one))), np.asarray(one, dtype=np.intp)

    def value(self, x: Array) -> float:
        return float(sum(weight * np.linalg.norm(x[one]) for weight, one in self._weighted(x)))

    def prox(self, s: Array, step: float) -> Array:
        t = s.copy()
        for weight, one in self._weighted(s):
            t[one] = _beyond(s[one], step * weight)
        return t

    def residual(self, x: Array, gradient: Array) -> Array:
        """See `Penalty.residual`. At 0 the subgradients of a group are a ball."""
        off = gradient.copy()
        for weight, one in self._weighted(x):
            size = float(np.linalg.norm(x[one]))
            off[one] = gradient[one] + weight * x[one] / size if size > 0.0 else _beyond(gradient[one], weight)
        return off

    def expression(self, x: cp.Expression) -> Form:
        return sum(weight * cp.norm2(x[one]) for weight, one in self._weighted(x)), []


def _beyond(v: Array, radius: float) -> Array:
    """Return the part of v outside the ball."""
    size = float(np.linalg.norm(v))
    return v * (max(0.0, size - radius) / size) if size > 0.0 else v


@door
@dataclass(frozen=True)
class Box(Penalty):
    """The set low <= x <= high: 0 inside, inf outside.

    Parameters
    ----------
    low, high : float
        Bounds with low < high; inf stands for no bound.
    """

    low: float = 0.0
    high: float = float("inf")

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ModelError(f"box={self.low!r}..{self.high!r} holds no interval: choose low < high")

    @property
    def name(self) -> str:
        return "nonneg" if self == Box() else f"box:{self.low:g}:{self.high:g}"

    def value(self, x: Array) -> float:
        return 0.0 if bool(((x >= self.low) & (x <= self.high)).all()) else float("inf")

    def prox(self, s: Array, step: float) -> Array:
        """See `Penalty.prox`: the projection, whatever the step."""
        return np.clip(s, self.low, self.high)

    def residual(self, x: Array, gradient: Array) -> Array:
        """See `Penalty.residual`: -gradient may point out of the box at its walls, and vanishes inside."""
        inward = np.where(x >= self.high, np.maximum(gradient, 0.0), gradient)
        return np.where(x <= self.low, np.minimum(gradient, 0.0), inward)

    def expression(self, x: cp.Expression) -> Form:
        bounds = [x >= self.low] if np.isfinite(self.low) else []
        return 0.0, [*bounds, x <= self.high] if np.isfinite(self.high) else bounds


@door
@dataclass(frozen=True)
class Within(Penalty):
    """A convex penalty of single coordinates within a box: P(x) where the bounds hold, inf elsewhere.

    Its residual is x - prox(x - gradient, 1), which is 0 exactly where x is stationary.

    Parameters
    ----------
    penalty : Separable or Box
    box : Box
    """

    penalty: Penalty
    box: Penalty

    def __post_init__(self) -> None:
        if not isinstance(self.box, Box):
            raise ModelError(f"sets={self.box!r} is no ready set: pass 'nonneg' or 'box:<low>:<high>'")
        if not isinstance(self.penalty, (Separable, Box, Within)) or self.penalty.weak_convexity > 0.0:
            raise ModelError(
                f"penalty={self.penalty!r} ties coordinates together or is not convex, and has no ready step within "
                f"{self.box.name!r}: add the set with constrain(...)"
            )

    @property
    def name(self) -> str:
        """Name of the penalty; `penalty_named` does not read it."""
        return f"{self.penalty.name} within {self.box.name}"

    def value(self, x: Array) -> float:
        return self.penalty.value(x) + self.box.value(x)

    def prox(self, s: Array, step: float) -> Array:
        """See `Penalty.prox`. It is convex in each coordinate, so the clipped step is the minimiser in the box."""
        return self.box.prox(self.penalty.prox(s, step), step)

    def residual(self, x: Array, gradient: Array) -> Array:
        return x - self.prox(x - gradient, 1.0)

    def expression(self, x: cp.Expression) -> Form:
        cost, inside = self.penalty.expression(x)
        return cost, [*inside, *self.box.expression(x)[1]]


def bounded(penalty: Penalty) -> bool:
    """Return whether a penalty keeps every coefficient between two finite bounds."""
    if isinstance(penalty, Within):
        return bounded(penalty.box) or bounded(penalty.penalty)
    return isinstance(penalty, Box) and bool(np.isfinite([penalty.low, penalty.high]).all())


def by_coordinate(penalty: Penalty) -> bool:
    """Return whether `prox` takes a step of its own for each coordinate, as an array."""
    return by_coordinate(penalty.penalty) if isinstance(penalty, Within) else isinstance(penalty, (ElasticNet, Box))
