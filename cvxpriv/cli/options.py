"""Options that several commands share, and how they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import DataError
from cvxpriv.reports.readers import INTERNAL, PAGES
from cvxpriv.tables.name_lists import names_in

Command = TypeVar("Command", bound=Callable[..., Any])

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # which takes no [Any] before click 8.4


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


NAMES = Read(names_in)
DIVERGENCE = "NAME | FORMULA | FILE.py:NAME"
"""The forms of a divergence's name: see `cvxpriv.divergences.places`."""


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

    names = ",".join(DEFAULT_CHAIN)
    return click.option("--solvers", type=NAMES, default=names, show_default=True, help="Solvers that cross-check.")(
        command
    )


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
