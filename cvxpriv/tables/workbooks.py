"""Tables from spreadsheets and Parquet files, where the packages that read them are installed."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cvxpriv.errors import DataError
from cvxpriv.numerics.later import pd
from cvxpriv.reports.text import BINARY, require_package
from cvxpriv.tables.encodings import MAX_BYTES, file_bytes

__all__ = ["BINARY", "read_binary"]


def read_binary(path: Path, missing: Sequence[str] | None = None) -> pd.DataFrame:
    """Read the first sheet of a workbook, or a Parquet file.

    `path`: Ends in ``.xlsx`` or ``.parquet``. `missing`: The texts of a missing value, beside empty cells.
    Raises DataError: The package is not installed; no such file; damaged, empty, or larger than `MAX_BYTES` when
    unpacked.
    """
    suffix = path.suffix.lower()
    require_package(path)
    data = file_bytes(path)
    try:
        frame = _sheet(data, path) if suffix == ".xlsx" else _parquet(data, path)
    except DataError:
        raise
    except Exception as error:  # each package has errors of its own for damage
        raise DataError(f"path={str(path)!r} is no {suffix} file that can be read ({error}): save it again") from error
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    return frame if missing is None else frame.mask(frame.isin(list(missing)))


def _sheet(data: bytes, path: Path) -> pd.DataFrame:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        _require_size(sum(info.file_size for info in archive.infolist()), path)
    cells = pd.read_excel(io.BytesIO(data), header=None, dtype=object, engine="openpyxl")
    if cells.empty:
        raise DataError(f"path={str(path)!r}: the first sheet is empty; move the table to the first sheet")
    frame = cells.iloc[1:].reset_index(drop=True)
    frame.columns = cells.iloc[0]
    return frame


def _parquet(data: bytes, path: Path) -> pd.DataFrame:
    from pyarrow import parquet

    file: Any = parquet.ParquetFile(io.BytesIO(data))
    _require_size(sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups)), path)
    frame: pd.DataFrame = file.read().to_pandas()
    return frame.reset_index(drop=True)


def _require_size(size: int, path: Path) -> None:
    if size > MAX_BYTES:
        raise DataError(
            f"path={str(path)!r} holds more than {MAX_BYTES / 2**30:g} GiB: keep the columns that are needed"
        )
