"""Euclidean projections onto the self-dual cones: nonnegative, second-order and positive semidefinite."""

from functools import lru_cache
from typing import Literal

import numpy as np

from cvxpriv.numerics.arrays import Array

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
