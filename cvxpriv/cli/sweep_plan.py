"""The plan of a sweep, a TOML file: model, data, grid, fixed options. A mistake is told with its key and line."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from cvxpriv import models
from cvxpriv.cli.rows import RowOptions
from cvxpriv.cli.table_options import TableOptions
from cvxpriv.errors import CvxprivError, DataError, ModelError, PrivacyError, suggest
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.reports.files import parsed, read_text
from cvxpriv.runs.sweep_tasks import choices_of, needed_data

_TOP = ("model", "seed", "warm_along", "checkpoint", "budget", "keep", "data", "grid", "solve")
_TABLE = {one.name for one in fields(TableOptions)} - {"sides"}
_ROWS = {one.name for one in fields(RowOptions)} | {"columns"}


@dataclass(frozen=True)
class Plan:
    """A plan, checked and with its data read.

    Attributes
    ----------
    model : class
    data : object or mapping of str to object
        The data as `cvxpriv.sweep` takes them.
    grid : mapping of str to list
        The values of the grid, and the fixed options with one value each.
    options : mapping of str to object
        Seed, option of warm starts, checkpoint, budget and folder of runs, where the plan names them.
    """

    model: type[Any]
    data: Any
    grid: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)


def read_plan(path: str) -> Plan:
    """Read a plan, check each of its options by the model's signatures, and load the data.

    Raises DataError: The file cannot be read, is no TOML, lacks a part, or its data cannot be read.
    Raises ModelError, PrivacyError: A name or a value is wrong; the message names its key and line.
    """
    text = read_text(path)
    document = parsed(text, path, "the plan of a sweep", toml=True)
    for name in document:
        with _placed(path, text, "", name):
            _require_known(name, _TOP)
    for name in ("model", "data"):
        if name not in document:
            example = 'model = "PrivacyFunnel"' if name == "model" else '[data] with source = "heart-failure"'
            raise DataError(f"{path} has no {name}: add {example}")
    for name in ("data", "grid", "solve"):
        if not isinstance(document.get(name, {}), dict):
            raise DataError(f"{path}, line {_line(text, '', name)}: {name} is no table: begin it by [{name}]")
    with _placed(path, text, "", "model"):
        model = _model(document["model"])
    private = "budget" in document
    grid: dict[str, Any] = {}
    for section in ("grid", "solve"):
        for name, value in document.get(section, {}).items():
            with _placed(path, text, section, name):
                if name in grid:
                    raise ModelError(f"{name} stands in [grid] too: name it once")
                grid[name] = value if section == "grid" else [value]
                choices_of(model, {name: grid[name]}, private=private)
    told = ("seed", "warm_along", "checkpoint", "budget", "keep")
    options: dict[str, Any] = {name: document[name] for name in told if name in document}
    return Plan(model, _data(path, text, model, document["data"], private), grid, options)


def _data(path: str, text: str, model: type[Any], given: Mapping[str, Any], private: bool) -> Any:
    """Return the data of ``[data]``, or those of each ``[data.NAME]`` by name."""
    if "source" in given or not given or not all(isinstance(one, dict) for one in given.values()):
        return _loaded(path, text, model, "data", given, private)
    return {name: _loaded(path, text, model, f"data.{name}", one, private) for name, one in given.items()}


def _loaded(path: str, text: str, model: type[Any], section: str, given: Mapping[str, Any], private: bool) -> Any:
    table = getattr(model, "task", "") == "mechanism"
    if not table and needed_data(model) != ["X", "y"]:
        raise ModelError(
            f"{path}: {model.__name__} takes {', '.join(needed_data(model))}, which a plan cannot name: sweep it from "
            "Python, by cvxpriv.sweep"
        )
    for name in given:
        with _placed(path, text, section, name):
            _require_known(name, {"source", *(_TABLE if table else _ROWS)})
    with _placed(path, text, section, "source"):
        source = given.get("source")
        if not isinstance(source, str):
            raise DataError('the data have no source: name a file or a table, such as source = "heart-failure"')
        chosen = {name: _read(value) for name, value in given.items() if name != "source"}
        if table:
            try:
                return TableOptions(sides=model.sides, **chosen).load(source)
            except DataError as error:
                raise DataError(_in_keys(str(error), model)) from error
        columns = chosen.pop("columns", None)
        if "schema" in chosen:
            chosen["schema"] = PublicSchema.load(chosen["schema"])
        rows = RowOptions(**chosen).load(source, columns, scaled=model.on_rows.scaled, private=private)
        return rows.x, rows.y


def _in_keys(message: str, model: type[Any]) -> str:
    """Return a message about a command's flags in the words of a plan: `private` for `--private`."""
    sides = {model.sides.private.flag: "private", model.sides.public.flag: "public"}
    return re.sub(r"--[a-z-]+", lambda flag: sides.get(flag[0], flag[0][2:].replace("-", "_")), message)


def _read(value: Any) -> Any:
    """Return a value of the data: a list as a tuple, a table by column as pairs."""
    if isinstance(value, dict):
        return tuple((name, _read(one)) for name, one in value.items())
    return tuple(value) if isinstance(value, list) else value


def _model(name: Any) -> type[Any]:
    known = models.available()
    if not isinstance(name, str) or name not in known:
        raise ModelError(f"model={name!r} is not known: {suggest(str(name), known)}")
    found: type[Any] = known[name].load()
    if getattr(found, "task", "") == "problem":
        raise ModelError(f"model={name!r} has no table to sweep over: run `cvxpriv {found.command}` at each point")
    return found


def _require_known(name: str, known: Any) -> None:
    if name not in known:
        raise DataError(f"{name} is not known here: {suggest(name, known)}")


@contextmanager
def _placed(path: str, text: str, section: str, name: str) -> Iterator[None]:
    """Put file, line and key before the message of an error."""
    key = f"{section}.{name}" if section else name
    line = _line(text, section, name)
    place = f"{path}, line {line}, {key}" if line else f"{path}, [{section}]"
    try:
        yield
    except (DataError, ModelError, PrivacyError) as error:
        raise type(error)(f"{place}: {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        if isinstance(error, CvxprivError):
            raise
        raise DataError(f"{place}: a value is of another kind ({error}): see the documentation of plans") from error


def _line(text: str, section: str, name: str) -> int:
    """Return the line on which a key of a section stands, counted from 1; 0 where it is not found.

    >>> _line('model = "x"\\n[grid]\\nrate = [1]', "grid", "rate")
    3
    """
    here = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line):
            here = header[1].replace('"', "")
            if not section and here.split(".")[0] == name:
                return number
        elif here == section and re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*[=.]", line):
            return number
    return 0
