"""DCP forms of symbolic f's: sums of known convex functions of t, with weights that are not negative.

The candidates are the built-in families and those that the text itself suggests (its powers of t, its a + b t, its
kinks). The weights solve a linear system in 80 digits, so that a match is an identity and not a fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import cvxpy as cp
import mpmath
import numpy as np
import sympy

from cvxpriv.divergences import forms
from cvxpriv.divergences.definition import Auxiliary, DCPForm
from cvxpriv.divergences.parsing import T
from cvxpriv.divergences.symbolic import precise
from cvxpriv.numerics.arrays import Array

__all__ = ["Pattern", "pattern_of"]

#: Digits of the linear system, what counts as zero in it, and how many points it holds for each candidate.
DIGITS, ZERO, PER_FUNCTION = 80, mpmath.mpf(10) ** -30, 2
#: More candidates than these are not tried: such a text is no sum of a few known functions.
MOST = 24


@dataclass(frozen=True)
class Part:
    """A convex function with f(1) = 0, its form, and the value of the variable that the form brings, if any."""

    f: sympy.Expr
    form: DCPForm
    auxiliary: Callable[[Array, Array], Array] | None = None


@dataclass(frozen=True)
class Pattern:
    """f = sum weight * part.f + linear * (t - 1)."""

    parts: tuple[tuple[float, Part], ...]
    linear: float

    def form(self, p: cp.Expression, q: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """The DCP form of sum p f(q/p): see `FDivergence.expression`."""
        total: cp.Expression = self.linear * cp.sum(q - p)
        constraints: list[cp.Constraint] = []
        for weight, part in self.parts:
            value, own = part.form(p, q)
            total, constraints = total + weight * value, [*constraints, *own]
        return total, constraints

    @property
    def auxiliary(self) -> Auxiliary:
        """See `FDivergence.auxiliary`."""
        held = [part.auxiliary for _, part in self.parts if part.auxiliary is not None]
        return lambda p, q: tuple(one(p, q) for one in held)


def pattern_of(f: sympy.Expr) -> Pattern | None:
    """Return f, with f(1) = 0, as a sum of known functions; None where it is none, or a weight would be negative."""
    candidates = _candidates(f)
    if len(candidates) > MOST:
        return None
    functions = [precise(one) for one in [*(part.f for part in candidates), T - 1]]
    with mpmath.workdps(DIGITS):
        points = _points(len(functions), _affine(f)[1])
        matrix = mpmath.matrix([[one(t) for one in functions] for t in points])
        value = precise(f)
        right = mpmath.matrix([value(t) for t in points])
        try:
            weights = mpmath.lu_solve(matrix, right)
        except (ValueError, ZeroDivisionError):  # the candidates depend on each other
            return None
        if mpmath.norm(matrix * weights - right, mpmath.inf) > ZERO or any(one < -ZERO for one in weights[:-1]):
            return None
        kept = [(float(one), part) for one, part in zip(weights, candidates, strict=False) if one > ZERO]
        return Pattern(tuple(kept), float(weights[len(candidates)]))


def _points(functions: int, kinks: list[sympy.Rational]) -> list[Any]:
    """Where the identity is asked for: twice as many points as functions around 1, and some on each side of kinks."""
    count = PER_FUNCTION * functions
    around = [mpmath.mpf(10) ** ((2 * mpmath.mpf(k) + 1) / count - 1) for k in range(count)]
    return around + [mpmath.mpf(int(k.p)) / int(k.q) * side for k in kinks for side in (0.25, 0.5, 2, 4)]


def _candidates(f: sympy.Expr) -> list[Part]:
    """Functions that are linearly independent of each other and of t - 1."""
    found = [Part(-sympy.log(T), forms.relative_entropy), Part(T * sympy.log(T), forms.reverse_relative_entropy)]
    suggested = {one.exp for one in f.atoms(sympy.Pow) if one.base == T and one.exp.is_Rational}
    found += [
        _power(r) for r in sorted({*suggested, sympy.Integer(-1), sympy.Rational(1, 2), sympy.Integer(2)} - {0, 1})
    ]
    mixed, kinks = _affine(f)
    for share in mixed:
        found += _to_mixture(share)
    return found + [_kink(k) for k in kinks]


def _affine(f: sympy.Expr) -> tuple[list[sympy.Rational], list[sympy.Rational]]:
    """Of each a + b t in f: a/(a+b) where both are positive, else the t at which it vanishes, if there is one."""
    several = set(f.atoms(sympy.Add))
    for one in f.atoms(sympy.Max, sympy.Min):
        several |= {left - right for left, right in combinations(one.args, 2)}
    mixed, kinks = set(), set()
    for one in several:
        slope = one.diff(T)
        value = one.subs(T, 0) if slope.is_Rational else sympy.S.NaN
        if not value.is_Rational or slope * value == 0:
            continue
        if slope * value > 0:
            mixed.add(value / (value + slope))
        else:
            kinks.add(-value / slope)
    return sorted(mixed), sorted(kinks)


def _power(r: sympy.Rational) -> Part:
    """(t^r - 1)/(r (r - 1)), by second-order cones where there are some."""
    number = float(r)
    if r == 2:
        return Part((T - 1) ** 2, forms.squares_over(1.0, 0.0), lambda p, q: forms.square_over(p - q, p))
    if r == -1:
        return Part((T - 1) ** 2 / T, forms.squares_over(0.0, 1.0), lambda p, q: forms.square_over(p - q, q))
    if r == sympy.Rational(1, 2):
        return Part((1 - sympy.sqrt(T)) ** 2, forms.squared_hellinger, lambda p, q: np.sqrt(p * q))
    return Part(
        (T**r - 1) / (r * (r - 1)), forms.power(1.0 - number), lambda p, q: forms.weighted_mean(p, q, 1.0 - number)
    )


def _to_mixture(share: sympy.Rational) -> list[Part]:
    """Relative entropies of p and of q to the mixture m = share p + (1 - share) q, and (p - q)^2 / m."""
    of_p, of_q = float(share), float(1 - share)
    mixture = share + (1 - share) * T

    def first(p: cp.Expression, q: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        return cp.sum(cp.rel_entr(p, of_p * p + of_q * q)), []

    def second(p: cp.Expression, q: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        return cp.sum(cp.rel_entr(q, of_p * p + of_q * q)), []

    return [
        Part(-sympy.log(mixture), first),
        Part(T * sympy.log(T) - T * sympy.log(mixture), second),
        Part(
            (1 - T) ** 2 / mixture,
            forms.squares_over(of_p, of_q),
            lambda p, q: forms.square_over(p - q, of_p * p + of_q * q),
        ),
    ]


def _kink(k: sympy.Rational) -> Part:
    """|t - k| - |1 - k|."""
    at, offset = float(k), float(abs(1 - k))

    def form(p: cp.Expression, q: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        return cp.sum(cp.abs(q - at * p)) - offset * cp.sum(p), []

    return Part(sympy.Abs(T - k) - abs(1 - k), form)
