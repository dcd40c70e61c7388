"""`cvxpriv sparse`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from cvxpriv.cli.fits.finish import ends, finish
from cvxpriv.cli.fits.row_options import row_options
from cvxpriv.cli.options import NAMES, field_option, output_options, packed
from cvxpriv.cli.outputs import require_report_packages, require_writable
from cvxpriv.cli.rows import RowOptions
from cvxpriv.cli.terminal import Terminal

from .fit_data import PENALTY, SparseOptions
from .study import study

__all__ = ["sparse"]

Command = TypeVar("Command", bound=Callable[..., Any])


def sparse_options(command: Command) -> Command:
    """Give a command the options of a fit; it gets them as one `SparseOptions`, ``fitting``."""

    def option(flag: str, text: str, **settings: Any) -> Callable[[Any], Any]:
        return field_option(SparseOptions, flag, text, **settings)

    options = [
        option(
            "--penalty",
            "mcp:LAM:ALPHA, scad:LAM:A, l1:LAM, elastic-net:LAM:RATIO, ...  "
            f"[default: {PENALTY}; private: from public numbers]",
            metavar="NAME",
        ),
        option("--loss", "Of a prediction.", metavar="[logistic|squared|huber|smoothed-hinge|sigmoid]"),
        click.option("--intercept/--no-intercept", default=True, show_default=True, help="Fit one, not penalised."),
        option("--max-iter", "Most passes.  [default: 1000; private: from public numbers]", type=int),
        option("--tol", "The KKT residual to reach.", type=float),
        option("--epsilon", "Fit privately, with this budget.  [default: not private]", type=float),
        option("--delta", "Of the budget.", type=float),
        option("--clip", "The most that one row's gradient counts.  [default: half its bound]", type=float),
        option("--step", "Of a private fit.", metavar="[lipschitz|noisy-bb]"),
        option("--adjacency", "What one neighbour changes.", metavar="[replace-one|add-remove]"),
        option("--public-rows", "For add-remove: the public number that sums are divided by.", type=int),
        option("--output", "The last iterate, or the mean of the second half.", metavar="[last|average]"),
        option("--noise-seed", "For tests: noise that can be drawn again.", type=int),
    ]
    return packed(command, SparseOptions, "fitting", options)


@click.command(short_help="Fit a model with few coefficients (iterative thresholding, MCP), privately or not.")
@click.argument("source", metavar="ROWS")
@click.option("--columns", type=NAMES, metavar="A,B,...", help="To learn from.  [default: all but the label]")
@row_options
@sparse_options
@ends
@output_options
@click.pass_obj
def sparse(
    terminal: Terminal,
    source: str,
    columns: tuple[str, ...] | None,
    reading: RowOptions,
    fitting: SparseOptions,
    certify: bool,
    report: bool,
    out: str,
) -> None:
    """Predict the label of ROWS from few of its columns.

    ROWS is a CSV or TSV file with one person a row, or adult, compas, german. With --epsilon the coefficients are
    differentially private; ranges and values of the columns must then be public: see --range. Rows are scaled to a norm
    of at most 1.

    Writes model.json, coefficients.csv, history.csv and report.html into the folder. A fit that did not converge
    writes them too, says so, and exits with 3.
    """
    if report:
        require_report_packages("give --no-report")
    folder = require_writable(out)
    fitting.check()
    rows = reading.load(source, columns, scaled=True, private=fitting.private)
    finish(terminal, study(terminal, rows, fitting, certify), folder, "sparse", report)
