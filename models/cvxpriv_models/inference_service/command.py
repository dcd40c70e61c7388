"""`cvxpriv mapping` and `cvxpriv crosscheck mapping`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from cvxpriv.cli.divergences import METAVAR
from cvxpriv.cli.interrupts import Interrupt
from cvxpriv.cli.options import (
    CHAIN,
    NAMES,
    Sides,
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
from cvxpriv.constraints import FORMS

from .study import ServiceStudy, SolveOptions, solved, study

__all__ = ["crosscheck_mapping", "mapping"]

Command = TypeVar("Command", bound=Callable[..., Any])

SIDES = Sides(
    "--infer",
    "--data",
    ("Columns of S, what the server is to infer: disease.", "Columns of Y, the data that U stands for."),
    {
        "heart-failure": (("death",), ("anaemia", "high_blood_pressure", "diabetes", "smoking")),
        "adult": (("income",), ("sex", "education_num")),
    },
)


class Weights(click.ParamType[tuple[float, ...]]):
    """Numbers parted by commas."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """See `click.ParamType`.

        >>> Weights().convert(".3, 0.6,1", None, None)
        (0.3, 0.6, 1.0)
        """
        if isinstance(value, tuple):
            return value
        try:
            return tuple(map(float, NAMES.convert(value, param, ctx)))
        except ValueError:
            self.fail(f"{value!r} holds no numbers: give numbers parted by commas, such as .3,.6,1", param, ctx)


def solve_options(command: Command) -> Command:
    """Give a command the options of a solve; it gets them as one `SolveOptions`, ``solving``."""

    def option(flag: str, text: str, **settings: Any) -> Callable[[Any], Any]:
        return field_option(SolveOptions, flag, text, **settings)

    options = [
        option(
            "--beta", "The weight of privacy.  [default: a quarter of the largest at which telling pays]", type=float
        ),
        option("--divergence", "f of the leakage; `cvxpriv verify` checks one of yours.", metavar=METAVAR),
        option(
            "--constraint",
            f"On the mechanism; several times for several: {', '.join(FORMS.values())}.",
            multiple=True,
            metavar="TEXT",
            show_default=False,
        ),
        option("--size", "Symbols of U.  [default: |Y| + 1]", type=int),
        option("--floor", "The least p(u|y).", type=float),
        option("--algorithm", "How the blocks are alternated.", metavar="[auto|admm|joint|bregman|gradient|printed]"),
        option("--engine", "Exact updates, solvers, or both compared.", metavar="[closed_form|dcp|checked]"),
        option(
            "--starts", "How many starts.  [default: 20; 4 with constraints; 1 where a solver does the work]", type=int
        ),
        option("--seed", "Of the starts.", type=int),
        option("--solver", "The first of the fallback chain, or the whole chain.", type=CHAIN),
        option("--max-iter", "Most outer steps a start.  [default: by algorithm and engine]", type=int),
        option("--tol", "The KKT residual to reach, in nats; with constraints, it or the gap.", type=float),
        option("--jobs", "Processes; -1 is one per core.", type=int),
    ]
    return packed(command, SolveOptions, "solving", options)


@click.command(short_help="Design what to send in place of data, so that a server can infer one thing from it.")
@click.argument("source", metavar="TABLE")
@table_options(SIDES)
@solve_options
@click.option("--betas", type=Weights(), default=(), metavar="B,B,...", help="Also the curve, at these weights.")
@extra_options
@click.option("--report/--no-report", default=True, show_default=True, help="Write report.html and the pictures.")
@click.option("--out", default="out", show_default=True, metavar="FOLDER", help="Where the files go.")
@output_options
@click.pass_obj
def mapping(
    terminal: Terminal,
    source: str,
    columns: TableOptions,
    solving: SolveOptions,
    betas: tuple[float, ...],
    extras: Extras,
    report: bool,
    out: str,
) -> None:
    """Design a mechanism P(U|Y): U is sent in place of the data Y, so that a server can infer S from it while U tells
    little of Y. It maximises I(S;U) - beta E[f(p(u)/p(u|y))].

    TABLE is a CSV or TSV file of records, or of cells with their --count, or the name of an embedded table:
    heart-failure (infers death from four findings), adult (income from sex and education).

    Writes mechanism.json, history.csv (every start) and report.html into the folder; with --betas also curve.csv and
    curve.png. A run that did not converge writes them too, says so, and exits with 3.

    `cvxpriv release mechanism.json rows.csv` then draws U for each row. Rows need the columns of --data only.
    """
    if report:
        require_report_packages("give --no-report")
    folder = require_writable(out)
    found = study(terminal, title_of(source), columns.load(source), solving, extras, betas)
    finish(terminal, found, folder, "mapping", report)


@click.command("mapping", short_help="The blocks of inference as a service.")
@click.option("--table", "source", required=True, metavar="TABLE", help="A CSV or TSV file, heart-failure, or adult.")
@table_options(SIDES)
@solve_options
@solvers_option
@click.option("--out", metavar="FOLDER", help="Write crosscheck.csv there.  [default: write nothing]")
@output_options
@click.pass_obj
def crosscheck_mapping(
    terminal: Terminal,
    source: str,
    columns: TableOptions,
    solving: SolveOptions,
    solvers: tuple[str, ...],
    out: str | None,
) -> None:
    """Solve inference as a service, then every block again at its answer by every solver and by its exact update.

    Exits with 3 when a verdict is WRONG or failed, or when the run did not converge.
    """
    folder = None if out is None else require_writable(out)
    service = solving.service(columns.load(source))

    def begin(interrupt: Interrupt) -> ServiceStudy:
        return solved(terminal, title_of(source), service, solving, interrupt)

    crosschecked(terminal, begin, solvers, folder, "crosscheck mapping")
