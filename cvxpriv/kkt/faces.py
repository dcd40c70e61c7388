"""Multipliers that are complementary to a cone constraint's value: rays of the dual cone, and smaller cones.

For ``s`` inside a cone the multiplier is zero. On the smooth part of the boundary it is a multiple of one ray; on a
face of a few rays; at the apex any point of the dual cone; for a singular matrix any semidefinite one on its kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxpriv.kkt.conic.cones import ConeLayout, matrices_from_triangles, triangle_indices
from cvxpriv.kkt.conic.cones._types import Array, Mask

SQRT2 = float(np.sqrt(2.0))


Block = tuple[slice, Array]


def dual_face(
    layout: ConeLayout, s: Array, tolerance: Array, wanted: Mask
) -> tuple[sp.csc_array, sp.csc_array, ConeLayout]:
    """Return the complementary multipliers of ``s``, up to a tolerance.

    Parameters
    ----------
    s, tolerance : array (m,)
        Values and tolerances; a block's first entry holds its tolerance.
    wanted : bool array (m,)
        Blocks whose first entry is False get no multiplier.

    Returns
    -------
    rays : sparse (m, k)
        Multipliers are nonnegative combinations of these columns ...
    faces : sparse (m, l)
        ... plus ``faces @ z`` with ``z`` in the dual cone of the third result.
    layout : ConeLayout
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
