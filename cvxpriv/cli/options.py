"""Options of commands: made from declared parameters, shared by several commands, and checked before any work.

Each help text of a declared parameter is written once, beside it (`cvxpriv.runs.options`).
"""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import click

from cvxpriv.cli.terminal import Terminal, spoken
from cvxpriv.errors import DataError, ModelError
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.options import REQUIRED, Option, Parameter, options_of

if TYPE_CHECKING:
    import pandas as pd

    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # which takes no [Any] before click 8.4


Command = TypeVar("Command", bound=Callable[..., Any])


class Read(ParamType):
    """A text that a declared option reads itself."""

    name = "text"

    def __init__(self, read: Callable[[str], Any]) -> None:
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.ParamType`. A value that is not a text has been read already.

        >>> Read(float).convert("0.5", None, None)
        0.5
        """
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except (DataError, ValueError) as error:
            self.fail(str(error), param, ctx)


def names(text: str) -> tuple[str, ...]:
    """See `names_in`; it is imported when a text is read, since numpy, which help does not need, comes with it."""
    from cvxpriv.numerics.arguments import names_in

    return names_in(text)


def spellings(text: str) -> tuple[str, ...]:
    """Return the spellings of a missing value; an empty one says no more than the empty cell does.

    >>> spellings(",-99")
    ('-99',)
    """
    return names(text.strip(","))


NAMES = Read(names)
DIVERGENCE = "NAME | FORMULA | FILE.py:NAME"
"""The forms of a divergence's name: see `cvxpriv.divergences.registry`."""


def applied(command: Any, options: Iterable[Any]) -> Any:
    """Return a command with options, in their order."""
    for option in reversed(list(options)):
        command = option(command)
    return command


def packed(name: str, kind: Callable[..., Any], parameters: Sequence[Parameter]) -> Callable[[Any], Any]:
    """Give a command the options of parameters, whose values it gets as one object.

    `name`: The command's argument for that object. `kind`: Makes it of the values, by name.
    """

    def packing(command: Any) -> Any:
        @wraps(command)
        def collected(*args: Any, **kwargs: Any) -> Any:
            chosen = {one.name: kwargs.pop(one.name) for one in parameters}
            return command(*args, **{name: kind(**chosen)}, **kwargs)

        return applied(collected, map(click_option, parameters))

    return packing


def on_the_command_line(*functions: Callable[..., Any]) -> list[Parameter]:
    """Return the declared parameters of functions that can be given on a command line."""
    return [one for function in functions for one in options_of(function) if not one.option.hidden]


def taken(parameters: Iterable[Parameter], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of parameters among those that a command received."""
    return {parameter.name: values[parameter.name] for parameter in parameters}


def made(
    kind: Any,
    command: Callable[..., None],
    options: Sequence[Any],
    text: str,
    short: str = "",
    form: type[click.Command] = click.Command,
) -> click.Command:
    """Return a function as the command of a model, with options in their order."""
    return click.command(kind.command, cls=form, short_help=short or purpose_of(kind), help=text)(
        applied(command, options)
    )


def purpose_of(kind: type[Any]) -> str:
    """Return the first line of a model's docstring."""
    return introduction_of(kind).partition("\n")[0]


def introduction_of(kind: type[Any]) -> str:
    """Return a model's docstring up to its parameters."""
    return inspect.cleandoc(kind.__doc__ or "").partition("\nParameters\n")[0].strip()


def click_option(parameter: Parameter) -> Callable[[Command], Command]:
    """Return the option of a parameter.

    >>> from cvxpriv.runs.options import Option
    >>> rate = Parameter("rate", Option("Utility asked for.", unit="nats"), (float,), 0.8)
    >>> command = click.Command("design", params=[click_option(rate)(lambda: None).__click_params__[0]])
    >>> [(option.opts, option.help, option.default) for option in command.params]
    [(['--rate'], 'Utility asked for, in nats.', 0.8)]
    """
    option = parameter.option
    settings: dict[str, Any] = {
        "help": _help(parameter),
        "show_default": parameter.default not in (None, REQUIRED, ()),
        "required": parameter.default is REQUIRED,
    }
    if parameter.scalar is bool:
        if parameter.default is False:
            return click.option(parameter.flag, parameter.name, is_flag=True, help=_help(parameter))
        flag = parameter.flag
        flag = flag if "/" in flag else f"{flag}/--no-{flag.removeprefix('--')}"
        return click.option(flag, parameter.name, default=parameter.default, **settings)
    if parameter.default is not REQUIRED:
        settings["default"] = parameter.default
    if option.many:
        settings["multiple"] = True
    if option.choices:
        settings["metavar"] = f"[{'|'.join(option.choices)}]"
    elif option.metavar:
        settings["metavar"] = option.metavar
    kind = Read(option.read) if option.read is not None else parameter.scalar or str
    return click.option(parameter.flag, parameter.name, type=kind, **settings)


def _help(parameter: Parameter) -> str:
    """Return the help of an option: its sentence, its unit, and the meaning of a default that is None."""
    option = parameter.option
    unit = f", in {option.unit}" if option.unit else ""
    usual = f"  [default: {option.usual}]" if option.usual else ""
    return f"{option.help.rstrip('.')}{unit}.{usual}"


def output_options(command: Command) -> Command:
    """Give a command ``--json``, ``--quiet`` and ``--debug``; they set the `Terminal` that is the context's object."""

    def remember(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        terminal = context.ensure_object(Terminal)
        terminal.parameters = context.command.params
        if value and parameter.name is not None:
            setattr(terminal, parameter.name, True)

    texts = {
        "--debug": "Show the traceback of an error (or set CVXPRIV_DEBUG=1).",
        "--quiet": "No output but errors.",
        "--json": "One JSON document on standard output, nothing else.",
    }
    for name, text in texts.items():
        option = click.option(name, is_flag=True, is_eager=True, expose_value=False, callback=remember, help=text)
        command = option(command)
    return command


def crosscheck_option(usual: str) -> Callable[[Command], Command]:
    """Return ``--crosscheck/--no-crosscheck``, None where neither is given."""
    text = f"Solve every block again by every solver, and judge the answers.  [default: {usual}]"
    return click.option("--crosscheck/--no-crosscheck", default=None, help=text)


def solvers_option(command: Command) -> Command:
    """Give a command ``--solvers``: the solvers that cross-check."""
    from cvxpriv.solvers.registry import DEFAULT_CHAIN

    text, usual = "Solvers that cross-check.", ",".join(DEFAULT_CHAIN)
    return click.option("--solvers", type=NAMES, default=usual, show_default=True, help=text)(command)


def require_writable(folder: PathLike, option: str = "--out") -> Path:
    """Check, before any work, that files can be made in a folder, which need not exist yet.

    Raises DataError: The folder, or the nearest one above it that exists, is no folder or takes no file.
    """
    path = Path(folder)
    nearest = next(part for part in (path.absolute(), *path.absolute().parents) if os.path.lexists(part))
    if not nearest.is_dir():
        raise DataError(f"{option}={str(folder)!r} is no folder ({nearest.name!r} is a file): choose another name")
    try:
        # Permissions do not tell all: a mount may be read-only, and root may do anything.
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as error:
        raise DataError(
            f"{option}={str(folder)!r} cannot be written ({error.strerror or error}): choose another folder"
        ) from error
    return path


def require_report_packages(remedy: str) -> None:
    """Check, before any work, that the packages for pages and pictures are installed."""
    missing = [package for package in ("jinja2", "matplotlib") if find_spec(package) is None]
    if missing:
        raise ModelError(
            f'the page and the pictures need {" and ".join(missing)}: pip install "cvxpriv[report]", or {remedy}'
        )


def _point(text: str) -> str:
    if text not in (".", ",", "none"):
        raise DataError(f"{text!r} is not one of '.', ',' and 'none'")
    return text


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The options by which a file is read."""

    separator: Annotated[
        str | None,
        Option("Separator of cells.", usual="found; , for .csv, a tab for .tsv", metavar="TEXT"),
    ] = None
    encoding: Annotated[
        str | None,
        Option("Encoding of the text.", usual="found; UTF-8, UTF-16 with its mark, else cp1252", metavar="NAME"),
    ] = None
    decimal: Annotated[
        str | None,
        Option(
            "Decimal point of numbers; the other one parts thousands. none: as written.",
            usual="found",
            metavar="[.|,|none]",
            read=_point,
        ),
    ] = None
    missing_text: Annotated[
        tuple[str, ...] | None,
        Option(
            "Spellings of a missing value, beside the empty cell.",
            usual="those of pandas, NA and so on",
            metavar="A,B,...",
            read=spellings,
        ),
    ] = None

    def rows(self, source: str, private: bool = False) -> pd.DataFrame:
        r"""Return the rows of a file, as they are; a separator ``\t`` is a tab.

        `private`: Read each row by itself: under a guarantee a record may change its own cells alone.
        Raises DataError.
        """
        from cvxpriv.tables.frames import read_table  # numpy comes with it, which help does not need

        between = None if self.separator is None else self.separator.replace("\\t", "\t")
        try:
            return read_table(source, between, self.missing_text, self.encoding, self.decimal, private)
        except DataError as error:
            raise DataError(spoken(str(error))) from error


def reading_options(command: Any) -> Any:
    """Give a command the options of `Reading` but for the spellings of a missing value."""
    return applied(command, map(click_option, on_the_command_line(Reading)[:-1]))
