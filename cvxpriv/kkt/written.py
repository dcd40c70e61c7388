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
from cvxpy.atoms.elementwise.power import Power
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.norm_inf import norm_inf
from cvxpy.atoms.pnorm import Pnorm

from cvxpriv.kkt.cone_rows import arranged, of_atoms, of_attributes, rows_of_constraint
from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.coordinates import Coordinates, dense
from cvxpriv.kkt.flat import Atom, Flat, State, flatten
from cvxpriv.kkt.natural import Separable, separable
from cvxpriv.numerics.arrays import Array, Flags

#: Atoms that keep the scale of their arguments.
LINEAR = (cp.abs, cp.max, cp.min, cp.maximum, cp.minimum, cp.sum_largest, norm1, norm_inf, Pnorm)
PASSES = 50
"""Most passes of `Written.reach` over the rows: a longer chain of rows ends at 1."""


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
        """The reach of each variable and of each atom's value, at most 1: the size that the rows' constants give it.

        In ``x <= 1e-9`` and in ``1e9*x <= 1`` a variable reaches 1e-9: there an error of 1e-9 is one of 100 %. A
        constant ``b`` beside a coefficient ``a`` reaches ``b/a``, and a row passes on the reach of its largest term to
        the others. Norms, absolute values, extrema and squares keep the scale; the arguments of any other atom, as of
        ``exp``, have 1. So has a variable of which no constant tells.
        """
        return _reach(self.flat)

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
        read, scale, rows, layout = arranged(forms, [place.start for place in flat.places[1:]])
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


def _reach(flat: Flat) -> Array:
    """Return the reach of each variable's entry and of each atom's value, (n + t,): see `Written.reach`."""
    M, m = sp.csr_array(abs(flat.M)), np.abs(flat.m)
    m[flat.places[0]] = 0.0
    M.data[M.indptr[flat.places[0].start] : M.indptr[flat.places[0].stop]] = 0.0
    M.eliminate_zeros()
    growths = [(atom, *_growth(atom.node)) for atom in flat.atoms]
    found = np.zeros(M.shape[1])
    for atom, degree, _ in growths:
        if not degree:
            for piece in atom.rows:
                m[piece] = np.maximum(m[piece], abs(M[piece]).max(axis=1).toarray().ravel()) if M.nnz else m[piece]
            found[flat.size + atom.place.start : flat.size + atom.place.stop] = 1.0
    rows = np.repeat(np.arange(m.size), np.diff(M.indptr))
    for _ in range(PASSES):
        before = found.copy()
        terms = m.copy()  # the size of each row's largest term
        np.maximum.at(terms, rows, M.data * found[M.indices])
        for atom, degree, factor in growths:
            if degree:
                _pass_on(atom, degree, factor, flat.size, terms, found)
        np.maximum.at(found, M.indices, np.minimum(terms[rows] / M.data, 1.0))
        if (found[: flat.size] == 1.0).all() or np.array_equal(before, found):
            found[found == 0.0] = 1.0
            return found
    return np.ones(found.size)


def _pass_on(atom: Atom, degree: int, factor: float, size: int, terms: Array, found: Array) -> None:
    """Pass the reach of an atom's arguments on to its value, and the other way."""
    place = slice(size + atom.place.start, size + atom.place.stop)
    pieces = atom.rows[:1] if degree == 2 else atom.rows
    most = max(float(terms[piece].max(initial=0.0)) for piece in pieces)
    found[place] = np.maximum(found[place], min(factor * most**degree, 1.0))
    back = (float(found[place].max(initial=0.0)) / factor) ** (1.0 / degree)
    for piece in pieces:
        terms[piece] = np.maximum(terms[piece], back)


def _growth(node: Any) -> tuple[int, float]:
    """Return ``d, f`` for an atom with values of about ``f * s**d`` for arguments of size ``s``; zero for any other."""
    if isinstance(node, LINEAR):
        return 1, 1.0
    if isinstance(node, Power):
        return (2, 1.0) if float(node.p.value) == 2.0 else (0, 0.0)
    if isinstance(node, cp.quad_over_lin | cp.QuadForm) and node.args[1].is_constant():
        size = float(np.abs(dense(node.args[1].value)).max())  # a Parameter may hold a bare number
        factor = size if isinstance(node, cp.QuadForm) else 1.0 / size if size > 0.0 else 0.0
        return (2, factor) if 0.0 < factor < np.inf else (0, 0.0)
    return 0, 0.0


def violations(problem: cp.Problem, names: Mapping[str, cp.Constraint]) -> dict[str, float]:
    """Return the worst violation of each of a problem's constraints at its variables' values.

    It is infinite where a constraint's function has no value at the point.
    """
    written = Written.of(problem, names)
    found = written.by_name(written.violation(written.values(written.state())))
    return {name: found[name] for name in written.names[: written.own]}
