"""Rows of people for a command that learns: the predicted column, the others, and the held-out rows.

The fields of `RowOptions` are the command's options. The columns become numbers with public bounds
(`cvxpriv.learning.encoding`); the rows are split by a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from cvxpriv.cli.options import Reading
from cvxpriv.cli.preparation import missing_rule
from cvxpriv.cli.private_rows import REMEDY, columns_of, ranges_of, require_given, uncounted_split, within
from cvxpriv.cli.row_labels import Labels, blind_labels, labels_by_schema, labels_found, texts_of
from cvxpriv.cli.terminal import spoken
from cvxpriv.errors import DataError, PrivacyError, suggest, told_nothing
from cvxpriv.learning.encoding import Encoding, complete_rows
from cvxpriv.learning.rows import Rows
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.numerics.arguments import names_in
from cvxpriv.runs.options import Option
from cvxpriv.tables.datasets.named_rows import NAMED, NamedRows
from cvxpriv.tables.frames import require_columns


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


@dataclass(frozen=True, kw_only=True)
class RowOptions(Reading):
    """The options that say how rows are read, encoded and split."""

    schema: Annotated[
        PublicSchema | None,
        Option(
            "Public knowledge of the rows: a JSON or TOML file with label, classes, columns, ranges, categories, "
            "rows or adjacency. Private: nothing of it is read off them, and every row is brought within it.",
            metavar="FILE",
            read=PublicSchema.load,
        ),
    ] = None
    label: Annotated[str | None, Option("Name of the column to predict.", metavar="COLUMN")] = None
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
        str, Option("Treatment of values beyond the given range: refuse, or move to its end.", metavar="[refuse|move]")
    ] = "refuse"
    bounds_from_data: Annotated[
        bool, Option("Private: let other ranges and values be read off the rows, outside of the guarantee.")
    ] = False
    missing: Annotated[
        str,
        Option(
            "Rows without a number or the label: refuse them, or leave them out. A missing category sets no column.",
            metavar="[refuse|drop]",
            read=partial(missing_rule, known=("refuse", "drop")),  # a number that is missing can be no symbol
        ),
    ] = "refuse"
    test_fraction: Annotated[float, Option("Share of the rows that is held out and scored.")] = 0.3
    seed: Annotated[int, Option("Seed of that split, and of random starts.")] = 0

    def load(
        self,
        source: str,
        columns: Sequence[str] | None,
        *,
        scaled: bool,
        private: bool,
        counted: bool = True,
        beside: str | None = None,
    ) -> Rows:
        """Return the rows of a file, or of the set of that name.

        `columns`: Names of the columns. None: those of a named set, or all of a file except the label.
        `scaled`: Divide rows by the square root of the number of columns.
        `private`: Refuse bounds and classes that were read off the rows, unless `bounds_from_data`.
        `counted`: Whether the number of rows is public.
        `beside`: A column that accompanies the rows and is not learned from.
        Raises DataError: The source, a column or a value is malformed.
        Raises PrivacyError: Bounds would be read off private rows.
        """
        try:
            self._require_once()
            return self._load(source, columns, scaled, private, counted, beside)
        except (DataError, PrivacyError) as error:
            raise type(error)(spoken(str(error), _TYPED)) from error

    def _load(
        self, source: str, columns: Sequence[str] | None, scaled: bool, private: bool, counted: bool, beside: str | None
    ) -> Rows:
        known = self.schema
        named = NAMED[source] if source in NAMED and not Path(source).exists() else None
        frame = self._read(source, private) if named is None else named.load()
        label = self._label(frame, source, named)
        if known is not None:
            known.require_rows(len(frame))
            columns = columns or columns_of(known)
        others = named.columns if named else [str(name) for name in frame.columns if name != label]
        chosen = list(columns or [name for name in others if name != beside])
        require_columns(frame, [*chosen, *([beside] if beside is not None and beside not in chosen else [])], "columns")
        if label in chosen:
            raise DataError(f"column {label!r} is the label: predict it from other columns")
        blind = private and not self.bounds_from_data
        y, classes, labelled = self._labels(frame[label], named, blind)
        with told_nothing(private, REMEDY):
            if not (self.missing == "drop" or labelled.all()):
                raise DataError(f"column {label!r} has {int((~labelled).sum()):,} missing labels: drop those rows")
        train, test = self._split(np.flatnonzero(labelled), counted)
        ranges, categories = self._bounds(chosen, named)
        if blind:
            require_given(chosen, ranges, categories)
        encoding = Encoding.of(frame.iloc[train], chosen, ranges=ranges, categories=categories, scaled=scaled)
        if self.missing == "drop":
            train, test = (rows[complete_rows(frame.iloc[rows], encoding)] for rows in (train, test))
        table, beyond = frame, self.beyond
        if known is not None and known.beyond == "clip":
            table, beyond = within(frame, encoding), "move"
        with told_nothing(private, REMEDY):
            encoded = [encoding.encode(table.iloc[rows], beyond) for rows in (train, test)]
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
            beside=() if beside is None else tuple(texts_of(frame[beside].iloc[train])),
            counted=counted,
            known=self._encoded_schema(counted) if private else None,
        )

    def _read(self, source: str, private: bool) -> pd.DataFrame:
        if not Path(source).exists() and "." not in source:
            raise DataError(f"{source!r} is no file and no set of rows: {suggest(source, NAMED)}, or a CSV or TSV file")
        return self.rows(source, private)

    def _label(self, frame: pd.DataFrame, source: str, named: NamedRows | None) -> str:
        label = self.label or (self.schema.label if self.schema else None) or (named.label if named else None)
        if label is None:
            raise DataError(f"--label names no column of {source}: {suggest('', frame.columns)}")
        require_columns(frame, [label], "label")
        return label

    def _labels(self, column: pd.Series[Any], named: NamedRows | None, blind: bool) -> Labels:
        if self.schema is not None:
            return labels_by_schema(column, self.schema)
        if blind:
            own = named is not None and column.name == named.label
            return blind_labels(column, self.positive, (named.negative, named.positive) if named and own else None)
        return labels_found(column, self.positive, named.positive if named else None)

    def _encoded_schema(self, counted: bool) -> PublicSchema:
        """The public knowledge of the encoded rows to learn from."""
        about = None if counted or self.schema is None else self.schema.rows
        rows = None if about is None else max(round((1.0 - self.test_fraction) * about), 2)
        return PublicSchema(classes=(-1, 1), rows=rows, adjacency="replace-one" if counted else "add-remove")

    def _require_once(self) -> None:
        """Refuse options that say again what the schema says."""
        if self.schema is None:
            return
        said = {
            "positive": self.positive is not None,
            "range": bool(self.range),
            "category": bool(self.category),
            "missing": self.missing == "drop",
            "bounds-from-data": self.bounds_from_data,
        }
        if twice := [name for name, value in said.items() if value]:
            raise DataError(f"--{twice[0]} and --schema: the schema says how rows are read; give one of them")

    def _split(self, rows: np.ndarray[Any, np.dtype[np.intp]], counted: bool) -> tuple[Any, Any]:
        if not 0.0 <= self.test_fraction < 1.0:
            raise DataError(f"--test-fraction={self.test_fraction:g} is no part of the rows: give a number in [0, 1)")
        if self.seed < 0:
            raise DataError(f"--seed={self.seed} is no seed: give a whole number >= 0")
        if not counted:
            kept, held = uncounted_split(rows.size, self.test_fraction, self.seed)
            return rows[kept], rows[held]
        count = round(self.test_fraction * rows.size)
        if rows.size - count < 2:
            raise DataError(f"{rows.size - count} rows are left to learn from: give more rows, or --test-fraction 0")
        order = np.random.default_rng(self.seed).permutation(rows)
        return np.sort(order[count:]), np.sort(order[:count])

    def _bounds(
        self, columns: list[str], named: NamedRows | None
    ) -> tuple[dict[str, tuple[float, float]], dict[str, Sequence[object] | None]]:
        """The ranges and values that were given, or that a named set has."""
        ranges: dict[str, tuple[float, float]] = dict(self.range)
        categories: dict[str, Sequence[object] | None] = dict(self.category)
        if self.schema is not None:
            ranges = ranges_of(self.schema, columns)
            categories = {name: one for name, one in self.schema.categories.items() if name in columns}
        for flag, given in (("--range", ranges), ("--category", categories)):
            if stray := [name for name in given if name not in columns]:
                raise DataError(f"{flag} names {stray[0]!r}, which is not learned from: {suggest(stray[0], columns)}")
        if named:
            asked = set(ranges) | set(categories)
            ranges |= {name: ends for name, ends in named.ranges.items() if name in columns and name not in asked}
            categories |= {name: one for name, one in named.categories.items() if name in columns and name not in asked}
        return ranges, categories


_TYPED = {
    "ranges={'age': (0, 100)} and categories={'job': [...]}": "--range age:0:100, --category job:clerk,farmer; or "
    "let them be read off with --bounds-from-data",
    "drop those rows": "give --missing drop",
    "drop the row": "drop the row from the file",
    "columns=": "column ",
}
"""Words of messages about the arguments of `Encoding`, and those of the command line."""
