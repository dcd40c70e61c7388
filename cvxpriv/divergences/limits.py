"""The limit of a monotone function, read off where its argument is squared from one value to the next."""

import math
from collections.abc import Iterable
from typing import Any

import mpmath

from cvxpriv.divergences.jets import DIGITS, constant_value, value_at
from cvxpriv.divergences.tree import Call, Node, Product, T, add, constant, linear, scaled

#: Range of k: the limits of a tree are read at t = 10^(2^k) or 10^(-2^k), to so many digits for each power of ten; and
#: relative differences that count as zero, which leave half of these digits to cancel: 1e-60 log t is not constant.
DISTANCES, EACH = range(5, 11), 8
SETTLED = mpmath.mpf(10) ** (5 - DIGITS - EACH // 2 * 2 ** DISTANCES[0])

#: A value beyond this counts as infinite: an f may be 1e-250 around t = 1, and is divided by that.
HUGE = mpmath.mpf(10) ** 400
#: Differences whose ratio is at least this do not add up to anything finite: it is 1 of log log t, and 0.9993 of
#: (log t)^-0.001, whose limit is 0.
STEADY = 0.9995
#: Two conditions, of which one must hold: the extrapolation beyond the last value is this small, relative to the larger
#: of 1 and the value, or the ratio of differences has settled. A power such as t^0.001 has not shown its limit yet.
SMALL, RESTING = 1e-7, 1e-2


def limit_of(values: Iterable[Any], noise: float) -> float:
    """Return the limit of a sequence of floats or mpmath numbers, and take no more of them than are needed.

    When the argument is squared each time, a logarithm's differences double, those of log log stay, those of 1/log
    halve, and those of a power that vanishes shrink faster than any of them. NaN where none of this has shown.

    `values`: Values at 10^(d 2^k), k = 0, 1, ... `noise`: Relative differences up to this count as zero.

    >>> limit_of((math.log(2.0 + 10.0**-k) for k in (1, 2, 4, 8, 16, 32)), 1e-12)
    0.693147...
    >>> limit_of((-math.log(10.0**-k) for k in (1, 2, 4, 8, 16, 32)), 1e-12)
    inf
    """
    seen: list[Any] = []
    for value in values:
        if math.isnan(value):
            break
        if abs(value) > HUGE:
            return math.copysign(math.inf, value)
        seen.append(value)
        steps = [late - early for early, late in zip(seen[-3:-1], seen[-2:], strict=False)]
        if len(seen) > 2 and max(map(abs, steps)) <= noise * max(1.0, abs(value)):
            return float(value) if abs(value) > noise else 0.0
    if len(seen) < 4:
        return math.nan
    before, (first, second) = seen[-3] - seen[-4], steps
    if abs(second) >= STEADY * abs(first):
        return math.copysign(math.inf, second)
    ratio = second / first
    resting = abs(second * before - first * first) <= RESTING * first * first
    beyond = second * ratio / (1 - ratio) if resting else second * ratio**2  # differences of a power are squared
    if not (resting or abs(beyond) <= SMALL * max(1.0, abs(seen[-1]))):
        return math.nan
    return float(seen[-1] + beyond)


def limit_of_tree(tree: Node, direction: int) -> float:
    """Return the limit of a tree that is monotone far out, for t to 0 (direction -1) or to infinity (+1).

    >>> from cvxpriv.divergences.tree import T, call
    >>> limit_of_tree(call("log", T), -1)
    -inf
    """
    tree = add(*(scaled(c, term) for term, c in linear(tree).items() if not _vanishes(term, direction)))
    powers = [direction * 2**k for k in DISTANCES]
    return limit_of((value_at(tree, mpmath.mpf(10) ** one, DIGITS + EACH * abs(one)) for one in powers), SETTLED)


def _vanishes(term: Node, direction: int) -> bool:
    """Return whether a term is a power of t that goes to 0, however slowly, times what is slower still.

    That is powers of log t, and of what has a limit other than 0."""
    factors = [pair for pair in (term.factors if isinstance(term, Product) else ()) if not constant(pair[0])]
    powers = [constant_value(exponent) for base, exponent in factors if base == T]
    others = [base for base, _ in factors if base not in (T, Call("log", (T,)))]
    return (
        len(powers) == 1
        and direction * powers[0] < 0
        and all(0.0 < limit_of_tree(base, direction) < math.inf for base in others)
    )
