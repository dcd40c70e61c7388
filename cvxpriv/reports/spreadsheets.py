"""Tables as files that a spreadsheet shows and does not run.

A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return is a formula to a spreadsheet, which may
fetch and send what it likes. Such a cell gets an apostrophe before it, unless it is a number.
"""

from __future__ import annotations

import io
import re
from importlib.util import find_spec
from pathlib import Path

from cvxpriv.errors import DataError
from cvxpriv.numerics.later import pd
from cvxpriv.reports.files import PathLike, write_bytes

TEXTS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
"""Separators of text files by their suffix."""
BINARY = {".xlsx": "openpyxl", ".parquet": "pyarrow"}
"""Packages that read and write other files, by their suffix."""

_FORMULA = re.compile(r"\s*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def csv_text(frame: pd.DataFrame, separator: str = ",") -> str:
    """Return a frame as CSV without its index, formulas made inert.

    >>> print(csv_text(pd.DataFrame({"change": ["-1", "=1+1"], "note": ["kept", "@all"]})), end="")
    change,note
    -1,kept
    '=1+1,'@all
    """
    return inert_cells(frame).to_csv(index=False, sep=separator, lineterminator="\n")


def require_table_file(path: PathLike) -> None:
    """Check, before any work, that a table can be written to a file of that name.

    Raises DataError: An unknown suffix, or one whose package is not installed.
    """
    if Path(path).suffix.lower() not in {**TEXTS, **BINARY}:
        raise DataError(f"{str(path)!r} ends in neither of {', '.join([*TEXTS, *BINARY])}: choose one of these")
    require_package(path)


def require_package(path: PathLike) -> None:
    """Check that the package that a file needs is installed.

    Raises DataError: The message names the package.
    """
    package = BINARY.get(Path(path).suffix.lower())
    if package is not None and find_spec(package) is None:
        raise DataError(f'{str(path)!r} needs {package}: pip install "cvxpriv[tables]", or use a CSV file')


def write_table(path: PathLike, frame: pd.DataFrame) -> Path:
    """Write a frame without its index to a file whose suffix names the form, whole or not at all.

    Raises DataError: As for `require_table_file`; the file cannot be written.
    """
    require_table_file(path)
    suffix, file = Path(path).suffix.lower(), io.BytesIO()
    if suffix == ".xlsx":
        inert_cells(frame).to_excel(file, index=False, engine="openpyxl")
    elif suffix == ".parquet":
        frame.to_parquet(file, index=False, engine="pyarrow")
    else:
        file.write(csv_text(frame, TEXTS[suffix]).encode("utf-8"))
    return write_bytes(path, file.getvalue())


def inert_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose texts, names of columns included, no spreadsheet takes for formulas."""
    safe = frame.copy(deep=False)
    for place, dtype in enumerate(frame.dtypes):
        if not pd.api.types.is_numeric_dtype(dtype):
            column = frame.iloc[:, place]
            safe.isetitem(place, column.astype(object).map(_inert, na_action="ignore").to_numpy())
    safe.columns = pd.Index([_inert(name) for name in frame.columns])
    return safe


def _inert(cell: object) -> object:
    formula = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell.strip())
    return f"'{cell}" if formula else cell
