"""Breakpoints of abs, max and min, and f on each interval between them.

The roots of the arguments of abs, and of differences of the arguments of max and min, are isolated by interval
arithmetic: a list marked as complete has missed none.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import mpmath
import numpy as np

from cvxpriv.divergences.intervals import INTERVALS, Interval
from cvxpriv.divergences.jets import DIGITS, MANY_DIGITS, jet, value_at
from cvxpriv.divergences.spellings import cleared
from cvxpriv.divergences.tree import ONE, Call, Node, T, add, linear, scaled, walk, with_nodes

#: Ends of the intervals in which roots are searched; one more interval lies beyond on each side.
ENDS = np.concatenate([[0.0], np.geomspace(1e-300, 1e300, 1201), [np.inf]])
#: Number of times an interval is halved, and the relative width below which it is one point.
ROUNDS, NARROW = 60, 1e-12
MOST_CELLS = 4096


@dataclass(frozen=True)
class Roots:
    """The places where a tree changes its sign on (0, inf).

    `at`: The places in ascending order, in many digits.
    `complete`: Whether it is proved that there are no others.
    `touching`: Places where it may be 0 without a change of sign.
    """

    at: tuple[Any, ...]
    complete: bool
    touching: tuple[float, ...] = ()


@dataclass(frozen=True)
class Branches:
    """f as one tree without abs, max and min on each interval between breakpoints.

    `at`: The breakpoints in ascending order.
    `trees`: One tree more than breakpoints.
    `complete`: Whether it is proved that no other breakpoint exists.
    """

    at: tuple[Any, ...]
    trees: tuple[Node, ...]
    complete: bool

    def jump(self, index: int) -> Any:
        """Return the rise of f' at a breakpoint."""
        with mpmath.workdps(DIGITS):
            t = self.at[index]
            left, right = (jet(tree, t, MANY_DIGITS)[1] for tree in self.trees[index : index + 2])
            return right - left


def branches_of(f: Node) -> Branches:
    """Return the breakpoints of a tree and its pieces."""
    found: list[Any] = []
    complete = True
    for switch in dict.fromkeys(_switches(f)):
        roots = _roots_of_pieces(switch)
        complete = complete and roots.complete
        found += [one for one in roots.at if all(abs(one - other) > 1e-25 * one for other in found)]
    at = tuple(sorted(found))
    with mpmath.workdps(DIGITS):
        ends = [at[0] / 2, *(mpmath.sqrt(a * b) for a, b in pairwise(at)), at[-1] * 2] if at else [mpmath.mpf(1)]
        trees = tuple(with_nodes(f, lambda node, t=t: _active(node, t)) for t in ends)  # type: ignore[misc]
    return Branches(at, trees, complete)


def _roots_of_pieces(switch: Node) -> Roots:
    """Return the places where a tree changes its sign; one that holds abs, max or min may be 0 on an interval."""
    roots = roots_of(switch)
    if roots.complete or not _switches(switch):
        return roots
    inner = branches_of(switch)
    pieces = [roots_of(tree) for tree in inner.trees]
    ends = [mpmath.mpf(0), *inner.at, mpmath.inf]
    within = [t for (low, high), one in zip(pairwise(ends), pieces, strict=True) for t in one.at if low < t < high]
    return Roots((*inner.at, *within), inner.complete and all(one.complete for one in pieces))


def roots_of(node: Node) -> Roots:
    """Return the places where a tree changes its sign on (0, inf)."""
    node, _ = cleared(node)
    terms = linear(node)
    if set(terms) <= {ONE, T}:
        slope, value = terms.get(T, Fraction(0)), terms.get(ONE, Fraction(0))
        root = -value / slope if slope else Fraction(0)
        with mpmath.workdps(DIGITS):
            return Roots((mpmath.mpf(root.numerator) / root.denominator,) if root > 0 else (), True)
    low, high = ENDS[:-1], ENDS[1:]
    roots: list[Any] = []
    touching: list[float] = []
    complete = True
    for _ in range(ROUNDS):
        with np.errstate(all="ignore"):
            value, slope, _ = jet(node, Interval(low, high), INTERVALS)
        if not isinstance(value, Interval):
            break
        open_ = np.broadcast_to(value.holds_zero, low.shape)
        rising = isinstance(slope, Interval) and ~np.broadcast_to(slope.holds_zero, low.shape)
        settled = open_ & rising & (low > 0.0) & np.isfinite(high)
        end = open_ & ((low == 0.0) | np.isinf(high))
        narrow = open_ & ~settled & ~end & (high <= (1.0 + NARROW) * low)
        roots += [_bisected(node, low[index], high[index]) for index in np.flatnonzero(settled | narrow)]
        touching += low[narrow].tolist()
        complete = complete and not (narrow | end).any()
        left = open_ & ~settled & ~narrow & ~end
        low, high = low[left], high[left]
        if not low.size or low.size > MOST_CELLS:
            break
        middle = np.where(high < 1.01 * low, low + (high - low) / 2.0, np.sqrt(low) * np.sqrt(high))
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    distinct: list[Any] = []
    for root in sorted(one for one in roots if one is not None):
        if not distinct or root - distinct[-1] > 1e-11 * root:
            distinct.append(root)
    return Roots(tuple(distinct), complete and not low.size, tuple(touching))


def _bisected(node: Node, low: float, high: float) -> Any:
    """Return the sign change of a tree in an interval, to many digits; None where there is none."""
    digits = int(DIGITS + 4 * abs(np.log10(low)))
    with mpmath.workdps(digits):
        a, b = mpmath.mpf(low) * (1 - mpmath.mpf(10) ** -14), mpmath.mpf(high) * (1 + mpmath.mpf(10) ** -14)
        sign, other = (mpmath.sign(value_at(node, one, digits)) for one in (a, b))
        if sign * other > 0:
            return None
        if sign == 0 or other == 0:
            return a if sign == 0 else b
        while b - a > b * mpmath.mpf(10) ** (3 - DIGITS):
            middle = (a + b) / 2
            found = mpmath.sign(value_at(node, middle, digits))
            if found == 0:
                return middle
            a, b = (middle, b) if found == sign else (a, middle)
        return (a + b) / 2


def _switches(f: Node) -> list[Node]:
    found: list[Node] = []
    for one in walk(f):
        if isinstance(one, Call) and one.name == "abs":
            found.append(one.arguments[0])
        elif isinstance(one, Call) and one.name in ("max", "min"):
            found += [add(a, scaled(-1, b)) for a, b in combinations(one.arguments, 2)]
    return found


def _active(node: Node, t: Any) -> Node | None:
    """Return the branch of abs, max or min that is active at t."""
    if not isinstance(node, Call) or node.name not in ("abs", "max", "min"):
        return None
    if node.name == "abs":
        inner = with_nodes(node.arguments[0], lambda one: _active(one, t))
        return scaled(-1 if value_at(inner, t) < 0 else 1, inner)
    choose = max if node.name == "max" else min
    best = choose(node.arguments, key=lambda one: value_at(one, t))
    return with_nodes(best, lambda one: _active(one, t))
