"""`cvxpriv crosscheck`: every block by every solver, and how the verdicts are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cvxpriv.cli.layout import number, paragraph, residual, table
from cvxpriv.cli.plugins import CROSSCHECKS, PluginGroup
from cvxpriv.crosschecks.page import largest_residual, worst_first

if TYPE_CHECKING:
    from cvxpriv.crosschecks.check import CrossCheck

__all__ = ["crosscheck", "crosscheck_document", "crosscheck_text", "unsound"]

_REFUSED = ("WRONG", "failed")


@click.group(
    cls=PluginGroup,
    plugins=CROSSCHECKS,
    short_help="Solve every block of a model by every solver, and judge the answers.",
    epilog="Exit code 3 when a verdict is WRONG or failed; agrees and loose are fine.",
)
def crosscheck() -> None:
    """Solve every block of a model at its answer by every solver, and judge each by exact residuals.

    \b
    agrees  right, and every exact residual is small
    loose   right to fewer digits, or claims no accuracy
    failed  returned no solution
    WRONG   claims a solution that it has not

    A cross-check is there to be relied on, so one WRONG or failed verdict makes it exit with 3.
    """


def unsound(check: CrossCheck) -> list[str]:
    """Return what a cross-check refuses: one sentence for each verdict that is WRONG or failed."""
    bad = [row for row in _records(check) if row["verdict"] in _REFUSED]
    return [f"{row['solver']} on {row['case']}: {row['verdict']}, {row['reason']}" for row in bad]


def crosscheck_text(check: CrossCheck) -> str:
    """Return the table for people: verdicts first, then why those that do not agree do not."""
    rows = _records(check)
    body = [
        [
            str(row["verdict"]),
            str(row["case"]),
            str(row["solver"]),
            residual(row["gap"]),
            residual(largest_residual(row)),
            residual(row["natural"]),
            number(row["seconds"] * 1e3, 2),
        ]
        for row in rows
    ]
    head = ["verdict", "block", "solver", "gap", "residual", "natural", "ms"]
    why = [
        paragraph(f"{row['solver']} on {row['case']}: {row['reason']}", indent="  - ", hanging="    ")
        for row in rows
        if row["verdict"] != "agrees"
    ]
    return "\n".join([table(head, body, "lllrrrr"), *why])


def crosscheck_document(check: CrossCheck) -> dict[str, object]:
    """Return the cross-check as JSON holds it."""
    return {
        "verdicts": {solver: verdict.verdict for solver, verdict in check.verdicts.items()},
        "worst_offender": check.worst_offender,
        "references": check.references,
        "answers": check.table.astype(object).to_dict(orient="records"),
    }


def _records(check: CrossCheck) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in worst_first(check.table).to_dict("records")]
