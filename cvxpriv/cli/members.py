"""The side of a fit that waits for parties or nodes in processes of their own: its file, and the run itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cvxpriv.cli.interrupts import watched
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import DataError
from cvxpriv.reports.facts import Facts
from cvxpriv.reports.files import read_document, write_text
from cvxpriv.reports.spreadsheets import csv_text

if TYPE_CHECKING:
    from cvxpriv.distributed.flight_holder import FlightHolder


def entries_of(path: str, members: str, texts: tuple[str, ...], command: str) -> dict[str, Any]:
    """Return the entries of a TOML file that lists the members of a run: texts, the members, and `wait`."""
    said = read_document(path, f"a {members} file in TOML")
    kinds: dict[str, Any] = {**dict.fromkeys(texts, str), members: list, "wait": (int, float)}
    if stray := sorted(set(said) - set(kinds)):
        raise DataError(f"{path}: {stray[0]!r} is no entry of a {members} file, which has {', '.join(kinds)}")
    for name, kind in kinds.items():
        missing = name not in said and name not in ("identifier", "wait")
        if missing or (name in said and not isinstance(said[name], kind)):
            raise DataError(f"{path}: {name} is missing or malformed: `{command} --help` has one")
    names = said[members]
    if not names or len(set(map(str, names))) < len(names) or not all(isinstance(name, str) for name in names):
        raise DataError(f"{path}: {members} must list distinct names, as `cvxpriv keys add` made them")
    return dict(said)


def fitted(terminal: Terminal, carrier: FlightHolder, folder: Path, fit: Callable[..., Any]) -> tuple[Any, Facts]:
    """Wait for the members, fit, and end their processes; return the run, and its facts with messages and history.

    `fit`: Takes the file of the last state, and a callback by which an interrupt ends it. Where it fails, the log of
    messages is written all the same.
    """
    place, how = f"at {carrier.address} for {', '.join(carrier.names)}", "failed"
    try:
        with watched() as interrupt, terminal.phase(f"waiting {place}"):
            terminal.say(f"Listening {place}.")
            run = fit(save=folder / "state.npz", callback=lambda *_: interrupt.pressed)
        how = "done"
    finally:
        carrier.close(how)
        if how == "failed":
            write_text(folder / "messages.csv", csv_text(carrier.log.frame()))
    tables = {"messages": carrier.log.frame(), "history": run.history.drop(columns="seconds", errors="ignore")}
    return run, replace(run.facts, tables=tables)
