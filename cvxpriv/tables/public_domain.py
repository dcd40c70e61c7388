"""Tables over a public domain: every combination of the values that the columns may have, whatever occurs.

Which cells occur tells of the records. A table that is to be published with noise needs cells that were known before
any record was seen.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from cvxpriv.errors import DataError, suggest
from cvxpriv.numerics.arguments import few
from cvxpriv.numerics.arrays import IntArray
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.frames import in_order, symbol

MOST_CELLS = 10_000_000
"""The largest domain."""


def _values(side: Alphabet, domain: Mapping[str, Sequence[object]] | None) -> list[tuple[str, ...]]:
    """Return the values of each column of a side; without a domain, those of the symbols that occur."""
    levels: list[tuple[str, ...]] = []
    for place, column in enumerate(side.columns):
        if domain is None:
            levels.append(tuple(in_order({row[place] for row in side.symbols})))
        else:
            given = few(f"domain of {column}", domain.get(column, ()))
            values = tuple(dict.fromkeys(map(symbol, given)))
            if not values:
                raise DataError(f"domain names no value of column {column!r}: name all that it may have")
            levels.append(values)
    return levels


def on_domain(
    counts: IntArray, private: Alphabet, public: Alphabet, domain: Mapping[str, Sequence[object]] | None
) -> tuple[IntArray, Alphabet, Alphabet]:
    """Return counts on the whole domain, with its two alphabets: of every combination of each side's values.

    `domain`: The values of each column; None takes those of the symbols.
    Raises DataError: A column without values, one that no side has, or a record outside the domain. ModelError: A
    column has more than a million values.

    >>> old, sick = Alphabet(("age", "sex"), (("old", "F"), ("young", "M"))), Alphabet(("sick",), (("no",),))
    >>> on_domain(np.array([[3], [4]]), old, sick, None)[1].labels
    ('old, F', 'old, M', 'young, F', 'young, M')
    """
    if domain is not None:
        known = (*private.columns, *public.columns)
        if strays := [name for name in domain if name not in known]:
            raise DataError(f"domain names column {strays[0]!r}: {suggest(strays[0], known)}")
    levels = [_values(side, domain) for side in (private, public)]
    if (cells := math.prod(len(values) for side in levels for values in side)) > MOST_CELLS:
        raise DataError(f"domain has {cells:,} cells, more than {MOST_CELLS:,}: merge values")
    rows, columns = (
        Alphabet(side.columns, tuple(itertools.product(*values)))
        for side, values in zip((private, public), levels, strict=True)
    )
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
