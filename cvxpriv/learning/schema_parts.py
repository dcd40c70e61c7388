"""The parts of a `PublicSchema` as they are given, and cells as they come: no error tells of a row."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from cvxpriv.errors import DataError, PrivacyError, shown
from cvxpriv.numerics.arguments import as_array, few, is_missing
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.tables.frames import symbol

Range: TypeAlias = tuple[float, float]
#: Size at which numbers of a column without a range are clipped, and the largest of a range: squares stay finite.
FAR = 1e30


def text_in(value: object) -> str | None:
    """Return a label as text; None where it is missing or has none."""
    try:
        return None if is_missing(value) else symbol(value)
    except DataError:
        return None


def numbers_in(x: Any, dimensions: int, width: int | None = None) -> Array:
    """Return numbers, with NaN for any other cell: no error tells which cell that was.

    `width`: Number of columns of an empty list of rows.
    """
    if isinstance(x, (pd.DataFrame, pd.Series)):
        frame = x if isinstance(x, pd.DataFrame) else x.to_frame()
        found_in = [_numbers(frame.iloc[:, place]) for place in range(frame.shape[1])]
        found = np.column_stack(found_in) if found_in else np.zeros((len(frame), 0))
        found = found if dimensions == 2 or found.shape[1] != 1 else found[:, 0]
    else:
        x = cells_in(x, dimensions, width) if isinstance(x, (list, tuple)) else x
        given = as_array(np.ma.filled(x.astype(object), None) if np.ma.isMaskedArray(x) else x, "the table")
        if given.dtype.kind in "biuf":
            with np.errstate(over="ignore"):  # of longer doubles
                found = given.astype(np.float64)
        else:
            found = _numbers(pd.Series(given.ravel().tolist(), dtype=object)).reshape(given.shape)
    if found.ndim != dimensions:
        raise DataError("X is no table of rows and columns" if dimensions == 2 else "y is no list of numbers")
    return np.asarray(found, dtype=np.float64)


def cells_in(x: Sequence[Any], dimensions: int, width: int | None = None) -> np.ndarray[Any, Any]:
    """Return a list as objects, cell by cell: numpy would read all as the strangest of them, or refuse them.

    A row that has another number of cells than the first, or than `width`, is missing.
    """
    rows = [_row(one) for one in x] if dimensions == 2 else [[one] for one in x]
    width = width or (len(rows[0]) if rows else 0)
    found = np.full((len(rows), width), None, dtype=object)
    for place, row in enumerate(rows):
        for column, cell in enumerate(row if len(row) == width else ()):
            found[place, column] = cell
    return found if dimensions == 2 else found.reshape(-1)


def _row(given: Any) -> list[Any]:
    several = isinstance(given, (list, tuple)) or getattr(given, "ndim", 0) == 1
    return list(given) if several else []


def _numbers(cells: pd.Series[Any]) -> Array:
    if pd.api.types.is_numeric_dtype(cells) and not pd.api.types.is_complex_dtype(cells):
        return cells.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.array([_number(cell) for cell in cells], dtype=np.float64)


def _number(cell: object) -> float:
    """Return a cell as a number, by itself: whatever is none, or is beyond the doubles, is NaN."""
    try:
        return float(cell) if isinstance(cell, (str, numbers.Real, Decimal, np.bool_)) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def classes_in(given: Any) -> tuple[Any, ...] | None:
    """Return two labels, or more."""
    if given is None:
        return None
    several = tuple(few("classes", given)) if not isinstance(given, str) else ()
    texts = {text_in(one) for one in several}
    if len(several) < 2 or len(texts) != len(several) or None in texts:
        raise PrivacyError(
            f"classes={shown(given)} are not two labels, or more: pass (negative, positive), such as ('no', 'yes')"
        )
    return several


def ranges_in(given: Any) -> Range | dict[str, Range] | None:
    """Return one range, or one a column."""
    if isinstance(given, Mapping):
        return {str(name): range_in(one) for name, one in given.items()}
    return None if given is None else range_in(given)


def range_in(given: Any) -> Range:
    """Return the two ends of a range."""
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if not -FAR <= low < high <= FAR:
        raise PrivacyError(f"range {shown(given)}: give two finite numbers up to {FAR:g}, the lower one first")
    return low, high


def categories_in(given: Any) -> dict[str, tuple[str, ...]]:
    """Return the values of each column as texts."""
    named = dict(given or {}).items()
    return {str(name): tuple(map(symbol, few(f"categories of {name}", values))) for name, values in named}


def columns_in(given: Any) -> tuple[str, ...] | int | None:
    """Return names, or how many there are."""
    if given is None:
        return None
    if isinstance(given, (str, numbers.Number)) or not isinstance(given, Iterable):
        if isinstance(given, numbers.Integral) and not isinstance(given, bool) and 1 <= int(given) < 2**31:
            return int(given)
        raise PrivacyError(f"columns={shown(given)}: pass the columns' names, or how many there are")
    names = tuple(name if isinstance(name, str) else symbol(name) for name in few("columns", given))
    if not names or len(set(names)) < len(names):
        raise PrivacyError(f"columns={shown(given)}: name each column once")
    return names
