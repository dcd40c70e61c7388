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

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import SuperLU, splu

from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.conic.cones._types import Array, Mask
from cvxpriv.kkt.conic.program import ConeProgram

ROUNDING = 16.0 * float(np.finfo(float).eps)
NOTHING = 1e-30  # a miss that moves no bound by more than 1e-10 while the variables stay below 1e20
ALTERNATIONS = 60  # alternating projections gain slowly after that; the step inwards does the rest
REACH = 1e3
DUST = 1e-6  # of the bound, relative to max(1, |bound|): what rounding may be worth at most
SWEEPS = 8  # rounds of bound propagation
DOUBLINGS = 60


@dataclass(frozen=True)
class LowerBound:
    """A certified lower bound of the minimisation, or None and the reason.

    ``repair`` is the largest change made to an entry of the solver's dual.
    """

    value: float | None
    reason: str
    repair: float = 0.0


def lower_bound(program: ConeProgram, x: Array, z: Array, bounds: tuple[Array, Array] | None = None) -> LowerBound:
    """Certified lower bound from a dual ``z`` (and a point ``x``, which only a quadratic objective uses).

    Parameters
    ----------
    x, z : array (n,), (m,)
        Any points; the better, the tighter.
    bounds : (lower, upper), optional
        Bounds on the columns that the caller knows to hold for every point of interest.
    """
    if not (np.isfinite(z).all() and np.isfinite(x).all()):
        return LowerBound(None, "no certificate: the dual or the point is not finite")
    low, high = variable_bounds(program, bounds)
    tilt = program.P @ x + program.c
    repaired = _repair(program, tilt, program.layout.project_dual(z), ~(np.isfinite(low) & np.isfinite(high)))
    repaired, short = _lifted(program, repaired)
    if short:
        return LowerBound(None, f"no certificate: the dual of {short} misses its cone by more than rounding")
    distance = program.layout.block_distances(repaired, dual=True)
    if (distance > _room(program.layout, repaired)).any():
        name = program.layout.names[int(distance.argmax())]
        return LowerBound(None, f"no certificate: the dual of {name} misses its cone by {distance.max():.1e}")
    rho = _cleaned(program, tilt, repaired)
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
    value = program.dual_value(x, repaired) + float(rho[pushed] @ reach[pushed])
    # Points that come near the bound have entries of this size, and those of the solver may be larger.
    size = max(abs(value - program.d) / (float(np.abs(program.c).sum()) or np.inf), float(np.abs(x).max(initial=0.0)))
    room = REACH * (1.0 + size)
    left = np.where(pushed, 0.0, tilt + program.A.T @ repaired)
    dust = float(np.abs(left) @ np.minimum(np.maximum(-low, high), room)) + room * float(distance.sum())
    if dust > DUST * max(1.0, abs(value)):
        return LowerBound(None, f"no certificate: rounding in the dual is worth {dust:.1e} at entries of {room:.0e}")
    return LowerBound(value, "from the dual, repaired", float(np.abs(repaired - z).max(initial=0.0)))


def _lifted(program: ConeProgram, z: Array) -> tuple[Array, str]:
    """Exponential duals made members to the last digit, and the name of one that cannot be.

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


def _logarithmic(program: ConeProgram) -> Mask:
    """The columns that stand in a row of an exponential or power cone: there a dual of 1e-34 is worth a bound of 77."""
    rows = np.zeros(program.layout.size, dtype=bool)
    for family in program.layout.families:
        if family.kind in ("exp", "power"):
            rows[family.rows] = True
    return np.asarray(abs(program.A).T @ rows.astype(float) > 0.0)


def _room(layout: ConeLayout, z: Array) -> Array:
    """What rounding alone can do to a distance in each block."""
    return ROUNDING * np.maximum(1.0, layout.block_norms(z))


def _cleaned(program: ConeProgram, tilt: Array, z: Array) -> Array:
    """``tilt + A'z`` with entries that are rounding of their own sum set to zero."""
    rho = tilt + program.A.T @ z
    noise = ROUNDING * (np.abs(tilt) + abs(program.A).T @ np.abs(z)) + NOTHING * ~_logarithmic(program)
    return np.where(np.abs(rho) <= noise, 0.0, rho)


