"""A party's own columns, factored once for the step x_m on the smaller side.

The step solves (shift I + rho D'D) x = D'u + tau a. With fewer columns than samples that is a system of D'D, (d, d);
otherwise one of D D', (N, N), by the identity D' (shift I + rho D D')^-1 = (shift I + rho D'D)^-1 D'. Where rho has a
number for each sample, sqrt(rho) D stands in the place of D, and 1 in that of rho.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import linalg, sparse

from cvxpriv.numerics.arrays import Array, IntArray

from .problem import Part

#: Columns for each entry of a row up to which the matrix is made of dense pieces, and rows of a piece.
FULL, PIECE = 16, 1024
#: Squares of the number of columns, for each pair of entries of a row, from which adding up pairs is faster than dense
#: pieces; and rows that are added up at once.
FEW_PAIRS, ROWS = 150, 16384


def weighted_gram(part: Array | sparse.csr_array, weights: Array | None) -> Array:
    """Return D' diag(weights) D, (d, d), of D, (N, d); None is D'D."""
    if not sparse.issparse(part):
        rows = part if weights is None else np.sqrt(weights)[:, None] * part
        return np.asarray(rows.T @ rows)
    samples, columns = part.shape
    lengths: IntArray = np.diff(part.indptr).astype(np.int64)
    pairs = int(lengths @ (lengths + 1)) // 2
    if columns**2 <= samples and FEW_PAIRS * pairs <= samples * columns**2:
        return _of_pairs(part, np.ones(samples) if weights is None else weights, lengths)
    if samples * columns > FULL * part.nnz:
        right = part if weights is None else sparse.diags_array(weights) @ part
        return np.asarray((part.T @ right).toarray())
    return _of_pieces(part, None if weights is None else np.sqrt(weights))


def _of_pieces(part: sparse.csr_array, heights: Array | None) -> Array:
    samples, columns = part.shape
    gram, page = np.zeros((columns, columns)), np.empty((min(PIECE, samples), columns))
    for first in range(0, samples, PIECE):
        bounds = part.indptr[first : first + PIECE + 1]
        chosen = slice(bounds[0], bounds[-1])
        rows = page[: bounds.size - 1]
        shape, entries = rows.shape, (part.data[chosen], part.indices[chosen], bounds - bounds[0])
        sparse.csr_array(entries, shape=shape).toarray(out=rows)
        if heights is not None:
            rows *= heights[first : first + PIECE, None]
        gram += rows.T @ rows
    return gram


def _of_pairs(part: sparse.csr_array, weights: Array, lengths: IntArray) -> Array:
    """Add up the products of pairs of entries, for rows of one length at a time."""
    columns, gram = part.shape[1], np.zeros(part.shape[1] ** 2)
    order = np.argsort(lengths.astype(np.uint16), kind="stable")  # numpy sorts these by buckets
    ends = np.searchsorted(lengths[order], np.arange(lengths.max() + 2))
    plain, piece = bool((part.data == 1.0).all()), max(ROWS, gram.size)
    for length in range(1, int(lengths.max()) + 1):
        for first in range(ends[length], ends[length + 1], piece):
            rows = order[first : min(first + piece, ends[length + 1])]
            places = [part.indptr.take(rows) + entry for entry in range(length)]
            at = [part.indices.take(place).astype(np.intp) for place in places]
            data = [] if plain else [part.data.take(place) for place in places]
            weight = weights.take(rows)
            for one in range(length):
                row, scale = at[one] * columns, weight if plain else weight * data[one]
                for other in range(one, length):
                    products = scale if plain else scale * data[other]
                    gram += np.bincount(row + at[other], products, minlength=gram.size)
    square = gram.reshape(columns, columns)
    return square + square.T - np.diag(np.diag(square))


#: Number of systems kept for one party: residual balancing changes rho sometimes, and returns to old values.
KEPT = 2
#: Largest share of entries that are not 0 for which dense columns are multiplied as sparse rows: a9a's, four times
#: faster. The copy takes 3/8 of their memory at most.
SPARSE = 0.25
#: Least weight of a square that a step divides by: rho times the squares of small columns may be no double, or 0.
LEAST = 1e-150


@dataclass(frozen=True, eq=False)
class System:
    """A system shift I + rho G.

    `solve`: Its inverse; the pseudo-inverse where it is singular.
    `root`: A map x -> F x with F'F = shift I + rho G.
    """

    solve: Callable[[Array], Array]
    root: Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Factor:
    """A party's columns D, (N, d), and the inverses of shift I + rho G for its steps.

    `plain`, `heights`, (N,): The rows of D are those of another factor, `plain`, of the same part, times these heights.
    """

    part: Part
    plain: Factor | None = None
    heights: Array | None = None
    _systems: dict[tuple[float, float], System] = field(default_factory=dict, init=False, repr=False)
    _scaled: list[tuple[Array, Factor]] = field(default_factory=list, init=False, repr=False)
    _pulled: list[Array] = field(default_factory=list, init=False, repr=False)

    @property
    def tall(self) -> bool:
        """Whether there are at most as many columns as samples: then G = D'D, otherwise G = D D'."""
        return bool(self.part.shape[1] <= self.part.shape[0])

    @cached_property
    def gram(self) -> Array:
        """The Gram matrix G of the smaller side; products too small for LAPACK's eigenvalues are 0."""
        if self.tall:
            found = weighted_gram(self.stored, None if self.heights is None else self.heights**2)
        elif self.plain is not None and self.heights is not None:
            found = self.heights[:, None] * self.plain.gram * self.heights
        else:
            product = self.part @ self.part.T
            found = np.asarray(product.toarray() if sparse.issparse(product) else product)
        found[np.abs(found) < LEAST**2] = 0.0
        return found

    @cached_property
    def eigenvalues(self) -> Array:
        """Eigenvalues of G, ascending, with those below rounding set to 0."""
        values = np.asarray(linalg.eigvalsh(self.gram), dtype=np.float64)
        return np.where(values > _rounding(values), values, 0.0)

    @cached_property
    def largest(self) -> float:
        """||D||^2, the largest eigenvalue of D'D."""
        size = len(self.gram)
        top = linalg.eigvalsh(self.gram, subset_by_index=[size - 1, size - 1])
        return float(top[0])

    @cached_property
    def frobenius(self) -> float:
        """The root of the sum of squares of D's entries: at least ||D||, and also that of the absolute values."""
        entries = self.part.data if sparse.issparse(self.part) else self.part
        return float(np.linalg.norm(entries))

    @property
    def smallest(self) -> float:
        """The least eigenvalue of D'D: 0 when the columns depend on each other."""
        return float(self.eigenvalues[0]) if self.tall else 0.0

    @property
    def rank(self) -> int:
        """Rank of D, to rounding."""
        return int(np.count_nonzero(self.eigenvalues))

    @cached_property
    def root(self) -> Array:
        """A matrix F with F'F = D'D and as few rows as possible, which replaces D in a DCP problem."""
        if not self.tall:
            rows = np.asarray(self.part.toarray() if sparse.issparse(self.part) else self.part)
            return rows if self.heights is None else self.heights[:, None] * rows
        values, vectors = linalg.eigh(self.gram)
        kept = values > _rounding(values)
        return np.asarray(np.sqrt(values[kept])[:, None] * vectors[:, kept].T)

    @cached_property
    def stored(self) -> Part:
        """The columns of `part` in the form in which products are fastest."""
        if self.plain is not None:
            return self.plain.stored
        if not sparse.issparse(self.part):
            return _by_rows(self.part) if np.count_nonzero(self.part) <= SPARSE * self.part.size else self.part
        rows = sparse.csr_array(self.part)
        if rows.indices.itemsize <= 4 or max(*rows.shape, rows.nnz) > np.iinfo(np.int32).max:
            return rows
        places = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
        return sparse.csr_array((rows.data, *places), shape=rows.shape)

    @cached_property
    def transposed(self) -> Array | sparse.csc_array:
        """The transpose of `stored` as a view: making one costs as much as a product with sparse columns."""
        return self.stored.T

    def pull(self, u: Array) -> Array:
        """Return D'u, (d,), of u, (N,)."""
        return np.asarray(self.transposed @ (u if self.heights is None else self.heights * u))

    def pull_dual(self, y: Array) -> Array:
        """Return D'y, (d,), and remember it: a step and its residual pull the same y, (N,)."""
        if not self._pulled or not np.array_equal(self._pulled[0], y):
            self._pulled[:] = [y, self.pull(y)]
        return self._pulled[1]

    def share(self, x: Array) -> Array:
        """Return D x, (N,), of x, (d,)."""
        share = np.asarray(self.stored @ x)
        return share if self.heights is None else self.heights * share

    def scaled(self, rho: Array) -> Factor:
        """Return the factor of sqrt(rho) D with a rho for each sample, (N,); the last one is kept."""
        if not self._scaled or not np.array_equal(self._scaled[0][0], rho):
            self._scaled[:] = [(rho, Factor(self.part, self, np.sqrt(rho)))]
        return self._scaled[0][1]

    def stretched(self, x: Array, rho: float | Array, shift: float) -> Array:
        """Return a vector whose norm is the root of shift ||x||^2 + ||sqrt(rho) D x||^2, as short as may be."""
        if not self.tall:
            return np.concatenate([np.sqrt(shift) * x, np.sqrt(rho) * self.share(x)])
        return self.weighed_system(rho, shift).root(x)

    def minimiser(
        self, u: Array, rho: float | Array, ridge: float, tau: float = 0.0, anchor: Array | None = None
    ) -> Array:
        """Return the least of (ridge/2)||x||^2 + (tau/2)||x - anchor||^2 + (rho/2)||D x||^2 - u'D x, (d,).

        With ridge = tau = 0 and columns that depend on each other the minimiser is not unique: this is the one of least
        norm. D x is the same for all of them.

        `u`: (N,). `anchor`, (d,): The anchor, needed when tau > 0.
        `rho`: One number, or one for each sample, (N,).
        """
        system, held = self.weighed_system(rho, ridge + tau), tau > 0.0 and anchor is not None
        own = tau * anchor if anchor is not None else np.zeros(self.part.shape[1])
        if self.tall:
            pulled = self.pull(u)
            return system.solve(pulled + own if held else pulled)
        heights, kept = np.sqrt(rho), own / (ridge + tau) if held else own
        left = u - rho * self.share(kept) if held else u
        return kept + self.pull(heights * system.solve(left / heights))

    def inverse(self, x: Array, shift: float) -> Array:
        """Return (D'D + shift I)^-1 x, (d,)."""
        system = self.weighed_system(1.0, shift)
        return system.solve(x) if self.tall else (x - self.pull(system.solve(self.share(x)))) / shift

    def weighed_system(self, rho: float | Array, shift: float) -> System:
        """Return the system of rho, a number or one for each sample; that of D D' has G between the roots of rho."""
        if isinstance(rho, np.ndarray) and rho.ndim:
            return self.scaled(rho)._system(shift, 1.0)
        return self._system(shift, float(rho))

    def _system(self, shift: float, rho: float) -> System:
        """Return shift I + rho G, factored once for each pair."""
        key = (shift, rho)
        if key not in self._systems:
            if len(self._systems) >= KEPT:
                del self._systems[next(iter(self._systems))]
            self._systems[key] = _factored(self.gram, shift, rho)
        return self._systems[key]


