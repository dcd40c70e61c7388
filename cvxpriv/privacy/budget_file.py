"""The file of a budget: read, locked, and replaced whole. What was written is on the disk before anything goes on."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from cvxpriv.errors import DataError
from cvxpriv.reports import files
from cvxpriv.reports.files import PathLike, read_document, sync_folder, write_text

FORMAT, VERSION = "cvxpriv budget", 1
_KINDS = {"epsilon": float, "delta": float, "adjacency": str, "adaptive": bool, "spent": list}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a budget's file.

    Raises DataError: The folder cannot be written.
    """
    beside = Path(os.path.realpath(path))
    with ExitStack() as held:
        try:
            beside.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(files.locked(beside))
        except OSError as error:
            raise DataError(f"path={str(path)!r} cannot be locked ({error.strerror}): choose another folder") from error
        yield


def read_budget(path: PathLike) -> dict[str, Any]:
    """Return what a budget's file says.

    Raises DataError: No such file, or no budget.
    """
    document = read_document(path, "the file that a Budget wrote")
    fits = document.get("format") == FORMAT and document.get("version") == VERSION
    if not fits or any(type(document.get(name)) is not kind for name, kind in _KINDS.items()):
        raise DataError(f"path={str(path)!r} is no budget: make one by Budget(epsilon, delta, path)")
    return document


def write_budget(path: Path, document: dict[str, Any]) -> None:
    """Replace the file of a budget, and see the new one to the disk.

    Raises DataError: It cannot be written.
    """
    write_text(path, json.dumps({"format": FORMAT, "version": VERSION, **document}, indent=1) + "\n", private=True)
    sync_folder(Path(os.path.realpath(path.parent)))
