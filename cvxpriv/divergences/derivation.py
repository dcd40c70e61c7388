"""Derivation of a convex atom that equals p f(q/p) from the tree of f, by rules of composition alone.

Each rule is an identity between functions, applied where cvxpy's own rules (convex, concave, monotone) then show the
curvature. Logarithms with linear factors are collected first (`cvxpriv.divergences.entropies`). Where f does not fit as
typed it is expanded, taken apart into partial fractions, or cut at its breakpoints.
"""

from __future__ import annotations

import mpmath

from cvxpriv.divergences.atoms import Affine, Atom, Exponential, Largest, Pieces, Q, Total
from cvxpriv.divergences.breakpoints import Branches
from cvxpriv.divergences.entropies import Entropies
from cvxpriv.divergences.jets import DIGITS
from cvxpriv.divergences.linear_parts import affine_of, split, spread
from cvxpriv.divergences.means import mean_of
from cvxpriv.divergences.spellings import spellings
from cvxpriv.divergences.tree import ONE, Call, Leaf, Node, Number, Product, T, add, call, linear, multiply, scaled

__all__ = ["derived"]

#: A jump of f' at a breakpoint above minus this does not count as a fall; with more breakpoints than these f is not
#: cut.
FALL, MOST_PIECES = mpmath.mpf(10) ** -30, 12


def derived(f: Node, branches: Branches) -> Atom | None:
    """Return a convex atom that equals p f(q/p) for all p, q > 0; None where no rule makes one.

    Parameters
    ----------
    f : Node
    branches : Branches
        The branches of f.
    """
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
    return mean_of(others, sign, atom_of)


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
