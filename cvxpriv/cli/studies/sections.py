"""Parts of a study's page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from cvxpriv.certify.page import largest_residual, worst_first
from cvxpriv.cli.studies.study import Study, exact_zero
from cvxpriv.mechanisms.plots import plot_history
from cvxpriv.reports.facts import Fact, Picture, Section, Table
from cvxpriv.reports.formatting import format_number

__all__ = [
    "crosscheck_section",
    "disclosure_section",
    "interval_detail",
    "not_converged",
    "percent_of",
    "residual_headline",
    "settings_section",
    "starts_section",
]

_LEGEND = (
    "agrees: right, and every exact residual is small. loose: right to fewer digits, or claims no accuracy. failed: "
    "returned no solution. WRONG: claims a solution that it has not.",
    "A verdict on a solver is none on the mechanism: the method took the exact updates.",
)


def percent_of(value: float, whole: float, name: str) -> str:
    """Return a value as a percentage of a whole that has a name; nothing where that is 0."""
    return f"{100 * value / whole:.3g}% of {name}" if whole > 0 else ""


def interval_detail(found: Study[Any], name: str) -> str:
    """Return the interval of a measure of the disclosure; nothing where there is none."""
    interval = None if found.found is None else found.found.interval(name)
    if found.found is None or interval is None:
        return ""
    low, high = (format_number(exact_zero(end)) for end in interval)
    return f"; {found.found.level:.0%} interval {low} to {high}"


def residual_headline(found: Study[Any], label: str = "KKT residual", value: float | None = None) -> Fact:
    """Return what was asked to be small, by default the KKT residual, and whether it is."""
    state = "converged" if found.run.converged else "NOT converged"
    shown = format_number(found.kkt if value is None else value, 2)
    return Fact(label, shown, "nats", detail=f"{state}; {format_number(found.tol, 1)} asked for", main=True)


def not_converged(found: Study[Any]) -> str:
    """Return the paragraph of a summary that says that a run did not converge; nothing if it did."""
    if found.run.converged:
        return ""
    return (
        f"\n\nThis run did NOT converge: it has a {found.missed}, {format_number(found.tol, 1)} was asked for. "
        "The figures are those of the best mechanism found."
    )


def crosscheck_section(found: Study[Any]) -> Section | None:
    """Return the cross-check of every block, worst verdicts first."""
    if found.check is None:
        return None
    rows = worst_first(found.check.table)
    frame = pd.DataFrame(
        {
            "verdict": rows["verdict"],
            "block": rows["case"],
            "solver": rows["solver"],
            "gap": rows["gap"],
            "residual": [largest_residual(row) for row in rows.to_dict("records")],
            "natural": rows["natural"],
            "ms": rows["seconds"] * 1e3,
            "why it does not agree": rows["reason"].where(rows["verdict"] != "agrees", ""),
        }
    )
    return Section(
        "Cross-check: every block, every solver",
        "Each convex block of the method was solved again at the answer, by each solver and by its exact update. A "
        "verdict rests on residuals computed from the problem itself, not on what a solver says of its answer.",
        tables=[Table(frame, "gap, residual: relative; natural: how far from stationary, in units of the variables.")],
        notes=[f"Worst answer: {found.check.worst_offender}.", *_LEGEND],
    )


def disclosure_section(found: Study[Any], title: str, text: str) -> Section | None:
    """Return the measures of a release, under the names that X and Y have here."""
    if found.found is None:
        return None
    frame, level = found.found.frame, f"{found.found.level:.0%}"
    columns = {"measure": frame["measure"].map(found.named), "unit": frame["unit"], "value": frame["value"]}
    caption = "Values of the table."
    if found.found.bootstrap:
        columns |= {f"{level} low": frame["low"], f"{level} high": frame["high"]}
        caption = f"Values of the table; intervals from {found.found.bootstrap} resamples of the records."
    notes = [found.named(note) for note in found.found.notes]
    return Section(title, text, tables=[Table(pd.DataFrame(columns), caption)], notes=notes)


def starts_section(
    found: Study[Any], starts: pd.DataFrame, by: Mapping[str, bool], history: pd.DataFrame, caption: str
) -> Section:
    """Return the best starts, sorted by columns of their table (ascending or not), and the history as a picture."""
    starts = starts.reset_index().sort_values(list(by), ascending=list(by.values()), ignore_index=True)
    best = starts.head(10).rename(columns={"kkt": "KKT residual"})
    shown = f"The best {len(best)} of {len(starts)} starts." if len(best) < len(starts) else "All starts."
    figures = []
    measured = {name for name in history.columns if history[name].notna().any()}
    residual = next((name for name in ("kkt", "gap") if name in measured), None)
    if "objective" in measured and residual is not None:
        alt = (
            f"Objective and {'KKT residual' if residual == 'kkt' else residual} by iteration, one line for each start."
        )
        figures.append(Picture(plot_history(history, residual=residual, best=found.run.start), alt))
    return Section("How it was found", pictures=figures, tables=[Table(best, f"{shown} {caption}")])


def settings_section(found: Study[Any], facts: Mapping[str, object]) -> Section:
    """Return what went into a study: the table's sides under their names here, a model's facts, and the options."""
    table, (private, public) = found.table, found.sides
    every: dict[str, object] = {
        private: f"{', '.join(table.private.columns)} ({len(table.private)} symbols)",
        public: f"{', '.join(table.public.columns)} ({len(table.public)} symbols)",
        "records": table.records,
        "smoothing": table.smoothing,
        **facts,
        **{name.replace("_", " "): value for name, value in _flat(asdict(found.run.settings)).items()},
        "seconds": found.run.seconds,
    }
    frame = pd.DataFrame({"setting": list(every), "value": pd.Series(list(every.values()), dtype=object)})
    return Section("Settings", tables=[Table(frame)])


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings whose nested parts stand beside the others."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _flat(value) if isinstance(value, dict) else {name: value}
    return found
