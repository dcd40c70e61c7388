"""How a study ends: files, text, exit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cvxpriv.cli.crosscheck import crosscheck_document, crosscheck_text, unsound
from cvxpriv.cli.finish import conclude
from cvxpriv.cli.interrupts import Interrupt, watched
from cvxpriv.cli.outputs import Outputs
from cvxpriv.cli.studies.study import Study
from cvxpriv.cli.studies.text import heading, reported
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import Disagreement
from cvxpriv.reports.layout import paragraph, residual
from cvxpriv.solvers.registry import solver_spec

__all__ = ["crosschecked", "finish"]


def finish(terminal: Terminal, found: Study[Any], folder: Path, command: str, report: bool) -> None:
    """Write a study's files, show it, and end as it ended: see `conclude`."""
    conclude(terminal, found, _outputs(found, folder, report), command)


def _outputs(found: Study[Any], folder: Path, report: bool) -> Outputs:
    """Make everything ready before the first file is written."""
    outputs = Outputs(folder)
    if report:
        from cvxpriv.reports.page import render
        from cvxpriv.reports.pictures import image

        outputs.contents["report.html"] = render(found.report())
        if found.curve is not None:
            outputs.contents["curve.png"] = image(found.picture(), "png")
    if found.curve is not None:
        outputs.contents["curve.csv"] = found.curve.to_csv(index=False, lineterminator="\n")
    outputs.contents["history.csv"] = found.run.log.frame().to_csv(index=False, lineterminator="\n")
    outputs.contents["mechanism.json"] = found.run.as_mechanism().save
    return outputs


def crosschecked(
    terminal: Terminal,
    begin: Callable[[Interrupt], Study[Any]],
    solvers: tuple[str, ...],
    folder: Path | None,
    command: str,
) -> None:
    """Solve, cross-check every block at the answer, write ``crosscheck.csv`` if there is a folder, and show it.

    Raises
    ------
    Disagreement
        A verdict is WRONG or failed.
    NotConverged
        The run did not meet its tolerance.
    click.Abort
        The solve was interrupted.
    """
    names = tuple(solver_spec(name).name for name in solvers)
    with watched() as interrupt:
        found = begin(interrupt)
        if interrupt.pressed:
            raise click.Abort
        with terminal.phase(f"cross-checking by {', '.join(names)}"):
            check = found.run.certify(names)
    outputs = Outputs(folder or Path())
    if folder is not None:
        outputs.contents["crosscheck.csv"] = check.table.to_csv(index=False, lineterminator="\n")
    files = outputs.write()
    document = {"command": command, "converged": found.run.converged, "kkt": found.kkt}
    terminal.result({**document, **crosscheck_document(check), "files": files})
    terminal.say(heading(found))
    terminal.say(f"\nEvery block at the best of {reported(found)}, KKT residual {residual(found.kkt)} nats:\n")
    terminal.say(crosscheck_text(check))
    terminal.say("\n" + paragraph(f"Worst: {check.worst_offender}", indent="", hanging="  "))
    for file in files:
        terminal.say(f"Written to {file}")
    if bad := unsound(check):
        raise Disagreement(f"{len(bad)} of {len(check.table)} answers are refused: {'; '.join(bad)}")
    found.raise_if_not_converged()
