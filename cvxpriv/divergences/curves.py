"""f, f', f'' and the partial derivatives of p f(q/p) as functions of arrays, from an atom or from a tree alone."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import cvxpy as cp
import mpmath
import numpy as np
import numpy.typing as npt

from cvxpriv.divergences.atoms import At, Atom, Writer
from cvxpriv.divergences.atoms.branches import largest
from cvxpriv.divergences.convexity import adjoint
from cvxpriv.divergences.intervals import INTERVALS, Interval
from cvxpriv.divergences.jets import DIGITS, MANY_DIGITS, Kind, constant_value, jet
from cvxpriv.divergences.tree import Node
from cvxpriv.numerics.arrays import Array

#: A p or q below this, relative to the larger of the two, is replaced by it.
TINY = 1e-300
#: Largest error of doubles, relative to the value, before many digits are used; around 1 relative to 1 where the value
#: is smaller.
LOOSE, AROUND = 1e-10, 1e2
PLACES = np.geomspace(1e-300, 1e300, 12_001)
"""Places between which doubles are right if they are right at both ends."""
#: From the second t on, and below its inverse, parts of an atom may cancel to nothing; from the first on to a few
#: digits, so that a tree is preferred whose doubles are known to be right to the third number.
AWAY, FAR, CLOSE = 30.0, 1e3, 1e-11
DECADES = np.array([3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 50, 75, 100, 125, 150, 200, 250, 300])
"""Powers of ten of the places beyond it, and below its inverse, at which an atom is compared with many digits."""
DISTANT = 10.0 ** np.concatenate([-DECADES[::-1], DECADES])


@dataclass(frozen=True)
class Curve:
    """The numerical functions that a divergence needs of f: doubles where intervals show them right, else many digits.

    `at_zero`, `slope_at_infinity`: The limits f(0+), and of f(t)/t at infinity.
    `unit`: f is so many times the tree.
    """

    at_zero: float
    slope_at_infinity: float
    tree: Node
    unit: float

    def jet(self, p: Array, q: Array, along: Literal["p", "q"] | None) -> tuple[Array, Array, Array]:
        """Return p f(q/p) and its first two derivatives in p or q, at p, q > 0 whose larger one is 1."""
        (value, slope, bend), sure, (tree, t, side) = self._plain(p, q, along)
        for index in map(tuple, np.argwhere(~sure.all(axis=0))):  # also of a single t, which has no dimension
            value[index], slope[index], bend[index] = _precise(tree, float(t[index]), side)
        return self._scaled(p if along != "p" else q, value, slope, bend)

    def _plain(
        self, p: Array, q: Array, along: Literal["p", "q"] | None
    ) -> tuple[list[Array], npt.NDArray[np.bool_], tuple[Node, Array, int]]:
        """Return the jet of the tree, or of its adjoint, in doubles, where each entry is right, and its arguments."""
        tree, t, side = (adjoint(self.tree), p / q, -1) if along == "p" else (self.tree, q / p, 1)
        found = [_full(one, t) for one in jet(tree, t, DOUBLES, side=side, derivatives=along is not None)]
        sure = _sure(tree)[: 1 if along is None else 3, np.searchsorted(PLACES, t)]
        return found, sure & np.isfinite(found[: len(sure)]), (tree, t, side)  # 0 times inf is 0 in intervals alone

    def _scaled(self, scale: Array, value: Array, slope: Array, bend: Array) -> tuple[Array, Array, Array]:
        return self.unit * value * scale, self.unit * slope, self.unit * bend / scale

    def value(self, t: Array) -> Array:
        """Return f(t)."""
        t = np.asarray(t, dtype=float)
        with np.errstate(all="ignore"):
            return self.jet(np.ones_like(t), t, None)[0]

    def first(self, t: Array) -> Array:
        """Return f'(t), from the right at a kink."""
        return self._along_t(t)[1]

    def second(self, t: Array) -> Array:
        """Return f''(t), from the right where it jumps."""
        return self._along_t(t)[2]

    def in_p(self, p: Array, q: Array) -> tuple[Array, Array]:
        """Return the first and the second derivative of p f(q/p) in p."""
        return self._partial(p, q, "p", self.at_zero)

    def in_q(self, p: Array, q: Array) -> tuple[Array, Array]:
        """Return the first and the second derivative of p f(q/p) in q."""
        return self._partial(p, q, "q", self.slope_at_infinity)

    def _along_t(self, t: Array) -> tuple[Array, Array, Array]:
        t = np.asarray(t, dtype=float)
        with np.errstate(all="ignore"):
            value, slope, bend = self.jet(np.ones_like(t), t, "q")
        return value, _full(slope, t), _full(bend, t)

    def _partial(self, p: Array, q: Array, along: Literal["p", "q"], limit: float) -> tuple[Array, Array]:
        p, q = np.broadcast_arrays(np.asarray(p, dtype=float), np.asarray(q, dtype=float))
        size = np.maximum(np.maximum(p, q), TINY)
        with np.errstate(all="ignore"):
            _, slope, bend = self.jet(np.maximum(p / size, TINY), np.maximum(q / size, TINY), along)
            bend = _full(bend, p) / size
        empty = (q if along == "p" else p) <= 0.0
        slope, bend = np.where(empty, limit, _full(slope, p)), np.where(np.isfinite(bend) & ~empty, bend, 0.0)
        return slope, np.maximum(bend, 0.0)


