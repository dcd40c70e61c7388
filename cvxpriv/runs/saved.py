"""Saved runs: one JSON format for every model, opened by the model that wrote it."""

from __future__ import annotations

import hashlib
import json
import sys
import types
import typing
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cvxpriv import models
from cvxpriv.errors import DataError, ModelError, shown
from cvxpriv.numerics.arrays import Array, unaliased
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd, versions
from cvxpriv.penalties import LOSSES, Loss, Penalty, loss_named
from cvxpriv.penalties.named import penalty_of, penalty_record
from cvxpriv.reports.files import PathLike, read_document, write_text

UNSAVED = {"saved": False}
"""Metadata of a field that is not saved; it needs a default, which a run from a file takes."""


def fields_of(value: Any) -> dict[str, Any]:
    """Return the saved fields of a dataclass as plain data, which JSON can hold.

    >>> from cvxpriv.privacy import Release
    >>> fields_of(Release(mu=0.5, source="centre"))["mu"]
    0.5
    >>> decoded(Release, fields_of(Release(mu=0.5))) == Release(mu=0.5)
    True
    """
    return {name: encoded(kind, getattr(value, name)) for name, kind in _saved(type(value)).items()}


def encoded(kind: Any, value: Any) -> Any:
    """Return a value of a declared type as plain data: see `fields_of`."""
    kind = _present(kind)
    if value is None or kind is Any:
        return value
    if kind in _OWN:
        return _OWN[kind][0](value)
    if isinstance(value, pd.DataFrame):
        columns = {str(name): column.tolist() for name, column in value.items()}
        return {"columns": columns, "index": value.index.tolist(), "axis": value.index.name}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if is_dataclass(value):
        return fields_of(value)
    if isinstance(value, Mapping):
        return {name: encoded(_inner(kind, -1), item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encoded(_inner(kind, place), item) for place, item in enumerate(value)]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value


def decoded(kind: Any, plain: Any) -> Any:
    """Return the value of a declared type from the plain data that `encoded` returned.

    Raises TypeError, ValueError: The data are of another kind, or a number is none.
    """
    if plain is None and (kind is float or kind is Any or type(None) in typing.get_args(kind)):
        return float("inf") if kind is float else None
    kind = _present(kind)
    origin = typing.get_origin(kind) or kind
    if kind in _OWN:
        return _OWN[kind][1](plain)
    expected = dict if is_dataclass(origin) or origin is pd.DataFrame else _PLAIN.get(origin, object)
    if not isinstance(plain, expected) or (isinstance(plain, bool) and kind in (int, float)):
        raise TypeError(f"{shown(plain)} stands in place of {getattr(origin, '__name__', origin)}")
    if origin is pd.DataFrame:
        index = pd.Index(plain["index"], name=plain["axis"])
        return pd.DataFrame({name: _cells(cells) for name, cells in plain["columns"].items()}, index=index)
    if origin is np.ndarray:
        return _array(plain, "iuf" if kind == unaliased(Array) else "iufbU")
    if isinstance(origin, type) and is_dataclass(origin):
        return origin(**{name: decoded(part, plain[name]) for name, part in _saved(origin).items() if name in plain})
    if isinstance(plain, dict):
        return {name: decoded(_inner(kind, -1), item) for name, item in plain.items()}
    if isinstance(plain, list):
        items = [decoded(_inner(kind, place), item) for place, item in enumerate(plain)]
        return tuple(items) if origin is tuple else items
    return float(plain) if kind is float else plain


def starts_of(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return the table of a run's starts from its columns as plain data: texts, counts, flags, and numbers elsewhere.

    Raises TypeError, KeyError: A column is of another kind, or missing.
    """
    found = {
        name: decoded(types.GenericAlias(list, (_OF_STARTS.get(name, float),)), held) for name, held in columns.items()
    }
    if missing := {"origin", "iterations", "kkt", "converged"} - set(found):
        raise KeyError(min(missing))
    return pd.DataFrame(found).rename_axis("start")


_OF_STARTS: dict[str, Any] = {"origin": str, "ended": str, "converged": bool, "iterations": int}

_PLAIN: dict[Any, type[Any] | tuple[type[Any], ...]] = {
    **{str: str, bool: bool, int: int, float: (int, float)},
    **dict.fromkeys((tuple, list, Sequence), list),
    np.ndarray: (list, int, float),
    **dict.fromkeys((dict, Mapping), dict),
}
"""The kind of plain data that stands for a type; a dataclass is a dict, and any other type anything."""


def _array(plain: Any, kinds: str) -> np.ndarray[Any, Any]:
    found = np.array(plain)
    if found.dtype.kind not in kinds or (found.dtype.kind == "f" and np.isnan(found).any()):
        raise ValueError(f"an array holds {found.dtype} in place of numbers, or one that is none")
    return found.astype(np.float64) if kinds == "iuf" else found


def _cells(plain: list[Any]) -> list[Any]:
    if not all(isinstance(one, (str, bool, float, int, type(None))) for one in plain):
        raise TypeError("a cell of a table is no number and no text")
    return [float(one) if isinstance(one, int) and abs(one) >= 2**63 else one for one in plain]


def _saved(kind: type[Any]) -> dict[str, Any]:
    """Return the saved fields of a dataclass with their types, each evaluated where it is written."""
    written: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        names = vars(sys.modules[base.__module__])
        written |= {name: (text, names) for name, text in vars(base).get("__annotations__", {}).items()}
    held = {one.name: written[one.name] for one in fields(kind) if one.init and one.metadata.get("saved", True)}
    # The module's own text, as `typing` evaluates it.
    return {name: eval(text, names) if isinstance(text, str) else text for name, (text, names) in held.items()}


def _present(kind: Any) -> Any:
    """Return a type without None; of several others, any."""
    kind = unaliased(kind)
    if typing.get_origin(kind) not in (typing.Union, types.UnionType):
        return kind
    others = [one for one in typing.get_args(kind) if one is not type(None)]
    return unaliased(others[0]) if len(others) == 1 else Any


def _inner(kind: Any, place: int) -> Any:
    """Return the type of an item of a sequence, or, at -1, of a mapping."""
    inner = typing.get_args(kind)
    if not inner:
        return Any
    uniform = len(inner) == 1 or Ellipsis in inner or place < 0
    return (inner[-1] if place < 0 else inner[0]) if uniform else inner[place]


def _loss_name(loss: Loss) -> str:
    if LOSSES.get(loss.name) is not loss:
        raise ModelError(f"loss={loss!r} is code and cannot be saved: save run.coefficients instead")
    return loss.name


def _label(label: Hashable) -> str | int:
    if isinstance(label, (str, int)):
        return label
    raise ModelError(
        f"{label!r} is no text or whole number and cannot be saved: relabel the graph, for example with "
        "networkx.convert_node_labels_to_integers"
    )


_OWN: dict[Any, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    Loss: (_loss_name, loss_named),
    Penalty: (penalty_record, penalty_of),
    Hashable: (_label, lambda label: label),
}


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
