"""Cone programs as solvers see them, uniform whatever the solver, and their optimality conditions.

minimise 1/2 x'Px + c'x + d   subject to   A x + s = b,  s in K;        dual: z in K*, Px + A'z + c = 0

The conditions are measured without the program's solver: the slack is ``b - A x``, whatever the solver reports.
Distances to cones are Euclidean within a block, linear residuals are the largest entry. Relative figures give a
residual's weight: a violation against the terms of its own row, all others against the terms of the objective, or, if
that is less, against the size of what is subtracted, as solvers do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.conic.data import extract, finite
from cvxpriv.numerics.arrays import Array
from cvxpriv.solvers.registry import SOLVERS


@dataclass(frozen=True, eq=False)
class ConeProgram:
    """``minimise 1/2 x'Px + c'x + d`` over ``A x + s = b``, ``s`` in the cone of ``layout``.

    `P`, (n, n): The quadratic part, symmetric, with both triangles.
    `c`, `d`, (n,): Linear part and constant of the objective.
    `A`, `b`, (m, n), (m,): Rows in the order of ``layout``.
    `maximise`: Whether the user's problem is a maximisation: its value is then the negative of the program's.
    `columns`: Name and size of the variables behind the columns, for messages.
    """

    P: sp.csc_array
    c: Array
    d: float
    A: sp.csc_array
    b: Array
    layout: ConeLayout
    maximise: bool = False
    columns: tuple[tuple[str, int], ...] = field(default=(), repr=False)

    @classmethod
    def from_problem(cls, problem: cp.Problem, solver: str, options: Mapping[str, object] | None = None) -> ConeProgram:
        """Return the cone program that cvxpy hands to ``solver`` for ``problem``.

        Raises ModelError: If the solver is not one that this module reads, or the problem is mixed-integer.
        """
        return cls(**extract(problem, solver, options or {}).fields)

    def value(self, x: Array) -> float:
        """Return the primal objective of the minimisation."""
        return float(0.5 * x @ (self.P @ x) + self.c @ x + self.d)

    def dual_value(self, x: Array, z: Array) -> float:
        """Return the dual objective; a bound only if ``z`` is dual feasible at ``x``."""
        return float(-0.5 * x @ (self.P @ x) - self.b @ z + self.d)

    def slack(self, x: Array) -> Array:
        """Return the slack ``b - A x``."""
        return np.asarray(self.b - self.A @ x)

    @cached_property
    def transposed(self) -> sp.csr_array:
        """``A'``."""
        return sp.csr_array(self.A.T)

    @cached_property
    def sizes(self) -> tuple[sp.csc_array, sp.csc_array, sp.csr_array]:
        """Absolute values of ``P``, ``A`` and ``A'``."""
        return abs(self.P), abs(self.A), abs(self.transposed)

    @property
    def unit(self) -> float:
        """The largest coefficient of the objective, or 1 where that is smaller or there is none."""
        largest = max(float(np.abs(part).max(initial=0.0)) for part in (self.c, self.P.data))
        return min(1.0, largest) or 1.0

    def terms(self, x: Array, z: Array | None = None) -> float:
        """Return the size of the objective's terms, which may cancel; with ``z`` also those of the dual's."""
        size = np.abs(x)
        primal = float(np.abs(self.c) @ size + 0.5 * size @ (self.sizes[0] @ size))
        return max(self.unit, primal, 0.0 if z is None else float(np.abs(self.b) @ np.abs(z)))

    def block_sizes(self, x: Array) -> Array:
        """Return the size of the terms of each block's slack, one for each of `ConeLayout.names`."""
        size = self.sizes[1]
        own = np.abs(self.b) + (size.max(axis=1).toarray().ravel() if size.nnz else 0.0)
        rows = size @ np.abs(x) + own
        blocks: Array = np.maximum.reduceat(rows, self.layout.starts) if rows.size else rows
        return np.where(blocks > 0.0, blocks, 1.0)

    def user_value(self, value: float) -> float:
        """Return a value of the minimisation in the sense of the user's problem."""
        return -value if self.maximise else value

    def column_name(self, index: int) -> str:
        """Return the variable and entry behind a column, such as ``x[2]``."""
        for name, size in self.columns:
            if index < size:
                return f"{name}[{index}]"
            index -= size
        return f"column[{index}]"


CONDITIONS = ("cone", "dual", "dual_cone", "complementarity", "gap")


