"""A tree's value and first two derivatives in t, over any kind of number: many digits, or intervals.

A jet is (value, first derivative, second derivative). Where two branches of abs, max or min are equal, the one that
is active on the right of t counts, or on the left: a derivative at a kink is one-sided.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mpmath

from cvxpriv.divergences.tree import (
    ONE,
    PI,
    Call,
    Node,
    Number,
    Product,
    Sum,
    T,
    add,
    constant,
    linear,
    multiply,
    power,
    scaled,
)

Jet = tuple[Any, Any, Any]
#: Number of digits in which signs and limits are decided.
DIGITS = 60
#: The derivative of a constant, whatever kind of number its value is.
NONE = 0


@dataclass(frozen=True)
class Kind:
    """A kind of number, by its operations.

    `number`: Maps a node without t to a number.
    `log1p`: log(1 + x), which keeps the digits of a small x.
    `power`: Maps (number, exponent as a number, exponent as a fraction or None) to the power.
    `largest`: Maps (jets, side) to the jet of the largest value; `side` is +1 or -1.
    """

    number: Callable[[Node], Any]
    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]
    log1p: Callable[[Any], Any]
    power: Callable[[Any, Any, Any], Any]
    largest: Callable[[Sequence[Jet], int], Jet]


def jet(node: Node, t: Any, kind: Kind, *, side: int = 1, derivatives: bool = True) -> Jet:
    """Return a tree's jet at t; without `derivatives` the last two entries are 0."""
    return _Evaluation(t, kind, side, derivatives).of(node)


class _Evaluation:
    """One evaluation; equal parts are computed once."""

    def __init__(self, t: Any, kind: Kind, side: int, derivatives: bool) -> None:
        self.kind, self.side, self.derivatives = kind, side, derivatives
        self.known: dict[Node, Jet] = {T: (t, 1, 0)}

    def of(self, node: Node) -> Jet:
        if node not in self.known:
            self.known[node] = self.made(node)
        return self.known[node]

    def made(self, node: Node) -> Jet:
        if constant(node):
            return self.kind.number(node), 0, 0
        if isinstance(node, Sum):
            parts = [(self.kind.number(Number(factor)), self.of(term)) for term, factor in node.terms]
            first, *rest = [tuple(one if one is NONE else factor * one for one in part) for factor, part in parts]
            for other in rest:
                first = tuple(a + b for a, b in zip(first, other, strict=True))
            return first[0], first[1], first[2]
        if isinstance(node, Product):
            result, *others = [self.power(base, exponent) for base, exponent in node.factors]
            for other in others:
                result = self.times(result, other)
            return result
        assert isinstance(node, Call)
        return self.called(node)

    def times(self, one: Jet, other: Jet) -> Jet:
        (u, du, ddu), (v, dv, ddv) = one, other
        if not self.derivatives:
            return u * v, 0, 0
        return u * v, du * v + u * dv, ddu * v + 2 * (du * dv) + u * ddv

    def power(self, base: Node, exponent: Node) -> Jet:
        u, du, ddu = self.of(base)
        if exponent == ONE or constant(base):
            return (u, du, ddu) if exponent == ONE else (self.kind.number(Product(((base, exponent),))), 0, 0)
        e, exact = self.kind.number(exponent), exponent.value if isinstance(exponent, Number) else None
        value = self.kind.power(u, e, exact)
        if not self.derivatives or (du is NONE and ddu is NONE):  # a branch that is 0 has a power without slope
            return value, 0, 0
        slope = e * self.kind.power(u, e - 1, None if exact is None else exact - 1)
        if exact == 2:
            return value, slope * du, 2 * (du * du) + slope * ddu
        bend = e * (e - 1) * self.kind.power(u, e - 2, None if exact is None else exact - 2)
        return value, slope * du, bend * (du * du) + slope * ddu

    def called(self, node: Call) -> Jet:
        parts = [self.of(one) for one in node.arguments]
        u, du, ddu = parts[0]
        if node.name == "exp":
            value = self.kind.exp(u)
            return value, value * du, value * (du * du + ddu)
        if node.name == "log":
            rest = _above_one(node.arguments[0])
            value = self.kind.log(u) if rest is None else self.kind.log1p(self.of(rest)[0])
            if rest is not None:
                _, du, ddu = self.of(rest)
            if not self.derivatives:
                return value, 0, 0
            slope = du / u
            return value, slope, ddu / u - slope * slope
        if node.name == "abs":
            parts = [parts[0], (-u, -du, -ddu)]
        if node.name == "min":
            value, slope, bend = self.kind.largest([(-a, -b, -c) for a, b, c in parts], self.side)
            return -value, -slope, -bend
        return self.kind.largest(parts, self.side)


