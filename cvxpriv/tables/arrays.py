"""Tables of probabilities or counts, and mechanisms P(Y|X), as arrays: checked, smoothed and named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxpriv.errors import DataError, ModelError, suggest
from cvxpriv.numerics.arguments import real_numbers
from cvxpriv.numerics.arrays import Array, IntArray, read_only
from cvxpriv.numerics.packages import pd
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.frames import listed, require_columns, text_of

Labels: TypeAlias = Alphabet | Sequence[object]
Scalar = TypeVar("Scalar", bound=np.generic)

MAX_COUNT = 2.0**53
"""The largest count: whole numbers above it are not exact as floats."""
SUM_TOLERANCE = 1e-9
"""Largest distance from 1 of the sum of a table of probabilities."""
NORMALISED = 1e-14
"""A table whose sum is this near to 1 stays as it is: one that is read again keeps its bits."""
SMOOTHING_ON = ("counts", "probabilities")
"""The two quantities that smoothing can be added to."""


def nonnegative_matrix(values: ArrayLike, argument: str) -> Array:
    """Return a copy as a matrix of finite numbers >= 0 with neither side empty.

    Raises DataError: Anything else.
    """
    matrix = real_numbers(values, argument)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise DataError(f"{argument} has shape {matrix.shape}: expected (|S|, |X|), neither of them 0")
    for wrong, expected in ((~np.isfinite(matrix), "finite numbers"), (matrix < 0, "numbers >= 0")):
        if wrong.any():
            raise DataError(f"{_first(matrix, wrong, argument)}: expected {expected}; correct the table")
    return matrix


def stochastic_matrix(values: ArrayLike, argument: str) -> Array:
    """Return a read-only copy as a row-stochastic matrix, with every digit as given.

    Raises DataError: Not a matrix of finite numbers >= 0, or a row whose sum differs from 1 by more than
    `SUM_TOLERANCE`.
    """
    try:
        matrix = nonnegative_matrix(values, argument)
    except DataError as error:
        raise DataError(f"{argument} is no mechanism P(Y|X), (|X|, |Y|): {error}") from error
    sums = matrix.sum(axis=1)
    wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{argument} is no mechanism: row {row} sums to {sums[row]:.12g} ({int(wrong.sum())} of {len(sums)} rows"
            f" are wrong), expected 1 within {SUM_TOLERANCE:g}: divide each row by its sum"
        )
    return read_only(matrix)


def given_mechanisms(init: ArrayLike, shape: tuple[int, int]) -> Array:
    """Return a user's starts as (starts, *shape), each a mechanism with every digit as given.

    Raises ModelError: They have another shape, or hold no numbers. DataError: One is no mechanism.
    """
    values = real_numbers(init, "init", ModelError)
    several = values[None] if values.ndim == 2 else values
    if several.ndim != 3 or several.shape[1:] != shape or not len(several):
        raise ModelError(f"init has shape {values.shape}, expected {shape} or (starts, {shape[0]}, {shape[1]})")
    with np.errstate(invalid="ignore"):  # infinities of both signs
        right = (several >= 0.0).all(axis=2) & (np.abs(several.sum(axis=2) - 1.0) <= SUM_TOLERANCE)
    for place in np.flatnonzero(~right.all(axis=1)):
        stochastic_matrix(several[place], f"init[{place}]")
    return several


def probability_matrix(values: ArrayLike, argument: str) -> Array:
    """Return a copy as a table of joint probabilities, normalised to rounding.

    Raises DataError: Not a matrix of numbers >= 0, or its sum differs from 1 by more than `SUM_TOLERANCE`.
    """
    matrix = nonnegative_matrix(values, argument)
    with np.errstate(over="ignore"):  # a sum of inf is refused below
        total = float(matrix.sum())
    if total == 0:
        raise DataError(f"{argument} is all zero: expected a table that sums to 1; check where it comes from")
    if not abs(total - 1.0) <= SUM_TOLERANCE:
        raise DataError(
            f"{argument} sums to {total:.12g}, expected 1 within {SUM_TOLERANCE:g}:"
            " divide the table by its sum, or use JointTable.from_counts for counts"
        )
    return matrix if abs(total - 1.0) <= NORMALISED else matrix / total


def count_matrix(counts: ArrayLike) -> IntArray:
    """Return a copy as a table of counts that are not all zero.

    Raises DataError: Not a matrix of whole numbers >= 0, or all zero.
    """
    matrix = nonnegative_matrix(counts, "counts")
    wrong = (matrix != np.floor(matrix)) | (matrix > MAX_COUNT)
    if wrong.any():
        raise DataError(
            f"{_first(matrix, wrong, 'counts')}: expected whole numbers up to {MAX_COUNT:g};"
            " probabilities go to JointTable.from_array"
        )
    if not matrix.any():
        raise DataError("counts is all zero: expected at least one record; check where it comes from")
    require_total(matrix, "counts")
    return matrix.astype(np.int64)


def require_total(counts: Array | IntArray, argument: str) -> None:
    """Raise `DataError` if counts sum to more than doubles hold exactly: their frequencies would be wrong."""
    total = sum(map(int, counts.ravel())) if float(counts.max(initial=0)) * counts.size > MAX_COUNT else 0
    if total > MAX_COUNT:
        raise DataError(
            f"{argument} sums to {total}, more than {MAX_COUNT:g} records: whole numbers above it are not exact;"
            " count in larger units"
        )


def smoothed(counts: IntArray, smoothing: float, smoothing_on: str) -> tuple[Array, str]:
    """Return joint probabilities from counts, and a description of the smoothing.

    Raises DataError: A negative or infinite ``smoothing``, or an unknown ``smoothing_on``.
    """
    added = real_numbers(smoothing, "smoothing")
    if added.shape or not (np.isfinite(added) and added >= 0):
        raise DataError(f"smoothing={smoothing!r}: expected a finite number >= 0; 0 leaves the counts as they are")
    if smoothing_on not in SMOOTHING_ON:
        raise DataError(f"smoothing_on={smoothing_on!r}: {suggest(smoothing_on, SMOOTHING_ON)}")
    empirical = counts / counts.sum()
    if smoothing == 0:
        return empirical, "none"
    with np.errstate(over="ignore"):
        raised = (counts if smoothing_on == "counts" else empirical) + float(added)
        total = raised.sum()
    if not np.isfinite(total):
        raise DataError(f"smoothing={smoothing!r} makes a sum beyond the doubles: expected far less than 1e308")
    what = "count" if smoothing_on == "counts" else "empirical probability"
    return raised / total, f"{float(added):g} added to each {what}, then normalised"


def named(shape: tuple[int, ...], private: Labels | None, public: Labels | None) -> tuple[Alphabet, Alphabet]:
    """Return the alphabets of a table's rows and columns from labels: column S or X, ``0, 1, ...`` without labels."""
    rows, columns = _alphabet("S", shape[0], private), _alphabet("X", shape[1], public)
    require_match(shape, rows, columns)
    return rows, columns


