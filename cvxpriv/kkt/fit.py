"""The least-squares system for the multipliers of a set of conditions at a point."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxpriv.kkt.conic.cones._types import Array, Mask
from cvxpriv.kkt.faces import dual_face
from cvxpriv.kkt.jacobian_sets import Derivative
from cvxpriv.kkt.multipliers import bounded_least_squares, conic_least_squares
from cvxpriv.kkt.written import Written

__all__ = ["Columns", "MultiplierFit"]

COUPLING = 1e3  # weight of the rows that keep a constraint's kink within its multiplier
COUPLING_ROUNDS = 3  # of the method of multipliers, each of which gains the square of that weight


class Columns:
    """Unknowns of a least squares, gathered one group at a time."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.blocks: list[sp.csc_array] = []
        self.low: list[Array] = []
        self.high: list[Array] = []
        self.count = 0

    def add(self, block: Any, low: Array | float, high: Array | float) -> slice:
        """Append columns (n, k) with their bounds; return their place."""
        matrix = sp.csc_array(block)
        width = matrix.shape[1]
        self.blocks.append(matrix)
        self.low.append(np.broadcast_to(np.asarray(low, dtype=float), (width,)))
        self.high.append(np.broadcast_to(np.asarray(high, dtype=float), (width,)))
        place = slice(self.count, self.count + width)
        self.count += width
        return place

    def system(self) -> tuple[sp.csc_array, Array, Array]:
        """Return matrix and bounds of all columns."""
        if not self.blocks:
            return sp.csc_array((self.size, 0)), np.zeros(0), np.zeros(0)
        return sp.csc_array(sp.hstack(self.blocks)), np.concatenate(self.low), np.concatenate(self.high)


class MultiplierFit:
    """Unknowns for the multipliers of some rows, behind ``columns`` that the caller has put in front.

    Equalities have free ones, nearly active inequalities nonnegative ones, cones those of their complementary face.
    Bounds on single variables have none: they absorb their part of the residual (`cvxpriv.kkt.multipliers`).

    Parameters
    ----------
    written : Written
    v : array (rows,)
        Values of the conditions.
    jacobian : Derivative
        Derivative of the conditions.
    active : array (rows,)
        Slack up to which a row may carry a multiplier.
    columns : Columns
    among : bool array (rows,)
    """

    def __init__(
        self, written: Written, v: Array, jacobian: Derivative, active: Array, columns: Columns, among: Mask
    ) -> None:
        self.written, self.jacobian, self.columns = written, jacobian, columns
        carrying = among & ~written.cone & (written.zero | (v >= -active))
        carrying[written.singles()[0]] = False
        self.kept = np.flatnonzero(carrying)
        free = written.zero[self.kept]
        self.place = columns.add(jacobian.base[self.kept].T, np.where(free, -np.inf, 0.0), np.inf)
        self.links = np.zeros((0, 3), dtype=int)
        if jacobian.low.size:
            self._add_kinks()
        cone = written.cone
        rays, self.faces, self.layout = dual_face(written.layout, v[cone], active[cone], among[cone])
        self.rays, self.pull = rays, -jacobian.base[np.flatnonzero(cone)].T
        self.ray_place = columns.add(self.pull @ rays, 0.0, np.inf)

    def _add_kinks(self) -> None:
        """Add a constraint's kink by two shares of its multiplier, at the low and at the high end."""
        pairs = sp.coo_array(self.jacobian.outer[self.kept])
        row, kink = (np.asarray(one) for one in pairs.coords)
        directions = sp.csc_array((sp.diags_array(pairs.data) @ self.jacobian.inner[kink]).T)
        low, high = self.jacobian.low[kink], self.jacobian.high[kink]
        proper = np.isfinite(low) & np.isfinite(high)
        held, ends = np.flatnonzero(proper), np.flatnonzero(~proper)
        shares = [
            self.columns.add(directions[:, held] @ sp.diags_array(side[held]), 0.0, np.inf) for side in (low, high)
        ]
        self.columns.add(directions[:, ends], low[ends], high[ends])
        count = np.arange(held.size)
        self.links = np.column_stack([self.place.start + row[held], *(share.start + count for share in shares)])

    def solve(self, g: Array, weights: Array, sides: tuple[Mask, Mask]) -> Array:
        """Return the multipliers of all rows that make the weighted gradient ``g`` smallest; zero for rows without."""
        y, z = self._least_squares(g, weights, sides)
        chosen = np.zeros(self.written.c.size)
        chosen[self.kept] = y[self.place]
        chosen[self.written.cone] = self.rays @ y[self.ray_place] + self.faces @ z
        return chosen

    def _least_squares(self, g: Array, weights: Array, sides: tuple[Mask, Mask]) -> tuple[Array, Array]:
        M, low, high = self.columns.system()
        n, count = g.size, len(self.links)
        if count:
            shares = self.links.ravel()
            signs, rows = np.tile([-1.0, 1.0, 1.0], count), np.repeat(np.arange(count), 3)
            M = sp.csc_array(sp.vstack([M, sp.coo_array((signs, (rows, shares)), shape=(count, M.shape[1]))]))
            g = np.append(g, np.zeros(count))
            sides = tuple(np.append(side, np.zeros(count, dtype=bool)) for side in sides)  # type: ignore[assignment]
            weights = np.append(weights, np.full(count, COUPLING * max(1.0, float(weights.max(initial=0.0)))))
        if self.layout.size:
            N = self.pull @ self.faces
            N = sp.csc_array(sp.vstack([N, sp.csc_array((g.size - N.shape[0], N.shape[1]))]))
            return conic_least_squares(g, M, low, high, *sides, weights, (N, self.layout))
        y = bounded_least_squares(g, M, low, high, *sides, weights)
        for _ in range(COUPLING_ROUNDS if count else 0):
            g[n:] += (M @ y)[n:]
            y = bounded_least_squares(g, M, low, high, *sides, weights)
        return y, np.zeros(0)
