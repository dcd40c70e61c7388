"""Facts of each column: what a recipient learns of it, how well they know its frequencies, and along the curve."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cvxpriv.mechanisms.column_utility import column_utility, private_columns
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.later import pd
from cvxpriv.reports.facts import Section, Table
from cvxpriv.runs.mechanism_run import Beside, MechanismRun
from cvxpriv.runs.sides import Sides

Run = MechanismRun[Any, Any]


def columns_of(run: Run, mechanism: Array | None = None) -> pd.DataFrame:
    """Return what the output tells of each column: an adversary's guess of private ones, the use of public ones.

    `mechanism`: That of another point of the curve. None: that of the run.
    """
    table, matrix = run.problem.table, run.mechanism if mechanism is None else mechanism
    rows, stated = table.records or 0, table.protection is None
    public = column_utility(matrix, table.public, table.p_x, table.recipe, rows, stated)
    return pd.concat([private_columns(table, matrix), public], ignore_index=True)


def columns_along(run: Run, beside: Beside) -> pd.DataFrame | None:
    """Return how often the best guess of each column from the output is right, by the utility of the curve's points."""
    if beside.curve is None or not len(beside.mechanisms) or "utility" not in beside.curve:
        return None
    found = [columns_of(run, one).set_index("column")["guess_y"] for one in beside.mechanisms]
    return pd.concat(
        [beside.curve[["utility"]].reset_index(drop=True), pd.DataFrame(found).reset_index(drop=True)], axis=1
    )


def columns_section(run: Run, beside: Beside, sides: Sides) -> list[Section]:
    """Return what a recipient learns of each column, and can no longer learn."""
    found, title = columns_of(run), "What a recipient learns, and can no longer learn"
    x, output = sides.public.symbol, sides.output
    named = {"guess_nothing": "from nothing", "guess_y": f"from {output}", "guess_x": f"from {x}"}
    text = (
        f"From {output}, how often is the best guess of a row's value right? Beside it stand the guesses from nothing "
        f"and from {x}. A row's worth is what a row of {output} counts in an estimate of frequencies, beside a row of "
        "the column itself. The last column is half the width of a recipient's 95% interval for a frequency."
    )

    def table(places: str) -> Table:
        cells = {heading: [f"{value:{places}}" for value in found[name]] for name, heading in named.items()}
        worth = ["" if np.isnan(value) else f"{value:{places}}" for value in found["row_worth"]]
        within = ["" if np.isnan(value) else f"± {value:{places}}" for value in found["within"]]
        more = {"row's worth": worth, "frequencies": within}
        return Table(pd.DataFrame({"column": found["column"], "role": found["role"], **cells, **more}))

    notes = _column_notes(run, found, output)
    along, tables = columns_along(run, beside), [table(".1%")]
    if along is None:
        notes.append(f"A higher rate tells more of a row: --curve 5 shows how often {output} then guesses each column.")
    else:
        shown = along.assign(**{name: [f"{value:.0%}" for value in along[name]] for name in along.columns[1:]})
        tables.append(Table(shown, f"How often the best guess from {output} is right, by utility in nats."))
    whole = Section(title, text, tables=tables, notes=notes)
    return [replace(whole, shared=replace(whole, tables=[table(".0%")]), brief=replace(whole, text=""))]


def _column_notes(run: Run, found: pd.DataFrame, output: str) -> list[str]:
    """Return what decides how well a recipient knows frequencies."""
    notes, lost = [], found[found["row_worth"] == 0.0]["column"].tolist()
    if lost:
        notes.append(f"No number of rows of {output} determines how often the values of {', '.join(lost)} occur.")
    if run.problem.table.protection is None:
        notes.append(
            "A bundle states these frequencies, rounded: their width follows from the rounding and the number of rows, "
            "at any rate."
        )
    if (found["role"] == "coarsened").any():
        notes.append(f"Coarsened columns stand for classes: within a class {output} tells nothing.")
    return notes