@dataclass(frozen=True)
class ConeResiduals:
    """The five optimality conditions of a cone program at ``(x, z)``.

    `absolute`: ``cone`` and ``dual_cone``: distance of ``b - A x`` to ``K`` and of ``z`` to ``K*``; ``dual``: largest
    entry of ``P x + A'z + c``; ``complementarity``: ``|(b - A x)'z|``; ``gap``: distance of primal and dual objective.
    `relative`: The same five, relative.
    `claimed`: The same five as solvers measure them: relative only where the terms are larger than one.
    `objective`: Primal objective of the minimisation.
    `worst`: The condition with the largest relative residual.
    `worst_block`: The place where that one is worst: a cone's name such as ``exp[1]``, or a variable's entry such as
    ``x[2]``.
    """

    absolute: dict[str, float]
    relative: dict[str, float]
    claimed: dict[str, float]
    objective: float
    worst: str
    worst_block: str

    @property
    def largest(self) -> float:
        """The largest relative residual."""
        return self.relative[self.worst]


def _largest(values: Array) -> tuple[float, int]:
    if not values.size:
        return 0.0, -1
    index = int(np.abs(values).argmax())
    return float(np.abs(values[index])), index


def cone_residuals(program: ConeProgram, x: Array, z: Array) -> ConeResiduals:
    """Return the residuals of ``(x, z)``, from the program's data alone."""
    layout = program.layout
    s = program.slack(x)
    rows, terms = program.block_sizes(x), program.terms(x, z)
    Px, Az = program.P @ x, program.A.T @ z
    outside, astray = layout.block_distances(s), layout.block_distances(z, dual=True)
    missed, row = _largest(outside / rows)
    dual = np.abs(Px + Az + program.c)
    worth, column = _largest(dual * (1.0 + np.abs(x)) / terms)
    spread, block = _largest(astray * rows / terms)
    value, dual_value = program.value(x), program.dual_value(x, z)
    products = np.add.reduceat(s * z, layout.starts) if layout.size else np.zeros(0)
    _, tight = _largest(products)
    sizes = [outside, dual, astray, np.abs(s @ z), np.abs(value - dual_value)]
    absolute = {name: float(one.max(initial=0.0)) for name, one in zip(CONDITIONS, sizes, strict=True)}
    relative = {
        "cone": missed,
        "dual": min(worth, absolute["dual"] / _size(Px, Az, program.c)),
        "dual_cone": min(spread, absolute["dual_cone"] / _size(z)),
        "complementarity": absolute["complementarity"] / terms,
        "gap": absolute["gap"] / terms,
    }
    small = min(1.0, terms)
    claimed = {name: one if name == "cone" else one * small for name, one in relative.items()}
    worst = max(CONDITIONS, key=lambda condition: relative[condition])
    place = {"cone": row, "dual": column, "dual_cone": block}.get(worst, tight)
    name = "" if place < 0 else program.column_name(place) if worst == "dual" else layout.names[place]
    return ConeResiduals(absolute, relative, claimed, value, worst, name)


def _size(*terms: Array) -> float:
    return 1.0 + max((float(np.abs(term).max(initial=0.0)) for term in terms), default=0.0)


def solved_by_clarabel(
    P: Any, A: Any, b: Array, layout: ConeLayout, tolerance: float, c: Array | None = None
) -> tuple[Array | None, Array | None]:
    """Return the minimiser of ``x'Px/2 + c'x`` over ``b - A x`` in the cones, and the dual, or None for each."""
    P, A = sp.csc_matrix(P), sp.csc_matrix(A)
    linear = np.zeros(P.shape[0]) if c is None else c
    try:
        import clarabel

        settings = clarabel.DefaultSettings()
        settings.verbose = False
        for name, value in SOLVERS["CLARABEL"].timed_options(tolerance).items():
            setattr(settings, name, value)
        cones = [
            *([clarabel.ZeroConeT(layout.zero)] if layout.zero else []),
            *([clarabel.NonnegativeConeT(layout.nonneg)] if layout.nonneg else []),
            *(clarabel.SecondOrderConeT(size) for size in layout.soc),
            *(clarabel.PSDTriangleConeT(order) for order in layout.psd),
            *(clarabel.ExponentialConeT() for _ in range(layout.exp)),
            *(clarabel.GenPowerConeT(list(alpha), 1) for alpha in layout.power),
        ]
        solution = clarabel.DefaultSolver(sp.triu(P, format="csc"), linear, A, b, cones, settings).solve()
        return finite(solution.x, linear.size), finite(solution.z, len(b))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # it is not installed, or panics, which in a solver written in Rust is no Exception
        return None, None
