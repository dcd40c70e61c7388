"""From a solver's point to the nearest one where the objective is a number.

Solvers return points a hair outside the domain (x = -1e-10 under an entropy), where the objective is infinite. That
alone says nothing against the answer: it is moved into the domain, if that takes a small step, and judged there.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import Inequality

from cvxpriv.kkt.conic.cones._types import Array
from cvxpriv.kkt.coordinates import Coordinates
from cvxpriv.kkt.flat import flatten

__all__ = ["MARGINS", "ROOM", "into_domain"]

ROOM = 1e-7
"""How far a point may lie outside the domain, in the units of the variables."""
MARGINS = (0.0, 1e-15, 1e-9)
"""How far inside to aim, the least that gives a number: a logarithm has none at the boundary itself."""
SWEEPS = 100
ROUNDING = 8.0 * float(np.finfo(float).eps)


def into_domain(problem: cp.Problem, room: float = ROOM) -> float:
    """Move the variables' values into the objective's domain, in place, and return the largest move of an entry.

    Only affine conditions are met: arguments of logarithms, entropies and powers, denominators, and the bounds that
    variables have as attributes. A point that is more than `room` outside, or where nothing helps, stays as it is.

    Examples
    --------
    >>> x = cp.Variable(2, name="x")
    >>> x.value = [-1e-9, 1.0]
    >>> problem = cp.Problem(cp.Maximize(cp.sum(cp.entr(x))))
    >>> into_domain(problem), x.value.tolist()
    (1e-09, [0.0, 1.0])
    """
    coordinates = Coordinates(problem.variables())
    start = coordinates.point()
    rows = _rows(problem, coordinates)
    if rows is None:
        return 0.0
    J, values = rows
    if values.max(initial=-np.inf) <= 0.0 and _is_number(problem):
        return 0.0
    if not values.max(initial=-np.inf) <= room:
        return 0.0
    for margin in MARGINS:
        moved = _inside(J, values, start, margin)
        coordinates.place(moved)
        if _is_number(problem) and np.abs(moved - start).max(initial=0.0) <= 10.0 * room:
            return float(np.abs(moved - start).max(initial=0.0))
    coordinates.place(start)
    return 0.0


def _is_number(problem: cp.Problem) -> bool:
    with np.errstate(all="ignore"):
        return bool(np.isfinite(problem.objective.value))


def _rows(problem: cp.Problem, coordinates: Coordinates) -> tuple[sp.csr_array, Array] | None:
    """The domain's affine conditions ``v <= 0``: their derivative and their values at the point."""
    conditions = list(problem.objective.args[0].domain)
    for variable in problem.variables():
        conditions += variable.domain
    affine = [
        condition.expr
        for condition in conditions
        if isinstance(condition, Inequality) and condition.expr.is_affine() and condition.expr.variables()
    ]
    if not affine:
        return None
    flat = flatten(affine, coordinates)
    return sp.csr_array(flat.M), flat.state(coordinates.point()).u


def _inside(J: sp.csr_array, values: Array, start: Array, margin: float) -> Array:
    """The point moved onto each violated half-space in turn, until none is violated."""
    x = start.copy()
    count = np.diff(J.indptr)
    single = np.flatnonzero(count == 1)
    slope, column = J.data[J.indptr[single]], J.indices[J.indptr[single]]
    limit = start[column] - (values[single] + margin) / slope
    np.minimum.at(x, column[slope > 0], limit[slope > 0])
    np.maximum.at(x, column[slope < 0], limit[slope < 0])
    several = np.flatnonzero(count > 1)
    noise = ROUNDING * (abs(J) @ np.abs(start))
    for _ in range(SWEEPS):
        now = values + J @ (x - start) + margin
        violated = several[now[several] > 0.0]
        if not violated.size:
            break
        for row in violated:
            part = slice(J.indptr[row], J.indptr[row + 1])
            a, j = J.data[part], J.indices[part]
            excess = values[row] + a @ (x[j] - start[j]) + margin + noise[row]
            if excess > 0.0:
                x[j] -= a * excess / (a @ a)
    return x
