"""A lower bound on a cone program's optimum that holds whatever the solver did.

For any ``z`` in ``K*`` and any ``x0``, weak duality and the convexity of the quadratic give, for every feasible x::

    objective(x) >= -b'z - x0'P x0 / 2 + d + rho'x,       rho = P x0 + A'z + c

so a bound needs ``z`` in ``K*`` exactly, and each ``rho_j`` zero or the variable ``x_j`` bounded on the side it pushes
to. Bounds are read off the linear rows and propagated through them. For the other columns ``z`` is repaired by
alternating projections, and what is left by a step along directions that keep ``A'z`` and lead into ``K*``.

"Exactly" means up to the rounding of the sums: `ROUNDING` units in the last place of their terms. What rounding leaves
is worth its product with the entries of a feasible point: where that could matter within `REACH` times the size of the
solver's point, or of points with the bound's value, there is no certificate.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import SuperLU, splu

from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.numerics.arrays import Array, Flags

EPSILON = float(np.finfo(float).eps)
ROUNDING = 16.0 * EPSILON
NOTHING = 1e-30  # a miss that moves no bound by more than 1e-10 while the variables stay below 1e20
ALTERNATIONS = 60  # alternating projections gain slowly after that; the step inwards does the rest
PATIENCE, STALLED = 20, 0.7  # so many of them have to bring the distance down to this fraction
REACH = 1e3
NEARBY = 10.0  # points are near whose entries are at most so many times one plus the solver's own
DUST = 1e-6  # of the bound, relative to max(1, |bound|): what rounding may be worth at most
SWEEPS = 8  # rounds of bound propagation
DOUBLINGS = 50
TINY = 1e-150
FACE = 1e-6  # how near to its face, relative, a dual of the exponential cone is tried on it
DENSE = 400  # columns up to which eigenvalues are computed, which takes a tenth of a second


@dataclass(frozen=True)
class LowerBound:
    """A certified lower bound of the minimisation, or None and the reason.

    ``near`` is a lower bound over the points that are `NEARBY` only, where there is none over all; None in exponential
    and power cones.
    """

    value: float | None
    reason: str
    near: float | None = None


def lower_bound(program: ConeProgram, x: Array, z: Array, bounds: tuple[Array, Array] | None = None) -> LowerBound:
    """Return a certified lower bound from a dual ``z`` (and a point ``x``, which only a quadratic objective uses).

    `x`, `z`, (n,) and (m,): Any points; better ones give tighter bounds.
    `bounds`, (lower, upper): Bounds on the columns that hold for every point of interest.
    """
    if not (np.isfinite(z).all() and np.isfinite(x).all()):
        return LowerBound(None, "no certificate: the dual or the point is not finite")
    if reason := not_convex(program.P):
        return LowerBound(None, f"no certificate: {reason}")
    limits = variable_bounds(program, bounds)
    inside = program.layout.project_dual(z)
    found = _bound(program, x, inside, limits, np.zeros(z.size, dtype=bool))
    if found.value is None:
        flat, fixed = _on_face(program, inside)
        if fixed.any():
            again = _bound(program, x, flat, limits, fixed)
            found = found if again.value is None else again
    if found.value is None and not (program.P.nnz or program.c.any()):
        return LowerBound(float(program.d), "the objective is constant")
    return found if found.value is not None else replace(found, near=_near_bound(program, x, inside, limits))


def _near_bound(program: ConeProgram, x: Array, z: Array, limits: tuple[Array, Array]) -> float | None:
    """Return the bound of a dual in ``K*`` over nearby points, at whose entries its dual equation is priced."""
    if any(family.kind in ("exp", "power") for family in program.layout.families):
        return None
    rho, size = program.P @ x + program.c + program.transposed @ z, NEARBY * (1.0 + np.abs(x))
    reach = np.where(rho > 0, np.maximum(limits[0], -size), np.minimum(limits[1], size))
    quadratic, _, pull = program.sizes
    noise = (quadratic @ np.abs(x) + np.abs(program.c) + pull @ np.abs(z)) @ size + np.abs(program.b) @ np.abs(z)
    return program.dual_value(x, z) + float(rho @ reach) - ROUNDING * float(noise)


def _bound(program: ConeProgram, x: Array, z: Array, limits: tuple[Array, Array], fixed: Flags) -> LowerBound:
    """Return the bound of a dual in ``K*`` whose fixed entries stay as they are."""
    low, high = limits
    x0, repaired = _repair(program, x, z, ~(np.isfinite(low) & np.isfinite(high)), fixed)
    tilt = program.P @ x0 + program.c
    repaired, short = _lifted(program, repaired)
    if short:
        return LowerBound(None, f"no certificate: the dual of {short} misses its cone by more than rounding")
    distance = program.layout.block_distances(repaired, dual=True)
    if (distance > _room(program.layout, repaired)).any():
        name = program.layout.names[int(distance.argmax())]
        return LowerBound(None, f"no certificate: the dual of {name} misses its cone by {distance.max():.1e}")
    rho = _cleaned(program, x0, repaired, _ordinary(program))
    reach = np.where(rho > 0, low, high)
    pushed = rho != 0
    loose = pushed & ~np.isfinite(reach)
    if loose.any():
        worst = int(np.where(loose, np.abs(rho), 0.0).argmax())
        name = program.column_name(worst)
        return LowerBound(
            None,
            f"no certificate: the dual equality of {name} misses by {abs(rho[worst]):.1e}, and {name} has no bound",
        )
    value = program.dual_value(x0, repaired) + float(rho[pushed] @ reach[pushed])
    # Points that come near the bound have entries of this size, and those of the solver may be larger.
    size = max(abs(value - program.d) / (float(np.abs(program.c).sum()) or np.inf), float(np.abs(x).max(initial=0.0)))
    room = REACH * (1.0 + size)
    left = np.where(pushed, 0.0, tilt + program.A.T @ repaired)
    entries = np.minimum(np.maximum(-low, high), room)
    dust = float(np.abs(left) @ entries + distance @ program.block_sizes(entries))
    # Where the terms of b'z cancel, its rounding alone makes a proof of any size: z = (1e16, 1e16) of 3 <= x <= 3.
    dust += EPSILON * float(np.abs(program.b) @ np.abs(repaired))
    if dust > DUST * max(program.unit, abs(value)):
        return LowerBound(None, f"no certificate: rounding in the dual is worth {dust:.1e} at entries of {room:.0e}")
    return LowerBound(value, "from the dual, repaired")


def not_convex(P: sp.csc_array, rounding: float = ROUNDING) -> str:
    """Return why a quadratic form is not positive semidefinite, or ``""``, up to the rounding of its own entries.

    The factors of ``P`` with its diagonal raised by rounding have a negative pivot exactly if it is not.
    """
    used = np.unique(P.indices)
    if not used.size:
        return ""
    part = sp.csc_matrix(P[:, used][used])
    size = float(np.abs(part.data).max())
    ridge = rounding * size * max(1.0, np.sqrt(used.size))
    if used.size <= DENSE:
        least = float(np.linalg.eigvalsh(part.toarray())[0])
        return "" if least >= -ridge else f"the quadratic form has the eigenvalue {least:.1e}"
    try:
        factors = splu(
            part + ridge * sp.eye_array(used.size, format="csc"),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError as error:  # a pivot of exactly zero
        return f"the quadratic form could not be factored ({error})"
    symmetric = np.array_equal(factors.perm_r, factors.perm_c)
    negative = bool((factors.U.diagonal() < 0.0).any())
    return "the quadratic form is not convex" if negative or not symmetric else ""


def _lifted(program: ConeProgram, z: Array) -> tuple[Array, str]:
    """Return exponential duals made members to the last digit, and the name of one that cannot be.

    A distance says little there: with w = 1e-14 a point is 1e-15 from the dual cone, and its bound is off by a tenth.
    Members have v >= u (1 + log w - log(-u)), which is w >= -u exp(v/u - 1). Where w or v multiplies a constant,
    raising it costs the bound what it is worth and touches no equation.
    """
    z = z.copy()
    constant = np.diff(sp.csr_array(program.A).indptr) == 0
    for family in program.layout.families:
        if family.kind != "exp":
            continue
        u, v, w = z[family.rows].T
        inside, (_, free_v, free_w) = u < 0, constant[family.rows].T
        with np.errstate(all="ignore"):
            least_w = np.where(inside & free_w, np.nextafter(-u * np.exp(v / u - 1.0), np.inf), w)
            w = np.where(np.isfinite(least_w), np.maximum(w, least_w), w)
            logs = np.log(w) - np.log(-u)
            least_v = np.where(inside, np.nextafter(u * (1.0 + logs), np.inf), v)
            noise = ROUNDING * (np.abs(v) + np.abs(u) * (2.0 + np.abs(logs)))
            raised = free_v & np.isfinite(least_v)
            lost = inside & ~raised & ~(least_v - v <= noise)
        z[family.rows[:, 1]], z[family.rows[:, 2]] = np.where(raised, np.maximum(v, least_v), v), w
        if lost.any():
            return z, f"exp[{family.numbers[int(np.argmax(lost))]}]"
    return z, ""


def _on_face(program: ConeProgram, z: Array) -> tuple[Array, Flags]:
    """Return the dual with exponential blocks near the face ``u = 0`` moved onto it, and those entries.

    A proof that needs ``u = 0`` comes with ``u = -1e-9``, and projections bring it to -1e-37, but never to nothing.
    """
    z, fixed = z.copy(), np.zeros(z.size, dtype=bool)
    for family in program.layout.families:
        if family.kind == "exp":
            u, v, w = z[family.rows].T
            near = (np.abs(u) <= FACE * (np.abs(v) + np.abs(w))) & (v >= 0.0) & (w >= 0.0)
            z[family.rows[near, 0]] = 0.0
            fixed[family.rows[near, 0]] = True
    return z, fixed


def _ordinary(program: ConeProgram) -> Flags:
    """Return the columns in no row of an exponential or power cone: there a dual of 1e-34 may be worth 77."""
    rows = np.zeros(program.layout.size, dtype=bool)
    for family in program.layout.families:
        if family.kind in ("exp", "power"):
            rows[family.rows] = True
    return np.asarray(program.sizes[2] @ rows.astype(float) == 0.0)


def _room(layout: ConeLayout, z: Array) -> Array:
    """Return the effect that rounding alone can have on a distance in each block."""
    return ROUNDING * np.maximum(1.0, layout.block_norms(z))


def _cleaned(program: ConeProgram, x: Array, z: Array, ordinary: Flags) -> Array:
    """Return ``P x + c + A'z`` with entries that are rounding of their own sum set to zero.

    `ordinary`, (n,): The columns of `_ordinary`.
    """
    quadratic, _, pull = program.sizes
    rho = program.P @ x + program.c + program.transposed @ z
    terms = quadratic @ np.abs(x) + np.abs(program.c) + pull @ np.abs(z)
    noise = ROUNDING * terms + NOTHING * ordinary
    return np.where(np.abs(rho) <= noise, 0.0, rho)


def variable_bounds(program: ConeProgram, known: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
    """Return bounds of each column that the equality and inequality rows imply, by propagation.

    Returns `lower`, `upper`, (n,): Infinite where no bound is known.
    """
    count = program.c.size
    low, high = (np.full(count, -np.inf), np.full(count, np.inf)) if known is None else (known[0] + 0.0, known[1] + 0.0)
    layout = program.layout
    linear = sp.csr_array(program.A[: layout.zero + layout.nonneg])
    # Every row says a'x <= b; equality rows say it in both directions.
    rows = sp.vstack([linear, -linear[: layout.zero]]).tocoo()
    side = np.concatenate([program.b[: linear.shape[0]], -program.b[: layout.zero]])
    i, j, a = rows.coords[0], rows.coords[1], rows.data
    i, j, a = i[a != 0], j[a != 0], a[a != 0]
    for _ in range(SWEEPS):
        least = np.where(a > 0, a * low[j], a * high[j])
        open_ended = np.isinf(least)
        finite = np.where(open_ended, 0.0, least)
        total, terms = (np.bincount(i, part, minlength=side.size) for part in (finite, np.abs(finite)))
        opens = np.bincount(i, open_ended, minlength=side.size)
        # The others' least activity is finite if no other entry is open. All terms are in its rounding, its own too.
        others = total[i] - finite
        usable = opens[i] - open_ended == 0
        limit = np.where(usable, (side[i] - others) / a, np.where(a > 0, np.inf, -np.inf))
        slack = ROUNDING * (np.abs(side[i]) + terms[i]) / np.abs(a)
        before = low.copy(), high.copy()
        np.minimum.at(high, j[a > 0], (limit + slack)[a > 0])
        np.maximum.at(low, j[a < 0], (limit - slack)[a < 0])
        if np.array_equal(before[0], low) and np.array_equal(before[1], high):
            break
    return low, high


def _repair(program: ConeProgram, x: Array, z: Array, free: Flags, fixed: Flags) -> tuple[Array, Array]:
    """Move ``x`` and ``z`` so that ``P x + c + A'z`` vanishes on the ``free`` columns with ``z`` in ``K*``, if it can.

    The point of a quadratic is as free as an equality's multiplier: both bound whatever they are.
    """
    layout, used = program.layout, np.unique(program.P.indices)
    kept = np.flatnonzero(free & ((np.diff(program.A.indptr) > 0) | (np.diff(program.P.indptr) > 0)))
    if kept.size == 0:
        return x, z
    rows = layout.size
    weights = _weights(layout, z, x[used])
    moving = weights * np.append(~fixed, np.ones(used.size, dtype=bool))
    A = sp.csc_array(sp.vstack([program.A[:, kept], program.P[used][:, kept]], format="csc"))
    target = -program.c[kept] - program.A[:, kept].T @ np.where(fixed, z, 0.0)
    free_part = sp.csc_array(sp.diags_array(moving) @ A)
    scale = 1.0 / np.maximum(np.sqrt(np.asarray(free_part.power(2).sum(axis=0)).ravel()), TINY)
    factor = _factored(sp.csc_array(free_part @ sp.diags_array(scale)))
    held = np.concatenate([~fixed, np.ones(used.size, dtype=bool)]).astype(float)
    ordinary, pull = _ordinary(program), sp.csr_array(A.T)

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
        if not _cleaned(program, *split(v), ordinary)[kept].any():
            return split(v)
        moved = onto_equalities(v, target)
        nearest = layout.project_dual(moved[:rows])
        distance = layout.block_norms(moved[:rows] - nearest)
        if (distance <= _room(layout, moved[:rows])).all():
            return split(moved)
        v = np.concatenate([nearest, moved[rows:]])
        if k % PATIENCE == PATIENCE - 1:
            if distance.max() > STALLED * farthest:
                break
            farthest = float(distance.max())
    inside = np.concatenate([layout.interior(), np.zeros(used.size)])
    inwards = onto_equalities(inside, np.zeros(kept.size))
    return split(_step_inwards(layout, onto_equalities(v, target), inwards, A))


def _weights(layout: ConeLayout, z: Array, x: Array) -> Array:
    """Return how far each entry may go: by its own size, at least by one, all of a cone alike."""
    if not z.size:
        return np.maximum(np.abs(x), 1.0)
    blocks = np.maximum.reduceat(np.abs(z), layout.starts)
    spread: Array = np.repeat(blocks, np.diff(np.append(layout.starts, z.size)))
    return np.asarray(np.maximum(np.append(spread, np.abs(x)), 1.0))


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
    distance, room = layout.block_distances(v[:rows], dual=True), _room(layout, v[:rows])
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
        distance, room = layout.block_distances(end[:rows], dual=True), _room(layout, end[:rows])
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
