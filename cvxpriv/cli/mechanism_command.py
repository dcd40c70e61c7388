"""Commands of the models that design a mechanism, made from their signatures: ``cvxpriv NAME``, ``crosscheck NAME``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import click

from cvxpriv.certify.check import CrossCheck
from cvxpriv.certify.sections import crosscheck_facts, refused
from cvxpriv.cli.design import CROSSCHECKED, REPLICATES, Asked, Kind, Model, design
from cvxpriv.cli.drawn_rows import Drawing, Drawn
from cvxpriv.cli.model_command import certify_option, finish, write
from cvxpriv.cli.options import (
    Read,
    Results,
    click_option,
    crosscheck_option,
    endings,
    introduction_of,
    made,
    on_the_command_line,
    output_options,
    require_writable,
    solvers_option,
    taken,
)
from cvxpriv.cli.table_options import TableNoise, TableOptions, noise_options, table_options, title_of
from cvxpriv.cli.terminal import Terminal, certified, watched, watching
from cvxpriv.constraints import FORMS, parse
from cvxpriv.errors import Disagreement, NotConverged
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.reports.facts import Facts
from cvxpriv.runs.mechanism_run import MechanismRun
from cvxpriv.runs.noise_costs import DRAWS
from cvxpriv.runs.options import options_of
from cvxpriv.solvers.registry import solver_spec
from cvxpriv.tables.joint import JointTable

CONSTRAINT = click.option(
    "--constraint",
    multiple=True,
    metavar="TEXT",
    help=f"On the mechanism; several times for several: {', '.join(FORMS.values())}.",
)

_WRITES = (
    "TABLE is a CSV or TSV file of records, or of cells with their --count, or the name of an embedded table: "
    "{tables}.\n\n"
    "Writes mechanism.json, history.csv (every start) and report.html into the folder, and tables as CSV; with --curve "
    "also curve.png. A run that did not converge writes them too, says so, and exits with 3.\n\n"
    "`cvxpriv release mechanism.json rows.csv` then draws {output} for each row. Rows need the columns of {flag} only."
)


def design_command(kind: Kind) -> click.Command:
    """Return ``cvxpriv NAME TABLE``: it designs a mechanism and writes its facts."""
    posed, solved = on_the_command_line(kind.__init__), on_the_command_line(kind.solve)
    points = options_of(kind.curve)[0]
    points = replace(points, default=None, option=replace(points.option, usual="no curve"))

    def command(
        terminal: Terminal,
        source: str,
        columns: TableOptions,
        noise: TableNoise,
        results: Results,
        release: str | None,
        **given: Any,
    ) -> None:
        folder = results.folder
        if release is not None:
            columns.require_records(source, release, folder)
        model = _posed(kind, noise.load(source, columns), taken(posed, given), given["constraint"])
        curve = given["points"] or None
        if curve is not None:
            model.along(curve)  # refuses a wrong point before the solve
        again = partial(_posed, kind, options=taken(posed, given), constraints=given["constraint"])
        named = {name: given[name] for name in ("crosscheck", "solvers", "bootstrap", "certify")}
        asked = Asked(taken(solved, given), curve, **named, costs=given["noise_costs"], again=again)

        def released() -> Drawn:
            drawing = Drawing(str(release), unseen="drop")
            with warnings.catch_warnings():  # what there is to say of the file was said at first
                warnings.simplefilter("ignore")
                rows = columns.rows(source)
            return drawing.of(Mechanism.load(folder / "mechanism.json"), rows)

        facts = design(terminal, model, title_of(source), asked)
        finish(terminal, facts, results, kind.command, None if release is None else released)

    options = [
        click.argument("source", metavar="TABLE"),
        table_options(kind.sides),
        noise_options(),
        *map(click_option, posed),
        CONSTRAINT,
        *map(click_option, solved),
        click_option(points),
        crosscheck_option(f"up to {CROSSCHECKED:,} cells of the mechanism"),
        solvers_option,
        click.option(
            "--bootstrap",
            type=int,
            default=REPLICATES,
            show_default=True,
            callback=_replicates,
            help="Number of replicates for the intervals; 0 for none.",
        ),
        certify_option,
        click.option(
            "--noise-costs",
            type=Read(_epsilons),
            default=(),
            metavar="EPSILON,EPSILON",
            help=f"Design on noisy counts at each epsilon, and show what the noise costs. It takes as long as "
            f"{DRAWS} solves for each epsilon.",
        ),
        click.option(
            "--release",
            metavar="FILE",
            help="Also draw an output for each record of TABLE, as cvxpriv release does: .zip or a folder for a "
            "bundle, or a table.",
        ),
        *endings(),
    ]
    about = _WRITES.format(
        tables=", ".join(kind.sides.public.embedded), output=kind.sides.output, flag=kind.sides.public.flag
    )
    return made(kind, command, options, f"{introduction_of(kind)}\n\n{about}")


def crosscheck_command(kind: Kind) -> click.Command:
    """Return ``cvxpriv crosscheck NAME``: every block again at an answer, by every solver."""
    posed, solved = on_the_command_line(kind.__init__), on_the_command_line(kind.solve)

    def command(terminal: Terminal, source: str, columns: TableOptions, out: str | None, **given: Any) -> None:
        folder = None if out is None else require_writable(out)
        model = _posed(kind, columns.load(source), taken(posed, given), given["constraint"])
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
        click.option("--out", metavar="FOLDER", help="Folder for crosscheck.csv.  [default: write nothing]"),
        output_options,
        click.pass_obj,
    ]
    text = (
        "Solve the model, then every block again at its answer by every solver and by its exact update.\n\n"
        "Exits with 3 when a verdict is WRONG or failed, or when the run did not converge."
    )
    return made(kind, command, options, text)


def _posed(kind: Kind, table: JointTable, options: Mapping[str, Any], constraints: tuple[str, ...]) -> Model:
    parsed = {text: parse(text) for text in constraints}
    model: Model = kind(table, **options)
    for text, constraint in parsed.items():
        model = model.constrain(text, constraint)
    return model


def _epsilons(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0.0 < one < float("inf") for one in found):
        raise click.BadParameter(f"noise_costs={text!r}: expected numbers > 0, such as 0.5,1,4")
    return found


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
    )


def _replicates(_context: click.Context, _parameter: click.Parameter, value: int) -> int:
    if value < 0 or value == 1:  # before the solve, not after it
        raise click.BadParameter(f"bootstrap={value}: expected a whole number >= 2 (200 serves), or 0 for no intervals")
    return value
