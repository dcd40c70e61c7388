"""Optimality conditions of a cone program, measured without its solver.

Distances to cones are Euclidean within a block and the largest over blocks (`ConeLayout`); linear residuals are the
largest entry. Relative figures divide by one plus the size of what is subtracted, as solvers do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.kkt.conic.cones._types import Array
from cvxpriv.kkt.conic.program import ConeProgram

CONDITIONS = ("primal", "dual", "cone", "dual_cone", "complementarity", "gap")


@dataclass(frozen=True)
class ConeResiduals:
    """The six optimality conditions of a cone program at ``(x, s, z)``.

    Parameters
    ----------
    primal : float
        Largest entry of ``A x + s - b``.
    dual : float
        Largest entry of ``P x + A'z + c``.
    cone, dual_cone : float
        Distance of ``s`` to ``K`` and of ``z`` to ``K*``.
    complementarity : float
        ``|s'z|``.
    gap : float
        Distance of primal and dual objective.
    relative : mapping
        The same six, each divided by one plus the size of its terms.
    objective : float
        Primal objective of the minimisation.
    worst : str
        The condition with the largest relative residual.
    worst_block : str
        Where that one is worst: a cone's name such as ``exp[1]``, or a variable's entry such as ``x[2]``.
    """

    primal: float
    dual: float
    cone: float
    dual_cone: float
    complementarity: float
    gap: float
    relative: dict[str, float]
    objective: float
    worst: str
    worst_block: str

    @property
    def largest(self) -> float:
        """The largest relative residual."""
        return self.relative[self.worst]


def _size(*terms: Array) -> float:
    return 1.0 + max((float(np.abs(term).max(initial=0.0)) for term in terms), default=0.0)


def _largest(values: Array) -> tuple[float, int]:
    if not values.size:
        return 0.0, -1
    index = int(np.abs(values).argmax())
    return float(np.abs(values[index])), index


def cone_residuals(program: ConeProgram, x: Array, s: Array, z: Array) -> ConeResiduals:
    """Residuals of ``(x, s, z)``, from the program's data alone."""
    layout = program.layout
    Ax, Px, Az = program.A @ x, program.P @ x, program.A.T @ z
    primal, row = _largest(Ax + s - program.b)
    dual, column = _largest(Px + Az + program.c)
    cone_block, cone = layout.worst(s)
    dual_block, dual_cone = layout.worst(z, dual=True)
    value, dual_value = program.value(x), program.dual_value(x, z)
    products = np.add.reduceat(s * z, layout.starts) if layout.size else np.zeros(0)
    _, block = _largest(products)
    complementarity = abs(float(s @ z))
    gap = abs(value - dual_value)
    magnitude = 1.0 + max(abs(value), abs(dual_value))
    relative = {
        "primal": primal / _size(Ax, s, program.b),
        "dual": dual / _size(Px, Az, program.c),
        "cone": cone / _size(s),
        "dual_cone": dual_cone / _size(z),
        "complementarity": complementarity / magnitude,
        "gap": gap / magnitude,
    }
    worst = max(CONDITIONS, key=lambda condition: relative[condition])
    row_block = layout.names[int(np.searchsorted(layout.starts, row, side="right")) - 1] if row >= 0 else ""
    product_block = layout.names[block] if block >= 0 else ""
    where = {
        "primal": row_block,
        "dual": program.column_name(column) if column >= 0 else "",
        "cone": cone_block,
        "dual_cone": dual_block,
        "complementarity": product_block,
        "gap": product_block,
    }
    return ConeResiduals(primal, dual, cone, dual_cone, complementarity, gap, relative, value, worst, where[worst])


@dataclass(frozen=True)
class Certificate:
    """A proof of infeasibility or unboundedness, normalised to strength one and checked.

    Parameters
    ----------
    kind : {"infeasible", "unbounded"}
    equation : float
        Largest entry of ``A'z`` (infeasible), or of ``P x`` (unbounded).
    membership : float
        Distance of ``z`` to ``K*``, or of ``-A x`` to ``K``.
    radius : float
        What an imperfect proof of infeasibility still proves, once ``z`` is projected on ``K*``: no feasible point has
        all entries below ``radius`` in size. Infinite for an exact proof, zero for none, NaN for unboundedness.
    valid : bool
        Whether the claimed sign holds at all: ``b'z < 0``, or ``c'x < 0``.
    """

    kind: str
    equation: float
    membership: float
    radius: float
    valid: bool

    def holds(self, tolerance: float = 1e-6) -> bool:
        """Whether the certificate is right to ``tolerance``, at strength one."""
        return self.valid and max(self.equation, self.membership) <= tolerance


def infeasibility(program: ConeProgram, z: Array) -> Certificate:
    """Check ``z in K*``, ``A'z = 0``, ``b'z < 0``, scaled to ``b'z = -1``."""
    strength = -float(program.b @ z)
    if not strength > 0.0:
        return Certificate("infeasible", np.inf, np.inf, 0.0, False)
    z = z / strength
    repaired = program.layout.project_dual(z)
    pull = float(np.abs(program.A.T @ repaired).sum())
    left = -float(program.b @ repaired)
    radius = 0.0 if left <= 0 else (left / pull if pull > 0 else np.inf)
    return Certificate("infeasible", _largest(program.A.T @ z)[0], program.layout.distance_dual(z), radius, True)


def unboundedness(program: ConeProgram, x: Array) -> Certificate:
    """Check ``P x = 0``, ``-A x in K``, ``c'x < 0``, scaled to ``c'x = -1``; feasibility is another matter."""
    strength = -float(program.c @ x)
    if not strength > 0.0:
        return Certificate("unbounded", np.inf, np.inf, np.nan, False)
    x = x / strength
    return Certificate("unbounded", _largest(program.P @ x)[0], program.layout.distance(-(program.A @ x)), np.nan, True)
