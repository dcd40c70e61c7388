"""Columns of a table as numbers with public bounds, on which a private model's sensitivity may rest.

A column of numbers is moved and scaled from its range to [0, 1]; a category becomes one column of 0 and 1 for each of
its values. Each of k columns adds at most 1 to the squared norm of a row, so that **by construction** no row's norm
exceeds sqrt(k), whatever the data are; `scaled=True` divides by that. Ranges and values are given, and then public, or
read off the data, and then facts about the data that no guarantee covers: `Encoding.require_public` refuses those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxpriv.errors import DataError, PrivacyError, shown, suggest
from cvxpriv.learning.columns import Category, Column, Number, column_of, missing_cells
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.saved import read_run
from cvxpriv.tables.frames import require_columns

BEYOND = ("refuse", "move")


@door
@dataclass(frozen=True)
class Encoding:
    """A map of the columns of a table to numbers between 0 and 1.

    Attributes
    ----------
    columns : tuple of Number or Category
    scaled : bool
        Divide by the square root of the number of columns, so that no row's norm exceeds 1.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [30, 50], "job": ["clerk", None]})
    >>> encoding = Encoding.of(people, ranges={"age": (0, 100)}, categories={"job": ["clerk", "farmer"]})
    >>> encoding.features, encoding.encode(people).tolist()
    (('age', 'job=clerk', 'job=farmer'), [[0.3, 1.0, 0.0], [0.5, 0.0, 0.0]])
    >>> round(encoding.row_bound(), 4), encoding.read_off
    (1.4142, ())
    """

    columns: tuple[Column, ...]
    scaled: bool = False

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        columns: Sequence[str] | None = None,
        *,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        categories: Mapping[str, Sequence[object] | None] | None = None,
        scaled: bool = False,
    ) -> Encoding:
        """Return the encoding of a frame's columns.

        Parameters
        ----------
        frame : DataFrame
            The training rows.
        columns : sequence of str, optional
            Names of the columns. None is all of them.
        ranges : mapping of str to (float, float), optional
            Ranges of columns of numbers. Any other column whose cells all read as numbers takes the range of the rows.
        categories : mapping of str to sequence, optional
            Values of columns of categories. None takes the values of the rows, as does any other column that does not
            read as numbers.
        scaled : bool

        Raises
        ------
        DataError
            A column that is unknown, doubled or named both ways; a range that is not low < high; a column read off the
            rows whose numbers are all the same, or that has more than a thousand values.
        """
        names = list(map(str, frame.columns)) if columns is None else list(columns)
        require_columns(frame, names, "columns")
        ranges, categories = dict(ranges or {}), dict(categories or {})
        for argument, given in (("ranges", ranges), ("categories", categories)):
            if stray := [name for name in given if name not in names]:
                raise DataError(f"{argument} names {stray[0]!r}, which is not encoded: {suggest(stray[0], names)}")
        if both := sorted(set(ranges) & set(categories)):
            raise DataError(f"column {both[0]!r} has a range and values: give ranges for numbers, or categories")
        return cls(tuple(column_of(frame, name, ranges, categories) for name in names), scaled)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the table's columns."""
        return tuple(column.name for column in self.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the encoded columns, such as `age` or `job=clerk`."""
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def read_off(self) -> tuple[str, ...]:
        """Names of the columns whose range or values were read off the data."""
        return tuple(column.name for column in self.columns if not column.given)

    @property
    def divisor(self) -> float:
        """Divisor of the rows: sqrt(number of columns) where they are scaled, else 1."""
        return float(np.sqrt(len(self.columns))) if self.scaled else 1.0

    def positions(self, names: Sequence[str]) -> npt.NDArray[np.intp]:
        """Return the places of the encoded columns of some of the table's columns, in the order of `names`."""
        starts = np.cumsum([0, *(len(column.features) for column in self.columns)])
        places = {column.name: np.arange(starts[i], starts[i + 1]) for i, column in enumerate(self.columns)}
        unknown = [name for name in names if not isinstance(name, str) or name not in places]
        if unknown:
            raise DataError(f"names has {shown(unknown[0])}, no column of the table: {suggest(unknown[0], places)}")
        return np.concatenate([np.zeros(0, dtype=np.intp), *(places[name] for name in names)])

    def row_bound(self, names: Sequence[str] | None = None) -> float:
        """Return the public bound of a row's norm, or of its part in some of the table's columns."""
        count = len(self.columns if names is None else names)
        return float(np.sqrt(count)) / self.divisor

    def encode(self, frame: pd.DataFrame, beyond: str = "refuse") -> Array:
        """Return the rows as numbers, (n, number of features).

        Parameters
        ----------
        frame : DataFrame
        beyond : {"refuse", "move"}
            Treatment of values outside the **given** range or values. "move" takes a number to the end of its range,
            and an unknown value of a category to none. Values outside of a range or values read off other rows are
            always moved. The refusal of a row is a fact about the data: use "move" where even this is private.

        Raises
        ------
        DataError
            A column is not there, a number is missing or cannot be read, or a value lies beyond the given range or
            values.
        """
        if beyond not in BEYOND:
            raise DataError(f"beyond={beyond!r} is not known: {suggest(str(beyond), BEYOND)}")
        require_columns(frame, list(self.names), "columns")
        encoded: Array = np.hstack([column.encode(frame, beyond) for column in self.columns])
        return encoded / self.divisor if self.scaled else encoded

    def require_public(self) -> None:
        """Refuse bounds that were read off the data.

        Raises
        ------
        PrivacyError
            A bound was read off the data; the message names the columns.
        """
        if not self.read_off:
            return
        numbers = [column.name for column in self.columns if not column.given and isinstance(column, Number)]
        values = [name for name in self.read_off if name not in numbers]
        kinds = (("range of ", numbers), ("values of ", values))
        what = " and the ".join(f"{kind}{', '.join(map(repr, names))}" for kind, names in kinds if names)
        raise PrivacyError(
            f"the {what} would be read off the private rows, and no guarantee covers that: give what is publicly "
            "known, ranges={'age': (0, 100)} and categories={'job': [...]}"
        )

    def document(self) -> dict[str, Any]:
        """Return the encoding as lists, strings and numbers, which JSON can hold."""
        return {"columns": [asdict(column) for column in self.columns], "scaled": self.scaled}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Encoding:
        """Return the encoding that `document` described."""
        try:
            columns: list[Column] = [
                Category(**{**one, "values": tuple(one["values"])}) if "values" in one else Number(**one)
                for one in document["columns"]
            ]
            return cls(tuple(columns), document["scaled"])
        except (KeyError, TypeError) as error:
            raise DataError(
                f"document describes no encoding ({error!r}): pass what `Encoding.document` gave"
            ) from error

    @classmethod
    def load(cls, path: PathLike) -> Encoding:
        """Return the encoding that a command wrote beside its model, in ``model.json``.

        Raises
        ------
        DataError
            No such file, or no saved run of a command that learns.
        """
        document = read_run(path).get("rows")
        if not isinstance(document, dict) or "encoding" not in document:
            raise DataError(f"path={str(path)!r} holds no encoding: pass the model.json that a command wrote")
        return cls.of_document(document["encoding"])


def complete_rows(frame: pd.DataFrame, encoding: Encoding) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows that have every number that an encoding needs, (n,)."""
    complete = np.ones(len(frame), dtype=bool)
    for column in encoding.columns:
        if isinstance(column, Number):
            complete &= ~missing_cells(frame[column.name])
    return complete
