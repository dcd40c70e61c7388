"""The domain of a problem's functions, and the nearest points in it."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import Inequality
from scipy.sparse.linalg import lsqr

from cvxpriv.kkt.flat import flatten
from cvxpriv.kkt.written import Written
from cvxpriv.numerics.arrays import Array

ROOM = 1e-7
"""Largest distance of a point outside the domain, in the units of the variables."""
MARGINS = (0.0, 1e-15, 1e-9)
"""Distances inside to aim for, the least that gives a number: a logarithm has none at the boundary itself."""
SWEEPS = 100
"""Most passes over the inequalities that a point violates."""
ROUNDS = 5
"""Moves onto the equalities and then the inequalities."""
ROUNDING = 8.0 * float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Domain:
    """The affine conditions ``J x + c <= 0`` of a problem's atoms, and the bounds in variables' attributes."""

    written: Written
    J: sp.csr_array
    c: Array

    @classmethod
    def of(cls, problem: cp.Problem, written: Written, whole: bool = False) -> Domain:
        """Return the domain of a problem's objective and constraints, with all affine inequalities if `whole`."""
        sides = [problem.objective.args[0], *(side for constraint in problem.constraints for side in constraint.args)]
        conditions = [condition for side in sides for condition in side.domain]
        for variable in problem.variables():
            conditions += variable.domain
        conditions += problem.constraints if whole else []
        affine = [
            condition.expr
            for condition in conditions
            if isinstance(condition, Inequality) and condition.expr.is_affine() and condition.expr.variables()
        ]
        flat = flatten(affine, written.flat.coordinates)
        # cvxpy calls a geometric mean of one entry affine, and it is still an atom: its rows say nothing of x alone.
        alone = np.flatnonzero(np.diff(flat.M[:, flat.size :].indptr) == 0)
        rows = np.concatenate([np.zeros(0, dtype=int), *(np.arange(place.start, place.stop) for place in flat.places)])
        kept = np.intersect1d(alone, rows)
        return cls(written, sp.csr_array(flat.M[kept][:, : flat.size]), flat.m[kept])

    def moved(self, x: Array, room: float = ROOM) -> tuple[Array, float]:
        """Return the point moved into the domain, if it is near, and the largest move of an entry."""
        if not self.c.size:
            return x, 0.0
        values = self.J @ x + self.c
        outside = values.max(initial=-np.inf)
        if (outside <= 0.0 and self._is_number(x)) or not outside <= room:
            return x, 0.0
        for margin in MARGINS:
            moved = _inside(self.J, values, x, margin)
            far = float(np.abs(moved - x).max(initial=0.0))
            if far <= 10.0 * room and self._is_number(moved):
                return moved, far
        return x, 0.0

    def firm(self, x: Array, equalities: np.ndarray) -> Array:
        """Return the point moved onto these rows of the problem and into the domain in turn, to rounding."""
        A, a = self.written.C[equalities][:, : x.size], self.written.c[equalities]
        for _ in range(ROUNDS if equalities.size else 1):
            if equalities.size:
                x = x - lsqr(A, A @ x + a, atol=0.0, btol=1e-15)[0]
            x = _inside(self.J, self.J @ x + self.c, x, 0.0)
        return x

    def _is_number(self, x: Array) -> bool:
        with np.errstate(all="ignore"):
            return bool(np.isfinite(self.written.objective(self.written.state(x))))


def _inside(J: sp.csr_array, values: Array, start: Array, margin: float) -> Array:
    """Return the point moved onto each violated half-space in turn, until none is violated."""
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
