"""Steps of a recipe as texts: ``age=26,33,41``, ``income=quantiles:5``, ``education<=8=low``, ``job=a|b=c``."""

import re
from collections.abc import Sequence

from cvxpriv.errors import DataError
from cvxpriv.tables.frames import listed, symbol
from cvxpriv.tables.steps import COMPARISONS, Merge

_MERGE = re.compile(r"(?P<column>[^<>=]+)(?P<comparison><=|>=|<|>|=)(?P<what>.+)=(?P<into>[^=]+)")
_BOUND = re.compile(r"(?P<comparison><=|>=|<|>)(?P<bound>.+)")


def bins_in(text: str) -> tuple[str, list[float] | str]:
    """Return the column of a text and its edges, or how many quantiles or first characters.

    Raises DataError.

    >>> bins_in("age=26,33,41"), bins_in("income=quantiles:5")
    (('age', [26.0, 33.0, 41.0]), ('income', 'quantiles:5'))
    """
    column, found, edges = text.rpartition("=")
    if not found or not column.strip():
        raise DataError(f"{text!r} says no bins: give COLUMN=EDGES, such as age=26,33,41, or income=quantiles:5")
    for word, read in (("quantiles", quantiles_in), ("first", characters_in), ("last", characters_in)):
        if edges.strip().startswith(word):
            read(edges.strip(), column.strip())
            return column.strip(), edges.strip()
    try:
        return column.strip(), [float(edge) for edge in edges.split(",")]
    except ValueError:
        raise DataError(
            f"{text!r}: edges are numbers parted by commas, such as age=26,33,41, or quantiles:5; "
            "dates and codes take first:7 or last:4, their first or last characters"
        ) from None


def quantiles_in(text: str, column: str) -> int:
    """Return the number of classes in ``quantiles:5``.

    Raises DataError.
    """
    return _number_after("quantiles", 2, text, column, "give edges, or quantiles:5 for five classes")


def characters_in(text: str, column: str) -> int:
    """Return the number of characters in ``first:7``; that in ``last:4`` is negative.

    Raises DataError.
    """
    if text.startswith("last"):
        return -_number_after("last", 1, text, column, "give last:4 for the last four characters")
    return _number_after("first", 1, text, column, "give first:7 for the first seven characters")


def _number_after(word: str, least: int, text: str, column: str, remedy: str) -> int:
    found, _, number = text.partition(":")
    if found != word or not number.isdecimal() or not least <= int(number[:6]) <= 1000:
        raise DataError(f"bins of {column!r} are {text!r}: {remedy} ({least} to 1000)")
    return int(number)


def merge_in(text: str) -> tuple[str, str, list[str] | str]:
    """Return the column of a text, the new name, and the merged symbols or the bound.

    Raises DataError.

    >>> merge_in("education<=8=low"), merge_in("job=clerk|typist=office")
    (('education', 'low', '<=8'), ('job', 'office', ['clerk', 'typist']))
    """
    found = _MERGE.fullmatch(text.strip())
    if found is None:
        raise DataError(f"{text!r} says no merge: give 'education<=8=low' or 'job=clerk|typist=office'")
    column, into, what = found["column"].strip(), found["into"].strip(), found["what"].strip()
    if found["comparison"] in COMPARISONS:
        return column, into, found["comparison"] + what
    return column, into, [value.strip() for value in what.split("|")]


def merge_of(column: str, into: str, values: Sequence[object] | str) -> Merge:
    """Return a merge of a list of symbols, or of the numbers within a bound such as ``<=8``.

    Raises DataError.
    """
    if not isinstance(values, str):
        return Merge(column, into, tuple(symbol(value) for value in listed(values, f"merge of {column!r}")))
    found = _BOUND.fullmatch(values.strip())
    try:
        return Merge(column, into, comparison=found["comparison"], bound=float(found["bound"]))  # type: ignore[index]
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"merge of {column!r}: {values!r} is no bound: give a list, or a bound such as '<=8'") from None


def size_in(text: str) -> tuple[str, int]:
    """Return the column of a text, empty for all, and a number.

    Raises DataError.

    >>> size_in("5"), size_in("job=20")
    (('', 5), ('job', 20))
    """
    column, _, number = text.rpartition("=")
    if not number.strip().isdecimal() or len(number) > 15 or int(number) < 1:
        raise DataError(f"{text!r}: give a whole number >= 1, or COLUMN=NUMBER, such as 5 or job=5")
    return column.strip(), int(number)
