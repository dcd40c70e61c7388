"""Private rows at the door of a command: read as a schema says, or with public ranges and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from cvxpriv.errors import DataError, PrivacyError
from cvxpriv.learning.columns import Number
from cvxpriv.learning.encoding import Encoding
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.learning.schema_parts import numbers_in
from cvxpriv.tables.frames import symbol

#: The remedy where `told_nothing` refuses rows to learn from.
REMEDY = "give wider ranges, --beyond move and --missing drop, or --schema, which brings every row within it"


def require_given(columns: Sequence[str], ranges: Mapping[str, Any], categories: Mapping[str, Any]) -> None:
    """Refuse columns whose range or values would have to be read off private rows; no row is read for that."""
    strays = [name for name in columns if name not in ranges and not categories.get(name)]
    if strays:
        raise PrivacyError(
            f"the ranges or values of {', '.join(map(repr, strays))} would be read off the private rows, and no "
            "guarantee covers that: give what is publicly known, --range age:0:100, --category job:clerk,farmer, or "
            "--schema; or let them be read off with --bounds-from-data"
        )


def columns_of(schema: PublicSchema) -> list[str]:
    """Return the columns that a schema names."""
    ranges = list(schema.ranges) if isinstance(schema.ranges, Mapping) else []
    names = list(schema.columns) if isinstance(schema.columns, tuple) else [*ranges, *schema.categories]
    if not names:
        raise DataError("--schema names no columns: a command needs their names, in columns, ranges or categories")
    return names


def ranges_of(schema: PublicSchema, columns: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the ranges of those of the columns that hold numbers."""
    if isinstance(schema.ranges, Mapping):
        return {name: ends for name, ends in schema.ranges.items() if name in columns}
    numbers = [name for name in columns if name not in schema.categories]
    return {} if schema.ranges is None else dict.fromkeys(numbers, schema.ranges)


def within(frame: pd.DataFrame, encoding: Encoding) -> pd.DataFrame:
    """Return a table whose numbers lie in their ranges: one beyond it at its end, a missing one in the middle."""
    brought = frame.copy()
    for column in encoding.columns:
        if isinstance(column, Number):
            numbers = numbers_in(frame[column.name].to_numpy(dtype=object), 1)
            middle = (column.low + column.high) / 2.0
            brought[column.name] = np.clip(np.where(np.isnan(numbers), middle, numbers), column.low, column.high)
        else:
            brought[column.name] = frame[column.name].map(symbol, na_action="ignore")
    return brought


def uncounted_split(rows: int, fraction: float, seed: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return which rows are learned from and which are held out, each row by itself: one more moves no other.

    >>> [part.tolist() for part in uncounted_split(5, 0.5, 0)], [part.tolist() for part in uncounted_split(4, 0.5, 0)]
    ([[0, 4], [1, 2, 3]], [[0], [1, 2, 3]])
    """
    held = np.random.default_rng(seed).random(rows) < fraction
    return np.flatnonzero(~held), np.flatnonzero(held)
