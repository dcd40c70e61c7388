"""The least-squares system for the multipliers of a set of conditions at a point."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxpriv.kkt.conic.cones import ConeLayout, matrices_from_triangles, triangle_indices
from cvxpriv.kkt.conic.cones.exponential import SQRT2
from cvxpriv.kkt.jacobian_sets import Derivative
from cvxpriv.kkt.multipliers import bounded_least_squares, conic_least_squares
from cvxpriv.kkt.written import Written
from cvxpriv.numerics.arrays import Array, Flags

COUPLING = 1e3  # weight of the rows that keep a constraint's kink within its multiplier
COUPLING_ROUNDS = 3  # of the method of multipliers, each of which gains the square of that weight


class Columns:
    """Unknowns of a least squares, gathered one group at a time."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.blocks: list[sp.csc_array] = []
        self.low: list[Array] = []
        self.high: list[Array] = []
        self.count = 0

    def add(self, block: Any, low: Array | float, high: Array | float) -> slice:
        """Append columns (n, k) with their bounds; return their place."""
        width = block.shape[1]
        if width:
            self.blocks.append(sp.csc_array(block))
            self.low.append(np.broadcast_to(np.asarray(low, dtype=float), (width,)))
            self.high.append(np.broadcast_to(np.asarray(high, dtype=float), (width,)))
        place = slice(self.count, self.count + width)
        self.count += width
        return place

    def system(self) -> tuple[sp.csc_array, Array, Array]:
        """Return matrix and bounds of all columns."""
        if not self.blocks:
            return sp.csc_array((self.size, 0)), np.zeros(0), np.zeros(0)
        return sp.csc_array(sp.hstack(self.blocks)), np.concatenate(self.low), np.concatenate(self.high)


def fitted_multipliers(
    written: Written,
    v: Array,
    jacobian: Derivative,
    active: Array,
    columns: Columns,
    among: Flags,
    g: Array,
    weights: Array,
    sides: tuple[Flags, Flags],
) -> Array:
    """Return the multipliers of all rows that make the weighted gradient ``g`` smallest; zero for rows without.

    Equalities have free ones, nearly active inequalities nonnegative ones, cones those of their complementary face.
    Bounds on single variables have none: they absorb their part of the residual (`cvxpriv.kkt.multipliers`).

    `v`, (rows,): Values of the conditions.
    `jacobian`: Derivative of the conditions.
    `active`, (rows,): Slack up to which a row may carry a multiplier.
    `columns`: Unknowns in front.
    `among`, (rows,): Rows that may carry one at all.
    """
    carrying = among & ~written.cone & (written.zero | (v >= -active))
    carrying[written.singles[0]] = False
    kept, cone = np.flatnonzero(carrying), written.cone
    place = columns.add(jacobian.base[kept].T, np.where(written.zero[kept], -np.inf, 0.0), np.inf)
    links = _kinks(columns, jacobian, kept, place.start) if jacobian.low.size else np.zeros((0, 3), dtype=int)
    rays, faces, layout = dual_face(written.layout, v[cone], active[cone], among[cone])
    pull = -jacobian.base[np.flatnonzero(cone)].T
    ray_place = columns.add(pull @ rays, 0.0, np.inf)
    y, z = _least_squares(columns, links, (pull @ faces, layout), g, weights, sides)
    chosen = np.zeros(written.c.size)
    chosen[kept] = y[place]
    chosen[cone] = rays @ y[ray_place] + faces @ z
    return chosen


def _kinks(columns: Columns, jacobian: Derivative, kept: np.ndarray, first: int) -> np.ndarray:
    """Add constraints' kinks, each by two shares of its multiplier, at the low and at the high end; link the three."""
    pairs = sp.coo_array(jacobian.outer[kept])
    row, kink = (np.asarray(one) for one in pairs.coords)
    directions = sp.csc_array((sp.diags_array(pairs.data) @ jacobian.inner[kink]).T)
    low, high = jacobian.low[kink], jacobian.high[kink]
    proper = np.isfinite(low) & np.isfinite(high)
    held, ends = np.flatnonzero(proper), np.flatnonzero(~proper)
    shares = [columns.add(directions[:, held] @ sp.diags_array(side[held]), 0.0, np.inf) for side in (low, high)]
    columns.add(directions[:, ends], low[ends], high[ends])
    count = np.arange(held.size)
    return np.column_stack([first + row[held], *(share.start + count for share in shares)])


def _least_squares(
    columns: Columns,
    links: np.ndarray,
    cone: tuple[sp.csc_array, ConeLayout],
    g: Array,
    weights: Array,
    sides: tuple[Flags, Flags],
) -> tuple[Array, Array]:
    M, low, high = columns.system()
    n, count = g.size, len(links)
    if count:
        signs, rows = np.tile([-1.0, 1.0, 1.0], count), np.repeat(np.arange(count), 3)
        M = sp.csc_array(sp.vstack([M, sp.coo_array((signs, (rows, links.ravel())), shape=(count, M.shape[1]))]))
        g = np.append(g, np.zeros(count))
        sides = tuple(np.append(side, np.zeros(count, dtype=bool)) for side in sides)  # type: ignore[assignment]
        weights = np.append(weights, np.full(count, COUPLING * max(1.0, float(weights.max(initial=0.0)))))
    N, layout = cone
    if layout.size:
        N = sp.csc_array(sp.vstack([N, sp.csc_array((g.size - N.shape[0], N.shape[1]))]))
        return conic_least_squares(g, M, low, high, *sides, weights, (N, layout))
    y = bounded_least_squares(g, M, low, high, *sides, weights)
    for _ in range(COUPLING_ROUNDS if count else 0):
        g[n:] += (M @ y)[n:]
        y = bounded_least_squares(g, M, low, high, *sides, weights)
    return y, np.zeros(0)


