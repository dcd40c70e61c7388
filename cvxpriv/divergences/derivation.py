"""Derivation of a convex atom that equals p f(q/p) from the tree of f, by rules of composition alone.

Each rule is an identity between functions, applied where cvxpy's own rules (convex, concave, monotone) then show the
curvature. Logarithms with linear factors are collected first (`cvxpriv.divergences.entropies`). Where f does not fit as
typed it is expanded, taken apart into partial fractions, or cut at its breakpoints.
"""

from collections.abc import Callable
from fractions import Fraction

import mpmath

from cvxpriv.divergences.atoms import Affine, Atom, Exponential, Gap, Largest, Mean, Norm, P, Pieces, Q, Total
from cvxpriv.divergences.breakpoints import Branches
from cvxpriv.divergences.entropies import Entropies
from cvxpriv.divergences.jets import DIGITS, constant_value
from cvxpriv.divergences.spellings import affine_of, cleared, spellings, split, spread
from cvxpriv.divergences.tree import (
    ONE,
    Call,
    Leaf,
    Node,
    Number,
    Product,
    Sum,
    T,
    add,
    call,
    linear,
    multiply,
    nonnegative,
    power,
    scaled,
)

#: A jump of f' at a breakpoint above minus this does not count as a fall; with more breakpoints than these f is not
#: cut.
FALL, MOST_PIECES = mpmath.mpf(10) ** -30, 12
#: A sum of exponents of at most this size is 0, in `DIGITS` digits.
ROUNDING = mpmath.mpf(10) ** -30


def derived(f: Node, branches: Branches) -> Atom | None:
    """Return a convex atom that equals p f(q/p) for all p, q > 0; None where no rule makes one."""
    with mpmath.workdps(DIGITS):
        found = next((atom for atom in map(_convex, spellings(f)) if atom is not None), None)
        cut = found is None and branches.complete and 0 < len(branches.at) <= MOST_PIECES
        return _cut(branches) if cut else found


def _convex(f: Node) -> Atom | None:
    return atom_of(f, 1)


def _cut(branches: Branches) -> Atom | None:
    """Return f as convex pieces, where its slope falls at no breakpoint."""
    if any(branches.jump(index) < -FALL for index in range(len(branches.at))):
        return None
    pieces = [derived(tree, Branches((), (tree,), True)) for tree in branches.trees]
    kept = tuple(piece for piece in pieces if piece is not None)
    return Pieces(tuple(map(float, branches.at)), kept) if len(kept) == len(pieces) else None


def atom_of(node: Node, sign: int) -> Atom | None:
    """Return an atom that equals p node(q/p): affine, or of the requested curvature (1 convex, -1 concave)."""
    a = b = mpmath.mpf(0)
    parts: list[tuple[float, Atom]] = []
    logs = Entropies(atom_of)
    for term, factor in linear(node).items():
        fixed, rest = split(term)
        c = factor.numerator * fixed / factor.denominator
        if rest in (ONE, T):
            a, b = (a + c, b) if rest == ONE else (a, b + c)
            continue
        if _is_log(rest):
            if not logs.take(c * sign, rest):
                return None
            continue
        atom = _term(rest, sign if c > 0 else -sign)
        if atom is None:
            return None
        if isinstance(atom, Affine):
            a, b = a + c * atom.a, b + c * atom.b
        else:
            parts.append((float(c), atom))
    collected = logs.solved()
    if collected is None:
        return None
    a, b = a + sign * collected.a, b + sign * collected.b
    parts += [(sign * weight, atom) for weight, atom in collected.parts]
    straight = Affine(float(a), float(b))
    if not parts:
        return straight
    if straight != Affine(0.0, 0.0):
        parts.append((1.0, straight))
    return parts[0][1] if len(parts) == 1 and parts[0][0] == 1.0 else Total(tuple(parts))


def _is_log(term: Node) -> bool:
    bases = [base for base, exponent in term.factors if exponent == ONE] if isinstance(term, Product) else [term]
    return any(isinstance(base, Call) and base.name == "log" for base in bases)


