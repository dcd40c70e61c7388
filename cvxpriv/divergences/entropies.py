"""Logarithms with linear factors as relative entropies: sum x log y = sum weight * x log(x/y) + a p + b q.

With the functions log y of different y independent of each other, the weights solve a linear system: the factors of p
log y and of q log y must be the same on both sides. A solution without negative weights shows convexity.
"""

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
from scipy.optimize import linprog

from cvxpriv.divergences.atoms import Affine, Atom, Entropy, LogSumExp, P, Q
from cvxpriv.divergences.spellings import affine_of, cleared, split, spread
from cvxpriv.divergences.tree import ONE, ZERO, Call, Node, Product, Sum, call, linear, multiply, positive, power, walk
from cvxpriv.numerics.arrays import Array

#: Size that counts as zero relative to what was added, in 60 digits; relative weights of a linear program below the
#: second number are dropped; the third is the rounding of mixtures, whose places are doubles.
NOTHING, WEIGHT, ROUNDING = mpmath.mpf(10) ** -30, 1e-9, 1e-14
#: Number of linear programs, each on the scale of what the last one left: parts may differ by 1e20.
SCALES = 4
Pair = tuple[mpmath.mpf, mpmath.mpf]


@dataclass(frozen=True)
class Collected:
    """Convex atoms with weights > 0, and a p + b q."""

    parts: tuple[tuple[float, Atom], ...]
    a: mpmath.mpf
    b: mpmath.mpf


class Entropies:
    """Terms x log y, collected one after the other."""

    def __init__(self, atom_of: Callable[[Node, int], Atom | None]) -> None:
        self.atom_of = atom_of
        self.factors: dict[Atom, Pair] = {}
        self.sizes: dict[Atom, mpmath.mpf] = {}
        self.parts: list[tuple[float, Atom]] = []
        self.a = self.b = mpmath.mpf(0)

    def take(self, weight: mpmath.mpf, term: Node) -> bool:
        """Add weight * term, for a term that is a product with one logarithm; return False for any other."""
        factors = term.factors if isinstance(term, Product) else ((term, ONE),)
        logs = [base for base, e in factors if e == ONE and isinstance(base, Call) and base.name == "log"]
        others = multiply(*(power(base, e) for base, e in factors if base != logs[0]))
        x = affine_of(others)
        return len(logs) == 1 and x is not None and self._log(weight, x, others, logs[0].arguments[0])

    def _log(self, weight: mpmath.mpf, x: Affine, typed: Node, argument: Node) -> bool:
        fixed, rest, content, terms = mpmath.mpf(1), argument, mpmath.mpf(1), linear(argument)
        if len(terms) == 1:
            ((term, factor),) = terms.items()
            fixed, rest = split(term)
            content = mpmath.mpf(factor.numerator) / factor.denominator
        if fixed * content <= 0:
            return False
        self._straight(weight * mpmath.log(fixed * content), x)
        bases = rest.factors if isinstance(rest, Product) else ((rest, ONE),)
        return all(self._base(weight * split(e)[0], x, typed, base) for base, e in bases if base != ONE)

    def _base(self, weight: mpmath.mpf, x: Affine, typed: Node, base: Node) -> bool:
        base, rise = cleared(base)
        if rise != ZERO:
            self._count(-weight * split(rise)[0], x, Q)
            self._count(weight * split(rise)[0], x, P)
        y = affine_of(base)
        if y is not None:
            size = y.a + y.b
            if not y.nonnegative or size <= 0.0:
                return False
            self._straight(weight * mpmath.log(size), x)
            self._count(weight, x, Affine(y.a / size, y.b / size))
            self._count(-weight, x, P)
            return True
        if isinstance(base, Call) and base.name == "exp":
            return False
        if weight > 0 and x.nonnegative and isinstance(base, Sum) and positive(base):
            parts = [(factor, split(term)) for term, factor in base.terms]
            inner = [spread(typed, call("log", rest)) if rest != ONE else ZERO for _, (_, rest) in parts]
            atoms = [self.atom_of(one, 1) for one in inner]
            if all(one is not None for one in atoms) and any(
                c.name == "exp" for c in walk(base) if isinstance(c, Call)
            ):
                masses = [float(factor * 1.0) * float(fixed) for factor, (fixed, _) in parts]
                several = tuple((m, one) for m, one in zip(masses, atoms, strict=True) if one is not None)
                self.parts.append((float(weight), LogSumExp(several, x)))
                return True
        concave = self.atom_of(base, -1) if positive(base) else None
        if concave is None:
            return False
        self._count(weight, x, concave)
        self._count(-weight, x, P)
        return True

    def _straight(self, weight: mpmath.mpf, x: Affine) -> None:
        self.a, self.b = self.a + weight * x.a, self.b + weight * x.b

    def _count(self, weight: mpmath.mpf, x: Affine, y: Atom) -> None:
        a, b = self.factors.get(y, (mpmath.mpf(0), mpmath.mpf(0)))
        self.factors[y] = a + weight * x.a, b + weight * x.b
        self.sizes[y] = self.sizes.get(y, mpmath.mpf(0)) + abs(weight) * max(abs(x.a), abs(x.b))

    def solved(self) -> Collected | None:
        """Return the collected terms as convex atoms; None where some weight would be negative."""
        factors = {y: pair for y, pair in self.factors.items() if max(map(abs, pair)) > NOTHING * self.sizes[y]}
        if not factors:
            return Collected(tuple(self.parts), self.a, self.b)
        affine = [y for y in dict.fromkeys([P, Q, *factors]) if isinstance(y, Affine)]
        places = [*affine, *(y for y in factors if not isinstance(y, Affine))]
        pairs = [(x, y) for x in affine for y in places if x != y]
        matrix = np.zeros((2 * len(places), len(pairs)))
        for column, (x, y) in enumerate(pairs):
            for share, place in ((1.0, x), (-1.0, y)):
                row = 2 * places.index(place)
                matrix[row : row + 2, column] += share * np.array([x.a, x.b])
        right = [one for y in places for one in factors.get(y, (mpmath.mpf(0), mpmath.mpf(0)))]
        weights = _weights(matrix, right)
        if weights is None:
            return None
        parts = [(float(w), *pairs[k]) for k, w in weights.items()]
        lines = [(w * (x.a - y.a), w * (x.b - y.b)) for w, x, y in parts if isinstance(y, Affine)]
        sums = np.abs(np.sum(lines, axis=0)) <= ROUNDING * np.abs(lines).sum() if len(lines) == len(parts) else False
        entropies: list[tuple[float, Atom]] = [(w, Entropy(x, y, bool(np.all(sums)))) for w, x, y in parts]
        return Collected((*self.parts, *entropies), self.a, self.b)


