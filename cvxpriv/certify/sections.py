"""A cross-check as sections of a report: every answer with its verdict, on a page and in brief on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from cvxpriv.certify.verdicts import VERDICTS, Verdict
from cvxpriv.numerics.later import pd
from cvxpriv.reports.facts import Fact, Facts, Section, Table

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
