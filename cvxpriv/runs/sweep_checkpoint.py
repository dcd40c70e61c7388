"""The checkpoint of a sweep: a file of JSON lines, one result each, on the disk before the next is taken.

A line is appended by the one process that holds the lock. A kill can tear the last line only; it is cut off when the
file is opened again, and its task is done again. Parquet is no format for this: its index stands at the end of the
file, so that nothing can be appended to it safely.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp

from cvxpriv.errors import DataError, ModelError
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.files import PathLike, locked, plain_file, read_text, sync_folder, write_text


def digest(value: Any) -> str:
    """Return the SHA-256 of a value's content, as 64 hexadecimal digits.

    >>> digest([0.5, 0.5]) == digest([0.5, 0.5]), digest([0.5, 0.5]) == digest([0.5, 0.25])
    (True, False)
    """
    return hashlib.sha256(json.dumps(content(value)).encode()).hexdigest()


def content(value: Any) -> Any:
    """Return the content of a value as plain data, which JSON can hold; large arrays are represented by their hash.

    Raises ModelError: The value holds code, or an object without a known content.

    >>> content({"rate": (0.5, None)})
    {'mapping': [['rate', {'list': [0.5, None]}]]}
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return float(value) if isinstance(value, np.floating) else content(value.item())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, (pd.DataFrame, pd.Series, pd.Index)):
        return _frame(value)
    if sp.issparse(value):
        return _sparse(value)
    if isinstance(value, nx.Graph):
        edges = [list(edge) for edge in value.edges(data=True)]
        return {"graph": type(value).__name__, "nodes": content(list(value.nodes(data=True))), "edges": content(edges)}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: content(getattr(value, one.name)) for one in fields(value)}
        return {"object": f"{type(value).__module__}.{type(value).__qualname__}", **parts}
    if isinstance(value, Mapping):
        return {"mapping": [[content(name), content(one)] for name, one in value.items()]}
    if isinstance(value, Set):
        return {"set": sorted((content(one) for one in value), key=json.dumps)}
    if isinstance(value, (list, tuple)):
        return {"list": [content(one) for one in value]}
    raise ModelError(
        f"an object of type {type(value).__name__} cannot be told from another by its content: pass numbers, names, "
        "arrays or tables, such as the name or the formula of a divergence"
    )


def _array(value: np.ndarray[Any, Any]) -> Any:
    if value.dtype.hasobject:
        return content(value.tolist())
    held = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return {"array": value.dtype.str, "shape": list(value.shape), "sha256": held}


def _frame(value: pd.DataFrame | pd.Series[Any] | pd.Index[Any]) -> Any:
    if isinstance(value, pd.DataFrame):
        columns = [[content(name), content(column.to_numpy())] for name, column in value.items()]
        return {"frame": columns, "index": content(value.index)}
    if isinstance(value, pd.Series):
        return {"series": content(value.name), "values": content(value.to_numpy()), "index": content(value.index)}
    return {"index": content(value.to_numpy())}


def _sparse(value: Any) -> Any:
    rows = sp.csr_array(value, copy=True)
    rows.sum_duplicates()
    parts = (rows.data, np.asarray(rows.indices, dtype=np.int64), np.asarray(rows.indptr, dtype=np.int64))
    return {"sparse": list(rows.shape), "parts": [content(part) for part in parts]}


FORMAT = "cvxpriv sweep 1"
KEY_BYTES = 32
#: Entries of a row that a sweep reads, and their kinds.
_HELD: Mapping[str, Any] = {
    "task": str,
    "data": str,
    "status": str,
    "versions": dict,
    "warnings": list,
    "facts": (dict, type(None)),
}
_BEGINNING = f'{{"format": "{FORMAT}"'.encode()


class CheckpointWarning(UserWarning):
    """A checkpoint holds rows that do not belong to the sweep."""


