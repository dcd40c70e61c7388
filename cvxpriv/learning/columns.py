"""Columns of a table as numbers: the parts of an `Encoding`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cvxpriv.errors import DataError, shown
from cvxpriv.numerics.arguments import few
from cvxpriv.numerics.arrays import Array, Flags
from cvxpriv.numerics.packages import pd
from cvxpriv.tables.encodings import SIGNS
from cvxpriv.tables.frames import factorized, in_order, symbol
from cvxpriv.tables.small_counts import FEWEST

#: Largest number of values of a category read off the data: a column with more holds names or codes of single rows.
MOST_VALUES = 1000
#: Text with a leading zero is a code, not a number, as for `cvxpriv.tables.frames.symbol`.
_CODE = re.compile(r"[+-]?0[0-9]")


@dataclass(frozen=True)
class Number:
    """A column of numbers, scaled so that `low` becomes 0 and `high` becomes 1.

    `given`: Whether the user gave the range; otherwise it was read off the data.
    """

    name: str
    low: float
    high: float
    given: bool = True

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its encoded columns."""
        return (self.name,)

    def encode(self, frame: pd.DataFrame, beyond: str) -> Array:
        """Return the encoded column, (n, 1); see `Encoding.encode`."""
        values = _numbers(frame, self.name)
        outside = ~((values >= self.low) & (values <= self.high))
        if self.given and beyond == "refuse" and outside.any():
            row = int(np.argmax(outside))
            raise DataError(
                f"column {self.name!r} holds {values[row]:g} in row {frame.index[row]} (the first is 0), beyond its "
                f"range {self.low:g} to {self.high:g}: give a wider one, or beyond='move', which moves them to its end"
            )
        share = (np.clip(values, self.low, self.high) - self.low) / (self.high - self.low)
        return np.clip(share, 0.0, 1.0)[:, None]


@dataclass(frozen=True)
class Category:
    """A column of categories: one column of 0 and 1 for each value; a missing value sets none.

    `values`: The values, as `cvxpriv.tables.frames.symbol` writes them.
    `given`: Whether the user gave the values; otherwise they were read off the data.
    """

    name: str
    values: tuple[str, ...]
    given: bool = True

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its encoded columns."""
        return tuple(f"{self.name}={value}" for value in self.values)

    def encode(self, frame: pd.DataFrame, beyond: str) -> Array:
        """Return the encoded columns, (n, values); see `Encoding.encode`."""
        codes, uniques = factorized(frame[self.name])
        texts = [symbol(value) for value in uniques]
        place = {value: index for index, value in enumerate(self.values)}
        unknown = [text for text in texts if text not in place and text]
        if self.given and beyond == "refuse" and unknown:
            raise DataError(
                f"column {self.name!r} holds {unknown[0]!r}, which is none of its values "
                f"({', '.join(self.values[:5])}{', ...' if len(self.values) > 5 else ''}): add it to them, or give "
                "beyond='move' to treat such values as missing"
            )
        nowhere = len(self.values)  # code -1, a missing value, reads the last entry too
        found = np.array([*(place.get(text, nowhere) for text in texts), nowhere])[codes]
        return np.asarray(np.eye(nowhere + 1, nowhere)[found])


Column: TypeAlias = Number | Category


def column_of(
    frame: pd.DataFrame,
    name: str,
    ranges: Mapping[str, tuple[float, float]],
    categories: Mapping[str, Sequence[object] | None],
) -> Column:
    """Return the encoding of a column; `Encoding.of` describes the arguments and the errors."""
    if name in ranges:
        low, high = _range(name, ranges[name])
        return Number(name, low, high)
    values = categories.get(name)
    if values is not None:
        texts = tuple(dict.fromkeys(map(symbol, few(f"categories of {name}", values))))
        if not texts or "" in texts:
            raise DataError(f"categories of {name!r} are {shown(values)}: give at least one value, and no empty one")
        return Category(name, texts)
    if name not in categories and _reads_as_numbers(frame[name]):
        present = _numbers(frame[~missing_cells(frame[name])], name)
        if present.min() == present.max():
            raise DataError(
                f"column {name!r} holds {present[0]:g} alone, which has no range to be read off: give one, or leave "
                "the column out"
            )
        return Number(name, float(present.min()), float(present.max()), given=False)
    texts = in_order({symbol(value) for value in pd.unique(frame[name].dropna())} - {""})
    if not texts or len(texts) > MOST_VALUES:
        raise DataError(
            f"column {name!r} has {len(texts):,} different values, expected 1 to {MOST_VALUES:,} of a category: leave "
            "the column out, or give its values"
        )
    if name not in categories and len(frame) >= FEWEST and 2 * len(texts) > len(frame):
        raise DataError(
            f"column {name!r} has {len(texts):,} values in {len(frame):,} rows, most with a value of their own: leave "
            "it out (an identifier?), make classes of it, or say that it is a category"
        )
    return Category(name, texts, given=False)


def _range(name: str, given: object) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in given)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        low = high = np.nan
    if not (np.isfinite([low, high]).all() and low < high):
        raise DataError(f"ranges of {name!r} is {given!r}: give two finite numbers, the lower one first")
    return low, high


def missing_cells(values: pd.Series[Any]) -> Flags:
    """Return a mask of the missing or blank cells of a column, (n,)."""
    blank = values.map(lambda value: isinstance(value, str) and not value.strip())
    return np.asarray(values.isna() | blank.astype(bool), dtype=bool)


def _reads_as_numbers(values: pd.Series[Any]) -> bool:
    if values.dtype == bool or isinstance(values.dtype, pd.CategoricalDtype):
        return False
    present = values[~missing_cells(values)]
    if any(isinstance(value, str) and _CODE.match(value.strip()) for value in pd.unique(present)):
        return False
    return len(present) > 0 and bool(_parsed(present).notna().all())


def _parsed(values: pd.Series[Any]) -> pd.Series[Any]:
    """Return cells as numbers, NaN where they are none; signs of percentages and of money around one are left out."""
    bare = values.map(lambda cell: cell.strip(SIGNS + " ") if isinstance(cell, str) else cell)
    return pd.to_numeric(bare, errors="coerce")


def _numbers(frame: pd.DataFrame, name: str) -> Array:
    values = frame[name]
    missing = missing_cells(values)
    if missing.any():
        raise DataError(
            f"column {name!r} has {int(missing.sum()):,} missing numbers in {len(frame):,} rows: drop those rows"
        )
    found = _parsed(values).to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = ~np.isfinite(found)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"column {name!r} holds {str(values.iloc[row])!r} in row {frame.index[row]} (the first is 0), no finite "
            "number: give its values as categories, or drop the row"
        )
    return found
