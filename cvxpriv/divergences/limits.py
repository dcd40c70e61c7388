"""The limit of a monotone function, read off where its argument is squared from one value to the next."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

__all__ = ["limit_of"]

#: A value beyond this counts as infinite.
HUGE = 1e60
#: Differences whose ratio is at least this do not add up to anything finite.
STEADY = 0.95
#: What is extrapolated beyond the last value must be this small, relative to the larger of 1 and the value, or the
#: ratio of differences must have come to rest: a power such as t^0.001 has not shown yet where it goes.
SMALL, RESTING = 1e-7, 1e-2


def limit_of(values: Iterable[Any], noise: float) -> float:
    """Return the limit of a sequence of floats or mpmath numbers; no more of them are asked for than it takes.

    When the argument is squared each time, a logarithm's differences double, those of log log stay, those of 1/log
    halve, and those of a power that vanishes shrink faster than any of them. NaN where none of this has shown.

    Parameters
    ----------
    values : iterable
        At 10^(d 2^k), k = 0, 1, ...
    noise : float
        Relative differences up to this count as none.

    Examples
    --------
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
    beyond = second * ratio / (1 - ratio)
    resting = abs(second * before - first * first) <= RESTING * first * first
    if not (resting or abs(beyond) <= SMALL * max(1.0, abs(seen[-1]))):
        return math.nan
    return float(seen[-1] + beyond)
