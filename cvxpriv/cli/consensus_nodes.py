"""`cvxpriv consensus --nodes nodes.toml`: the coordinator's side of a fit over nodes that are apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import ModelError
from cvxpriv.reports.facts import Facts

_ABOUT = """Fit a model whose rows and labels are with the nodes of a graph, each in a process of its own.

\b
listen = "0.0.0.0:8815"
keys = "team/coordinator"
nodes = ["hospital-a", "hospital-b", "hospital-c"]
wait = 60

FILE.toml says this; its paths are relative to it, and `wait` may be left out. Each node dials in with
`cvxpriv party serve TABLE.csv --model RecycledADMM --holder coordinator`, and `--exact` or `--epsilon`. This process
keeps the clock, and brings what a node sends to its neighbours alone; messages.csv has every message and every edge. A
node that is lost for `wait` seconds ends the run; the last state is then in state.npz. With --epsilon every node draws
its own noise, and keeps its own ledger."""
#: Options of the model that this command has.
_OWN = ("loss", "penalty", "reg", "C", "method", "tol", "max_iter", "eta", "growth", "eta_cap", "gamma", "variant")
_PRIVATE = ("epsilon", "delta", "alpha", "perturbation", "budget", "row_bound", "node_tol")
_POSED = ("loss", "penalty", "reg", "C")

#: Bound of a row that `cvxpriv party serve` encodes: columns to a norm of 1, and one of ones for the intercept.
ROW_BOUND = 2.0**0.5


def nodes_command(kind: Any) -> click.Command:
    """Return ``cvxpriv NAME --nodes FILE.toml`` of a model."""
    found = {one.name: one for one in on_the_command_line(kind.solve_private, kind.solve, kind.__init__)}
    parameters = [replace(found[name], default=None) for name in (*_OWN, *_PRIVATE)]

    def command(
        terminal: Terminal,
        nodes: str,
        graph: str,
        positive: str | None,
        report: bool,
        page: str,
        out: str,
        **given: Any,
    ) -> None:
        if report:
            require_report_packages("give --no-report")
        asked = {name: value for name, value in given.items() if value is not None}
        for name in asked:
            found[name].check(asked[name])
        facts = _fit(terminal, kind, nodes, graph, positive, asked, Path(require_writable(out)))
        finish(terminal, facts, Path(out), f"{kind.command} --nodes", page if report else None)

    options = [
        click.option("--nodes", required=True, metavar="FILE.toml", help="The nodes, the address, the keys."),
        click.option("--graph", default="complete", show_default=True, help="ring, path ..., or a file of edges."),
        click.option("--positive", metavar="VALUE", help="What the nodes call class 1.  [default: 1]"),
        lambda wrapped: with_options(wrapped, parameters),
        *endings(),
    ]
    return made(kind.command, command, options, "Fit over nodes that are apart.", _ABOUT)


def _fit(
    terminal: Terminal,
    kind: Any,
    path: str,
    graph: str,
    positive: str | None,
    asked: Mapping[str, Any],
    folder: Path,
) -> Facts:
    """Return the facts of a fit, with its files."""
    from cvxpriv.distributed.flight_holder import FlightHolder
    from cvxpriv.distributed.keys import keys_in

    apart = resolve_name(kind.apart)
    private = "epsilon" in asked or "alpha" in asked
    if stray := [name for name in (("tol",) if private else _PRIVATE) if name in asked]:
        flag = stray[0].replace("_", "-")
        raise ModelError(f"--{flag} goes {'without' if private else 'with'} --epsilon or --alpha: leave one out")
    said = entries_of(path, "nodes", ("keys", "listen"), f"cvxpriv {kind.command} --nodes x.toml")
    home, names = Path(path).parent, tuple(said["nodes"])
    posed = {name: value for name, value in asked.items() if name in _POSED}
    solving = {name: value for name, value in asked.items() if name not in _POSED}
    classes = np.array([-1.0, 1.0]) if positive is None else np.array([f"not {positive}", positive])
    wait = float(said.get("wait", 60.0))
    carrier = FlightHolder(said["listen"], keys_in(home / said["keys"]), names, apart.spoken, wait)

    def fit(**watching: Any) -> Any:
        posed_fit = apart(carrier, graph, classes=classes, **posed)
        if private:
            return posed_fit.solve_private(**{"row_bound": ROW_BOUND, **solving}, **watching)
        return posed_fit.solve(**solving, **watching)

    run, facts = fitted(terminal, carrier, folder, fit)
    return replace(facts, files={"model.json": run.save})
