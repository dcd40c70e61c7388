"""Facts of every mechanism: its table, its effort, its constraints, and the disclosure of a release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.declaration import Declaration, Known, with_constraint
from cvxpriv.blocks.infeasibility import give_values
from cvxpriv.certify.sections import crosscheck_tables
from cvxpriv.errors import SolverFailure
from cvxpriv.mechanisms.disclosure import Disclosure
from cvxpriv.mechanisms.plots import plot_history, plot_mechanism
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.later import pd
from cvxpriv.reports.facts import Fact, Picture, Section, Table, without_clock
from cvxpriv.reports.files import write_text
from cvxpriv.reports.formatting import exact_zero, format_number, is_number
from cvxpriv.reports.heatmaps import heatmap_of
from cvxpriv.reports.page import SHARED_DIGITS, rounded
from cvxpriv.reports.text import csv_text
from cvxpriv.runs.mechanism_run import Beside, MechanismRun
from cvxpriv.runs.noise_costs import costs_section, noise_section
from cvxpriv.runs.sides import Sides, columns_along, columns_of
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.protection import published
from cvxpriv.tables.small_counts import judged

MOST_CELLS = 10_000
"""Number of cells of a mechanism above which a page shows it as a picture."""
SHOWN_POINTS = 10
"""Number of points of a longer curve that a terminal shows."""
BLOCKS = (
    "Each convex block of the method was solved again at the answer, by each solver and by its exact update. A verdict "
    "rests on residuals computed from the problem itself, not on what a solver says of its answer."
)
"""The text above a cross-check."""
Run = MechanismRun[Any, Any]


def share(value: float, whole: float, name: str, more: str = "") -> str:
    """Return a value as a percentage of a whole that has a name.

    >>> share(0.5, 2.0, "H(X)", ", all there is")
    '25% of H(X) = 2.000 nats, all there is'
    """
    return f"{100 * value / whole:.3g}% of {name} = {format_number(whole)} nats{more}" if whole > 0 else f"{name} = 0"


def interval(disclosure: Disclosure | None, measure: str) -> dict[str, Any]:
    """Return the interval of a measure as a fact has it; nothing where there is none."""
    ends = None if disclosure is None else disclosure.interval(measure)
    if disclosure is None or ends is None:
        return {}
    low, high = map(exact_zero, ends)
    return {"interval": (low, high), "level": disclosure.level}


def about_table(table: JointTable, sides: Sides, outputs: int) -> list[Fact]:
    """Return the facts of a table: sides, records and their preparation, entropies; and the number of outputs."""
    s, x = sides.private.symbol, sides.public.symbol
    counted = "given as probabilities" if table.records is None else table.records
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
        *(Fact(name, value) for name, value in published(table.protection).items()),
        Fact("entropy", table.entropy_x, "nats", f"All that there is to tell of {x}.", f"H({x})"),
        Fact("information", table.information, "nats", f"What {x} itself tells of {s}.", f"I({s};{x})"),
        *_chance(table, s, x),
    ]


def _chance(table: JointTable, s: str, x: str) -> list[Fact]:
    """Return the information that chance makes, where the table was counted."""
    judgement = judged(table)
    if judgement is None:
        return []
    sentence = f"What so many records would show on average if {x} told nothing of {s}."
    detail = "" if judgement.estimable else f"what {x} tells is not estimable: merge symbols"
    return [Fact("chance", judgement.chance, "nats", sentence, f"of I({s};{x}), by chance", detail)]


def _side(name: str, label: str, columns: Sequence[str], size: int) -> Fact:
    return Fact(name, tuple(columns), label=label, detail=f"{size} symbols")


def residual(run: Run) -> Fact:
    """Return the KKT residual, which should be small, and whether it is."""
    state = "converged" if run.converged else "NOT converged"
    detail = f"{state}; {format_number(run.tol, 1)} asked for"
    sentence = "Distance of the mechanism from the optimality conditions, which hold at a residual of 0."
    return Fact("kkt", run.residual, "nats", sentence, "KKT residual", detail, digits=2, main=True)


def effort(run: Run) -> list[Fact]:
    """Return the number of the best start, and the effort of all starts."""
    count = len(run.starts)
    origin = str(run.starts["origin"].iloc[run.start])
    return [
        Fact(
            "start", run.start, "", "The start that led to the best mechanism.", "best start", f"of {count}: {origin}"
        ),
        Fact("iterations", run.iterations, "", "Passes of the best start.", "passes"),
        Fact("seconds", run.seconds, "s", "Wall time of all starts together."),
    ]


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


def best_of(run: Run) -> str:
    """Return the number of starts in words."""
    count = len(run.starts)
    return f"the best of {count} starts" if count > 1 else "the only start"


def not_converged(run: Run, missed: str) -> list[str]:
    """Return the message that a run did not converge; an empty text if it did.

    `missed`: The figure above the tolerance, such as "a KKT residual of 1e-5 nats".
    """
    if run.converged:
        return []
    if run.missed:
        return [f"The mechanism MISSES its constraints: {_outside(run)}. Promises that rest on them do not hold."]
    end = ", where the time limit ended it" if run.overdue else ""
    return [
        f"This run did NOT converge: {best_of(run)} has {missed} after {run.iterations} passes{end}, and "
        f"{format_number(run.tol, 1)} was asked for. The figures are those of the best mechanism found."
    ]


def _outside(run: Run) -> str:
    return ", ".join(f"{name} by {excess:.1e}" for name, excess in run.missed.items())


def unmet(run: Run, missed: str, curve: pd.DataFrame | None) -> str:
    """Return the parts that missed their tolerance: the run, or points of its curve."""
    if run.missed:
        return (
            f"{best_of(run)} misses its constraints: {_outside(run)}; no mechanism nearby that holds them was found: "
            "raise --starts, take another --solver, or loosen them"
        )
    if not run.converged:
        remedy = (
            "the time limit ended it; raise --time-limit, merge symbols"
            if run.overdue
            else "raise --max-iter or --starts"
        )
        return (
            f"{best_of(run)} has {missed} after {run.iterations} passes, above tol={run.tol:g}: {remedy}, or allow a "
            "larger --tol"
        )
    if curve is not None and (count := unconverged(curve)):
        return (
            f"{count} of {len(curve)} points of the curve did not converge to tol={run.tol:g} (worst KKT residual "
            f"{curve['kkt'].max():.1e} nats): raise --max-iter or --starts"
        )
    return ""


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


def reveals_section(run: Run, sides: Sides) -> list[Section]:
    """Return the facts about the private table that the mechanism gives away by itself."""
    found = run.as_mechanism().reveals()
    notes = [sides.named(sentence) for sentence in found.sentences(run.problem.table)]
    return [Section("What the mechanism tells of the table", "Whoever has the file knows this.", notes=notes)]


def noise_sections(run: Run, costs: pd.DataFrame | None) -> list[Section]:
    """Return what noise in the table costs, and what it does to the constraints; nothing where there is none."""
    protected = run.problem.table.protection is not None
    found = [] if costs is None else [costs_section(costs, protected)]
    return [*found, *noise_section(run)] if protected else found


def tables_of(run: Run, beside: Beside, sides: Sides) -> dict[str, pd.DataFrame]:
    """Return the whole tables by name, for programs: curve, cross-check, disclosure, constraints."""
    found = {"columns": columns_of(run)}
    if (along := columns_along(run, beside)) is not None:
        found["columns_along_curve"] = along
    if beside.costs is not None:
        found["noise_costs"] = beside.costs
    if beside.curve is not None:
        found["curve"] = beside.curve
    found |= crosscheck_tables(beside.check)
    if beside.disclosure is not None:
        frame = beside.disclosure.frame
        found["disclosure"] = frame.assign(measure=frame["measure"].map(sides.named)).rename_axis("name").reset_index()
    if run.constraints:
        missed = violations(run)
        found["constraints"] = pd.DataFrame({"constraint": list(missed), "missed_by": list(missed.values())})
        found["shadow_prices"], _ = _prices(run)
    return found


def starts_section(
    run: Run, by: Mapping[str, bool], history: pd.DataFrame, caption: str, hidden: Sequence[str] = ()
) -> Section:
    """Return the best starts, sorted by columns of their table (ascending or not), and the history as a picture."""
    starts = (
        run.starts.drop(columns=list(hidden))
        .reset_index()
        .sort_values(list(by), ascending=list(by.values()), ignore_index=True)
    )
    best = starts.head(10).rename(columns={"kkt": "KKT residual", "iterations": "passes"})
    shown = f"The best {len(best)} of {len(starts)} starts." if len(best) < len(starts) else "All starts."
    pictures = []
    measured = {name for name in history.columns if history[name].notna().any()}
    figure = next((name for name in ("kkt", "gap") if name in measured), None)
    if "objective" in measured and figure is not None:
        alt = f"Objective and {'KKT residual' if figure == 'kkt' else figure} by pass, one line for each start."
        pictures.append(Picture(partial(plot_history, history, residual=figure, best=run.start), alt))
    return Section("How it was found", pictures=pictures, tables=[Table(best, f"{shown} {caption}")])


def heatmap(
    mechanism: Array, table: JointTable, sides: Sides, caption: str, outputs: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a mechanism as the part of a section: a shaded table, or a picture where that would be too long."""
    symbols = (sides.public.symbol, sides.output)
    shaded = heatmap_of(mechanism, table.public.labels, ", ".join(table.public.columns), outputs, symbols, caption)
    if shaded.values.size <= MOST_CELLS:
        return {"heatmaps": [shaded]}
    alt = f"Heatmap of P({symbols[1]}|{symbols[0]}): {len(mechanism)} symbols of {symbols[0]} down, outputs across."
    draw = partial(plot_mechanism, mechanism, table.public, tuple(outputs), symbols=symbols)
    return {"pictures": [Picture(draw, alt, f"{caption} mechanism.json holds the numbers.", wide=True)]}


