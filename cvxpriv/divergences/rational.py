"""The sign of f'' where it is a rational function: decided exactly, also where it touches zero.

Logarithms of polynomials, and of powers t^(1/n), have such an f''. With t = s^n it is P(s)/Q(s), and its sign that of
P Q: it changes only at roots of odd order, which Sturm's theorem counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, zip_longest
from math import lcm
from typing import Any

from cvxpriv.divergences.jets import Kind, jet
from cvxpriv.divergences.tree import Call, Node, Number, Product, T, constant, walk

Polynomial = tuple[Fraction, ...]
#: Largest degree in s: Sturm's remainders grow with it.
MOST_DEGREE = 48
#: Relative widening of the ends of an interval, which are roots of doubles.
ROUNDING = Fraction(1, 10**12)


class Beyond(Exception):
    """A part is no rational function of s, or its degree is too large."""


@dataclass(frozen=True)
class Ratio:
    """A quotient of two polynomials in s, lowest coefficients first."""

    above: Polynomial
    below: Polynomial = (Fraction(1),)

    def __add__(self, other: Any) -> Any:
        other = _ratio(other)
        if isinstance(other, _Unknown):
            return other
        if self.below == other.below:
            return Ratio(_sum(self.above, other.above), self.below)
        crossed = _sum(_times(self.above, other.below), _times(other.above, self.below))
        return Ratio(crossed, _times(self.below, other.below))

    __radd__ = __add__

    def __rsub__(self, other: Any) -> Any:
        return self * -1 + other

    def __sub__(self, other: Any) -> Any:
        return self + other * -1

    def __mul__(self, other: Any) -> Any:
        other = _ratio(other)
        if isinstance(other, _Unknown):
            return other * self
        return Ratio(_times(self.above, other.above), _times(self.below, other.below))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self * (_ratio(other).inverse())

    def __rtruediv__(self, other: Any) -> Any:
        return self.inverse() * other

    def inverse(self) -> Ratio:
        if not self.above:
            raise Beyond
        return Ratio(self.below, self.above)


class _Unknown:
    """The value of a logarithm: only its product with 0 is known."""

    def __mul__(self, other: Any) -> Any:
        return 0 if (isinstance(other, int) and other == 0) or (isinstance(other, Ratio) and not other.above) else self

    def __add__(self, other: Any) -> Any:
        return self

    def inverse(self, other: Any = None) -> Any:
        raise Beyond

    __radd__, __sub__, __rsub__, __rmul__ = __add__, __add__, __add__, __mul__
    __truediv__ = __rtruediv__ = inverse


def bend_at_least_zero(tree: Node, low: float, high: float) -> tuple[bool, float] | None:
    """Return whether f'' >= 0 on (low, high), and a t where it is negative, else any; None where this does not tell.

    The interval is widened by rounding, so that True holds on all of it; a t beside it refutes nothing.

    >>> from cvxpriv.divergences.parsing import line_of
    >>> bend_at_least_zero(line_of("log(1+t**2) + t**2/8").f, 0.0, float("inf"))[0]  # f'' = (t^2 - 3)^2/(4 (1 + t^2)^2)
    True
    """
    root = _root(tree)
    if root is None:
        return None
    try:
        bend = _ratio(jet(tree, _power_of_s(root), _kind(root))[2])
        if isinstance(bend, _Unknown):
            return None
        common = _gcd(bend.above, bend.below)
        signs = _times(_quotient(bend.above, common), _quotient(bend.below, common))
    except Beyond:
        return None
    if not signs:
        return True, max(low, 1.0)
    start, least = (Fraction(low ** (1.0 / root)) * (1 - ROUNDING), sum(abs(one / signs[-1]) for one in signs))
    end = (
        max(start, Fraction(1)) + 1 + least if high == float("inf") else Fraction(high ** (1.0 / root)) * (1 + ROUNDING)
    )
    chain, work = _sturm(_odd_part(signs)), [(start, end)]
    while work:
        a, b = work.pop(0)
        middle = next(one for k in range(2, len(signs) + 2) if _at(signs, one := a + (b - a) / k))
        t = float(middle) ** root
        if _at(signs, middle) < 0:
            return (False, t) if low * (1 + 1e-9) < t < high * (1 - 1e-9) else None
        if _roots_between(chain, a, b):
            work += [(a, middle), (middle, b)]
    return True, t


def _root(tree: Node) -> int | None:
    """Return the n with which t = s^n makes the powers of t whole; None where other functions than log stand."""
    found = 1
    for node in walk(tree):
        if isinstance(node, Call) and node.name != "log" and not constant(node):
            return None
        for base, exponent in node.factors if isinstance(node, Product) and not constant(node) else ():
            if not isinstance(exponent, Number):
                return None
            if base == T:
                found = lcm(found, exponent.value.denominator)
    return found


def _power_of_s(degree: int) -> Ratio:
    if abs(degree) > MOST_DEGREE:
        raise Beyond
    power: Polynomial = (Fraction(0),) * abs(degree) + (Fraction(1),)
    return Ratio(power) if degree >= 0 else Ratio((Fraction(1),), power)


def _kind(root: int) -> Kind:
    def number(node: Node) -> Any:
        return _ratio(node.value) if isinstance(node, Number) else _Unknown()

    def power(base: Any, exponent: Any, exact: Fraction | None) -> Any:
        if exact == 0:
            return _ratio(1)
        if exact is None or isinstance(base, _Unknown):
            return _Unknown()
        if base == _power_of_s(root):
            return _power_of_s(int(exact * root))
        if exact.denominator != 1 or abs(exact) > MOST_DEGREE:
            raise Beyond
        result: Any = _ratio(1)
        for _ in range(abs(int(exact))):
            result = result * base
        return result if exact > 0 else result.inverse()

    def unknown(*parts: Any) -> Any:
        return _Unknown()

    return Kind(number, unknown, unknown, unknown, power, unknown)


def _ratio(value: Any) -> Any:
    return value if isinstance(value, Ratio | _Unknown) else Ratio((Fraction(value),) if value else ())


def _trimmed(values: Sequence[Fraction]) -> Polynomial:
    size = len(values)
    while size and not values[size - 1]:
        size -= 1
    if size > MOST_DEGREE + 1:
        raise Beyond
    return tuple(values[:size])


def _sum(one: Polynomial, other: Polynomial) -> Polynomial:
    return _trimmed([a + b for a, b in zip_longest(one, other, fillvalue=Fraction(0))])


def _times(one: Polynomial, other: Polynomial) -> Polynomial:
    found = [Fraction(0)] * (len(one) + len(other))
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            found[i + j] += a * b
    return _trimmed(found)


def _slope(one: Polynomial) -> Polynomial:
    return tuple(k * a for k, a in enumerate(one))[1:]


def _divided(one: Polynomial, other: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Return quotient and remainder."""
    rest, found = list(one), [Fraction(0)] * max(len(one) - len(other) + 1, 0)
    for k in range(len(found) - 1, -1, -1):
        found[k] = rest[k + len(other) - 1] / other[-1]
        for j, b in enumerate(other):
            rest[k + j] -= found[k] * b
    return _trimmed(found), _trimmed(rest)


