"""`cvxpriv consensus --nodes` and `party serve --model RecycledADMM`: real processes, files, bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cvxpriv as cpv
from cvxpriv.cli.party_table import party_of, write_own
from cvxpriv.distributed.carriers import MessageLog
from cvxpriv.distributed.flight_party import serve
from cvxpriv.distributed.keys import keys_in
from cvxpriv.models import RecycledADMM

from .conftest import Run, one_error_line
from .test_parties import GIVEN, free_port

NODES = ("a", "b", "c")
NODE: dict[str, Any] = {
    **GIVEN,
    **{"identifier": None, "label": "ill", "positive": "yes", "intercept": True, "model_name": "RecycledADMM"},
    "ranges": ("age:0:100", "dose:0:1"),
}
SERVING = ("party", "serve", "a.csv", "--model", "RecycledADMM", "--join", "127.0.0.1:1", "--keys", "team/a", "--exact")
RANGES = ("--range", "age:0:100", "--range", "dose:0:1")


@pytest.fixture
def folder(tmp_path: Path, run: Run) -> Path:
    """Three nodes' tables, their keys, a path of edges, and the nodes file."""
    rng = np.random.default_rng(0)
    for name in NODES:
        x = rng.uniform(size=(40, 2))
        ill = x @ [2.0, -1.0] + 0.2 * rng.normal(size=40) > 0.5
        table = pd.DataFrame({"age": 100.0 * x[:, 0], "dose": x[:, 1], "ill": np.where(ill, "yes", "no")})
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "edges.csv").write_text("one,other\na,b\nb,c\n")
    assert run("keys", "init", "team").exit_code == 0
    for name in ("coordinator", *NODES):
        assert run("keys", "add", "team", name).exit_code == 0
    return tmp_path


def plan(folder: Path, **changes: Any) -> int:
    port = free_port()
    said = {"listen": f"127.0.0.1:{port}", "keys": "team/coordinator", "nodes": list(NODES), "wait": 20, **changes}
    (folder / "nodes.toml").write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in said.items()))
    return port


def expected(folder: Path, tol: float = 1e-4) -> Any:
    """The same fit in one process."""
    shards = {}
    for name in NODES:
        table = pd.read_csv(folder / f"{name}.csv")
        rows = np.column_stack([table["age"] / 100.0, table["dose"]]) / np.sqrt(2.0)
        shards[name] = (np.hstack([rows, np.ones((40, 1))]), np.where(table["ill"] == "yes", 1.0, -1.0))
    graph = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    return RecycledADMM(graph, list(shards.values()), reg=1.0).solve(accelerate="none", tol=tol)


def test_nodes_and_coordinator_fit_together(folder: Path, run: Run) -> None:
    port = plan(folder)
    threads = []
    for name in NODES:
        keys, log, home = keys_in(folder / "team" / name), MessageLog(), folder / f"node-{name}"
        role, features = party_of(str(folder / f"{name}.csv"), home, keys.alignment, **NODE)

        def work(
            role: Any = role, keys: Any = keys, log: Any = log, home: Any = home, features: Any = features
        ) -> None:
            serve(role, f"127.0.0.1:{port}", keys, holder="coordinator", wait=20.0, log=log)
            write_own(role, features, log, home)

        threads.append(threading.Thread(target=work))
        threads[-1].start()
    options = ("--graph", "edges.csv", "--positive", "yes", "--reg", "1", "--tol", "1e-4", "--no-report", "--json")
    result = run("consensus", "--nodes", "nodes.toml", *options)
    for thread in threads:
        thread.join()
    assert result.exit_code == 0, result.stderr
    together = expected(folder)
    for node, name in enumerate(NODES):
        own = pd.read_csv(folder / f"node-{name}" / "coefficients.csv")
        assert own["feature"].tolist() == ["age", "dose", "(intercept)"]
        factors = [2.0**-0.5, 2.0**-0.5, 1.0]  # rows were divided by the root of two columns; the file has 15 digits
        assert own["coefficient"].to_numpy() == pytest.approx(together.parameters[node] * factors, rel=1e-12)
    sent = pd.read_csv(folder / "out" / "messages.csv")
    edges = sent[(sent["sender"] != "holder") & (sent["receiver"] != "holder")]
    assert set(zip(edges["sender"], edges["receiver"], strict=True)) == {("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")}
    model = cpv.load(folder / "out" / "model.json")
    assert model.parameters.tobytes() == together.parameters.tobytes()
    assert set(model.predict([[0.5, 0.1, 1.0]])) <= {"yes", "not yes"}


