"""Twenty nodes of a graph, each a process of its own, and twenty kills at random: none gives a wrong model."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from cvxpriv_models.recycled_admm.apart import ConsensusApart
from cvxpriv_models.recycled_admm.apart_messages import SPOKEN

from cvxpriv.distributed.carriers import HOLDER
from cvxpriv.distributed.checkpoint import read_checkpoint
from cvxpriv.distributed.flight_holder import FlightHolder
from cvxpriv.distributed.keys import add_member, create_team, keys_in
from cvxpriv.models import RecycledADMM
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import GaussianNoise, Noise

NODES = tuple(f"n{node}" for node in range(20))
GRAPH = nx.relabel_nodes(nx.circulant_graph(20, [1, 2]), lambda node: f"n{node}")
#: A process that imports once, and forks a node for each line that it reads; it answers with the node's number.
NURSERY = """
import os, sys
from cvxpriv.cli import main
import cvxpriv.cli.party_table, cvxpriv.distributed.flight_party, cvxpriv_models.recycled_admm.apart
for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            main(line.split())
        except SystemExit as ended:
            os._exit(ended.code or 0)
    print(child, flush=True)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""


class Nodes:
    """Processes of `cvxpriv party serve`, each of which is started again when it is killed."""

    def __init__(self, folder: Path, options: list[str]) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command, pipe = [sys.executable, "-c", NURSERY], subprocess.PIPE
        self.nursery = subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, text=True)
        self.options, self.running, self.killers = options, dict[str, int](), list[threading.Timer]()

    def start(self, name: str) -> None:
        assert self.nursery.stdin is not None
        assert self.nursery.stdout is not None
        own = ["party", "serve", f"{name}.csv", "--keys", f"team/{name}", "--out", name, "--quiet"]
        self.nursery.stdin.write(" ".join([*own, *self.options]) + "\n")
        self.nursery.stdin.flush()
        self.running[name] = int(self.nursery.stdout.readline())

    def kill(self, name: str) -> None:
        gone = os.pidfd_open(self.running[name])
        os.kill(self.running[name], signal.SIGKILL)
        select.select([gone], [], [])  # on a busy machine it holds its folder for a moment more
        os.close(gone)
        self.start(name)

    def kill_later(self, name: str, delay: float) -> None:
        self.killed()
        self.killers.append(threading.Timer(delay, self.kill, (name,)))
        self.killers[-1].start()

    def killed(self) -> None:
        for killer in self.killers:
            killer.join()

    def ended(self) -> None:
        """Wait for all nodes; one that failed had its folder without the files that are asserted below."""
        assert self.nursery.stdin is not None
        self.nursery.stdin.close()
        assert self.nursery.wait(120) == 0


#: A message that carries nothing: a node that waited long, on a busy machine, asks again.
EMPTY = {"poll"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    create_team(tmp_path / "team")
    rng = np.random.default_rng(0)
    for name in ("coordinator", *NODES):
        add_member(tmp_path / "team", name)
    for name in NODES:
        x = rng.uniform(size=(60, 3)).round(3)
        ill = np.where(x @ [2.0, -1.0, 0.5] + 0.2 * rng.normal(size=60) > 0.7, "yes", "no")
        pd.DataFrame({"u": x[:, 0], "v": x[:, 1], "w": x[:, 2], "ill": ill}).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    return tmp_path


def shards_of(folder: Path) -> dict[str, tuple[Array, Array]]:
    """The rows as `party serve` encodes them: divided by the root of three columns, and a column of ones."""
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in NODES}
    ones = np.ones((60, 1))
    return {
        name: (
            np.hstack([table[["u", "v", "w"]].to_numpy() / np.sqrt(3.0), ones]),
            np.where(table["ill"] == "yes", 1.0, -1.0),
        )
        for name, table in tables.items()
    }


