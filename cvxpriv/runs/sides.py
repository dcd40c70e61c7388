"""The two sides of a table in a model: their names and facts, what a recipient learns of them, and their counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cvxpriv.mechanisms.codebook import Stated
from cvxpriv.mechanisms.disclosure import Disclosure
from cvxpriv.mechanisms.frequencies import column_utility, private_columns
from cvxpriv.mechanisms.noisy_frequencies import NoisyCounts
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import counted
from cvxpriv.reports.facts import Fact, Section, Table
from cvxpriv.reports.formatting import exact_zero, format_number, is_number
from cvxpriv.reports.page import SHARED_DIGITS, rounded
from cvxpriv.runs.mechanism_run import Beside, MechanismRun
from cvxpriv.tables.datasets import SOURCES
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.small_counts import SMALL, judged, with_totals, withheld

Run = MechanismRun[Any, Any]


@dataclass(frozen=True)
class Side:
    """One side of a table.

    `symbol`: The symbol, such as "S".
    `title`: The title, such as "private S".
    `flag`: The option on the command line that names its columns, such as ``--private``.
    `help`: The help text of that option.
    `embedded`: The columns of the embedded tables that are used where none are named.
    """

    symbol: str
    title: str
    flag: str
    help: str
    embedded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Sides:
    """A model's names for the sides of its table, and for its output.

    `private`, `public`: The sides of a `JointTable`: the private data, and the input of the mechanism.
    `output`: The symbol of the released output.
    """

    private: Side
    public: Side
    output: str

    def named(self, text: str) -> str:
        """Return a text about S, X and Y, such as a note of a `Disclosure`, in the symbols of the model.

        >>> sides = Sides(Side("S", "inferred S", "--infer", ""), Side("Y", "data Y", "--data", ""), "U")
        >>> sides.named("I(S;Y) is at most I(S;X)")
        'I(S;U) is at most I(S;Y)'
        """
        symbols = {"S": self.private.symbol, "X": self.public.symbol, "Y": self.output}
        return re.sub(r"\b[SXY]\b", lambda found: symbols[found.group()], text)


#: The sides as most models name them: Y is released in place of X, and should reveal little of S.
PRIVATE_AND_PUBLIC = Sides(
    Side(
        "S",
        "private S",
        "--private",
        "Columns of S, what is to be hidden: age,income.",
        {name: source.private for name, source in SOURCES.items()},
    ),
    Side(
        "X",
        "public X",
        "--public",
        "Columns of X, what Y is to tell of.",
        {name: source.public for name, source in SOURCES.items()},
    ),
    "Y",
)


def about_table(table: JointTable, sides: Sides, outputs: int, publishing: Mapping[str, str | float]) -> list[Fact]:
    """Return the facts of a table: sides, records and their preparation, entropies; and the number of outputs."""
    s, x = sides.private.symbol, sides.public.symbol
    counted = "given as probabilities" if table.records is None else table.records
    chance: list[Fact] = []
    if (judgement := judged(table)) is not None:
        sentence = f"What so many records would show on average if {x} told nothing of {s}."
        detail = "" if judgement.estimable else f"what {x} tells is not estimable: merge symbols"
        chance = [Fact("chance", judgement.chance, "nats", sentence, f"of I({s};{x}), by chance", detail)]
    return [
        _side("private", sides.private.title, table.private.columns, len(table.private)),
        _side("public", sides.public.title, table.public.columns, len(table.public)),
        Fact("outputs", outputs, "symbols", label=f"output {sides.output}"),
        Fact("records", counted),
        Fact("smoothing", table.smoothing),
        *(
            []
            if table.recipe is None
            else [Fact("preparation", "; ".join(table.recipe.description), label="rows prepared")]
        ),
        *(Fact(name, value) for name, value in publishing.items()),
        Fact("entropy", table.entropy_x, "nats", f"All that there is to tell of {x}.", f"H({x})"),
        Fact("information", table.information, "nats", f"What {x} itself tells of {s}.", f"I({s};{x})"),
        *chance,
    ]


def _side(name: str, label: str, columns: Sequence[str], size: int) -> Fact:
    return Fact(name, tuple(columns), label=label, detail=counted(size, "symbol"))


def interval(disclosure: Disclosure | None, measure: str) -> dict[str, Any]:
    """Return the interval of a measure as a fact has it; nothing where there is none."""
    ends = None if disclosure is None else disclosure.interval(measure)
    if disclosure is None or ends is None:
        return {}
    low, high = map(exact_zero, ends)
    return {"interval": (low, high), "level": disclosure.level}


def guess(disclosure: Disclosure | None, sides: Sides) -> list[Fact]:
    """Return an adversary's chance of guessing S; None where no disclosure was computed."""
    if disclosure is None:
        return []
    nothing, y, x = (disclosure.value(f"accuracy_{name}") for name in ("nothing", "y", "x"))
    s, public, output = sides.private.symbol, sides.public.symbol, sides.output
    return [
        Fact(
            "accuracy_of_guess",
            y,
            "right",
            f"Chance that somebody who knows the table and sees {output} names {s} right.",
            f"Best guess of {s} from {output}",
            f"{nothing:.1%} from nothing, {x:.1%} from {public}",
            percent=True,
            main=True,
            **interval(disclosure, "accuracy_y"),
        )
    ]


