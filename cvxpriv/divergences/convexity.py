"""Convexity of f: a proof by exact or interval arithmetic, a point that refutes it, or neither.

f'' of f on (0, 1], and of its adjoint s f(1/s) on (0, 1] for the rest, are enclosed on intervals that are cut in two
until each is seen not to be negative. Between breakpoints only: at a breakpoint the slope must not fall.
"""

from dataclasses import dataclass
from typing import Any, Literal

import mpmath
import numpy as np
import numpy.typing as npt

from cvxpriv.divergences.breakpoints import Branches
from cvxpriv.divergences.intervals import INTERVALS, Interval
from cvxpriv.divergences.jets import DIGITS, MANY_DIGITS, constant_value, jet
from cvxpriv.divergences.rational import bend_at_least_zero
from cvxpriv.divergences.spellings import cleared, expanded, spellings, split, spread
from cvxpriv.divergences.tree import (
    ONE,
    Call,
    Node,
    Number,
    Product,
    Sum,
    T,
    add,
    linear,
    multiply,
    number,
    power,
    scaled,
    with_nodes,
)
from cvxpriv.numerics.arrays import Array

#: (0, 1] is first cut at these places; then each undecided interval is halved, up to these numbers of rounds and
#: intervals.
STARTS = np.concatenate([[0.0], np.geomspace(1e-30, 1e-12, 37)[:-1], np.geomspace(1e-12, 1.0, 241)])
ROUNDS, MOST_CELLS = 36, 3_000
#: Number of rounds that are left once there are more intervals than that, and only the worst are followed.
LAST_ROUNDS = 8
#: A slope that falls by more than this, of an f of size 1, falls not by rounding, in 60 digits.
NEGATIVE = mpmath.mpf(10) ** -30
#: Shares of an interval, and powers of ten, at which an f is looked at that is straight elsewhere.
SHARES = tuple(10.0**-power for power in range(3, 31, 3))
#: Numbers of digits that tell a small f'' from rounding, and the relative difference up to which they agree.
SEVERAL_DIGITS, ALIKE = (DIGITS, 2 * DIGITS), 1e-6
#: Number of candidates for a refutation that are examined in many digits, each round.
CANDIDATES = 6


@dataclass(frozen=True)
class Convexity:
    """The result of a test of f'' for its sign.

    `verdict`: {"proved", "refuted", "not refuted"}.
    `cells`: Number of intervals that were examined; 0 where f'' is rational and decided exactly.
    `t`, `curvature`: A point where f is not convex, and its f'' there, or the fall of its slope.
    """

    verdict: Literal["proved", "refuted", "not refuted"]
    cells: int = 0
    t: float = np.nan
    curvature: float = np.nan


def adjoint(f: Node) -> Node:
    """Return s f(1/s), whose divergence of (q, p) is that of f of (p, q)."""

    def turned(node: Node) -> Node | None:
        if isinstance(node, Sum):  # a + b/s as (a s + b)/s
            base, rise = cleared(add(*(scaled(factor, with_nodes(term, turned)) for term, factor in node.terms)))
            return multiply(base, power(T, scaled(-1, rise)))
        return power(T, number(-1)) if node == T else None

    return spread(T, add(*(scaled(factor, with_nodes(term, turned)) for term, factor in linear(f).items())))


def convexity_of(branches: Branches) -> Convexity:
    """Return whether f is convex on (0, inf)."""
    for index, t in enumerate(branches.at):
        fall = branches.jump(index)
        if fall < -NEGATIVE:
            return Convexity("refuted", 0, float(t), float(fall))
    cells, proved = 0, branches.complete
    bounds = [0.0, *map(float, branches.at), np.inf]
    for low, high, tree in zip(bounds, bounds[1:], branches.trees, strict=False):
        exact = bend_at_least_zero(tree, low, high)
        if exact is not None and exact[0]:
            continue
        for start, end, inverse in ((low, min(high, 1.0), False), (_below(high), min(_below(low), 1.0), True)):
            if start >= end:
                continue
            found = _on_interval(tree, start, end, inverse)
            cells += found.cells
            if found.verdict == "refuted":
                return found
            proved = proved and found.verdict == "proved"
        if exact is not None:
            return Convexity("refuted", cells, exact[1], float(second_derivative(tree, exact[1]) or 0.0))
    return Convexity("proved" if proved else "not refuted", cells)


