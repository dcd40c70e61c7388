"""`cvxpriv demo`: the whole way on an embedded real table, in under a minute."""

from dataclasses import dataclass

import click

from cvxpriv import models
from cvxpriv.cli.options import output_options, require_report_packages, require_writable
from cvxpriv.cli.results import Results
from cvxpriv.cli.terminal import Terminal
from cvxpriv.reports.readers import INTERNAL

MODEL = "PrivacyFunnel"


@dataclass(frozen=True)
class Effort:
    """The effort that a table's size allows in a minute on two cores; rates are fractions of H(X)."""

    starts: int | None
    curve: int | tuple[float, ...]
    solvers: tuple[str, ...]
    note: str = ""
    rate: float = 0.6


EFFORTS = {
    "heart-failure": Effort(starts=None, curve=20, solvers=("CLARABEL", "ECOS", "SCS")),
    "adult": Effort(
        starts=None,
        curve=(0.7, 0.8, 0.9, 1.0),
        solvers=("CLARABEL", "ECOS"),
        note="10 x 160 cells: no random starts, 4 rates, and no SCS, which takes a minute for one block of this size",
        rate=0.8,
    ),
}


@click.command()
@click.option(
    "--table",
    type=click.Choice(sorted(EFFORTS, reverse=True)),
    default="heart-failure",
    show_default=True,
    help="Name of the embedded table.",
)
@click.option("--out", default="out", show_default=True, metavar="FOLDER", help="Folder for the files.")
@output_options
@click.pass_obj
def demo(terminal: Terminal, table: str, out: str) -> None:
    """Draw the privacy-utility curve of a real table, design a mechanism, and cross-check every block of it.

    The mechanism keeps 0.6 of H(X), 0.8 for Adult. Every solver and the exact update check each block of the answer.

    Writes report.html, curve.png, mechanism.json, history.csv and tables as CSV into the folder.
    """
    from cvxpriv.cli.mechanism_command import Asked, design
    from cvxpriv.cli.results import finish
    from cvxpriv.solvers.registry import among_installed
    from cvxpriv.tables.datasets import SOURCES, joint_table

    require_report_packages('use "cvxpriv funnel --no-report"')
    results = Results(require_writable(out), INTERNAL)
    effort = EFFORTS[table]
    if effort.note:
        terminal.say(f"{effort.note}\n")
    model = models.available()[MODEL].load()(joint_table(table), rate=effort.rate)
    solving = {"starts": effort.starts, "seed": 0, "n_jobs": 1, "max_iter": None}
    asked = Asked(solving, effort.curve, crosscheck=True, solvers=among_installed(*effort.solvers))
    finish(terminal, design(terminal, model, SOURCES[table].title, asked), results, "demo")
