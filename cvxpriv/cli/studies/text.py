"""Parts of what a study says on the terminal: plain, aligned, readable in 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cvxpriv.certify.verdicts import VERDICTS
from cvxpriv.cli.crosscheck import crosscheck_text
from cvxpriv.cli.studies.study import Study, exact_zero
from cvxpriv.reports.layout import number, paragraph, residual, table

if TYPE_CHECKING:
    from cvxpriv.certify.check import CrossCheck

__all__ = ["crosscheck_part", "curve_part", "effort_rows", "heading", "interval_text", "padded", "reported", "share"]

SHOWN_POINTS = 10
"""How many points of a longer curve the terminal shows."""
SHOWN_ANSWERS = 24
"""Up to how many answers of a cross-check the terminal shows one by one."""


def reported(found: Study[Any]) -> str:
    """Return in words which start was best, and after how many iterations."""
    run, count = found.run, len(found.run.starts)
    many = f"{count} starts" if count > 1 else "1 start"
    return f"{many} (start {run.start}, {run.iterations} iterations)"


def heading(found: Study[Any]) -> str:
    """Return the table's name, its sides under their names here, and its records."""
    data, (private, public) = found.table, found.sides
    records = "given as probabilities" if data.records is None else f"{data.records:,} records"
    rows = [
        [private, f"{', '.join(data.private.columns)} ({len(data.private)} symbols)"],
        [public, f"{', '.join(data.public.columns)} ({len(data.public)} symbols)"],
        ["counted from", f"{records}, smoothing: {data.smoothing}"],
    ]
    return f"{found.source}\n{table([], rows)}"


def share(value: float, whole: float, name: str) -> str:
    """Return a value as a percentage of a whole that has a name."""
    return f"{100 * value / whole:.3g}% of {name} = {number(whole)}" if whole > 0 else f"{name} = 0"


def interval_text(found: Study[Any], name: str) -> list[str]:
    """Return the interval of a measure of the disclosure, as one text; nothing where there is none."""
    interval = None if found.found is None else found.found.interval(name)
    if found.found is None or interval is None:
        return []
    low, high = (number(exact_zero(end)) for end in interval)
    return [f"{found.found.level:.0%}: {low} to {high}"]


def effort_rows(found: Study[Any]) -> list[list[str]]:
    """Return the last two rows of the figures: the residual, and what it took."""
    verdict = "" if found.run.converged else "  NOT CONVERGED"
    return [
        ["KKT", "", f"{residual(found.kkt)} nats", f"asked for {residual(found.tol)}{verdict}"],
        ["solved", "", f"{number(found.run.seconds)} s", f"best of {reported(found)}"],
    ]


def padded(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return rows of one length, with empty cells at the end."""
    wide = max(map(len, rows))
    return [[*row, *[""] * (wide - len(row))] for row in rows]


def curve_part(found: Study[Any], title: str, columns: Mapping[str, tuple[str, Callable[[Any], str]]]) -> list[str]:
    """Return the curve's table, or nothing where there is none.

    Parameters
    ----------
    found : Study
    title : str
    columns : mapping of str to (str, callable)
        Heading to the frame's column and how its values are written; `kkt` and `converged` are added.
    """
    if found.curve is None:
        return []
    count = len(found.curve)
    figures = found.curve.iloc[np.unique(np.linspace(0, count - 1, min(count, SHOWN_POINTS)).round().astype(int))]
    shown = {**columns, "KKT": ("kkt", residual), "converged": ("converged", lambda met: "" if met else "no")}
    rows = [list(row) for row in zip(*(figures[name].map(form) for name, form in shown.values()), strict=True)]
    head = [*shown][:-1] + (["converged"] if any(row[-1] for row in rows) else [""])
    left = f" ({len(figures)} of {count} points; all in curve.csv)" if len(figures) < count else ""
    return [f"{title}{left}\n{table(head, rows, 'r' * (len(head) - 1))}"]


def crosscheck_part(found: Study[Any]) -> list[str]:
    """Return the cross-check, or nothing where there is none: row by row, or for many rows solver by solver."""
    if found.check is None:
        return []
    rows = found.check.table
    text = crosscheck_text(found.check) if len(rows) <= SHOWN_ANSWERS else _by_solver(found.check)
    blocks = rows["case"].nunique()
    return [f"Every block ({blocks}) solved again at this answer\n{text}"]


def _by_solver(check: CrossCheck) -> str:
    """Return how often each solver had which verdict, and the worst answer of each."""
    counts = pd.crosstab(check.table["solver"], check.table["verdict"]).loc[list(check.verdicts)]
    verdicts = [verdict for verdict in VERDICTS if verdict in counts]
    body = [[solver, *(str(counts.at[solver, verdict]) for verdict in verdicts)] for solver in check.verdicts]
    worst = [
        paragraph(f"{solver}: {verdict.reason}", indent="  - ", hanging="    ")
        for solver, verdict in check.verdicts.items()
        if verdict.verdict != "agrees"
    ]
    return "\n".join([table(["solver", *verdicts], body, "l" + "r" * len(verdicts)), *worst])
