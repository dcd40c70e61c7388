"""Atoms with branches: the largest of several, and a convex function that is another one on each interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import cvxpy as cp
import numpy as np

from cvxpriv.divergences.atoms.base import NOTHING, Affine, At, Atom, Jet, Writer
from cvxpriv.numerics.arrays import Array

#: Relative differences of values, and of slopes, below which rounding decides which branch is the largest.
EQUAL, TOUCHING = 64.0 * float(np.finfo(float).eps), 1e-3


def largest(jets: Sequence[Jet], side: int) -> Jet:
    """Return the jet of the largest value; of equals that of the one that is larger on the right (1) or left (-1).

    The second derivative is NaN where branches touch: doubles cannot tell which is the largest.
    """
    value, slope, bend = jets[0]
    for v, d, c in jets[1:]:
        steeper = (d * side > slope * side) | ((d == slope) & (c > bend))
        better = (v > value) | ((v == value) & steeper)
        touching = (np.abs(v - value) < EQUAL * np.abs(v)) & (np.abs(d - slope) <= TOUCHING * np.abs(d))
        new = np.where(touching & (np.abs(c - bend) > EQUAL * np.abs(c + bend)), np.nan, np.where(better, c, bend))
        value, slope, bend = np.where(better, v, value), np.where(better, d, slope), new
    return value, slope, bend


@dataclass(frozen=True)
class Largest(Atom):
    """The largest of several convex atoms."""

    parts: tuple[Atom, ...]

    curvature = 1
    flat = False

    @property
    def modulus(self) -> bool:
        """Whether it is the absolute value of its first part."""
        first, last = self.parts[0], self.parts[-1]
        return len(self.parts) == 2 and isinstance(first, Affine) and last == Affine(-first.a, -first.b)

    @property
    def nonnegative(self) -> bool:
        return self.modulus or any(one.nonnegative for one in self.parts)

    @property
    def cones(self) -> frozenset[str]:
        return frozenset({"linear"}).union(*(one.cones for one in self.parts))

    def jet(self, at: At) -> Jet:
        jets = [one.jet(at) for one in self.parts]
        if at.along is None:
            return reduce(np.maximum, (one[0] for one in jets)), NOTHING, NOTHING
        return largest(jets, at.side)

    def declare(self, writer: Writer) -> cp.Expression:
        if self.modulus:
            return cp.abs(self.parts[0].declare(writer))
        return cp.maximum(*(one.declare(writer) for one in self.parts))

    def own(self, p: Array, q: Array) -> list[Array]:
        return [value for one in self.parts for value in one.own(p, q)]


@dataclass(frozen=True)
class Pieces(Atom):
    """A convex function that is `pieces[i]` where kinks[i-1] p <= q <= kinks[i] p.

    Its form cuts q into the parts in each interval: as slopes rise, the cheapest filling is the right one.
    """

    kinks: tuple[float, ...]
    pieces: tuple[Atom, ...]

    curvature = 1
    nonnegative = False

    @property
    def cones(self) -> frozenset[str]:
        return frozenset({"linear"}).union(*(one.cones for one in self.pieces))

    @property
    def flat(self) -> bool:
        return all(one.flat for one in self.pieces)

    def jet(self, at: At) -> Jet:
        parts = [np.broadcast_to(one, np.shape(at.p)).copy() for one in self.pieces[0].jet(at)]
        for kink, piece in zip(self.kinks, self.pieces[1:], strict=True):
            right = at.q >= kink * at.p
            for held, new in zip(parts, piece.jet(at), strict=True):
                np.copyto(held, new, where=right)
        return parts[0], parts[1], parts[2]

    def declare(self, writer: Writer) -> cp.Expression:
        total: cp.Expression = 0.0
        filled: cp.Expression = 0.0
        for low, high, piece in self._intervals():
            last = high == np.inf
            part = writer.q - filled if last else writer.variable()
            inner = Writer(writer.p, low * writer.p + part if low else part, writer.constraints)
            writer.constraints.append(part >= 0)
            if not last:
                writer.constraints.append(part <= (high - low) * writer.p)
            total = total + piece.declare(inner) - (_at(piece, low) * writer.p if low else 0.0)
            filled = filled + part
        return total

    def own(self, p: Array, q: Array) -> list[Array]:
        values: list[Array] = []
        for low, high, piece in self._intervals():
            part = np.clip(q - low * p, 0.0, (high - low) * p if high < np.inf else np.inf)
            values += ([] if high == np.inf else [part]) + piece.own(p, low * p + part)
        return values

    def _intervals(self) -> list[tuple[float, float, Atom]]:
        return list(zip((0.0, *self.kinks), (*self.kinks, np.inf), self.pieces, strict=True))


def _at(piece: Atom, t: float) -> float:
    with np.errstate(all="ignore"):
        return float(piece.value(np.ones(1), np.full(1, t))[0])