def disclosure_section(disclosure: Disclosure | None, sides: Sides, title: str, text: str) -> list[Section]:
    """Return the measures of a release, in the symbols of the model; empty where there are none."""
    if disclosure is None:
        return []
    frame, level = disclosure.frame, f"{disclosure.level:.0%}"
    columns = {
        "measure": frame["measure"].map(sides.named),
        "unit": frame["unit"],
        "value": frame["value"].map(exact_zero),
    }
    caption = "Values of the table."
    if disclosure.bootstrap:
        columns |= {f"{level} low": frame["low"], f"{level} high": frame["high"]}
        caption = f"Values of the table; intervals from {disclosure.bootstrap} resamples of the records."
    notes = [sides.named(note) for note in disclosure.notes]
    shown = pd.DataFrame(columns)
    cut = shown.map(lambda cell: format_number(rounded(cell), SHARED_DIGITS) if is_number(cell) else cell)
    shared = Section(title, text, tables=[Table(cut, "Two digits of each number.")])
    return [Section(title, text, tables=[Table(shown, caption)], notes=notes, shared=shared)]


def disclosure_table(disclosure: Disclosure | None, sides: Sides) -> pd.DataFrame | None:
    """Return the measures of a release as a table for programs; None where there are none."""
    if disclosure is None:
        return None
    frame = disclosure.frame
    return frame.assign(measure=frame["measure"].map(sides.named)).rename_axis("name").reset_index()


def columns_of(run: Run, mechanism: Array | None = None) -> pd.DataFrame:
    """Return what the output tells of each column: an adversary's guess of private ones, the use of public ones.

    `mechanism`: That of another point of the curve. None: that of the run.
    """
    table, matrix = run.problem.table, run.mechanism if mechanism is None else mechanism
    rows = table.records or 0
    stated = NoisyCounts.of(table) if table.protection else Stated.of(table.public, table.p_x * rows)
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