@dataclass(frozen=True)
class AtomCurve(Curve):
    """f as an atom: nothing cancels in f'', and little in f'. Far out the tree, where its doubles are right, or the
    atom, where those are, and else many digits."""

    atom: Atom

    def jet(self, p: Array, q: Array, along: Literal["p", "q"] | None) -> tuple[Array, Array, Array]:
        found = self.atom.jet(At(p, q, along))
        apart = np.maximum(p, q) / np.minimum(p, q)
        far = (apart > AWAY) | np.isnan(found[2])
        if not far.any():
            return found
        held, p, q, count = [_full(one, p) for one in found], p[far], q[far], 1 if along is None else 3
        scale = q if along == "p" else p
        jets, sure, (tree, t, side) = self._plain(p, q, along)
        close = sure & _sure(tree, CLOSE)[:count, np.searchsorted(PLACES, t)]
        right = (apart[far] < FAR) | _atom_sure(self, along or "q")[:count, np.searchsorted(DISTANT, t)]
        parts = np.where(close | ~right, self._scaled(scale, *jets)[:count], [one[far] for one in held[:count]])
        known = (sure | right) & ~np.isnan(parts)
        for k in np.flatnonzero(~known.all(axis=0)):
            parts[:, k] = self._scaled(scale[k], *_precise(tree, float(t[k]), side))[:count]
        for one, new in zip(held, parts, strict=False):
            one[far] = new
        return held[0], held[1], held[2]

    def form(self, p: cp.Expression, q: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Return the DCP form of sum p f(q/p): see `FDivergence.expression`."""
        writer = Writer(cp.vec(p, order="C"), cp.vec(q, order="C"))
        expression = self.atom.declare(writer)
        return cp.sum(expression), writer.constraints

    def auxiliary(self, p: Array, q: Array) -> tuple[Array, ...]:
        """Return the values of the form's own variables."""
        with np.errstate(all="ignore"):
            return tuple(np.where(np.isnan(one), 0.0, one) for one in self.atom.own(p, q))


@lru_cache(maxsize=256)
def _sure(tree: Node, loose: float = LOOSE) -> npt.NDArray[np.bool_]:
    """Return whether doubles are right on each interval between `PLACES`, by interval arithmetic at its ends.

    Returns: One row each for the value and the two derivatives.
    """
    floor, found = (PLACES < AROUND) & (PLACES > 1.0 / AROUND), []
    with np.errstate(all="ignore"):
        for middle, off in (_middle(one, PLACES) for one in jet(tree, Interval(PLACES, PLACES), INTERVALS)):
            right = (off <= loose * np.maximum(floor, np.abs(middle))) & np.isfinite(off)
            found.append(np.concatenate([[False], right[:-1] & right[1:], [False]]))
    return np.array(found)


@lru_cache(maxsize=256)
def _atom_sure(curve: AtomCurve, along: Literal["p", "q"]) -> npt.NDArray[np.bool_]:
    """Return whether an atom is right on each interval between `DISTANT` places, by many digits at its ends.

    A part that cancels is lost from some distance on. Returns: One row each for the value and the two derivatives."""
    ones, tree, side = np.ones_like(DISTANT), curve.tree, 1
    if along == "p":
        tree, side = adjoint(tree), -1
    true = np.array([_precise(tree, float(t), side) for t in DISTANT]).T
    right = np.full(true.shape, True)
    with np.errstate(all="ignore"):
        size = np.abs(true[0]) / DISTANT + np.abs(true[1])
        noise = 10.0 ** (-40.0 - 3.0 * np.abs(np.log10(DISTANT))) * np.array([size * DISTANT, size, size / DISTANT])
        for p in (ones, 1.0 / np.maximum(ones, DISTANT)):  # as `value` and as `in_q` ask
            wanted = np.array(curve._scaled(p, *true))
            at = At(*((p * DISTANT, p) if along == "p" else (p, p * DISTANT)), along)
            held = np.array([_full(one, p) for one in curve.atom.jet(at)])
            right &= (held == wanted) | (np.abs(held - wanted) <= LOOSE * np.abs(wanted) + noise)
    ends = np.full((3, 1), False)
    return np.concatenate([ends, right[:, :-1] & right[:, 1:], ends], axis=1)


def _power(base: Array, exponent: float, exact: Fraction | None) -> Array:
    return np.asarray(base, dtype=float) ** (int(exact) if exact is not None and exact.denominator == 1 else exponent)


#: Doubles without any guard.
DOUBLES = Kind(lambda node: float(constant_value(node)), np.exp, np.log, np.log1p, _power, largest)


def _middle(one: Any, t: Array) -> tuple[Array, Array]:
    if not isinstance(one, Interval):
        return np.full(t.shape, float(one)), np.zeros(t.shape)
    low, high = np.broadcast_to(one.low, t.shape), np.broadcast_to(one.high, t.shape)
    return low / 2.0 + high / 2.0, high - low


@lru_cache(maxsize=4096)
def _precise(tree: Node, t: float, side: int) -> Array:
    if not 0.0 < t < np.inf:
        return np.full(3, np.nan)
    with mpmath.workdps(int(DIGITS + 4 * abs(np.log10(t)))):
        try:
            return np.array([float(one) for one in jet(tree, mpmath.mpf(t), MANY_DIGITS, side=side)])
        except (ZeroDivisionError, ValueError, TypeError, OverflowError):
            return np.full(3, np.nan)


def _full(one: Array, like: Array) -> Array:
    return np.array(np.broadcast_to(one, like.shape), dtype=float)
