"""The options that say how a command that learns reads its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from cvxpriv.cli.options import NAMES, field_option, packed
from cvxpriv.cli.rows import RowOptions

__all__ = ["row_options"]

Command = TypeVar("Command", bound=Callable[..., Any])


class Range(click.ParamType[tuple[str, tuple[float, float]]]):
    """A column and its range."""

    name = "range"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.ParamType`.

        >>> Range().convert("age:0:100", None, None)
        ('age', (0.0, 100.0))
        """
        column, *ends = value.rsplit(":", 2)
        try:
            low, high = map(float, ends)
        except ValueError:
            self.fail(f"{value!r} is no range: give COLUMN:LOW:HIGH, such as age:0:100", param, ctx)
        return column, (low, high)


class Category(click.ParamType[tuple[str, "tuple[str, ...] | None"]]):
    """A column of categories, and its values where they are public."""

    name = "category"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.ParamType`.

        >>> Category().convert("job:clerk,farmer", None, None), Category().convert("zip", None, None)
        (('job', ('clerk', 'farmer')), ('zip', None))
        """
        column, colon, values = value.partition(":")
        return column, (NAMES.convert(values, param, ctx) if colon else None)


def row_options(command: Command) -> Command:
    """Give a command the options that say how rows are read; it gets them as one `RowOptions`, ``reading``."""

    def option(flag: str, text: str, **settings: Any) -> Callable[[Any], Any]:
        return field_option(RowOptions, flag, text, **settings)

    options = [
        option("--label", "The column to predict.", metavar="COLUMN"),
        option("--positive", "The value that is class 1.  [default: the second of two]", metavar="VALUE"),
        option(
            "--range",
            "A column of numbers and its public range; repeat.",
            type=Range(),
            multiple=True,
            metavar="COLUMN:LOW:HIGH",
            show_default=False,
        ),
        option(
            "--category",
            "A column of categories and its public values; repeat.",
            type=Category(),
            multiple=True,
            metavar="COLUMN[:A,B,...]",
            show_default=False,
        ),
        option("--beyond", "Values beyond what was given: refuse, or move to its end.", metavar="[refuse|move]"),
        option(
            "--bounds-from-data",
            "Private: let other ranges and values be read off the rows, outside of the guarantee.",
            is_flag=True,
        ),
        option("--drop-missing", "Leave out rows that lack a number or the label.", is_flag=True),
        option("--test-fraction", "Part of the rows that is held out and scored.", type=float),
        option("--seed", "Of that split.", type=int),
        option("--separator", "Between cells.  [default: , for .csv; a tab for .tsv]", metavar="TEXT"),
        option("--missing", "Spellings of a missing value.  [default: those of pandas]", type=NAMES),
    ]
    return packed(command, RowOptions, "reading", options)