def _alphabet(column: str, size: int, labels: Labels | None) -> Alphabet:
    if labels is None:
        return Alphabet.numbered(column, size)
    if isinstance(labels, Alphabet):
        return labels
    return Alphabet((column,), tuple((cell,) for cell in listed(labels, f"labels of {column}")))


def require_match(shape: tuple[int, ...], private: Alphabet, public: Alphabet) -> None:
    """Raise `DataError` unless a table has one row per private and one column per public symbol."""
    if shape != (len(private), len(public)):
        raise DataError(
            f"the table has shape {shape}, its alphabets have sizes {(len(private), len(public))}:"
            " give one private symbol or label per row and one public per column"
        )


def require_mass(probabilities: Array, public: Alphabet) -> None:
    """Raise `DataError` if a public symbol has probability zero: no conditional distribution given it exists."""
    empty = np.flatnonzero(probabilities.sum(axis=0) == 0)
    if empty.size:
        names = "; ".join(public.label(int(x)) for x in empty[:3]) + ("; ..." if empty.size > 3 else "")
        raise DataError(
            f"{empty.size} of {len(public)} public symbols have probability 0 ({names}): leave them out"
            " (drop_empty=True; from a frame, keep_unseen=False), or give smoothing > 0 with counts"
        )


def without_empty(
    table: NDArray[Scalar], private: Alphabet, public: Alphabet
) -> tuple[NDArray[Scalar], Alphabet, Alphabet]:
    """Return a table and its alphabets without the rows and columns that are all zero."""
    rows, columns = np.flatnonzero(table.any(axis=1)), np.flatnonzero(table.any(axis=0))
    return table[np.ix_(rows, columns)], private.take(rows), public.take(columns)


def _first(matrix: Array, wrong: NDArray[np.bool_], argument: str) -> str:
    s, x = map(int, np.argwhere(wrong)[0])
    others = int(wrong.sum()) - 1
    return f"{argument}[{s}, {x}]={matrix[s, x]:g}" + (f" (and {others} more)" if others else "")


def count_column(frame: pd.DataFrame, column: str | None) -> NDArray[np.int64]:
    """Return the number of records that each row stands for: the column's whole numbers, or one each.

    Raises DataError: Unknown column, or a count that is missing, no number, negative or not whole.
    """
    if column is None:
        return np.ones(len(frame), dtype=np.int64)
    require_columns(frame, [column], "count")
    if frame[column].dtype.kind in "cmM":
        raise DataError(f"count={column!r} holds {frame[column].dtype}: expected whole numbers")
    try:
        numeric = pd.to_numeric(frame[column], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    except Exception as error:  # cells that are no numbers at all: lists, sets, a number beyond the doubles
        raise DataError(
            f"count={column!r} holds cells that are no numbers ({error}): expected whole numbers"
        ) from error
    wrong = ~((numeric >= 0) & (numeric < MAX_COUNT) & (numeric == np.floor(numeric)))
    if wrong.any():
        row = int(np.argmax(wrong))
        cell = text_of(frame[column].iloc[row], "a count")
        raise DataError(
            f"count={column!r}: row {row} (the first is 0) holds {cell!r}, expected a whole"
            f" number from 0 to {MAX_COUNT:g}; leave count out if each row is one record"
        )
    return numeric.astype(np.int64)
