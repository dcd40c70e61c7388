"""A cross-check as a page: verdicts first, then their evidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvxpriv.certify.sections import READING, Shown, offers, worst_first
from cvxpriv.numerics.later import pd
from cvxpriv.numerics.sizes import counted
from cvxpriv.reports.facts import Fact, Facts, Section, Table
from cvxpriv.reports.formatting import format_cell

_AS_WRITTEN = ("primal", "missed", "natural", "stationarity", "displacement")
_OF_THE_CONES = ("cone", "dual", "dual_cone", "complementarity", "duality_gap")
_HEADINGS = {"complementarity": "slack · dual", "duality_gap": "gap", "dual": "dual equation"}
_WRITTEN_TEXT = (
    "In its own units: primal (worst violated constraint; missed is that relative to its row's terms), "
    "natural (how far a variable moves to its own optimum), "
    "stationarity (of the Lagrangian's gradient). displacement: how far the point is from stationary, relative; "
    "verdicts rest on this one."
)
_CONES_TEXT = (
    "Of what the solver was given, relative: distances of slack and dual to their cones, the dual equation, "
    "complementarity (slack · dual), and the gap between primal and dual value."
)


def page(check: Shown, title: str) -> Facts:
    """Return the cross-check as a report, ready to be rendered."""
    counts = check.table["verdict"].value_counts()
    cases = check.table["case"].nunique()
    headlines = [
        Fact(label, int(counts.get(verdict, 0)), detail=detail, main=True)
        for verdict, label, detail in (
            ("WRONG", "wrong", "claims that the residuals refute"),
            ("failed", "failed", "no usable answer"),
            ("loose", "loose", "right to fewer digits"),
            ("agrees", "agree", "within tolerance"),
        )
    ]
    summary = (
        f"{counted(len(check.table), 'answer')} to {counted(cases, 'problem')}, each judged by residuals computed "
        f"from the problem itself, not by what its solver says.\n\nWorst: {check.worst_offender}."
    )
    parts = [
        _verdicts(check),
        _residuals(check, "Residuals of the problem as written", _WRITTEN_TEXT, _AS_WRITTEN),
        _residuals(check, "Residuals of the cone program", _CONES_TEXT, _OF_THE_CONES),
        *(_certificates(check), _values(check), _bounds(check), _times(check)),
    ]
    return Facts(title, summary, headlines, [part for part in parts if part is not None])


def _section(
    title: str, text: str, frame: pd.DataFrame, notes: Sequence[str] = (), heat: Sequence[str] = ()
) -> Section:
    headings = {name: _HEADINGS.get(name, name.replace("_", " ")) for name in map(str, frame.columns)}
    if "gap" in headings:
        headings["gap"] = "gap to reference"
    shown, heated = frame.rename(columns=headings), [headings[name] for name in heat]
    return Section(title, text, tables=[Table(shown, sortable=True, heat=heated)], notes=notes)


def _verdicts(check: Shown) -> Section:
    rows = worst_first(check.table)[["verdict", "case", "solver", "status", "known_by", "reason"]]
    return _section("Verdicts", "", rows, notes=[*offers(check), READING])


def _residuals(check: Shown, title: str, text: str, every: Sequence[str]) -> Section | None:
    names = [name for name in every if check.table[name].notna().any()]
    rows = check.table.loc[check.table[names].notna().any(axis=1), ["case", "solver", *names]]
    return _section(title, text, rows, heat=names) if len(rows) else None


def _certificates(check: Shown) -> Section | None:
    rows = check.table.loc[
        check.table["status"].str.startswith(("infeasible", "unbounded")), ["case", "solver", "status", "certificate"]
    ]
    text = (
        "Where a solver claims that there is no solution: how far its certificate, scaled to strength one, is from a "
        "proof. A dash is a claim without any: its verdict rests on the certificates of others, or on one found here."
    )
    return _section("Certificates", text, rows, heat=["certificate"]) if len(rows) else None


def _values(check: Shown) -> Section:
    text = (
        "gap: relative distance of the value to the reference's. distance: the largest difference of a variable from "
        "the reference's, which says nothing where there are several minimisers. moved: the largest move of an entry "
        "into the domain, where the point is judged."
    )
    names = ["case", "solver", "objective", "gap", "distance", "moved"]
    rows = check.table.loc[check.table["objective"].notna(), names].copy()
    rows["objective"] = [_exactly(value) for value in rows["objective"]]
    notes = [f"Reference of {name}: {why}." for name, why in check.references.items()]
    notes += [
        f"{solver} was not asked for {name}: it {why}."
        for name, unable in check.skipped.items()
        for solver, why in unable.items()
    ]
    return _section("Values and references", text, rows, notes, heat=("gap", "distance", "moved"))


def _bounds(check: Shown) -> Section | None:
    rows = check.table.loc[check.table["objective"].notna(), ["case", "solver", "bound", "bound_reason"]].copy()
    rows["bound"] = [_exactly(value) for value in rows["bound"]]
    text = "What no feasible point can beat, whatever the solver did: from its dual, repaired, or why there is none."
    return _section("Certified bounds", text, rows) if len(rows) else None


def _times(check: Shown) -> Section:
    rows = check.table[["case", "solver", "iterations", "seconds", "solver_seconds"]].copy()
    rows["iterations"] = rows["iterations"].astype("Int64")
    text = (
        "seconds: wall time of compiling and solving once, from a cold start. solver seconds: the solver's own clock."
    )
    return _section("Time", text, rows)


def _exactly(value: float) -> str:
    return format_cell(None) if np.isnan(value) else f"{value:.10g}"
