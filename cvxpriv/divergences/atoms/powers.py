"""Atoms of the power and second-order cones: weighted means, norms, and gaps between powers."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import cvxpy as cp
import numpy as np

from cvxpriv.divergences.atoms.base import NOTHING, At, Atom, Jet, Writer, mean_values, wronskian
from cvxpriv.numerics.arrays import Array

SECOND_ORDER, POWER = frozenset({"second-order"}), frozenset({"power"})


@dataclass(frozen=True)
class Mean(Atom):
    """prod x**exponent, exponents that sum to 1, each x >= 0.

    Concave where no exponent is negative and every x is concave. Convex where one exponent is above 1 and the others
    are negative, with a convex x for the former and concave ones for the latter.
    """

    parts: tuple[tuple[Atom, float], ...]

    nonnegative = True

    @property
    def curvature(self) -> int:
        return -1 if min(exponent for _, exponent in self.parts) > 0.0 else 1

    @cached_property
    def _weights(self) -> tuple[tuple[int, float], ...]:
        """Place and weight of each x in the mean that the cone bounds; -1 is the form's own variable."""
        if self.curvature < 0:
            return tuple((k, exponent) for k, (_, exponent) in enumerate(self.parts))
        top = self._top
        size = self.parts[top][1]
        return ((-1, 1.0 / size), *((k, -e / size) for k, (_, e) in enumerate(self.parts) if k != top))

    @property
    def _top(self) -> int:
        return max(range(len(self.parts)), key=lambda k: self.parts[k][1])

    @property
    def cones(self) -> frozenset[str]:
        equal = len(self.parts) == 2 and self._weights[0][1] == self._weights[1][1]
        return (SECOND_ORDER if equal else POWER).union(*(x.cones for x, _ in self.parts))

    def jet(self, at: At) -> Jet:
        jets = [x.jet(at) for x, _ in self.parts]
        exponents = [exponent for _, exponent in self.parts]
        top = self._top
        first = jets[top][0]
        others = [(jets[k][0], e) for k, e in enumerate(exponents) if k != top]
        value = np.where(first > 0.0, first * _powers(others, first), 0.0)
        if at.along is None:
            return value, NOTHING, NOTHING
        slope = bend = NOTHING
        for k, (x, dx, ddx) in enumerate(jets):
            if np.ndim(dx) == 0 and dx == 0.0 and np.ndim(ddx) == 0:
                continue
            partial = exponents[k] * _powers([(jets[j][0], e) for j, e in enumerate(exponents) if j != k], x)
            slope = slope + _product(partial, dx)
            bend = bend + (_product(partial, ddx) if np.ndim(ddx) or ddx != 0.0 else NOTHING)
        pivot = max((k for k in range(len(jets)) if k != top), key=lambda k: abs(exponents[k]))
        for i, j in combinations(range(len(jets)), 2):
            turn = wronskian(self.parts[i][0], self.parts[j][0], at, (jets[i], jets[j]))
            halves = [0.5 * e - (k in (i, j)) for k, e in enumerate(exponents)]  # of the square root: it may overflow
            x = jets[pivot][0]
            root = _powers([(jets[k][0], e) for k, e in enumerate(halves) if k != pivot], x)
            bend = bend - exponents[i] * exponents[j] * _product(turn / x, root) ** 2 / x
        return value, slope, bend

    def declare(self, writer: Writer) -> cp.Expression:
        at = {k: x.affine_bound(writer) for k, (x, _) in enumerate(self.parts)}
        at[-1] = writer.variable()
        bounded = at[-1] if self.curvature < 0 else at[self._top]
        writer.mean_above([(at[k], weight) for k, weight in self._weights], bounded)
        return at[-1]

    def own(self, p: Array, q: Array) -> list[Array]:
        at = {k: x.value(p, q) for k, (x, _) in enumerate(self.parts)}
        at[-1] = self.value(p, q)
        held = [value for x, _ in self.parts for value in x.bound_values(p, q)]
        return [*held, at[-1], *mean_values([(at[k], weight) for k, weight in self._weights])]


