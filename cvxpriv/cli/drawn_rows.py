"""Rows drawn by a mechanism, written as one table or as a bundle, and what is said of them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from cvxpriv.cli.options import require_writable
from cvxpriv.cli.terminal import spoken
from cvxpriv.errors import DataError, PrivacyError
from cvxpriv.mechanisms.bundle import DOCUMENT, contents_of, is_bundle, told, write_bundle
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.mechanisms.release import MOST_GAINED, RELEASED, Unseen, guesses
from cvxpriv.numerics.arguments import names_in
from cvxpriv.reports.formatting import exact_zero, number, paragraph, table
from cvxpriv.reports.text import require_table_file, write_table
from cvxpriv.runs.options import Option
from cvxpriv.tables.recipe import blank


@dataclass(frozen=True)
class Drawn:
    """The document of a release for programs, and its text for people."""

    document: dict[str, Any]
    text: str


@dataclass(frozen=True)
class Drawing:
    """The options of a release: how rows are drawn, and what is written where."""

    out: Annotated[
        str,
        Option(
            "File to write: .csv, .tsv, .xlsx or .parquet; or a folder or .zip, for a bundle with codebook and promise."
        ),
    ] = "released.csv"
    matrix: Annotated[
        bool | None,
        Option(
            "Put P(Y|X) into the bundle.",
            usual="only where the mechanism may be published",
            flag="--with-matrix/--without-matrix",
        ),
    ] = None
    seed: Annotated[
        int | None,
        Option("Make the same draw again; keep it secret.", usual="the system's randomness"),
    ] = None
    unseen: Annotated[
        Unseen, Option("Treatment of rows whose cell the mechanism does not know.", metavar="[error|drop]")
    ] = "error"
    keep: Annotated[
        tuple[str, ...],
        Option("Columns to pass on beside the output; the figures do not cover them.", read=names_in),
    ] = ()
    confirmed: Annotated[
        bool,
        Option(f"Release although kept columns help to guess private ones by {MOST_GAINED:.0%} or more.", flag="--yes"),
    ] = False
    name: Annotated[str, Option("Name of the new column.")] = RELEASED

    def of(self, mechanism: Mechanism, frame: pd.DataFrame) -> Drawn:
        """Draw an output for each row, and write what is released.

        Raises DataError, PrivacyError: As for `Mechanism.release`; kept columns help to guess private ones.
        """
        try:
            released = mechanism.release(frame, seed=self.seed, keep=self.keep, unseen=self.unseen, name=self.name)
        except DataError as error:
            raise DataError(spoken(str(error))) from error
        found = self._guessed(mechanism, frame)
        files, utility = self._written(mechanism, released, frame)
        shown = mechanism.publishable if self.matrix is None else self.matrix
        document = {
            "rows": len(frame),
            "released": len(released),
            "dropped": len(frame) - len(released),
            "columns": list(released.columns),
            "outputs": released[self.name].value_counts().to_dict(),
            "seeded": self.seed is not None,
            "files": files,
            "guesses": [] if found is None else found.to_dict(orient="records"),
            **({"matrix": shown, "columns_told": utility} if is_bundle(self.out) else {}),
        }
        lines = [f"Released {len(released):,} of {len(frame):,} rows to {self.out}"]
        if is_bundle(self.out):
            lines.append(paragraph(f"{', '.join(file.name for file in files)}. {_reason(mechanism, shown)}"))
            lines.append("  What these rows tell of each column, by what the bundle states\n" + told(utility))
        if dropped := len(frame) - len(released):
            where = ", ".join(mechanism.inputs.columns)
            lines.append(
                paragraph(f"Rows dropped: {dropped:,}. {where} is missing there, or the mechanism does not know it.")
            )
        if shown_figures := _figures(mechanism):
            lines.append(shown_figures)
        if found is not None:
            pairs = zip(found["seen"], found["accuracy"], strict=True)
            shown_rows = [[f"from {seen}", f"{right:.1%} right"] for seen, right in pairs]
            lines.append(
                f"  Best guess of {', '.join(mechanism.private_columns)}, on these rows\n" + table([], shown_rows)
            )
        return Drawn(document, "\n".join([*lines, self._left(mechanism)]))

    def _guessed(self, mechanism: Mechanism, frame: pd.DataFrame) -> pd.DataFrame | None:
        """Return how well private columns are guessed with kept ones, and refuse a large gain that is not confirmed."""
        if not self.keep:
            return None
        found = guesses(mechanism, _prepared(mechanism, frame), self.keep)
        if found is None:
            return None
        worst = found.iloc[int(found["gained"].to_numpy().argmax())]
        if worst["gained"] >= MOST_GAINED and not self.confirmed:
            raise PrivacyError(
                f"--keep={','.join(self.keep)}: {worst['seen']} a guess of {', '.join(mechanism.private_columns)} is "
                f"right for {worst['accuracy']:.1%} of these rows, from Y alone for {found['accuracy'].iloc[1]:.1%}; "
                "nothing was written: leave the column out, or confirm with --yes"
            )
        return found

    def _written(self, mechanism: Mechanism, released: pd.DataFrame, frame: pd.DataFrame) -> tuple[list[Path], Any]:
        """Write the release; return its files, and of a bundle what it tells of each column."""
        if not is_bundle(self.out):
            return [write_table(self.out, released)], []
        symbols = mechanism.counted(frame)
        contents = contents_of(mechanism, released, symbols, self.matrix, self.name, len(frame))
        return write_bundle(self.out, contents), json.loads(contents[DOCUMENT])["utility"]

    def _left(self, mechanism: Mechanism) -> str:
        """Return what stayed behind, and what the figures do not cover."""
        left = [*mechanism.inputs.columns, *(["the private columns"] if mechanism.private_columns else [])]
        behind = f"{', '.join(left[:-1])} and {left[-1]}" if len(left) > 1 else left[0]
        beside = f" Nor do they speak of {', '.join(self.keep)} beside it." if self.keep else ""
        return paragraph(
            f"{behind} stayed behind. The figures speak of one draw a row: a second release of the same rows tells "
            f"more, even where one tells nothing.{beside}"
        )


def _prepared(mechanism: Mechanism, frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows as the mechanism wants them; private columns that are there are prepared where they have a value."""
    if mechanism.recipe is None:
        return frame
    frame = mechanism.recipe.apply(frame, mechanism.inputs.columns)
    stepped = {step.column for step in mechanism.recipe.steps}
    private = [name for name in mechanism.private_columns if name in frame.columns and name in stepped]
    if not private:
        return frame
    whole = ~np.logical_or.reduce([blank(frame[name], mechanism.recipe.missing_text) for name in private])
    return mechanism.recipe.apply(frame.loc[whole], private)


