"""`cvxpriv sharing --parties parties.toml`: the label holder's side of a fit across parties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click
import numpy as np

from cvxpriv.cli.declared import made, on_the_command_line, with_options
from cvxpriv.cli.finish import finish
from cvxpriv.cli.members import entries_of, fitted
from cvxpriv.cli.options import endings
from cvxpriv.cli.outputs import require_report_packages, require_writable
from cvxpriv.cli.party_table import hashed
from cvxpriv.cli.preparation import read_rows
from cvxpriv.cli.row_labels import blind_labels, labels_found
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import DataError, ModelError
from cvxpriv.reports.facts import Facts
from cvxpriv.tables.frames import require_columns

_ABOUT = """Fit a model whose columns are with parties in processes of their own; this process has the labels.

\b
table = "labels.csv"
identifier = "patient"
listen = "0.0.0.0:8815"
keys = "team/label-holder"
parties = ["hospital-a", "hospital-b"]
wait = 60

FILE.toml says this; its paths are relative to it, and `identifier` and `wait` may be left out. Each party dials in with
`cvxpriv party serve`. What crosses is logged in messages.csv. A party that is lost for `wait` seconds ends the run; the
last state is then in state.npz."""
#: Options of the model that this command has, and the defaults of a private fit.
_OWN = ("loss", "penalty", "lam", "tol", "max_iter", "rho", "clip", "clip_entries", "labels")
_BUDGET = ("epsilon", "delta", "adjacency", "budget")
PRIVATE = {"delta": 1e-6, "adjacency": "replace-one"}
PRIVATE_LAM = 30.0


@dataclass(frozen=True)
class Plan:
    """The content of a parties file.

    Attributes
    ----------
    table, keys : path
    listen : str
    parties : tuple of str
    identifier : str, optional
    wait : float
    """

    table: Path
    keys: Path
    listen: str
    parties: tuple[str, ...]
    identifier: str | None = None
    wait: float = 60.0

    @classmethod
    def load(cls, path: str) -> Plan:
        """Return the plan of a TOML file.

        Raises
        ------
        DataError
        """
        said = entries_of(path, "parties", ("table", "keys", "listen", "identifier"), "cvxpriv sharing --parties x")
        names = said["parties"]
        home = Path(path).parent
        return cls(
            home / said["table"],
            home / said["keys"],
            said["listen"],
            tuple(names),
            said.get("identifier"),
            float(said.get("wait", 60.0)),
        )


def parties_command(kind: Any) -> click.Command:
    """Return ``cvxpriv NAME --parties FILE.toml`` of a model."""
    found = {one.name: one for one in on_the_command_line(kind.solve_private, kind.solve, kind.__init__)}
    parameters = [found[name] for name in (*_BUDGET, *_OWN)]
    parameters = [replace(one, default=None) for one in parameters]

    def command(
        terminal: Terminal,
        parties: str,
        label: str,
        positive: str | None,
        report: bool,
        page: str,
        out: str,
        **given: Any,
    ) -> None:
        if report:
            require_report_packages("give --no-report")
        folder, plan = require_writable(out), Plan.load(parties)
        asked = {name: value for name, value in given.items() if value is not None}
        for name in (name for name in asked if name in found):
            found[name].check(asked[name])
        facts = _fit(terminal, kind, plan, label, positive, asked, folder)
        finish(terminal, facts, folder, f"{kind.command} --parties", page if report else None)

    options = [
        click.option("--parties", required=True, metavar="FILE.toml", help="The parties, the table, the keys."),
        click.option("--label", required=True, metavar="COLUMN", help="Name of the column to predict."),
        click.option("--positive", metavar="VALUE", help="The value that is class 1."),
        click.option("--intercept/--no-intercept", default=True, help="Whether the model has an intercept."),
        lambda wrapped: with_options(wrapped, parameters),
        *endings(),
    ]
    return made(kind.command, command, options, "Fit across parties.", _ABOUT)


def _fit(
    terminal: Terminal,
    kind: Any,
    plan: Plan,
    label: str,
    positive: str | None,
    asked: Mapping[str, Any],
    folder: Path,
) -> Facts:
    """Return the facts of a fit, with its files."""
    from cvxpriv.distributed.flight_holder import FlightHolder
    from cvxpriv.distributed.keys import keys_in

    private = "epsilon" in asked
    if stray := [name for name in (_BUDGET[1:] if not private else ("tol",)) if name in asked]:
        raise ModelError(f"--{stray[0]} goes {'without' if private else 'with'} --epsilon: leave one out")
    keys = keys_in(plan.keys)
    frame = read_rows(str(plan.table), None, None, None)
    require_columns(frame, [label], "label")
    found = blind_labels(frame[label], positive, None) if private else labels_found(frame[label], positive, None)
    if not found[2].all():
        raise DataError(f"column {label!r} has missing labels: leave those rows out")
    apart = resolve_name(kind.apart)
    posed = {name: asked[name] for name in ("loss", "penalty", "lam", "intercept") if name in asked}
    posed = {"lam": PRIVATE_LAM if private else 1.0, **posed}
    solving = {name: value for name, value in asked.items() if name not in posed}
    carrier = FlightHolder(plan.listen, keys, plan.parties, apart.spoken, plan.wait)

    def fit(**watching: Any) -> Any:
        posed_fit = apart(
            carrier,
            found[0],
            digests=hashed(frame, plan.identifier, keys.alignment),
            classes=np.array(found[1]),
            **posed,
        )
        if private:
            return posed_fit.solve_private(**{**PRIVATE, **solving}, **watching)
        return posed_fit.solve(**solving, **watching)

    run, facts = fitted(terminal, carrier, folder, fit)
    return replace(facts, files={"model.json": run.save} if private else {})
