"""A table's file as text: its bytes, unpacked within bounds, their encoding, and what parts the cells.

A small archive can hold terabytes, a damaged one can end anywhere. Unpacking reads piece by piece and stops at a limit.
Encoding and separator are named by the caller, or found from the file itself.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import numbers
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from cvxpriv.errors import DataError, shown, warn
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.files import plain_file

SEPARATORS = (",", ";", "\t", "|")
"""The separators that are looked for."""
FALLBACK = "cp1252"
"""The encoding of text that is no UTF-8: Windows' of western Europe, which is latin-1 with quotes and the euro."""
LOOKED_AT = 20
"""Number of lines that a separator is found from."""
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_DIGIT, _MARK = re.compile(r"[0-9]"), re.compile(r"[,.'\u2019\u00a0\u2009\u202f]")
_BLANKS = re.compile(r"(?<=[0-9])['\u2019\u00a0\u2009\u202f](?=[0-9]{3}(?![0-9]))")
"""Thousands separators that are nothing else: apostrophes and narrow or unbreakable blanks."""
SIGNS = "%$\u20ac\u00a3\u00a5"
"""Signs that may stand before or behind a number: a percentage, an amount of money."""
_NUMBER = {
    point: re.compile(
        rf"\s*[{SIGNS}]?\s*[+-]?(?:[1-9][0-9]{{0,2}}(?:{thousand}[0-9]{{3}})+|[0-9]+)(?:{decimal}[0-9]+)?\s*[{SIGNS}]?\s*"
    )
    for point, thousand, decimal in ((".", ",", r"\."), (",", r"\.", ","))
}
"""Numbers by their decimal point: 1,234.5 and 1.234,5."""
DECIMALS = (".", ",", "none")
"""Decimal points that a caller can name; with "none" numbers stay as they are written."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class DetectedWarning(UserWarning):
    """The way in which a file is read was found from the file, and could be wrong."""


def decoded(data: bytes, encoding: str | None, path: object, alone: bool = False) -> str:
    """Return the text of a file.

    `encoding`: The encoding. None: that of a mark at the beginning, else UTF-8, else `FALLBACK` with a warning.
    `path`: Name of the file in messages.
    `alone`: Let no row change how others are read: the encoding is UTF-8 unless named, and what is none is replaced.
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
    asked = alone or encoding is not None or marked is not None
    text = _text(data, encoding or marked or "utf-8", path, asked, "replace" if alone else "strict")
    if alone:
        return text.replace("\0", "\ufffd")
    if "\0" in text:
        raise DataError(
            f"path={str(path)!r} holds null characters: expected text; give encoding='utf-16-le' if it is UTF-16"
            " without a mark, or save it as UTF-8"
        )
    return text


