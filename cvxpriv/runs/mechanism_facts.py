"""Facts of every mechanism: one page for all models that design one, of parts that a model adds to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from cvxpriv.certify.sections import crosscheck_section, crosscheck_tables
from cvxpriv.mechanisms.disclosure import Disclosure
from cvxpriv.numerics.later import pd
from cvxpriv.reports.facts import Fact, Facts, Section, Table, without_clock
from cvxpriv.reports.files import write_text
from cvxpriv.reports.formatting import exact_zero, format_number, is_number
from cvxpriv.reports.page import SHARED_DIGITS, rounded
from cvxpriv.reports.text import csv_text
from cvxpriv.runs.constraint_facts import constraint_facts, noise_section
from cvxpriv.runs.mechanism_parts import best_of, unconverged
from cvxpriv.runs.mechanism_run import Beside, MechanismRun
from cvxpriv.runs.noise_costs import costs_section
from cvxpriv.runs.sides import Sides, columns_along, columns_of, columns_section, counts_section
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.protection import published
from cvxpriv.tables.small_counts import judged

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
    constraints, constraint_tables = constraint_facts(run)
    tables = {
        "columns": columns,
        "columns_along_curve": along,
        "noise_costs": beside.costs,
        "curve": beside.curve,
        **crosscheck_tables(beside.check),
        "disclosure": _disclosure_table(beside.disclosure, sides),
        **constraint_tables,
    }
    reveals = [sides.named(sentence) for sentence in run.as_mechanism().reveals().sentences(table)]
    return Facts(
        title=f"{title}: {beside.source}".removesuffix(": "),
        summary=summary,
        facts=facts,
        sections=[
            *curve,
            mechanism,
            *counts_section(table, sides),
            *constraints,
            *crosscheck_section(beside.check, BLOCKS),
            *_disclosure_section(beside.disclosure, sides, *disclosed),
            *columns_section(run, sides, columns, along),
            Section("What the mechanism tells of the table", "Whoever has the file knows this.", notes=reveals),
            *([] if beside.costs is None else [costs_section(beside.costs, protected)]),
            *noise_section(run),
            *own,
            starts,
        ],
        about=[*_about_table(table, sides, run.mechanism.shape[1]), *about],
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


def _about_table(table: JointTable, sides: Sides, outputs: int) -> list[Fact]:
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


def _disclosure_section(disclosure: Disclosure | None, sides: Sides, title: str, text: str) -> list[Section]:
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


def _disclosure_table(disclosure: Disclosure | None, sides: Sides) -> pd.DataFrame | None:
    if disclosure is None:
        return None
    frame = disclosure.frame
    return frame.assign(measure=frame["measure"].map(sides.named)).rename_axis("name").reset_index()


def _outside(run: Run) -> str:
    return ", ".join(f"{name} by {excess:.1e}" for name, excess in run.missed.items())


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _flat(value) if isinstance(value, dict) else {name: value}
    return found
