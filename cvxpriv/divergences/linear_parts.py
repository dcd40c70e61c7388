"""Tests and factors of a tree: whether it is a + b t, its factor without t, and its product with x, term by term."""

from __future__ import annotations

from fractions import Fraction

import mpmath

from cvxpriv.divergences.atoms import Affine
from cvxpriv.divergences.jets import constant_value
from cvxpriv.divergences.tree import ONE, Node, Number, Product, T, add, constant, linear, multiply, power, scaled


def affine_of(node: Node) -> Affine | None:
    """Return a p + b q for a node a + b t; None for any other."""
    a = b = mpmath.mpf(0)
    for term, factor in linear(node).items():
        fixed, rest = split(term)
        if rest not in (ONE, T):
            return None
        c = factor.numerator * fixed / factor.denominator
        a, b = (a + c, b) if rest == ONE else (a, b + c)
    return Affine(float(a), float(b))


def split(term: Node) -> tuple[mpmath.mpf, Node]:
    """Return a term as its factor without t, and the rest."""
    if constant(term):
        return constant_value(term), ONE
    if not isinstance(term, Product):
        return mpmath.mpf(1), term
    fixed = [power(base, exponent) for base, exponent in term.factors if constant(base)]
    moving = [power(base, exponent) for base, exponent in term.factors if not constant(base)]
    return constant_value(multiply(*fixed)), multiply(*moving)


def spread(x: Node, several: Node) -> Node:
    """Return x times a sum, term by term."""
    return add(*(scaled(factor, multiply(x, term)) for term, factor in linear(several).items()))


def cleared(base: Node) -> tuple[Node, Node]:
    """Return a sum whose terms share t, or have it in denominators, as (t**n times it, n)."""
    lowest = min(map(_degree, linear(base)), default=Fraction(0))
    rise = Number(-lowest)
    return (spread(power(T, rise), base), rise) if lowest else (base, rise)


def _degree(term: Node) -> Fraction:
    """Return the rational power of t that is a factor of a term."""
    factors = term.factors if isinstance(term, Product) else ((term, ONE),)
    return sum((e.value for one, e in factors if one == T and isinstance(e, Number)), Fraction(0))
