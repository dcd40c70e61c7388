"""First and second derivatives of p f(q/p) for a symbolic f, in one pass, at any p and q.

In q they are f'(t) and f''(t)/p at t = q/p. In p they are the same of the adjoint t f(1/t), with p and q exchanged, so
that neither is a difference that cancels. How far out double precision is right is measured once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
import sympy

from cvxpriv.divergences.cancellation import adjoint, derivative
from cvxpriv.divergences.definition import Side
from cvxpriv.divergences.programs import MPMATH, NUMPY, Program, compiled
from cvxpriv.numerics.arrays import Array

__all__ = ["Along", "sides_of"]

#: A p or q below this counts as 0.
TINY = 1e-300
#: t = 10^k and 10^-k, at which values in double precision are compared; digits of the comparison; what f' may be off,
#: relative to the larger of 1 and its value, and f'' relative to its value.
POWERS = (1, 2, 2.5, 3, 4, 6, 8, 10, 12, 15, 20, 30, 40, 60, 80, 100, 120, 150)
DIGITS, ERROR = 60, 1e-10


@dataclass(frozen=True)
class Along:
    """The derivatives of under * f(over/under) in `over`.

    Attributes
    ----------
    evaluate : callable
        t to f'(t) and f''(t), arrays of its shape that nobody else holds.
    low, high : float
        Where `evaluate` is right; beyond, it is asked at the end.
    at_infinity : float
        f' where `under` is 0: the slope of f at infinity.
    """

    evaluate: Callable[[Array], tuple[Array, Array]]
    low: float
    high: float
    at_infinity: float

    def __call__(self, under: Array, over: Array) -> tuple[Array, Array]:
        """Return the first and the second derivative, of the shape that both broadcast to."""
        t = over / np.maximum(under, TINY)
        if t.size and self.low <= t.min() and t.max() <= self.high:
            first, second = self.evaluate(t)
            return first, np.maximum(second, 0.0) / under
        return self._far(under, over, t)

    def _far(self, under: Array, over: Array, t: Array) -> tuple[Array, Array]:
        inside = np.clip(t, self.low, self.high)
        first, second = self.evaluate(inside)
        # The `under` of the t that is taken: f'' divided by a smaller one would be no derivative at all.
        curvature = np.maximum(second, 0.0) / np.maximum(under, np.maximum(over, TINY) / self.high)
        live = (under > 0.0) & (over > 0.0)
        return np.where(under > 0.0, first, self.at_infinity), np.where(live & np.isfinite(curvature), curvature, 0.0)


def sides_of(f: sympy.Expr, at_zero: float, slope_at_infinity: float) -> tuple[Side, Side]:
    """Return (p, q) to the derivatives of p f(q/p) in p, and in q, for an f without kinks.

    Examples
    --------
    >>> from cvxpriv.divergences.parsing import T
    >>> in_p, in_q = sides_of(T * sympy.log(T), 0.0, float("inf"))
    >>> [one.tolist() for one in in_p(np.array([1.0, 0.5]), np.array([2.0, 0.0]))]
    [[-2.0, 0.0], [2.0, 0.0]]
    """
    along_q, along_p = _along(f, slope_at_infinity), _along(adjoint(f), at_zero)
    return lambda p, q: along_p(q, p), along_q


def _along(f: sympy.Expr, at_infinity: float) -> Along:
    first = derivative(f)
    program = compiled([first, derivative(first)])
    low, high = (_reach(program, direction) for direction in (-1, 1))
    evaluate = program.bound(NUMPY)

    def whole(t: Array) -> tuple[Array, Array]:
        found_first, found_second = evaluate(t)
        return _spread(found_first, t), _spread(found_second, t)

    return Along(whole, low, high, at_infinity)


def _spread(value: Array | float, t: Array) -> Array:
    """A constant as an array of its own."""
    return np.full(t.shape, value) if np.ndim(value) == 0 else np.asarray(value)


def _reach(program: Program, direction: int) -> float:
    """The last t, from 1 in one direction, up to which double precision gives what many digits give."""
    points = 10.0 ** (direction * np.array(POWERS))
    with np.errstate(all="ignore"):
        found = [np.broadcast_to(one, points.shape) for one in program.bound(NUMPY)(points)]
    exact = program.bound(MPMATH)
    reached = 1.0
    for index, (power, t) in enumerate(zip(POWERS, points, strict=True)):
        with mpmath.workdps(int(DIGITS + 4 * power)):
            try:
                true = exact(mpmath.mpf(t))
            except (ZeroDivisionError, ValueError, TypeError):
                return reached
            for one, other, least in zip(found, true, (1.0, TINY), strict=True):
                if not abs(float(one[index]) - other) <= ERROR * max(least, abs(other)):
                    return reached
        reached = float(t)
    return reached