@dataclass
class Checkpoint:
    """Rows of results, in a file or, without one, in memory alone.

    `rows`: The rows that the file held, and those that were added.
    """

    path: Path | None
    rows: list[dict[str, Any]] = field(default_factory=list)
    _handle: int = -1

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row; it is on the disk when this returns.

        Raises DataError: The file cannot be written.
        """
        if self.path is not None:
            line = (json.dumps({**row, "check": _check(row)}) + "\n").encode()
            try:
                while line:
                    line = line[os.write(self._handle, line) :]
                os.fsync(self._handle)
            except OSError as error:
                raise DataError(
                    f"checkpoint={str(self.path)!r} cannot be written ({error.strerror}): the rows before are safe; "
                    "make room, and run the sweep again"
                ) from error
        self.rows.append(dict(row))

    def private_digest(self, value: Any) -> str:
        """Return a hash of private data, by a secret key that stands in a hidden file beside the checkpoint.

        Without a key, whoever guesses the one row that is not known could see from the file that the guess is right.

        Raises DataError: The file holds rows, and the key of their hashes is gone or damaged.
        """
        if self.path is None:
            return ""  # no file holds it
        place = self.path.with_name(f".{self.path.name}.key")
        if not self.rows and not place.exists():
            write_text(place, secrets.token_hex(KEY_BYTES), private=True)
        key = read_text(place) if place.exists() else ""
        if len(key) != 2 * KEY_BYTES:
            raise DataError(
                f"checkpoint={str(self.path)!r} has rows, and {place.name!r} beside it, by which it knows their data, "
                "is gone or damaged: bring that file back, or name another checkpoint, where every fit is paid again"
            )
        return hmac.new(key.encode(), json.dumps(content(value)).encode(), hashlib.sha256).hexdigest()


@contextmanager
def opened(path: PathLike | None) -> Iterator[Checkpoint]:
    """Open a checkpoint for this process alone, with the rows that it holds.

    Raises DataError: Another process writes to it, it is not a checkpoint, a line is damaged, or it cannot be written.
    """
    if path is None:
        yield Checkpoint(None)
        return
    target = Path(os.path.realpath(path))
    if target.suffix in (".parquet", ".csv"):
        raise DataError(
            f"checkpoint={str(path)!r}: a checkpoint is a file of JSON lines, such as runs/sweep.jsonl; write the "
            f"table that the sweep returns by frame.to_{target.suffix[1:]}"
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            try:
                held.enter_context(locked(target, wait=False))
            except BlockingIOError as error:
                raise DataError(
                    f"checkpoint={str(path)!r} is written by another sweep: wait for its end, or choose another file"
                ) from error
            handle = os.open(target, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
            try:
                rows, whole = _read(target, path)
                if whole < target.stat().st_size:
                    os.ftruncate(handle, whole)
                sync_folder(target.parent)
                yield Checkpoint(target, rows, handle)
            finally:
                os.close(handle)
    except OSError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"checkpoint={str(path)!r} cannot be used ({error.strerror or error}): choose another"
        ) from error


def _read(target: Path, path: PathLike) -> tuple[list[dict[str, Any]], int]:
    """Return the rows of a file, and the length of its whole lines."""
    rows: list[dict[str, Any]] = []
    with plain_file(target) as file:
        data, whole = file.read(), 0
    lines = data.split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        row = _row(line)
        if row is None:
            if number == len(lines) - 1 and not lines[-1] and number > 1:
                break  # the last line, torn by a failure of the machine
            raise DataError(
                f"checkpoint={str(path)!r}, line {number}, is no row of a sweep: choose another file, or take the line "
                "out, so that its task is done again"
            )
        rows.append(row)
        whole += len(line) + 1
    if not rows and data and not data.startswith(_BEGINNING[: len(data)]):
        raise DataError(f"checkpoint={str(path)!r} is a file of another kind: choose another name")
    return rows, whole


def _row(line: bytes) -> dict[str, Any] | None:
    """Return the row of a line; None where it is not one that was written whole."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or row.get("format") != FORMAT or row.pop("check", None) != _check(row):
        return None
    return row if all(isinstance(row.get(name), kind) for name, kind in _HELD.items()) else None


def _check(row: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()[:16]
