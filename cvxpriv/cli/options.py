"""Options that several commands share, and how they are read."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from cvxpriv.cli.terminal import Terminal
from cvxpriv.datasets import PAPER_SMOOTHING, SOURCES, joint_table
from cvxpriv.distributions import JointTable
from cvxpriv.errors import DataError

__all__ = ["NAMES", "TableOptions", "output_options", "table_options"]

Command = TypeVar("Command", bound=Callable[..., Any])


class Names(click.ParamType[tuple[str, ...]]):
    """Names parted by commas; quotes, as in a CSV file, hold a name that has one."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """See `click.ParamType`.

        >>> NAMES.convert('age, "height, cm"', None, None)
        ('age', 'height, cm')
        """
        if isinstance(value, tuple):
            return value
        names = tuple(name.strip() for name in next(csv.reader([value], skipinitialspace=True), []))
        if not names or "" in names:
            self.fail(f"{value!r} holds an empty name: give names parted by commas, such as age,sex", param, ctx)
        return names


NAMES = Names()


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


@dataclass(frozen=True)
class TableOptions:
    """Which table, and how it is read."""

    private: tuple[str, ...]
    public: tuple[str, ...]
    count: str | None
    smoothing: float | None
    smoothing_on: str
    keep_unseen: bool
    allow_overlap: bool
    separator: str | None
    missing: tuple[str, ...] | None

    def load(self, source: str) -> JointTable:
        """Return the joint table of a file, or the embedded one of that name.

        Raises
        ------
        DataError
            No such file, not a table, or columns that are missing or contradict each other.
        """
        if source in SOURCES and not Path(source).exists():
            self._refuse_columns(source)
            smoothing = PAPER_SMOOTHING if self.smoothing is None else self.smoothing
            return joint_table(source, smoothing, self.smoothing_on)
        for side in ("private", "public"):
            if not getattr(self, side):
                raise DataError(f"--{side} names no column of {source}: name at least one, such as --{side} age,sex")
        return JointTable.from_csv(
            source,
            list(self.private),
            list(self.public),
            self.count,
            self.smoothing or 0.0,
            self.smoothing_on,
            self.keep_unseen,
            self.allow_overlap,
            None if self.separator is None else self.separator.replace("\\t", "\t"),
            self.missing,
        )

    def _refuse_columns(self, source: str) -> None:
        if self.private or self.public or self.count:
            raise DataError(
                f"{source} is an embedded table, whose private and public columns are those of its paper: leave out "
                "--private, --public and --count, or give a file"
            )


def table_options(command: Command) -> Command:
    """Give a command the options that say how a table is read; it gets them as one `TableOptions`, ``columns``."""
    options = [
        click.option("--private", type=NAMES, default=(), help="Columns of S, what is to be hidden: age,income."),
        click.option("--public", type=NAMES, default=(), help="Columns of X, what Y is to tell of."),
        click.option("--count", metavar="COLUMN", help="Column with the number of records; none: one a row."),
        click.option(
            "--smoothing", type=float, metavar="NUMBER", help="Added to each cell.  [default: 0; embedded tables 1e-3]"
        ),
        click.option(
            "--smoothing-on",
            metavar="[counts|probabilities]",
            default="counts",
            show_default=True,
            help="To what smoothing is added.",
        ),
        click.option("--keep-unseen", is_flag=True, help="Keep cells of X that do not occur (wants --smoothing)."),
        click.option("--allow-overlap", is_flag=True, help="Let a column be private and public."),
        click.option("--separator", metavar="TEXT", help="Between cells.  [default: , for .csv; a tab for .tsv]"),
        click.option("--missing", type=NAMES, help="Spellings of a missing value.  [default: those of pandas]"),
    ]
    names = tuple(TableOptions.__dataclass_fields__)

    @wraps(command)
    def collected(*args: Any, **kwargs: Any) -> Any:
        columns = TableOptions(**{name: kwargs.pop(name) for name in names})
        return command(*args, columns=columns, **kwargs)

    wrapped: Any = collected
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]
