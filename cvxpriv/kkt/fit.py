"""The least-squares system for the multipliers of a set of constraints at a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.conic.cones._types import Array, Mask
from cvxpriv.kkt.constraints import Condition
from cvxpriv.kkt.faces import dual_face
from cvxpriv.kkt.multipliers import bounded_least_squares, conic_least_squares

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
        """Append columns (n, k) with their bounds; returns their place."""
        matrix = sp.csc_array(block)
        width = matrix.shape[1]
        self.blocks.append(matrix)
        self.low.append(np.broadcast_to(np.asarray(low, dtype=float), (width,)))
        self.high.append(np.broadcast_to(np.asarray(high, dtype=float), (width,)))
        place = slice(self.count, self.count + width)
        self.count += width
        return place

    def system(self) -> tuple[sp.csc_array, Array, Array]:
        """Matrix and bounds of all columns."""
        if not self.blocks:
            return sp.csc_array((self.size, 0)), np.zeros(0), np.zeros(0)
        return sp.csc_array(sp.hstack(self.blocks)), np.concatenate(self.low), np.concatenate(self.high)


class MultiplierFit:
    """Unknowns for the multipliers of ``among``, behind ``columns`` that the caller has put in front.

    Equalities have free ones, nearly active inequalities nonnegative ones, cones those of their complementary face.
    Bounds on single variables have none: they absorb their part of the residual (`cvxpriv.kkt.multipliers`).
    """

    def __init__(self, tangent: sp.csc_array, active: float, columns: Columns, among: Sequence[Condition]) -> None:
        self.tangent, self.active, self.columns = tangent, active, columns
        self.rows: list[tuple[Condition, slice, np.ndarray]] = []
        self.rays: list[tuple[Condition, slice, sp.csc_array]] = []
        self.faces: list[tuple[Condition, sp.csc_array, ConeLayout]] = []
        self.links: list[tuple[int, slice]] = []
        for condition in among:
            if condition.kind == "cone":
                self._add_cone(condition)
            else:
                self._add_rows(condition)

    def _add_cone(self, condition: Condition) -> None:
        rays, faces, layout = dual_face(condition.layout, condition.values, self.active)
        pull = -(self.tangent @ condition.jacobian.base.T)
        self.rays.append((condition, self.columns.add(pull @ rays, 0.0, np.inf), rays))
        self.faces.append((condition, faces, layout))

    def _add_rows(self, condition: Condition) -> None:
        if condition.kind == "zero":
            kept, low = np.arange(condition.values.size), -np.inf
        else:
            mask = condition.values >= -self.active
            mask[condition.single_rows()[0]] = False
            kept, low = np.flatnonzero(mask), 0.0
        place = self.columns.add(self.tangent @ condition.jacobian.base[kept].T, low, np.inf)
        self.rows.append((condition, place, kept))
        if condition.jacobian.low.size:
            self._add_kinks(condition, kept, place)

    def _add_kinks(self, condition: Condition, kept: np.ndarray, place: slice) -> None:
        """A constraint's kink enters by two shares of its multiplier, at the low and at the high end."""
        outer = sp.csr_array(condition.jacobian.outer)
        for k, row in enumerate(kept):
            held = slice(int(outer.indptr[row]), int(outer.indptr[row + 1]))
            for index, factor in zip(outer.indices[held], outer.data[held], strict=True):
                ends = np.array([[condition.jacobian.low[index], condition.jacobian.high[index]]])
                if np.isfinite(ends).all():
                    direction = self.tangent @ (factor * condition.jacobian.inner[[index]]).T
                    pair = self.columns.add(direction @ sp.csr_array(ends), 0.0, np.inf)
                    self.links.append((place.start + k, pair))
                else:
                    direction = self.tangent @ (factor * condition.jacobian.inner[[index]]).T
                    self.columns.add(direction, ends[0, 0], ends[0, 1])

    def solve(self, g: Array, weights: Array, sides: tuple[Mask, Mask]) -> dict[str, Array]:
        """The multipliers, by constraint, that make the weighted gradient ``g`` smallest."""
        y, z = self._least_squares(g, weights, sides)
        chosen: dict[str, Array] = {}
        for condition, place, kept in self.rows:
            chosen[condition.name] = np.zeros(condition.values.size)
            chosen[condition.name][kept] = y[place]
        start = 0
        for (condition, place, rays), (_, faces, layout) in zip(self.rays, self.faces, strict=True):
            chosen[condition.name] = rays @ y[place] + faces @ z[start : start + layout.size]
            start += layout.size
        return chosen

    def _least_squares(self, g: Array, weights: Array, sides: tuple[Mask, Mask]) -> tuple[Array, Array]:
        M, low, high = self.columns.system()
        n, count = g.size, len(self.links)
        if count:
            shares = np.array([[owner, pair.start, pair.start + 1] for owner, pair in self.links]).ravel()
            signs, rows = np.tile([-1.0, 1.0, 1.0], count), np.repeat(np.arange(count), 3)
            M = sp.csc_array(sp.vstack([M, sp.coo_array((signs, (rows, shares)), shape=(count, M.shape[1]))]))
            g = np.append(g, np.zeros(count))
            sides = tuple(np.append(side, np.zeros(count, dtype=bool)) for side in sides)  # type: ignore[assignment]
            weights = np.append(weights, np.full(count, COUPLING * max(1.0, float(weights.max(initial=0.0)))))
        if any(layout.size for _, _, layout in self.faces):
            return self._with_faces(g, M, low, high, sides, weights)
        y = bounded_least_squares(g, M, low, high, *sides, weights)
        for _ in range(COUPLING_ROUNDS if count else 0):
            g[n:] += (M @ y)[n:]
            y = bounded_least_squares(g, M, low, high, *sides, weights)
        return y, np.zeros(0)

    def _with_faces(
        self, g: Array, M: Any, low: Array, high: Array, sides: tuple[Mask, Mask], weights: Array
    ) -> tuple[Array, Array]:
        parts = [-(self.tangent @ condition.jacobian.base.T) @ faces for condition, faces, _ in self.faces]
        N = sp.csc_array(sp.hstack(parts))
        N = sp.csc_array(sp.vstack([N, sp.csc_array((g.size - N.shape[0], N.shape[1]))]))
        layouts = [layout for _, _, layout in self.faces]
        joined = _joined(layouts)
        order = _order(layouts)
        y, sorted_z = conic_least_squares(g, M, low, high, *sides, weights, (sp.csc_array(N[:, order]), joined))
        z = np.zeros(sorted_z.size)
        z[order] = sorted_z
        return y, z


def _joined(layouts: list[ConeLayout]) -> ConeLayout:
    """One layout for several."""
    return ConeLayout(
        zero=sum(layout.zero for layout in layouts),
        nonneg=sum(layout.nonneg for layout in layouts),
        soc=tuple(size for layout in layouts for size in layout.soc),
        psd=tuple(order for layout in layouts for order in layout.psd),
        exp=sum(layout.exp for layout in layouts),
        power=tuple(alpha for layout in layouts for alpha in layout.power),
    )


def _order(layouts: list[ConeLayout]) -> np.ndarray:
    """Position, in the layouts laid end to end, of each entry of their joined layout."""
    found: dict[str, list[np.ndarray]] = {}
    start = 0
    for layout in layouts:
        for name, piece in layout.slices.items():
            found.setdefault(name.split("[")[0], []).append(np.arange(start + piece.start, start + piece.stop))
        start += layout.size
    ordered = [place for kind in ("zero", "nonneg", "soc", "psd", "exp", "power") for place in found.get(kind, [])]
    return np.concatenate([np.zeros(0, dtype=int), *ordered]).astype(int)