def _below(t: float) -> float:
    return 0.0 if np.isinf(t) else np.inf if t == 0.0 else 1.0 / t


def _on_interval(tree: Node, start: float, end: float, inverse: bool) -> Convexity:
    one, other = (adjoint(tree), tree) if inverse else (tree, adjoint(tree))
    near = settled_near_zero(expanded(one)) if start == 0.0 else 0.0
    inside = STARTS[(max(start, near) < STARTS) & (end > STARTS)]
    ends = np.concatenate([[max(start * (1.0 - 1e-15), near)], inside, [end * (1.0 + 1e-15)]])
    low, high = ends[:-1], ends[1:]
    several = [*((spelt, False) for spelt in spellings(one)), *((spelt, True) for spelt in spellings(other))]
    cells, left, proved = 0, ROUNDS, True
    while left:
        left -= 1
        cells += low.size
        least, most = _enclosed(several, low, high)
        open_ = ~(least >= 0.0)
        low, high, most = low[open_], high[open_], most[open_]
        refuted = _refuted(tree, low, high, most, inverse, every=left == ROUNDS - 1)
        if refuted is not None:
            return Convexity("refuted", cells, *refuted)
        if not low.size:
            return Convexity("proved" if proved else "not refuted", cells)
        if low.size > MOST_CELLS:
            kept = np.argsort(most, kind="stable")[:MOST_CELLS]
            low, high, left, proved = low[kept], high[kept], min(left, LAST_ROUNDS), False
        low, high, cut = _halved(low, high)
        proved = proved and cut
    return Convexity("not refuted", cells)


def _enclosed(several: list[tuple[Node, bool]], low: Array, high: Array) -> tuple[Array, Array]:
    """Return bounds of f'' on intervals: the best that several spellings give, those of the adjoint at 1/t.

    They have one sign, and one of them may be known where the other is 0 times infinity."""
    least, most = np.full(low.shape, -np.inf), np.full(low.shape, np.inf)
    for one, turned in several:
        with np.errstate(all="ignore"):
            open_ = ~(least >= 0.0)
            at = Interval(low[open_], high[open_])
            bend = jet(one, 1 / at if turned else at, INTERVALS)[2]
        sides = (bend.low, bend.high) if isinstance(bend, Interval) else (float(bend), float(bend))
        least[open_], most[open_] = np.maximum(least[open_], sides[0]), np.minimum(most[open_], sides[1])
    return least, most


def _halved(low: Array, high: Array) -> tuple[Array, Array, bool]:
    """Return each interval in two; those as narrow as doubles allow are left out, and the last entry reports it."""
    wide = (low > 0.0) & (high > 2.0 * low)
    with np.errstate(all="ignore"):
        middle = np.where(
            wide, np.sqrt(low) * np.sqrt(high), np.where(low > 0.0, low + (high - low) / 2.0, high * 1e-4)
        )
    apart = (middle > low) & (middle < high)
    low, middle, high = low[apart], middle[apart], high[apart]
    return np.concatenate([low, middle]), np.concatenate([middle, high]), bool(apart.all())


def _refuted(
    tree: Node, low: Array, high: Array, most: Array, inverse: bool, every: bool
) -> tuple[float, float] | None:
    """Return a point where f'' is negative in many digits, first from the enclosures, then from the middle of some.

    `every`: Look at the middle of each interval: enclosures that exceed what doubles hold give no order.
    """
    if not low.size:
        return None
    certain = np.flatnonzero(most < 0.0)
    nearest = certain[np.argsort(np.abs(np.log(np.maximum(high[certain], 1e-300))), kind="stable")][:2]
    order: npt.NDArray[np.intp] = np.concatenate(
        [nearest, np.argsort(most, kind="stable")[: None if every else CANDIDATES]]
    )
    for k in order:
        middle = float(np.sqrt(low[k] * high[k])) if low[k] > 0.0 else float(high[k]) / 2.0
        if middle <= 0.0:
            continue
        t = 1.0 / middle if inverse else middle
        curvature = second_derivative(tree, t)
        if curvature is not None and curvature < 0:
            return t, float(curvature)
    return None