def columns_section(run: Run, sides: Sides, found: pd.DataFrame, along: pd.DataFrame | None) -> list[Section]:
    """Return what a recipient learns of each column, and can no longer learn.

    `found`, `along`: The results of `columns_of` and `columns_along`.
    """
    title = "What a recipient learns, and can no longer learn"
    x, output = sides.public.symbol, sides.output
    named = {"guess_nothing": "from nothing", "guess_y": f"from {output}", "guess_x": f"from {x}"}
    text = (
        f"From {output}, how often is the best guess of a row's value right? Beside it stand the guesses from nothing "
        f"and from {x}. A row's worth is what a row of {output} counts in an estimate of frequencies, beside a row of "
        "the column itself. The last column is half the width of a recipient's 95% interval for a frequency."
    )
    sided = {"private": sides.private, "public": sides.public}
    roles = [sided[role].title.split()[0] if role in sided else role for role in found["role"]]

    def table(places: str) -> Table:
        cells = {heading: [f"{value:{places}}" for value in found[name]] for name, heading in named.items()}
        worth = ["" if np.isnan(value) else f"{value:{places}}" for value in found["row_worth"]]
        within = ["" if np.isnan(value) else f"± {value:{places}}" for value in found["within"]]
        more = {"row's worth": worth, "frequencies": within}
        return Table(pd.DataFrame({"column": found["column"], "role": roles, **cells, **more}))

    notes = _column_notes(run, found, output)
    tables, advice = [table(".1%")], []
    if along is None and sides is PRIVATE_AND_PUBLIC:  # other models have no rate, and no utility along their curves
        advice.append(
            f"A higher rate tells more of a row: --curve 5 shows how often {output} then guesses each column."
        )
    elif along is not None:
        along = along.round(6).drop_duplicates()  # rates at which one mechanism is best are one row
        shown = along.assign(**{name: [f"{value:.0%}" for value in along[name]] for name in along.columns[1:]})
        tables.append(Table(shown, f"How often the best guess from {output} is right, by utility in nats."))
    whole = Section(title, text, tables=tables, notes=[*notes, *advice])
    shared = replace(whole, tables=[table(".0%")], notes=notes)
    return [replace(whole, shared=shared, brief=replace(whole, text=""))]


def _column_notes(run: Run, found: pd.DataFrame, output: str) -> list[str]:
    """Return what decides how well a recipient knows frequencies."""
    notes, lost = [], found[found["row_worth"] == 0.0]["column"].tolist()
    if lost:
        notes.append(f"No number of rows of {output} determines how often the values of {', '.join(lost)} occur.")
    if run.problem.table.protection is None:
        notes.append(
            "A bundle states these frequencies, rounded: their width follows from the rounding and the number of rows, "
            "whatever the mechanism."
        )
    else:
        notes.append(
            "A bundle states the noisy counts, and frequencies follow from them, whatever the mechanism; where the "
            "outputs tell more, from these."
        )
    if (found["role"] == "coarsened").any():
        notes.append(f"Coarsened columns stand for classes: within a class {output} tells nothing.")
    return notes


MOST_CELLS = 300
"""Number of cells of a table above which its counts are left out of the page."""
BASE = 5
"""Step to which counts are rounded for others."""
HOW = (
    f"Counts are rounded to {BASE}. A star stands for a count of 1 to {SMALL}, and for any other one that would give a "
    f"small one away: of all tables with the other counts and these totals some have more than {SMALL} in its place. "
    "A total that is withheld or rounded is no sum of what is shown."
)


def counts_section(table: JointTable, sides: Sides) -> list[Section]:
    """Return the counts by public symbol and private value, with totals; nothing for large tables and probabilities."""
    counts = table.counts
    if counts is None or counts.size > MOST_CELLS:
        return []
    whole, title = with_totals(counts), f"Counts of {sides.public.symbol} and {sides.private.symbol}"
    exact = [Table(_framed(table, whole.astype(object)), index=True)]
    if table.protection is not None:
        return [Section(title, f"Counts with {table.protection.noise}.", tables=exact)]
    hidden = withheld(counts)
    near = BASE * np.rint(whole / BASE).astype(int)
    shown = _framed(table, np.where(hidden, "*", near.astype(object)))
    shared = Section(title, HOW, tables=[Table(shown, index=True)])
    small = int(((counts >= 1) & (counts <= SMALL)).sum())
    some = "1 count is" if small == 1 else f"{small} counts are"
    note = f"{some} from 1 to {SMALL}. A page for others, --page shareable, withholds such counts."
    return [Section(title, tables=exact, notes=[note] if small else [], shared=shared)]


def _framed(table: JointTable, cells: np.ndarray[tuple[int, ...], np.dtype[np.object_]]) -> pd.DataFrame:
    """Return counts with public symbols down, private values across, and totals."""
    names = [*table.public.labels, "all"]
    index = pd.Index(names, name=", ".join(table.public.columns))
    return pd.DataFrame(cells.T.tolist(), index=index, columns=[*table.private.labels, "all"])
