"""Euclidean projections: onto the exponential cone and its dual, for many at once, and onto the self-dual cones.

The cone is ``K = cl{(x, y, z): y exp(x/y) <= z, y > 0}`` (cvxpy's order of the three entries).

Away from the faces, ``v`` splits into a boundary ray of ``K`` and the boundary ray of the polar cone that is orthogonal
to it, and one number ``rho`` names both (Friberg 2021, "Projection onto the exponential cone: a univariate root-finding
problem")::

    v = s (rho, 1, exp(rho)) + sigma (1, 1 - rho, -exp(-rho)),    s > 0, sigma > 0.

The first two coordinates give ``s`` and ``sigma`` as rational functions of ``rho``, always well conditioned since their
denominator ``rho^2 - rho + 1`` is at least 3/4. The third one, read as a quadratic in ``exp(rho)`` and taken to
logarithms, is the equation that is solved here: it holds no exponential, so nothing overflows.
"""

from functools import lru_cache
from typing import Literal

import numpy as np

from cvxpriv.numerics.arrays import Array, Flags
from cvxpriv.numerics.roots import Rows, increasing_root

Triangle = Literal["lower", "upper"]
SQRT2 = float(np.sqrt(2.0))


def project_second_order(v: Array) -> Array:
    """Return the nearest points of ``{(t, x): ||x|| <= t}``; one point ``(t, x)`` in each row of ``v`` (m, n)."""
    v = np.asarray(v, dtype=float)
    if v.shape[1] == 1:
        return np.maximum(v, 0.0)
    t, x = v[:, 0], v[:, 1:]
    largest = np.abs(x).max(axis=1)
    unit = np.where(largest > 0, largest, 1.0)
    norm = np.linalg.norm(x / unit[:, None], axis=1) * unit
    height = np.where(norm <= t, t, np.where(norm <= -t, 0.0, 0.5 * (t + norm)))
    shrink = np.where(norm <= t, 1.0, height / np.where(norm > 0, norm, 1.0))
    return np.column_stack([height, x * shrink[:, None]])


def matrices_from_triangles(v: Array, order: int, triangle: Triangle) -> Array:
    """Return symmetric matrices (m, n, n) from their scaled triangles (m, n(n+1)/2), columns stacked.

    Off-diagonal entries carry a factor sqrt(2), so that the inner product of two vectors is that of the matrices.
    """
    rows, columns = triangle_indices(order, triangle)
    scaled = np.where(rows == columns, v, v / SQRT2)
    matrices = np.zeros((v.shape[0], order, order))
    matrices[:, rows, columns] = scaled
    matrices[:, columns, rows] = scaled
    return matrices


def triangles_from_matrices(matrices: Array, triangle: Triangle) -> Array:
    """Return the inverse of `matrices_from_triangles`; only the chosen triangle is read."""
    rows, columns = triangle_indices(matrices.shape[1], triangle)
    entries = matrices[:, rows, columns]
    return np.asarray(np.where(rows == columns, entries, entries * SQRT2))


@lru_cache(maxsize=100)
def triangle_indices(order: int, triangle: Triangle) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the triangle's entries, column by column."""
    columns, rows = np.tril_indices(order) if triangle == "upper" else np.triu_indices(order)
    return rows, columns


def project_semidefinite(v: Array, order: int, triangle: Triangle) -> Array:
    """Return the nearest positive semidefinite matrices, as scaled triangles (m, n(n+1)/2)."""
    v = np.asarray(v, dtype=float)
    values, vectors = np.linalg.eigh(matrices_from_triangles(v, order, triangle))
    kept = np.einsum("mik,mk,mjk->mij", vectors, np.maximum(values, 0.0), vectors)
    return np.where((values.min(axis=1) >= 0)[:, None], v, triangles_from_matrices(kept, triangle))


VANISHING = 1e-150
"""Entries smaller than this, relative to the largest, move no digit of a projection, and their ratios overflow."""


def in_exponential(v: Array) -> Flags:
    """Return exact membership of the rows of ``v`` (m, 3) in the exponential cone."""
    x, y, z = v.T
    with np.errstate(all="ignore"):
        inner = (y > 0) & (z > 0) & (x <= y * (np.log(z) - np.log(y)))
    return np.asarray(inner | ((y == 0) & (x <= 0) & (z >= 0)))


