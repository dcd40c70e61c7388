"""The JSON form of a mechanism: its contents, and how strictly a file is read."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from cvxpriv.errors import DataError, json_text, suggest
from cvxpriv.reports.files import each_once

FORMAT = "cvxpriv-mechanism"
VERSION = 2
"""The version of the format; it changes when an older cvxpriv would misread a newer file."""
KINDS: dict[str, Any] = {
    "model": str,
    "columns": [str],
    "symbols": [[str]],
    "outputs": [str],
    "private_columns": [str],
    "matrix": [[float]],
    "figures": {"": float},
    "origin": {"": (str, int, float, bool, type(None))},
    "constraints": [dict],
    "recipe": dict,
    "noisy": dict,
}
"""The keys of a file besides its format and version, and the kind of value of each: a list, or an object, of others."""
OPTIONAL = frozenset({"recipe", "noisy"})
"""Keys that a file need not have."""
_CALLED = {str: ("a text", "texts"), float: ("a number", "numbers"), dict: ("an object", "objects")}


def dump(content: Mapping[str, Any]) -> str:
    """Return the text of a mechanism file. Floats take their shortest exact form, so reading gives the same numbers.

    `content`: Values by the keys of `KINDS`; None stands for an optional one that is not there.
    Raises DataError: A value that JSON cannot hold.
    """
    document = {"format": FORMAT, "version": VERSION, **{key: content[key] for key in KINDS}}
    held = {key: value for key, value in document.items() if value is not None or key not in OPTIONAL}
    try:
        return "{\n" + ",\n".join(f'"{key}": {_value(key, value)}' for key, value in held.items()) + "\n}\n"
    except (TypeError, ValueError) as error:
        raise DataError(f"the mechanism cannot be written as JSON ({error}): give texts and finite numbers") from error


def _value(key: str, value: Any) -> str:
    """Return the text of a value with one row or symbol a line: an indented dump would give every number its own."""
    if key in ("matrix", "symbols"):
        return "[\n" + ",\n".join(" " + json_text(row) for row in value) + "\n]"
    return json_text(value)


def parse(text: str) -> dict[str, Any]:
    """Read the text of a mechanism file. The kinds of its values are checked, their meaning is not.

    Raises
    ------
    DataError
        Not JSON, another format or version, a key that is missing, unknown or of the wrong kind.
    """
    try:
        document = json.loads(text, parse_constant=_no_constant, object_pairs_hook=each_once)
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"not JSON ({error}): give a file that `Mechanism.save` wrote") from error
    if not isinstance(document, dict):
        raise DataError(f"the JSON holds a {type(document).__name__}, expected an object with the key 'format'")
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
    expected = {"format", "version", *KINDS}
    if missing := sorted(expected - OPTIONAL - document.keys()):
        raise DataError(f"keys {', '.join(missing)} are missing: save the mechanism again, do not edit the file")
    if unknown := sorted(document.keys() - expected):
        raise DataError(f"key {unknown[0]!r} is unknown: {suggest(unknown[0], expected)}")
    found = {key: _read(key, document[key], kind) for key, kind in KINDS.items() if key in document}
    for i, row in enumerate(rows := found["matrix"]):
        if len(row) != len(rows[0]):
            raise DataError(
                f"matrix row {i} has {len(row)} numbers, row 0 has {len(rows[0])}: expected as many in each"
            )
    return found


def _no_constant(name: str) -> NoReturn:
    raise DataError(f"the file holds {name}: expected finite numbers; design the mechanism again")


def _read(key: str, value: Any, kind: Any) -> Any:
    """Return a value of a kind; whole numbers become doubles where numbers are expected."""
    if isinstance(kind, list):
        items = value if isinstance(value, list) else _wrong(key, value, _called(kind))
        begun = f"{key[:-1]}, " if key.endswith("]") else f"{key}["
        return [_read(f"{begun}{place}]", item, kind[0]) for place, item in enumerate(items)]
    if isinstance(kind, dict):
        held = value if isinstance(value, dict) else _wrong(key, value, "an object")
        return {name: _read(f"{key}[{name!r}]", item, kind[""]) for name, item in held.items()}
    if isinstance(kind, tuple):
        return value if isinstance(value, kind) else _wrong(key, value, "a text, a number, true, false or null")
    if kind is not float:
        return value if isinstance(value, kind) else _wrong(key, value, _called(kind))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        _wrong(key, value, "a number")
    try:
        return float(value)
    except OverflowError:
        _wrong(key, value, "a number that a double can hold")


def _called(kind: Any, several: bool = False) -> str:
    if isinstance(kind, list):
        return f"{'lists' if several else 'a list'} of {_called(kind[0], several=True)}"
    return _CALLED[kind][several]


def _wrong(key: str, value: object, expected: str) -> NoReturn:
    shown = repr(value)
    raise DataError(f"{key}={shown[:80]}{'...' * (len(shown) > 80)}: expected {expected}; save the mechanism again")
