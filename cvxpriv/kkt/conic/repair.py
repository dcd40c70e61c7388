"""A dual moved so that its equation holds on the columns without bounds, and it stays in the dual cone.

Alternating projections come near; what is left is made up by a step along directions that keep ``A'z`` and lead inside.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import SuperLU, splu

from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.numerics.arrays import Array, Flags

ROUNDING = 16.0 * float(np.finfo(float).eps)
NOTHING = 1e-30  # a miss that moves no bound by more than 1e-10 while the variables stay below 1e20
ALTERNATIONS = 60  # alternating projections gain slowly after that; the step inwards does the rest
PATIENCE, STALLED = 20, 0.7  # so many of them have to bring the distance down to this fraction
DOUBLINGS = 50
TINY = 1e-150


def ordinary(program: ConeProgram) -> Flags:
    """Return the columns in no row of an exponential or power cone: there a dual of 1e-34 may be worth 77."""
    rows = np.zeros(program.layout.size, dtype=bool)
    for family in program.layout.families:
        if family.kind in ("exp", "power"):
            rows[family.rows] = True
    return np.asarray(program.sizes[2] @ rows.astype(float) == 0.0)


def rounding_room(layout: ConeLayout, z: Array) -> Array:
    """Return the effect that rounding alone can have on a distance in each block."""
    return ROUNDING * np.maximum(1.0, layout.block_norms(z))


def cleaned(program: ConeProgram, x: Array, z: Array, ordinary: Flags) -> Array:
    """Return ``P x + c + A'z`` with entries that are rounding of their own sum set to zero.

    `ordinary`, (n,): The columns of `ordinary`.
    """
    quadratic, _, pull = program.sizes
    rho = program.P @ x + program.c + program.transposed @ z
    terms = quadratic @ np.abs(x) + np.abs(program.c) + pull @ np.abs(z)
    noise = ROUNDING * terms + NOTHING * ordinary
    return np.where(np.abs(rho) <= noise, 0.0, rho)


def repaired_dual(program: ConeProgram, x: Array, z: Array, free: Flags, fixed: Flags) -> tuple[Array, Array]:
    """Move ``x`` and ``z`` so that ``P x + c + A'z`` vanishes on the ``free`` columns with ``z`` in ``K*``, if it can.

    The point of a quadratic is as free as an equality's multiplier: both bound whatever they are.
    """
    layout, used = program.layout, np.unique(program.P.indices)
    kept = np.flatnonzero(free & ((np.diff(program.A.indptr) > 0) | (np.diff(program.P.indptr) > 0)))
    if kept.size == 0:
        return x, z
    rows = layout.size
    blocks = np.maximum.reduceat(np.abs(z), layout.starts) if z.size else z
    # How far each entry may go: by its own size, at least by one, all of a cone alike.
    weights = np.maximum(np.append(layout.spread(blocks), np.abs(x[used])), 1.0)
    moving = weights * np.append(~fixed, np.ones(used.size, dtype=bool))
    A = sp.csc_array(sp.vstack([program.A[:, kept], program.P[used][:, kept]], format="csc"))
    target = -program.c[kept] - program.A[:, kept].T @ np.where(fixed, z, 0.0)
    free_part = sp.csc_array(sp.diags_array(moving) @ A)
    scale = 1.0 / np.maximum(np.sqrt(np.asarray(free_part.power(2).sum(axis=0)).ravel()), TINY)
    factor = _factored(sp.csc_array(free_part @ sp.diags_array(scale)))
    held = np.concatenate([~fixed, np.ones(used.size, dtype=bool)]).astype(float)
    plain, pull = ordinary(program), sp.csr_array(A.T)

    def onto_equalities(v: Array, goal: Array) -> Array:
        for _ in range(3):  # refinement undoes the ridge
            off = np.concatenate([np.zeros(v.size), scale * (pull @ (held * v) - goal)])
            v = v - moving * factor.solve(off)[: v.size]
        return v

    def split(v: Array) -> tuple[Array, Array]:
        moved = x.copy()
        moved[used] = v[rows:]
        return moved, v[:rows]

    v, farthest = np.concatenate([z, x[used]]), np.inf
    for k in range(ALTERNATIONS):
        if not cleaned(program, *split(v), plain)[kept].any():
            return split(v)
        moved = onto_equalities(v, target)
        nearest = layout.project(moved[:rows], dual=True)
        distance = layout.block_norms(moved[:rows] - nearest)
        if (distance <= rounding_room(layout, moved[:rows])).all():
            return split(moved)
        v = np.concatenate([nearest, moved[rows:]])
        if k % PATIENCE == PATIENCE - 1:
            if distance.max() > STALLED * farthest:
                break
            farthest = float(distance.max())
    inside = np.concatenate([layout.interior(), np.zeros(used.size)])
    inwards = onto_equalities(inside, np.zeros(kept.size))
    return split(_step_inwards(layout, onto_equalities(v, target), inwards, A))


def _factored(A: sp.csc_array) -> SuperLU:
    """Return the factors of [[I, A], [A', -ridge]], whose solution for (0, r) begins with A (A'A + ridge)^-1 r.

    A'A itself is full as soon as one row of A is, such as a sum over all variables.
    """
    ridge = 1e-12 * max(1.0, float(A.power(2).sum(axis=0).max()))
    rows, columns = A.shape
    i, j, size = A.indices, rows + np.repeat(np.arange(columns), np.diff(A.indptr)), np.arange(rows + columns)
    values = np.concatenate([np.ones(rows), np.full(columns, -ridge), A.data, A.data])
    system = sp.csc_matrix((values, (np.concatenate([size, i, j]), np.concatenate([size, j, i]))))
    return splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})


def _step_inwards(layout: ConeLayout, v: Array, direction: Array, A: sp.csc_array) -> Array:
    """Return ``v`` plus the least multiple of ``direction`` (block by block, where allowed) inside ``K*``, or ``v``.

    The first entries of both are a dual, the others are free.
    """
    rows = layout.size
    block = np.repeat(np.arange(len(layout.names)), np.diff(np.append(layout.starts, rows)))
    block = np.concatenate([block, np.full(v.size - rows, len(layout.names))])
    parts = sp.csr_array((direction, (np.arange(block.size), block)))
    pull = sp.csr_array(A.T @ parts)
    separable = float(abs(pull).max()) <= ROUNDING * max(1.0, float(np.abs(direction).max()))
    reach = layout.block_norms(direction[:rows])
    distance, room = layout.block_distances(v[:rows], dual=True), rounding_room(layout, v[:rows])
    stepping = np.append(distance > room, False)
    if not stepping.any():
        return v
    if not separable:
        stepping[:] = True
    powers = np.arange(-DOUBLINGS, DOUBLINGS, 2).astype(float)
    level = np.zeros(stepping.size, dtype=int)
    while level.max() < powers.size:
        multiple = np.where(stepping, 2.0 ** powers[level], 0.0)
        end, before = v + multiple[block] * direction, distance
        distance, room = layout.block_distances(end[:rows], dual=True), rounding_room(layout, end[:rows])
        short = distance > room
        if not short.any():
            return end
        # A distance is convex along a line: one that grows, and was not small enough before, never is later.
        if (short & (distance > before + room)).any():
            return v
        # Nor does it shrink faster than the point moves; half of what that asks for leaves room for rounding.
        needed = np.where(short, multiple[:-1] + 0.5 * (distance - room) / np.maximum(reach, TINY), 0.0)
        further = np.append(np.where(short, np.searchsorted(powers, np.log2(np.maximum(needed, TINY))), 0), 0)
        level = np.maximum(level + np.append(short, False), further)
        if not separable:
            level[:] = level.max()
    return v
