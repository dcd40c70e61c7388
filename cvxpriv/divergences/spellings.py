"""Other spellings of a tree: expanded, in partial fractions, in powers of t - 1, soft maxima from the largest on.

Each is the same function. A sum may be convex term by term in one spelling and not in another: (1 - sqrt t)^2 (1 + t)/t
expanded, p q/(p + q) as p - p^2/(p + q).
"""

from collections.abc import Iterator
from fractions import Fraction
from math import comb

import mpmath

from cvxpriv.divergences.atoms import Affine
from cvxpriv.divergences.jets import constant_value, value_at
from cvxpriv.divergences.tree import (
    ONE,
    ZERO,
    Call,
    Node,
    Number,
    Product,
    Sum,
    T,
    add,
    call,
    constant,
    linear,
    multiply,
    number,
    positive,
    power,
    scaled,
    with_nodes,
)

#: Largest power to which sums are multiplied out, and largest number of terms.
MOST_POWER, MOST_TERMS = 12, 80
#: The t at which the largest of several exponentials is asked for.
FAR = 1e3
#: A rational term, as exponents of t + root by root.
Rational = tuple[tuple[Fraction, int], ...]


def spellings(f: Node) -> Iterator[Node]:
    """Return the tree as it is, then its other spellings, each only once."""
    seen: list[Node] = []
    for make in (lambda one: one, expanded, _apart, _around_one, _turned_round):
        one = make(f)
        if one is not None and one not in seen:
            seen.append(one)
            yield one


def expanded(node: Node) -> Node:
    """Return a tree with products of sums multiplied out, and logarithms of products taken apart."""
    if isinstance(node, Sum):
        return add(*(scaled(factor, expanded(term)) for term, factor in node.terms))
    if isinstance(node, Call):
        inner = node.arguments[0]
        if node.name == "log" and positive(inner) and isinstance(inner, Product):
            return add(*(multiply(exponent, expanded(call("log", base))) for base, exponent in inner.factors))
        return call(node.name, *map(expanded, node.arguments))
    if not isinstance(node, Product):
        return node
    result: Node = ONE
    for base, exponent in node.factors:
        inner = expanded(base)
        times = exponent.value.numerator if isinstance(exponent, Number) and exponent.value.denominator == 1 else 0
        if isinstance(inner, Sum) and 1 <= times <= MOST_POWER:
            for _ in range(times):
                result = _times(result, inner)
        else:
            result = _times(result, power(inner, exponent))
    return result


def _times(one: Node, other: Node) -> Node:
    left, right = linear(one), linear(other)
    if len(left) * len(right) > MOST_TERMS:
        return multiply(one, other)
    return add(*(scaled(a * b, multiply(x, y)) for x, a in left.items() for y, b in right.items()))


def _apart(f: Node) -> Node | None:
    """Return the rational terms in partial fractions."""
    total: dict[Rational, Fraction] = {}
    others = []
    for term, factor in linear(expanded(f)).items():
        content, rational = _rational(term)
        if rational is None:
            others.append(scaled(factor, term))
        else:
            _take_apart(factor * content, rational, total)
    terms = [
        scaled(factor, multiply(*(power(_linear(root), number(n)) for root, n in one))) for one, factor in total.items()
    ]
    return add(*others, *terms)


def _rational(term: Node) -> tuple[Fraction, Rational | None]:
    """Return a product of powers of linear factors, and its rational coefficient; None for any other term."""
    factors = term.factors if isinstance(term, Product) else () if term == ONE else ((term, ONE),)
    content, found = Fraction(1), dict[Fraction, int]()
    for base, exponent in factors:
        terms = linear(base)
        whole = isinstance(exponent, Number) and exponent.value.denominator == 1
        if not whole or not set(terms) <= {ONE, T} or T not in terms:
            return content, None
        assert isinstance(exponent, Number)
        root, times = terms.get(ONE, Fraction(0)) / terms[T], exponent.value.numerator
        content *= terms[T] ** times
        found[root] = found.get(root, 0) + times
    return content, tuple(sorted((root, n) for root, n in found.items() if n))


