"""One contract for every penalty P(x), convex or not: value, proximal step, stationarity, bend, and DCP form.

A class that overrides a part states only that part; the rest stands here. A set of allowed coefficients is a penalty
too: 0 inside, inf outside. A new penalty is a class with these parts and a row in `named.FAMILIES`;
`cvxpriv.verify(penalty)` checks that its parts are of one P.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.errors import ModelError, shown
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door

#: A convex expression and the constraints that go with it.
Form = tuple[cp.Expression | float, list[cp.Constraint]]
#: Parts that every method needs, and further ones for steps by a solver or by linear algebra.
STEPS = ("value", "prox", "residual", "weak_convexity")
CONVEX_STEPS = (*STEPS, "expression", "ridge", "name")


@dataclass(frozen=True)
class Pieces:
    """The proximal problem of one coordinate with centre s, as two convex problems in r = |t| >= 0.

    near: bend r^2 / 2 + (slope - |s|) r over r <= near_end; far: r^2 / 2 - |s| r + plateau over r >= far_start.
    """

    bend: float
    slope: float
    near_end: float
    far_start: float
    plateau: float

    def heights(self, near: Array, far: Array, s: Array) -> tuple[Array, Array]:
        """Return the objectives of the two pieces, coordinate by coordinate."""
        size = np.abs(s)
        return 0.5 * self.bend * near**2 + (self.slope - size) * near, 0.5 * far**2 - size * far + self.plateau

    def leasts(self, s: Array) -> tuple[Array, Array]:
        """Return the minimiser of each piece, coordinate by coordinate."""
        size = np.abs(s)
        if self.bend > 0.0:
            near = np.clip((size - self.slope) / self.bend, 0.0, self.near_end)
        else:
            near = np.where(size > self.slope, self.near_end, 0.0)
        return near, np.maximum(size, self.far_start)


@door
class Penalty(ABC):
    """The contract of a penalty; a user's own need not inherit from it (`require_penalty`)."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The text that `penalty_named` reads."""

    @abstractmethod
    def value(self, x: Array) -> float:
        """Return P(x); inf outside its set."""

    @abstractmethod
    def prox(self, s: Array, step: float) -> Array:
        """Return the minimiser of ||t - s||^2 / 2 + step P(t); the one nearer to 0 where two are equally low.

        A step of 0 projects onto the set where P is finite.
        """

    @abstractmethod
    def residual(self, x: Array, gradient: Array) -> Array:
        """Return the difference of -gradient to the nearest limiting subgradient of P at x, coordinate by coordinate.

        Its Euclidean norm is the distance, which is 0 exactly where x is stationary for P + gradient'x. Signs are free.
        """

    @abstractmethod
    def expression(self, x: cp.Expression) -> Form:
        """Return P(x) + (weak_convexity / 2) ||x||^2 as a convex cvxpy expression, and constraints.

        Raises
        ------
        ModelError
            No quadratic makes P convex.
        """

    @property
    def weak_convexity(self) -> float:
        """The least c for which P + (c/2) ||.||^2 is convex; inf where there is none, 0 for a convex penalty."""
        return 0.0

    @property
    def ridge(self) -> float | None:
        """The number c where P(x) = (c/2) ||x||^2, so that a quadratic step is a linear system; None otherwise."""
        return None

    def pieces(self, step: float) -> Pieces | None:
        """Return the two convex pieces of the proximal problem at a step beyond 1 / weak_convexity, or None."""
        return None


@door
class Separable(Penalty):
    """A penalty that is a sum of p(|x_i|), with p' and p'' for Newton's method on the coordinates that are not 0."""

    @abstractmethod
    def terms(self, x: Array) -> Array:
        """Return p(|x_i|), coordinate by coordinate."""

    @abstractmethod
    def slope(self, x: Array) -> Array:
        """Return p'(|x_i|), coordinate by coordinate; at a kink the one from below, and at 0 the one from above."""

    @abstractmethod
    def bend(self, x: Array) -> Array:
        """Return p''(|x_i|), coordinate by coordinate."""

    def value(self, x: Array) -> float:
        return float(self.terms(x).sum())

    def residual(self, x: Array, gradient: Array) -> Array:
        """See `Penalty.residual`; at 0 the subgradients are the interval up to the slope there."""
        slope = self.slope(x)
        off = np.abs(gradient + np.sign(x) * slope)
        return np.asarray(np.where(x != 0.0, off, np.maximum(np.abs(gradient) - slope, 0.0)))

    def lowest(self, s: Array, step: float, candidates: list[Array]) -> Array:
        """Return the candidate of |t| with the lowest proximal objective, with the sign of s; the first of equals."""
        stacked = np.stack(candidates)
        heights = 0.5 * (stacked - np.abs(s)) ** 2 + step * self.terms(stacked)
        chosen = np.take_along_axis(stacked, np.argmin(heights, axis=0)[None], axis=0)[0]
        return np.asarray(np.sign(s) * chosen)


def distance(penalty: Penalty, x: Array, gradient: Array, weight: float = 1.0) -> float:
    """Return the Euclidean distance of -gradient to the subgradients of weight P at x.

    At a weight of 0 the set of a penalty remains, and the distance is that of x to its projected gradient step.
    """
    if weight == 0.0:
        return float(np.linalg.norm(x - penalty.prox(x - gradient, 0.0)))
    return weight * float(np.linalg.norm(penalty.residual(x, gradient / weight)))


@door
def require_penalty(penalty: object, parts: tuple[str, ...] = STEPS) -> None:
    """Refuse an object that lacks a part of the contract; the message names the missing parts.

    Parameters
    ----------
    penalty : object
    parts : tuple of str
        Parts that the method needs: `STEPS`, or `CONVEX_STEPS` where a solver or a linear system takes a step.

    Raises
    ------
    ModelError
        It lacks one of the parts.
    """
    missing = [part for part in parts if not hasattr(penalty, str(part))]
    if missing:
        raise ModelError(
            f"penalty={shown(penalty)} lacks {', '.join(map(str, missing))}: pass a text such as 'l1:0.1', or an "
            f"object with {', '.join(map(str, parts))} (cvxpriv.penalties.Penalty says what each is)"
        )


HEAVIEST = 1e100
"""The largest weight, whose products with steps and coefficients are doubles."""


def require_weight(lam: float, name: str) -> None:
    """Refuse a weight that is not finite, or negative."""
    if not 0.0 <= lam <= HEAVIEST:
        most = f", at most {HEAVIEST:g}" if lam > 0.0 else ""
        raise ModelError(f"lam={shown(lam)} of {name} is no weight: choose a finite number >= 0{most}")