def _quotient(one: Polynomial, other: Polynomial) -> Polynomial:
    return _divided(one, other)[0]


def _gcd(one: Polynomial, other: Polynomial) -> Polynomial:
    while other:
        one, other = other, _scaled(_divided(one, other)[1])
    return _scaled(one)


def _scaled(one: Polynomial) -> Polynomial:
    """Return a polynomial divided by the size of its leading coefficient, which keeps its signs."""
    return tuple(a / abs(one[-1]) for a in one)


def _odd_part(one: Polynomial) -> Polynomial:
    """Return the product of the factors of odd order, each once."""
    found: Polynomial = (Fraction(1),)
    rest, order = _gcd(one, _slope(one)), 1
    simple = _quotient(one, rest)
    while len(simple) > 1:
        more = _gcd(simple, rest)
        if order % 2:
            found = _times(found, _quotient(simple, more))
        simple, rest, order = more, _quotient(rest, more), order + 1
    return found


def _sturm(one: Polynomial) -> list[Polynomial]:
    chain = [one, _slope(one)]
    while chain[-1]:
        chain.append(_scaled(tuple(-a for a in _divided(chain[-2], chain[-1])[1])))
    return chain[:-1]


def _roots_between(chain: list[Polynomial], a: Fraction, b: Fraction) -> int:
    changes = []
    for at in (a, b):
        signs = [value > 0 for one in chain if (value := _at(one, at))]
        changes.append(sum(x != y for x, y in pairwise(signs)))
    return changes[0] - changes[1] - (_at(chain[0], b) == 0)


def _at(one: Polynomial, s: Fraction) -> Fraction:
    value = Fraction(0)
    for a in reversed(one):
        value = value * s + a
    return value