def test_a_private_fit_says_what_was_released_and_each_node_keeps_its_ledger(folder: Path, run: Run) -> None:
    port = plan(folder)
    threads = []
    for name in NODES:
        keys, home = keys_in(folder / "team" / name), folder / f"node-{name}"
        given = {**NODE, "exact": False, "epsilon": 1.0, "delta": 1e-6}
        role, features = party_of(str(folder / f"{name}.csv"), home, keys.alignment, **given)

        def work(role: Any = role, keys: Any = keys, home: Any = home, features: Any = features) -> None:
            serve(role, f"127.0.0.1:{port}", keys, holder="coordinator", wait=20.0)
            write_own(role, features, MessageLog(), home)

        threads.append(threading.Thread(target=work))
        threads[-1].start()
    options = (
        "--graph",
        "edges.csv",
        "--positive",
        "yes",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--no-report",
        "--json",
    )
    result = run("consensus", "--nodes", "nodes.toml", *options)
    for thread in threads:
        thread.join()
    assert result.exit_code == 0, result.stderr
    model = cpv.load(folder / "out" / "model.json")
    assert model.accounting.epsilon == pytest.approx(1.0, rel=1e-6)  # the budget, to the margin of the noise's scale
    assert model.accounting.secure
    assert len(model.released) == 10
    for name in NODES:
        ledger = json.loads((folder / f"node-{name}" / "ledger.json").read_text())
        assert [entry["iteration"] for entry in ledger] == list(range(1, 11))
    assert "differentially private" in result.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--nodes", "nodes.toml", "--delta", "1e-6"), "--delta goes with --epsilon"),
        (("--nodes", "nowhere.toml"), "nowhere.toml"),
        (("--nodes", "nodes.toml", "--max-iter", "0"), "--max-iter=0"),
    ],
)
def test_what_is_wrong_is_one_line_before_any_node_is_waited_for(
    folder: Path, run: Run, options: tuple[str, ...], said: str
) -> None:
    plan(folder)
    assert said in one_error_line(run("consensus", *options))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (RANGES, "needs --label"),
        (("--label", "ill", *RANGES), "needs --positive"),
        (("--label", "ill", "--positive", "yes"), "every node must encode alike"),
        (("--label", "ill", "--positive", "yes", "--identifier", "x", *RANGES), "--identifier is not for a party"),
    ],
)
def test_a_node_says_what_its_table_needs(folder: Path, run: Run, options: tuple[str, ...], said: str) -> None:
    assert said in one_error_line(run(*SERVING, *options))


@pytest.mark.slow
def test_real_processes_fit_and_one_that_is_killed_comes_back(folder: Path) -> None:
    port = plan(folder, wait=120)
    command, environment = [sys.executable, "-m", "cvxpriv"], {**os.environ, "OMP_NUM_THREADS": "1"}
    shared = ["--model", "RecycledADMM", "--label", "ill", "--positive", "yes", "--exact", *RANGES]
    joining = ["--join", f"127.0.0.1:{port}", "--holder", "coordinator", "--wait", "120", *shared]

    def start(name: str) -> subprocess.Popen[bytes]:
        own = [f"{name}.csv", "--keys", f"team/{name}", "--out", f"node-{name}"]
        return subprocess.Popen([*command, "party", "serve", *own, *joining], cwd=folder, env=environment)

    nodes = {name: start(name) for name in NODES}
    options = ["--nodes", "nodes.toml", "--graph", "path", "--reg", "1", "--tol", "1e-7", "--no-report", "--json"]
    with subprocess.Popen(
        [*command, "consensus", *options], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as coordinator:
        checkpoint = folder / "node-b" / "checkpoint.bin"
        while not checkpoint.exists() and coordinator.poll() is None:
            time.sleep(0.001)
        nodes["b"].kill()
        nodes["b"].wait()
        nodes["b"] = start("b")
        found, _ = coordinator.communicate(timeout=200)
    assert coordinator.returncode == 0
    assert [node.wait(60) for node in nodes.values()] == [0, 0, 0]
    assert json.loads(found)["converged"] is True
    log = pd.read_csv(folder / "out" / "messages.csv")
    assert (log["kind"] == "hello").sum() == 4
    assert cpv.load(folder / "out" / "model.json").parameters.tobytes() == expected(folder, 1e-7).parameters.tobytes()
