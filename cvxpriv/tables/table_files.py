"""Tables read from files: CSV, TSV, spreadsheets and Parquet."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

from cvxpriv.errors import DataError
from cvxpriv.numerics.later import pd
from cvxpriv.tables.encodings import (
    COMPRESSIONS,
    SEPARATORS,
    below_title,
    decoded,
    file_bytes,
    separator_of,
    with_points,
)
from cvxpriv.tables.workbooks import BINARY, read_binary

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
MAX_COLUMNS = 10_000
"""The most columns of a file."""


def read_table(
    path: str | os.PathLike[str],
    separator: str | None = None,
    missing: Sequence[str] | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
) -> pd.DataFrame:
    """Read a table's file with a header line: CSV, TSV, a spreadsheet or Parquet.

    Every cell of a text stays text. Numbers with decimal commas get points, and lose what parts their thousands.
    Comments and a title above the header are left out. A column without a name is "column 1" by its place; one that
    stands there twice with the same cells is one column.

    `path`: The file; a text may be compressed (``people.csv.gz``). ``.xlsx`` needs openpyxl, ``.parquet`` pyarrow.
    `separator`: Separator of cells. By default ``,`` for ``.csv`` and a tab for ``.tsv`` and ``.tab``, or another usual
    one where only that makes a table (`cvxpriv.tables.encodings.separator_of`).
    `missing`: The spellings of a missing value. By default those of pandas: an empty cell, NA, NaN, null, None and so
    on.
    `encoding`: The encoding. None: found from the file, UTF-8, UTF-16 with its mark, else cp1252 with a warning.
    `decimal`: Decimal point of numbers, "." or ","; the other one parts thousands. None: found column by column, where
    the file tells. "none": cells stay as they are written.
    Raises DataError: No such file, unknown suffix, a damaged, encrypted or too large file, or one that is no table.
    """
    file = Path(path)
    suffixes = [suffix.lower() for suffix in file.suffixes]
    suffix = next((s for s in reversed(suffixes) if s not in COMPRESSIONS), "")
    if suffix in BINARY and separator is None:
        frame = read_binary(file, missing)
        if len(frame.columns) > MAX_COLUMNS:
            raise DataError(f"path={str(path)!r} has {len(frame.columns):,} columns: keep those that are needed")
        return frame
    if separator is None and suffix not in _SEPARATORS:
        known = ", ".join([*_SEPARATORS, *BINARY])
        raise DataError(f"path={str(path)!r} ends in neither of {known}: rename it or give separator=")
    text = decoded(file_bytes(file), encoding, path)
    if separator is None or separator in SEPARATORS:
        text = below_title(text, [separator] if separator else SEPARATORS)
    between = separator or separator_of(text, _SEPARATORS[suffix])
    _require_width(text, between, path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            cells: pd.DataFrame = pd.read_csv(
                io.StringIO(text),
                sep=between,
                header=None,  # read as a row: doubled columns would be renamed
                dtype=str,
                skipinitialspace=True,
                na_values=None if missing is None else list(missing),
                keep_default_na=missing is None,
            )
    except (ValueError, TypeError, OverflowError, RecursionError, re.error, pd.errors.ParserWarning) as error:
        raise DataError(  # a ParserError, an EmptyDataError and a UnicodeDecodeError are ValueErrors
            f"path={str(path)!r} is no table ({error}): expected text, a header line, as many cells in each line"
        ) from error
    except MemoryError as error:
        raise DataError(f"path={str(path)!r} does not fit in memory: keep the columns that are needed") from error
    cells = cells.loc[:, ~cells.isna().all()]  # a separator at the end of each line makes a column of nothing
    frame = with_points(cells, between, decimal).iloc[1:].reset_index(drop=True)
    names = [f"column {i + 1}" if pd.isna(name) else str(name).strip() for i, name in enumerate(cells.iloc[0])]
    frame.columns = pd.Index(names)
    first = {name: i for i, name in reversed(list(enumerate(names)))}
    later = [i for i, name in enumerate(names) if first[name] < i]
    twice = {i for i in later if frame.iloc[:, i].equals(frame.iloc[:, first[names[i]]])}
    return frame.iloc[:, [i for i in range(len(names)) if i not in twice]] if twice else frame


def _require_width(text: str, separator: str, path: object) -> None:
    """Refuse a header with more columns than a table can have: each costs memory before its content is known."""
    text = text.lstrip("\r\n")
    end = text.find("\n")
    columns = 1 + text[: len(text) if end < 0 else end].count(separator)
    if columns > MAX_COLUMNS:
        raise DataError(
            f"path={str(path)!r} has {columns:,} columns, more than {MAX_COLUMNS:,}: keep those that are needed"
        )
