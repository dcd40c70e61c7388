"""Every node's rows, and the three products that the updates ask of them, all nodes in one call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cvxpriv.learning.matrices import Matrix, row_norms
from cvxpriv.numerics.arrays import Array

#: One node's rows, (B_i, d).
Part = Matrix
#: Entries of the rows of a piece.
PIECE = 250_000


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of all nodes, one node after the other.

    Numbers a row are kept flat, (n,) with n = sum_i B_i, so that a loss is taken of all rows at once. Products go node
    by node over views of one array; dense nodes of equal size are one stacked product.

    `parts`: X_i, (B_i, d).
    `whole`, (n, d): The one array of dense parts.
    """

    parts: tuple[Part, ...]
    whole: Array | None = None

    @classmethod
    def of(cls, parts: Iterable[Part]) -> Rows:
        """Return the rows with dense parts side by side in memory."""
        several = tuple(parts)
        dense = [part for part in several if isinstance(part, np.ndarray)]
        if len(dense) < len(several):
            return cls(several)
        together = np.ascontiguousarray(np.concatenate(dense))
        ends = np.cumsum([len(part) for part in dense])[:-1]
        return cls(tuple(np.split(together, ends)), together)

    @property
    def features(self) -> int:
        """d."""
        return int(self.parts[0].shape[1])

    @cached_property
    def counts(self) -> npt.NDArray[np.intp]:
        """B_i, (N,)."""
        return np.array([part.shape[0] for part in self.parts], dtype=np.intp)

    @cached_property
    def offsets(self) -> npt.NDArray[np.intp]:
        """Place of each node's first row among all rows, and the number of rows, (N + 1,)."""
        return np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(self.counts)])

    @cached_property
    def pieces(self) -> list[tuple[slice, slice, Rows]]:
        """The nodes in pieces that a processor's cache holds: places of the nodes, of their rows, and the rows."""
        found, first = [], 0
        for last in range(1, len(self.parts) + 1):
            rows = slice(int(self.offsets[first]), int(self.offsets[last]))
            wider = last < len(self.parts) and (self.offsets[last + 1] - rows.start) * self.features <= PIECE
            if not wider:
                whole = None if self.whole is None else self.whole[rows]
                found.append((slice(first, last), rows, Rows(self.parts[first:last], whole)))
                first = last
        return found

    def of_node(self, values: Array, node: int) -> Array:
        """Return a node's part of numbers a row."""
        return values[self.offsets[node] : self.offsets[node + 1]]

    def predictions(self, f: Array) -> Array:
        """Return x'f_i for every row x of node i, (n,), from f, (N, d)."""
        if self._stacked is not None:
            return np.asarray(np.matmul(self._stacked, f[:, :, None])).ravel()
        return np.concatenate([part @ own for part, own in zip(self.parts, f, strict=True)])

    def back(self, values: Array) -> Array:
        """Return X_i'v_i, (N, d), from numbers a row, (n,)."""
        if self._stacked is not None:
            nodes, size, _ = self._stacked.shape
            return np.asarray(np.matmul(values.reshape(nodes, 1, size), self._stacked))[:, 0]
        return np.stack([part.T @ self.of_node(values, node) for node, part in enumerate(self.parts)])

    def grams(self, weights: Array, which: npt.NDArray[np.bool_] | None = None) -> Array:
        """Return X_i' diag(w_i) X_i, (N, d, d), from weights a row >= 0, (n,); of some nodes, where `which` says so."""
        roots, nodes = np.sqrt(weights), range(len(self.parts)) if which is None else np.flatnonzero(which).tolist()
        found = np.empty((len(nodes), self.features, self.features))
        longest = max((len(part) for part in self.parts if isinstance(part, np.ndarray)), default=0)
        room = np.empty((longest, self.features))
        for place, node in enumerate(nodes):
            part, own = self.parts[node], self.of_node(roots, node)
            if isinstance(part, np.ndarray):
                scaled = np.multiply(part, own[:, None], out=room[: len(part)])
                np.matmul(scaled.T, scaled, out=found[place])  # an array with itself: half the work of two arrays
            else:
                scaled_rows = sparse.diags_array(own) @ part
                found[place] = (scaled_rows.T @ scaled_rows).toarray()
        return found

    @cached_property
    def norms(self) -> Array:
        """||x|| of every row, (n,)."""
        return np.concatenate([row_norms(part) for part in self.parts])

    @cached_property
    def spreads(self) -> Array:
        """The largest eigenvalue of X_i'X_i, (N,)."""
        return np.asarray(np.linalg.eigvalsh(self.grams(np.ones(self.offsets[-1])))[:, -1])

    @cached_property
    def _stacked(self) -> Array | None:
        """The dense rows as (N, B, d), a view; None for sparse rows or nodes of unequal size."""
        if self.whole is None or np.ptp(self.counts) > 0:
            return None
        return self.whole.reshape(len(self.parts), -1, self.features)