@lru_cache(maxsize=4096)
def _above_one(node: Node) -> Node | None:
    """Return x of a tree that is written 1 + x, or (t^k + x t^k) t^-k; None of any other."""
    if isinstance(node, Product):
        share = multiply(*(power(base, e) for base, e in node.factors if base == T))
        rest = [base for base, e in node.factors if base != T and e == ONE]
        if len(node.factors) != 2 or len(rest) != 1:
            return None
        node = add(*(scaled(factor, multiply(term, share)) for term, factor in linear(rest[0]).items()))
    return add(node, scaled(-1, ONE)) if linear(node).get(ONE) == 1 else None


@lru_cache(maxsize=4096)
def _constant(node: Node, digits: int) -> Any:
    if isinstance(node, Number):
        return mpmath.mpf(node.value.numerator) / node.value.denominator
    if node == PI:
        return +mpmath.pi
    if isinstance(node, Sum):
        return mpmath.fsum(_constant(Number(factor), digits) * _constant(term, digits) for term, factor in node.terms)
    if isinstance(node, Product):
        return mpmath.fprod(
            _power(_constant(base, digits), _constant(exponent, digits), None) for base, exponent in node.factors
        )
    assert isinstance(node, Call)
    return _CALLS[node.name](*(_constant(one, digits) for one in node.arguments))


def constant_value(node: Node) -> Any:
    """Return the value of a node without t in mpmath's current precision; NaN where it is not a real number."""
    return _constant(node, mpmath.mp.dps)


def _power(base: Any, exponent: Any, exact: Any) -> Any:
    if exact is not None and exact.denominator == 1:
        exponent = int(exact)
    if base == 0 and exponent < 0:
        return mpmath.inf
    found = mpmath.power(base, exponent)
    return mpmath.nan if isinstance(found, mpmath.mpc) else found


def _exp(value: Any) -> Any:
    if not mpmath.isint(value) or abs(value) < 1000:
        return mpmath.exp(value)
    # For an integer mpmath multiplies powers of e, for seconds where it is 10^1024; for a number beside it does not.
    half = mpmath.mpf(0.5)
    return mpmath.exp(value + half) / mpmath.exp(half)


def _log(value: Any) -> Any:
    return _known_log(value, mpmath.mp.prec) if value > 0 else (-mpmath.inf if value == 0 else mpmath.nan)


@lru_cache(maxsize=1024)
def _known_log(value: Any, precision: int) -> Any:
    """Return a logarithm; every f asks for those of the same distant t, to thousands of digits."""
    return mpmath.log(value)


def _largest(parts: Sequence[Jet], side: int) -> Jet:
    return max(parts, key=lambda one: (one[0], side * one[1], one[2]))


_CALLS: dict[str, Callable[..., Any]] = {"exp": mpmath.exp, "log": _log, "abs": abs, "max": max, "min": min}

#: Numbers of mpmath, with the precision that is set there.
MANY_DIGITS = Kind(constant_value, _exp, _log, lambda x: _log(1 + x), _power, _largest)


def value_at(node: Node, t: Any, digits: int = DIGITS) -> Any:
    """Return a tree's value at one t, to many digits; NaN where it is not real."""
    with mpmath.workdps(digits):
        try:
            return jet(node, mpmath.mpf(t), MANY_DIGITS, derivatives=False)[0]
        except (ZeroDivisionError, ValueError, TypeError, OverflowError):
            return mpmath.nan
