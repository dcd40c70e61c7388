"""Facts of every mechanism: one page for all models that design one, of parts that a model adds to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cvxpriv.certify.sections import crosscheck_section, crosscheck_tables
from cvxpriv.mechanisms.plots import plot_mechanism
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.facts import Fact, Facts, Picture, Section, Table, without_clock
from cvxpriv.reports.files import write_text
from cvxpriv.reports.formatting import exact_zero, format_number, heatmap_of
from cvxpriv.reports.pictures import plot_history
from cvxpriv.reports.text import csv_text
from cvxpriv.runs.constraint_facts import constraint_facts, noise_section
from cvxpriv.runs.mechanism_run import Beside, MechanismRun
from cvxpriv.runs.noise_costs import costs_section
from cvxpriv.runs.sides import (
    Sides,
    about_table,
    columns_along,
    columns_of,
    columns_section,
    counts_section,
    disclosure_section,
    disclosure_table,
)
from cvxpriv.tables.joint import JointTable

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


def mechanism_facts(
    run: Run,
    beside: Beside,
    sides: Sides,
    *,
    title: str,
    summary: str,
    outline: str,
    facts: Sequence[Fact],
    curve: Sequence[Section],
    mechanism: Section,
    starts: Section,
    promises: Sequence[str],
    disclosed: tuple[str, str] = ("What a release discloses", ""),
    own: Sequence[Section] = (),
    about: Sequence[Fact] = (),
    posed: Sequence[Fact] = (),
    messages: Sequence[str] = (),
    missed: str | None = None,
    proof: Mapping[str, Callable[[Path], Path]] | None = None,
) -> Facts:
    """Return the facts of a run and of what was computed beside it.

    `facts`, `curve`, `mechanism`, `own`, `starts`: The model's own figures, and its sections, in the order of the page.
    `disclosed`: Title and text of the section on a release.
    `about`, `posed`: Facts about the data, and the options that pose the problem, beside those of every model.
    `missed`: The figure above the tolerance in words, where it is not the KKT residual alone.
    `proof`: The files of a certificate.
    """
    table = run.problem.table
    protected = table.protection is not None
    missed = missed or f"a KKT residual of {format_number(run.residual, 2)} nats"
    columns, along = columns_of(run), columns_along(run, beside)
    constraints, constraint_tables = constraint_facts(run) if run.constraints else ([], {})
    tables = {
        "columns": columns,
        "columns_along_curve": along,
        "noise_costs": beside.costs,
        "curve": beside.curve,
        **crosscheck_tables(beside.check),
        "disclosure": disclosure_table(beside.disclosure, sides),
        **constraint_tables,
    }
    unknown: list[Fact] = []
    if run.no_gap and run.gap is None:
        sentence, why = "No distance from the best possible mechanism is certified.", f"not known: {run.no_gap}"
        unknown = [Fact("gap", None, "", sentence, "Gap to the optimum", why, main=True)]
    reveals = [sides.named(sentence) for sentence in run.as_mechanism().reveals().sentences(table)]
    return Facts(
        title=f"{title}: {beside.source}".removesuffix(": "),
        summary=summary,
        facts=[*facts, *unknown],
        sections=[
            *curve,
            mechanism,
            *counts_section(table, sides),
            *constraints,
            *crosscheck_section(beside.check, BLOCKS),
            *disclosure_section(beside.disclosure, sides, *disclosed),
            *columns_section(run, sides, columns, along),
            Section("What the mechanism tells of the table", "Whoever has the file knows this.", notes=reveals),
            *([] if beside.costs is None else [costs_section(beside.costs, protected)]),
            *(noise_section(run) if run.constraints and protected else []),
            *own,
            starts,
        ],
        about=[*about_table(table, sides, run.mechanism.shape[1], run.publishing), *about],
        settings=[*posed, *(Fact(name, value) for name, value in _flat(asdict(run.settings)).items())],
        messages=[*messages, *_not_converged(run, missed)],
        promises=promises,
        tables={name: frame for name, frame in tables.items() if frame is not None},
        files={"history.csv": partial(_write_history, run), "mechanism.json": run.as_mechanism().save, **(proof or {})},
        converged=run.converged,
        interrupted=beside.interrupted or run.interrupted,
        unmet=_unmet(run, missed, beside.curve),
        published=protected,
        outline=outline,
    )


def _write_history(run: Run, path: Path) -> Path:
    """Write the history of every start; without times where it may be published."""
    log = run.log.frame()
    return write_text(path, csv_text(log if run.problem.table.protection is None else without_clock(log)))


def _not_converged(run: Run, missed: str) -> list[str]:
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


def _unmet(run: Run, missed: str, curve: pd.DataFrame | None) -> str:
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


def _outside(run: Run) -> str:
    return ", ".join(f"{name} by {excess:.1e}" for name, excess in run.missed.items())


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _flat(value) if isinstance(value, dict) else {name: value}
    return found


def share(value: float, whole: float, name: str, more: str = "") -> str:
    """Return a value as a percentage of a whole that has a name.

    >>> share(0.5, 2.0, "H(X)", ", all there is")
    '25% of H(X) = 2.000 nats, all there is'
    """
    return f"{100 * value / whole:.3g}% of {name} = {format_number(whole)} nats{more}" if whole > 0 else f"{name} = 0"


def residual(run: Run) -> Fact:
    """Return the KKT residual, which should be small, and whether it is."""
    state = "converged" + " by the certified gap" * (run.residual > run.tol) if run.converged else "NOT converged"
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


def best_of(run: Run) -> str:
    """Return the number of starts in words."""
    count = len(run.starts)
    return f"the best of {count} starts" if count > 1 else "the only start"


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
    if "objective" in measured and figure is not None and history["iteration"].max() > 1:  # one pass is a dot
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


def proof_files(save: Callable[[Path], Path], programs: Mapping[str, Path]) -> dict[str, Callable[[Path], Path]]:
    """Return the certificate, and copies of the programs that check it, by the names of their files."""

    def copied(program: Path, path: Path) -> Path:
        return write_text(path, program.read_text(encoding="utf-8"))

    return {"certificate.json": save, **{name: partial(copied, program) for name, program in programs.items()}}
