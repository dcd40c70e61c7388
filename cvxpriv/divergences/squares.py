"""f'' without the squares in it: what is left has its sign, and no double roots.

f'' is written as a polynomial in t and in what else it holds: exponentials, logarithms, powers, constants. Each is a
variable of its own, so that an identity between polynomials is one between functions. All numbers are exact.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import lcm

from cvxpriv.divergences.tree import (
    Call,
    Leaf,
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
)

#: Coefficients by the powers of parts of a tree; and by whole exponents, of the same variables in a fixed order.
Powers = frozenset[tuple[Node, Fraction]]
Mixed = dict[Powers, Fraction]
Polynomial = dict[tuple[int, ...], Fraction]
#: Largest number of terms, of variables, and sum of exponents: a second of work.
MOST_TERMS, MOST_VARIABLES, MOST_DEGREE = 120, 3, 40


class _Beyond(Exception):
    """f'' is no polynomial of this size, or a denominator may be 0."""


def without_squares(f: Node) -> tuple[Node, bool] | None:
    """Return what has the sign of f'' but at isolated roots, and whether it is > 0 throughout; None where not known.

    `f`: Without abs, max and min.

    >>> from cvxpriv.divergences.parsing import line_of
    >>> without_squares(line_of("t**6/30 - t**4/3 + 2*t**2 - 17/10").f)
    (Number(value=Fraction(1, 1)), True)
    """
    try:
        whole, variables = _ordered(_mixed(derivative(derivative(f))))
        odd = _odd_part(whole)
    except _Beyond:
        return None
    terms = (
        multiply(Number(c), *(power(one, number(n)) for one, n in zip(variables, e, strict=True)))
        for e, c in odd.items()
    )
    return add(*terms), _positive(odd, variables)


def derivative(node: Node) -> Node:
    """Return the derivative in t of a tree without abs, max and min."""
    if constant(node) or isinstance(node, Leaf):
        return number(int(node == T))
    if isinstance(node, Sum):
        return add(*(scaled(c, derivative(term)) for term, c in node.terms))
    if isinstance(node, Product):
        moving = ((base, e, derivative(base)) for base, e in node.factors if not constant(base))
        return add(*(multiply(node, e, power(base, number(-1)), slope) for base, e, slope in moving))
    assert isinstance(node, Call)
    inner = node.arguments[0]
    return multiply(node if node.name == "exp" else power(inner, number(-1)), derivative(inner))


def _mixed(node: Node) -> Mixed:
    """Return a tree multiplied out, sums to negative powers as they are."""
    if isinstance(node, Number):
        return {frozenset(): node.value} if node.value else {}
    if isinstance(node, Sum):
        return _summed((e, c * d) for term, c in node.terms for e, d in _mixed(term).items())
    if isinstance(node, Call) and node.name == "exp":
        return {frozenset((call("exp", term), c) for term, c in linear(node.arguments[0]).items()): Fraction(1)}
    if not isinstance(node, Product):
        return {frozenset({(node, Fraction(1))}): Fraction(1)}
    found: Mixed = {frozenset(): Fraction(1)}
    for base, exponent in node.factors:
        e = exponent.value if isinstance(exponent, Number) else None
        whole = e is not None and e.denominator == 1
        if e is not None and whole and 0 < e <= MOST_DEGREE:
            found = reduce(_multiplied, [_mixed(base)] * int(e), found)
        elif positive(base) or (whole and isinstance(base, Sum)):
            one = (base, e) if e is not None else (Product(((base, exponent),)), Fraction(1))
            found = _multiplied(found, {frozenset({one}): Fraction(1)})
        else:
            raise _Beyond
    return found


def _summed(terms: Iterable[tuple[Powers, Fraction]]) -> Mixed:
    found: Mixed = {}
    for e, c in terms:
        found[e] = found.get(e, Fraction(0)) + c
    if len(found) > MOST_TERMS:
        raise _Beyond
    return {e: c for e, c in found.items() if c}


def _multiplied(p: Mixed, q: Mixed) -> Mixed:
    def both(one: Powers, other: Powers) -> Powers:
        total = dict(one)
        for node, e in other:
            total[node] = total.get(node, Fraction(0)) + e
        return frozenset((node, e) for node, e in total.items() if e)

    return _summed((both(one, other), c * d) for one, c in p.items() for other, d in q.items())


def _ordered(p: Mixed) -> tuple[Polynomial, list[Node]]:
    """Return a polynomial of the same sign, and its variables: times denominators and powers of what is positive."""
    while True:
        nodes = dict.fromkeys(node for e in p for node, _ in sorted(e, key=repr))
        powers = {node: [dict(e).get(node, Fraction(0)) for e in p] for node in nodes}
        cleared = (one for one, es in powers.items() if isinstance(one, Sum) and all(e.denominator == 1 for e in es))
        base = next(cleared, None)
        if base is None:
            break
        part, most = _mixed(base), -min(powers[base])
        if not positive(base) and not _positive(*_ordered(part)):
            raise _Beyond
        rests = [{frozenset(pair for pair in e if pair[0] != base): c} for e, c in p.items()]
        made = (reduce(_multiplied, [part] * int(most + e), rest) for rest, e in zip(rests, powers[base], strict=True))
        p = _summed(pair for one in made for pair in one.items())
    variables, columns = [], []
    for node, es in powers.items():
        least = min(es) if positive(node) else Fraction(0)
        parts = lcm(*(e.denominator for e in es))
        variables.append(power(node, Number(Fraction(1, parts))))
        columns.append([int((e - least) * parts) for e in es])
        if min(columns[-1]) < 0:
            raise _Beyond
    exponents = list(zip(*columns, strict=True)) or [()] * len(p)
    if len(variables) > MOST_VARIABLES or max(map(sum, exponents), default=0) > MOST_DEGREE:
        raise _Beyond
    return dict(zip(exponents, p.values(), strict=True)), variables


def _odd_part(p: Polynomial) -> Polynomial:
    """Return a polynomial divided by the largest square in it.

    With p = prod p_i^i, p_i without squares and coprime, the greatest common divisor of p and its partial derivatives
    is prod p_i^(i-1).
    """
    slopes = (
        {(*e[:k], e[k] - 1, *e[k + 1 :]): c * e[k] for e, c in p.items() if e[k]} for k in range(len(next(iter(p), ())))
    )
    often = reduce(_divisor, slopes, p)
    left, times = _monic(_quotient(p, often)), 1
    while any(map(any, left)):
        more = _divisor(left, often)
        for _ in range(times // 2 * 2):
            p = _quotient(p, _quotient(left, more))
        left, often, times = more, _quotient(often, more), times + 1
    return p


def _monic(p: Polynomial) -> Polynomial:
    return {e: c / p[max(p)] for e, c in p.items()}


def _minus(p: Polynomial, q: Polynomial, c: Polynomial) -> Polynomial:
    """Return p - c q."""
    found = dict(p)
    for one, x in c.items():
        for other, y in q.items():
            e = tuple(map(sum, zip(one, other, strict=True)))
            found[e] = found.get(e, Fraction(0)) - x * y
    if len(found) > MOST_TERMS:
        raise _Beyond
    return {e: x for e, x in found.items() if x}


def _quotient(p: Polynomial, q: Polynomial) -> Polynomial:
    """Return p / q, where q divides p."""
    found: Polynomial = {}
    last = max(q)
    while p:
        first = max(p)
        e = tuple(a - b for a, b in zip(first, last, strict=True))
        found[e] = p[first] / q[last]
        p = _minus(p, q, {e: found[e]})
    return found


def _divisor(p: Polynomial, q: Polynomial) -> Polynomial:
    """Return the greatest common divisor, with the leading coefficient 1: pseudo-remainders in the last variable."""
    if not p or not q:
        return _monic(p or q)
    used = [k for e in (*p, *q) for k, n in enumerate(e) if n]
    if not used:
        return dict.fromkeys(p, Fraction(1))
    k = max(used)

    def split(one: Polynomial) -> dict[int, Polynomial]:
        found: dict[int, Polynomial] = {}
        for e, c in one.items():
            found.setdefault(e[k], {})[*e[:k], 0, *e[k + 1 :]] = c
        return found

    def content(one: Polynomial) -> Polynomial:
        return reduce(_divisor, split(one).values(), {})

    shared = _divisor(content(p), content(q))
    p, q = _quotient(p, content(p)), _quotient(q, content(q))
    while any(e[k] for e in q):
        while p and max(split(p)) >= max(split(q)):
            (m, top), (n, lead) = (max(split(one).items(), key=lambda item: item[0]) for one in (p, q))
            raised = {(*e[:k], m - n, *e[k + 1 :]): -c for e, c in top.items()}
            p = _minus(_minus({}, q, raised), p, lead)
        if not p:
            return _monic(_minus({}, q, shared))
        p, q = q, _monic(_quotient(p, content(p)))
    return shared


def _positive(p: Polynomial, variables: list[Node]) -> bool:
    """Return whether a polynomial in one variable is > 0 for all values of it, by Sturm's theorem."""
    used = {k for e in p for k, n in enumerate(e) if n}
    if len(used) != 1:
        return not used and any(c > 0 for c in p.values())
    (k,) = used
    powers = {e[k]: c for e, c in p.items()}
    chain = [[powers.get(n, Fraction(0)) for n in range(max(powers) + 1)]]
    chain.append([n * c for n, c in enumerate(chain[0])][1:])
    while len(chain[-1]) > 1:
        rest, by = chain[-2], chain[-1]
        while len(rest) >= len(by):
            share, at = rest[-1] / by[-1], len(rest) - len(by)
            rest = [c - share * (by[n - at] if n >= at else 0) for n, c in enumerate(rest)][:-1]
        while rest and not rest[-1]:
            rest = rest[:-1]
        if not rest:
            break
        chain.append([-c for c in rest])
    low = [one[0] if positive(variables[k]) else one[-1] * (-1) ** (len(one) - 1) for one in chain]
    ends = [[sign for sign in side if sign] for side in (low, [one[-1] for one in chain])]
    changes = [sum(a * b < 0 for a, b in pairwise(side)) for side in ends]
    return chain[0][-1] > 0 and bool(chain[0][0]) and changes[0] == changes[1]
