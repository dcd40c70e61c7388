"""`cvxpriv sharing --parties parties.toml`: the label holder's side of a fit across parties."""

from collections.abc import Callable
from typing import Any

import click
import numpy as np

from cvxpriv.cli.members import MembersFile, Side
from cvxpriv.cli.options import Reading
from cvxpriv.cli.party_table import hashed
from cvxpriv.cli.row_labels import blind_labels, labels_found
from cvxpriv.errors import DataError
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
PRIVATE_LAM = 30.0


def _posed(file: MembersFile, private: bool, given: dict[str, Any]) -> Callable[[Any, Any], Any]:
    from cvxpriv.distributed.keys import keys_in

    label, positive = given.pop("label"), given.pop("positive", None)
    frame, secret = Reading().rows(str(file.path("table")), private), keys_in(file.path("keys")).alignment
    require_columns(frame, [label], "label")
    labels, classes, there = (blind_labels if private else labels_found)(frame[label], positive, None)
    if not there.all():
        raise DataError(f"column {label!r} has missing labels: leave those rows out")
    rows = {"digests": hashed(frame, file.said.get("identifier"), secret), "classes": np.array(classes)}
    posed = {"lam": PRIVATE_LAM if private else 1.0, **given}
    return lambda apart, carrier: apart(carrier, labels, **rows, **posed)


PARTIES = Side(
    members="parties",
    texts=("table", "identifier"),
    posed=("loss", "penalty", "lam"),
    solved=("tol", "max_iter", "rho", "clip", "clip_entries", "labels"),
    private=("epsilon", "delta", "adjacency", "budget"),
    rates=("epsilon",),
    options=[
        click.option("--label", required=True, metavar="COLUMN", help="Name of the column to predict."),
        click.option("--positive", metavar="VALUE", help="The value that is class 1."),
        click.option("--intercept/--no-intercept", default=True, help="Whether the model has an intercept."),
    ],
    pose=_posed,
    short="Fit across parties.",
    about=_ABOUT,
    usual={"delta": 1e-6, "adjacency": "replace-one"},
)