def _weights(matrix: Array, right: list[mpmath.mpf]) -> dict[int, mpmath.mpf] | None:
    """Return weights >= 0 by column that make up `right`; None where there are none.

    A linear program is blind to what is 1e-7 of the largest part: the next one is on the scale of what is left.
    """
    used, rest = np.zeros(0, dtype=int), right
    for _ in range(SCALES):
        scale = max(map(abs, rest))
        target = np.array([float(one / scale) for one in rest])
        fresh = np.ones(matrix.shape[1])
        fresh[used] = 0.0
        bounds = [(0.0 if one else None, None) for one in fresh]
        found = linprog(fresh, A_eq=matrix, b_eq=target, bounds=bounds, method="highs-ds")
        if found.x is None:
            return None
        used = np.union1d(used, np.flatnonzero((found.x > WEIGHT) & (fresh > 0.0)))
        weights = _exact(matrix[:, used], right)
        if weights is not None:
            return dict(zip(map(int, used), weights, strict=True))
        taken = mpmath.matrix(matrix[:, used].tolist()) * mpmath.matrix(found.x[used].tolist())
        rest = [one - scale * taken[k] for k, one in enumerate(rest)]
    return None


def _exact(matrix: Array, right: list[mpmath.mpf]) -> list[mpmath.mpf] | None:
    """Return the weights of a basis, to many digits; None where the identity fails or one is negative."""
    try:
        a = mpmath.matrix(matrix.tolist())
        weights = mpmath.lu_solve(a, mpmath.matrix(right))
    except (ZeroDivisionError, ValueError):
        return None
    for k, wanted in enumerate(right):
        parts = [a[k, column] * weight for column, weight in enumerate(weights)]
        if abs(mpmath.fsum(parts) - wanted) > ROUNDING * (abs(wanted) / 2 + mpmath.fsum(map(abs, parts)) / 2):
            return None
    return list(weights) if min(weights) >= 0 else None
