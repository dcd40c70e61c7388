"""Joint tables of a private S and a public X, with named alphabets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array, IntArray, read_only
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.arrays import (
    SUM_TOLERANCE,
    Labels,
    count_column,
    count_matrix,
    named,
    probability_matrix,
    require_mass,
    require_match,
    require_total,
    smoothed,
    without_empty,
)
from cvxpriv.tables.frames import listed, read_table, require_roles
from cvxpriv.tables.information import entropy, mutual_information
from cvxpriv.tables.protection import Protection
from cvxpriv.tables.recipe import Prepared, Recipe

__all__ = ["Alphabet", "JointTable"]

MAX_CELLS = 10_000_000
"""The largest table that `JointTable.from_frame` forms (80 MB)."""


@door
@dataclass(frozen=True, eq=False, repr=False)
class JointTable:
    """A joint distribution of a private S and a public X, each with a named alphabet.

    A private symbol of probability zero is allowed: it changes no measure, and its row of `p_s_given_x` is zero.
    A public symbol of probability zero is not: the conditional distribution given it does not exist.

    Parameters
    ----------
    probabilities : array, ``(|S|, |X|)``
        Joint probabilities, which sum to 1 within `SUM_TOLERANCE` and are then divided by their sum. Read-only
        afterwards.
    private, public : Alphabet
        The symbols of the rows and of the columns.
    counts : array of int, ``(|S|, |X|)``, optional
        The counts of records that the probabilities come from.
    smoothing : str
        Description of the smoothing of the counts or of the empirical probabilities.
    recipe : Recipe, optional
        Recipe from raw rows to the table's symbols, where they were prepared; a mechanism's file keeps it.
    protection : Protection, optional
        The noise in the counts, where `cvxpriv.private_table` put some; None: they are those of the records.

    Raises
    ------
    DataError
        Not a table of probabilities, or one that does not fit its alphabets.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"income": ["low", "low", "high", "low"], "age": [30, 40, 40, 30]})
    >>> table = JointTable.from_frame(people, private=["income"], public=["age"])
    >>> print(table.description)
    S = income (2 symbols), X = age (2 symbols), 4 records, smoothing: none
    >>> table.probabilities
    array([[0.  , 0.25],
           [0.5 , 0.25]])
    >>> round(table.information, 4), round(table.entropy_x, 4)
    (0.2158, 0.6931)
    """

    probabilities: Array
    private: Alphabet
    public: Alphabet
    counts: IntArray | None = None
    smoothing: str = "none"
    recipe: Recipe | None = None
    protection: Protection | None = None

    def __post_init__(self) -> None:
        p = probability_matrix(self.probabilities, "probabilities")
        for side in (self.private, self.public):
            if not isinstance(side, Alphabet):
                raise DataError(f"an alphabet is of type {type(side).__name__}: pass an Alphabet, or use from_array")
        require_match(p.shape, self.private, self.public)
        require_mass(p, self.public)
        object.__setattr__(self, "probabilities", read_only(p))
        if self.counts is not None:
            counts = count_matrix(self.counts)
            if counts.shape != p.shape:
                raise DataError(f"counts have shape {counts.shape}, probabilities {p.shape}: give one count per cell")
            if self.smoothing == "none" and abs(counts / counts.sum() - p).max() > SUM_TOLERANCE:
                raise DataError("counts and probabilities contradict each other: JointTable.from_counts makes both")
            object.__setattr__(self, "counts", read_only(counts))

    @classmethod
    def from_array(
        cls,
        p_sx: ArrayLike,
        private_labels: Labels | None = None,
        public_labels: Labels | None = None,
        drop_empty: bool = False,
    ) -> JointTable:
        """Return a table from joint probabilities.

        Parameters
        ----------
        p_sx : array, ``(|S|, |X|)``
        private_labels, public_labels : Alphabet or sequence, optional
            An alphabet, or one label per symbol (the column is then named S or X). By default ``0, 1, ...``.
        drop_empty : bool
            Leave out rows and columns without mass; by default a column without mass is refused.

        Raises
        ------
        DataError
            As for `JointTable`.

        Examples
        --------
        >>> JointTable.from_array([[0.5, 0.0], [0.0, 0.5]], ["no", "yes"]).private.labels
        ('no', 'yes')
        """
        p = probability_matrix(p_sx, "p_sx")
        private, public = named(p.shape, private_labels, public_labels)
        if drop_empty:
            p, private, public = without_empty(p, private, public)
        return cls(p, private, public)

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        private_labels: Labels | None = None,
        public_labels: Labels | None = None,
        smoothing: float = 0.0,
        smoothing_on: str = "counts",
        drop_empty: bool = False,
    ) -> JointTable:
        """Return a table from counts of records.

        Parameters
        ----------
        counts : array of whole numbers, ``(|S|, |X|)``
        private_labels, public_labels : Alphabet or sequence, optional
            As for `from_array`.
        smoothing : float
            Number that is added to each entry before the table is normalised.
        smoothing_on : {"counts", "probabilities"}
            Whether it is added to the counts or to the empirical probabilities. Added to probabilities, it weighs ``|S|
            |X| smoothing`` against 1: 1e-3 on a 10 x 160 table weighs 1.6 against 1.
        drop_empty : bool
            Leave out rows and columns without records, before smoothing.

        Raises
        ------
        DataError
            Counts that are negative, not whole or all zero; a negative smoothing; as for `JointTable`.

        Examples
        --------
        >>> JointTable.from_counts([[3, 1], [0, 4]], smoothing=1).probabilities
        array([[0.33333333, 0.16666667],
               [0.08333333, 0.41666667]])
        """
        whole = count_matrix(counts)
        private, public = named(whole.shape, private_labels, public_labels)
        if drop_empty:
            whole, private, public = without_empty(whole, private, public)
        p, description = smoothed(whole, smoothing, smoothing_on)
        return cls(p, private, public, whole, description)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame | Prepared,
        private: Sequence[str],
        public: Sequence[str],
        count: str | None = None,
        smoothing: float = 0.0,
        smoothing_on: str = "counts",
        keep_unseen: bool = False,
        allow_overlap: bool = False,
    ) -> JointTable:
        """Return a table from a data frame of records, or of counts.

        Several columns make a product alphabet: the first varies slowest, and the values of each are sorted (numbers by
        value; a categorical column keeps its own order). Values become text by `cvxpriv.tables.frames.symbol`: 1,
        1.0 and "1" are one symbol.

        Parameters
        ----------
        frame : DataFrame or Prepared
            One record per row, or one cell per row if ``count`` is given; equal cells are added up. Rows that
            `cvxpriv.prepare` made bring their recipe.
        private, public : sequence of str
            Names of the columns of S and of X.
        count : str, optional
            Name of the column with the number of records.
        smoothing, smoothing_on
            As for `from_counts`.
        keep_unseen : bool
            Keep the full product of the columns' values. By default only the cells of S and of X that occur are kept.
        allow_overlap : bool
            Let a column be private and public. The public part then reveals some of S outright.

        Raises
        ------
        DataError
            Unknown, doubled or overlapping columns; missing values; wrong counts; no records; as for `from_counts`.

        Examples
        --------
        >>> import pandas as pd
        >>> cells = pd.DataFrame({"ill": [0, 0, 1, 1], "smokes": [0, 1, 0, 1], "n": [5, 1, 2, 2]})
        >>> JointTable.from_frame(cells, private=["ill"], public=["smokes"], count="n").records
        10
        """
        frame, recipe = (frame.frame, frame.recipe) if isinstance(frame, Prepared) else (frame, None)
        private, public = _columns(private), _columns(public)
        require_roles(frame, private, public, count, allow_overlap)
        weights = count_column(frame, count)
        if not weights.any():
            raise DataError(f"the table holds no records ({len(frame)} rows, count={count!r}): expected at least one")
        require_total(weights, f"count={count!r}")
        seen = weights > 0
        rows, row = Alphabet.from_frame(frame, private, seen, keep_unseen)
        columns, column = Alphabet.from_frame(frame, public, seen, keep_unseen)
        if len(rows) * len(columns) > MAX_CELLS:
            raise DataError(
                f"private and public columns make a table of {len(rows):,} x {len(columns):,} cells, more than"
                f" {MAX_CELLS:,}: leave out or coarsen a column (is one of them an identifier?)"
            )
        counts = np.zeros((len(rows), len(columns)), dtype=np.int64)
        np.add.at(counts, (row[seen], column[seen]), weights[seen])
        table = cls.from_counts(counts, rows, columns, smoothing, smoothing_on)
        return table if recipe is None or recipe.empty else replace(table, recipe=recipe)

    @classmethod
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        private: Sequence[str],
        public: Sequence[str],
        count: str | None = None,
        smoothing: float = 0.0,
        smoothing_on: str = "counts",
        keep_unseen: bool = False,
        allow_overlap: bool = False,
        separator: str | None = None,
        missing: Sequence[str] | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
    ) -> JointTable:
        """Return a table from a file of records, or of counts: CSV, TSV, a spreadsheet or Parquet.

        `cvxpriv.tables.frames.read_table` describes ``path``, ``separator``, ``missing``,
        ``encoding`` and ``decimal``; `from_frame` describes the rest.

        Raises
        ------
        DataError
            As for `read_table` and `from_frame`.
        """
        frame = read_table(path, separator, missing, encoding, decimal)
        return cls.from_frame(frame, private, public, count, smoothing, smoothing_on, keep_unseen, allow_overlap)

    @property
    def shape(self) -> tuple[int, int]:
        """``(|S|, |X|)``."""
        return len(self.private), len(self.public)

    @property
    def records(self) -> int | None:
        """Number of records that the table was counted from; None if it came as probabilities."""
        return None if self.counts is None else int(self.counts.sum())

    @cached_property
    def p_s(self) -> Array:
        """The private marginal, ``(|S|,)``."""
        return read_only(self.probabilities.sum(axis=1))

    @cached_property
    def p_x(self) -> Array:
        """The public marginal, ``(|X|,)``; every entry is positive."""
        return read_only(self.probabilities.sum(axis=0))

    @cached_property
    def p_s_given_x(self) -> Array:
        """The conditional distributions of S, ``(|S|, |X|)``; every column sums to 1."""
        return read_only(self.probabilities / self.p_x)

    @cached_property
    def entropy_s(self) -> float:
        """H(S) in nats."""
        return entropy(self.p_s)

    @cached_property
    def entropy_x(self) -> float:
        """H(X) in nats, never negative: rounding alone would make it so at a probability of 1 + 2e-16."""
        return max(0.0, entropy(self.p_x))

    @cached_property
    def information(self) -> float:
        """I(S;X) in nats: the leakage when X is released unchanged."""
        return mutual_information(self.probabilities)

    @property
    def description(self) -> str:
        """One line with columns, sizes, records and smoothing."""
        sides = [f"{', '.join(side.columns)} ({len(side)} symbols)" for side in (self.private, self.public)]
        source = "given as probabilities" if self.records is None else f"{self.records:,} records"
        noise = "" if self.protection is None else f", {self.protection.noise}"
        return f"S = {sides[0]}, X = {sides[1]}, {source}, smoothing: {self.smoothing}{noise}"

    def to_frame(self) -> pd.DataFrame:
        """Return the probabilities as a data frame: private symbols down, public symbols across."""
        return pd.DataFrame(self.probabilities, index=self.private.to_pandas(), columns=self.public.to_pandas())

    def __repr__(self) -> str:
        return f"<JointTable: {self.description}>"


def _columns(names: Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else listed(names, "columns")
