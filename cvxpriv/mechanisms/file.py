"""The JSON form of a mechanism: its contents, and how strictly a file is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from cvxpriv.errors import DataError, suggest

FORMAT = "cvxpriv-mechanism"
VERSION = 2
"""The version of the format; it changes when an older cvxpriv would misread a newer file."""
OPTIONAL = frozenset({"recipe", "noisy"})
"""Keys that a file need not have."""


class Fields(NamedTuple):
    """The contents of a mechanism file besides its format and version."""

    model: str
    columns: tuple[str, ...]
    symbols: tuple[tuple[str, ...], ...]
    outputs: tuple[str, ...]
    private_columns: tuple[str, ...]
    matrix: list[list[float]]
    figures: dict[str, float]
    origin: dict[str, str | int | float | bool | None]
    constraints: tuple[dict[str, Any], ...]
    recipe: dict[str, Any] | None = None
    noisy: dict[str, Any] | None = None


def dump(fields: Fields) -> str:
    """Return the text of a mechanism file. Floats take their shortest exact form, so reading gives the same numbers.

    Raises DataError: A value that JSON cannot hold.
    """
    document = {"format": FORMAT, "version": VERSION, **fields._asdict()}
    document = {key: value for key, value in document.items() if value is not None or key not in OPTIONAL}
    try:
        return "{\n" + ",\n".join(f'"{key}": {_value(key, value)}' for key, value in document.items()) + "\n}\n"
    except (TypeError, ValueError) as error:
        raise DataError(f"the mechanism cannot be written as JSON ({error}): give texts and finite numbers") from error


def _value(key: str, value: object) -> str:
    """Return the text of a value with one row or symbol a line: an indented dump would give every number its own."""
    if key in ("matrix", "symbols") and isinstance(value, (list, tuple)):
        return "[\n" + ",\n".join(" " + _json(row) for row in value) + "\n]"
    return _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def parse(text: str) -> Fields:
    """Read the text of a mechanism file. The kinds of its values are checked, their meaning is not.

    Raises
    ------
    DataError
        Not JSON, another format or version, a key that is missing, unknown or of the wrong kind.
    """
    document = _document(text)
    if document.get("format") != FORMAT:
        raise DataError(
            f"format={document.get('format')!r}, expected {FORMAT!r}: give a file that `Mechanism.save` wrote"
        )
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        raise DataError(
            f"version={version!r} of the format, this cvxpriv reads {VERSION}:"
            " use the cvxpriv that wrote it, or design the mechanism again"
        )
    expected = {"format", "version", *Fields._fields}
    if missing := sorted(expected - OPTIONAL - document.keys()):
        raise DataError(f"keys {', '.join(missing)} are missing: save the mechanism again, do not edit the file")
    if unknown := sorted(document.keys() - expected):
        raise DataError(f"key {unknown[0]!r} is unknown: {suggest(unknown[0], expected)}")
    return Fields(**{key: _READERS[key](key, document[key]) for key in Fields._fields if key in document})


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_double)
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"not JSON ({error}): give a file that `Mechanism.save` wrote") from error
    if not isinstance(document, dict):
        raise DataError(f"the JSON holds a {type(document).__name__}, expected an object with the key 'format'")
    return document


def _no_constant(name: str) -> NoReturn:
    raise DataError(f"the file holds {name}: expected finite numbers; design the mechanism again")


def _no_double(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"key {twice!r} stands twice: keep one of the two")
    return found


def _wrong(key: str, value: object, expected: str) -> NoReturn:
    shown = repr(value)
    raise DataError(f"{key}={shown[:80]}{'...' * (len(shown) > 80)}: expected {expected}; save the mechanism again")


def _text(key: str, value: object) -> str:
    return value if isinstance(value, str) else _wrong(key, value, "a text")


def _texts(key: str, value: object) -> tuple[str, ...]:
    return tuple(_text(key, item) for item in _list(key, value, "a list of texts"))


def _symbols(key: str, value: object) -> tuple[tuple[str, ...], ...]:
    return tuple(_texts(key, item) for item in _list(key, value, "a list of lists of texts"))


def _matrix(key: str, value: object) -> list[list[float]]:
    rows = [_list(key, row, "a list of lists of numbers") for row in _list(key, value, "a list of lists of numbers")]
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise DataError(f"{key} row {i} has {len(row)} numbers, row 0 has {len(rows[0])}: expected as many in each")
    return [[_number(f"{key}[{i}, {j}]", cell) for j, cell in enumerate(row)] for i, row in enumerate(rows)]


def _figures(key: str, value: object) -> dict[str, float]:
    return {name: _number(f"{key}[{name!r}]", cell) for name, cell in _object(key, value).items()}


def _origin(key: str, value: object) -> dict[str, str | int | float | bool | None]:
    facts = _object(key, value)
    for name, fact in facts.items():
        if not isinstance(fact, (str, int, float, bool, type(None))):
            _wrong(f"{key}[{name!r}]", fact, "a text, a number, true, false or null")
    return facts


def _number(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        _wrong(key, value, "a number")
    try:
        return float(value)
    except OverflowError:
        _wrong(key, value, "a number that a double can hold")


def _list(key: str, value: object, expected: str) -> list[Any]:
    return value if isinstance(value, list) else _wrong(key, value, expected)


def _object(key: str, value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else _wrong(key, value, "an object")


def _objects(key: str, value: object) -> tuple[dict[str, Any], ...]:
    return tuple(_object(f"{key}[{i}]", item) for i, item in enumerate(_list(key, value, "a list of objects")))


_READERS: dict[str, Callable[[str, object], Any]] = {
    "model": _text,
    "columns": _texts,
    "symbols": _symbols,
    "outputs": _texts,
    "private_columns": _texts,
    "matrix": _matrix,
    "figures": _figures,
    "origin": _origin,
    "constraints": _objects,
    "recipe": _object,
    "noisy": _object,
}
