"""Columns of a master program, stored by their entries that are not zero: most posteriors have few symbols."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.numerics.arrays import Array, Flags, IntArray


@dataclass(frozen=True, eq=False)
class Pool:
    """Columns, (symbols, n), one after the other.

    `symbols`: Number of rows.
    `values`, `rows`, (entries,): The entries that are not zero, and where they stand.
    `counts`, (n,): Number of entries of each column.

    >>> pool = Pool.of(np.array([[0.5, 0.0], [0.5, 1.0]]))
    >>> pool.size, pool.taken(np.array([False, True])).tolist()
    (2, [[0.0], [1.0]])
    """

    symbols: int
    values: Array
    rows: IntArray
    counts: IntArray

    @classmethod
    def of(cls, columns: Array) -> Pool:
        """Return the columns of an array, (symbols, n)."""
        upright = columns.T
        column, row = upright.nonzero()
        return cls(
            len(columns), upright[column, row], row.astype(np.int32), np.bincount(column, minlength=len(upright))
        )

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.counts)

    def joined(self, other: Pool) -> Pool:
        """Return these columns, then the other ones."""
        return Pool(
            self.symbols,
            np.concatenate([self.values, other.values]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.counts, other.counts]),
        )

    def kept(self, some: Flags) -> Pool:
        """Return the columns that a mask marks, (n,)."""
        entries = np.repeat(some, self.counts)
        return Pool(self.symbols, self.values[entries], self.rows[entries], self.counts[some])

    def taken(self, some: Flags | slice) -> Array:
        """Return the columns that a mask or a slice marks as an array, (symbols, k)."""
        marked = np.zeros(self.size, dtype=bool)
        marked[some] = True
        held = self.kept(marked)
        columns = np.zeros((self.symbols, held.size))
        columns[held.rows, np.repeat(np.arange(held.size), held.counts)] = held.values
        return columns