def variable_bounds(program: ConeProgram, known: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
    """Bounds of each column that the equality and inequality rows imply, by propagation.

    Returns
    -------
    lower, upper : array (n,)
        Infinite where nothing is known.
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
        total = np.bincount(i, np.where(open_ended, 0.0, least), minlength=side.size)
        opens = np.bincount(i, open_ended, minlength=side.size)
        # The others' least activity is finite if no other entry is open.
        others = np.where(open_ended, total[i], total[i] - np.where(open_ended, 0.0, least))
        usable = opens[i] - open_ended == 0
        limit = np.where(usable, (side[i] - others) / a, np.where(a > 0, np.inf, -np.inf))
        slack = ROUNDING * (np.abs(side[i]) + np.abs(others)) / np.abs(a)
        before = low.copy(), high.copy()
        np.minimum.at(high, j[a > 0], (limit + slack)[a > 0])
        np.maximum.at(low, j[a < 0], (limit - slack)[a < 0])
        if np.array_equal(before[0], low) and np.array_equal(before[1], high):
            break
    return low, high


def _repair(program: ConeProgram, tilt: Array, z: Array, free: Mask) -> Array:
    """Move ``z`` so that ``tilt + A'z`` vanishes on the ``free`` columns while ``z`` stays in ``K*``, if possible."""
    layout = program.layout
    kept = np.flatnonzero(free & (np.diff(program.A.indptr) > 0))
    if kept.size == 0:
        return z
    A = sp.csc_array(program.A[:, kept])
    factor = _factored(A)

    def onto_equalities(v: Array, target: Array) -> Array:
        for _ in range(3):  # refinement undoes the ridge
            off = np.concatenate([np.zeros(v.size), A.T @ v - target])
            v = v - factor.solve(off)[: v.size]
        return v

    target = -tilt[kept]
    for _ in range(ALTERNATIONS):
        if not _cleaned(program, tilt, z)[kept].any():
            return z
        moved = onto_equalities(z, target)
        if (layout.block_distances(moved, dual=True) <= _room(layout, moved)).all():
            return moved
        z = layout.project_dual(moved)
    inwards = onto_equalities(layout.interior(), np.zeros(kept.size))
    return _step_inwards(layout, onto_equalities(z, target), inwards, A)


def _factored(A: sp.csc_array) -> SuperLU:
    """The factors of [[I, A], [A', -ridge]], whose solution for (0, r) begins with A (A'A + ridge)^-1 r.

    A'A itself is full as soon as one row of A is, such as a sum over all variables.
    """
    ridge = 1e-12 * max(1.0, float(A.power(2).sum(axis=0).max()))
    rows, columns = A.shape
    system = sp.block_array([[sp.eye_array(rows), A], [A.T, -ridge * sp.eye_array(columns)]], format="csc")
    return splu(
        sp.csc_matrix(system), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )


def _step_inwards(layout: ConeLayout, z: Array, direction: Array, A: sp.csc_array) -> Array:
    """``z`` plus the least multiple of ``direction`` (block by block, where allowed) inside ``K*``; ``z`` if none."""
    block = np.repeat(np.arange(len(layout.names)), np.diff(np.append(layout.starts, layout.size)))
    parts = sp.csr_array((direction, (np.arange(block.size), block)))
    pull = sp.csr_array(A.T @ parts)
    separable = float(abs(pull).max()) <= ROUNDING * max(1.0, float(np.abs(direction).max()))
    moved = z
    for power in range(-DOUBLINGS, DOUBLINGS):
        outside = layout.block_distances(moved, dual=True) > _room(layout, moved)
        if not outside.any():
            return moved
        stepping = outside[block] if separable else np.ones(z.size, dtype=bool)
        moved = np.where(stepping, z + 2.0**power * direction, moved)
    return z
