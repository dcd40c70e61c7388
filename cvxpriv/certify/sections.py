"""A cross-check as a page, and in brief on a terminal: verdicts first, then their evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from cvxpriv.certify.verdicts import VERDICTS, Verdict
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import counted
from cvxpriv.reports.facts import Fact, Facts, Section, Table
from cvxpriv.reports.formatting import format_cell

SHOWN_ANSWERS = 24
"""Number of answers of a cross-check up to which a terminal shows each."""
READING = (
    "agrees: right, and every exact residual is small. loose: right to fewer digits, or claims no accuracy. failed: no "
    "solution, or one that is worth nothing. WRONG: claims a solution, or that there is none, "
    "which the residuals refute."
)
_OF_THE_RESULT = "A verdict on a solver is none on the result: the method took the exact updates."
_DIGITS = {"gap": 1, "residual": 1, "natural": 1, "ms": 2, "objective": 8}


class Shown(Protocol):
    """The parts of a cross-check that are shown (`cvxpriv.certify.check.CrossCheck`)."""

    @property
    def table(self) -> pd.DataFrame:
        """One row per case and answer."""

    @property
    def references(self) -> Mapping[str, str]:
        """The references of the answers, and the reasons, by case."""

    @property
    def skipped(self) -> Mapping[str, Mapping[str, str]]:
        """The solvers that were not asked, and the reasons, by case."""

    @property
    def all_off(self) -> Mapping[str, str]:
        """The cases of which no answer agrees, and what to do next."""

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The worst verdict of each solver."""

    @property
    def worst_offender(self) -> str:
        """The worst answer of all, in one sentence."""


def crosscheck_section(check: Shown | None, text: str) -> list[Section]:
    """Return the cross-check of every block as a section, or nothing where there was none.

    `text`: Description of the problem that was solved again.
    """
    if check is None:
        return []
    rows = worst_first(check.table)
    frame = _answers(rows).assign(**{"why it does not agree": rows["reason"].where(rows["verdict"] != "agrees", "")})
    title = f"Every block ({rows['case'].nunique()}) solved again at this answer"
    return [
        Section(
            "Cross-check: every block, every solver",
            text,
            tables=[
                Table(frame, "gap, residual: relative; natural: how far from stationary, in units of the variables.")
            ],
            notes=[f"Worst answer: {check.worst_offender}.", READING, _OF_THE_RESULT],
            brief=answers_section(check, title) if len(rows) <= SHOWN_ANSWERS else _by_solver(check, title),
        )
    ]


def answers_section(check: Shown, title: str, more: Sequence[str] = ()) -> Section:
    """Return every answer with its verdict, the worst first, and the reasons of those that do not agree.

    `more`: Further columns.
    """
    rows = worst_first(check.table)
    frame = pd.concat([_answers(rows), rows[[*more]]], axis=1)
    why = [
        f"{row['solver']} on {row['case']}: {row['reason']}"
        for row in rows.to_dict("records")
        if row["verdict"] != "agrees"
    ]
    return Section(title, tables=[Table(frame, digits=_DIGITS)], notes=why)


def every_answer(check: Shown, more: Sequence[str] = ()) -> Section:
    """Return the same with what to do where no answer agrees, and the references."""
    answers = answers_section(check, "Every answer", more)
    references = [f"reference of {case}: {why}" for case, why in check.references.items()]
    return replace(answers, notes=[*answers.notes, *offers(check), *references])


def crosscheck_tables(check: Shown | None) -> dict[str, pd.DataFrame]:
    """Return the whole table of a cross-check by name, for programs; nothing where there was none."""
    if check is None:
        return {}
    return {"crosscheck": check.table.assign(reference=check.table["case"].map(check.references))}


def crosscheck_facts(
    check: Shown, title: str, shown: Sequence[Fact] = (), about: Sequence[Fact] = (), **more: Any
) -> Facts:
    """Return the facts of a cross-check alone: each solver's worst verdict, and every answer.

    `shown`, `about`: The facts that come before. `**more`: Options of `Facts`.
    """
    verdicts = [Fact(name, one.verdict, "", one.reason, aside=True) for name, one in check.verdicts.items()]
    solver, found = max(check.verdicts.items(), key=lambda item: item[1].rank)
    worst = Fact("worst_answer", f"{solver} {found.verdict}", label="Worst", detail=found.reason)
    answers = every_answer(check, ("known_by",))
    sections = [replace(answers, brief=answers)]
    return Facts(title, "", [*shown, worst, *verdicts], sections, about, tables=crosscheck_tables(check), **more)


def refused(check: Shown) -> list[str]:
    """Return one sentence for each verdict that is WRONG or failed."""
    rows = worst_first(check.table).to_dict("records")
    bad = [row for row in rows if row["verdict"] in ("WRONG", "failed")]
    return [f"{row['solver']} on {row['case']}: {row['verdict']}, {row['reason']}" for row in bad]


def _answers(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "verdict": rows["verdict"],
            "block": rows["case"],
            "solver": rows["solver"],
            "gap": rows["gap"],
            "residual": [largest_residual(row) for row in rows.to_dict("records")],
            "natural": rows["natural"],
            "ms": rows["seconds"] * 1e3,
        }
    )


def _by_solver(check: Shown, title: str) -> Section:
    """Return the number of each verdict by solver, and the worst answer of each solver that does not always agree."""
    counts = pd.crosstab(check.table["solver"], check.table["verdict"]).loc[list(check.verdicts)]
    frame = counts[[verdict for verdict in VERDICTS if verdict in counts]].reset_index().rename_axis(columns=None)
    notes = [f"{name}: {worst.reason}" for name, worst in check.verdicts.items() if worst.verdict != "agrees"]
    return Section(title, tables=[Table(frame)], notes=notes)


def worst_first(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the worst verdicts on top, otherwise in their order."""
    return table.sort_values("verdict", key=lambda v: -v.map(VERDICTS.index), kind="stable")


def offers(check: Shown) -> list[str]:
    """Return a sentence for each case of which no answer agrees."""
    return [f"all are off: no answer to {case} agrees; {remedy}" for case, remedy in check.all_off.items()]


def largest_residual(row: Any) -> float:
    """Return the largest exact residual of the cone program in a row of the table; NaN if there is none."""
    known = [row[name] for name in ("cone", "dual", "dual_cone", "complementarity", "duality_gap", "certificate")]
    finite = [float(value) for value in known if not np.isnan(value)]
    return max(finite, default=float("nan"))


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
