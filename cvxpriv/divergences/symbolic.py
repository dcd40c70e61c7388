"""Arithmetic for symbolic expressions in t: numpy for values, mpmath with many digits for decisions.

An expression becomes small functions, one a node; nothing is ever turned into code. sympy only differentiates: its
`limit` and `simplify` may run for hours on a line of text, so limits are read off in high precision.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import mpmath
import numpy as np
import sympy

from cvxpriv.divergences.limits import limit_of
from cvxpriv.divergences.parsing import T
from cvxpriv.state import Array

__all__ = ["DIGITS", "Evaluator", "array_function", "limit", "precise", "roots"]

#: Digits for decisions at moderate t.
DIGITS = 60
#: Limits are read at t = 10^(2^k) or 10^(-2^k), k in this range; relative differences that count as none.
DISTANCES, SETTLED = range(5, 11), 1e-25
#: Where roots are looked for.
GRID = np.geomspace(1e-9, 1e9, 1801)
BISECTIONS = 200

Evaluator = Callable[[Any], Any]


@dataclass(frozen=True)
class Arithmetic:
    """What a node of each kind does."""

    constant: Callable[[sympy.Expr], Evaluator]
    power: Callable[[Any, Any], Any]
    functions: dict[type, Callable[..., Any]]


def _double(number: sympy.Expr) -> Evaluator:
    value = float(number)
    return lambda t: value


def _exact(number: sympy.Expr) -> Evaluator:
    if number.is_Rational:
        return lambda t: mpmath.mpf(int(number.p)) / int(number.q)
    return lambda t: mpmath.mpmathify(number.evalf(mpmath.mp.dps))


def _double_power(base: Any, exponent: Any) -> Any:
    if isinstance(exponent, float) and abs(exponent) == 0.5:
        root = np.sqrt(base)
        return root if exponent > 0.0 else 1.0 / root
    return base ** (int(exponent) if isinstance(exponent, float) and exponent.is_integer() else exponent)


NUMPY = Arithmetic(
    constant=_double,
    power=_double_power,
    functions={
        sympy.log: np.log,
        sympy.exp: np.exp,
        sympy.Abs: np.abs,
        sympy.Max: lambda *several: reduce(np.maximum, several),
        sympy.Min: lambda *several: reduce(np.minimum, several),
        sympy.sign: np.sign,
        sympy.Heaviside: lambda x, middle=0.5: np.heaviside(x, middle),
    },
)
MPMATH = Arithmetic(
    constant=_exact,
    power=operator.pow,
    functions={
        sympy.log: mpmath.log,
        sympy.exp: mpmath.exp,
        sympy.Abs: abs,
        sympy.Max: max,
        sympy.Min: min,
        sympy.sign: mpmath.sign,
        sympy.Heaviside: lambda x, middle=0.5: middle if x == 0 else mpmath.mpf(x > 0),
    },
)


def _function(expression: sympy.Expr, arithmetic: Arithmetic) -> Evaluator:
    if expression.is_number:
        return arithmetic.constant(expression)
    if expression == T:
        return lambda t: t
    parts = [_function(argument, arithmetic) for argument in expression.args]
    if expression.is_Add or expression.is_Mul:
        joined = operator.add if expression.is_Add else operator.mul
        return lambda t: reduce(joined, [part(t) for part in parts])
    if expression.is_Pow:
        base, exponent = parts
        return lambda t: arithmetic.power(base(t), exponent(t))
    function = arithmetic.functions[expression.func]
    return lambda t: function(*[part(t) for part in parts])


def array_function(expression: sympy.Expr) -> Callable[[Array], Array]:
    """Return the expression as a function of an array of t > 0; it may overflow, without a warning."""
    evaluate = _function(expression, NUMPY)

    def values(t: Array) -> Array:
        t = np.asarray(t, dtype=float)
        with np.errstate(all="ignore"):
            return np.asarray(np.broadcast_to(evaluate(t), t.shape), dtype=float)

    return values


def precise(expression: sympy.Expr) -> Evaluator:
    """Return the expression as a function of one mpmath number, NaN where it has no real value."""
    evaluate = _function(expression, MPMATH)

    def value(t: Any) -> Any:
        try:
            found = evaluate(t)
        except (ZeroDivisionError, ValueError, TypeError):  # a pole; log(0); an order of complex numbers
            return mpmath.nan
        return mpmath.nan if isinstance(found, mpmath.mpc) else found

    return value


def limit(value: Evaluator, direction: int) -> float:
    """Return the limit of a function that is monotone far out, for t to 0 (direction -1) or to infinity (+1)."""

    def values() -> Iterator[Any]:
        for k in DISTANCES:
            with mpmath.workdps(DIGITS + 4 * 2**k):
                found = value(mpmath.mpf(10) ** (direction * 2**k))
            yield found

    return limit_of(values(), SETTLED)


def roots(expression: sympy.Expr) -> list[Any]:
    """Return where an expression changes its sign on (1e-9, 1e9), to `DIGITS` digits."""
    values = np.sign(array_function(expression)(GRID))
    evaluate = precise(expression)
    found = []
    with mpmath.workdps(DIGITS):
        for index in np.flatnonzero((values[:-1] * values[1:] < 0) | (values[:-1] == 0)):
            low, high = mpmath.mpf(GRID[index]), mpmath.mpf(GRID[index + 1])
            sign = evaluate(low)
            for _ in range(BISECTIONS if sign else 0):
                middle = (low + high) / 2
                low, high = (middle, high) if evaluate(middle) * sign > 0 else (low, middle)
            found.append(low)
    return found
