"""The same expression with what cancels cancelled: f - t f' of most f is a difference of large equal parts.

An expression becomes a polynomial in its parts that are not rational (logarithms, roots, exponentials) with rational
functions of t as coefficients, and each coefficient is factored. sympy's `simplify` guesses, and may run for hours;
this takes polynomials over the integers only, and refuses large ones.
"""

from __future__ import annotations

import math

import sympy

from cvxpriv.divergences.parsing import T

__all__ = ["adjoint", "derivative", "tidied"]

#: Larger expressions, and polynomials of a larger degree, stay as they are.
MOST_OPERATIONS, MOST_DEGREE = 150, 40
#: Roots of t up to this one become whole powers.
MOST_ROOT = 12


def tidied(expression: sympy.Expr) -> sympy.Expr:
    """Return an equal expression in `T`, with common parts cancelled and coefficients factored.

    Examples
    --------
    >>> f = sympy.sympify(1) / T + T * sympy.log(T / (T + 1))
    >>> tidied(f - T * f.diff(T))
    -(t**2 - 2*t - 2)/(t*(t + 1))
    """
    if expression.count_ops() > MOST_OPERATIONS:
        return expression
    return _Skeleton(expression).tidied()


def adjoint(f: sympy.Expr) -> sympy.Expr:
    """Return t f(1/t), whose divergence of (q, p) is that of f of (p, q).

    >>> adjoint(-sympy.log(T))
    t*log(t)
    """
    return tidied(T * f.subs(T, 1 / T))


def derivative(expression: sympy.Expr) -> sympy.Expr:
    """Return the derivative in t, tidied; where it jumps nothing is said of the jump.

    >>> derivative((T - 1) ** 2 * sympy.sign(T - 1))
    2*(t - 1)*sign(t - 1)
    """
    return tidied(sympy.diff(expression, T).replace(sympy.DiracDelta, lambda *_: sympy.Integer(0)))


class _Skeleton:
    """An expression as a rational function of s = t^(1/root) and of symbols for its parts that are not rational."""

    def __init__(self, expression: sympy.Expr) -> None:
        self.expression = expression
        roots = [int(one.exp.q) for one in expression.atoms(sympy.Pow) if one.base == T and one.exp.is_Rational]
        self.root = math.lcm(*roots) if math.lcm(*roots) <= MOST_ROOT else 1
        self.s = sympy.Symbol("s", positive=True)
        self.parts: dict[sympy.Expr, sympy.Dummy] = {}

    def tidied(self) -> sympy.Expr:
        above, below = sympy.fraction(sympy.together(self.rational(self.expression)))
        symbols = list(self.parts.values())
        if below.has(*symbols) or _degree(above, self.s) + _degree(below, self.s) > MOST_DEGREE:
            return self.expression
        terms = sympy.Poly(above, *symbols).terms() if symbols else [((), above)]
        total = sympy.S.Zero
        for powers, coefficient in terms:
            monomial = sympy.Mul(*(symbol**power for symbol, power in zip(symbols, powers, strict=True)))
            total += sympy.factor(coefficient / below) * monomial
        back: dict[sympy.Expr, sympy.Expr] = {symbol: part for part, symbol in self.parts.items()}
        return total.xreplace({**back, self.s: T ** sympy.Rational(1, self.root)})

    def rational(self, one: sympy.Expr) -> sympy.Expr:
        if one.is_Rational:
            return one
        if one == T:
            return self.s**self.root
        if one.is_Add or one.is_Mul:
            return one.func(*map(self.rational, one.args))
        if one.is_Pow and one.exp.is_Rational:
            if one.base == T and (one.exp * self.root).is_Integer:
                return self.s ** (one.exp * self.root)
            whole = sympy.floor(one.exp)
            rest = one.exp - whole
            return self.rational(one.base) ** whole * (self.part(tidied(one.base) ** rest) if rest else 1)
        if one.is_number:
            return self.part(one)
        arguments = [tidied(argument) for argument in one.args]
        if one.func == sympy.log and sympy.numer(arguments[0]) == 1:
            return -self.part(sympy.log(1 / arguments[0]))
        return self.part(one.func(*arguments))

    def part(self, one: sympy.Expr) -> sympy.Expr:
        return self.parts.setdefault(one, sympy.Dummy())


def _degree(polynomial: sympy.Expr, s: sympy.Symbol) -> int:
    """An upper bound of the degree, without expanding."""
    if polynomial == s:
        return 1
    if polynomial.is_Pow and polynomial.exp.is_Integer:
        return int(polynomial.exp) * _degree(polynomial.base, s)
    degrees = [_degree(one, s) for one in polynomial.args]
    return (sum(degrees) if polynomial.is_Mul else max(degrees, default=0)) if degrees else 0