def require_target(out: str, *inputs: str, option: str = "--out") -> None:
    """Check, before any work, that a release can be written: a known kind of file, none that is read.

    Raises DataError.
    """
    for given in inputs:
        if os.path.exists(out) and os.path.exists(given) and os.path.samefile(out, given):
            raise DataError(f"{option}={out!r} is the file {given!r} that is read: choose another name")
    if not is_bundle(out):
        require_table_file(out)
    require_writable(Path(out).absolute().parent, option)


def _reason(mechanism: Mechanism, shown: bool) -> str:
    """Return whether P(Y|X) is in the bundle, and why."""
    if not shown:
        return (
            "P(Y|X) stays at home: it tells of the private table. `cvxpriv release --with-matrix` gives it away all "
            "the same; a mechanism designed with --table-epsilon brings it along by itself."
        )
    if mechanism.publishable:
        return "P(Y|X) is in it: the mechanism may be published."
    return "P(Y|X) is in it, and tells of the private table: hand it on only where that table may be known."


def _figures(mechanism: Mechanism) -> str:
    """Return the mechanism's figures, empty without any; a leakage that is a divergence has a name, no unit."""
    divergence = mechanism.origin.get("divergence")
    known = {
        "leakage": ("leakage  I(S;Y)", "nats") if divergence is None else ("leakage  E[d]", f"{divergence}"),
        "utility": ("utility  I(X;Y)", "nats"),
        "accuracy": ("accuracy I(S;U)", "nats"),
    }
    figures = mechanism.figures
    rows = [[known[name][0], number(exact_zero(figures[name])), known[name][1]] for name in known if name in figures]
    few = (
        "These figures are of that table: 0 in it is no 0 in the population. The intervals for the population stand in "
        "the design's disclosure.csv."
    )
    return (
        "\n".join(["  In the table that the mechanism was designed on", table([], rows), paragraph(few)])
        if rows
        else ""
    )