def _text(data: bytes, encoding: str, path: object, asked: bool, errors: str) -> str:
    try:
        return data.decode("utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding, errors)
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


def is_number(cell: object) -> bool:
    """Return whether a cell is a number, or a text that people read as one.

    >>> [is_number(cell) for cell in (3, "1.234,5", "$ 1,200.00", "12 %", "2 kg")]
    [True, True, True, True, False]
    """
    text = _BLANKS.sub("", str(cell).strip())
    return isinstance(cell, numbers.Real) or any(pattern.fullmatch(text) for pattern in _NUMBER.values())


def with_points(frame: pd.DataFrame, separator: str, decimal: str | None = None) -> pd.DataFrame:
    """Return the cells of a file with decimal points and without thousands separators, where columns hold such numbers.

    A column counts as numbers where all its cells with a digit do. ``1,500`` alone can be either: then the other
    columns say what a comma is, or a comma as the separator of cells, behind which decimals have points; else it stays.

    `frame`: Texts; the first row is the header.
    `decimal`: One of `DECIMALS`. Each cell is then read by itself: no row changes how another one is read.
    Raises DataError: An unknown `decimal`.

    Warns
    -----
    DetectedWarning
        Thousands separators were found and taken out, or commas that could be such were read as decimal ones.

    >>> made = with_points(pd.DataFrame([["height", "income"], ["172,5", "1,500"], ["-3", "900,5"]]), ";")
    >>> made.iloc[1:].to_numpy().tolist()
    [['172.5', '1.500'], ['-3', '900.5']]
    >>> with_points(pd.DataFrame([["income"], ["1,500"]]), ";").iloc[1, 0]
    '1,500'
    >>> with_points(pd.DataFrame([["income"], ["1,500"]]), ";", ",").iloc[1, 0]
    '1.500'
    """
    if decimal not in (None, *DECIMALS):
        raise DataError(f"decimal={decimal!r} is no decimal point: give '.', ',' or 'none'")
    if decimal == "none":
        return frame
    body, styles = frame.iloc[1:], {}
    for place in frame.columns:
        told = [_BLANKS.sub("", cell) for cell in body[place].dropna().unique() if _DIGIT.search(cell)]
        fits = {point for point, pattern in _NUMBER.items() if told and all(map(pattern.fullmatch, told))}
        if decimal is not None:
            fits = {decimal} if any(map(_NUMBER[decimal].fullmatch, told)) else set()
        if fits and any(_MARK.search(cell) for cell in body[place].dropna().unique()):
            styles[place] = fits
    sure = {point for fits in styles.values() if len(fits) == 1 for point in fits}
    if not sure and separator == ",":
        sure = {"."}
    made, grouped = frame.copy(deep=False), []
    for place, fits in styles.items():
        points = fits if len(fits) == 1 else fits & sure if len(sure) == 1 else set()
        for point in points:
            new = body[place].map(lambda cell, point=point: _plain(cell, point), na_action="ignore")
            made[place] = pd.concat([frame[place].iloc[:1], new])
            name = str(frame[place].iloc[0]).strip()
            cut = body[place][body[place].str.contains(",", na=False)]
            if decimal is None and fits != points == {","} and cut.size:
                warn(
                    f"{cut.iloc[0]!r} of {name!r} is read as {new[cut.index[0]]}, since other columns have decimal "
                    "commas: if its comma parts thousands, take the commas out of this column first",
                    DetectedWarning,
                )
            if (changed := new[new.str.len() < body[place].str.strip().str.len()]).size:
                grouped.append((name, body[place][changed.index[0]], changed.iloc[0]))
    if grouped and decimal is None:
        name, before, after = grouped[0]
        warn(
            f"thousands separators were taken out of {', '.join(one for one, _, _ in grouped)}: {before!r} of {name!r} "
            f"is read as {after}",
            DetectedWarning,
        )
    return made


def _plain(cell: str, point: str) -> str:
    """Return a number with a decimal point and nothing between its thousands; any other text as it is."""
    bare = _BLANKS.sub("", cell.strip())
    if not (_DIGIT.search(bare) and _NUMBER[point].fullmatch(bare)):
        return cell
    return bare.replace("," if point == "." else ".", "").replace(point, ".")


def _width(lines: list[str], between: str, cut: bool) -> int:
    """Return the number of cells of each line, 0 where they differ; the last of lines that were cut may be a part."""
    try:
        rows = list(csv.reader(lines, delimiter=between, skipinitialspace=True))
        widths = {len(cells) for cells in (rows[:-1] if cut and len(rows) > 1 else rows)}
    except csv.Error:
        return 0
    return widths.pop() if len(widths) == 1 else 0


MAX_BYTES = 2**30
"""Largest number of bytes of text that a table's file may hold (1 GiB)."""
MAX_LINE = 2**24
"""Largest number of bytes of a line (16 MiB): its cells take eight times as much to be looked at."""
_PIECE = 2**20


def file_bytes(path: Path, text: bool = True) -> bytes:
    """Return the contents of a file, unpacked by its last suffix: ``.gz``, ``.bz2``, ``.xz``, ``.zip``.

    `text`: Whether the contents have lines, of which none may be longer than `MAX_LINE`.
    Raises DataError: The file cannot be read, is damaged or encrypted, holds several files or more than `MAX_BYTES`, or
    a line is too long.
    """
    suffix = path.suffix.lower()
    try:
        with plain_file(path) as raw:
            if suffix not in _OPENERS:
                return _bounded(raw, path, text)
            with _OPENERS[suffix](raw) as unpacked:
                return _bounded(unpacked, path, text)
    except DataError:
        raise
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile) as error:
        raise DataError(f"path={str(path)!r} is damaged, or no {suffix} file ({error}): fetch it again") from error
    except (RuntimeError, NotImplementedError) as error:  # how zipfile speaks of passwords and unknown methods
        raise DataError(f"path={str(path)!r} cannot be unpacked ({error}): unpack it first") from error
    except MemoryError as error:
        raise DataError(f"path={str(path)!r} does not fit in memory: keep the columns that are needed") from error
    except (OSError, ValueError) as error:  # bz2 says OSError for damage; ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"path={str(path)!r} cannot be read ({reason}): check the path and the file") from error


def _bounded(file: IO[bytes], path: Path, text: bool) -> bytes:
    pieces, line = io.BytesIO(), 0
    while piece := file.read(_PIECE):
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        line = len(piece) - end - 1 if end >= 0 else line + len(piece)
        if text and line > MAX_LINE:
            raise DataError(
                f"path={str(path)!r} has a line of more than {MAX_LINE / 2**20:g} MiB: is it a table? Take the cells "
                "out that are so long"
            )
        if pieces.tell() + len(piece) > MAX_BYTES:
            raise DataError(
                f"path={str(path)!r} holds more than {MAX_BYTES / 2**30:g} GiB: keep the columns that are needed"
            )
        pieces.write(piece)
    return pieces.getvalue()


def _only_member(raw: IO[bytes]) -> IO[bytes]:
    archive = zipfile.ZipFile(raw)
    members = [info for info in archive.infolist() if not info.is_dir()]
    if len(members) != 1:
        raise DataError(
            f"the archive {raw.name!r} holds {len(members)} files: expected one; unpack it and name the file"
        )
    return archive.open(members[0])


_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zip": _only_member,
}
COMPRESSIONS = frozenset(_OPENERS)
"""The suffixes of files that are unpacked."""
