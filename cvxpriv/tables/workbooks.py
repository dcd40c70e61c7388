"""Tables from spreadsheets and Parquet files, where the packages that read them are installed."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from cvxpriv.errors import DataError
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.text import require_package
from cvxpriv.tables.encodings import LOOKED_AT, MAX_BYTES, file_bytes
from cvxpriv.tables.headers import header_place, named, one_header

#: Bytes of a cell in memory, at least.
POINTER = 8
#: Most rows of a sheet: the format has no more.
MOST_ROWS = 2**20


def read_binary(
    path: Path, missing: Sequence[str] | None = None, by_rows: bool = True, alone: bool = False
) -> pd.DataFrame:
    """Read the first sheet of a workbook, or a Parquet file.

    `path`: Ends in ``.xlsx`` or ``.parquet``. `missing`: The texts of a missing value, beside empty cells.
    `by_rows`: Whether the rows of a sheet say that its header has two lines.
    `alone`: As in `cvxpriv.tables.frames.read_table`.
    Raises DataError: The package is not installed; no such file; damaged, empty, or larger than `MAX_BYTES` when
    unpacked.
    """
    suffix = path.suffix.lower()
    require_package(path)
    data = file_bytes(path, text=False)
    try:
        frame = _sheet(data, path, by_rows, alone) if suffix == ".xlsx" else _parquet(data, path)
    except DataError:
        raise
    except Exception as error:  # each package has errors of its own for damage
        raise DataError(f"path={str(path)!r} is no {suffix} file that can be read ({error}): save it again") from error
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    return frame if missing is None else frame.mask(frame.isin(list(missing)))


def _sheet(data: bytes, path: Path, by_rows: bool, alone: bool) -> pd.DataFrame:
    openpyxl, parsers = (import_module(name) for name in ("openpyxl", "pandas.io.parsers"))  # neither has all its types
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        _require_size(sum(info.file_size for info in archive.infolist()), path)
    sheet: Any = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True).worksheets[0]
    sheet.reset_dimensions()  # what the file says of its own size
    rows: list[list[Any]] = []
    width = 0
    for row in sheet.iter_rows():
        rows.append([_value(cell) for cell in row][: len(rows[0]) if alone and rows else None])
        width = max(width, len(rows[-1]))
        # One cell in the last corner makes every row as long as a row can be.
        _require_size(POINTER * width * len(rows), path)
        if len(rows) > MOST_ROWS:
            raise DataError(
                f"path={str(path)!r} has more than {MOST_ROWS:,} rows, and a workbook has not: save it again"
            )
    while rows and not any(cell != "" for cell in rows[-1]):
        rows.pop()
    if not rows:
        raise DataError(f"path={str(path)!r}: the first sheet is empty; move the table to the first sheet")
    padded = [line + [""] * (width - len(line)) for line in (rows if alone else rows[header_place(rows[:LOOKED_AT]) :])]
    cells: pd.DataFrame = parsers.TextParser(padded, header=None, dtype=object).read()
    cells = cells.loc[:, ~cells.isna().all()]
    return named(one_header(cells) if by_rows and not alone else cells, alone)


def _value(cell: Any) -> Any:
    """Return what a cell holds: "" for nothing and for an error, a whole number where it is one."""
    value = "" if cell.value is None or cell.data_type == "e" else cell.value
    return int(value) if isinstance(value, float) and value == int(value) else value


def _parquet(data: bytes, path: Path) -> pd.DataFrame:
    """A column of one text is a few bytes in the file, and as many copies as rows in memory."""
    from pyarrow import compute, parquet, types

    schema: Any = parquet.read_schema(io.BytesIO(data))
    for field in schema:
        if types.is_nested(field.type):
            raise DataError(
                f"path={str(path)!r}: column {field.name!r} holds a {field.type} a row: a cell is a text or a number"
            )
    file: Any = parquet.ParquetFile(io.BytesIO(data), read_dictionary=schema.names)
    meta = file.metadata
    _require_size(sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups)), path)
    _require_size(POINTER * meta.num_rows * meta.num_columns, path)
    table, size = file.read(), 0
    for place, column in enumerate(table.columns):
        if types.is_dictionary(column.type) and not types.is_dictionary(schema.field(place).type):
            for chunk in column.chunks:
                lengths = compute.binary_length(chunk.dictionary).take(chunk.indices)
                size += compute.sum(compute.cast(lengths, "int64")).as_py() or 0
            _require_size(size, path)
            table = table.set_column(place, schema.field(place), column.cast(schema.field(place).type))
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True)  # as doubles whole numbers would lose digits
    return frame.reset_index(drop=True)


def _require_size(size: int, path: Path) -> None:
    if size > MAX_BYTES:
        raise DataError(
            f"path={str(path)!r} holds more than {MAX_BYTES / 2**30:g} GiB: keep the columns that are needed"
        )
