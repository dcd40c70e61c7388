"""Rows of people for a command that learns: the predicted column, the others, and the held-out rows.

The fields of `RowOptions` are the command's options. The columns become numbers with public bounds
(`cvxpriv.learning.encoding`); the rows are split by a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from cvxpriv.datasets.named_rows import NAMED, NamedRows
from cvxpriv.errors import DataError, PrivacyError, suggest
from cvxpriv.learning.encoding import Encoding, complete_rows
from cvxpriv.learning.rows import Rows
from cvxpriv.numerics.arrays import Array
from cvxpriv.runs.options import Option
from cvxpriv.tables.frames import in_order, names_in, read_table, require_columns, symbol

__all__ = ["RowOptions"]


def range_in(text: str) -> tuple[str, tuple[float, float]]:
    """Return a column and its range.

    >>> range_in("age:0:100")
    ('age', (0.0, 100.0))
    """
    column, *ends = text.rsplit(":", 2)
    try:
        low, high = map(float, ends)
    except ValueError:
        raise DataError(f"{text!r} is no range: give COLUMN:LOW:HIGH, such as age:0:100") from None
    return column, (low, high)


def category_in(text: str) -> tuple[str, tuple[str, ...] | None]:
    """Return a column of categories, and its values where they are public.

    >>> category_in("job:clerk,farmer"), category_in("zip")
    (('job', ('clerk', 'farmer')), ('zip', None))
    """
    column, colon, values = text.partition(":")
    return column, (names_in(values) if colon else None)


@dataclass(frozen=True)
class RowOptions:
    """The options that say how rows are read, encoded and split."""

    label: Annotated[str | None, Option("The column to predict.", metavar="COLUMN")] = None
    positive: Annotated[
        str | None, Option("The value that is class 1.", usual="the second of two", metavar="VALUE")
    ] = None
    range: Annotated[
        tuple[tuple[str, tuple[float, float]], ...],
        Option(
            "A column of numbers and its public range; repeat.", metavar="COLUMN:LOW:HIGH", read=range_in, many=True
        ),
    ] = ()
    category: Annotated[
        tuple[tuple[str, tuple[str, ...] | None], ...],
        Option(
            "A column of categories and its public values; repeat.",
            metavar="COLUMN[:A,B,...]",
            read=category_in,
            many=True,
        ),
    ] = ()
    beyond: Annotated[
        str, Option("Values beyond what was given: refuse, or move to its end.", metavar="[refuse|move]")
    ] = "refuse"
    bounds_from_data: Annotated[
        bool, Option("Private: let other ranges and values be read off the rows, outside of the guarantee.")
    ] = False
    drop_missing: Annotated[bool, Option("Leave out rows that lack a number or the label.")] = False
    test_fraction: Annotated[float, Option("Part of the rows that is held out and scored.")] = 0.3
    seed: Annotated[int, Option("Seed of that split, and of random starts.")] = 0
    separator: Annotated[str | None, Option("Between cells.", usual=", for .csv; a tab for .tsv", metavar="TEXT")] = (
        None
    )
    missing: Annotated[
        tuple[str, ...] | None,
        Option("Spellings of a missing value.", usual="those of pandas", metavar="A,B,...", read=names_in),
    ] = None

    def load(
        self, source: str, columns: Sequence[str] | None, *, scaled: bool, private: bool, beside: str | None = None
    ) -> Rows:
        """Return the rows of a file, or of the set of that name.

        Parameters
        ----------
        source : str
        columns : sequence of str, optional
            Names of the columns. None: those of a named set, or all of a file except the label.
        scaled : bool
            Divide rows by the square root of the number of columns.
        private : bool
            Refuse bounds that were read off the rows, unless `bounds_from_data`.
        beside : str, optional
            A column that accompanies the rows and is not learned from.

        Raises
        ------
        DataError
            The source, a column or a value is malformed.
        PrivacyError
            Bounds would be read off private rows.
        """
        try:
            return self._load(source, columns, scaled, private, beside)
        except (DataError, PrivacyError) as error:
            raise type(error)(_as_typed(str(error))) from error

    def _load(
        self, source: str, columns: Sequence[str] | None, scaled: bool, private: bool, beside: str | None
    ) -> Rows:
        named = NAMED[source] if source in NAMED and not Path(source).exists() else None
        frame = self._read(source) if named is None else named.load()
        label = self._label(frame, source, named)
        others = named.columns if named else [str(name) for name in frame.columns if name != label]
        chosen = list(columns or [name for name in others if name != beside])
        require_columns(frame, [*chosen, *([beside] if beside is not None and beside not in chosen else [])], "columns")
        if label in chosen:
            raise DataError(f"column {label!r} is the label: predict it from other columns")
        y, classes, labelled = self._labels(frame[label], named.positive if named else None)
        if not (self.drop_missing or labelled.all()):
            raise DataError(f"column {label!r} has {int((~labelled).sum()):,} missing labels: drop those rows")
        train, test = self._split(np.flatnonzero(labelled))
        encoding = self._encoding(frame.iloc[train], chosen, named, scaled)
        if private and not self.bounds_from_data:
            encoding.require_public()
        if self.drop_missing:
            train, test = (rows[complete_rows(frame.iloc[rows], encoding)] for rows in (train, test))
        encoded = [encoding.encode(frame.iloc[rows], self.beyond) for rows in (train, test)]
        return Rows(
            named.title if named else Path(source).name,
            label,
            classes,
            encoding,
            encoded[0],
            y[train],
            encoded[1],
            y[test],
            dropped=len(frame) - train.size - test.size,
            seed=self.seed,
            beside=() if beside is None else tuple(_texts(frame[beside].iloc[train])),
        )

    def _read(self, source: str) -> pd.DataFrame:
        if not Path(source).exists() and "." not in source:
            raise DataError(f"{source!r} is no file and no set of rows: {suggest(source, NAMED)}, or a CSV or TSV file")
        separator = None if self.separator is None else self.separator.replace("\\t", "\t")
        return read_table(source, separator, self.missing)

    def _label(self, frame: pd.DataFrame, source: str, named: NamedRows | None) -> str:
        label = self.label or (named.label if named else None)
        if label is None:
            raise DataError(f"--label names no column of {source}: {suggest('', frame.columns)}")
        require_columns(frame, [label], "label")
        return label

    def _labels(
        self, column: pd.Series[Any], usual: str | None
    ) -> tuple[Array, tuple[str, str], np.ndarray[Any, np.dtype[np.bool_]]]:
        """Return -1 and 1, the names of the two classes, and a mask of the rows that have a label."""
        texts = _texts(column)
        found = in_order({str(text) for text in texts} - {""})
        positive = symbol(self.positive) if self.positive is not None else (usual if usual in found else None)
        if positive is None:
            if len(found) != 2:
                shown = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
                raise DataError(
                    f"column {column.name!r} has {len(found)} values ({shown}), and a label has two: name one of them, "
                    "--positive VALUE, to tell it from all others"
                )
            positive = found[1]
        if positive not in found:
            raise DataError(
                f"--positive={positive!r} is no value of column {column.name!r}: {suggest(positive, found)}"
            )
        others = [value for value in found if value != positive]
        if not others:
            raise DataError(f"column {column.name!r} holds {positive!r} alone: there is nothing to tell it from")
        negative = others[0] if len(others) == 1 else f"not {positive}"
        return np.where(texts == positive, 1.0, -1.0), (negative, positive), np.asarray(texts != "", dtype=bool)

    def _split(self, rows: np.ndarray[Any, np.dtype[np.intp]]) -> tuple[Any, Any]:
        if not 0.0 <= self.test_fraction < 1.0:
            raise DataError(f"--test-fraction={self.test_fraction:g} is no part of the rows: give a number in [0, 1)")
        if self.seed < 0:
            raise DataError(f"--seed={self.seed} is no seed: give a whole number >= 0")
        count = round(self.test_fraction * rows.size)
        if rows.size - count < 2:
            raise DataError(f"{rows.size - count} rows are left to learn from: give more rows, or --test-fraction 0")
        order = np.random.default_rng(self.seed).permutation(rows)
        return np.sort(order[count:]), np.sort(order[:count])

    def _encoding(self, frame: pd.DataFrame, columns: list[str], named: NamedRows | None, scaled: bool) -> Encoding:
        ranges, categories = dict(self.range), dict(self.category)
        for flag, given in (("--range", ranges), ("--category", categories)):
            if stray := [name for name in given if name not in columns]:
                raise DataError(f"{flag} names {stray[0]!r}, which is not learned from: {suggest(stray[0], columns)}")
        if named:
            asked = set(ranges) | set(categories)
            ranges |= {name: ends for name, ends in named.ranges.items() if name in columns and name not in asked}
            categories |= {name: one for name, one in named.categories.items() if name in columns and name not in asked}
        return Encoding.of(frame, columns, ranges=ranges, categories=categories, scaled=scaled)


def _texts(column: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.object_]]:
    """Return the cells as texts; a missing one is empty."""
    return column.map(symbol, na_action="ignore").fillna("").to_numpy(dtype=object)


def _as_typed(message: str) -> str:
    """Return a message about the arguments of `Encoding` in the command line's words."""
    spoken = {
        "ranges={'age': (0, 100)} and categories={'job': [...]}": "--range age:0:100, --category job:clerk,farmer; or "
        "let them be read off with --bounds-from-data",
        "beyond='move'": "--beyond move",
        "beyond=": "--beyond=",
        "drop those rows": "give --drop-missing",
        "drop the row": "drop the row from the file",
        "columns=": "column ",
        "label=": "--label=",
    }
    for there, here in spoken.items():
        message = message.replace(there, here)
    return message