def violations(run: Run) -> dict[str, float]:
    """Return the amount by which a run's mechanism misses each of the user's constraints; 0 where it holds.

    A ready constraint has its own measure. Any other one is measured by the largest violation of its cvxpy constraints,
    where variables of its own have the values that miss it by the least.
    """
    known = Known.of_table(run.problem.table)
    found = {}
    for name, constraint in run.constraints:
        measure: Callable[[Array, Known], float] | None = getattr(constraint, "violation", None)
        if measure is not None:
            found[name] = measure(run.mechanism, known)
        else:
            bare = Declaration(cp.Minimize(0.0), {}, {}, mechanism=cp.Constant(run.mechanism), known=known)
            placed = with_constraint(bare, "mechanism", name, constraint)
            give_values(placed)
            found[name] = max(float(np.max(one.violation())) for one in placed.constraints.values())
    return found


def constraints_section(run: Run) -> list[Section]:
    """Return the violation and price of each of the user's constraints; empty where there are none."""
    if not run.constraints:
        return []
    missed = violations(run)
    called = [getattr(constraint, "name", "") for _, constraint in run.constraints]
    frame = pd.DataFrame({"constraint": list(missed), "is": called, "missed by": list(missed.values())})
    text = "Each was looked at in the mechanism itself, not in what a solver says of it."
    priced, note = _prices(run)
    prices = Table(
        priced.rename(columns={"price": "price in nats"}),
        "What a unit of each costs: by how much the objective would get better for each unit by which that grows.",
        digits={"price in nats": 3},
    )
    whole = Section("Constraints", text, tables=[Table(frame), prices], notes=note)
    short = Table(frame[["constraint", "missed by"]], digits={"missed by": 1})
    return [replace(whole, brief=replace(whole, text="", tables=[short, prices]))]


