"""Growth far out as exponents, and numbers as intervals with rational ends, for expansions of f.

A scale is an exponential of powers of u and log u: u^2, 1/log u and exp(-u^2) are scales. Each has a bound for every
u >= e^x where it falls.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath

#: An interval's ends.
Ball = tuple[Fraction, Fraction]
#: Exponents c by (a, k, 0): the scale is exp(sum c u^a (log u)^k); log log u has (0, 0, 1).
Scale = tuple[tuple[tuple[Fraction, Fraction, int], Fraction], ...]

ONE: Scale = ()
LOG, LOG_LOG = (Fraction(0), Fraction(1), 0), (Fraction(0), Fraction(0), 1)
ZERO: Ball = (Fraction(0), Fraction(0))
UNIT: Ball = (Fraction(1), Fraction(1))
#: Digits of constants; an exponent known to so many is no other that a text can hold, and is rounded to `SAME`.
DIGITS, KNOWN, SAME = 110, Fraction(1, 10**95), Fraction(1, 10**90)
#: Bits of an end that is rounded, and those of an exact number before it is.
BITS, EXACT_BITS = 384, 1200
#: Largest power of two of a constant, up and down.
MOST_EXPONENT = 20_000
TINY = Fraction(1, 2**MOST_EXPONENT)
#: exp of less than this is replaced by it, and margin of numbers that are computed in `DIGITS` digits.
LEAST, MARGIN = -3000, mpmath.mpf(10) ** -20


class Undecided(Exception):
    """A part has no expansion here, or a leading coefficient may have either sign."""


def degrees(scale: Scale) -> tuple[Fraction, Fraction]:
    """Return a and k of a scale that is u^a (log u)^k."""
    exponents = dict(scale)
    if not set(exponents) <= {LOG, LOG_LOG}:
        raise Undecided
    return exponents.get(LOG, Fraction(0)), exponents.get(LOG_LOG, Fraction(0))


def scale_of(exponents: dict[tuple[Fraction, Fraction, int], Fraction]) -> Scale:
    """Return the scale of some exponents."""
    return tuple(sorted(((key, c) for key, c in exponents.items() if c), reverse=True))


def product(one: Scale, other: Scale) -> Scale:
    """Return the product of two scales."""
    found = dict(one)
    for key, c in other:
        found[key] = found.get(key, Fraction(0)) + c
    return scale_of(found)


def raised(scale: Scale, exponent: Fraction) -> Scale:
    """Return a power of a scale."""
    return tuple((key, c * exponent) for key, c in scale)


def order(one: Scale, other: Scale) -> int:
    """Return the sign of log(one/other) far out."""
    between = product(one, raised(other, Fraction(-1)))
    return 0 if not between else 1 if between[0][1] > 0 else -1


@lru_cache(maxsize=4096)
def largest(scale: Scale, start: int) -> Fraction:
    """Return a bound of a scale that falls from the start on, with its logarithm D: D' < 0 in x = log u.

    D' is sum c e^(a x) x^m w, where w is a + k/x, k or 1. Each term's ratio to the first is largest at the start.
    """
    if scale == ONE:
        return Fraction(1)
    with mpmath.workdps(DIGITS):
        x, rises = mpmath.mpf(start), []
        for (a, k, again), c in scale:
            ends = [a, a + k / start] if a else [Fraction(1) if again else k]
            rises.append((a, k if a else k - 1, min(ends), max(ends), c))
        (a, m, least, _, c), *others = rises
        if c >= 0 or least <= 0:
            raise Undecided
        risen = mpmath.mpf(0)
        for b, n, _, most, d in others:
            if (a - b) * start < n - m:
                raise Undecided
            if d > 0 or most < 0:
                risen += abs(as_mpf(d * most / least)) * mpmath.exp(-as_mpf(a - b) * x) * x ** as_mpf(n - m)
        if risen >= -as_mpf(c) * (1 - MARGIN):
            raise Undecided
        log = sum(
            as_mpf(c) * (mpmath.log(x) if again else mpmath.exp(as_mpf(a) * x) * x ** as_mpf(k))
            for (a, k, again), c in scale
        )
        return _fraction(mpmath.exp(max(log, LEAST)) * (1 + MARGIN))


def exactly(c: Ball) -> Fraction:
    """Return the number that an interval of no width stands for, of two paths to it the same one."""
    if c[1] - c[0] > KNOWN * abs(c[0]):
        raise Undecided
    return c[0] if c[0] == c[1] else Fraction(round(c[0] / SAME)) * SAME


def as_mpf(value: Fraction) -> Any:
    """Return a rational number in mpmath's precision."""
    return mpmath.mpf(value.numerator) / value.denominator


def _two_to(power: int) -> Fraction:
    return Fraction(2**power) if power > 0 else Fraction(1, 2**-power)


def _fraction(value: Any) -> Fraction:
    """Return a number of mpmath, exactly; 0 for one below `TINY`."""
    if not mpmath.isfinite(value):
        raise Undecided
    mantissa, exponent = mpmath.frexp(value)
    if exponent > MOST_EXPONENT:
        raise Undecided
    if exponent < -MOST_EXPONENT:
        return Fraction(0)
    precision: int = mpmath.mp.prec
    return Fraction(int(mpmath.ldexp(mantissa, precision))) * _two_to(int(exponent) - precision)


def around(function: Callable[[Any], Any], of: Any) -> Ball:
    """Return the image of an interval, or of a node, under a monotone function."""
    if of == ZERO and function is mpmath.exp:
        return UNIT
    if of == UNIT and function is mpmath.log:
        return ZERO
    with mpmath.workdps(DIGITS):
        ends = [function(as_mpf(one)) for one in of] if isinstance(of, tuple) else [function(of)]
        return _widened(map(_fraction, ends))


def _widened(ends: Iterable[Fraction]) -> Ball:
    several = list(ends)
    width = max(map(abs, several)) / 10 ** (DIGITS - 5) or TINY
    return min(several) - width, max(several) + width


def rounded(c: Ball) -> Ball:
    """Return an interval around it with short ends; an exact number stays as it is, if it is not too long."""
    if c[0] == c[1] and c[0].numerator.bit_length() + c[0].denominator.bit_length() <= EXACT_BITS:
        return c
    return _floor(c[0]), -_floor(-c[1])


def _floor(value: Fraction) -> Fraction:
    above, below = value.numerator, value.denominator
    shift = BITS + below.bit_length() - above.bit_length()
    return Fraction((above << max(shift, 0)) // (below << max(-shift, 0))) * _two_to(-shift)


def ball_sum(a: Ball, b: Ball) -> Ball:
    """Return the sum of two intervals."""
    return a[0] + b[0], a[1] + b[1]


def ball_product(a: Ball, b: Ball) -> Ball:
    """Return the product of two intervals."""
    several = [x * y for x in a for y in b]
    return min(several), max(several)


def ball_inverse(c: Ball) -> Ball:
    """Return 1/c of an interval without 0."""
    return 1 / c[1], 1 / c[0]


def ball_power(c: Ball, e: Fraction) -> Ball:
    """Return a power of an interval without 0; c > 0, or e is whole."""
    if e.denominator == 1 and abs(e) <= 64:
        ends = [one ** int(e) for one in c]
        return min(ends), max(ends)
    if c == UNIT:
        return c
    return around(lambda one: one ** as_mpf(e), c)
