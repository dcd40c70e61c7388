"""The bytes of a table's file, unpacked if it is compressed, within bounds that no file can exceed.

A small archive can hold terabytes, a damaged one can end anywhere. Unpacking reads piece by piece and stops at a limit.
"""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from cvxpriv.errors import DataError

MAX_BYTES = 2**30
"""Largest number of bytes of text that a table's file may hold (1 GiB)."""
_PIECE = 2**20


def file_bytes(path: Path) -> bytes:
    """Return the contents of a file, unpacked by its last suffix: ``.gz``, ``.bz2``, ``.xz``, ``.zip``, ``.zst``.

    Raises DataError: The file cannot be read, is damaged or encrypted, holds several files or more than `MAX_BYTES`, or
    needs a package that is not installed.
    """
    suffix = path.suffix.lower()
    try:
        with path.open("rb") as raw:
            if suffix not in _OPENERS:
                return _bounded(raw, path)
            with _OPENERS[suffix](raw) as unpacked:
                return _bounded(unpacked, path)
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


def _bounded(file: IO[bytes], path: Path) -> bytes:
    pieces = io.BytesIO()
    while piece := file.read(_PIECE):
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


def _zstandard(raw: IO[bytes]) -> Any:
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError as error:
        raise DataError(
            f"path={raw.name!r} needs the package zstandard: pip install zstandard, or unpack it"
        ) from error
    return zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(raw)


_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zip": _only_member,
    ".zst": _zstandard,
}
COMPRESSIONS = frozenset(_OPENERS)
"""The suffixes of files that are unpacked."""
