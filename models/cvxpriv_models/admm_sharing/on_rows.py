"""Sharing on the rows of a table whose columns are split among parties, as `cvxpriv sharing` fits it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from cvxpriv.errors import DataError
from cvxpriv.learning.columns import Category
from cvxpriv.learning.fit import Fit, Scored
from cvxpriv.learning.labels import LinearFit
from cvxpriv.numerics.arguments import names_in
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import counted
from cvxpriv.privacy import Plan
from cvxpriv.reports.facts import Fact, Section
from cvxpriv.runs.options import Option

from .bounds import ADJACENCIES
from .private_settings import planned
from .problem import Intercept, bounds_with_ones, with_intercept
from .run import SharingRun

#: Default weight of the penalty, without and with privacy (noise in the shares needs more of it), and default delta.
LAM, PRIVATE_LAM, DELTA = 1.0, 30.0, 1e-6

Parties = Annotated[
    tuple[tuple[str, ...], ...],
    Option(
        "A party's columns; repeat.",
        kind="tuple of tuple of str",
        flag="--party",
        metavar="A,B,...",
        read=names_in,
        many=True,
    ),
]


@dataclass(kw_only=True, eq=False)
class SharingOnRows(Fit):
    """A fit of ADMM sharing.

    `parties`: Names of each party's columns.
    """

    scaled: ClassVar[bool] = False
    usual: ClassVar[Mapping[str, str]] = {"lam": f"{LAM:g}; private: {PRIVATE_LAM:g}", "delta": "1e-6"}
    decided: ClassVar[frozenset[str]] = frozenset({"row_bound", "column_bound", "cell_bound", "clip_data"})
    title: ClassVar[str] = "Learning over split columns"
    coefficients_text: ClassVar[str] = "Each party holds its own, of its encoded columns."

    parties: Parties = ()
    not_private: Annotated[
        bool, Option("Write the coefficients of a private fit too, which its guarantee does not cover.")
    ] = False
    where: Intercept | None = field(default=None, init=False)

    @classmethod
    def reads(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        columns = [name for names in given["parties"] for name in names]
        if not columns:
            raise DataError("--party names no columns: give each party's, such as --party age,education --party hours")
        twice = [name for name in columns if columns.count(name) > 1]
        if twice:
            raise DataError(f"column {twice[0]!r} stands in --party twice: each column is held by one party")
        return {"columns": columns}

    @classmethod
    def plan(cls, options: Mapping[str, Any], adjacency: str) -> Plan:
        asked = options.get("epsilon"), options.get("delta", DELTA)
        return planned(*asked, options.get("labels", "shared"), options.get("noise", "gaussian"), adjacency)

    def pose(self, kind: Any, options: Mapping[str, Any]) -> None:
        parts: list[Any] = [self.rows.x[:, place] for place in self._places()]
        posed = {"lam": PRIVATE_LAM if self.private else LAM, **options}
        if self.intercept:
            parts, posed["penalty"], self.where = with_intercept(
                parts, posed.get("penalty", "l2"), private=self.private
            )
        self.model = kind(parts, self.rows.y, **posed, schema=self.rows.known)

    #: A party's coefficients, and so all predictions, stay with it.
    predicts_released: ClassVar[bool] = False

    def public_numbers(self) -> dict[str, Any]:
        """See `Fit`. Entries lie in [0, 1], and a column's part of a row has norm at most 1."""
        adjacency, rows = self.solving.get("adjacency", "replace-one"), self.rows.y.size
        of_cells, of_columns = [1.0] * len(self.parties), [float(np.sqrt(rows))] * len(self.parties)
        of_rows = [self.rows.encoding.row_bound(names) for names in self.parties]
        bounds = {"cell": of_cells, "column": of_columns}.get(adjacency, of_rows)
        found = bounds_with_ones(bounds, adjacency, rows) if self.intercept else bounds
        return {"delta": DELTA, ADJACENCIES[adjacency][0]: found}

    def linear(self, run: Any) -> LinearFit:
        found = run.coefficients if isinstance(run, SharingRun) else run.not_private.coefficients
        coefficients, intercept = (found, 0.0) if self.where is None else self.where.split(found)
        together = np.zeros(self.rows.x.shape[1])
        for place, x in zip(self._places(), coefficients, strict=True):
            together[place] = x
        return LinearFit(together, intercept)

    @property
    def name(self) -> str:
        return "all parties together"

    def compared(self, kind: Any, options: Mapping[str, Any]) -> list[Scored]:
        """See `Fit`. The comparisons are each party's columns alone, by the same model."""
        return list(self._alone(kind, options)) if len(self.parties) > 1 else []

    def _alone(self, kind: Any, options: Mapping[str, Any]) -> Iterator[Scored]:
        for m, names in enumerate(self.parties):
            alone = SharingOnRows(rows=self.rows, private=False, parties=(names,), intercept=self.intercept)
            alone.pose(kind, options)
            yield self.score(f"party {m + 1} alone", alone.linear(alone.model.solve(**self.solving)))

    @property
    def summary(self) -> str:
        many = f"{len(self.parties)} parties" if len(self.parties) > 1 else "one party"
        return f"A linear model of {many}, each with its own columns of the same rows,"

    @property
    def layout(self) -> list[Fact]:
        widths = [self.rows.encoding.positions(names).size for names in self.parties]
        problem = self.model.problem
        return [
            *(
                Fact(f"party_{m + 1}", names, detail=counted(width, "encoded column"))
                for m, (names, width) in enumerate(zip(self.parties, widths, strict=True))
            ),
            Fact("loss", problem.loss.name, aside=True),
            Fact("penalty", problem.penalties[0].name, aside=True),
            Fact("lam", problem.lam, "", "Weight of the penalty; the loss is summed.", aside=True),
        ]

    def layout_sections(self) -> list[Section]:
        notes = [f"Party {m + 1}: {', '.join(names)}." for m, names in enumerate(self.parties)]
        noise = "with noise, " if self.private else ""
        sent = f"In each pass a party sends one value for each row, {noise}and no column."
        labels = "All parties know the labels."
        if self.private and self.run.settings.labels == "held":
            labels = (
                "The labels are with one party, which flips each at random, once, and uses the flipped ones ever after."
            )
        return [Section("The parties", f"{sent} {labels}", notes=notes)]

    @property
    def crosschecked(self) -> str:
        which = "The step that would follow the last release, which reads released values alone,"
        return f"{which if self.private else super().crosschecked} on a sample of the rows where there are many,"

    @property
    def shows_coefficients(self) -> bool:
        """See `Fit`. The guarantee of a private fit does not cover its coefficients."""
        return not self.private or self.not_private

    @property
    def more_promises(self) -> list[str]:
        if not self.private:
            return []
        theirs = "Scores are those of the parties' coefficients, as in a simulation: publish none;"
        files = (
            "coefficients.csv and model.json hold the coefficients of all parties: give each party its own."
            if self.not_private
            else "the files hold no coefficients, which --not-private writes."
        )
        encoded = (
            "Columns and entries are those of the encoded rows: a category has a column for each value, and another "
            "value changes two entries, which is two neighbours' change."
        )
        several = any(isinstance(column, Category) for column in self.rows.encoding.columns)
        return [
            *([encoded] if several and self.run.settings.adjacency in ("column", "cell") else []),
            f"{theirs} {files}",
        ]

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = (
            self.run.document_with_hidden() if self.private and self.not_private else super().document()
        )
        return found

    @property
    def coefficients(self) -> pd.DataFrame:
        """One row per encoded column: feature, party, coefficient; the intercept last."""
        owner = {name: f"party {m + 1}" for m, names in enumerate(self.parties) for name in names}
        owners = [owner[column.name] for column in self.rows.encoding.columns for _ in column.features]
        table = super().coefficients
        table.insert(1, "party", [*owners, "party 1" if self.private else ""])
        return table

    def _places(self) -> list[Any]:
        return [self.rows.encoding.positions(names) for names in self.parties]
