"""Atoms of the exponential cone: relative entropy, exp, log-sum-exp."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.divergences.atoms.base import NOTHING, Affine, At, Atom, Jet, Writer, wronskian
from cvxpriv.numerics.arrays import Array

EXPONENTIAL = frozenset({"exponential"})
#: The r up to which log(1+r) - r is summed as a series, of so many terms: elsewhere it loses at most two digits.
NEAR, TERMS = 0.1, 7


@dataclass(frozen=True)
class Entropy(Atom):
    """x log(x/y), convex: x affine, y affine or concave, both >= 0.

    `centred`: It is x log(x/y) - x + y, y affine. Several whose -x + y cancel keep the digits that their sum would
    lose where x and y are nearly equal: log(1 + 1/t) is made of two such parts.
    """

    x: Affine
    y: Atom
    centred: bool = False

    curvature = 1
    nonnegative = False
    flat = False

    @property
    def cones(self) -> frozenset[str]:
        return EXPONENTIAL | self.y.cones

    def jet(self, at: At) -> Jet:
        of_x, of_y = self.x.jet(at), self.y.jet(at)
        (x, dx, _), (y, dy, ddy) = of_x, of_y
        share = x / y
        log = np.log(share)
        value = np.where(x > 0.0, x * log, 0.0)
        slope = -share * dy
        if at.along is not None and dx != 0.0:
            slope = slope + dx * (log + 1.0)
        if isinstance(self.y, Affine):
            away = Affine(self.x.a - self.y.a, self.x.b - self.y.b)
            beyond = away.value(at.p, at.q) / y  # x/y - 1, to the last digit
            curved, near = _log_less_line(beyond), np.abs(beyond) < NEAR
            if self.centred:
                value = np.where(near, x * curved + y * beyond**2, value - x + y)
                slope = np.where(near, dx * curved + (dx - dy) * beyond, slope - dx + dy)
            else:
                value = np.where(near, x * (curved + beyond), value)
                slope = np.where(near, dx * curved + (dx - dy) * share, slope)
        if at.along is None:
            return value, NOTHING, NOTHING
        turn = wronskian(self.x, self.y, at, (of_x, of_y)) / y
        return value, slope, turn * turn / x - share * ddy

    def declare(self, writer: Writer) -> cp.Expression:
        atom = cp.kl_div if self.centred else cp.rel_entr
        return atom(self.x.declare(writer), self.y.declare(writer))

    def own(self, p: Array, q: Array) -> list[Array]:
        return self.y.own(p, q)


def _log_less_line(r: Array) -> Array:
    """Return log(1 + r) - r for |r| < NEAR: with s = r/(2+r) it is -r s + 2 (s^3/3 + s^5/5 + ...)."""
    s = r / (2.0 + r)
    tail: Array = np.zeros(())
    for power in range(2 * TERMS + 1, 1, -2):
        tail = tail * s * s + 1.0 / power
    return np.asarray(2.0 * s**3 * tail - r * s)


@dataclass(frozen=True)
class Exponential(Atom):
    """x exp(y/x), convex: y convex, x affine and >= 0."""

    y: Atom
    x: Affine

    curvature = 1
    nonnegative = True

    @property
    def cones(self) -> frozenset[str]:
        return EXPONENTIAL | self.y.cones

    def jet(self, at: At) -> Jet:
        of_x, of_y = self.x.jet(at), self.y.jet(at)
        (x, dx, _), (y, dy, ddy) = of_x, of_y
        ratio = y / x
        rise = np.exp(ratio)
        gone = rise == 0.0
        value = np.where(gone, 0.0, x * rise)
        if at.along is None:
            return value, NOTHING, NOTHING
        turn = wronskian(self.y, self.x, at, (of_y, of_x)) / x
        slope = np.where(gone, 0.0, rise * (dx * (1.0 - ratio) + dy))
        return value, slope, np.where(gone, 0.0, rise * (turn * turn / x + ddy))

    def declare(self, writer: Writer) -> cp.Expression:
        y = self.y.affine_bound(writer)
        z = writer.variable()
        writer.constraints.append(cp.ExpCone(y, self.x.declare(writer), z))
        return z

    def own(self, p: Array, q: Array) -> list[Array]:
        return [*self.y.bound_values(p, q), self.value(p, q)]


@dataclass(frozen=True)
class LogSumExp(Atom):
    """x log sum weight * exp(y/x), convex: each y convex, x affine and >= 0, weights > 0."""

    parts: tuple[tuple[float, Atom], ...]
    x: Affine

    curvature = 1

    @property
    def nonnegative(self) -> bool:
        return any(mass >= 1.0 and y.nonnegative for mass, y in self.parts)

    @property
    def cones(self) -> frozenset[str]:
        return EXPONENTIAL.union(*(y.cones for _, y in self.parts))

    def jet(self, at: At) -> Jet:
        x, dx, _ = self.x.jet(at)
        jets = [y.jet(at) for _, y in self.parts]
        top = np.max([one[0] for one in jets], axis=0)
        below = [np.where(one[0] == top, 0.0, (one[0] - top) / x) for one in jets]
        masses = [weight * np.exp(one) for (weight, _), one in zip(self.parts, below, strict=True)]
        mass = np.sum(masses, axis=0)
        value = top + x * np.log(mass)
        if at.along is None:
            return value, NOTHING, NOTHING
        shares = [one / mass for one in masses]
        depth = sum(np.where(share > 0.0, share * one, 0.0) for share, one in zip(shares, below, strict=True))
        slope = dx * (np.log(mass) - depth)
        slope = slope + sum(
            np.where(share > 0.0, share * d, 0.0) for share, (_, d, _) in zip(shares, jets, strict=True)
        )
        turns = [
            wronskian(y, self.x, at, (one, (x, dx, NOTHING))) / x for (_, y), one in zip(self.parts, jets, strict=True)
        ]
        middle = sum(np.where(share > 0.0, share * turn, 0.0) for share, turn in zip(shares, turns, strict=True))
        bend = sum(
            np.where(share > 0.0, share * ((turn - middle) ** 2 / x + c), 0.0)
            for share, turn, (_, _, c) in zip(shares, turns, jets, strict=True)
        )
        return value, slope, np.asarray(bend)

    def declare(self, writer: Writer) -> cp.Expression:
        x, z = self.x.declare(writer), writer.variable()
        total: cp.Expression = 0.0
        for weight, y in self.parts:
            bound, mass = y.affine_bound(writer), writer.variable()
            writer.constraints.append(cp.ExpCone(bound - z, x, mass))
            total = total + weight * mass
        writer.constraints.append(total <= x)
        return z

    def own(self, p: Array, q: Array) -> list[Array]:
        x, z = self.x.value(p, q), self.value(p, q)
        values = [z]
        for _, y in self.parts:
            values += [*y.bound_values(p, q), x * np.exp((y.value(p, q) - z) / x)]
        return values
