"""`cvxpriv sharing`."""

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

from .fit_data import LAM, PRIVATE_LAM, SharingOptions
from .study import columns_of, study

__all__ = ["sharing"]

Command = TypeVar("Command", bound=Callable[..., Any])


def sharing_options(command: Command) -> Command:
    """Give a command the options of a fit; it gets them as one `SharingOptions`, ``fitting``."""

    def option(flag: str, text: str, **settings: Any) -> Callable[[Any], Any]:
        return field_option(SharingOptions, flag, text, **settings)

    options = [
        option(
            "--lam",
            f"Weight of the penalty; the loss is summed.  [default: {LAM:g}; private {PRIVATE_LAM:g}]",
            type=float,
        ),
        option("--loss", "Of a prediction.", metavar="[logistic|squared|huber|hinge|smoothed-hinge|sigmoid]"),
        option("--penalty", "Such as l2, l1:0.5, elastic-net:1:0.5, nonneg.", metavar="NAME"),
        click.option("--intercept/--no-intercept", default=True, show_default=True, help="Fit one."),
        option("--rho", "The penalty of ADMM.  [default: what suits the loss]", type=float),
        option("--method", "Who takes over which gap.", metavar="[averaged|gauss_seidel|proximal_jacobi|printed]"),
        option("--max-iter", "Most passes.  [default: 1000; private 4]", type=int),
        option("--tol", "The relative KKT residual to reach.", type=float),
        option("--epsilon", "Fit privately, with this budget.  [default: not private]", type=float),
        option("--delta", "Of the budget.", type=float),
        option("--adjacency", "What one neighbour changes.", metavar="[replace-one|party-row|column|cell]"),
        option(
            "--labels",
            "Known to all parties, or flipped at random by the one that holds them.",
            metavar="[shared|held]",
        ),
        option("--clip", "Clip the norm of a share.", type=float),
        option("--clip-entries", "Clip each value of a share.  [default: 2 for two classes]", type=float),
        click.option(
            "--not-private",
            is_flag=True,
            help="Write the coefficients of a private fit too, which its guarantee does not cover.",
        ),
        option("--noise-seed", "For tests: noise that can be drawn again.", type=int),
    ]
    return packed(command, SharingOptions, "fitting", options)


@click.command(short_help="Fit a model whose columns are split among parties (ADMM sharing), privately or not.")
@click.argument("source", metavar="ROWS")
@click.option("--party", "parties", type=NAMES, multiple=True, metavar="A,B,...", help="A party's columns; repeat.")
@row_options
@sharing_options
@ends
@output_options
@click.pass_obj
def sharing(
    terminal: Terminal,
    source: str,
    parties: tuple[tuple[str, ...], ...],
    reading: RowOptions,
    fitting: SharingOptions,
    certify: bool,
    report: bool,
    out: str,
) -> None:
    """Predict the label of ROWS from columns that parties hold and do not show: each shares one value a row.

    ROWS is a CSV or TSV file with one person a row, or adult, compas, german. With --epsilon what the parties send
    each other is differentially private; ranges and values of the columns must then be public: see --range.

    Writes model.json, coefficients.csv, history.csv and report.html into the folder. A fit that did not converge
    writes them too, says so, and exits with 3.
    """
    if report:
        require_report_packages("give --no-report")
    folder = require_writable(out)
    fitting.check()
    columns = columns_of(parties)
    rows = reading.load(source, columns, scaled=False, private=fitting.private)
    finish(terminal, study(terminal, rows, parties, fitting, certify), folder, "sharing", report)
