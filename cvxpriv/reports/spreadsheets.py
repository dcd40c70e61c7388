"""Tables as CSV that a spreadsheet shows and does not run.

A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return is a formula to a spreadsheet, which may
fetch and send what it likes. Such a cell gets an apostrophe before it, unless it is a number.
"""

from __future__ import annotations

import re

import pandas as pd

__all__ = ["csv_text", "inert_cells"]

_FORMULA = re.compile(r"\s*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def csv_text(frame: pd.DataFrame, separator: str = ",") -> str:
    """Return a frame as CSV without its index, formulas made inert.

    Examples
    --------
    >>> print(csv_text(pd.DataFrame({"change": ["-1", "=1+1"], "note": ["kept", "@all"]})), end="")
    change,note
    -1,kept
    '=1+1,'@all
    """
    return inert_cells(frame).to_csv(index=False, sep=separator, lineterminator="\n")


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
