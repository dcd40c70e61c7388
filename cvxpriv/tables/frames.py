"""Symbols and columns read from data frames and files.

**One rule for symbols.** Tables come from files, frames and arrays, and the same value may arrive as ``1``, ``1.0`` or
``"1"``. Every value becomes text, by `symbol`, so that a mechanism designed on one can be applied to the other.
"""

from __future__ import annotations

import io
import math
import numbers
import os
import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxpriv.errors import DataError, shown, suggest
from cvxpriv.numerics.arguments import MOST_GIVEN, is_missing
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.text import BINARY, TEXTS
from cvxpriv.tables.encodings import COMPRESSIONS, SEPARATORS, decoded, file_bytes, separator_of, with_points
from cvxpriv.tables.headers import below_title, named, one_header
from cvxpriv.tables.workbooks import read_binary

_PLAIN_NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_CLASS = re.compile(r"(below )?([+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)(?: to .*| and above)?")
"""A number, or a class of numbers as `cvxpriv.tables.steps.Bins` names it."""
MAX_COLUMNS = 10_000
"""The most columns of a file."""


def symbol(value: object) -> str:
    """Return the canonical text of a cell's value.

    - A number: the shortest text that gives it back; a whole one has no decimal point. ``1``, ``1.0`` -> ``"1"``.
    - Text loses the blanks around it, and accents are one with their letters (NFC). Text that is a plain decimal number
      is read as that number: ``"1.0"`` -> ``"1"``.
      Text with a leading zero or an exponent is a code, not a number, and stays: ``"01234"``, ``"1E3"``.
    - A truth value is ``"True"`` or ``"False"``, not 1 or 0. Anything else is ``str(value)``.

    The rule is idempotent: ``symbol(symbol(v)) == symbol(v)``.

    Raises DataError: A value that has no text.

    >>> [symbol(v) for v in (1, 1.0, "1", " 1.0 ", 0.5, "0.50", "01", True)]
    ['1', '1', '1', '1', '0.5', '0.5', '01', 'True']
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, numbers.Real) and not isinstance(value, (numbers.Integral, np.timedelta64)):
        try:
            return _number(float(value))
        except OverflowError:  # a fraction beyond the doubles
            return text_of(value, "a symbol")
    text = unicodedata.normalize("NFC", text_of(value, "a symbol").strip())
    if not _PLAIN_NUMBER.fullmatch(text):
        return text
    whole, _, fraction = text.removeprefix("+").partition(".")
    if not fraction.strip("0"):  # by text, so that long identifiers keep all their digits
        return "0" if whole == "-0" else whole
    return _number(float(text)) if math.isfinite(float(text)) else text


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def text_of(value: object, argument: str) -> str:
    """Return ``str(value)``.

    Raises DataError: The value has no text: a whole number of too many digits, an object that cannot be shown, or only
    by its address in memory, which is another one in each run.
    """
    if type(value).__str__ is object.__str__ and type(value).__repr__ is object.__repr__:
        raise DataError(f"{argument} of type {type(value).__name__} has no text of its own: pass a text")
    try:
        text = str(value)
        text.encode()  # half a surrogate pair stands in no file
    except Exception as error:
        raise DataError(f"{argument} of type {type(value).__name__} has no text ({error}): pass a text") from error
    return text


def listed(values: Any, argument: str) -> list[Any]:
    """Return the items of a list of symbols or columns, and refuse anything that is no such list.

    Raises DataError: One text, or nothing that has items; an item that is missing.
    """
    if isinstance(values, (str, bytes)):
        raise DataError(f"{argument}={values!r} is one text: give a list, [{values!r}]")
    try:
        items = list(islice(values, MOST_GIVEN + 1))
    except Exception as error:
        raise DataError(f"{argument} is of type {type(values).__name__}: expected a list of names") from error
    if len(items) > MOST_GIVEN:
        raise DataError(f"{argument} holds more than {MOST_GIVEN:,} names: give fewer")
    for i, item in enumerate(items):
        if is_missing(item):
            raise DataError(f"{argument}[{i}] is missing ({item!r}): give it a name")
    return items


def in_order(symbols: Iterable[str]) -> tuple[str, ...]:
    """Sort distinct symbols in a reader's order: numbers and their classes by value, and digits inside text too.

    >>> in_order(["10", "9", "-1"]), in_order(["grade 10", "grade 9"]), in_order(["2 to 3", "4 and above", "below 2"])
    (('-1', '9', '10'), ('grade 9', 'grade 10'), ('below 2', '2 to 3', '4 and above'))
    """
    return tuple(sorted(set(symbols), key=lambda text: (by_number(text), _natural(text))))


def by_number(text: str) -> tuple[float, bool]:
    """Return a sort key of numbers and of their classes; every other symbol comes after them.

    >>> by_number("below 26"), by_number("26 to 32"), by_number("missing")
    ((26.0, False), (26.0, True), (inf, True))
    """
    found = _CLASS.fullmatch(text)
    return (float(found[2]), not found[1]) if found else (math.inf, True)


def _natural(text: str) -> tuple[list[tuple[bool, int, str]], str]:
    """Return a sort key that compares runs of digits by value, before other text."""
    runs = re.findall(r"([0-9]+)|([^0-9]+)", text)
    return [(not digits, len(digits.lstrip("0")), digits.lstrip("0") or other) for digits, other in runs], text


def require_columns(frame: pd.DataFrame, columns: Sequence[str], argument: str) -> None:
    """Check that a frame has each of the columns exactly once.

    Raises DataError: No column asked for, a column asked for twice, unknown, or twice in the frame.
    """
    if not isinstance(frame, pd.DataFrame):
        raise DataError(
            f"the table is of type {type(frame).__name__}: expected a pandas DataFrame; JointTable.from_array"
            " takes a matrix"
        )
    if frame.columns.nlevels > 1:
        raise DataError(f"the table has {frame.columns.nlevels} levels of column names: expected one; join them")
    if not columns:
        raise DataError(f"{argument}=[] names no column: name at least one. {suggest('', frame.columns)}")
    for column in columns:
        if not isinstance(column, (str, int, np.integer)):
            raise DataError(f"{argument} names a column by a {type(column).__name__}: expected a text or a number")
        if columns.count(column) > 1:
            raise DataError(f"{argument} names column {column!r} {columns.count(column)} times: name it once")
        found = frame.columns.tolist().count(column)
        if found == 0:
            raise DataError(f"{argument}={shown(column)} is no column of the table: {suggest(column, frame.columns)}")
        if found > 1:
            raise DataError(f"{argument}={column!r}: the table has {found} columns of that name: rename or drop one")


def require_roles(
    frame: pd.DataFrame, private: Sequence[str], public: Sequence[str], count: str | None, allow_overlap: bool
) -> None:
    """Check the columns that a joint table is made of.

    Raises DataError: As for `require_columns`; a column on both sides without ``allow_overlap``; a count that is one of
    the others.
    """
    require_columns(frame, private, "private")
    require_columns(frame, public, "public")
    both = [column for column in private if column in public]
    if both and not allow_overlap:
        raise DataError(
            f"column {both[0]!r} is private and public: take it out of one, or allow_overlap=True"
            " if the mechanism may see it and should still hide it"
        )
    if count is not None and not isinstance(count, (str, int, np.integer)):
        raise DataError(f"count names a column by a {type(count).__name__}: expected a text or a number")
    if count is not None and count in (*private, *public):
        raise DataError(f"count={count!r} is also a private or public column: name the column that holds the counts")


def encode_column(frame: pd.DataFrame, column: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return a column as numbers into its levels.

    Levels are the column's symbols in order: for a categorical column all its categories in their own order, for any
    other `in_order`.

    Returns `codes`: ``(rows,)``.
    Raises DataError: The column has missing values.
    """
    values = frame[column]
    if values.dtype.kind == "c":
        raise DataError(f"column {column!r} holds complex numbers: expected texts or real numbers")
    raw, uniques = factorized(values)
    texts = [symbol(value) for value in uniques]
    blank = np.array([*(text == "" for text in texts), True])  # code -1, a missing value, reads the last entry
    require_present(column, int(blank[raw].sum()), len(frame))
    if isinstance(values.dtype, pd.CategoricalDtype):
        levels = tuple(dict.fromkeys(symbol(value) for value in values.cat.categories))
    else:
        levels = in_order(texts)
    position = {text: i for i, text in enumerate(levels)}
    lookup = np.array([position[text] for text in texts], dtype=np.int64)
    return lookup[raw], levels


