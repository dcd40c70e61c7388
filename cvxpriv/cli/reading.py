"""Options by which a command reads a file of rows, and messages about it in the command line's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cvxpriv.cli.options import applied, click_option, names, on_the_command_line
from cvxpriv.errors import DataError
from cvxpriv.runs.options import Option

if TYPE_CHECKING:
    import pandas as pd

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
"""Words of messages about reading and preparation, and those of the command line."""


def spoken(message: str, words: dict[str, str] = SPOKEN) -> str:
    """Return a message with some words replaced, in their order."""
    for there, here in words.items():
        message = message.replace(there, here)
    return message


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
            read=names,
        ),
    ] = None

    def rows(self, source: str) -> pd.DataFrame:
        r"""Return the rows of a file, as they are; a separator ``\t`` is a tab.

        Raises DataError.
        """
        from cvxpriv.tables.table_files import read_table  # numpy comes with it, which help does not need

        between = None if self.separator is None else self.separator.replace("\\t", "\t")
        try:
            return read_table(source, between, self.missing_text, self.encoding, self.decimal)
        except DataError as error:
            raise DataError(spoken(str(error))) from error


def reading_options(command: Any) -> Any:
    """Give a command the options of `Reading` but for the spellings of a missing value."""
    return applied(command, map(click_option, on_the_command_line(Reading)[:-1]))
