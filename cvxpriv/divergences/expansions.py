"""The sign of f'' near 0, near infinity and beside a point, from expansions whose remainders are enclosed.

With t = u, 1/u, or a +- 1/u, a part of f is sum c_i s_i(u) for every u >= e^x. Each scale s_i is an exponential of
powers of u and log u, so that u^2, 1/log u and exp(-u^2) are scales, too. Each c_i is an interval, exact where its
ends are equal. Only an exact 0 is left out: where a leading c_i may have either sign, nothing is decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key, lru_cache
from math import factorial
from typing import Any

import mpmath

from cvxpriv.divergences.jets import Kind, constant_value, jet
from cvxpriv.divergences.scales import (
    LOG,
    LOG_LOG,
    ONE,
    UNIT,
    ZERO,
    Ball,
    Scale,
    Undecided,
    around,
    as_mpf,
    ball_inverse,
    ball_power,
    ball_product,
    ball_sum,
    degrees,
    exactly,
    largest,
    order,
    product,
    raised,
    rounded,
    scale_of,
)
from cvxpriv.divergences.tree import Node, Number

#: The ends of (0, inf); a number stands for the points beside it.
END_ZERO, END_INFINITY = "zero", "infinity"
Place = str | Fraction

#: Number of terms of a series before its remainder, and of terms that an expansion keeps.
ORDER, MOST_TERMS = 4, 10
#: Largest share of its leading term that the rest may have where a series is taken.
NEAR = Fraction(1, 2)
#: x at which an expansion is tried: t is a double up to the first few, and beyond only a fault is looked for.
STARTS = tuple(2**k for k in range(10))
FAR_STARTS = tuple(2**k for k in range(10, 64, 2))


@dataclass(frozen=True)
class Expansion:
    """sum of coefficients times scales, for u >= e^start; no term stands for 0."""

    terms: dict[Scale, Ball]
    start: int

    def __add__(self, other: Any) -> Expansion:
        found = dict(self.terms)
        for scale, c in self._of(other).terms.items():
            found[scale] = ball_sum(found.get(scale, ZERO), c)
        return _kept(found, self.start)

    def __mul__(self, other: Any) -> Expansion:
        found: dict[Scale, Ball] = {}
        for one, c in self.terms.items():
            for scale, d in self._of(other).terms.items():
                both = product(one, scale)
                found[both] = ball_sum(found.get(both, ZERO), ball_product(c, d))
        return _kept(found, self.start)

    def __neg__(self) -> Expansion:
        return self * -1

    def __sub__(self, other: Any) -> Expansion:
        return self + self._of(other) * -1

    def __rsub__(self, other: Any) -> Expansion:
        return self._of(other) + self * -1

    def __truediv__(self, other: Any) -> Expansion:
        return self * _power(self._of(other), -1, Fraction(-1))

    def __rtruediv__(self, other: Any) -> Any:
        return self._of(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def _of(self, value: Any) -> Expansion:
        return value if isinstance(value, Expansion) else _constant((Fraction(value), Fraction(value)), self.start)

    def leading(self) -> tuple[Scale, Ball, Expansion]:
        """Return the largest scale, its coefficient c, and the rest divided by them."""
        if not self.terms:
            raise Undecided
        scale = next(iter(self.terms))
        c = self.terms[scale]
        if c[0] <= 0 <= c[1]:
            raise Undecided
        rest = {
            product(one, raised(scale, Fraction(-1))): ball_product(d, ball_inverse(c))
            for one, d in self.terms.items()
            if one != scale
        }
        return scale, c, Expansion(rest, self.start)

    def size(self) -> Fraction:
        """Return a bound of the absolute value, for an expansion that goes to 0."""
        return sum((max(map(abs, c)) * largest(scale, self.start) for scale, c in self.terms.items()), Fraction(0))


def settled(tree: Node, place: Place, side: int = 1) -> tuple[bool, int] | None:
    """Return whether f'' >= 0, or f'' < 0, between a place and e^-x beside it, and x; None where this does not tell.

    `place`: `END_ZERO`, `END_INFINITY` (where e^x takes the place of e^-x), or a number, of which one `side` (-1, +1)
    is looked at.

    >>> from cvxpriv.divergences.parsing import line_of
    >>> settled(line_of("exp(-t**2) + t**2").f, END_INFINITY)
    (True, 1)
    >>> settled(line_of("(t-1)**2 - 1e-7*t**2*log(t)").f, END_INFINITY)
    (False, 16777216)
    """
    negative = False
    for start in (*STARTS, *FAR_STARTS):
        if start not in STARTS and not negative:
            return None
        try:
            bend = jet(tree, _argument(place, side, start), _kind(start))[2]
            if not isinstance(bend, Expansion) or not bend.terms:
                return True, start
            _, c, rest = bend.leading()
            negative = c[1] < 0
            if rest.size() < 1:
                return c[0] > 0, start
        except Undecided:
            continue
    return None


def _argument(place: Place, side: int, start: int) -> Expansion:
    u = Expansion({((LOG, Fraction(1)),): UNIT}, start)
    return u if place == END_INFINITY else 1 / u if place == END_ZERO else 1 / u * side + place


@lru_cache(maxsize=64)
def _kind(start: int) -> Kind:
    def known(node: Node) -> Expansion:
        if isinstance(node, Number):
            return _constant((node.value, node.value), start)
        return _constant(around(constant_value, node), start)

    def unknown(*parts: Any) -> Any:
        raise Undecided

    return Kind(known, _exp, _log, lambda x: _log(x + 1), _power, unknown)


def _constant(c: Ball, start: int) -> Expansion:
    return Expansion({ONE: c} if c != ZERO else {}, start)


def _exp(of: Expansion) -> Expansion:
    exponents, c, small = dict[tuple[Fraction, Fraction, int], Fraction](), ZERO, dict[Scale, Ball]()
    for scale, d in of.terms.items():
        if scale == ONE:
            c = d
        elif order(scale, ONE) < 0:
            small[scale] = d
        else:
            a, k = degrees(scale)
            exponents[a, k, 0] = exactly(d)
    outside = Expansion({scale_of(exponents): around(mpmath.exp, c)}, of.start)
    return outside * _series(
        Expansion(small, of.start), [Fraction(1, factorial(j)) for j in range(ORDER + 2)], mpmath.exp
    )


def _log(of: Expansion) -> Expansion:
    scale, c, x = of.leading()
    if c[0] <= 0:
        raise Undecided
    found = _constant(around(mpmath.log, c), of.start)
    for (a, k, again), d in scale:
        if again:
            raise Undecided
        found = found + Expansion({scale_of({LOG: a, LOG_LOG: k}): (d, d)}, of.start)
    coefficients = [Fraction(0), *(Fraction((-1) ** (j + 1), j) for j in range(1, ORDER + 2))]
    return found + _series(x, coefficients, lambda one: (1 + one) ** -(ORDER + 1))


def _power(of: Expansion, exponent: Any, exact: Fraction | None) -> Expansion:
    if exact == 0:
        return _constant(UNIT, of.start)
    if isinstance(exponent, Expansion):
        exact = exactly(exponent.terms.get(ONE, ZERO))
    assert exact is not None
    if not of.terms and exact > 0:
        return of
    scale, c, x = of.leading()
    if exact.denominator != 1 and c[0] <= 0:
        raise Undecided
    coefficients = [Fraction(1)]
    for j in range(ORDER + 1):
        coefficients.append(coefficients[-1] * (exact - j) / (j + 1))
    e = exact
    outside = Expansion({raised(scale, e): ball_power(c, e)}, of.start)
    return outside * _series(x, coefficients, lambda one: (1 + one) ** (as_mpf(e) - ORDER - 1))


def _series(x: Expansion, coefficients: list[Fraction], last: Callable[[Any], Any]) -> Expansion:
    """Return sum c_j x^j of an x that goes to 0; the last c_j times a `last`, monotone, at a number between 0 and x."""
    size = x.size()
    if size > NEAR:
        raise Undecided
    *exact, beyond = coefficients
    sides = around(last, (-size, size)) if size else UNIT
    found = _constant(ball_product((beyond, beyond), sides), x.start)
    for c in reversed(exact):
        found = found * x + c
    return found


def _kept(terms: dict[Scale, Ball], start: int) -> Expansion:
    """Return an expansion in descending order; the smallest scales count in the coefficient of the last that stays."""
    sizes = sorted((one for one in terms if terms[one] != ZERO), key=cmp_to_key(order), reverse=True)
    found = {scale: rounded(terms[scale]) for scale in sizes[:MOST_TERMS]}
    if len(sizes) > MOST_TERMS:
        last = sizes[MOST_TERMS - 1]
        rest = {product(one, raised(last, Fraction(-1))): terms[one] for one in sizes[MOST_TERMS:]}
        size = Expansion(rest, start).size()
        found[last] = ball_sum(found[last], (-size, size))
    return Expansion(found, start)