def factorized(values: pd.Series) -> tuple[NDArray[np.int64], Any]:
    """Return the `pandas.factorize` of a column, to which True is no 1, as it is none to `symbol`."""
    if values.dtype == object:
        values = values.map(lambda cell: str(cell) if isinstance(cell, (bool, np.bool_)) else cell)
    return pd.factorize(values)


def require_present(column: str, missing: int, rows: int) -> None:
    """Refuse a column with missing values.

    Raises DataError: The message counts them, and says what may be done.
    """
    if missing:
        raise DataError(
            f"column {column!r} has {missing} missing value{'s' * (missing > 1)} in {rows} rows:"
            " drop those rows, prepare(frame, missing='drop'), or give them a symbol of their own, missing='symbol'"
        )


def read_table(
    path: str | os.PathLike[str],
    separator: str | None = None,
    missing: Sequence[str] | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    alone: bool = False,
) -> pd.DataFrame:
    """Read a table's file with a header line: CSV, TSV, a spreadsheet or Parquet.

    Every cell of a text stays text. Numbers with decimal commas get points, and lose what parts their thousands.
    Comments and titles above the header are left out, and a header of two lines is made one, with a warning. A column
    without a name is "column 1" by its place; one that stands there twice with the same cells is one column.

    `path`: The file; a text may be compressed (``people.csv.gz``). ``.xlsx`` needs openpyxl, ``.parquet`` pyarrow.
    `separator`: Separator of cells. By default ``,`` for ``.csv`` and a tab for ``.tsv`` and ``.tab``, or another usual
    one where only that makes a table (`cvxpriv.tables.encodings.separator_of`).
    `missing`: The spellings of a missing value. By default those of pandas: an empty cell, NA, NaN, null, None and so
    on.
    `encoding`: The encoding. None: found from the file, UTF-8, UTF-16 with its mark, else cp1252 with a warning.
    `decimal`: Decimal point of numbers, "." or ","; the other one parts thousands. None: found column by column, where
    the file tells. "none": cells stay as they are written.
    `alone`: Read each row by itself, so that no row changes how another is read, or whether the file is refused. The
    first line is the header, and tells the separator. Cells beyond it are lost, as are columns without a name and what
    is no text in the encoding, UTF-8 unless named. `decimal` None is then "none".
    Raises DataError: No such file, unknown suffix, a damaged, encrypted or too large file, or one that is no table.
    """
    file = Path(path)
    suffix = next((s for s in map(str.lower, reversed(file.suffixes)) if s not in COMPRESSIONS), "")
    if separator is not None and len(separator) != 1:
        raise DataError(f"separator={separator!r}: give one character, or none to have it found")
    if suffix in BINARY and separator is None:
        frame = read_binary(file, missing, decimal is None, alone)
        _require_width(len(frame.columns), path)
        return frame
    if separator is None and suffix not in TEXTS:
        known = ", ".join([*TEXTS, *BINARY])
        raise DataError(f"path={str(path)!r} ends in neither of {known}: rename it or give separator=")
    text = decoded(file_bytes(file), encoding, path, alone)
    if not alone and (separator is None or separator in SEPARATORS):
        text = below_title(text, [separator] if separator else SEPARATORS)
    header = re.split(r"[\r\n]", text.lstrip("\r\n"), maxsplit=1)[0]
    between = separator or separator_of(header if alone else text, TEXTS[suffix])
    _require_width(1 + header.count(between), path)
    try:
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            read: Any = partial(
                pd.read_csv,
                sep=between,
                header=None,  # read as a row: doubled columns would be renamed
                dtype=str,
                skipinitialspace=True,
                na_values=None if missing is None else list(missing),
                keep_default_na=missing is None,
            )
            wanted = list(read(io.StringIO(header)).columns) if alone else None
            cells: pd.DataFrame = read(io.StringIO(text), usecols=wanted)
    except (ValueError, TypeError, OverflowError, RecursionError, re.error, pd.errors.ParserWarning) as error:
        raise DataError(  # a ParserError, an EmptyDataError and a UnicodeDecodeError are ValueErrors
            f"path={str(path)!r} is no table ({'it is empty, or quotes do not close' if alone else error}): expected "
            "text, a header line, as many cells in each line"
        ) from (None if alone else error)
    except MemoryError as error:
        raise DataError(f"path={str(path)!r} does not fit in memory: keep the columns that are needed") from error
    cells = cells.loc[:, ~cells.isna().all()]  # a separator at the end of each line makes a column of nothing
    whole = cells if alone or decimal is not None else one_header(cells)
    return named(with_points(whole, between, decimal or ("none" if alone else None)), alone)


def _require_width(columns: int, path: object) -> None:
    """Refuse more columns than a table can have: each costs memory before its content is known."""
    if columns > MAX_COLUMNS:
        raise DataError(f"path={str(path)!r} has {columns:,} columns, more than {MAX_COLUMNS:,}: keep those needed")
