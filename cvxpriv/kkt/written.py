"""A problem as its user wrote it, taken apart once: objective, constraints, and the domains of its atoms.

Signs: ``L = f + sum multiplier * (lhs - rhs)`` for a minimisation, ``>=`` turned round first, and ``L = f - <z, v>``
for ``v in K``; a maximisation of ``-f`` has the same multipliers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.kkt.cone_rows import NO_CONES, Rows, of_atoms, of_attributes, rows_of_constraint
from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.conic.cones.layout import KINDS
from cvxpriv.kkt.coordinates import Coordinates, dense
from cvxpriv.kkt.flat import Flat, State, flatten
from cvxpriv.kkt.natural import Separable, separable
from cvxpriv.kkt.reach import reach
from cvxpriv.numerics.arrays import Array, Flags


@dataclass(frozen=True, eq=False)
class Written:
    """Conditions ``v = 0``, ``v <= 0`` and ``v in K``, stacked, with ``v = C [x; t] + c``.

    `flat`: The flat expressions; the first one is the objective.
    `sign`: Sign of the objective: -1 for a maximisation.
    `names`: Names of the constraints, then of the implied conditions.
    `own`: Number of the problem's own constraints among them.
    `rows`: The rows of each condition.
    `duals`: The multipliers of each own constraint, with their order and scale.
    `read`, `scale`, (rows,): The row of the flat expressions that each row is, and the factor.
    `zero`, `cone`, (rows,): Rows of equalities and of cones; the others are inequalities.
    `layout`: Layout of the rows of cones, which come last.
    """

    problem: cp.Problem
    flat: Flat
    sign: float
    names: tuple[str, ...]
    own: int
    rows: tuple[np.ndarray, ...]
    duals: tuple[tuple[Any, np.ndarray, Array], ...]
    read: np.ndarray
    scale: Array
    zero: Flags
    cone: Flags
    layout: ConeLayout

    @cached_property
    def C(self) -> sp.csr_array:
        """Slopes of the conditions in ``[x; t]``, (rows, n + t)."""
        width = self.flat.M.shape[1]
        rows = sp.diags_array(self.scale) @ self.flat.M[self.read] if self.read.size else sp.csr_array((0, width))
        C = sp.csr_array(rows)
        C.eliminate_zeros()
        return C

    @cached_property
    def c(self) -> Array:
        """Constants of the conditions, (rows,)."""
        return np.asarray(self.scale * self.flat.m[self.read])

    @cached_property
    def separable(self) -> tuple[tuple[Separable, ...], Flags]:
        """The atoms that act entry by entry, see `cvxpriv.kkt.natural.separable`."""
        return separable(self.flat)

    @cached_property
    def absolute(self) -> sp.csr_array:
        """Absolute values of ``C``."""
        return abs(self.C)

    @cached_property
    def cost(self) -> Array:
        """The objective's row of coefficients of ``[x; t]``."""
        return np.asarray(self.flat.M[[self.flat.places[0].start]].toarray()[0])

    @cached_property
    def reach(self) -> Array:
        """The reach of each variable and of each atom's value, at most 1, see `cvxpriv.kkt.reach`."""
        return reach(self.flat)

    @classmethod
    def of(
        cls, problem: cp.Problem, names: Mapping[str, cp.Constraint] | None = None, symbolic: bool = False
    ) -> Written:
        """Take a problem apart.

        `names`: Names of constraints; the others are called ``constraint[k]``. A constraint that occurs several times
        counts each time.
        `symbolic`: Keep Parameters, for `again`; the problem is DPP.
        Raises ModelError: A constraint is of an unknown kind, or a variable is not real and continuous.
        """
        coordinates = Coordinates(problem.variables())
        labels = _labels(problem.constraints, names or {})
        implied = [*of_attributes(problem.variables()), *of_atoms(problem)]
        several = [*zip(labels, problem.constraints, strict=True), *implied]
        forms = [rows_of_constraint(name, constraint) for name, constraint in several]
        pieces = [piece for form in forms for piece in form.pieces]
        flat = flatten([problem.objective.args[0], *pieces], coordinates, symbolic)
        read, scale, rows, layout = _arranged(flat, forms)
        cone, zero = np.zeros(read.size, dtype=bool), np.zeros(read.size, dtype=bool)
        for form, own in zip(forms, rows, strict=True):
            cone[own], zero[own] = form.kind == "cone", form.kind == "zero"
        multipliers = tuple(
            (constraint.dual_variables, form.order, form.scale)
            for constraint, form in zip(problem.constraints, forms, strict=False)
        )
        sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
        every = tuple(name for name, _ in several)
        return cls(problem, flat, sign, every, len(labels), tuple(rows), multipliers, read, scale, zero, cone, layout)

    def again(self) -> Written:
        """Return the problem at the values that its Parameters have now, if they were kept."""
        return replace(self, flat=self.flat.again())

    def state(self, x: Array | None = None) -> State:
        """Return all values at a flat point; None is the variables' current values."""
        return self.flat.state(self.flat.coordinates.point() if x is None else x)

    def values(self, state: State) -> Array:
        """Return the conditions' values ``v``."""
        return self.C @ state.v + self.c

    def objective(self, state: State) -> float:
        """Return the objective in the sense of the problem."""
        return float(state.u[self.flat.places[0]][0])

    def terms(self, state: State, gradient: Array | None = None) -> float:
        """Return the size of the objective's terms without its constant, or of its slope (at most 1) if larger.

        `gradient`, (n,): Gradient of the objective. Without it the slope counts as 1.
        """
        size = float(np.abs(self.cost) @ np.abs(np.nan_to_num(state.v, posinf=0.0, neginf=0.0)))
        slope = 1.0 if gradient is None else float(np.abs(gradient[np.abs(gradient) < np.inf]).max(initial=0.0))
        return max(size, min(1.0, slope)) or 1.0

    def violation(self, v: Array) -> Array:
        """Return each row's violation: each row of a cone has its block's distance. Infinite without a value."""
        off = np.where(self.zero, np.abs(v), np.maximum(v, 0.0))
        off[self.cone] = self.layout.spread(self.layout.block_distances(v[self.cone]))
        return np.where(np.isnan(v) | np.isnan(off), np.inf, off)

    def wrong_sign(self, multipliers: Array) -> Array:
        """Return the distance of each multiplier from its sign, or of its block from the dual cone."""
        off = np.where(self.zero, 0.0, np.maximum(-multipliers, 0.0))
        off[self.cone] = self.layout.spread(self.layout.block_distances(multipliers[self.cone], dual=True))
        return off

    def products(self, v: Array, multipliers: Array) -> Array:
        """Return the complementarity of each row, and of each block of a cone at all its rows."""
        found = np.abs(v * multipliers)
        if self.layout.size:
            sums = np.add.reduceat(v[self.cone] * multipliers[self.cone], self.layout.starts)
            found[self.cone] = self.layout.spread(np.abs(sums))
        return found

    def sizes(self, state: State, unit: Array | float = 1.0) -> Array:
        """Return the size of each row's terms, the scale of its violation; a cone's rows share the largest.

        `unit`, (n + t,): Least that each variable and each atom's value counts, such as `reach`: larger ones would hide
        a miss.
        """
        unit = np.broadcast_to(unit, self.flat.M.shape[1:])
        size, units = self.absolute, np.zeros(len(self.c))
        filled = np.flatnonzero(np.diff(size.indptr))
        if filled.size:
            units[filled] = np.maximum.reduceat(size.data * unit[size.indices], size.indptr[filled])
        terms = self.row_terms(state, units)
        return np.where(terms > 0.0, terms, 1.0)

    def row_terms(self, state: State, units: Array | float = 0.0) -> Array:
        """Return the sum of the sizes of each row's terms and of its unit; a cone's rows share the largest."""
        terms = self.absolute @ np.abs(np.nan_to_num(state.v, posinf=0.0, neginf=0.0)) + np.abs(self.c) + units
        if self.layout.size:
            terms[self.cone] = self.layout.spread(np.maximum.reduceat(terms[self.cone], self.layout.starts))
        return np.asarray(terms)

    def by_name(self, figures: Array) -> dict[str, float]:
        """Return the largest figure of each constraint's rows."""
        return {name: float(figures[own].max(initial=0.0)) for name, own in zip(self.names, self.rows, strict=True)}

    @cached_property
    def singles(self) -> tuple[np.ndarray, np.ndarray, Array]:
        """Affine inequalities that bound one variable: their row, variable and slope."""
        count = np.diff(self.C.indptr)
        first = self.C.indices[np.minimum(self.C.indptr[:-1], max(self.C.nnz - 1, 0))] if self.C.nnz else count * 0
        rows = np.flatnonzero((count == 1) & ~self.zero & ~self.cone & (first < self.flat.size))
        place = self.C.indptr[rows]
        return rows, self.C.indices[place].astype(int), self.C.data[place]

    def given(self) -> tuple[Array, list[str]]:
        """Return the constraints' own multipliers (NaN for missing ones), and the names of own constraints without."""
        multipliers, missing = np.full(self.c.size, np.nan), []
        for name, own, (leaves, order, scale) in zip(self.names, self.rows, self.duals, strict=False):
            if any(leaf.value is None for leaf in leaves):
                missing.append(name)
                continue
            multipliers[own] = scale * np.concatenate([dense(leaf.value).ravel(order="F") for leaf in leaves])[order]
        return multipliers, missing


