"""Sets of allowed coefficients as penalties: a box, and a penalty within one."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.penalties.contract import Form, Penalty, Separable


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
