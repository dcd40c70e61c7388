"""Membership in cones without rounding, and points and duals with room around them, which can be moved to be exact.

A second-order cone asks for a sum of squares of fractions. An exponential one asks for an upper bound of a fraction's
exponential: decimal arithmetic rounds it correctly, and the next number above is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.kkt.conic.proofs import solved_by_clarabel
from cvxpriv.numerics.arrays import Array

__all__ = ["KINDS", "exponential_above", "inside", "with_room"]

KINDS = ("zero", "nonneg", "soc", "exp")
"""The kinds of cones whose membership is decided without rounding."""
UPWARDS = Context(prec=50, rounding=ROUND_CEILING)
FARTHEST = 2000
"""Exponent beyond which no bound is needed: a double has none of this size."""
TOLERANCE = 1e-12


def exponential_above(exponent: Fraction) -> Fraction:
    """Return a number above the exponential of a fraction, by less than a part in 1e40.

    >>> 0 < exponential_above(Fraction(1)) - Fraction("2.718281828459045235360287471352662497757") < Fraction(1, 10**38)
    True
    """
    exponent = max(exponent, Fraction(-FARTHEST))
    power = UPWARDS.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    return Fraction(UPWARDS.next_plus(UPWARDS.exp(power)))


def inside(layout: ConeLayout, v: Sequence[Fraction], dual: bool) -> bool:
    """Return whether a point is in the cone, or its dual."""
    free = ("zero",) if dual else ()
    return all(
        _inside(family.kind, [v[k] for k in rows], dual)
        for family in layout.families
        if family.kind not in free
        for rows in family.rows
    )


def _inside(kind: str, v: Sequence[Fraction], dual: bool) -> bool:
    if kind == "zero":
        return not any(v)
    if kind == "nonneg":
        return v[0] >= 0
    if kind == "soc":
        return v[0] >= 0 and v[0] ** 2 >= sum((entry**2 for entry in v[1:]), Fraction(0))
    # The last entry over the scale is at least the exponential of x / y, or of v / u - 1 in the dual.
    first, second, last = v
    scale, over = (-first, second) if dual else (second, first)
    if scale == 0:
        return last >= 0 and (over >= 0 if dual else over <= 0)
    if scale < 0 or last <= 0:
        return False
    exponent = -over / scale - 1 if dual else over / scale
    return exponent < FARTHEST and last / scale >= exponential_above(exponent)


def with_room(program: ConeProgram, room: float) -> tuple[Array | None, tuple[Array, Array] | None]:
    """Return a point, and a dual with its point, that are nearly optimal with some room in their cones; None for none.

    The room is taken from ``b`` for the point, and added to the dual: ``c`` with ``A'e`` more leaves it over.
    """
    centre = program.layout.interior()
    point, _ = _solved(program, program.c, program.b - room * centre)
    at, dual = _solved(program, program.c + room * (program.A.T @ centre), program.b)
    return point, None if at is None or dual is None else (at, dual + room * centre)


def _solved(program: ConeProgram, c: Array, b: Array) -> tuple[Array | None, Array | None]:
    import clarabel

    layout = program.layout
    cones = [
        *([clarabel.ZeroConeT(layout.zero)] if layout.zero else []),
        *([clarabel.NonnegativeConeT(layout.nonneg)] if layout.nonneg else []),
        *(clarabel.SecondOrderConeT(size) for size in layout.soc),
        *(clarabel.ExponentialConeT() for _ in range(layout.exp)),
    ]
    return solved_by_clarabel(program.P, program.A, b, cones, TOLERANCE, c)
