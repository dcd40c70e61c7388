"""Commands of the models that are one problem on numbers, made from their signatures: ``cvxpriv NAME MATRIX``."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from cvxpriv.certify.sections import crosscheck_section, crosscheck_tables
from cvxpriv.cli.crosscheck import check_options, checked
from cvxpriv.cli.options import (
    click_option,
    crosscheck_option,
    introduction_of,
    made,
    on_the_command_line,
    output_options,
    solvers_option,
    taken,
)
from cvxpriv.cli.results import Results, endings, finish
from cvxpriv.cli.terminal import Terminal, certified, watched, watching
from cvxpriv.reports.facts import Facts
from cvxpriv.runs.problem_model import ProblemModel
from cvxpriv.solvers.registry import solver_spec
from cvxpriv.tables.matrix_files import read_matrix

_ABOUT = (
    "MATRIX is a file with one row of the matrix a line, numbers apart by commas, semicolons, tabs or blanks, without "
    "headings.\n\n"
    "Writes run.json, which `cvxpriv.load` reads, report.html, and the starts and the history as CSV into the folder. "
    "A run that did not converge writes them too, says so, and exits with 3."
)
_RESOLVED = "Every block was solved again at the answer by every solver, and the answers were judged."


def problem_command(kind: type[ProblemModel]) -> click.Command:
    """Return ``cvxpriv NAME MATRIX``: it solves the model and writes its facts."""
    posed, solved = on_the_command_line(kind.__init__), on_the_command_line(kind.solve)

    def command(terminal: Terminal, source: str, results: Results, crosscheck: bool | None, **given: Any) -> None:
        names = tuple(solver_spec(name).name for name in given["solvers"])
        model = kind(read_matrix(source), **taken(posed, given))
        facts = _facts(terminal, model, taken(solved, given), () if crosscheck is False else names)
        finish(terminal, facts, results, kind.command)

    options = [
        click.argument("source", metavar="MATRIX"),
        *map(click_option, [*posed, *solved]),
        crosscheck_option("yes"),
        solvers_option,
        *endings("page"),
    ]
    return made(kind, command, options, f"{introduction_of(kind)}\n\n{_ABOUT}")


def crosscheck_command(kind: type[ProblemModel]) -> click.Command:
    """Return ``cvxpriv crosscheck NAME [MATRIX]``: every block at an answer, by every solver."""
    posed = on_the_command_line(kind.__init__)

    def command(terminal: Terminal, source: str | None, **given: Any) -> None:
        own = taken(posed, given)
        with terminal.phase("solving"):
            cases = kind(kind.example if source is None else read_matrix(source), **own).cases()
        checks = {name: value for name, value in given.items() if name not in {one.name for one in posed}}
        checked(terminal, f"crosscheck {kind.command}", cases, **checks)

    options = [
        click.argument("source", metavar="[MATRIX]", required=False),
        *map(click_option, posed),
        check_options,
        output_options,
        click.pass_obj,
    ]
    text = "Solve the model for MATRIX, or for its own example, then every block again at the answer by every solver."
    return made(kind, command, options, text)


def _facts(terminal: Terminal, model: ProblemModel, solving: Mapping[str, Any], solvers: tuple[str, ...]) -> Facts:
    """Solve the model, and solve its blocks again. A keyboard interrupt ends the work and keeps the best so far."""
    with watched() as interrupt:
        with watching(terminal, "solving", solving, interrupt) as watch:
            run = model.solve(**solving, **watch)
        facts = run.facts
        if solvers and not interrupt.pressed:
            check = certified(terminal, run, solvers)
            sections = [*facts.sections, *crosscheck_section(check, _RESOLVED)]
            facts = replace(facts, sections=sections, tables={**facts.tables, **crosscheck_tables(check)})
    return replace(facts, interrupted=facts.interrupted or interrupt.pressed)