def _prices(run: Run) -> tuple[pd.DataFrame, list[str]]:
    """Return the prices of a run's constraints, or none and the reason, where no solver has multipliers."""
    try:
        return run.shadow_prices, []
    except SolverFailure as failure:
        return pd.DataFrame(columns=["constraint", "per", "price"]), [f"No prices: {failure}"]


def brief_curve(title: str, curve: pd.DataFrame, columns: Mapping[str, str]) -> Section:
    """Return a curve as a terminal shows it: at most `SHOWN_POINTS` rows, evenly spaced, including its ends."""
    count = len(curve)
    rows = curve.iloc[np.unique(np.linspace(0, count - 1, min(count, SHOWN_POINTS)).round().astype(int))]
    frame = pd.DataFrame({heading: rows[name].map(exact_zero) for name, heading in columns.items()})
    frame["KKT"] = rows["kkt"]
    if unconverged(rows):
        frame["converged"] = rows["converged"].astype(bool).map({True: "", False: "no"})
    left = f" ({len(rows)} of {count} points; all in curve.csv)" if len(rows) < count else ""
    return Section(f"{title}{left}", tables=[Table(frame, digits={"KKT": 1})])


def unconverged(curve: pd.DataFrame) -> int:
    """Return the number of points of a curve whose residual is above the tolerance."""
    return int((~curve["converged"].astype(bool)).sum())


def settings_of(run: Run, *posed: Fact) -> list[Fact]:
    """Return the options that posed the problem, and those that decided the run."""
    return [*posed, *(Fact(name, value) for name, value in _flat(asdict(run.settings)).items())]


def files_of(run: Run) -> dict[str, Callable[[Path], Path]]:
    """Return the files that a run is written to beside its page: every start's history, and the mechanism."""

    def history(path: Path) -> Path:
        log = run.log.frame()
        return write_text(path, csv_text(log if run.problem.table.protection is None else without_clock(log)))

    return {"history.csv": history, "mechanism.json": run.as_mechanism().save}


def proof_files(save: Callable[[Path], Path], programs: Mapping[str, Path]) -> dict[str, Callable[[Path], Path]]:
    """Return the certificate, and copies of the programs that check it, by the names of their files."""

    def copied(program: Path, path: Path) -> Path:
        return write_text(path, program.read_text(encoding="utf-8"))

    return {"certificate.json": save, **{name: partial(copied, program) for name, program in programs.items()}}


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _flat(value) if isinstance(value, dict) else {name: value}
    return found
