"""Tables over a public domain: every combination of the values that the columns may have, whatever occurs.

Which cells occur tells of the records. A table that is to be published with noise needs cells that were known before
any record was seen.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from cvxpriv.errors import DataError, suggest
from cvxpriv.numerics.arrays import IntArray
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.frames import in_order, symbol

MOST_CELLS = 10_000_000
"""The largest domain."""


def product_of(side: Alphabet, domain: Mapping[str, Sequence[object]] | None) -> Alphabet:
    """Return every combination of the columns' values.

    `side`: The columns, and the symbols that occur.
    `domain`: The values of each column; None takes those of the symbols.
    Raises DataError: A column without values.

    >>> product_of(Alphabet(("age", "sex"), (("old", "F"), ("young", "M"))), None).labels
    ('old, F', 'old, M', 'young, F', 'young, M')
    """
    levels = []
    for place, column in enumerate(side.columns):
        if domain is None:
            levels.append(in_order({row[place] for row in side.symbols}))
        else:
            values = tuple(dict.fromkeys(symbol(value) for value in domain.get(column, ())))
            if not values:
                raise DataError(f"domain names no value of column {column!r}: name all that it may have")
            levels.append(values)
    if math.prod(map(len, levels)) > MOST_CELLS:
        raise DataError(f"domain of {', '.join(side.columns)} has more than {MOST_CELLS:,} cells: merge values")
    return Alphabet(side.columns, tuple(itertools.product(*levels)))


def on_domain(
    counts: IntArray, private: Alphabet, public: Alphabet, domain: Mapping[str, Sequence[object]] | None
) -> tuple[IntArray, Alphabet, Alphabet]:
    """Return counts on the whole domain, with its two alphabets.

    Raises DataError: A column without values, one that no side has, or a record outside the domain.
    """
    if domain is not None:
        known = (*private.columns, *public.columns)
        if strays := [name for name in domain if name not in known]:
            raise DataError(f"domain names column {strays[0]!r}: {suggest(strays[0], known)}")
    rows, columns = product_of(private, domain), product_of(public, domain)
    if len(rows) * len(columns) > MOST_CELLS:
        raise DataError(f"domain has {len(rows) * len(columns):,} cells, more than {MOST_CELLS:,}: merge values")
    places = [_places(whole, side) for whole, side in ((rows, private), (columns, public))]
    found = np.zeros((len(rows), len(columns)), dtype=np.int64)
    found[np.ix_(*places)] = counts
    return found, rows, columns


def _places(whole: Alphabet, side: Alphabet) -> list[int]:
    try:
        return [whole.index(row) for row in side.symbols]
    except DataError:
        raise DataError(
            "a record lies outside the domain, and which one is not said: name every value that a column may have, or "
            "map it to one"
        ) from None