@dataclass(frozen=True)
class Norm(Atom):
    """(sum weight * x**a)**(1/a), weights > 0: convex for a > 1, of convex x, and concave for a < 1, of concave x.

    For a = 2 an affine x may have either sign; else every x is >= 0.
    """

    parts: tuple[tuple[float, Atom], ...]
    a: float

    nonnegative = True

    @property
    def curvature(self) -> int:
        return 1 if self.a > 1.0 else -1

    @property
    def cones(self) -> frozenset[str]:
        return (SECOND_ORDER if self.a == 2.0 else POWER).union(*(x.cones for _, x in self.parts))

    def jet(self, at: At) -> Jet:
        jets = [x.jet(at) for _, x in self.parts]
        top = (np.max if self.a > 0.0 else np.min)([np.abs(one[0]) for one in jets], axis=0)
        scale = np.where(top > 0.0, top, 1.0)
        total = sum(w * _signless(one[0] / scale, self.a) for (w, _), one in zip(self.parts, jets, strict=True))
        value = scale * total ** (1.0 / self.a)
        if at.along is None:
            return value, NOTHING, NOTHING
        slope = bend = NOTHING
        for (w, _), (x, dx, _) in zip(self.parts, jets, strict=True):
            slope = slope + _product(w * np.sign(x) * _signless(x / value, self.a - 1.0), dx)
        for (w, _), (x, _, ddx) in zip(self.parts, jets, strict=True):
            bend = bend + _product(w * np.sign(x) * _signless(x / value, self.a - 1.0), ddx)
        shares = [w * _signless(x / value, self.a - 2.0) for (w, _), (x, _, _) in zip(self.parts, jets, strict=True)]
        for i, j in combinations(range(len(jets)), 2):
            turn = wronskian(self.parts[i][1], self.parts[j][1], at, (jets[i], jets[j])) / value
            bend = bend + (self.a - 1.0) * _product(_product(shares[i], turn), _product(shares[j], turn)) / value
        return value, slope, np.where(value > 0.0, bend, 0.0)

    def declare(self, writer: Writer) -> cp.Expression:
        bounds = [x.affine_bound(writer) for _, x in self.parts]
        z = writer.variable()
        if self.a == 2.0:
            rows = [w**0.5 * x for (w, _), x in zip(self.parts, bounds, strict=True)]
            writer.constraints.append(cp.SOC(z, cp.vstack(rows), axis=0))
            return z
        total: cp.Expression = 0.0
        for (w, _), x in zip(self.parts, bounds, strict=True):
            share = writer.variable()
            if self.a > 1.0:
                writer.mean_above([(share, 1.0 / self.a), (z, 1.0 - 1.0 / self.a)], x)
            elif self.a > 0.0:
                writer.mean_above([(x, self.a), (z, 1.0 - self.a)], share)
            else:
                writer.mean_above([(share, 1.0 / (1.0 - self.a)), (x, -self.a / (1.0 - self.a))], z)
            total = total + w * share
        writer.constraints.append(total >= z if 0.0 < self.a < 1.0 else total <= z)
        return z

    def own(self, p: Array, q: Array) -> list[Array]:
        held = [value for _, x in self.parts for value in x.bound_values(p, q)]
        z = self.value(p, q)
        if self.a == 2.0:
            return [*held, z]
        at = [x.value(p, q) for _, x in self.parts]
        return [*held, z, *(z * _signless(np.divide(x, z, out=np.zeros_like(z), where=z > 0.0), self.a) for x in at)]


@dataclass(frozen=True)
class Gap(Atom):
    """|x**a - y**a|**(1/a), 0 < a < 1, convex: x and y affine, both >= 0. The part u where x is the larger has x <=
    (u**a + y**a)**(1/a), and the other the same with x and y exchanged."""

    x: Atom
    y: Atom
    a: float

    curvature = 1
    nonnegative = True

    @property
    def cones(self) -> frozenset[str]:
        return SECOND_ORDER if self.a == 0.5 else POWER

    def jet(self, at: At) -> Jet:
        of_x, of_y = self.x.jet(at), self.y.jet(at)
        (x, dx, _), (y, dy, _) = of_x, of_y
        high, low = np.maximum(x, y), np.minimum(x, y)
        ratio = low / high  # near 1 the difference is exact, and near 0 the ratio
        inner = -np.expm1(self.a * np.where(ratio > 0.5, np.log1p((low - high) / high), np.log(ratio)))
        value = np.where(high > 0.0, high * inner ** (1.0 / self.a), 0.0)
        if at.along is None:
            return value, NOTHING, NOTHING
        sign = np.sign(x - y)
        slope = sign * (_product((value / x) ** (1.0 - self.a), dx) - _product((value / y) ** (1.0 - self.a), dy))
        # |x^a - y^a|^(1/a) has the second derivative (1 - a) (x y)^(a-2) G^(1-2a) W^2, W = x' y - y' x.
        turn = wronskian(self.x, self.y, at, (of_x, of_y))
        bend = (1.0 - self.a) * (high / low) ** (2.0 - self.a) * (value / high) ** (1.0 - 2.0 * self.a) / high**3
        return value, slope, _product(bend, turn**2)

    def declare(self, writer: Writer) -> cp.Expression:
        x, y = self.x.declare(writer), self.y.declare(writer)
        if self.a == 0.5:  # x + y - 2 sqrt(x y)
            middle = writer.variable()
            writer.mean_above([(x, 0.5), (y, 0.5)], middle)
            return x + y - 2.0 * middle
        return self._above(writer, x, y) + self._above(writer, y, x)

    def _above(self, writer: Writer, large: cp.Expression, small: cp.Expression) -> cp.Expression:
        over, by_over, by_small = writer.variable(), writer.variable(), writer.variable()
        writer.mean_above([(over, self.a), (large, 1.0 - self.a)], by_over)
        writer.mean_above([(small, self.a), (large, 1.0 - self.a)], by_small)
        writer.constraints += [by_over + by_small >= large, over >= 0]
        return over

    def own(self, p: Array, q: Array) -> list[Array]:
        x, y, value = self.x.value(p, q), self.y.value(p, q), self.value(p, q)
        if self.a == 0.5:
            return [np.sqrt(x * y)]
        values: list[Array] = []
        for large, small in ((x, y), (y, x)):
            over = np.where(large > small, value, 0.0)
            values += [
                over,
                *(np.where(large > 0.0, one**self.a * large ** (1.0 - self.a), 0.0) for one in (over, small)),
            ]
        return values


def _powers(parts: list[tuple[Array, float]], pivot: Array) -> Array:
    """Return prod (x / pivot)**exponent."""
    result: Array = np.ones(())
    for x, exponent in parts:
        ratio = x / pivot
        if exponent == 0.5:
            power = np.sqrt(ratio)
        else:
            power = ratio if exponent == 1.0 else 1.0 / ratio if exponent == -1.0 else ratio**exponent
        result = result * power
    return result


def _product(one: Array, other: Array) -> Array:
    """Return the product, 0 where either factor is 0, whatever the other is."""
    product = np.asarray(one * other)
    return product if not np.isnan(product).any() else np.where((one == 0.0) | (other == 0.0), 0.0, product)


def _signless(x: Array, exponent: float) -> Array:
    return np.asarray(x * x if exponent == 2.0 else np.abs(x) ** exponent)