def second_derivative(tree: Node, t: float) -> Any:
    """Return f'' at t in many digits: 0 where it is rounding, which is another number at each; None without a value."""
    seen = []
    for digits in SEVERAL_DIGITS:
        with mpmath.workdps(digits):
            try:
                seen.append(jet(tree, mpmath.mpf(t), MANY_DIGITS)[2])
            except (ZeroDivisionError, ValueError, TypeError, OverflowError):
                return None
    rough, fine = seen
    return None if mpmath.isnan(fine) else fine if abs(rough - fine) <= ALIKE * abs(fine) else mpmath.mpf(0)


def bends(branches: Branches) -> tuple[bool, ...]:
    """Return whether f'' is not 0 throughout, on each interval between breakpoints, where f is analytic."""
    found = []
    bounds = [0.0, *map(float, branches.at), np.inf]
    for low, high, tree in zip(bounds, bounds[1:], branches.trees, strict=False):
        start, end = max(low, high / 8.0 if np.isfinite(high) else 0.25), min(high, 8.0 * max(low, 0.5))
        points = [start + share * (end - start) for share in (0.31, 0.53, 0.77)]
        # exp(-1e9 t) has bent before that, and is straight to any number of digits there
        beside = [one for share in SHARES for one in (start + share * (end - start), end - share * (end - start))]
        far = [one for size in SHARES for one in (size, 1.0 / size)]
        points += [one for one in [*beside, *far, 1.0] if low < one < high]
        bent = (second_derivative(tree, t) for t in points)
        found.append(any(one is not None and one != 0 and mpmath.isfinite(one) for one in bent))
    return tuple(found)


#: Coefficient c by (a, k).
Terms = dict[tuple[mpmath.mpf, int], mpmath.mpf]


def settled_near_zero(tree: Node) -> float:
    """Return an end > 0 such that f'' > 0 on (0, end]; 0 where the leading term does not show it.

    >>> from cvxpriv.divergences.parsing import line_of
    >>> settled_near_zero(line_of("t*log(t)").f) > 0, settled_near_zero(line_of("log(t)").f)
    (True, 0.0)
    """
    with mpmath.workdps(DIGITS):
        terms = _terms(tree)
        if terms is None:
            return 0.0
        bend = {pair: c for pair, c in _slope(_slope(terms)).items() if abs(c) > mpmath.mpf(10) ** -40}
        if not bend:
            return 0.0
        (a, k) = first = min(bend, key=lambda pair: (pair[0], -pair[1]))
        if bend[first] * (-1) ** k < 0:  # log t is negative there
            return 0.0
        others = [(b - a, m - k, abs(c)) for (b, m), c in bend.items() if (b, m) != first]
        for decade in range(1, 301):
            end = mpmath.mpf(10) ** -decade
            depth = -mpmath.log(end)
            falling = all(b == 0 or m <= 0 or depth >= m / b for b, m, _ in others)
            if falling and sum(c * end**b * depth**m for b, m, c in others) < abs(bend[first]) * (
                1 - mpmath.mpf(10) ** -20
            ):
                return float(end)
        return 0.0


def _terms(tree: Node) -> Terms | None:
    found: Terms = {}
    for term, factor in linear(tree).items():
        fixed, rest = split(term)
        a, k = mpmath.mpf(0), 0
        for base, exponent in () if rest == ONE else rest.factors if isinstance(rest, Product) else ((rest, ONE),):
            whole = isinstance(exponent, Number) and exponent.value.denominator == 1 and exponent.value > 0
            if base == T:
                a = constant_value(exponent)
            elif base == Call("log", (T,)) and whole:
                k = int(constant_value(exponent))
            else:
                return None
        found[a, k] = found.get((a, k), mpmath.mpf(0)) + fixed * factor.numerator / factor.denominator
    return found


def _slope(terms: Terms) -> Terms:
    found: Terms = {}
    for (a, k), c in terms.items():
        for pair, size in (((a - 1, k), a * c), ((a - 1, k - 1), k * c)):
            if size:
                found[pair] = found.get(pair, mpmath.mpf(0)) + size
    return found
