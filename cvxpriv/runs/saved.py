"""Saved runs: one JSON format for every model, opened by the model that wrote it."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cvxpriv import models
from cvxpriv.errors import DataError
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import versions
from cvxpriv.reports.files import PathLike, read_document, write_text

FORMAT = "cvxpriv run"
VERSION = 2
"""Version 2 has the hash of the file's content; an edited or damaged file is refused."""


@door
def load(path: PathLike) -> Any:
    """Read a run that some model's `save` wrote, as that model's own result.

    Raises
    ------
    DataError
        No such file, not a saved run, of another version, or of a model that is not installed.
    """
    document = read_run(path)
    name, known = str(document.get("model")), models.available()
    if name not in known:
        raise DataError(
            f"path={str(path)!r} is a run of {name!r}, which is not installed: install the package it is in; its own "
            "class reads a run on a problem of yours, with the problem: AlternationRun.load(path, problem)"
        )
    with damage_told(path):
        return known[name].load().run_of(document, path)


@contextmanager
def damage_told(path: PathLike) -> Iterator[None]:
    """Turn any error of a reader on a damaged file into an error that names the file.

    Raises DataError: A value is missing, of another kind, of another size than the others, or outside of its range.
    """
    try:
        yield
    except DataError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise DataError(
            f"path={str(path)!r} is damaged ({type(error).__name__}: {error}): solve again, or take the file that save "
            "wrote"
        ) from error


def write_run(path: PathLike, model: str, data: dict[str, Any]) -> Path:
    """Write a model's run, whole or not at all, for its owner alone: it holds the private table."""
    header = {"format": FORMAT, "version": VERSION, "model": model, "origin": versions(["numpy", "cvxpy"])}
    text = json.dumps({**header, **data})
    return write_text(path, json.dumps({**json.loads(text), "sha256": _digest(json.loads(text))}), private=True)


def read_run(path: PathLike, model: str | None = None) -> dict[str, Any]:
    """Return the document that `write_run` wrote.

    Raises DataError: No such file, not JSON, not a saved run, of another version, or not of the model asked for.
    """
    document = read_document(path, "a file that a run's save wrote")
    found = (document.get("format"), document.get("version"))
    if found != (FORMAT, VERSION):
        raise DataError(
            f"path={str(path)!r} holds {found}, expected {(FORMAT, VERSION)}: pass a file that this version's save "
            "wrote, or solve again"
        )
    if document.pop("sha256", None) != _digest(document):
        raise DataError(f"path={str(path)!r} was edited or damaged: it is not what save wrote; solve again")
    if model is not None and document.get("model") != model:
        raise DataError(
            f"path={str(path)!r} is a run of {document.get('model')}, not of {model}: read it by cvxpriv.load"
        )
    return document


def _digest(document: Mapping[str, Any]) -> str:
    """Return the hash of a document's values, however they are laid out in the file."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
