"""Sets of Jacobians: one matrix plus a bounded multiple of a rank-one matrix for each kink.

An expression of m entries in n variable entries has the generalised Jacobian::

    { base + sum_k t_k outer_k inner_k' :  low_k <= t_k <= high_k }

Entries of ``base`` may be infinite where a one-sided derivative is (``entr`` at zero); they are never NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

Triplets = tuple[np.ndarray, np.ndarray, Array]
NOTHING: Triplets = (np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros(0))


class DerivativeError(ModelError):
    """An expression has no known derivative at the point; the message names the atom and the remedy."""


@dataclass(frozen=True, eq=False)
class Derivative:
    """The set of generalised Jacobians described in `cvxpriv.kkt.jacobian_sets`.

    `base`: (m, n).
    `outer`, `inner`: (m, K), (K, n).
    `low`, `high`: (K,).
    `exact`: False where the set is only known to contain the generalised Jacobian (ties of three or more, balls
    replaced by boxes, products of kinks), or where another atom's single subgradient was taken.
    """

    base: sp.csr_array
    outer: sp.csr_array
    inner: sp.csr_array
    low: Array
    high: Array
    exact: bool = True

    @classmethod
    def smooth(cls, base: Any, exact: bool = True) -> Derivative:
        """A single Jacobian."""
        base = clean(base)
        m, n = base.shape
        return cls(base, _empty(m, 0), _empty(0, n), np.zeros(0), np.zeros(0), exact)


@lru_cache(maxsize=100)
def _empty(m: int, n: int) -> sp.csr_array:
    return sp.csr_array((m, n))


def clean(matrix: Any) -> sp.csr_array:
    """Return compressed rows without stored zeros, so that zero times infinity never arises in a product."""
    if isinstance(matrix, sp.csr_array) and matrix.dtype == float and matrix.has_canonical_format and matrix.data.all():
        return matrix
    cleaned = sp.csr_array(matrix, dtype=float)
    cleaned.sum_duplicates()
    cleaned.eliminate_zeros()
    return cleaned


def compose(local: Derivative, inner: Derivative) -> Derivative:
    """Return the set of Jacobians of a composition, by the chain rule."""
    base = local.base @ inner.base
    if not local.low.size and not inner.low.size:
        return Derivative.smooth(base, local.exact and inner.exact)
    outer = [local.base @ inner.outer, local.outer]
    rows = [inner.inner, local.inner @ inner.base]
    low, high = [inner.low, local.low], [inner.high, local.high]
    cross = sp.coo_array(local.inner @ inner.outer)
    cross.eliminate_zeros()
    exact = local.exact and inner.exact and cross.nnz == 0
    if cross.nnz:
        k, j = cross.coords
        outer.append(sp.csr_array(local.outer[:, k] @ sp.diags_array(cross.data)))
        rows.append(sp.csr_array(inner.inner[j]))
        with np.errstate(invalid="ignore"):
            ends = np.stack([a[k] * b[j] for a in (local.low, local.high) for b in (inner.low, inner.high)])
        ends = np.where(np.isnan(ends), 0.0, ends)
        low.append(ends.min(axis=0))
        high.append(ends.max(axis=0))
    return _pruned(base, sp.hstack(outer), sp.vstack(rows), np.concatenate(low), np.concatenate(high), exact)


def _pruned(base: Any, outer: Any, inner: Any, low: Array, high: Array, exact: bool) -> Derivative:
    """Drop kinks that do not depend on the variables, or that nothing depends on."""
    outer, inner = clean(outer), clean(inner)
    used = (np.diff(inner.indptr) > 0) & (np.diff(sp.csc_array(outer).indptr) > 0)
    kept = np.flatnonzero(used)
    return Derivative(clean(base), outer[:, kept], inner[kept], low[kept], high[kept], exact)


def add(a: Derivative, b: Derivative) -> Derivative:
    """Return the sum of two sets of Jacobians whose kinks are independent."""
    if not a.low.size and not b.low.size:
        return Derivative.smooth(a.base + b.base if a.base.nnz else b.base, a.exact and b.exact)
    return Derivative(
        clean(a.base + b.base),
        sp.csr_array(sp.hstack([a.outer, b.outer])),
        sp.csr_array(sp.vstack([a.inner, b.inner])),
        np.concatenate([a.low, b.low]),
        np.concatenate([a.high, b.high]),
        a.exact and b.exact,
    )


def broadcast_rows(shape: tuple[int, ...], target: tuple[int, ...]) -> np.ndarray:
    """Return for each entry of ``target`` (column-major) the entry of ``shape`` that it reads."""
    size = int(np.prod(shape, dtype=int))
    return np.broadcast_to(np.arange(size).reshape(shape, order="F"), target).ravel(order="F")


@dataclass(frozen=True, eq=False)
class Local:
    """The set of one atom's Jacobians in one argument, entry by entry, from which a `Derivative` is assembled.

    `base`: (rows, columns, values).
    `outer`: (rows, kinks, values).
    `inner`: (kinks, columns, values).
    `low`, `high`: (K,).
    """

    base: Triplets
    outer: Triplets = NOTHING
    inner: Triplets = NOTHING
    low: Array = field(default_factory=lambda: np.zeros(0))
    high: Array = field(default_factory=lambda: np.zeros(0))
    exact: bool = True

    @classmethod
    def smooth(cls, jacobian: Any, exact: bool = True) -> Local:
        """A single matrix."""
        matrix = sp.coo_array(jacobian)
        rows, columns = matrix.coords
        return cls((np.asarray(rows), np.asarray(columns), matrix.data.astype(float)), exact=exact)

    def moved(self, rows: np.ndarray, columns: np.ndarray, kinks: int) -> Local:
        """Return the same set with rows and columns at other places, and its kinks counted from another number."""
        return Local(
            (rows[self.base[0]], columns[self.base[1]], self.base[2]),
            (rows[self.outer[0]], self.outer[1] + kinks, self.outer[2]),
            (self.inner[0] + kinks, columns[self.inner[1]], self.inner[2]),
            self.low,
            self.high,
            self.exact,
        )


def assembled(pieces: Sequence[tuple[Local, np.ndarray, np.ndarray]], m: int, n: int) -> Derivative:
    """Return one set of Jacobians (m, n) of pieces that stand at the rows and columns given with them."""
    placed, kinks = [], 0
    for local, rows, columns in pieces:
        placed.append(local.moved(rows, columns, kinks))
        kinks += local.low.size

    def matrix(triplets: Sequence[Triplets], shape: tuple[int, int]) -> sp.csr_array:
        i, j, values = (np.concatenate(part) for part in zip(NOTHING, *triplets, strict=True))
        return clean(sp.coo_array((values, (i, j)), shape=shape))

    return Derivative(
        matrix([local.base for local in placed], (m, n)),
        matrix([local.outer for local in placed], (m, kinks)),
        matrix([local.inner for local in placed], (kinks, n)),
        np.concatenate([np.zeros(0), *(local.low for local in placed)]),
        np.concatenate([np.zeros(0), *(local.high for local in placed)]),
        all(local.exact for local in placed),
    )


def intervals(rows: np.ndarray, columns: np.ndarray, low: Array, high: Array, exact: bool = True) -> Local:
    """Return a Jacobian given entry by entry as intervals."""
    proper = low != high
    sure, k = ~proper, np.flatnonzero(proper)
    ones, count = np.ones(k.size), np.arange(k.size)
    return Local(
        (rows[sure], columns[sure], low[sure]),
        (rows[k], count, ones),
        (count, columns[k], ones),
        low[k],
        high[k],
        exact,
    )
