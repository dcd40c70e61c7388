"""Convexity of f: a proof by expansions and interval arithmetic, a point that refutes it, or neither.

Expansions give the sign of f'' near 0 and near infinity. Between, f'' of f and of its adjoint s f(1/s) are enclosed on
intervals that are cut in two until each is seen not to be negative. Where f'' may touch 0, squares in it are left out.
At a breakpoint the slope must not fall.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import mpmath
import numpy as np
import numpy.typing as npt

from cvxpriv.divergences.breakpoints import Branches
from cvxpriv.divergences.expansions import END_INFINITY, END_ZERO, settled
from cvxpriv.divergences.intervals import INTERVALS, Interval
from cvxpriv.divergences.jets import DIGITS, MANY_DIGITS, jet
from cvxpriv.divergences.spellings import cleared, spellings, spread
from cvxpriv.divergences.squares import without_squares
from cvxpriv.divergences.tree import (
    Node,
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

#: (0, inf) is first cut at these places; then each undecided interval is halved, up to these numbers of rounds and
#: intervals.
STARTS = 10.0 ** np.concatenate(
    [np.linspace(-30, -12, 37)[:-1], np.linspace(-12, 12, 481), np.linspace(12, 30, 37)[1:]]
)
ROUNDS, MOST_CELLS = 36, 3_000
#: Number of rounds that are left once there are more intervals than that, and only the worst are followed.
LAST_ROUNDS = 8
#: The number of rounds left at which f'' may touch 0 at a number of at most this denominator.
TOUCHING_ROUND, MOST_DENOMINATOR = ROUNDS - 8, 32
#: Largest x of an expansion that holds beyond e^x, and below e^-x, that doubles reach.
FARTHEST = 512
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
    `cells`: Number of intervals that were examined.
    `t`, `curvature`: A point where f is not convex, and its f'' there, or the fall of its slope. Beyond what a double
    holds t is a number of mpmath, and the curvature -inf where only its sign is known.
    """

    verdict: Literal["proved", "refuted", "not refuted"]
    cells: int = 0
    t: Any = np.nan
    curvature: Any = np.nan


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
            return Convexity("refuted", 0, t, fall)
    cells, proved = 0, branches.complete
    bounds = [0.0, *map(float, branches.at), np.inf]
    for low, high, tree in zip(bounds, bounds[1:], branches.trees, strict=False):
        found = _on_interval(tree, low, high)
        if found.verdict == "refuted":
            return found
        cells, proved = cells + found.cells, proved and found.verdict == "proved"
    return Convexity("proved" if proved else "not refuted", cells)


def _on_interval(tree: Node, low: float, high: float) -> Convexity:
    """Return whether f'' >= 0: by expansions at 0, at infinity and where f'' is 0, and by intervals elsewhere."""
    start, end, fallen = low * (1.0 - 1e-15), high * (1.0 + 1e-15), None
    for place in [END_ZERO] * (low == 0.0) + [END_INFINITY] * (high == np.inf):
        holds, x = settled(tree, place) or (True, FARTHEST + 1)
        t = mpmath.exp(-x if place == END_ZERO else x)
        if not holds:
            fallen = t, (second_derivative(tree, t) if x <= FARTHEST else None) or -mpmath.inf
        elif x <= FARTHEST:
            start, end = (float(t), end) if place == END_ZERO else (start, float(t))
    ends = np.concatenate([[start], STARTS[(start < STARTS) & (end > STARTS)], [end]])
    lows, highs = ends[:-1], ends[1:]
    several = [(spelt, turned, 2) for turned in (False, True) for spelt in spellings(adjoint(tree) if turned else tree)]
    cells, left, proved = 0, ROUNDS, True
    while left:
        left -= 1
        cells += lows.size
        least, most = _enclosed(several, lows, highs)
        open_ = ~(least >= 0.0)
        if left == TOUCHING_ROUND:
            open_ &= ~_touching(tree, lows, highs, open_)
            rest = without_squares(tree) if open_.any() else None
            if rest is not None:
                open_ &= not rest[1]
                several += [(spelt, False, 0) for spelt in spellings(rest[0])]
        lows, highs, most = lows[open_], highs[open_], most[open_]
        refuted = _refuted(tree, lows, highs, most, every=left == ROUNDS - 1)
        if refuted is not None:
            return Convexity("refuted", cells, *refuted)
        if fallen is not None and left < ROUNDS - 4:
            return Convexity("refuted", cells, *fallen)
        if not lows.size:
            return Convexity("proved" if proved else "not refuted", cells)
        if lows.size > MOST_CELLS:
            kept = np.argsort(most, kind="stable")[:MOST_CELLS]
            lows, highs, left, proved = lows[kept], highs[kept], min(left, LAST_ROUNDS), False
        lows, highs, cut = _halved(lows, highs)
        proved = proved and cut
    return Convexity("not refuted", cells)


