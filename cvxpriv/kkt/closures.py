"""Values of atoms, also at the ends of their domains where cvxpy has none: the limits from inside.

A closed convex function has the same limit at a point along every way that begins in its domain.
"""

from collections.abc import Callable, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.matrix_frac import MatrixFrac
from scipy.special import entr, xlogy

from cvxpriv.kkt.coordinates import dense, held
from cvxpriv.numerics.arrays import Array

SINGULAR = 1e-14
"""Relative size up to which an eigenvalue, or what it multiplies, is rounding."""
BESIDE = 1e-16
"""Distance inside the domain where an atom without a value is read: its limit, to rounding."""


def value_of(node: Any, values: Sequence[Array]) -> tuple[Array, str]:
    """Return an atom's value, flat; NaN and the reason where it has none at its arguments' values, nor beside them."""
    why, found = "", np.full(node.size, np.nan)
    for signs in _ways(len(values)):
        try:
            moved = [value + sign * BESIDE * _unit(value) for value, sign in zip(values, signs, strict=True)]
            given = dense(_value(node, moved)).ravel(order="F")
        except Exception as error:  # atoms of cvxpy raise what they like
            why = why or f"{type(error).__name__}: {error}"
            continue
        if np.isfinite(given).all() or not (any(signs) or np.isnan(given).any()):
            return given, ""
        found = np.fmax(found, given)
    return found, why


def _ways(count: int) -> list[tuple[int, ...]]:
    """Return the signs by which arguments are moved: none, the first, the last, all, the first against the others."""
    none = (0,) * (count - 1)
    return [(0, *none), (1, *none), (*none, 1), (1,) * count, (1, *(-1,) * (count - 1))]


def _unit(value: Array) -> Array:
    """Return an identity for a square matrix, and ones for any other argument."""
    square = np.ndim(value) == 2 and value.shape[0] == value.shape[1]
    return np.eye(value.shape[0]) if square else np.ones(np.shape(value))


def _value(node: Any, values: list[Array]) -> Any:
    own = CLOSED.get(type(node))
    return node.numeric(values) if own is None else own(node, *values)


def _perspective(node: Any, scale: Array, *inner: Array) -> Any:
    """Return ``s f(x / s)``, which cvxpy refuses below 1e-8."""
    variables = node.args[1:]
    with held(variables):
        for variable, value in zip(variables, inner, strict=True):
            variable.save_value(value / scale)
        return np.where(scale < 0.0, np.nan, scale * node.f.value)


def _matrix_fraction(_: Any, X: Array, P: Array) -> float:
    """Return ``tr X' P^+ X``; infinite where X leaves the range of P."""
    sizes, vectors = _spectrum(P)
    parts = np.square(vectors.T @ X.reshape(P.shape[0], -1)).sum(axis=1)
    if parts[sizes == 0.0].sum() > SINGULAR * parts.sum():
        return float("inf")
    return float((parts[sizes != 0.0] / sizes[sizes != 0.0]).sum())


def _entropy(_: Any, X: Array) -> float:
    return float(entr(_spectrum(X)[0]).sum())


def _relative_entropy(node: Any, X: Array, Y: Array) -> float:
    (own, V), (other, W) = _spectrum(X), _spectrum(Y)
    if min(own.min(), other.min()) < -node.EVAL_TOL:
        return float("inf")
    own, other = np.maximum(own, 0.0), np.maximum(other, 0.0)
    weights = own @ np.square(V.T @ W)
    weights[weights <= SINGULAR * weights.sum()] = 0.0
    return float(-entr(own).sum() - xlogy(weights, other).sum())


def _spectrum(matrix: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of a symmetric matrix, zero where they are rounding, and its eigenvectors."""
    sizes, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    return np.where(np.abs(sizes) <= SINGULAR * np.abs(sizes).max(initial=0.0), 0.0, sizes), vectors


CLOSED: dict[type, Callable[..., Any]] = {
    cp.perspective: _perspective,
    MatrixFrac: _matrix_fraction,
    cp.von_neumann_entr: _entropy,
    cp.quantum_rel_entr: _relative_entropy,
}
"""Atoms whose values are read otherwise: cvxpy's miss limits by the rounding of an eigenvalue or of a scale."""
