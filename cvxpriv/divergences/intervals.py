"""Interval arithmetic on arrays, rounded outwards: its bounds of a tree hold for every t of an interval.

Each result is widened by `ULPS` units in the last place, more than the error of numpy's functions. Where a number is
not defined somewhere (a logarithm below 0, 0 times infinity) the interval is the whole line, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt

from cvxpriv.divergences.jets import DIGITS, Jet, Kind, constant_value
from cvxpriv.divergences.tree import Node
from cvxpriv.numerics.arrays import Array

ULPS = 8.0
EPS, TINY, MOST = (float(one) for one in (np.finfo(float).eps, np.finfo(float).tiny, np.finfo(float).max))


@dataclass(frozen=True)
class Interval:
    """Intervals [low, high], element by element."""

    low: Array
    high: Array

    __array_priority__ = 100.0

    @property
    def holds_zero(self) -> npt.NDArray[np.bool_]:
        """Whether 0 lies in the interval, element by element."""
        return (self.low <= 0.0) & (self.high >= 0.0)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __add__(self, other: Any) -> Interval:
        if _is_zero(other):
            return self
        other = _interval(other)
        return outwards(self.low + other.low, self.high + other.high)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Interval:
        return self + (-_interval(other))

    def __rsub__(self, other: Any) -> Interval:
        return _interval(other) + (-self)

    def __mul__(self, other: Any) -> Any:
        if _is_zero(other):
            return 0
        other = _interval(other)
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        ends = [np.where(np.isnan(one), 0.0, one) for one in ends]  # 0 times an end at infinity: 0 is the right corner
        unknown = np.isnan(self.low) | np.isnan(other.low)
        return outwards(reduce(np.minimum, ends), reduce(np.maximum, ends), unknown)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Interval:
        other = _interval(other)
        with np.errstate(all="ignore"):
            inverse = outwards(1.0 / other.high, 1.0 / other.low)
        through = other.holds_zero & ~((other.low == 0.0) | (other.high == 0.0))
        low = np.where(other.high == 0.0, -np.inf, inverse.low)
        high = np.where(other.low == 0.0, np.inf, inverse.high)
        whole = through | ((other.low == 0.0) & (other.high == 0.0))
        product = self * Interval(np.where(whole, -np.inf, low), np.where(whole, np.inf, high))
        return product if isinstance(product, Interval) else _interval(0.0)

    def __rtruediv__(self, other: Any) -> Any:
        return 0 if _is_zero(other) else _interval(other) / self


def outwards(low: Array, high: Array, unknown: Any = False) -> Interval:
    """Return the interval, widened by rounding; the whole line where an end is not a number."""
    with np.errstate(all="ignore"):
        below = np.where(np.isposinf(low), MOST, low - (ULPS * EPS * np.abs(low) + TINY))
        # Of +0 and tiny numbers: sums are exact there, and a product of equal signs is not negative.
        below = np.where((low >= 0.0) & ~np.signbit(low), np.maximum(below, 0.0), below)
        above = np.where(np.isneginf(high), -MOST, high + (ULPS * EPS * np.abs(high) + TINY))
    wrong = np.isnan(low) | np.isnan(high) | unknown
    return Interval(np.where(wrong | np.isnan(below), -np.inf, below), np.where(wrong | np.isnan(above), np.inf, above))


def _is_zero(value: Any) -> bool:
    return isinstance(value, int) and value == 0


def _interval(value: Any) -> Interval:
    if isinstance(value, Interval):
        return value
    return Interval(np.asarray(float(value)), np.asarray(float(value)))


@lru_cache(maxsize=4096)
def _constant(node: Node) -> Interval:
    with mpmath.workdps(DIGITS):
        value = float(constant_value(node))
    exact = isinstance(value, float) and value == round(value) and abs(value) < 2**53
    return _interval(value) if exact else outwards(np.asarray(value), np.asarray(value))


def _monotone(function: Any, argument: Any) -> Interval:
    argument = _interval(argument)
    with np.errstate(all="ignore"):
        return outwards(function(argument.low), function(argument.high))


def _exp(argument: Any) -> Interval:
    found = _monotone(np.exp, argument)
    return Interval(np.maximum(found.low, 0.0), found.high)


def _power(base: Any, exponent: Any, exact: Fraction | None) -> Any:
    base, e = _interval(base), _interval(exponent)
    if exact == 0:
        return 1
    with np.errstate(all="ignore"):
        if exact is not None and exact.denominator == 1:
            n = int(exact)
            if n < 0:
                return 1 / _power(base, -n, Fraction(-n))
            ends = outwards(np.minimum(base.low**n, base.high**n), np.maximum(base.low**n, base.high**n))
            return (
                Interval(np.where(base.holds_zero, 0.0, np.maximum(ends.low, 0.0)), ends.high) if n % 2 == 0 else ends
            )
        corners = [np.maximum(a, 0.0) ** b for a in (base.low, base.high) for b in (e.low, e.high)]
        found = outwards(reduce(np.minimum, corners), reduce(np.maximum, corners), base.low < 0.0)
    return Interval(np.where(base.low < 0.0, -np.inf, np.maximum(found.low, 0.0)), found.high)


def _largest(parts: Sequence[Jet], side: int) -> Jet:
    """Return the hull of every branch that may be the largest; a smooth piece has only one."""
    values = [_interval(one[0]) for one in parts]
    least = reduce(np.maximum, [one.low for one in values])
    possible = [one.high >= least for one in values]
    value = Interval(least, reduce(np.maximum, [one.high for one in values]))
    return value, _hull([one[1] for one in parts], possible), _hull([one[2] for one in parts], possible)


def _hull(parts: Sequence[Any], possible: Sequence[Any]) -> Interval:
    several = [_interval(one) for one in parts]
    low = [np.where(yes, one.low, np.inf) for one, yes in zip(several, possible, strict=True)]
    high = [np.where(yes, one.high, -np.inf) for one, yes in zip(several, possible, strict=True)]
    return Interval(reduce(np.minimum, low), reduce(np.maximum, high))


#: Intervals as numbers of `cvxpriv.divergences.jets`.
INTERVALS = Kind(
    _constant, _exp, lambda one: _monotone(np.log, one), lambda one: _monotone(np.log1p, one), _power, _largest
)
