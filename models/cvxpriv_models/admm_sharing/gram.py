"""The weighted Gram matrix D' diag(weights) D of a party's columns, without a copy of them."""

import numpy as np
from scipy import sparse

from cvxpriv.numerics.arrays import Array, IntArray

#: Columns for each entry of a row up to which the matrix is made of dense pieces, and rows of a piece.
FULL, PIECE = 16, 1024
#: Squares of the number of columns, for each pair of entries of a row, from which adding up pairs is faster than dense
#: pieces; and rows that are added up at once.
SPARSE, ROWS = 150, 16384


def weighted_gram(part: Array | sparse.csr_array, weights: Array | None) -> Array:
    """Return D' diag(weights) D, (d, d), of D, (N, d); None is D'D."""
    if not sparse.issparse(part):
        rows = part if weights is None else np.sqrt(weights)[:, None] * part
        return np.asarray(rows.T @ rows)
    samples, columns = part.shape
    lengths: IntArray = np.diff(part.indptr).astype(np.int64)
    pairs = int(lengths @ (lengths + 1)) // 2
    if columns**2 <= samples and SPARSE * pairs <= samples * columns**2:
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