def fit(folder: Path, options: list[str], passes: int, solve: str, **given: Any) -> tuple[Any, FlightHolder]:
    """Fit over twenty processes, of which one is killed in each of twenty passes, at a random moment of it."""
    rng = random.Random(0)
    holder = FlightHolder("127.0.0.1:0", keys_in(folder / "team" / "coordinator"), NODES, SPOKEN, wait=200.0)
    ranges = ["--range", "u:0:1", "--range", "v:0:1", "--range", "w:0:1", "--label", "ill", "--positive", "yes"]
    joining = ["--join", holder.address, "--holder", "coordinator", "--model", "RecycledADMM", "--wait", "200"]
    nodes = Nodes(folder, [*joining, *ranges, *options])
    doomed = set(rng.sample(range(1, passes), 20))

    def watch(loop: str, iteration: int, measured: Any) -> None:
        if iteration in doomed:
            nodes.kill_later(rng.choice(NODES), rng.uniform(0.0, 0.1))

    for name in NODES:
        nodes.start(name)
    how = "failed"
    try:
        model = ConsensusApart(holder, GRAPH, reg=1.0)
        run = getattr(model, solve)(max_iter=passes, callback=watch, **given)
        how = "done"
    finally:
        nodes.killed()
        holder.close(how)
        nodes.ended()
    assert sum(entry.kind == "hello" for entry in holder.log.entries) > 30  # some kills meet a node that starts
    log = holder.log.frame()
    edges = log[(log["sender"] != HOLDER) & (log["receiver"] != HOLDER)]
    assert set(zip(edges["sender"], edges["receiver"], strict=True)) == set(GRAPH.to_directed().edges)
    assert set(log["kind"][log["receiver"] == HOLDER]) - EMPTY <= {kind for kind, _, _ in SPOKEN.statement("party")}
    return run, holder


@pytest.mark.slow
def test_twenty_kills_of_exact_nodes_leave_the_bits_of_one_process(folder: Path) -> None:
    run, _ = fit(folder, ["--exact"], 40, "solve", tol=1e-30)
    here = RecycledADMM(GRAPH, shards_of(folder), reg=1.0).solve(accelerate="none", max_iter=40, tol=1e-30)
    assert all(run.state[name].tobytes() == here.state[name].tobytes() for name in ("f", "odd", "dual", "loss", "eta"))
    for name, own in zip(NODES, run.parameters, strict=True):
        found = read_checkpoint(folder / name / "checkpoint.bin")
        assert found is not None
        assert found.arrays["odd"][:4].tobytes() == own.tobytes()


@pytest.mark.slow
def test_twenty_kills_of_private_nodes_release_each_pass_once_and_rightly(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large budget leaves so little noise that the minimiser of a node with a wrong state would stand out."""
    given: dict[str, Any] = {"epsilon": 1e4, "delta": 1e-6, "row_bound": 2.0**0.5}
    options = ["--epsilon", "1e4", "--delta", "1e-6"]
    run, holder = fit(folder, options, 25, "solve_private", **given)
    assert run.accounting.secure
    assert run.accounting.releases == 25  # each touches the records of one node
    kinds = [entry.kind for entry in holder.log.entries if entry.sender in NODES and entry.receiver == HOLDER]
    assert set(kinds) - EMPTY == {"hello", "agreed", "released", "reused"}
    assert kinds.count("released") == 500
    for place, name in enumerate(NODES):
        ledger = json.loads((folder / name / "ledger.json").read_text())
        assert [entry["iteration"] for entry in ledger] == list(range(1, 26))
        found = read_checkpoint(folder / name / "checkpoint.bin")
        assert found is not None
        assert found.arrays["odd"][:4].tobytes() == run.released[-1, place].tobytes()

    drawn = iter(run.released.reshape(-1, 4))
    scores: list[Array] = []

    def replayed(self: GaussianNoise, query: Array, noise: Noise) -> Array:
        """Give what the node released, and keep how far it is from the minimiser, in standard deviations."""
        released = next(drawn)
        scores.append((released - query) / self.scale)
        return np.asarray(released)

    monkeypatch.setattr(GaussianNoise, "release", replayed)
    again = RecycledADMM(GRAPH, shards_of(folder), reg=1.0).solve_private(max_iter=25, **given)
    assert again.history.to_numpy().tolist() == run.history.to_numpy().tolist()
    every = np.array(scores)
    assert np.abs(every).max() < 6.5  # of 2,000 normal numbers: probability 1.6e-7
    assert every.std() == pytest.approx(1.0, abs=0.1)  # six standard deviations of it
