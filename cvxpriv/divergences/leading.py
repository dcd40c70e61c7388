"""The sign of f'' near 0 where f is a sum of c t^a (log t)^k: the leading term decides, on an interval found here.

Intervals alone do not show it: near 0 such terms are unbounded, and a difference of unbounded intervals decides
nothing.
"""

from __future__ import annotations

import mpmath

from cvxpriv.divergences.jets import DIGITS, constant_value
from cvxpriv.divergences.linear_parts import split
from cvxpriv.divergences.tree import ONE, Call, Node, Number, Product, T, linear

__all__ = ["settled_near_zero"]

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