def _labels(constraints: Sequence[Any], names: Mapping[str, cp.Constraint]) -> list[str]:
    """Return a name for each constraint; the same object may stand there more than once."""
    known: dict[int, list[str]] = {}
    for name, constraint in names.items():
        known.setdefault(constraint.id, []).append(name)
    labels: list[str] = []
    for k, constraint in enumerate(constraints):
        several = known.get(constraint.id, [])
        label = next((name for name in several if name not in labels), f"constraint[{k}]")
        labels.append(label)
    return labels


def _arranged(flat: Flat, forms: Sequence[Rows]) -> tuple[np.ndarray, Array, list[np.ndarray], ConeLayout]:
    """Return the flat row of each condition and its factor, those of cones at the end in the order of one layout."""
    read, scale, layouts = [], [], []
    starts = iter([place.start for place in flat.places[1:]])
    for form in forms:
        first, *_ = [next(starts) for _ in form.pieces]  # a form's pieces stand one after the other
        read.append(first + form.order)
        scale.append(form.scale)
        if form.kind == "cone":
            layouts.append(form.layout)
    joined, order = joined_layouts(layouts)
    scalar = sum(form.size for form in forms if form.kind != "cone")
    place = np.empty(order.size, dtype=int)
    place[order] = scalar + np.arange(order.size)
    rows, taken = [], {"cone": 0, "scalar": 0}
    for form in forms:
        kind = "cone" if form.kind == "cone" else "scalar"
        piece = np.arange(taken[kind], taken[kind] + form.size)
        rows.append(place[piece] if kind == "cone" else piece)
        taken[kind] += form.size
    total = scalar + order.size
    chosen, weights = np.zeros(total, dtype=int), np.ones(total)
    for own, source, factor in zip(rows, read, scale, strict=True):
        chosen[own], weights[own] = source, factor
    return chosen, weights, rows, joined


def joined_layouts(layouts: Sequence[ConeLayout]) -> tuple[ConeLayout, np.ndarray]:
    """Return one layout for several laid end to end, and the place there of each entry of the joined one."""
    whole: dict[str, Any] = {
        kind: sum((getattr(layout, kind) for layout in layouts), getattr(NO_CONES, kind)) for kind in KINDS
    }
    found: dict[str, list[np.ndarray]] = {}
    start = 0
    for layout in layouts:
        for name, piece in layout.slices.items():
            found.setdefault(name.split("[")[0], []).append(np.arange(start + piece.start, start + piece.stop))
        start += layout.size
    ordered = [place for kind in KINDS for place in found.get(kind, [])]
    return ConeLayout(**whole), np.concatenate([np.zeros(0, dtype=int), *ordered]).astype(int)


def violations(problem: cp.Problem, names: Mapping[str, cp.Constraint]) -> dict[str, float]:
    """Return the worst violation of each of a problem's constraints at its variables' values.

    It is infinite where a constraint's function has no value at the point.
    """
    written = Written.of(problem, names)
    found = written.by_name(written.violation(written.values(written.state())))
    return {name: found[name] for name in written.names[: written.own]}
