"""The command ``cvxpriv crosscheck NAME`` of a model that designs a mechanism."""

from typing import Any

import click

from cvxpriv.certify.check import CrossCheck
from cvxpriv.certify.sections import crosscheck_facts, refused
from cvxpriv.cli.mechanism_command import CONSTRAINT, Kind, posed_model
from cvxpriv.cli.options import (
    click_option,
    made,
    on_the_command_line,
    output_options,
    require_writable,
    solvers_option,
    taken,
)
from cvxpriv.cli.results import write
from cvxpriv.cli.table_options import TableOptions, table_options, title_of
from cvxpriv.cli.terminal import Terminal, certified, watched, watching
from cvxpriv.errors import Disagreement, NotConverged
from cvxpriv.reports.facts import Facts
from cvxpriv.runs.mechanism_run import MechanismRun
from cvxpriv.solvers.registry import solver_spec


def crosscheck_command(kind: Kind) -> click.Command:
    """Return ``cvxpriv crosscheck NAME``: every block again at an answer, by every solver."""
    posed, solved = on_the_command_line(kind.__init__), on_the_command_line(kind.solve)

    def command(terminal: Terminal, source: str, columns: TableOptions, out: str | None, **given: Any) -> None:
        folder = None if out is None else require_writable(out)
        model = posed_model(kind, columns.load(source), taken(posed, given), given["constraint"])
        names = tuple(solver_spec(name).name for name in given["solvers"])
        with watched() as interrupt:
            with watching(terminal, "solving", given, interrupt) as watch:
                run = model.solve(**taken(solved, given), **watch)
            if interrupt.pressed:
                raise click.Abort
            check = certified(terminal, run, names)
        facts = _of_crosscheck(f"Cross-check: {title_of(source)}", run, check)
        write(terminal, facts, folder, f"crosscheck {kind.command}")
        if bad := refused(check):
            raise Disagreement(f"{len(bad)} of {len(check.table)} answers are refused: {'; '.join(bad)}")
        if facts.unmet:
            raise NotConverged(facts.unmet)

    options = [
        click.option(
            "--table",
            "source",
            required=True,
            metavar="TABLE",
            help="A CSV or TSV file, or the name of an embedded table.",
        ),
        table_options(kind.sides),
        *map(click_option, posed),
        CONSTRAINT,
        *map(click_option, solved),
        solvers_option,
        click.option(
            "--out", metavar="FOLDER", help="Folder for crosscheck.csv and crosscheck.html.  [default: write nothing]"
        ),
        output_options,
        click.pass_obj,
    ]
    text = (
        "Solve the model, then every block again at its answer by every solver and by its exact update.\n\n"
        "Exits with 3 when a verdict is WRONG or failed, or when the run did not converge."
    )
    return made(kind, command, options, text)


def _of_crosscheck(title: str, run: MechanismRun[Any, Any], check: CrossCheck) -> Facts:
    known = run.facts
    shown = [known[name] for name in ("kkt", "start", "iterations")]
    return crosscheck_facts(
        check,
        title,
        shown,
        known.about,
        settings=known.settings,
        converged=run.converged,
        unmet=known.unmet,
        files={"crosscheck.html": check.to_html},
    )
