"""How a command that learns works through its fit and ends: cross-check, files, text, exit."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from cvxpriv.cli.finish import conclude
from cvxpriv.cli.fits.fit import Fit
from cvxpriv.cli.interrupts import Interrupt, watched
from cvxpriv.cli.outputs import Outputs
from cvxpriv.cli.terminal import Terminal
from cvxpriv.reports.files import read_text, write_text
from cvxpriv.solvers.silence import solvers_silent

__all__ = ["ends", "finish", "worked"]

Kind = TypeVar("Kind", bound=Fit)
Command = TypeVar("Command", bound=Callable[..., Any])

SOLVERS = ("CLARABEL", "ECOS", "SCS")


def worked(
    terminal: Terminal,
    begin: Callable[[Interrupt], Kind],
    compare: Callable[[Kind], None] | None,
    certify: bool,
) -> Kind:
    """Fit (`begin`), then what is asked for: other models to compare with, and the cross-check.

    A keyboard interrupt ends the work and leaves what there is.

    Raises
    ------
    KeyboardInterrupt
        Before there was any fit.
    """
    with watched() as interrupt:
        fit = begin(interrupt)
        with contextlib.suppress(KeyboardInterrupt):
            if compare is not None and not interrupt.pressed:
                with terminal.phase("fitting what it is compared with"):
                    compare(fit)
            if certify and not interrupt.pressed:
                with terminal.phase(f"cross-checking by {', '.join(SOLVERS)}"), solvers_silent():
                    fit.check = fit.run.certify(SOLVERS)
        fit.interrupted = interrupt.pressed
    return fit


def ends(command: Command) -> Command:
    """Give a command the options of how it ends: ``certify``, ``report``, ``out``."""
    options = [
        click.option(
            "--certify/--no-certify", default=True, show_default=True, help="Cross-check the blocks by every solver."
        ),
        click.option("--report/--no-report", default=True, show_default=True, help="Write report.html."),
        click.option("--out", default="out", show_default=True, metavar="FOLDER", help="Where the files go."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def finish(terminal: Terminal, fit: Fit, folder: Path, command: str, report: bool) -> None:
    """Write a fit's files, show it, and end as it ended: see `conclude`."""
    conclude(terminal, fit, _outputs(fit, folder, report), command)


def _outputs(fit: Fit, folder: Path, report: bool) -> Outputs:
    """Make everything ready before the first file is written."""
    outputs = Outputs(folder)
    if report:
        from cvxpriv.reports.page import render

        outputs.contents["report.html"] = render(fit.report())
    if fit.shows_coefficients:
        outputs.contents["coefficients.csv"] = fit.coefficients.to_csv(index=False, lineterminator="\n")
    outputs.contents["history.csv"] = fit.history.to_csv(index=False, lineterminator="\n")
    outputs.contents["model.json"] = lambda path: _with_encoding(fit, path)
    return outputs


def _with_encoding(fit: Fit, path: Path) -> Path:
    """Write the run as its model saves it, with how its rows were encoded beside it."""
    with tempfile.TemporaryDirectory() as folder:
        document = json.loads(read_text(fit.save(Path(folder) / "run.json")))
    return write_text(path, json.dumps({**document, "rows": fit.rows.document()}))
