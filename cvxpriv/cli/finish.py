"""How a command ends that made something: its files, its text, its exit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import click

from cvxpriv.certify.check import CrossCheck
from cvxpriv.cli.crosscheck import crosscheck_document
from cvxpriv.cli.outputs import Outputs
from cvxpriv.cli.terminal import Terminal

__all__ = ["conclude"]


class Found(Protocol):
    """What a command found, whatever it is."""

    check: CrossCheck | None
    interrupted: bool

    def document(self) -> Mapping[str, object]:
        """Return it as JSON holds it."""

    def text(self) -> str:
        """Return what the terminal says."""

    def raise_if_not_converged(self) -> None:
        """Raise NotConverged where the tolerance was missed."""


def conclude(terminal: Terminal, found: Found, outputs: Outputs, command: str) -> None:
    """Write the files of what was found, show it, and end as it ended.

    Raises
    ------
    NotConverged
        After the files are written.
    click.Abort
        The work was interrupted; the files hold what there was.
    """
    files, folder = outputs.write(), outputs.folder
    check = None if found.check is None else crosscheck_document(found.check)
    terminal.result({"command": command, **found.document(), "crosscheck": check, "files": files})
    terminal.say(found.text())
    terminal.say(f"\nWritten to {folder}/: {', '.join(file.name for file in files)}")
    if found.interrupted:
        terminal.warn(f"interrupted: {folder}/ holds what was ready")
        raise click.Abort
    found.raise_if_not_converged()