def _by_rows(part: Array) -> sparse.csr_array:
    """Return dense columns as sparse rows: what scipy does, in a third of its time."""
    kept = part != 0.0
    places, counts = np.flatnonzero(kept), np.count_nonzero(kept, axis=1)
    kind = np.int32 if places.size <= np.iinfo(np.int32).max else np.int64
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(kind)
    return sparse.csr_array((part.ravel().take(places), (places % part.shape[1]).astype(kind), ends), shape=part.shape)


def _factored(gram: Array, shift: float, rho: float) -> System:
    # Below that the shift is lost in the rounding of a singular G: Cholesky may fail, eigenvalues do not.
    if shift > max(4.0 * len(gram) * np.finfo(float).eps * rho * float(np.trace(gram)), LEAST):
        matrix = rho * gram
        matrix[np.diag_indices_from(matrix)] += shift
        lower = linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        return System(
            solve=lambda b: np.asarray(linalg.cho_solve((lower, True), b, check_finite=False)),
            root=lambda x: np.asarray(lower.T @ x),
        )
    values, vectors = linalg.eigh(gram)
    kept = values > _rounding(values)
    basis, scale = vectors[:, kept], shift + rho * values[kept]
    return System(
        solve=lambda b: np.asarray(basis @ ((basis.T @ b) / scale)),
        root=lambda x: np.asarray(np.sqrt(scale) * (basis.T @ x)),
    )


def _rounding(values: Array) -> float:
    """Return the size below which ascending eigenvalues of a Gram matrix are rounding."""
    return float(len(values) * np.finfo(float).eps * max(values[-1], 0.0))
