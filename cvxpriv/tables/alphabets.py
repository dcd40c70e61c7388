"""Alphabets: the named symbols behind the rows and columns of a table."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cvxpriv.errors import DataError, shown
from cvxpriv.numerics.arguments import as_array, require_at_most, require_counts
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.tables.frames import encode_column, listed, require_columns, symbol, text_of

MAX_SYMBOLS = 1_000_000
"""The largest product of columns that `Alphabet.from_frame` forms."""


@door
@dataclass(frozen=True)
class Alphabet:
    """Symbols over one or several columns, in a fixed order.

    Parameters
    ----------
    columns : tuple of str
        The names of the columns.
    symbols : tuple of tuples of str
        One tuple per symbol, one text per column, made canonical by `cvxpriv.tables.frames.symbol`.

    Raises
    ------
    DataError
        No columns, no symbols, a symbol of the wrong length, a column or a symbol named twice.

    Examples
    --------
    >>> people = Alphabet(("age", "sex"), (("17-25", "Female"), ("17-25", "Male")))
    >>> len(people), people.label(1), people.index(("17-25", "Male"))
    (2, '17-25, Male', 1)
    """

    columns: tuple[str, ...]
    symbols: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        columns = tuple(text_of(column, "a column") for column in listed(self.columns, "columns"))
        if not columns or len(set(columns)) < len(columns):
            raise DataError(f"columns={columns!r}: expected one or more names, each once")
        symbols = tuple(_row(cells, len(columns)) for cells in listed(self.symbols, "symbols"))
        if not symbols:
            raise DataError(f"symbols=() over columns {', '.join(columns)}: an alphabet needs at least one symbol")
        if len(set(symbols)) < len(symbols):
            twice = Counter(symbols).most_common(1)[0][0]
            raise DataError(f"symbols name {', '.join(twice)!r} twice (1, 1.0 and '1' are one symbol): name it once")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "symbols", symbols)

    @classmethod
    def numbered(cls, column: str, size: int) -> Alphabet:
        """Return the symbols ``0`` to ``size - 1`` of one column.

        Raises
        ------
        ModelError
            The size is no whole number from 1 to `MAX_SYMBOLS`.

        Examples
        --------
        >>> Alphabet.numbered("X", 3).labels
        ('0', '1', '2')
        """
        require_counts(size=size)
        require_at_most(MAX_SYMBOLS, size=size)
        return cls((column,), tuple((str(i),) for i in range(size)))

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        columns: Sequence[str],
        occurs: NDArray[np.bool_] | None = None,
        keep_unseen: bool = False,
    ) -> tuple[Alphabet, NDArray[np.int64]]:
        """Return the product alphabet of some columns, and the place of each row in it.

        Parameters
        ----------
        frame : DataFrame
        columns : sequence of str
            Names of the columns; the first one varies slowest.
        occurs : array of bool, ``(rows,)``, optional
            Rows that count as seen, since a count table may hold rows of count zero. By default all of them.
        keep_unseen : bool
            Keep the full product of the columns' values, not only the cells that occur.

        Returns
        -------
        alphabet : Alphabet
        codes : array of int, ``(rows,)``
            -1 for a row whose cell is not kept.

        Raises
        ------
        DataError
            Unknown or doubled column, missing values, no rows, a product of more than `MAX_SYMBOLS`, or `occurs` is not
            one truth value for each row.
        """
        columns = listed(columns, "columns")
        require_columns(frame, columns, "columns")
        seen = np.ones(len(frame), dtype=bool) if occurs is None else as_array(occurs, "occurs")
        if seen.dtype != np.bool_ or seen.shape != (len(frame),) or np.ma.is_masked(occurs):
            raise DataError(
                f"occurs={shown(occurs)} is not {len(frame):,} truth values: pass one for each row of the table"
            )
        encoded = [encode_column(frame, column) for column in columns]
        sizes = [len(levels) for _, levels in encoded]
        if keep_unseen:
            if math.prod(sizes) > MAX_SYMBOLS:
                raise DataError(
                    f"keep_unseen=True makes {math.prod(sizes):,} symbols of {', '.join(columns)}, more than"
                    f" {MAX_SYMBOLS:,}: leave out or coarsen a column, or keep_unseen=False"
                )
            symbols = tuple(itertools.product(*(levels for _, levels in encoded)))
            codes = np.ravel_multi_index(tuple(code for code, _ in encoded), tuple(sizes))
            return cls(tuple(columns), symbols), codes.astype(np.int64)
        cells, inverse = _distinct_rows([code[seen] for code, _ in encoded])
        symbols = tuple(tuple(encoded[j][1][level] for j, level in enumerate(cell)) for cell in cells)
        codes = np.full(len(frame), -1, dtype=np.int64)
        codes[seen] = inverse
        return cls(tuple(columns), symbols), codes

    def __len__(self) -> int:
        return len(self.symbols)

    def label(self, i: int) -> str:
        """Return symbol number ``i`` as one text, for example ``17-25, Female, 9``.

        Raises DataError: There are no more than ``i`` symbols.
        """
        return ", ".join(self.take([i]).symbols[0])

    @property
    def labels(self) -> tuple[str, ...]:
        """Return all symbols as texts, in order."""
        return tuple(map(", ".join, self.symbols))

    @cached_property
    def _places(self) -> dict[tuple[str, ...], int]:
        return {row: i for i, row in enumerate(self.symbols)}

    def index(self, row: Sequence[object]) -> int:
        """Return the place of a row of values, one per column.

        Raises
        ------
        DataError
            The alphabet does not hold that row.
        """
        cells = _row(row, len(self.columns))
        if cells not in self._places:
            raise DataError(
                f"row={', '.join(cells)!r} is no symbol over {', '.join(self.columns)}:"
                f" expected one of {len(self)}, such as {self.label(0)!r}"
            )
        return self._places[cells]

    def codes(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """Return the place of each row of a frame; -1 where the alphabet does not hold the row's cell.

        Raises
        ------
        DataError
            The frame lacks a column of the alphabet, or has missing values in one.
        """
        require_columns(frame, self.columns, "column")
        encoded = [encode_column(frame, column) for column in self.columns]
        cells, inverse = _distinct_rows([code for code, _ in encoded])
        texts = (tuple(encoded[j][1][level] for j, level in enumerate(cell)) for cell in cells)
        places = np.array([self._places.get(row, -1) for row in texts], dtype=np.int64)
        return places[inverse]

    def take(self, indices: Sequence[int] | NDArray[np.int64]) -> Alphabet:
        """Return the alphabet of some of the symbols, in the order given.

        Raises
        ------
        DataError
            An index is no whole number from 0 to one below the number of symbols.
        """
        places = as_array(indices, "indices")
        whole = places.dtype.kind in "iu" and places.ndim == 1 and places.size > 0
        if not whole or int(places.min()) < 0 or int(places.max()) >= len(self) or np.ma.is_masked(indices):
            raise DataError(
                f"indices={shown(indices)} are not places of symbols: pass numbers from 0 to {len(self) - 1}"
            )
        return Alphabet(self.columns, tuple(self.symbols[int(i)] for i in places))

    def to_pandas(self) -> pd.Index:
        """Return the symbols as a pandas index, with one level per column where there are several."""
        if len(self.columns) == 1:
            return pd.Index([row[0] for row in self.symbols], name=self.columns[0])
        return pd.MultiIndex.from_tuples(self.symbols, names=self.columns)


def _distinct_rows(columns: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct rows of columns of codes >= 0, in lexicographic order, and the place of each row among them.

    The codes become the digits of one number: numpy sorts numbers ten times as fast as rows.
    """
    number, bound = np.zeros(len(columns[0]), dtype=np.int64), 1
    for codes in columns:
        radix = int(codes.max(initial=0)) + 1
        if bound * radix > np.iinfo(np.int64).max:
            _, number = np.unique(number, return_inverse=True)
            bound = len(number)
        number, bound = number * radix + codes, bound * radix
    _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
    return np.column_stack(columns)[first], inverse


def _row(cells: Sequence[object], size: int) -> tuple[str, ...]:
    texts = tuple(symbol(cell) for cell in ([cells] if isinstance(cells, str) else listed(cells, "a symbol")))
    if len(texts) != size:
        raise DataError(f"symbol {texts!r} has {len(texts)} values, expected {size}: one per column")
    return texts