def _take_apart(factor: Fraction, one: Rational, total: dict[Rational, Fraction]) -> None:
    """Add a rational term in partial fractions: each part has one linear factor."""
    work = {one: factor}
    while work:
        term, size = work.popitem()
        if len(term) < 2:
            powers = dict(term)
            ((root, n),) = powers.items() if powers else ((Fraction(0), 0),)
            if n > 1 and root:  # a polynomial in t + root, as one in t
                for k in range(n + 1):
                    _put(total, ((Fraction(0), k),) if k else (), size * comb(n, k) * root ** (n - k))
            else:
                _put(total, term, size)
            continue
        below = [pair for pair in term if pair[1] < 0]
        (a, m), *_ = below or term
        (b, n) = next(pair for pair in term if pair[0] != a and (pair[1] < 0 or len(below) < 2))
        rest = {root: k for root, k in term if root not in (a, b)}
        if n > 0:  # t + b = (t + a) + (b - a)
            parts = [(Fraction(1), (m + 1, n - 1)), (b - a, (m, n - 1))]
        else:  # 1 = ((t + b) - (t + a)) / (b - a)
            parts = [(1 / (b - a), (m, n + 1)), (-1 / (b - a), (m + 1, n))]
        for share, (i, j) in parts:
            _put(work, tuple(sorted((root, k) for root, k in {**rest, a: i, b: j}.items() if k)), size * share)


def _put(total: dict[Rational, Fraction], term: Rational, size: Fraction) -> None:
    total[term] = total.get(term, Fraction(0)) + size
    if not total[term]:
        del total[term]


def _linear(root: Fraction) -> Node:
    return add(T, Number(root))


def _around_one(f: Node) -> Node | None:
    """Return the whole positive powers of t as powers of t - 1."""
    others, total = [], dict[int, Fraction]()
    for term, factor in linear(expanded(f)).items():
        content, rational = _rational(term)
        if rational is None or len(rational) > 1 or any(root or n < 0 for root, n in rational):
            others.append(scaled(factor, term))
            continue
        n = rational[0][1] if rational else 0
        for k in range(n + 1):
            total[k] = total.get(k, Fraction(0)) + factor * content * comb(n, k)
    away = add(T, number(-1))
    return add(
        *others, *(scaled(factor, power(away, number(k))) if k else Number(factor) for k, factor in total.items())
    )


def _turned_round(f: Node) -> Node:
    """Return each log(sum c exp(g)) as the g that is largest far out, and the rest, whose bend goes to 0 there."""

    def other(node: Node) -> Node | None:
        inner = linear(node.arguments[0]) if isinstance(node, Call) and node.name == "log" else {}
        powers: dict[Node, Node] = {
            one: one.arguments[0] for one in inner if isinstance(one, Call) and one.name == "exp"
        }
        if not powers or len(inner) < 2 or not set(inner) <= {ONE, *powers}:
            return None
        g = max(powers.values(), key=lambda one: value_at(one, FAR))
        rest = (scaled(c, call("exp", add(powers.get(one, ZERO), scaled(-1, g)))) for one, c in inner.items())
        return add(g, call("log", add(*rest)))

    return with_nodes(f, other)


def affine_of(node: Node) -> Affine | None:
    """Return a p + b q for a node a + b t; None for any other."""
    a = b = mpmath.mpf(0)
    for term, factor in linear(node).items():
        fixed, rest = split(term)
        if rest not in (ONE, T):
            return None
        c = factor.numerator * fixed / factor.denominator
        a, b = (a + c, b) if rest == ONE else (a, b + c)
    return Affine(float(a), float(b))


def split(term: Node) -> tuple[mpmath.mpf, Node]:
    """Return a term as its factor without t, and the rest."""
    if constant(term):
        return constant_value(term), ONE
    if not isinstance(term, Product):
        return mpmath.mpf(1), term
    fixed = [power(base, exponent) for base, exponent in term.factors if constant(base)]
    moving = [power(base, exponent) for base, exponent in term.factors if not constant(base)]
    return constant_value(multiply(*fixed)), multiply(*moving)


def spread(x: Node, several: Node) -> Node:
    """Return x times a sum, term by term."""
    return add(*(scaled(factor, multiply(x, term)) for term, factor in linear(several).items()))


def cleared(base: Node) -> tuple[Node, Node]:
    """Return a sum whose terms share t, or have it in denominators, as (t**n times it, n)."""
    rise = scaled(-1, min(map(_degree, linear(base)), key=constant_value, default=ZERO))
    return (spread(power(T, rise), base), rise) if rise != ZERO else (base, rise)


def _degree(term: Node) -> Node:
    """Return the power of t that is a factor of a term."""
    factors = term.factors if isinstance(term, Product) else ((term, ONE),)
    return add(*(e for one, e in factors if one == T))
