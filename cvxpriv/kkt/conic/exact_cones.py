"""Membership in cones without rounding, and points and duals with room around them, which can be moved to be exact.

A second-order cone asks for a sum of squares of fractions. An exponential one asks for an upper bound of a fraction's
exponential, a power cone for bounds of logarithms: decimal arithmetic rounds them correctly, and the next number on
the safe side is taken. A semidefinite matrix is factored exactly, once its entries are rounded to `BITS` digits (those
off the diagonal are divided by sqrt 2), and its diagonal is lowered by more than that can move an eigenvalue.
"""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import isqrt

from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.conic.cones.exponential import triangle_indices
from cvxpriv.kkt.conic.program import ConeProgram, solved_by_clarabel
from cvxpriv.numerics.arrays import Array

UPWARDS, DOWNWARDS = (Context(prec=50, rounding=way) for way in (ROUND_CEILING, ROUND_FLOOR))
BITS = 240
"""Binary digits after the point to which entries of matrices are rounded."""
HALF_ROOT = Fraction(isqrt(2 ** (2 * BITS - 1)), 2**BITS)
"""A number below sqrt(1/2), by less than 2^-BITS."""
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
        _of_power([v[k] for k in rows], layout.power[number], dual)
        if family.kind == "power"
        else _of_matrix([v[k] for k in rows], layout.psd[number], layout)
        if family.kind == "psd"
        else _inside(family.kind, [v[k] for k in rows], dual)
        for family in layout.families
        if family.kind not in free
        for number, rows in zip(family.numbers, family.rows, strict=True)
    )


def _of_power(v: Sequence[Fraction], alpha: Sequence[float], dual: bool) -> bool:
    """Return whether the logarithms' sum, bounded from below, reaches that of the last entry."""
    exponents = [Fraction(one) for one in alpha[:-1]]
    exponents.append(1 - sum(exponents, Fraction(0)))
    factors = [one / a if dual else one for one, a in zip(v[:-1], exponents, strict=True)]
    if min(factors) < 0 or v[-1] == 0 or min(factors) == 0:
        return min(factors) >= 0 and v[-1] == 0
    least = sum((a * _logarithm(one, DOWNWARDS) for one, a in zip(factors, exponents, strict=True)), Fraction(0))
    return least >= _logarithm(abs(v[-1]), UPWARDS)


def _logarithm(value: Fraction, way: Context) -> Fraction:
    """Return a number beside the logarithm, above or below it as the context rounds."""
    near = way.ln(way.divide(Decimal(value.numerator), Decimal(value.denominator)))
    return Fraction(way.next_plus(near) if way is UPWARDS else way.next_minus(near))


def _of_matrix(v: Sequence[Fraction], order: int, layout: ConeLayout) -> bool:
    places = list(zip(*(index.tolist() for index in triangle_indices(order, layout.triangle)), strict=True))
    lost = Fraction(order, 2**BITS) * (1 + max(map(abs, v)))
    matrix = [[Fraction(0)] * order for _ in range(order)]
    for (i, j), entry in zip(places, v, strict=True):
        size = entry - lost if i == j else entry * HALF_ROOT
        matrix[i][j] = matrix[j][i] = Fraction(round(size * 2**BITS), 2**BITS)
    return semidefinite(matrix)


def semidefinite(matrix: Sequence[Sequence[Fraction]]) -> bool:
    """Return whether a symmetric matrix is positive semidefinite, by exact symmetric elimination.

    >>> semidefinite([[Fraction(1), Fraction(2)], [Fraction(2), Fraction(4)]])
    True
    """
    left = [list(row) for row in matrix]
    if any(left[i][j] != left[j][i] for i in range(len(left)) for j in range(i)):
        return False
    for k in range(len(left)):
        pivot = left[k][k]
        if pivot < 0 or (pivot == 0 and any(left[k][k + 1 :])):
            return False
        for i in range(k + 1, len(left)):
            if factor := (left[i][k] / pivot if pivot else Fraction(0)):
                left[i] = [entry - factor * top for entry, top in zip(left[i], left[k], strict=True)]
    return True


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
    if program.layout.psd and program.layout.triangle != "upper":  # the solver here takes the upper one
        return None, None
    return solved_by_clarabel(program.P, program.A, b, program.layout, TOLERANCE, c)
