"""f, f', f'' and the partial derivatives of p f(q/p) as functions of arrays, from an atom or from a tree alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import cvxpy as cp
import mpmath
import numpy as np

from cvxpriv.divergences.atoms import At, Atom, Writer
from cvxpriv.divergences.convexity import adjoint
from cvxpriv.divergences.intervals import INTERVALS, Interval
from cvxpriv.divergences.jets import DIGITS, MANY_DIGITS, jet
from cvxpriv.divergences.tree import Node
from cvxpriv.numerics.arrays import Array

__all__ = ["AtomCurve", "Curve", "TreeCurve"]

#: A p or q below this, relative to the larger of the two, counts as this.
TINY = 1e-300
#: How far doubles may be off, relative to the larger of 1 and the value, before many digits are asked.
LOOSE = 1e-12


@dataclass(frozen=True)
class Curve:
    """What a divergence needs of f as numbers.

    Attributes
    ----------
    at_zero, slope_at_infinity : float
        f(0+), and the limit of f(t)/t.
    """

    at_zero: float
    slope_at_infinity: float

    def jet(self, p: Array, q: Array, along: Literal["p", "q"] | None) -> tuple[Array, Array, Array]:
        """Return p f(q/p) and its first two derivatives in p or q, at p, q > 0 whose larger one is 1."""
        raise NotImplementedError  # pragma: no cover

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
    """f as an atom: nothing cancels in f'', and little in f'."""

    atom: Atom

    def jet(self, p: Array, q: Array, along: Literal["p", "q"] | None) -> tuple[Array, Array, Array]:
        return self.atom.jet(At(p, q, along))

    def form(self, p: cp.Expression, q: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Return the DCP form of sum p f(q/p): see `FDivergence.expression`."""
        writer = Writer(cp.vec(p, order="C"), cp.vec(q, order="C"))
        expression = self.atom.declare(writer)
        return cp.sum(expression), writer.constraints

    def auxiliary(self, p: Array, q: Array) -> tuple[Array, ...]:
        """Return the values of the form's own variables."""
        with np.errstate(all="ignore"):
            return tuple(np.where(np.isnan(one), 0.0, one) for one in self.atom.own(p, q))


@dataclass(frozen=True)
class TreeCurve(Curve):
    """f as a tree that no atom equals: doubles where interval arithmetic shows them to be right, else many digits."""

    tree: Node

    def jet(self, p: Array, q: Array, along: Literal["p", "q"] | None) -> tuple[Array, Array, Array]:
        by_p = along == "p"
        t = p / q if by_p else q / p
        tree, side = (adjoint(self.tree), -1) if by_p else (self.tree, 1)
        value, slope, bend = _trusted(tree, t, side)
        scale = q if by_p else p
        return (value * scale, slope, bend / scale)


def _trusted(tree: Node, t: Array, side: int) -> tuple[Array, Array, Array]:
    found = [_middle(one, t) for one in jet(tree, Interval(t, t), INTERVALS, side=side)]
    loose = np.logical_or.reduce([~(off <= LOOSE * np.maximum(1.0, np.abs(middle))) for middle, off in found])
    values = [middle for middle, _ in found]
    for index in zip(*np.nonzero(loose), strict=True):
        for held, precise in zip(values, _precise(tree, float(t[index]), side), strict=True):
            held[index] = precise
    return values[0], values[1], values[2]


def _middle(one: Any, t: Array) -> tuple[Array, Array]:
    if not isinstance(one, Interval):
        return np.full(t.shape, float(one)), np.zeros(t.shape)
    low, high = np.broadcast_to(one.low, t.shape), np.broadcast_to(one.high, t.shape)
    return low / 2.0 + high / 2.0, high - low


def _precise(tree: Node, t: float, side: int) -> tuple[float, ...]:
    if not 0.0 < t < np.inf:
        return (np.nan,) * 3
    with mpmath.workdps(int(DIGITS + 4 * abs(np.log10(t)))):
        try:
            return tuple(float(one) for one in jet(tree, mpmath.mpf(t), MANY_DIGITS, side=side))
        except (ZeroDivisionError, ValueError, TypeError, OverflowError):
            return (np.nan,) * 3


def _full(one: Array, like: Array) -> Array:
    return np.array(np.broadcast_to(one, like.shape), dtype=float)


