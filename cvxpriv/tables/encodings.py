"""The text of a table's file, and what parts its cells: named by the caller, or found from the file itself."""

from __future__ import annotations

import codecs
import csv
import re
from typing import Any

from cvxpriv.errors import DataError, shown, warn
from cvxpriv.numerics.later import pd

SEPARATORS = (",", ";", "\t", "|")
"""The separators that are looked for."""
FALLBACK = "cp1252"
"""The encoding of text that is no UTF-8: Windows' of western Europe, which is latin-1 with quotes and the euro."""
LOOKED_AT = 20
"""Number of lines that a separator is found from."""
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class DetectedWarning(UserWarning):
    """The way in which a file is read was found from the file, and could be wrong."""


def decoded(data: bytes, encoding: str | None, path: object) -> str:
    """Return the text of a file.

    `encoding`: The encoding. None: that of a mark at the beginning, else UTF-8, else `FALLBACK` with a warning.
    `path`: Name of the file in messages.
    Raises DataError: An unknown encoding, bytes that are no text in it, control characters.

    Warns
    -----
    DetectedWarning
        The text was read as `FALLBACK`.

    Examples
    --------
    >>> decoded("größe".encode("utf-16"), None, "x.csv"), decoded("größe".encode("latin-1"), "latin-1", "x.csv")
    ('größe', 'größe')
    """
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    text = _text(data, encoding or marked or "utf-8", path, asked=encoding is not None or marked is not None)
    if "\0" in text:
        raise DataError(
            f"path={str(path)!r} holds null characters: expected text; give encoding='utf-16-le' if it is UTF-16"
            " without a mark, or save it as UTF-8"
        )
    return text


def _text(data: bytes, encoding: str, path: object, asked: bool) -> str:
    try:
        return data.decode("utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding)
    except LookupError as error:
        raise DataError(
            f"encoding={encoding!r} is unknown ({error}): give utf-8, cp1252, latin-1, utf-16, or another one of Python"
        ) from error
    except (UnicodeError, ValueError) as error:
        if asked:
            raise DataError(f"path={str(path)!r} is no {encoding} ({error}): give another encoding=") from error
    try:
        text = data.decode(FALLBACK)
    except UnicodeError as error:
        text, reason = "", str(error)
    else:
        control = _CONTROLS.search(text)
        reason = f"it holds {shown(control[0])}" if control else ""
    if reason:
        raise DataError(
            f"path={str(path)!r} is neither UTF-8 nor {FALLBACK} ({reason}): give its encoding=, such as latin-2"
        )
    warn(
        f"{path} is no UTF-8 and was read as {FALLBACK} (Windows, western Europe): if letters are wrong, give its"
        " encoding",
        DetectedWarning,
    )
    return text


def separator_of(text: str, usual: str) -> str:
    """Return what parts the cells of a text: the usual one where it makes a table, else the only one that does.

    A separator makes a table where it parts the header, and the first lines in as many cells as that.

    >>> separator_of("name;height;sex", ","), separator_of("age", ","), separator_of("a,b", ",")
    (';', ',', ',')
    """
    piece = text[: 2**16]
    lines = [line for line in piece.splitlines(keepends=True) if line.strip()]
    cut = len(piece) < len(text) or len(lines) > LOOKED_AT
    found = {between: _width(lines[:LOOKED_AT], between, cut) for between in SEPARATORS}
    if found.get(usual, 0) > 1:
        return usual
    widest = max(found, key=lambda between: found[between])
    return widest if found[widest] > 1 else usual


def with_points(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column whose decimals have points: as it is, unless all its cells are numbers with a decimal comma.

    A column in which each comma stands before three digits stays, for the commas may part thousands; unless one of them
    stands behind a single 0.

    >>> with_points(pd.Series(["172,5", "-3"])).tolist(), with_points(pd.Series(["1,500", "2"])).tolist()
    (['172.5', '-3'], ['1,500', '2'])
    >>> with_points(pd.Series(["1,500", "0,190"])).tolist()
    ['1.500', '0.190']
    """
    told = cells.dropna().astype(str).str.strip()
    commas = told.str.contains(",", regex=False)
    if not commas.any() or not told.str.fullmatch(r"[+-]?[0-9]+(?:,[0-9]+)?").all():
        return cells
    if told[commas].str.fullmatch(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}").all():
        return cells
    return cells.where(cells.isna(), cells.astype(str).str.replace(",", ".", regex=False))


def _width(lines: list[str], between: str, cut: bool) -> int:
    """Return the number of cells of each line, 0 where they differ; the last of lines that were cut may be a part."""
    try:
        rows = list(csv.reader(lines, delimiter=between, skipinitialspace=True))
        widths = {len(cells) for cells in (rows[:-1] if cut and len(rows) > 1 else rows)}
    except csv.Error:
        return 0
    return widths.pop() if len(widths) == 1 else 0
