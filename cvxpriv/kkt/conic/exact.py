"""Programs in rational numbers: an interval that holds the optimum, proved without rounding.

Every double is a fraction. A solver's dual is moved, by exact elimination, to one that satisfies the dual equation with
nothing left over and stays nonnegative; its value bounds the optimum from below. Its point is moved onto the equalities
and the inequalities that it nearly meets with equality; where all others then hold, its value bounds it from above. The
quadratic form is factored exactly, so that it is known to be positive semidefinite.

In all other cones a point on the boundary is outside as soon as elimination moves a digit. There point and dual are
taken with a little room (`cvxpriv.kkt.conic.exact_cones`), which widens the interval.

The program is the one that cvxpy compiles, number by number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr

from cvxpriv.kkt.conic.exact_cones import inside, semidefinite, with_room
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.numerics.arrays import Array

LARGEST = 80
"""Rows and columns up to which elimination in fractions takes about a second."""
NEAR = (1e-6, 1e-8, 1e-4, 1e-10, 0.0)
"""Relative sizes below which a multiplier or a slack is taken as zero, tried one after the other."""
ROOMS = (1e-9, 1e-8, 1e-7, 1e-6)
"""Room in the cones of what is moved to be exact, tried one after the other."""
Row = list[Fraction]


@dataclass(frozen=True)
class Interval:
    """Between which numbers an optimum lies, rounded outwards; infinite where nothing is proved.

    `why`: The missing part, or ``""``.
    `infeasible`: No point satisfies the constraints.
    """

    low: float = -np.inf
    high: float = np.inf
    why: str = ""
    infeasible: bool = False

    def __str__(self) -> str:
        if self.infeasible:
            return "exact arithmetic proves that no point satisfies the constraints"
        return f"exact arithmetic proves the optimum to lie between {self.low!r} and {self.high!r}"


def proved_interval(program: ConeProgram, x: Array, z: Array) -> Interval:
    """Return an interval that holds the optimum, from a point and a dual that are nearly optimal.

    `x`, `z`: (n,), (m,).

    >>> import cvxpy as cp
    >>> t = cp.Variable(name="t")
    >>> program = ConeProgram.from_problem(cp.Problem(cp.Minimize(3 * t), [t >= 0.1]), "CLARABEL")
    >>> found = proved_interval(program, np.array([0.1 + 1e-12]), np.array([3.0 - 1e-12]))
    >>> found.high - found.low < 1e-15, round(found.low, 12)
    (True, 0.3)
    """
    if reason := _unsuitable(program):
        return Interval(why=reason)
    numbers = _Numbers(program)
    if not semidefinite(numbers.P):
        return Interval(why="the quadratic form is not positive semidefinite in exact arithmetic")
    low, high = _dual_value(numbers, x, z), _point_value(numbers, x)
    for room in ROOMS if None in (low, high) and not numbers.linear else ():
        point, dual = with_room(program, room)
        high = _point_value(numbers, point) if high is None and point is not None else high
        low = _dual_value(numbers, *dual) if low is None and dual is not None else low
    missing = [what for what, value in (("dual", low), ("point", high)) if value is None]
    return Interval(
        -np.inf if low is None else _outwards(low, -np.inf),
        np.inf if high is None else _outwards(high, np.inf),
        f"no exact {' and no exact '.join(missing)} was found near the solver's" if missing else "",
    )


def proved_infeasible(program: ConeProgram, z: Array) -> bool:
    """Return whether a certificate, made exact, proves that no point satisfies the linear rows."""
    if _unsuitable(program):
        return False
    numbers = _Numbers(program)
    empty = [Fraction(0)] * len(numbers.c)
    scaled = z / max(float(np.abs(z).max(initial=0.0)), 1e-300)
    exact = _exact_dual(numbers, empty, scaled, None)
    return exact is not None and _dot(numbers.b, exact[0]) < 0


def _unsuitable(program: ConeProgram) -> str:
    large = max(program.A.shape, default=0) > LARGEST
    return f"it has more than {LARGEST} rows or columns" if large else ""


class _Numbers:
    """A program's numbers as fractions."""

    def __init__(self, program: ConeProgram) -> None:
        self.P = _fractions(program.P)
        self.A = _fractions(program.A)
        self.transposed = _fractions(program.A.T)
        self.b = [Fraction(float(value)) for value in program.b]
        self.c = [Fraction(float(value)) for value in program.c]
        self.d = Fraction(float(program.d))
        self.layout, self.zero = program.layout, program.layout.zero
        self.linear = self.zero + self.layout.nonneg == self.layout.size
        # Rows and columns in an order in which the first ones that can be solved for are far from dependent.
        whole = program.A.toarray()
        self.rows, self.columns = (qr(one, mode="r", pivoting=True)[1].tolist() for one in (whole.T, whole))


