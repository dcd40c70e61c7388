"""`cvxpriv formulations`: one divergence written in every known way, compared on one problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cvxpriv.cli.options import DIVERGENCE, NAMES, output_options
from cvxpriv.cli.terminal import Terminal
from cvxpriv.reports.formatting import number, paragraph, residual, table

if TYPE_CHECKING:
    from cvxpriv.certify import Formulations


@click.command()
@click.argument("divergence", metavar=DIVERGENCE)
@click.option("--size", type=int, default=6, show_default=True, help="Points of each distribution, 3 to 100.")
@click.option("--solvers", type=NAMES, help="Solvers.  [default: every installed solver]")
@click.option("--tolerance", type=float, help="Tolerance requested of every solver.  [default: each solver's own]")
@output_options
@click.pass_obj
def formulations(
    terminal: Terminal, divergence: str, size: int, solvers: tuple[str, ...] | None, tolerance: float | None
) -> None:
    """Write one divergence in different but equivalent ways, and compare value, accuracy, cones, size and time.

    \b
    formulations jensen-shannon    rel_entr, kl_div, cones, perspective, ...
    formulations 'exp(t) - e'      your own f: adaptive tangents

    All ways solve the same problem, by every solver that takes their cones; the answers are judged by exact
    residuals and by their distance to a re-solve at tight tolerances.
    """
    from cvxpriv.divergences.formulations import PROBLEM, formulations as compare
    from cvxpriv.divergences.registry import divergence_or_text
    from cvxpriv.solvers.place import solvers_silent

    target = divergence_or_text(divergence)
    with terminal.phase("comparing"), solvers_silent():
        found = compare(target, size, solvers, tolerance)
    problem = f"{PROBLEM}; N = {size}"
    terminal.result(
        {
            "command": f"formulations {divergence}",
            "problem": problem,
            "reference": found.reference,
            "reference_from": found.why,
            "answers": found.table.astype(object).to_dict("records"),
        }
    )
    terminal.say(_text(found, problem))


def _text(found: Formulations, problem: str) -> str:
    rows = found.table.to_dict("records")
    parts = ["formulation", "cones", "rows", "columns", "nonzeros"]
    sizes = found.table[parts].astype(str).drop_duplicates().to_numpy().tolist()
    answers = [
        [
            str(row["verdict"]),
            str(row["formulation"]),
            str(row["solver"]),
            f"{row['value']:.9f}",
            residual(row["accuracy"]),
            residual(row["residual"]),
            number(row["compile_seconds"] * 1e3, 2),
            number(row["solve_seconds"] * 1e3, 2),
        ]
        for row in rows
    ]
    why = [
        paragraph(f"{row['formulation']} by {row['solver']}: {row['reason']}", indent="  - ", hanging="    ")
        for row in rows
        if row["verdict"] != "agrees"
    ]
    head = ["verdict", "formulation", "solver", "value", "off by", "residual", "compile ms", "solve ms"]
    return "\n".join(
        [
            paragraph(f"Problem: {problem}.", indent=""),
            "",
            table(parts, sizes, "llrrr"),
            "",
            table(head, answers, "lllrrrrr"),
            *why,
            "",
            paragraph(f"Reference {found.reference:.10g}: {found.why}.", indent=""),
        ]
    )
