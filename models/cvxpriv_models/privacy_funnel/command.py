"""`cvxpriv funnel` and `cvxpriv crosscheck funnel`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from cvxpriv.cli.interrupts import Interrupt
from cvxpriv.cli.options import (
    CHAIN,
    PRIVATE_PUBLIC,
    TableOptions,
    field_option,
    output_options,
    packed,
    table_options,
    title_of,
)
from cvxpriv.cli.outputs import require_report_packages, require_writable
from cvxpriv.cli.studies import Extras, crosschecked, extra_options, finish, solvers_option
from cvxpriv.cli.terminal import Terminal

from .study import FunnelStudy, SolveOptions, solved, study

__all__ = ["crosscheck_funnel", "funnel"]

Command = TypeVar("Command", bound=Callable[..., Any])


def solve_options(command: Command) -> Command:
    """Give a command the options of a solve; it gets them as one `SolveOptions`, ``solving``."""

    def option(flag: str, text: str, **settings: Any) -> Callable[[Any], Any]:
        return field_option(SolveOptions, flag, text, **settings)

    options = [
        option("--rate", "The utility asked for: I(X;Y) >= rate.", type=float),
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
        option("--solver", "The first of the fallback chain, or the whole chain.", type=CHAIN),
        option("--max-iter", "Most iterations a start.", type=int),
        option("--tol", "The KKT residual to reach, in nats.", type=float),
        option("--jobs", "Processes; -1 is one per core.", type=int),
    ]
    return packed(command, SolveOptions, "solving", options)


@click.command(short_help="Design a mechanism that tells of X and little of S (the privacy funnel).")
@click.argument("source", metavar="TABLE")
@table_options(PRIVATE_PUBLIC)
@solve_options
@click.option("--curve", type=click.IntRange(min=0), default=0, metavar="N", help="Also the curve, at N rates.")
@extra_options
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
    extras: Extras,
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
    found = study(terminal, title_of(source), columns.load(source), solving, extras, curve)
    finish(terminal, found, folder, "funnel", report)


@click.command("funnel", short_help="The blocks of the privacy funnel.")
@click.option("--table", "source", required=True, metavar="TABLE", help="A CSV or TSV file, heart-failure, or adult.")
@table_options(PRIVATE_PUBLIC)
@solve_options
@solvers_option
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
    table = columns.load(source)

    def begin(interrupt: Interrupt) -> FunnelStudy:
        return FunnelStudy(source, table, solved(terminal, solving.funnel(table), solving, interrupt), solving.tol)

    crosschecked(terminal, begin, solvers, folder, "crosscheck funnel")
