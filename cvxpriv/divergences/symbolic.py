"""Symbolic expressions in t as functions: numpy for values, mpmath with many digits for decisions.

sympy only differentiates: its `limit` and `simplify` may run for hours on a line of text, so limits are read off in
high precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import sympy

from cvxpriv.divergences.limits import limit_of
from cvxpriv.divergences.programs import MPMATH, NUMPY, compiled
from cvxpriv.numerics.arrays import Array

__all__ = ["DIGITS", "Evaluator", "array_function", "limit", "precise", "roots"]

#: Digits for decisions at moderate t.
DIGITS = 60
#: Limits are read at t = 10^(2^k) or 10^(-2^k), k in this range; relative differences that count as none.
DISTANCES, SETTLED = range(5, 11), 1e-25
#: Where roots are looked for.
GRID = np.geomspace(1e-9, 1e9, 1801)
BISECTIONS = 200

Evaluator = Callable[[Any], Any]


def array_function(expression: sympy.Expr) -> Callable[[Array], Array]:
    """Return the expression as a function of an array of t > 0; it may overflow, without a warning."""
    evaluate = compiled([expression]).bound(NUMPY)

    def values(t: Array) -> Array:
        t = np.asarray(t, dtype=float)
        with np.errstate(all="ignore"):
            (found,) = evaluate(t)
        return found if np.shape(found) == t.shape else np.full(t.shape, found, dtype=float)

    return values


def precise(expression: sympy.Expr) -> Evaluator:
    """Return the expression as a function of one mpmath number, NaN where it has no real value."""
    evaluate = compiled([expression]).bound(MPMATH)

    def value(t: Any) -> Any:
        try:
            (found,) = evaluate(t)
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