Block = tuple[slice, Array]


def dual_face(
    layout: ConeLayout, s: Array, tolerance: Array, wanted: Flags
) -> tuple[sp.csc_array, sp.csc_array, ConeLayout]:
    """Return the complementary multipliers of ``s``, up to a tolerance.

    `s`, `tolerance`, (m,): Values and tolerances; a block's first entry holds its tolerance.
    `wanted`, (m,): Blocks whose first entry is False get no multiplier.
    Returns `rays`, (m, k): Multipliers are nonnegative combinations of these columns ... `faces`, (m, l): ... plus
    ``faces @ z`` with ``z`` in the dual cone of the third result.
    """
    rays: list[Block] = []
    blocks: dict[str, list[tuple[slice, Array, Any]]] = {"soc": [], "psd": [], "exp": [], "power": []}
    for name, place in layout.slices.items():
        if not wanted[place.start]:
            continue
        kind, number = name.rstrip("]").split("[")
        value, near = s[place], float(tolerance[place.start])
        if kind == "psd":
            face = _kernel(value, layout.psd[int(number)], layout, near)
            if face is not None:
                blocks["psd"].append((place, face[0], face[1]))
        elif np.abs(value).max(initial=0.0) <= near:
            shape = {"soc": value.size, "exp": None, "power": layout.power[int(number)] if kind == "power" else None}
            blocks[kind].append((place, np.eye(value.size), shape[kind]))
        else:
            alpha = np.array(layout.power[int(number)]) if kind == "power" else np.zeros(0)
            rays += [(place, ray[:, None]) for ray in _rays(kind, value, alpha, near)]
    smaller = ConeLayout(
        soc=tuple(int(size) for _, _, size in blocks["soc"]),
        psd=tuple(int(order) for _, _, order in blocks["psd"]),
        exp=len(blocks["exp"]),
        power=tuple(shape for _, _, shape in blocks["power"]),
    )
    faces = [(place, columns) for kind in ("soc", "psd", "exp", "power") for place, columns, _ in blocks[kind]]
    return _columns(rays, layout.size), _columns(faces, layout.size), smaller


def _columns(parts: list[Block], size: int) -> sp.csc_array:
    """Return dense blocks set at their rows, side by side."""
    rows, columns, values, count = [np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0)], 0
    for place, block in parts:
        i, j = np.indices(block.shape).reshape(2, -1)
        rows.append(place.start + i)
        columns.append(count + j)
        values.append(block.ravel())
        count += block.shape[1]
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sp.csc_array(sp.coo_array(entries, shape=(size, count)))


def _kernel(value: Array, order: int, layout: ConeLayout, tolerance: float) -> tuple[Array, int] | None:
    """Return the map from a small matrix's triangle to ``V Z V'``, ``V`` its near-kernel, and the map's order."""
    eigenvalues, vectors = np.linalg.eigh(matrices_from_triangles(value[None], order, layout.triangle)[0])
    V = vectors[:, eigenvalues <= tolerance]
    if V.shape[1] == 0:
        return None
    small = V.shape[1]
    rows, columns = triangle_indices(order, layout.triangle)
    factor = np.where(rows == columns, 1.0, SQRT2)
    size = small * (small + 1) // 2
    units = matrices_from_triangles(np.eye(size), small, "lower")
    image = np.einsum("ia,kab,jb->kij", V, units, V)
    return (image[:, rows, columns] * factor).T, small


def _rays(kind: str, s: Array, alpha: Array, tolerance: float) -> list[Array]:
    """Return unit normals, pointing inwards, at a boundary point other than the apex."""
    rays: list[Array] = []
    if kind == "soc":
        norm = float(np.linalg.norm(s[1:]))
        if s[0] - norm <= tolerance:
            rays = [np.concatenate([[1.0], -s[1:] / max(norm, tolerance)])]
    elif kind == "exp":
        x, y, z = s
        if y <= tolerance:
            # On the face y = 0 the multiplier is (0, v, w), with w = 0 where z > 0.
            rays = [np.array([0.0, 1.0, 0.0]), *([np.array([0.0, 0.0, 1.0])] if z <= tolerance else [])]
        else:
            rho = x / y
            if z - y * np.exp(min(rho, 700.0)) <= tolerance * max(1.0, abs(z)):
                normal = np.array([-1.0, rho - 1.0, np.exp(min(-rho, 700.0))])
                rays = [normal]
    elif kind == "power":
        x, z = s[:-1], s[-1]
        zero = x <= tolerance
        if zero.any():
            rays = [np.eye(s.size)[k] for k in np.flatnonzero(zero)]
        else:
            mean = float(np.exp((alpha * np.log(x)).sum()))
            if mean - abs(z) <= tolerance:
                rays = [np.append(alpha * mean / x, -np.sign(z))]
    return [ray / np.linalg.norm(ray) for ray in rays]
