"""Optimality conditions of a cone program, measured without its solver.

The slack is ``b - A x``, whatever the solver reports. Distances to cones are Euclidean within a block, linear residuals
are the largest entry. Relative figures give a residual's weight: a violation against the terms of its own row, all
others against the terms of the objective, or, if that is less, against the size of what is subtracted, as solvers do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.numerics.arrays import Array

CONDITIONS = ("cone", "dual", "dual_cone", "complementarity", "gap")


@dataclass(frozen=True)
class ConeResiduals:
    """The five optimality conditions of a cone program at ``(x, z)``.

    `cone`, `dual_cone`: Distance of ``b - A x`` to ``K`` and of ``z`` to ``K*``.
    `dual`: Largest entry of ``P x + A'z + c``.
    `complementarity`: ``|(b - A x)'z|``.
    `gap`: Distance of primal and dual objective.
    `relative`: The same five, relative.
    `claimed`: The same five as solvers measure them: relative only where the terms are larger than one.
    `objective`: Primal objective of the minimisation.
    `worst`: The condition with the largest relative residual.
    `worst_block`: The place where that one is worst: a cone's name such as ``exp[1]``, or a variable's entry such as
    ``x[2]``.
    """

    cone: float
    dual: float
    dual_cone: float
    complementarity: float
    gap: float
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
    complementarity, gap = abs(float(s @ z)), abs(value - dual_value)
    relative = {
        "cone": missed,
        "dual": min(worth, float(dual.max(initial=0.0)) / _size(Px, Az, program.c)),
        "dual_cone": min(spread, float(astray.max(initial=0.0)) / _size(z)),
        "complementarity": complementarity / terms,
        "gap": gap / terms,
    }
    absolute = terms / max(1.0, terms)
    claimed = {name: one if name == "cone" else one * absolute for name, one in relative.items()}
    worst = max(CONDITIONS, key=lambda condition: relative[condition])
    where = {
        "cone": _name(layout.names, row),
        "dual": program.column_name(column) if column >= 0 else "",
        "dual_cone": _name(layout.names, block),
        "complementarity": _name(layout.names, tight),
        "gap": _name(layout.names, tight),
    }
    return ConeResiduals(
        cone=float(outside.max(initial=0.0)),
        dual=float(dual.max(initial=0.0)),
        dual_cone=float(astray.max(initial=0.0)),
        complementarity=complementarity,
        gap=gap,
        relative=relative,
        claimed=claimed,
        objective=value,
        worst=worst,
        worst_block=where[worst],
    )


def _size(*terms: Array) -> float:
    return 1.0 + max((float(np.abs(term).max(initial=0.0)) for term in terms), default=0.0)


def _name(names: tuple[str, ...], index: int) -> str:
    return names[index] if index >= 0 else ""