def in_exponential_dual(v: Array) -> Flags:
    """Return exact membership of the rows of ``v`` (m, 3) in ``cl{(u, v, w): u < 0, -u exp(v/u) <= e w}``."""
    x, y, z = v.T
    with np.errstate(all="ignore"):
        inner = (x < 0) & (z > 0) & (-y <= -x * (1.0 + np.log(z) - np.log(-x)))
    return np.asarray(inner | ((x == 0) & (y >= 0) & (z >= 0)))


def project_exponential(v: Array) -> Array:
    """Return the nearest points of the exponential cone.

    `v`, (m, 3): One point in each row.
    Returns (m, 3).
    """
    v = np.asarray(v, dtype=float)
    projected = np.zeros_like(v)
    size = np.abs(v).max(axis=1, initial=0.0)
    v = np.where((np.abs(v) < VANISHING * size[:, None]) & ~in_exponential(v)[:, None], 0.0, v)
    inside = in_exponential(v)
    polar = ~inside & in_exponential_dual(-v)
    face = ~inside & ~polar & (v[:, 0] <= 0) & (v[:, 1] <= 0)
    projected[inside] = v[inside]
    projected[face, 0] = v[face, 0]
    projected[face, 2] = np.maximum(v[face, 2], 0.0)
    curved = ~(inside | polar | face)
    if curved.any():
        scale = size[curved, None]
        projected[curved] = _project_curved(v[curved] / scale) * scale
    return projected


def _rays(rho: Array, x: Array, y: Array) -> tuple[Array, Array, Array]:
    """``s``, ``sigma`` and their denominator at ``rho``; rewritten where ``rho`` is large so that nothing overflows."""
    large = np.abs(rho) > 1e8
    q = np.where(large, 1.0, rho * rho - rho + 1.0)
    s = ((rho - 1.0) * x + y) / q
    sigma = (x - rho * y) / q
    if large.any():
        t = 1.0 / np.where(large, rho, 1.0)
        lean = 1.0 - t + t * t
        s = np.where(large, ((1.0 - t) * x + t * y) * t / lean, s)
        sigma = np.where(large, (t * x - y) * t / lean, sigma)
    return s, sigma, q


def _project_curved(v: Array) -> Array:
    """Projection where both rays are positive; rows are scaled to largest entry one."""
    x, y, z = v.T
    with np.errstate(all="ignore"):
        low = np.where(x > 0, 1.0 - y / x, -np.inf)
        high = np.where(y > 0, x / y, np.inf)

    def equation(rho: Array, rows: Rows) -> tuple[Array, Array]:
        """``rho - log t``, ``t`` the positive root of ``s t^2 - z t - sigma``, and its slope."""
        xr, yr, zr = x[rows], y[rows], z[rows]
        s, sigma, q = _rays(rho, xr, yr)
        with np.errstate(all="ignore"):
            root = np.hypot(zr, 2.0 * np.sqrt(np.maximum(s, 0.0)) * np.sqrt(np.maximum(sigma, 0.0)))
            log_t = np.where(zr > 0, np.log(zr + root) - np.log(2.0 * s), np.log(2.0 * sigma) - np.log(root - zr))
            value = rho - log_t
            dq = 2.0 * rho - 1.0
            tilt = zr / root
            slope = 1.0 + 0.5 * (1 + tilt) * (xr / s - dq) / q + 0.5 * (1 - tilt) * (yr / sigma + dq) / q
        # By rounding a trial point beside an end may leave the interval: the end tells the sign.
        value = np.where(s <= 0, -np.inf, np.where(sigma <= 0, np.inf, value))
        return value, slope

    rho = increasing_root(equation, low, high, start=np.clip(0.5, low, high))
    s, sigma, _ = _rays(rho, x, y)
    s, sigma = np.maximum(s, 0.0), np.maximum(sigma, 0.0)
    with np.errstate(all="ignore"):  # the third entry first where exp(rho) would magnify an error of s
        steep = rho > 1.0
        third = np.where(steep, z + sigma * np.exp(-np.where(steep, rho, 0.0)), 0.0)
        s = np.where(steep, np.maximum(third, 0.0) * np.exp(-np.where(steep, rho, 0.0)), s)
        third = np.where(steep, np.maximum(third, 0.0), s * np.exp(np.where(steep, 0.0, rho)))
        first = np.where(s > 0, s * rho, 0.0)
    return np.stack([first, s, third], axis=1)
