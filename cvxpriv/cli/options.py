"""Options that several commands share: how they are read, and what is checked of them before any work."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import DataError, ModelError
from cvxpriv.reports.files import PathLike
from cvxpriv.reports.readers import INTERNAL, PAGES

if TYPE_CHECKING:
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


NAMES = Read(names)
DIVERGENCE = "NAME | FORMULA | FILE.py:NAME"
"""The forms of a divergence's name: see `cvxpriv.divergences.places`."""


def reading_options(command: Command) -> Command:
    """Give a command the options that say how a file is read."""
    separator = "Separator of cells.  [default: found; , for .csv, a tab for .tsv]"
    encoding = "Encoding of the text.  [default: found; UTF-8, UTF-16 with its mark, else cp1252]"
    decimal = "Decimal point of numbers; the other one parts thousands. none: as written.  [default: found]"
    points = click.Choice([".", ",", "none"])
    command = click.option("--decimal", type=points, metavar="[.|,|none]", help=decimal)(command)
    command = click.option("--encoding", metavar="NAME", help=encoding)(command)
    return click.option("--separator", metavar="TEXT", help=separator)(command)


def applied(command: Any, options: Iterable[Any]) -> Any:
    """Return a command with options, in their order."""
    for option in reversed(list(options)):
        command = option(command)
    return command


def packed(name: str, kind: Callable[..., Any], taken: Sequence[str], options: Iterable[Any]) -> Callable[[Any], Any]:
    """Give a command options of which it gets some as one object.

    `name`: The command's argument for that object. `kind`: Makes it of the options `taken`, by name.
    """

    def packing(command: Any) -> Any:
        @wraps(command)
        def collected(*args: Any, **kwargs: Any) -> Any:
            chosen = {one: kwargs.pop(one) for one in taken}
            return command(*args, **{name: kind(**chosen)}, **kwargs)

        return applied(collected, options)

    return packing


def output_options(command: Command) -> Command:
    """Give a command ``--json``, ``--quiet`` and ``--debug``; they set the `Terminal` that is the context's object."""

    def remember(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value and parameter.name is not None:
            setattr(context.ensure_object(Terminal), parameter.name, True)

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


def endings() -> list[Any]:
    """Return the last options of a command: the folder of its results, and how they are shown."""
    return [
        click.option("--report/--no-report", default=True, show_default=True, help="Write report.html and pictures."),
        click.option(
            "--page",
            type=click.Choice(PAGES),
            default=INTERNAL,
            show_default=True,
            help="Readers of report.html: shareable withholds the mechanism, small counts and exact numbers, unless "
            "noise protects the table.",
        ),
        click.option("--out", default="out", show_default=True, metavar="FOLDER", help="Folder for the files."),
        output_options,
        click.pass_obj,
    ]


def require_writable(folder: PathLike, option: str = "--out") -> Path:
    """Check, before any work, that files can be made in a folder, which need not exist yet.

    Raises DataError: The folder, or the nearest one above it that exists, is no folder or takes no file.
    """
    path = Path(folder)
    nearest = next(part for part in (path.absolute(), *path.absolute().parents) if os.path.lexists(part))
    if not nearest.is_dir():
        raise DataError(f"{option}={str(folder)!r} is no folder ({nearest.name!r} is a file): choose another name")
    probe = nearest / f".cvxpriv.{secrets.token_hex(8)}.tmp"
    try:
        # Permissions do not tell all: a mount may be read-only, and root may do anything.
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except OSError as error:
        raise DataError(
            f"{option}={str(folder)!r} cannot be written ({error.strerror or error}): choose another folder"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return path


def require_report_packages(remedy: str) -> None:
    """Check, before any work, that the packages for pages and pictures are installed."""
    missing = [package for package in ("jinja2", "matplotlib") if find_spec(package) is None]
    if missing:
        raise ModelError(
            f'the page and the pictures need {" and ".join(missing)}: pip install "cvxpriv[report]", or {remedy}'
        )
