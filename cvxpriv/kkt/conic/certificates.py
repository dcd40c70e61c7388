"""Proofs that a cone program has no solution, checked by substitution."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from cvxpriv.kkt.conic.bounds import lower_bound
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.numerics.arrays import Array


@dataclass(frozen=True)
class Certificate:
    """A proof of infeasibility or unboundedness, normalised to strength one and checked.

    `kind`: {"infeasible", "unbounded"}.
    `equation`: Largest entry of ``A'z`` (infeasible), or of ``P x`` (unbounded).
    `membership`: Distance of ``z`` to ``K*``, or of ``-A x`` to ``K``.
    `radius`: Size of points that an imperfect proof of infeasibility, with ``z`` projected on ``K*``, still excludes:
    no feasible point has all entries below ``radius``. Zero for none, NaN for unboundedness.
    `valid`: Whether the claimed sign holds at all: ``b'z < 0``, or ``c'x < 0``.
    `exact`: Infeasible: repaired, it proves that there is no feasible point at all, to rounding; a proof that is off by
    1e-8 says nothing of points with entries of 1e8.
    """

    kind: str
    equation: float
    membership: float
    radius: float
    valid: bool
    exact: bool = False

    @property
    def off(self) -> float:
        """Distance from a proof, at strength one."""
        return max(self.equation, self.membership)

    def holds(self, tolerance: float = 1e-6) -> bool:
        """Return whether the certificate is right to ``tolerance``, at strength one."""
        return self.valid and self.off <= tolerance


def infeasibility(program: ConeProgram, z: Array) -> Certificate:
    """Check ``z in K*``, ``A'z = 0``, ``b'z < 0``, scaled to ``b'z = -1``.

    It is exact if the problem without an objective, whose optimum is zero or none, has a certified bound above zero.
    """
    strength = -float(program.b @ z)
    if not strength > 0.0:
        return Certificate("infeasible", np.inf, np.inf, 0.0, False)
    z = z / strength
    repaired = program.layout.project_dual(z)
    pull = float(np.abs(program.A.T @ repaired).sum())
    left = -float(program.b @ repaired)
    radius = 0.0 if left <= 0 else (left / pull if pull > 0 else np.inf)
    size = program.c.size
    bare = replace(program, P=sp.csc_array((size, size)), c=np.zeros(size), d=0.0)
    bound = lower_bound(bare, np.full(size, _least_size(program)), z).value
    equation = float(np.abs(program.A.T @ z).max(initial=0.0))
    exact = bound is not None and bound > 0.5
    return Certificate("infeasible", equation, program.layout.distance_dual(z), radius, True, exact)


def _least_size(program: ConeProgram) -> float:
    """Return the size that some entry of a feasible point must have, as single rows show: rounding counts there."""
    rows, layout = np.asarray(program.sizes[1].sum(axis=1)).ravel(), program.layout
    wanted = np.abs(program.b)
    inequalities = slice(layout.zero, layout.zero + layout.nonneg)
    wanted[inequalities] = np.maximum(-program.b[inequalities], 0.0)
    return float(np.max(wanted[rows > 0] / rows[rows > 0], initial=0.0))


def unboundedness(program: ConeProgram, x: Array) -> Certificate:
    """Check ``P x = 0``, ``-A x in K``, ``c'x < 0``, scaled to ``c'x = -1``; feasibility is another matter.

    This holds for the program as compiled, to some digits; `cvxpriv.kkt.rays` tests the direction in the problem as
    written.
    """
    strength = -float(program.c @ x)
    if not strength > 0.0:
        return Certificate("unbounded", np.inf, np.inf, np.nan, False)
    x = x / strength
    equation = float(np.abs(program.P @ x).max(initial=0.0))
    return Certificate("unbounded", equation, program.layout.distance(-(program.A @ x)), np.nan, True)
