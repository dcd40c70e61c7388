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
from scipy.sparse.linalg import splu

from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.kkt.conic.repair import ROUNDING, TINY, cleaned, ordinary, repaired_dual, rounding_room
from cvxpriv.numerics.arrays import Array, Flags

EPSILON = float(np.finfo(float).eps)
REACH = 1e3
NEARBY = 10.0  # points are near whose entries are at most so many times one plus the solver's own
DUST = 1e-6  # of the bound, relative to max(1, |bound|): what rounding may be worth at most
SWEEPS = 8  # rounds of bound propagation
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
    inside = program.layout.project(z, dual=True)
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
    x0, repaired = repaired_dual(program, x, z, ~(np.isfinite(low) & np.isfinite(high)), fixed)
    tilt = program.P @ x0 + program.c
    repaired, short = _lifted(program, repaired)
    if short:
        return LowerBound(None, f"no certificate: the dual of {short} misses its cone by more than rounding")
    distance = program.layout.block_distances(repaired, dual=True)
    if (distance > rounding_room(program.layout, repaired)).any():
        name = program.layout.names[int(distance.argmax())]
        return LowerBound(None, f"no certificate: the dual of {name} misses its cone by {distance.max():.1e}")
    rho = cleaned(program, x0, repaired, ordinary(program))
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
    """Return exponential and second-order duals made members to the last digit, and the name of one that cannot be.

    A distance says little of an exponential one: with w = 1e-14 a point is 1e-15 from the dual cone, and its bound is
    off by a tenth. Members have v >= u (1 + log w - log(-u)), which is w >= -u exp(v/u - 1). Where w or v multiplies a
    constant, raising it costs the bound what it is worth and touches no equation. Nor does it to shorten the constant
    part of a second-order dual: that of ``1/x`` is (1, -1, c), of which only c = 0 is a member.
    """
    z = z.copy()
    constant = np.diff(sp.csr_array(program.A).indptr) == 0
    for family in program.layout.families:
        if family.kind == "soc":
            z[family.rows] = _shortened(z[family.rows], constant[family.rows])
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


def _shortened(z: Array, constant: Flags) -> Array:
    """Return second-order duals, a row each, with the constant part of the tail as short as membership asks.

    What is left for it in rounding alone is nothing: its root is 1e-8.
    """
    tail = constant & (np.arange(z.shape[1]) > 0)
    left = z[:, 0] ** 2 * (1.0 - 2.0 * ROUNDING) - np.square(np.where(tail, 0.0, z)[:, 1:]).sum(axis=1)
    rest = np.sqrt(np.maximum(left, 0.0))
    length = np.sqrt(np.square(np.where(tail, z, 0.0)).sum(axis=1))
    share = np.where(length > rest, rest / np.maximum(length, TINY), 1.0)
    return np.where(tail, z * share[:, None], z)


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
