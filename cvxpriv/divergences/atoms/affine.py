"""a p + b q, and sums of atoms."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.divergences.atoms.base import NOTHING, At, Atom, Jet, Writer
from cvxpriv.numerics.arrays import Array


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
