"""Public knowledge of a table: `PublicSchema`. A private fit takes it from here, and infers none of it.

Every row becomes a row of the schema by itself: a number beyond its range goes to the end of it, a missing one, or what
is none, to the middle, and a label that is neither class counts as the first. So neighbours stay neighbours, no error
tells of a row, and no row has to be dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cvxpriv.errors import DataError, PrivacyError, shown, suggest
from cvxpriv.learning.schema_parts import (
    FAR,
    Range,
    categories_in,
    cells_in,
    classes_in,
    columns_in,
    numbers_in,
    range_in,
    ranges_in,
    text_in,
)
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.files import PathLike, read_document
from cvxpriv.runs.options import Option
from cvxpriv.tables.frames import symbol

RELATIONS = ("replace-one", "add-remove")
BEYOND = ("clip", "refuse")
OUTSIDE = "a row or a label lies outside of the schema: widen it, or give beyond='clip', which moves such a row into it"


@door
@dataclass(frozen=True)
class PublicSchema:
    """The public knowledge of a table.

    Attributes
    ----------
    classes : sequence of object, optional
        The labels of the two classes, the second is the positive one. A loss of two classes needs them. Estimators that
        learn more classes, one against the rest, take more of them.
    ranges : (float, float) or mapping of str to (float, float), optional
        For every column of numbers, or for each by name.
    categories : mapping of str to sequence
        The values of columns that hold no numbers. Only commands and `Encoding` take these.
    columns : sequence of str or int, optional
        Their names in order, or how many there are.
    rows : int, optional
        Number of rows; with "add-remove", where that is private, their publicly known approximate number.
    adjacency : str
        "replace-one": the number of rows is public. "add-remove": it is not. Without `rows` a fit then counts them
        with noise, and accounts for that.
    label : str, optional
        The column to predict, for commands.
    target : (float, float), optional
        Range of a label that is a number: labels beyond it go to its end, a missing one to its middle.
    beyond : str
        "clip": what lies outside is moved inside, silently. "refuse": it is an error, whose presence tells of the data.

    Raises
    ------
    PrivacyError
        One of these is not what it has to be.

    Examples
    --------
    >>> schema = PublicSchema(classes=("no", "yes"), ranges={"age": (0, 100)}, columns=["age"], rows=3)
    >>> schema.numbers(pd.DataFrame({"age": [30.0, 150.0, None]})).ravel().tolist()
    [30.0, 100.0, 50.0]
    >>> schema.signs(["yes", "yes", "yes"]).tolist(), schema.row_bound()
    ([1.0, 1.0, 1.0], 100.0)
    """

    classes: tuple[Any, ...] | None = None
    ranges: Range | Mapping[str, Range] | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    columns: tuple[str, ...] | int | None = None
    rows: int | None = None
    adjacency: str = "replace-one"
    label: str | None = None
    beyond: str = "clip"
    target: Range | None = None

    def __post_init__(self) -> None:
        for name, known in (("adjacency", RELATIONS), ("beyond", BEYOND)):
            if getattr(self, name) not in known:
                raise PrivacyError(f"{name}={getattr(self, name)!r}: {suggest(str(getattr(self, name)), known)}")
        if self.rows is not None and (isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 2):
            raise PrivacyError(
                f"rows={shown(self.rows)} is no number of rows: pass a whole number >= 2, or leave it out"
            )
        for name, read in (
            ("classes", classes_in),
            ("ranges", ranges_in),
            ("categories", categories_in),
            ("columns", columns_in),
        ):
            object.__setattr__(self, name, read(getattr(self, name)))
        if self.target is not None:
            object.__setattr__(self, "target", range_in(self.target))
        if isinstance(self.columns, tuple):
            ranges = self.ranges if isinstance(self.ranges, Mapping) else {}
            if stray := [name for name in (*ranges, *self.categories) if name not in self.columns]:
                raise PrivacyError(f"column {stray[0]!r} is none of columns: {suggest(stray[0], self.columns)}")

    @classmethod
    def load(cls, path: PathLike) -> PublicSchema:
        """Return the schema of a JSON or TOML file with the attributes' names.

        Raises
        ------
        DataError
            No such file, or no schema.
        """
        document = read_document(path, "a file with the names of a PublicSchema")
        names = [one.name for one in fields(cls)]
        if stray := [name for name in document if name not in names]:
            raise DataError(f"path={str(path)!r} is no schema, it names {stray[0]!r}: {suggest(stray[0], names)}")
        return cls(**document)

    def document(self) -> dict[str, Any]:
        """Return the schema as plain data, which `load` reads from JSON."""
        return {name: value for name, value in asdict(self).items() if value not in (None, {})}

    def class_names(self) -> npt.NDArray[np.generic]:
        """Return the classes as an array, which does not depend on any row."""
        if self.classes is None:
            raise PrivacyError(
                "the schema names no classes, and to read them off private labels would tell of these: give "
                "PublicSchema(classes=(negative, positive))"
            )
        return np.array(self.classes)

    def labels(self, y: Any, rows: int, *, margin: bool) -> tuple[Array, npt.NDArray[np.generic] | None]:
        """Return the labels of a model, (n,), and what its two classes are called: for a margin loss -1 and 1.

        Raises
        ------
        DataError
            Not one label for each row.
        """
        found = self.signs(y) if margin else self.targets(y)
        if found.size != rows:
            raise DataError("X and y have different numbers of rows: pass one label for each")
        self.require_rows(rows)
        return found, self.class_names() if margin else None

    def relation(self, adjacency: str | None) -> str:
        """Return the neighbour relation of a fit: the schema's, with which one that is named has to agree.

        Raises
        ------
        PrivacyError
        """
        if adjacency is not None and (adjacency == "add-remove") is not (self.adjacency == "add-remove"):
            raise PrivacyError(f"adjacency={adjacency!r} and {self.adjacency!r} of the schema: name one of them")
        return adjacency or self.adjacency

    def places(self, y: Any) -> npt.NDArray[np.intp]:
        """Return the place of each label among the classes, (n,); a label that is none of them counts as the first."""
        names = [symbol(one) for one in self.class_names().tolist()]
        given = cells_in(y, 1) if isinstance(y, (list, tuple)) else np.asarray(y, dtype=object)
        if given.ndim != 1:
            raise DataError("y is no list of labels: pass one a row")
        known = {name: place for place, name in enumerate(names)}
        texts = [text_in(one) for one in given]
        if self.beyond == "refuse" and not all(text in known for text in texts):
            raise DataError(OUTSIDE)
        return np.array([0 if text is None else known.get(text, 0) for text in texts], dtype=np.intp)

    def signs(self, y: Any) -> Array:
        """Return labels of the two classes as -1 and 1, (n,)."""
        self.require_two_classes()
        return np.where(self.places(y) == 1, 1.0, -1.0)

    def require_two_classes(self) -> None:
        """Refuse more than two classes.

        Raises
        ------
        PrivacyError
        """
        if self.class_names().size != 2:
            raise PrivacyError(
                f"classes={self.classes!r} of the schema are more than the two that this model learns: take "
                "PrivateSparseLogisticRegression, or name two"
            )

    def targets(self, y: Any) -> Array:
        """Return labels that are numbers, (n,), within `target`; a missing one is its middle, or 0."""
        return self._inside(numbers_in(y, 1)[:, None], [self.target or (-FAR, FAR)])[:, 0]

    def numbers(self, x: Any, first: int = 0) -> Array | sparse.csr_array:
        """Return rows within their ranges, (n, d), dense or sparse as they came.

        Parameters
        ----------
        x : array, DataFrame or sparse array, (n, d)
        first : int
            The place of its first column among the schema's, where x holds some of them.

        Raises
        ------
        DataError
            Other columns than the schema's; with beyond="refuse" also a row outside of it.
        PrivacyError
            Categories, or a sparse x with a range that does not hold 0.
        """
        if self.categories:
            raise PrivacyError(
                "categories are no numbers: encode the rows first, by cvxpriv.learning.encoding.Encoding"
            )
        if sparse.issparse(x):
            return self._sparse(sparse.csr_array(cast(Any, x), dtype=np.float64, copy=True), first)
        names = [str(name) for name in x.columns] if isinstance(x, pd.DataFrame) else None
        numbers = numbers_in(x, 2, self._count)
        return self._inside(numbers, self._each(names, numbers.shape[1], first))

    def encoded(self) -> PublicSchema:
        """Return the schema of rows that were brought within this one: without ranges, labels of -1 and 1."""
        return PublicSchema(classes=(-1, 1), rows=self.rows, adjacency=self.adjacency, beyond=self.beyond)

    def table(self, x: Any) -> Any:
        """Return rows within their ranges, a DataFrame where they came as one: see `numbers`."""
        found = self.numbers(x)
        return pd.DataFrame(cast(Any, found), columns=x.columns) if isinstance(x, pd.DataFrame) else found

    def row_bound(self, places: Sequence[int] | None = None) -> float | None:
        """Return the greatest norm of a row, or of its part in some columns; None where a range is missing."""
        if not self.ranges:
            return None
        if isinstance(self.ranges, Mapping):
            names = self.columns if isinstance(self.columns, tuple) else tuple(self.ranges)
            several = [self.ranges.get(name) for name in names]
        elif self._count is None:
            return None
        else:
            several = [self.ranges] * self._count
        if places is not None and not all(0 <= place < len(several) for place in places):
            raise PrivacyError(f"places={shown(places)}: expected places among {len(several)} columns, the first is 0")
        chosen = several if places is None else [several[place] for place in places]
        if None in chosen:
            return None
        return math.sqrt(math.fsum(max(abs(one[0]), abs(one[1])) ** 2 for one in chosen if one is not None))

    def require_rows(self, rows: int) -> None:
        """Refuse another number of rows than the schema's, where that is public.

        Raises
        ------
        DataError
        """
        if self.adjacency == "replace-one" and self.rows not in (None, rows):
            raise DataError(f"rows={self.rows!r} of the schema is not the number of rows: correct the schema")

    @property
    def _count(self) -> int | None:
        return len(self.columns) if isinstance(self.columns, tuple) else self.columns

    def _each(self, names: list[str] | None, width: int, first: int) -> list[Range]:
        """The range of each column of a table."""
        known, count = self.columns if isinstance(self.columns, tuple) else None, self._count
        if known is not None and names is None:
            names = list(known[first : first + width])
        whole = first == 0 and count is not None and width > count
        strange = [] if known is None or names is None else [name for name in names if name not in known]
        if whole or strange or (names is not None and len(names) != width):
            wrong = f"column {strange[0]!r}" if strange else f"{width} columns"
            raise DataError(f"X has {wrong}, and the schema {count}: give the columns that it names")
        if not isinstance(self.ranges, Mapping):
            return [self.ranges or (-FAR, FAR)] * width
        if names is None:
            raise DataError("ranges are by name and X has no names: pass a DataFrame, or name columns in the schema")
        return [self.ranges.get(name, (-FAR, FAR)) for name in names]

    def _inside(self, numbers: Array, ranges: Sequence[Range]) -> Array:
        low, high = (np.array([one[end] for one in ranges]) for end in (0, 1))
        if self.beyond == "refuse" and not ((numbers >= low) & (numbers <= high)).all():
            raise DataError(OUTSIDE)
        return np.clip(np.where(np.isnan(numbers), (low + high) / 2.0, numbers), low, high)

    def _sparse(self, x: sparse.csr_array, first: int) -> sparse.csr_array:
        x.sum_duplicates()
        ranges = np.array(self._each(None, x.shape[1], first))
        if not ((ranges[:, 0] <= 0.0) & (ranges[:, 1] >= 0.0)).all():
            raise PrivacyError("a sparse X holds zeros, and a range of the schema does not: widen it, or pass it dense")
        own = ranges[x.indices]
        if self.beyond == "refuse" and not ((x.data >= own[:, 0]) & (x.data <= own[:, 1])).all():
            raise DataError(OUTSIDE)
        middle = own.mean(axis=1)
        x.data = np.clip(np.where(np.isnan(x.data), middle, x.data), own[:, 0], own[:, 1])
        return x


SchemaOption = Annotated[
    PublicSchema | str | Path | None,
    Option(
        "Public knowledge of the rows, or a file of it; a private fit then infers none of it.",
        kind="PublicSchema or path",
        usual="labels of -1 and 1, or False and True, and the public options are all that is known",
        hidden=True,
        private=True,
    ),
]


def relation_of(schema: PublicSchema | None, adjacency: str | None) -> str:
    """Return the neighbour relation of a fit: the named one, or the schema's, or "replace-one"."""
    return schema.relation(adjacency) if schema is not None else adjacency or "replace-one"


def schema_named(schema: PublicSchema | PathLike | None) -> PublicSchema | None:
    """Return a schema, or that of a file."""
    return schema if schema is None or isinstance(schema, PublicSchema) else PublicSchema.load(schema)
