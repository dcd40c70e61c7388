"""Options that prepare a table's rows: bins, merges, rare symbols, missing values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import click
import pandas as pd

from cvxpriv.cli.options import Read
from cvxpriv.errors import DataError, warn
from cvxpriv.numerics.arguments import names_in
from cvxpriv.tables.frames import read_table
from cvxpriv.tables.preparing import prepare
from cvxpriv.tables.recipe import RULES, Prepared
from cvxpriv.tables.recipe_texts import bins_in, merge_in, size_in

Command = TypeVar("Command", bound=Callable[..., Any])

SPOKEN = {
    "missing-text": "--missing-text",
    "give another encoding=": "give another --encoding",
    "give its encoding=": "give its --encoding",
    "give encoding=": "give --encoding ",
    "encoding=": "--encoding=",
    "give separator=": "give --separator",
    "decimal=": "--decimal ",
    "prepare(frame, missing='drop')": "--missing drop",
    "missing='symbol'": "--missing symbol",
    "bins of ": "--bins of ",
    "merge of ": "--merge of ",
    "rare of ": "--rare of ",
    "top of ": "--top of ",
}
"""Words of messages about preparation, and those of the command line."""


class DroppedWarning(UserWarning):
    """Rows were left out of the table."""


def in_options(message: str) -> str:
    """Return a message about preparation in the command line's words."""
    for there, here in SPOKEN.items():
        message = message.replace(there, here)
    return message


def missing_option(usual: str = "refuse") -> Callable[[Command], Command]:
    """Return ``--missing``: the treatment of missing values; None where it is not given."""
    text = f"Missing values: refuse them, drop their rows, or make them a symbol.  [default: {usual}]"
    return click.option("--missing", type=Read(missing_rule), metavar=f"[{'|'.join(RULES)}]", help=text)


def missing_text_option(command: Command) -> Command:
    """Give a command ``--missing-text``: the spellings of a missing value."""
    text = "Spellings of a missing value, beside the empty cell.  [default: those of pandas, NA and so on]"
    return click.option("--missing-text", type=Read(names_in), metavar="A,B,...", help=text)(command)


def read_rows(
    source: str,
    separator: str | None = None,
    missing_text: Sequence[str] | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
) -> pd.DataFrame:
    """Return the rows of a file; a separator ``\t`` is a tab."""
    try:
        between = None if separator is None else separator.replace("\\t", "\t")
        return read_table(source, between, missing_text, encoding, decimal)
    except DataError as error:
        raise DataError(in_options(str(error))) from error


def preparation_options() -> list[Any]:
    """Return the options of a recipe, in order."""
    bins = (
        "Classes of numbers by public edges, or quantiles:5 from the data (private edges); first:7 takes first "
        "characters, the month of a date; repeat."
    )
    merge = "Symbols that become one: 'education<=8=low', 'job=clerk|typist=office'; repeat."
    rare = "Merge symbols of the public columns (or of COLUMN) with fewer records into 'other'; repeat."
    top = "Keep so many of the most frequent symbols, likewise; repeat."
    return [
        click.option("--bins", multiple=True, type=Read(bins_in), metavar="COLUMN=EDGES", help=bins),
        click.option("--merge", multiple=True, type=Read(merge_in), metavar="COLUMN=VALUES=NAME", help=merge),
        click.option("--rare", multiple=True, type=Read(size_in), metavar="[COLUMN=]NUMBER", help=rare),
        click.option("--top", multiple=True, type=Read(size_in), metavar="[COLUMN=]NUMBER", help=top),
        missing_option(),
        missing_text_option,
    ]


def prepared(
    frame: pd.DataFrame, public: Sequence[str], private: Sequence[str], count: str | None, given: Mapping[str, Any]
) -> Prepared:
    """Return rows prepared as the options say; a number without a column speaks of the public ones.

    Raises DataError.
    """
    merges: dict[str, dict[str, Any]] = {}
    for column, into, values in given["merge"]:
        mine = merges.setdefault(column, {})
        if isinstance(mine.get(into), list) and isinstance(values, list):
            values = [*mine[into], *values]
        elif into in mine:
            raise DataError(f"--merge names {column} and {into} twice: join them")
        mine[into] = values
    if twice := [column for column, _ in given["bins"] if [name for name, _ in given["bins"]].count(column) > 1]:
        raise DataError(f"--bins names {twice[0]!r} twice: give all its edges at once")
    made = prepare(
        frame,
        bins=dict(given["bins"]),
        merge=merges,
        rare=_sizes(given["rare"], public),
        top=_sizes(given["top"], public),
        missing=given["missing"] or "refuse",
        columns=list(dict.fromkeys([*private, *public])),
        count=count,
        missing_text=given["missing_text"],
        public_recipe=given.get("public_recipe", False),
    )
    made = replace(made, recipe=replace(made.recipe, decimal=given["decimal"]))
    if made.dropped and not given.get("public_recipe", False):
        text = f"{made.dropped:,} of {len(frame):,} rows lack a value and were dropped: the figures do not cover them"
        warn(text, DroppedWarning)
    return made


def _sizes(given: Sequence[tuple[str, int]], public: Sequence[str]) -> dict[str, int]:
    whole = {column: size for name, size in given if not name for column in public}
    return whole | {name: size for name, size in given if name}


def missing_rule(text: str, known: Sequence[str] = RULES) -> str:
    """Return a treatment of missing values."""
    if text not in known:
        raise DataError(
            f"{text!r} is none of {', '.join(known)}; spellings of a missing value are given by --missing-text"
        )
    return text
