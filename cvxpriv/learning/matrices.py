"""Rows of numbers in the form that products need: dense, or sparse by rows."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy import sparse

from cvxpriv.errors import DataError
from cvxpriv.numerics.arguments import real_numbers
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.sizes import of_learning, require_feasible

#: Dense rows, or sparse ones by rows.
Matrix = Array | sparse.csr_array
#: Size below which sums of squares may have lost some to underflow.
LEAST_SQUARE = 1e-280


def checked_matrix(name: str, given: Any, most: float, *, axes: str = "rows, columns", remedy: str = "") -> Matrix:
    """Return a caller's rows, without a copy where they have that form already; dense ones row by row in memory.

    Sums round by the order in memory, which a view loses on its way to another process: one order, the same bits.

    `name`, `axes`: Names of the matrix and of its axes in messages.
    `most`: Largest size of an entry: its squares stay finite.
    `remedy`: Advice on an empty matrix.
    Raises DataError: Not a table of finite numbers with a row and a column, or numbers beyond `most`.
    """
    if sparse.issparse(given):
        matrix: Matrix = sparse_rows(name, given)
    else:
        matrix = np.asarray(real_numbers(given, name, copy=False), order="C")
    entries = matrix if isinstance(matrix, np.ndarray) else matrix.data
    if len(matrix.shape) != 2 or 0 in matrix.shape:
        raise DataError(f"{name} has shape {matrix.shape}, expected ({axes}) with at least one of each{remedy}")
    if not np.isfinite(entries).all():
        raise DataError(f"{name} holds NaN or infinite entries: drop the rows or fill them")
    if max(float(entries.max(initial=0.0)), -float(entries.min(initial=0.0))) > most:
        raise DataError(f"{name} holds entries above {most:g}, whose squares overflow: scale its columns")
    return matrix


def sparse_rows(name: str, given: Any) -> sparse.csr_array:
    """Return a caller's sparse rows, each entry stored once.

    Raises DataError: Complex numbers. ModelError: So many columns that the vectors of a fit fill the memory.
    """
    if given.dtype.kind == "c":
        raise DataError(f"{name} holds complex numbers: pass real ones, for example real and imaginary part apart")
    if given.ndim == 2:
        require_feasible(of_learning(*given.shape, passes=1, stored=given.nnz))
    rows = sparse.csr_array(given, dtype=np.float64)
    if not rows.has_canonical_format:  # an entry stored in several parts would pass a bound that each part keeps
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def with_column(rows: Any, height: float = 1.0) -> Any:
    """Return rows with a last column of one number: that of an intercept."""
    column = np.full((rows.shape[0], 1), height)
    if sparse.issparse(rows):
        return sparse.csr_array(sparse.hstack([cast(Any, rows), sparse.csr_array(column)]))
    return np.hstack([rows, column])


def row_norms(rows: Matrix) -> Array:
    """Return the Euclidean norm of each row, (n,), never too small: a lost square would let a row through.

    Where squares leave the range of doubles it is a bound, sqrt(d) times the largest entry.
    """
    with np.errstate(over="ignore", under="ignore"):
        if isinstance(rows, np.ndarray):
            squares = np.einsum("ij,ij->i", rows, rows)
        else:
            squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    norms = np.asarray(np.sqrt(squares))
    odd = np.flatnonzero((squares < LEAST_SQUARE) | ~np.isfinite(squares))
    if odd.size:
        chosen = rows[odd]
        most = chosen.max(axis=1), chosen.min(axis=1)
        largest = [np.abs(side if isinstance(side, np.ndarray) else side.toarray()).ravel() for side in most]
        with np.errstate(over="ignore"):
            norms[odd] = np.sqrt(rows.shape[1]) * np.maximum(*largest)
    return norms


def length(values: Array) -> float:
    """Return the Euclidean norm of a vector, also where its squares leave the range of doubles.

    >>> length(np.array([3e-170, 4e-170]))
    5e-170
    """
    with np.errstate(over="ignore", under="ignore"):
        found = float(np.linalg.norm(values))
    if np.sqrt(LEAST_SQUARE) < found < np.inf:
        return found
    most = float(np.abs(values).max(initial=0.0))
    return most * float(np.linalg.norm(values / most)) if 0.0 < most < np.inf else most


def shortened(rows: Matrix, bound: float) -> Matrix:
    """Return the rows, with those longer than `bound` shortened to it."""
    share = bound / np.maximum(row_norms(rows), bound)
    if isinstance(rows, np.ndarray):
        return rows * share[:, None]
    return sparse.csr_array(sparse.diags_array(share) @ rows)
