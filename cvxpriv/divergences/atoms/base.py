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