def _touching(tree: Node, low: Array, high: Array, open_: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which intervals lie about a rational number where f'' is 0, and is known not to be negative beside it."""
    found = np.full(low.shape, False)
    for k in np.flatnonzero(open_):
        place = _rational(_middle(low[k], high[k]))
        if found[k] or not low[k] <= place <= high[k] or second_derivative(tree, float(place)) != 0:
            continue
        sides = [settled(tree, place, side) for side in (-1, 1)]
        reach = min(float(np.exp(-side[1])) if side is not None and side[0] else 0.0 for side in sides)
        found |= (low >= float(place) - reach) & (high <= float(place) + reach)
    return found


def _enclosed(several: list[tuple[Node, bool, int]], low: Array, high: Array) -> tuple[Array, Array]:
    """Return bounds of f'' on intervals: the best that several spellings give, those of the adjoint at 1/t.

    They have one sign, and one of them may be known where the other is 0 times infinity. Of each the derivative of an
    order counts: of what squares leave of f'' the value."""
    least, most = np.full(low.shape, -np.inf), np.full(low.shape, np.inf)
    for one, turned, order in several:
        with np.errstate(all="ignore"):
            open_ = ~(least >= 0.0)
            at = Interval(low[open_], high[open_])
            bend = jet(one, 1 / at if turned else at, INTERVALS)[order]
        sides = (bend.low, bend.high) if isinstance(bend, Interval) else (float(bend), float(bend))
        least[open_], most[open_] = np.maximum(least[open_], sides[0]), np.minimum(most[open_], sides[1])
    return least, most


def _middle(low: float, high: float) -> float:
    return high * 1e-4 if low == 0.0 else low * 1e4 if high == np.inf else float(np.sqrt(low) * np.sqrt(high))


def _rational(t: float) -> Fraction:
    """Return the number near t at which f'' may touch 0."""
    return Fraction(t).limit_denominator(MOST_DENOMINATOR)


def _halved(low: Array, high: Array) -> tuple[Array, Array, bool]:
    """Return each interval in two; those as narrow as doubles allow are left out, and the last entry reports it."""
    middle = np.array([_middle(*one) for one in zip(low, high, strict=True)])
    with np.errstate(invalid="ignore"):
        middle = np.where(high < 2.0 * low, low + (high - low) / 2.0, middle)
    apart = (middle > low) & (middle < high)
    low, middle, high = low[apart], middle[apart], high[apart]
    return np.concatenate([low, middle]), np.concatenate([middle, high]), bool(apart.all())


def _refuted(tree: Node, low: Array, high: Array, most: Array, every: bool) -> tuple[float, Any] | None:
    """Return a point where f'' is negative in many digits, first from the enclosures, then from the middle of some.
    A fraction beside the middle is tried, too.

    `every`: Look at the middle of each interval: enclosures that exceed what doubles hold give no order.
    """
    middle = np.array([_middle(*one) for one in zip(low, high, strict=True)])
    certain = np.flatnonzero(most < 0.0)
    nearest = certain[np.argsort(np.abs(np.log(middle[certain])), kind="stable")][:2]
    order: npt.NDArray[np.intp] = np.concatenate(
        [nearest, np.argsort(most, kind="stable")[: None if every else CANDIDATES]]
    )
    beside = ((low[k], float(_rational(middle[k])), high[k]) for k in order[:CANDIDATES])
    for t in [*map(float, middle[order]), *(t for least, t, greatest in beside if least <= t <= greatest)]:
        curvature = second_derivative(tree, t)
        if curvature is not None and curvature < 0:
            return t, curvature
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
