"""Encoded rows to learn from, and held-out rows: the data of a model on rows, and its description."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cvxpriv.learning.columns import Category, Number
from cvxpriv.learning.encoding import Encoding
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.facts import Fact, Section, Table
from cvxpriv.reports.formatting import format_number

#: Number of values of a category that the table of columns names.
NAMED_VALUES = 6


@dataclass(frozen=True)
class Rows:
    """Rows to learn from, and rows held out.

    `title`: Name of the source for readers.
    `label`: Name of the predicted column.
    `classes`: Its values that become -1 and 1; the first is `not <value>` where several become -1.
    `x`: (n, d).
    `y`, (n,): Labels of -1 and 1.
    `test_x`, `test_y`: The same of the held-out rows.
    `dropped`: Number of rows left out for a missing number or label.
    `seed`: Seed of the split.
    `beside`: A column, as texts, that accompanies the rows and is not learned from; empty where none was asked for.
    `counted`: Whether the number of rows is public: else nothing here says it.
    `known`: The public knowledge of private rows, as they are encoded.
    """

    title: str
    label: str
    classes: tuple[str, str]
    encoding: Encoding
    x: Array
    y: Array
    test_x: Array
    test_y: Array
    dropped: int
    seed: int
    beside: tuple[str, ...] = ()
    counted: bool = True
    known: PublicSchema | None = None

    @property
    def share_held_out(self) -> float:
        """Share of the rows that is held out."""
        return self.test_y.size / (self.y.size + self.test_y.size)

    def document(self) -> dict[str, Any]:
        """Return a file's description of the rows: no row, and no count of a label."""
        return {
            "source": self.title,
            "label": self.label,
            "classes": self.classes,
            **({"rows": self.y.size, "held_out": self.test_y.size, "dropped": self.dropped} if self.counted else {}),
            "seed": self.seed,
            "encoding": self.encoding.document(),
            "read_off": self.encoding.read_off,
        }

    def facts(self) -> list[Fact]:
        """Return the facts of the rows, without a row and without a count of a label."""
        if not self.counted:
            return self._uncounted_facts()
        held = f"{self.test_y.size:,} held out, seed {self.seed}" if self.test_y.size else "none held out"
        lacking = "rows that lack a number or the label"
        return [
            Fact("rows", self.y.size, "to learn from", detail=held),
            Fact("left_out", self.dropped, detail=lacking, aside=not self.dropped),
            *self._uncounted_facts()[1:],
            Fact("held_out", self.test_y.size, label="rows held out", aside=True),
        ]

    def _uncounted_facts(self) -> list[Fact]:
        columns = f"encoded as {len(self.encoding.features)}"
        return [
            Fact("rows", "private", "to learn from", detail="how many there are was not released"),
            Fact("predicted", f"{self.label}: {self.classes[1]} against {self.classes[0]}"),
            Fact("columns", len(self.encoding.columns), detail=columns),
            Fact("seed", self.seed, label="seed of the split", aside=True),
            Fact("label", self.label, aside=True),
            Fact("classes", self.classes, aside=True),
            Fact("read_off", self.encoding.read_off, label="bounds read off the rows", aside=True),
            Fact("scaled", self.encoding.scaled, aside=True),
        ]

    def columns_table(self) -> pd.DataFrame:
        """Return each column with its kind, its bounds or values, and whether they were given."""
        columns = self.encoding.columns
        return pd.DataFrame(
            {
                "column": [one.name for one in columns],
                "low": [None if isinstance(one, Category) else one.low for one in columns],
                "high": [None if isinstance(one, Category) else one.high for one in columns],
                "values": [", ".join(one.values) if isinstance(one, Category) else "" for one in columns],
                "given": [one.given for one in columns],
            }
        )

    def encoding_section(self) -> Section:
        """Return how the columns became numbers, and which bounds were read off the rows."""
        columns = self.encoding.columns
        kinds, bounds = zip(*map(_bounds, columns), strict=True)
        frame = pd.DataFrame(
            {
                "column": [one.name for one in columns],
                "kind": kinds,
                "bounds": bounds,
                "known": ["given" if one.given else "read off" for one in columns],
            }
        )
        text = (
            "Numbers are scaled from their range to [0, 1]; a category has one column of 0 and 1 for each of its "
            f"values. By construction the norm of a row is at most {format_number(self.encoding.row_bound())}."
        )
        if self.encoding.scaled:
            text += f" Rows are divided by the square root of {len(columns)} for that."
        if self.encoding.read_off:
            text += (
                " Bounds that were not given were read off the rows to learn from; rows held out may go beyond them, "
                "and are moved to their end."
            )
        return Section("How columns became numbers", text, tables=[Table(frame)])


def _bounds(column: Number | Category) -> tuple[str, str]:
    """Return the kind of a column, and its bounds, in words."""
    if isinstance(column, Number):
        return "number", f"{column.low:,.6g} to {column.high:,.6g}"
    more = f" and {len(column.values) - NAMED_VALUES} more" if len(column.values) > NAMED_VALUES else ""
    return f"{len(column.values)} values", ", ".join(column.values[:NAMED_VALUES]) + more
