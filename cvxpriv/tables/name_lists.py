"""Lists of names in one text, as options of the command line have them."""

from __future__ import annotations

import csv

from cvxpriv.errors import DataError


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a text, separated by commas; quotes hold a name that contains one, as in a CSV file.

    Raises DataError: A name is empty.

    >>> names_in('age, "height, cm"')
    ('age', 'height, cm')
    """
    names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))
    if not names or "" in names:
        raise DataError(f"{text!r} holds an empty name: give names parted by commas, such as age,sex")
    return names