def _term(term: Node, sign: int) -> Atom | None:
    """Return the atom of a term without constant factor and logarithm."""
    if isinstance(term, Leaf | Number):
        return Q
    if isinstance(term, Call) and term.name != "exp":
        return _branching(term, sign)
    factors = term.factors if isinstance(term, Product) else ((term, ONE),)
    exponents = [multiply(base.arguments[0], e) for base, e in factors if isinstance(base, Call) and base.name == "exp"]
    others = tuple((base, e) for base, e in factors if not (isinstance(base, Call) and base.name == "exp"))
    if exponents:
        return _exponential(add(*exponents), others) if sign > 0 else None
    found = mean_of(others, sign, atom_of)
    return found if found is not None else mean_of(_shared(others), sign, atom_of)


def _shared(factors: tuple[tuple[Node, Node], ...]) -> tuple[tuple[Node, Node], ...]:
    """Return factors with the power of t that the terms of a sum share as one of its own: sqrt(t + t^2)."""
    parts = [(*cleared(base), exponent) for base, exponent in factors]
    outside = power(T, add(*(scaled(-1, multiply(rise, exponent)) for _, rise, exponent in parts)))
    inside = multiply(outside, *(power(base, exponent) for base, _, exponent in parts))
    return inside.factors if isinstance(inside, Product) else ((inside, ONE),)


def _branching(term: Call, sign: int) -> Atom | None:
    arguments = list(term.arguments)
    if term.name == "abs":
        arguments = [arguments[0], scaled(-1, arguments[0])]
    convex = term.name != "min"
    if sign != (1 if convex else -1):
        return None
    parts = [atom_of(one if convex else scaled(-1, one), 1) for one in arguments]
    kept = tuple(one for one in parts if one is not None)
    if len(kept) < len(parts):
        return None
    return Largest(kept) if convex else Total(((-1.0, Largest(kept)),))


def _exponential(exponent: Node, others: tuple[tuple[Node, Node], ...]) -> Atom | None:
    """exp(exponent) times powers is x exp(y/x), x affine, where y = x (exponent + log of the powers / x) is convex."""
    logs = [multiply(e, call("log", base)) for base, e in others]
    for x in dict.fromkeys([ONE, T, *(base for base, _ in others)]):
        scale = affine_of(x)
        if scale is None or not scale.nonnegative:
            continue
        inner = add(exponent, *logs, scaled(-1, call("log", x)))
        atom = atom_of(spread(x, inner), 1)
        if atom is not None:
            return Exponential(atom, scale)
    return None


AtomOf = Callable[[Node, int], Atom | None]
Part = tuple[Atom, mpmath.mpf]


def mean_of(factors: tuple[tuple[Node, Node], ...], sign: int, atom_of: AtomOf) -> Atom | None:
    """Return the atom of prod base**exponent, of the requested curvature; None where the rules show none."""
    parts: dict[Atom, mpmath.mpf] = {}
    for base, exponent in factors:
        found = _part(base, exponent, sign, atom_of)
        if found is None:
            return None
        atom, size = found
        parts[atom] = parts.get(atom, mpmath.mpf(0)) + size
    parts[P] = parts.get(P, mpmath.mpf(0)) + 1 - sum(parts.values())
    kept = [(atom, size) for atom, size in parts.items() if abs(size) > ROUNDING]
    if len(kept) == 1:
        atom = kept[0][0]
        return atom if atom.curvature in (0, sign) else None
    above = [atom for atom, size in kept if size > 0]
    rising = 1 if len(above) == 1 else -1
    fits = all(atom.curvature in (0, rising if size > 0 else -1) for atom, size in kept)
    if rising != sign or not fits or (rising < 0 and len(above) < len(kept)):
        return None
    return Mean(tuple((atom, float(size)) for atom, size in kept))


