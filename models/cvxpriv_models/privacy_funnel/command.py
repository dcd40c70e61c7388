"""`cvxpriv funnel` and `cvxpriv crosscheck funnel`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from cvxpriv.cli.crosscheck import crosscheck_document, crosscheck_text, unsound
from cvxpriv.cli.interrupts import watched
from cvxpriv.cli.layout import paragraph, residual
from cvxpriv.cli.options import NAMES, TableOptions, output_options, table_options
from cvxpriv.cli.outputs import Outputs, require_report_packages, require_writable
from cvxpriv.cli.terminal import Terminal
from cvxpriv.datasets import SOURCES
from cvxpriv.errors import Disagreement
from cvxpriv.solvers import solver_spec

from .findings import findings, reported
from .study import Extras, SolveOptions, Study, solved, study

__all__ = ["crosscheck_funnel", "finish", "funnel"]

Command = TypeVar("Command", bound=Callable[..., Any])

#: Tables with more cells in the mechanism are cross-checked only on demand: SCS needs minutes for 160 x 161.
CERTIFIED = 2_000

#: What the mechanism has to tell when the command line does not say: the default of `PrivacyFunnel`.
RATE = 0.8

SOLVERS = ("CLARABEL", "ECOS", "SCS")


def solve_options(command: Command) -> Command:
    """Give a command the options of a solve; it gets them as one `SolveOptions`, ``solving``."""
    defaults = SolveOptions(rate=RATE)

    def option(flag: str, text: str, **settings: Any) -> Callable[[Any], Any]:
        name = flag.removeprefix("--").replace("-", "_")
        default = getattr(defaults, name)
        shown = default is not None
        return click.option(flag, help=text, **{"default": default, "show_default": shown, **settings})

    options = [
        option("--rate", "The utility asked for: I(X;Y) >= rate.", type=float, default=RATE, show_default=True),
        option("--rate-unit", "Of the rate; a fraction is one of H(X).", metavar="[fraction|nats|bits]"),
        option("--size-y", "Symbols of Y.  [default: |X| + 1]", type=int),
        option("--starts", "How many starts.  [default: 30; 1 where a solver does the work]", type=int),
        option("--seed", "Of the starts.", type=int),
        option("--engine", "Exact updates, solvers, or both compared.", metavar="[closed_form|dcp|checked]"),
        option("--method", "Which blocks are alternated.  [default: aem]", metavar="[aem|merged|ccp]"),
        option(
            "--accelerate",
            "On top of a pass; none is the paper's iteration.",
            metavar="[auto|none|interior|squarem|overrelaxed]",
        ),
        option("--solver", "The first of the fallback chain, or the whole chain.", type=NAMES),
        option("--max-iter", "Most iterations a start.", type=int),
        option("--tol", "The KKT residual to reach, in nats.", type=float),
        option("--jobs", "Processes; -1 is one per core.", type=int),
    ]
    names = tuple(SolveOptions.__dataclass_fields__)

    @wraps(command)
    def collected(*args: Any, **kwargs: Any) -> Any:
        chosen = {name: kwargs.pop(name) for name in names}
        chosen["solver"] = chosen["solver"][0] if len(chosen["solver"]) == 1 else chosen["solver"]
        return command(*args, solving=SolveOptions(**chosen), **kwargs)

    wrapped: Any = collected
    for one in reversed(options):
        wrapped = one(wrapped)
    return wrapped  # type: ignore[no-any-return]


def _replicates(value: int) -> int:
    if value < 0 or value == 1:  # before the solve, not after it
        raise click.BadParameter(f"bootstrap={value}: expected a whole number >= 2 (200 serves), or 0 for no intervals")
    return value


@click.command(short_help="Design a mechanism that tells of X and little of S (the privacy funnel).")
@click.argument("source", metavar="TABLE")
@table_options
@solve_options
@click.option("--curve", type=click.IntRange(min=0), default=0, metavar="N", help="Also the curve, at N rates.")
@click.option(
    "--certify/--no-certify",
    default=None,
    help=f"Cross-check every block by every solver.  [default: up to {CERTIFIED:,} cells of the mechanism]",
)
@click.option("--solvers", type=NAMES, default=",".join(SOLVERS), show_default=True, help="Who cross-checks.")
@click.option(
    "--bootstrap",
    type=int,
    default=200,
    show_default=True,
    callback=lambda context, parameter, value: _replicates(value),
    help="Replicates for the intervals; 0 for none.",
)
@click.option("--report/--no-report", default=True, show_default=True, help="Write report.html and the pictures.")
@click.option("--out", default="out", show_default=True, metavar="FOLDER", help="Where the files go.")
@output_options
@click.pass_obj
def funnel(
    terminal: Terminal,
    source: str,
    columns: TableOptions,
    solving: SolveOptions,
    curve: int,
    certify: bool | None,
    solvers: tuple[str, ...],
    bootstrap: int,
    report: bool,
    out: str,
) -> None:
    """Design a mechanism P(Y|X) that leaks as little of S as it can while it tells at least --rate of X.

    TABLE is a CSV or TSV file of records, or of cells with their --count, or the name of an embedded table:
    heart-failure, adult.

    Writes mechanism.json, history.csv (every start) and report.html into the folder; with --curve also curve.csv and
    curve.png. A run that did not converge writes them too, says so, and exits with 3.
    """
    if report:
        require_report_packages("give --no-report")
    folder = require_writable(out)
    names = tuple(solver_spec(name).name for name in solvers)
    table = columns.load(source)
    problem = solving.funnel(table).problem
    if certify is None:
        certify = problem.p_x.size * problem.size_y <= CERTIFIED
    title = SOURCES[source].title if source in SOURCES and not Path(source).exists() else Path(source).name
    found = study(terminal, title, table, solving, Extras(curve, certify, names, bootstrap))
    finish(terminal, found, folder, "funnel", report)


def finish(terminal: Terminal, found: Study, folder: Path, command: str, report: bool) -> None:
    """Write a study's files, show it, and end as it ended.

    Raises
    ------
    NotConverged
        After the files are written.
    click.Abort
        The work was interrupted; the files hold what there was.
    """
    files = _outputs(found, folder, report).write()
    terminal.result(
        {
            "command": command,
            **found.document(),
            "crosscheck": None if found.check is None else crosscheck_document(found.check),
            "files": files,
        }
    )
    terminal.say(findings(found))
    terminal.say(f"\nWritten to {folder}/: {', '.join(file.name for file in files)}")
    if found.interrupted:
        terminal.warn(f"interrupted: {folder}/ holds what was ready")
        raise click.Abort
    found.raise_if_not_converged()


def _outputs(found: Study, folder: Path, report: bool) -> Outputs:
    """Make everything ready before the first file is written."""
    outputs = Outputs(folder)
    if report:
        from cvxpriv.plots import image

        from .page import curve_figure, page

        outputs.contents["report.html"] = page(found)
        if found.curve is not None:
            outputs.contents["curve.png"] = image(curve_figure(found), "png")
    if found.curve is not None:
        outputs.contents["curve.csv"] = found.curve.to_csv(index=False, lineterminator="\n")
    outputs.contents["history.csv"] = found.run.log.frame().to_csv(index=False, lineterminator="\n")
    outputs.contents["mechanism.json"] = found.run.as_mechanism().save
    return outputs


@click.command("funnel", short_help="The blocks of the privacy funnel.")
@click.option("--table", "source", required=True, metavar="TABLE", help="A CSV or TSV file, heart-failure, or adult.")
@table_options
@solve_options
@click.option("--solvers", type=NAMES, default=",".join(SOLVERS), show_default=True, help="Who cross-checks.")
@click.option("--out", metavar="FOLDER", help="Write crosscheck.csv there.  [default: write nothing]")
@output_options
@click.pass_obj
def crosscheck_funnel(
    terminal: Terminal,
    source: str,
    columns: TableOptions,
    solving: SolveOptions,
    solvers: tuple[str, ...],
    out: str | None,
) -> None:
    """Solve the funnel, then every block again at its answer by every solver and by its exact update.

    Exits with 3 when a verdict is WRONG or failed, or when the funnel did not converge.
    """
    folder = None if out is None else require_writable(out)
    names = tuple(solver_spec(name).name for name in solvers)
    table = columns.load(source)
    with watched() as interrupt:
        run = solved(terminal, solving.funnel(table), solving, interrupt)
        if interrupt.pressed:
            raise click.Abort
        with terminal.phase(f"cross-checking by {', '.join(names)}"):
            check = run.certify(names)
    found = Study(source, table, solving, run, check=check)
    outputs = Outputs(folder or Path())
    if folder is not None:
        outputs.contents["crosscheck.csv"] = check.table.to_csv(index=False, lineterminator="\n")
    files = outputs.write()
    document = {"command": "crosscheck funnel", "converged": run.converged, "kkt": run.kkt.largest}
    terminal.result({**document, **crosscheck_document(check), "files": files})
    terminal.say(paragraph(run.problem.table.description, indent="", hanging="  ") + "\n")
    terminal.say(f"Every block at the best of {reported(run)}, KKT residual {residual(run.kkt.largest)} nats:\n")
    terminal.say(crosscheck_text(check))
    terminal.say("\n" + paragraph(f"Worst: {check.worst_offender}", indent="", hanging="  "))
    for file in files:
        terminal.say(f"Written to {file}")
    if bad := unsound(check):
        raise Disagreement(f"{len(bad)} of {len(check.table)} answers are refused: {'; '.join(bad)}")
    found.raise_if_not_converged()
