"""Proofs that a cone program has no solution: checked by substitution, and found here rather than taken from a solver.

That a program is infeasible, or unbounded where it is feasible, is itself a convex question whose answer can be checked
by substitution. CLARABEL, which takes every cone, solves it; only the check is believed.

============  ==============================================================  =========================================
question      program                                                         what it proves
============  ==============================================================  =========================================
infeasible?   minimise ``|v|^2 / 2`` over ``A x + s - v = b``, ``s in K``     ``v in K*``, ``A'v = 0``, ``b'v = -|v|^2``
unbounded?    minimise ``|d|^2 / 2`` over ``c'd = -1``, ``P d = 0``,          ``d`` improves any feasible point without
              ``-A d in K``                                                   end
roomy?        the first with ``b`` moved inwards by `ROOM`: ``v = 0``         a feasible point, and room around it
============  ==============================================================  =========================================

An infeasible or unbounded program need not have such a proof: maximising ``log x`` has no ray.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from cvxpriv.kkt.conic.bounds import lower_bound
from cvxpriv.kkt.conic.data import ConeData
from cvxpriv.kkt.conic.program import ConeProgram, solved_by_clarabel
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
    repaired = program.layout.project(z, dual=True)
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


PROOF = 1e-8
"""Largest distance from exact, at strength one, of a certificate that is found here."""
ROOM = 1e-6
"""Least slack of the constraints, relative to the right-hand side, that refutes a claim of infeasibility."""
TOLERANCES = (1e-12, 1e-10)


def infeasibility_proof(compiled: ConeData) -> Certificate | None:
    """Return an exact certificate that a program is infeasible; None where none is found.

    `compiled`: The program, compiled for CLARABEL (`cvxpriv.kkt.conic.data.extract`).
    """
    program = ConeProgram(**compiled.fields)
    size = program.c.size
    anything = sp.csc_array((size, size))
    for tolerance in TOLERANCES:
        # The least misfit of a program that is infeasible by a hair vanishes in rounding; CLARABEL's own certificate,
        # scaled as it likes, does not.
        _, own = solved_by_clarabel(anything, program.A, program.b, program.layout, tolerance)
        for z in (_misfit(compiled, program.b, tolerance), own):
            if z is not None and (proof := infeasibility(program, z)).exact:
                return proof
    return None


def ray(compiled: ConeData) -> Array | None:
    """Return a direction in which the objective improves without end, to `PROOF`; None where none is found.

    It belongs to the compiled program; `cvxpriv.kkt.rays` follows it in the problem as written.

    `compiled`: Compiled for CLARABEL.
    """
    program = ConeProgram(**compiled.fields)
    flat = program.P[np.unique(program.P.indices)]
    A = sp.vstack([sp.csr_array(program.c[None]), flat, program.A], format="csc")
    b = np.concatenate([[-1.0], np.zeros(flat.shape[0] + program.b.size)])
    layout = replace(program.layout, zero=program.layout.zero + 1 + flat.shape[0])
    for tolerance in TOLERANCES:
        d, _ = solved_by_clarabel(sp.eye_array(program.c.size, format="csc"), A, b, layout, tolerance)
        if d is not None and unboundedness(program, d).holds(PROOF):
            return d
    return None


def roomy(compiled: ConeData, *, curved: bool = False) -> bool:
    """Return whether some point meets all equalities and, by `ROOM` or more, all other constraints.

    `compiled`: The program, compiled for CLARABEL.
    `curved`: Ask for room in curved cones alone: that makes multipliers finite.
    """
    layout = compiled.fields["layout"]
    b = compiled.fields["b"]
    room = ROOM * (1.0 + float(np.abs(b).max(initial=0.0)))
    inside = layout.interior()
    inside[: layout.zero + layout.nonneg * curved] = 0.0
    misfit = _misfit(compiled, b - room * inside, TOLERANCES[-1])
    return misfit is not None and float(np.abs(misfit).max(initial=0.0)) <= 1e-2 * room


def _misfit(compiled: ConeData, b: Array, tolerance: float) -> Array | None:
    """Return the least ``A x + s - b``, ``s`` in the cone."""
    A, layout = compiled.fields["A"], compiled.fields["layout"]
    rows, size = A.shape
    P = sp.block_diag([sp.csc_array((size, size)), sp.eye_array(rows)], format="csc")
    point, _ = solved_by_clarabel(P, sp.hstack([A, -sp.eye_array(rows)], format="csc"), b, layout, tolerance)
    return None if point is None else point[size:]