def _part(base: Node, exponent: Node, sign: int, atom_of: AtomOf) -> Part | None:
    """Return one factor as a power of an atom that is >= 0; the rest of its homogeneity is a power of p."""
    size = constant_value(exponent)
    if base == T:
        return Q, size
    even = isinstance(exponent, Number) and exponent.value.denominator == 1 and exponent.value % 2 == 0
    modulus = isinstance(base, Call) and base.name == "abs"
    straight = affine_of(base)
    if straight is not None and straight.nonnegative:
        return straight, size
    if modulus or (even and not nonnegative(base)):
        inner = base.arguments[0] if isinstance(base, Call) and modulus else base
        return _modulus(inner, size)
    norm = _norm(base, atom_of) if straight is None and isinstance(base, Sum) else None
    if norm is not None and norm[0].curvature == (sign if size > 0 else -1):
        return norm[0], norm[1] * size
    if straight is not None or not nonnegative(base):
        return None
    atom = atom_of(base, sign if size > 0 else -1)
    return None if atom is None else (atom, size)


def _modulus(inner: Node, size: mpmath.mpf) -> Part | None:
    """Return the atom of |a + b t|, or of |c t^a - d|."""
    straight = affine_of(inner)
    if straight is not None:
        return Largest((straight, Affine(-straight.a, -straight.b))), size
    terms = [(factor, *split(term)) for term, factor in linear(inner).items()]
    if len(terms) != 2 or {rest for *_, rest in terms if rest == ONE} != {ONE}:
        return None
    (low, one, _), (high, other, rest) = sorted(terms, key=lambda term: term[2] != ONE)
    base, exponent = rest.factors[0] if isinstance(rest, Product) and len(rest.factors) == 1 else (rest, ONE)
    a, y = constant_value(exponent), affine_of(base)
    x = low.numerator * one / low.denominator, high.numerator * other / high.denominator
    if y is None or not y.nonnegative or not 0 < a < 1 or x[0] * x[1] >= 0:
        return None
    scale, steep = abs(x[0]) ** (1 / a), abs(x[1]) ** (1 / a)
    return Gap(Affine(float(scale), 0.0), Affine(float(steep * y.a), float(steep * y.b)), float(a)), a * size


def _norm(base: Sum, atom_of: AtomOf) -> Part | None:
    """Return a sum of powers of one exponent a, as the a-th power of a norm."""
    square = _square_completed(base)
    if square is not None:
        return square, mpmath.mpf(2)
    terms = [(factor, *split(term)) for term, factor in base.terms]
    exponents = {_single(rest)[1] for *_, rest in terms if rest != ONE}
    if len(exponents) != 1:
        return None
    exponent = exponents.pop()
    a = constant_value(exponent)
    if a in (0, 1):
        return None
    parts = []
    for factor, fixed, rest in terms:
        weight = factor.numerator * fixed / factor.denominator
        x = P if rest == ONE else _signless(_single(rest)[0], exponent, 1 if a > 1 else -1, atom_of)
        if weight <= 0 or x is None:
            return None
        parts.append((float(weight), x))
    return Norm(tuple(parts), float(a)), a


def _single(rest: Node) -> tuple[Node, Node]:
    if isinstance(rest, Product):
        return rest.factors[0] if len(rest.factors) == 1 else (rest, ONE)
    return rest, ONE


def _signless(base: Node, exponent: Node, sign: int, atom_of: AtomOf) -> Atom | None:
    """Return a base of a norm: >= 0, or affine with an even exponent."""
    straight = affine_of(base)
    if straight is not None and not straight.nonnegative:
        even = isinstance(exponent, Number) and exponent.value.denominator == 1 and exponent.value % 2 == 0
        opposite = Affine(-straight.a, -straight.b)
        return (straight if exponent == Number(Fraction(2)) else Largest((straight, opposite))) if even else None
    atom = straight if straight is not None else atom_of(base, sign)
    return atom if atom is not None and (atom.nonnegative or nonnegative(base)) else None


def _square_completed(base: Sum) -> Norm | None:
    """Return a t^2 + b t + c as a (t + b/2a)^2 + (c - b^2/4a), both parts >= 0."""
    square = power(T, Number(Fraction(2)))
    terms = linear(base)
    if not set(terms) <= {square, T, ONE} or T not in terms or terms.get(square, 0) <= 0:
        return None
    a, b, c = terms[square], terms[T], terms.get(ONE, Fraction(0))
    rest = c - b * b / (4 * a)
    if rest < 0:
        return None
    shifted = Affine(float(b / (2 * a)), 1.0)
    return Norm(((float(a), shifted), *([(float(rest), P)] if rest else [])), 2.0)
