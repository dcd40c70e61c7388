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

from cvxpriv.numerics.arrays import Array

from .problem import Part

#: Number of systems kept for one party: residual balancing changes rho sometimes, and returns to old values.
KEPT = 2
#: Largest share of entries that are not 0 for which dense columns are multiplied as sparse rows: a9a's, four times
#: faster. The copy takes 3/8 of their memory at most.
SPARSE = 0.25
#: Columns for each entry of a row up to which a sparse Gram matrix is made of dense pieces, and rows of a piece.
FULL, PIECE = 16, 4096
Solve = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Factor:
    """A party's columns D, (N, d), and the inverses of shift I + rho G for its steps."""

    part: Part
    _systems: dict[tuple[float, float], Solve] = field(default_factory=dict, init=False, repr=False)
    _scaled: list[tuple[Array, Factor]] = field(default_factory=list, init=False, repr=False)

    @property
    def tall(self) -> bool:
        """Whether there are at most as many columns as samples: then G = D'D, otherwise G = D D'."""
        return bool(self.part.shape[1] <= self.part.shape[0])

    @cached_property
    def gram(self) -> Array:
        """The Gram matrix G of the smaller side."""
        part = self.part
        if sparse.issparse(part) and self.tall and part.shape[0] * part.shape[1] <= FULL * part.nnz:
            return _gram_by_pieces(part)
        product = part.T @ part if self.tall else part @ part.T
        return np.asarray(product.toarray() if sparse.issparse(product) else product)

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
            return np.asarray(self.part.toarray() if sparse.issparse(self.part) else self.part)
        values, vectors = linalg.eigh(self.gram)
        kept = values > _rounding(values)
        return np.asarray(np.sqrt(values[kept])[:, None] * vectors[:, kept].T)

    @cached_property
    def stored(self) -> Part:
        """The columns D in the form in which products are fastest."""
        if sparse.issparse(self.part) or np.count_nonzero(self.part) > SPARSE * self.part.size:
            return self.part
        return sparse.csr_array(self.part)

    @cached_property
    def transposed(self) -> Array | sparse.csc_array:
        """The transpose D' as a view: making one at every step costs as much as a product with a sparse D."""
        return self.stored.T

    def pull(self, u: Array) -> Array:
        """Return D'u, (d,), of u, (N,)."""
        return np.asarray(self.transposed @ u)

    def share(self, x: Array) -> Array:
        """Return D x, (N,), of x, (d,)."""
        return np.asarray(self.stored @ x)

    def scaled(self, rho: Array) -> Factor:
        """Return the factor of sqrt(rho) D with a rho for each sample, (N,); the last one is kept."""
        if not self._scaled or not np.array_equal(self._scaled[0][0], rho):
            self._scaled[:] = [(rho, Factor(_rows_times(self.part, np.sqrt(rho))))]
        return self._scaled[0][1]

    @property
    def entries(self) -> int:
        """Number of entries that a product with D reads."""
        return int(self.stored.size)

    def bent(self, rho: Array, x: Array, share: Array | None) -> Array:
        """Return a vector whose norm is that of sqrt(rho) D x: as long as D x, or the columns, where they are few.

        `share`: D x, where it is known.
        """
        if x.size**2 > self.part.shape[0]:
            return np.asarray(np.sqrt(rho) * (self.share(x) if share is None else share))
        return np.asarray(self.scaled(rho).root @ x if np.ndim(rho) else np.sqrt(rho) * (self.root @ x))

    def minimiser(
        self, u: Array, rho: float | Array, ridge: float, tau: float = 0.0, anchor: Array | None = None
    ) -> Array:
        """Return the least of (ridge/2)||x||^2 + (tau/2)||x - anchor||^2 + (rho/2)||D x||^2 - u'D x, (d,).

        With ridge = tau = 0 and columns that depend on each other the minimiser is not unique: this is the one of least
        norm. D x is the same for all of them.

        `u`: (N,). `anchor`, (d,): The anchor, needed when tau > 0.
        `rho`: One number, or one for each sample, (N,).
        """
        if isinstance(rho, np.ndarray) and rho.ndim:
            return self.scaled(rho).minimiser(u / np.sqrt(rho), 1.0, ridge, tau, anchor)
        shift, rho = ridge + tau, float(rho)
        inverse = self._inverse(shift, rho)
        if tau == 0.0 or anchor is None:
            return inverse(self.pull(u)) if self.tall else self.pull(inverse(u))
        if self.tall:
            return inverse(self.pull(u) + tau * anchor)
        held = (tau / shift) * anchor
        return held + self.pull(inverse(u - rho * self.share(held)))

    def _inverse(self, shift: float, rho: float) -> Solve:
        """Return the inverse of shift I + rho G, made once for each pair; the pseudo-inverse where it is singular."""
        key = (shift, rho)
        if key not in self._systems:
            if len(self._systems) >= KEPT:
                del self._systems[next(iter(self._systems))]
            self._systems[key] = _inverse(self.gram, shift, rho)
        return self._systems[key]


def _rows_times(part: Part, heights: Array) -> Part:
    if not sparse.issparse(part):
        return heights[:, None] * part
    entries = part.data * np.repeat(heights, np.diff(part.indptr))
    return sparse.csr_array((entries, part.indices, part.indptr), shape=part.shape)


def _gram_by_pieces(part: sparse.csr_array) -> Array:
    gram = np.zeros((part.shape[1], part.shape[1]))
    for first in range(0, part.shape[0], PIECE):
        rows = part[first : first + PIECE].toarray()
        gram += rows.T @ rows
    return gram


def _inverse(gram: Array, shift: float, rho: float) -> Solve:
    # Below that the shift is lost in the rounding of a singular G: Cholesky may fail, eigenvalues do not.
    if shift > 4.0 * len(gram) * np.finfo(float).eps * rho * float(np.trace(gram)):
        system = rho * gram
        system[np.diag_indices_from(system)] += shift
        factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        return lambda b: np.asarray(linalg.cho_solve(factor, b, check_finite=False))
    values, vectors = linalg.eigh(gram)
    kept = values > _rounding(values)
    basis, scale = vectors[:, kept], 1.0 / (shift + rho * values[kept])
    return lambda b: np.asarray(basis @ (scale * (basis.T @ b)))


def _rounding(values: Array) -> float:
    """Return the size below which ascending eigenvalues of a Gram matrix are rounding."""
    return float(len(values) * np.finfo(float).eps * max(values[-1], 0.0))
