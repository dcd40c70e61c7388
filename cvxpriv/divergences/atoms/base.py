"""The contract of an atom: its jet at numbers, its cone form, and the values of the form's variables."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import cvxpy as cp
import numpy as np

from cvxpriv.numerics.arrays import Array

#: Value, first and second derivative in the requested direction.
Jet = tuple[Array, Array, Array]
NOTHING = np.zeros(())


@dataclass(frozen=True)
class At:
    """The point at which an atom is evaluated.

    `p`, `q`: Arrays of one shape, >= 0. `along`, {"p", "q"}: The variable of the two derivatives. None: values alone.
    """

    p: Array
    q: Array
    along: Literal["p", "q"] | None = None

    @property
    def side(self) -> int:
        """The side of derivatives at a kink: from the right in t = q/p, which is growing q or falling p."""
        return -1 if self.along == "p" else 1


@dataclass
class Writer:
    """A cone form under construction.

    `p`, `q`: Flat, of one size.
    """

    p: cp.Expression
    q: cp.Expression
    constraints: list[cp.Constraint] = field(default_factory=list)

    def variable(self) -> cp.Variable:
        """Return a new variable, one entry for each cell."""
        return cp.Variable(self.p.size)

    def mean_above(self, parts: Sequence[tuple[cp.Expression, float]], bound: cp.Expression) -> None:
        """Add the constraint prod x**weight >= |bound|, for weights that sum to 1."""
        (x, a), (y, b), *rest = parts
        below = self.variable() if rest else bound
        if a == b:
            self.constraints.append(cp.SOC(x + y, cp.vstack([2.0 * below, x - y]), axis=0))
        else:
            self.constraints.append(cp.PowCone3D(x, y, below, a / (a + b)))
        if rest:
            self.mean_above([(below, a + b), *rest], bound)


def mean_values(parts: Sequence[tuple[Array, float]]) -> list[Array]:
    """Return the values of the variables that `Writer.mean_above` adds."""
    if len(parts) < 3:
        return []
    (x, a), (y, b), *rest = parts
    with np.errstate(all="ignore"):
        below = np.where((x > 0.0) & (y > 0.0), x * (y / x) ** (b / (a + b)), 0.0)
    return [below, *mean_values([(below, a + b), *rest])]


class Atom(ABC):
    """A homogeneous function of (p, q)."""

    @property
    @abstractmethod
    def curvature(self) -> int:
        """1 convex, -1 concave, 0 affine."""

    @property
    @abstractmethod
    def nonnegative(self) -> bool:
        """Whether its form shows that it is >= 0 wherever p, q >= 0."""

    @property
    @abstractmethod
    def cones(self) -> frozenset[str]:
        """The cones of its form."""

    @property
    def flat(self) -> bool:
        """Whether `declare` returns an affine expression: then the form's own variable stands for the atom."""
        return True

    @abstractmethod
    def jet(self, at: At) -> Jet:
        """Return value and derivatives; without a direction the derivatives are empty."""

    @abstractmethod
    def declare(self, writer: Writer) -> cp.Expression:
        """Return an expression that bounds the atom, a convex one from above, a concave one from below."""

    @abstractmethod
    def own(self, p: Array, q: Array) -> list[Array]:
        """Return the values of the variables that `declare` makes, in that order."""

    def value(self, p: Array, q: Array) -> Array:
        """Return only the value."""
        return self.jet(At(p, q))[0]

    def affine_bound(self, writer: Writer) -> cp.Expression:
        """Return an affine expression that bounds the atom, for use within a cone."""
        expression = self.declare(writer)
        if self.flat:
            return expression
        bound = writer.variable()
        writer.constraints.append(bound >= expression if self.curvature > 0 else bound <= expression)
        return bound

    def bound_values(self, p: Array, q: Array) -> list[Array]:
        """Return the values of the variables that `affine_bound` makes."""
        return self.own(p, q) if self.flat else [*self.own(p, q), self.value(p, q)]


@dataclass(frozen=True)
class Affine(Atom):
    """a p + b q."""

    a: float
    b: float

    curvature = 0

    @property
    def nonnegative(self) -> bool:
        return self.a >= 0.0 and self.b >= 0.0

    @property
    def cones(self) -> frozenset[str]:
        return frozenset()

    def jet(self, at: At) -> Jet:
        value = at.q if (self.a, self.b) == (0.0, 1.0) else at.p if (self.a, self.b) == (1.0, 0.0) else None
        if value is None:
            value = np.asarray(self.a * at.p + self.b * at.q)
        if at.along is None:
            return value, NOTHING, NOTHING
        return value, np.asarray(self.a if at.along == "p" else self.b), NOTHING

    def declare(self, writer: Writer) -> cp.Expression:
        parts = [one if c == 1.0 else c * one for c, one in ((self.a, writer.p), (self.b, writer.q)) if c != 0.0]
        return sum(parts[1:], parts[0]) if parts else cp.Constant(np.zeros(writer.p.size))

    def own(self, p: Array, q: Array) -> list[Array]:
        return []


#: Share of its parts below which a difference of products is computed in the other way.
CANCELS = 1e-3
P, Q = Affine(1.0, 0.0), Affine(0.0, 1.0)


@dataclass(frozen=True)
class Total(Atom):
    """sum weight * atom, weights of either sign."""

    terms: tuple[tuple[float, Atom], ...]

    @property
    def curvature(self) -> int:
        return max((int(np.sign(weight)) * one.curvature for weight, one in self.terms), key=abs, default=0)

    @property
    def nonnegative(self) -> bool:
        return all(weight >= 0.0 and one.nonnegative for weight, one in self.terms)

    @property
    def cones(self) -> frozenset[str]:
        return frozenset().union(*(one.cones for _, one in self.terms))

    @property
    def flat(self) -> bool:
        return all(one.flat for _, one in self.terms)

    def jet(self, at: At) -> Jet:
        value: Array = np.zeros(np.shape(at.p))
        slope = bend = NOTHING
        for weight, one in self.terms:
            v, d, c = one.jet(at)
            value, slope, bend = value + weight * v, slope + weight * d, bend + weight * c
        return value, slope, bend

    def declare(self, writer: Writer) -> cp.Expression:
        parts = [weight * one.declare(writer) if weight != 1.0 else one.declare(writer) for weight, one in self.terms]
        return sum(parts[1:], parts[0])

    def own(self, p: Array, q: Array) -> list[Array]:
        return [value for _, one in self.terms for value in one.own(p, q)]


def wronskian(one: Atom, other: Atom, at: At, jets: tuple[Jet, Jet]) -> Array:
    """Return x' y - y' x, without a difference of nearly equal parts.

    As x = p x_p + q x_q, and y likewise, x_q y - y_q x is p (x_q y_p - y_q x_p).
    """
    beside = at.p if at.along == "q" else at.q
    if isinstance(one, Affine) and isinstance(other, Affine):
        determinant = one.b * other.a - other.b * one.a
        return determinant * beside if at.along == "q" else -determinant * beside
    (x, dx, _), (y, dy, _) = jets
    turn = np.asarray(dx * y - dy * x)
    lost = np.abs(turn) < CANCELS * np.abs(dx * y)
    if not lost.any():
        return turn
    across = At(at.p, at.q, "p" if at.along == "q" else "q")
    return np.where(lost, beside * (dx * other.jet(across)[1] - dy * one.jet(across)[1]), turn)