def _fractions(matrix: Any) -> list[Row]:
    return [[Fraction(float(value)) for value in row] for row in sp.csr_array(matrix).toarray()]


def _dot(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(one, other, strict=True) if a and b), Fraction(0))


def _times(matrix: list[Row], vector: Sequence[Fraction]) -> Row:
    return [_dot(row, vector) for row in matrix]


def _dual_value(numbers: _Numbers, x: Array, z: Array) -> Fraction | None:
    """The value of an exactly feasible dual near ``z``."""
    exact = _exact_dual(numbers, numbers.c, z, x)
    if exact is None:
        return None
    y, at = exact
    return numbers.d - _dot(numbers.b, y) - _dot(at, _times(numbers.P, at)) / 2


def _exact_dual(numbers: _Numbers, c: Row, z: Array, x: Array | None) -> tuple[Row, Row] | None:
    """``y >= 0`` (free on equalities) and ``at`` with ``P at + A'y + c = 0`` exactly; None where none is found."""
    count = len(c)
    at = [Fraction(0)] * count if x is None else [Fraction(float(value)) for value in x]
    size = max(1e-300, float(np.abs(z).max(initial=0.0)))
    for near in NEAR if numbers.linear else (None,):
        held = [k for k in numbers.rows if near is None or k < numbers.zero or z[k] > near * size]
        y = [Fraction(0)] * len(z)
        for k in held:
            y[k] = Fraction(float(z[k]))
        columns = [numbers.A[k] for k in held] + ([] if x is None else numbers.P)
        rest = [-(p + a + g) for p, a, g in zip(_times(numbers.P, at), _times(numbers.transposed, y), c, strict=True)]
        step = _solved([[column[j] for column in columns] for j in range(count)], rest)
        if step is None:
            continue
        for k, change in zip(held, step, strict=False):
            y[k] += change
        moved = [one + change for one, change in zip(at, step[len(held) :], strict=True)] if x is not None else at
        if inside(numbers.layout, y, dual=True):
            return y, moved
    return None


def _point_value(numbers: _Numbers, x: Array) -> Fraction | None:
    """The objective at an exactly feasible point near ``x``."""
    start = [Fraction(float(value)) for value in x]
    slack = [side - value for side, value in zip(numbers.b, _times(numbers.A, start), strict=True)]
    for near in NEAR if numbers.linear else (-np.inf,):
        held = [k for k, left in enumerate(slack) if k < numbers.zero or left <= near * (1 + abs(numbers.b[k]))]
        step = _solved([[numbers.A[k][j] for j in numbers.columns] for k in held], [slack[k] for k in held])
        if step is None:
            continue
        point = start.copy()
        for j, change in zip(numbers.columns, step, strict=False):
            point[j] += change
        left = [side - value for side, value in zip(numbers.b, _times(numbers.A, point), strict=True)]
        if inside(numbers.layout, left, dual=False):
            return numbers.d + _dot(numbers.c, point) + _dot(point, _times(numbers.P, point)) / 2
    return None


def _solved(rows: list[Row], side: Row) -> Row | None:
    """A solution of linear equations, zero where it is free; None where there is none."""
    table = [[*row, value] for row, value in zip(rows, side, strict=True)]
    width = len(table[0]) - 1 if table else 0
    pivots: list[int] = []
    for column in range(width):
        found = next((k for k in range(len(pivots), len(table)) if table[k][column]), None)
        if found is None:
            continue
        place = len(pivots)
        table[place], table[found] = table[found], table[place]
        head = table[place][column]
        table[place] = [entry / head for entry in table[place]]
        for k, row in enumerate(table):
            if k != place and row[column]:
                factor = row[column]
                table[k] = [
                    entry - factor * top if top else entry for entry, top in zip(row, table[place], strict=True)
                ]
        pivots.append(column)
    if any(row[width] for row in table[len(pivots) :]):
        return None
    solution = [Fraction(0)] * width
    for place, column in enumerate(pivots):
        solution[column] = table[place][width]
    return solution


def _outwards(value: Fraction, towards: float) -> float:
    """The nearest double on one side of a fraction."""
    near = float(value)
    beyond = Fraction(near) > value if towards < 0 else Fraction(near) < value
    return float(np.nextafter(near, towards)) if beyond else near
