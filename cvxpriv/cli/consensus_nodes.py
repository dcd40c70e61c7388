"""`cvxpriv consensus --nodes nodes.toml`: the coordinator's side of a fit over nodes that are apart."""

from collections.abc import Callable
from typing import Any

import click
import numpy as np

from cvxpriv.cli.members import MembersFile, Side

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

#: Bound of a row that `cvxpriv party serve` encodes: columns to a norm of 1, and one of ones for the intercept.
ROW_BOUND = 2.0**0.5


def _posed(file: MembersFile, private: bool, given: dict[str, Any]) -> Callable[[Any, Any], Any]:
    positive = given.pop("positive", None)
    classes = np.array([-1.0, 1.0] if positive is None else [f"not {positive}", positive])
    return lambda apart, carrier: apart(carrier, classes=classes, **given)


NODES = Side(
    members="nodes",
    texts=(),
    posed=("loss", "penalty", "reg", "C"),
    solved=("method", "tol", "max_iter", "eta", "growth", "eta_cap", "gamma", "variant"),
    private=("epsilon", "delta", "alpha", "perturbation", "budget", "row_bound", "node_tol"),
    rates=("epsilon", "alpha"),
    options=[
        click.option("--graph", default="complete", show_default=True, help="ring, path ..., or a file of edges."),
        click.option("--positive", metavar="VALUE", help="What the nodes call class 1.  [default: 1]"),
    ],
    pose=_posed,
    short="Fit over nodes that are apart.",
    about=_ABOUT,
    usual={"row_bound": ROW_BOUND},
    has_model=True,
)
