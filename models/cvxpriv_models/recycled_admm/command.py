"""`cvxpriv consensus`."""

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

from .fit_options import ConsensusOptions
from .public_defaults import GAUSSIAN, PURE
from .study import study

__all__ = ["consensus"]

#: The defaults of `posing`, in words.
PASSES = f"1000; private {PURE.passes}, with --delta {GAUSSIAN.passes}"

Command = TypeVar("Command", bound=Callable[..., Any])


def consensus_options(command: Command) -> Command:
    """Give a command the options of a fit; it gets them as one `ConsensusOptions`, ``fitting``."""

    def option(flag: str, text: str, **settings: Any) -> Callable[[Any], Any]:
        return field_option(ConsensusOptions, flag, text, **settings)

    options = [
        option("--nodes", "How many.  [default: what --graph or --node-column say, or 5]", type=int),
        option(
            "--graph",
            "complete, ring, path, star, each with :N or without; random[:N]:CHANCE of an edge; or a CSV file with "
            "one edge a line.",
            metavar="GRAPH",
        ),
        option(
            "--node-column",
            "Rows with the same value belong to the node of that name.  [default: dealt at random, by --seed]",
            metavar="COLUMN",
        ),
        option(
            "--method",
            "Of consensus; dvp is private alone.  [default: r-admm]",
            metavar="[r-admm|mr-admm|admm|m-admm|dvp]",
        ),
        option("--eta", "The penalty of ADMM on an edge.  [default: from the rows or public numbers]", type=float),
        option("--growth", "Of eta in each pass, for mr-admm and m-admm.", type=float),
        option("--gamma", "Of the even steps of r-admm and mr-admm; larger ones are shorter.", type=float),
        option("--max-iter", f"Most passes.  [default: {PASSES}]", type=int),
        option("--tol", "The relative KKT residual to reach, without privacy.", type=float),
        option("--reg", "Weight of the square of the coefficients.  [default: from --weight]", type=float),
        option("--weight", "C, the weight of a node's mean loss.  [default: rows of the smallest node]", type=float),
        option("--loss", "Of a prediction.", metavar="[logistic|squared|huber|smoothed-hinge]"),
        click.option("--intercept/--no-intercept", default=True, show_default=True, help="Fit one."),
        option("--epsilon", "Fit privately, with this budget for all passes.  [default: not private]", type=float),
        option("--delta", "Of the budget.  [default: none, a pure epsilon]", type=float),
        option("--alpha", "Rate of the noise, in place of --epsilon.", type=float),
        option(
            "--perturbation",
            "Where the noise goes.  [default: output with --delta, else objective]",
            metavar="[objective|output]",
        ),
        option("--noise-seed", "For tests: noise that can be drawn again.", type=int),
    ]
    return packed(command, ConsensusOptions, "fitting", options)


@click.command(short_help="Fit a model whose rows are split among nodes of a graph (R-ADMM), privately or not.")
@click.argument("source", metavar="ROWS")
@click.option("--columns", type=NAMES, metavar="A,B,...", help="To learn from.  [default: all but the label]")
@row_options
@consensus_options
@ends
@output_options
@click.pass_obj
def consensus(
    terminal: Terminal,
    source: str,
    columns: tuple[str, ...] | None,
    reading: RowOptions,
    fitting: ConsensusOptions,
    certify: bool,
    report: bool,
    out: str,
) -> None:
    """Predict the label of ROWS, which stay with the nodes of a graph: neighbours exchange coefficients.

    ROWS is a CSV or TSV file with one person a row, or adult, compas, german. With --epsilon what the nodes publish is
    differentially private; ranges and values of the columns must then be public: see --range. Rows are scaled to a
    norm of at most 1.

    Writes model.json, coefficients.csv, history.csv and report.html into the folder. A fit that did not converge
    writes them too, says so, and exits with 3.
    """
    if report:
        require_report_packages("give --no-report")
    folder = require_writable(out)
    fitting.check()
    rows = reading.load(source, columns, scaled=True, private=fitting.private, beside=fitting.node_column)
    finish(terminal, study(terminal, rows, fitting, certify), folder, "consensus", report)
