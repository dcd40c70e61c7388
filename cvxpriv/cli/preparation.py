"""Options that prepare a table's rows: bins, merges, rare symbols, missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import pandas as pd

from cvxpriv.cli.options import Reading
from cvxpriv.errors import DataError, warn
from cvxpriv.runs.options import Option
from cvxpriv.tables.preparing import prepare
from cvxpriv.tables.recipe import RULES, Prepared, blank
from cvxpriv.tables.recipe_texts import bins_in, merge_in, size_in


class DroppedWarning(UserWarning):
    """Rows were left out of the table."""


def missing_rule(text: str, known: Sequence[str] = RULES) -> str:
    """Return a treatment of missing values."""
    if text not in known:
        raise DataError(
            f"{text!r} is none of {', '.join(known)}; spellings of a missing value are given by --missing-text"
        )
    return text


@dataclass(frozen=True, kw_only=True)
class Preparation(Reading):
    """The options by which rows are read and prepared; with a public recipe nothing is read off them."""

    bins: Annotated[
        tuple[Any, ...],
        Option(
            "Classes of numbers by public edges, or quantiles:5 from the data (private edges); first:7 or last:4 "
            "takes characters, the month or year of a date; repeat.",
            read=bins_in,
            many=True,
            metavar="COLUMN=EDGES",
        ),
    ] = ()
    merge: Annotated[
        tuple[Any, ...],
        Option(
            "Symbols that become one: 'education<=8=low', 'job=clerk|typist=office'; repeat.",
            read=merge_in,
            many=True,
            metavar="COLUMN=VALUES=NAME",
        ),
    ] = ()
    rare: Annotated[
        tuple[Any, ...],
        Option(
            "Merge symbols of the public columns (or of COLUMN) with fewer records into 'other'; repeat.",
            read=size_in,
            many=True,
            metavar="[COLUMN=]NUMBER",
        ),
    ] = ()
    top: Annotated[
        tuple[Any, ...],
        Option(
            "Keep so many of the most frequent symbols, likewise; repeat.",
            read=size_in,
            many=True,
            metavar="[COLUMN=]NUMBER",
        ),
    ] = ()
    missing: Annotated[
        str | None,
        Option(
            "Missing values: refuse them, drop their rows, or make them a symbol.",
            usual="refuse",
            read=missing_rule,
            metavar=f"[{'|'.join(RULES)}]",
        ),
    ] = None
    public_recipe: bool = False

    def prepared(
        self, frame: pd.DataFrame, public: Sequence[str], private: Sequence[str], count: str | None
    ) -> Prepared:
        """Return rows prepared as the options say; a number without a column speaks of the public ones.

        Raises DataError.
        """
        merges: dict[str, dict[str, Any]] = {}
        for column, into, values in self.merge:
            mine = merges.setdefault(column, {})
            if isinstance(mine.get(into), list) and isinstance(values, list):
                values = [*mine[into], *values]
            elif into in mine:
                raise DataError(f"--merge names {column} and {into} twice: join them")
            mine[into] = values
        binned = [column for column, _ in self.bins]
        if twice := [column for column in binned if binned.count(column) > 1]:
            raise DataError(f"--bins names {twice[0]!r} twice: give all its edges at once")
        made = prepare(
            frame,
            bins=dict(self.bins),
            merge=merges,
            rare=_sizes(self.rare, public),
            top=_sizes(self.top, public),
            missing=self.missing or "refuse",
            columns=list(dict.fromkeys([*private, *public])),
            count=count,
            missing_text=self.missing_text,
            public_recipe=self.public_recipe,
        )
        if made.dropped and not self.public_recipe:
            lacking = {name: int(blank(frame[name], self.missing_text).sum()) for name in made.recipe.columns}
            most = max(lacking, key=lacking.__getitem__)
            warn(
                f"{made.dropped:,} of {len(frame):,} rows lack a value ({lacking[most]:,} that of {most}) and were "
                "dropped: the figures do not cover them",
                DroppedWarning,
            )
        return replace(made, recipe=replace(made.recipe, decimal=self.decimal))


def _sizes(given: Sequence[tuple[str, int]], public: Sequence[str]) -> dict[str, int]:
    whole = {column: size for name, size in given if not name for column in public}
    return whole | {name: size for name, size in given if name}
