"""The cells of a table that a solver sees: those whose mass it can resolve."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxpriv.numerics.arrays import Array

from .closed_form import FLOOR

#: Shares below this are not shown to a solver: its answers are no finer.
RESOLUTION = 1e-9


@dataclass(frozen=True, eq=False)
class Cells:
    """Some cells of a (rows, columns) table, as one vector in C order.

    `mask`: (rows, columns).
    """

    mask: npt.NDArray[np.bool_]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cells) and np.array_equal(self.mask, other.mask)

    def __hash__(self) -> int:
        return hash((self.mask.shape, self.mask.tobytes()))

    @property
    def count(self) -> int:
        """Number of cells."""
        return int(self.mask.sum())

    @cached_property
    def index(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Row and column of each cell."""
        rows, columns = np.nonzero(self.mask)
        return rows, columns

    @cached_property
    def columns(self) -> npt.NDArray[np.intp]:
        """The columns that have a cell."""
        return np.flatnonzero(self.mask.any(axis=0))

    @cached_property
    def row_sums(self) -> sp.csr_array:
        """The matrix that sums a vector of cells by rows, (rows, count)."""
        return self._sums(axis=1, weight=np.ones(self.count))

    @cached_property
    def column_sums(self) -> sp.csr_array:
        """The matrix that sums a vector of cells by the columns that have one, (len(self.columns), count)."""
        return self._sums(axis=0, weight=np.ones(self.count))[self.columns]

    def weighted_column_sums(self, weight: Array) -> sp.csr_array:
        """Return `column_sums` with each cell times the weight of its row, (len(self.columns), count)."""
        return self._sums(axis=0, weight=weight[self.index[0]])[self.columns]

    def normalised(self, values: Array, *, axis: int, to: Array | float = 1.0) -> Array:
        """Scale a vector of cells so that its sums along `axis` are `to`; values below zero become tiny first.

        `axis` is the one summed over: 0 gives columns a sum, 1 gives rows one.
        """
        along = self.index[1 - axis]
        kept = np.maximum(values, RESOLUTION**2)
        totals = np.bincount(along, weights=kept, minlength=self.mask.shape[1 - axis])
        return np.asarray(kept * (to / np.where(totals > 0.0, totals, 1.0))[along])

    def log_spread(self, values: Array) -> Array:
        """Return the log of the table, (rows, columns), whose other cells are at `FLOOR`."""
        table = np.full(self.mask.shape, FLOOR)
        table[self.mask] = np.maximum(np.log(values), FLOOR)
        return table

    def expression(self, vector: cp.Expression, scale: Array) -> cp.Expression:
        """Return the table as a cvxpy expression, (rows, columns), each row times its scale."""
        rows, columns = self.index
        spread = sp.csr_array(
            (scale[rows], (rows * self.mask.shape[1] + columns, np.arange(self.count))),
            shape=(self.mask.size, self.count),
        )
        return cp.reshape(spread @ vector, self.mask.shape, order="C")

    def _sums(self, axis: int, weight: Array) -> sp.csr_array:
        along: Any = self.index[1 - axis]
        return sp.csr_array((weight, (along, np.arange(self.count))), shape=(self.mask.shape[1 - axis], self.count))
