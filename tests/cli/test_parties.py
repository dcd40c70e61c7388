"""`cvxpriv keys`, `cvxpriv party serve` and `cvxpriv sharing --parties`: files, alignment, privacy, bad input."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
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
from cvxpriv.errors import DataError

from .conftest import Run, one_error_line

GIVEN: dict[str, Any] = {
    "identifier": "person",
    "columns": None,
    "ranges": (),
    "categories": (),
    "beyond": "refuse",
    "exact": True,
    "epsilon": None,
    "delta": 1e-6,
    "budget": None,
    "bounds_from_data": False,
    "model_name": "ADMMSharing",
}
SERVING = ("party", "serve", "a.csv", "--join", "127.0.0.1:1", "--keys", "team/a")
PUBLIC = {"a": ("age:0:100", "hours:0:1"), "b": ("x:0:1",)}


@pytest.fixture
def folder(tmp_path: Path, run: Run) -> Path:
    """Tables of a label holder and two parties, in other orders, their keys, and the parties file."""
    rng = np.random.default_rng(0)
    people = np.array([f"p{number}" for number in range(200)])
    x = rng.uniform(size=(200, 3))
    rich = x @ [2.0, -1.0, 1.0] + 0.1 * rng.normal(size=200) > 1.0
    pd.DataFrame({"person": people, "income": np.where(rich, "high", "low")}).to_csv(
        tmp_path / "labels.csv", index=False
    )
    for name, columns in {"a": {"age": 100 * x[:, 0], "hours": x[:, 1]}, "b": {"x": x[:, 2]}}.items():
        order = rng.permutation(200)[:190]
        pd.DataFrame({"person": people, **columns}).iloc[order].to_csv(tmp_path / f"{name}.csv", index=False)
    assert run("keys", "init", "team").exit_code == 0
    for name in ("label-holder", "a", "b"):
        assert run("keys", "add", "team", name).exit_code == 0
    return tmp_path


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def plan(folder: Path, **changes: Any) -> int:
    port = free_port()
    said = {"table": "labels.csv", "identifier": "person", "listen": f"127.0.0.1:{port}", "keys": "team/label-holder"}
    said |= {"parties": ["a", "b"], "wait": 20, **changes}
    (folder / "parties.toml").write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in said.items()))
    return port


def served(folder: Path, port: int, name: str, **changes: Any) -> threading.Thread:
    """A party on a thread, over real TLS."""
    keys, log, home = keys_in(folder / "team" / name), MessageLog(), folder / f"party-{name}"
    role, features = party_of(str(folder / f"{name}.csv"), home, keys.alignment, **{**GIVEN, **changes})

    def work() -> None:
        serve(role, f"127.0.0.1:{port}", keys, wait=20.0, log=log)
        write_own(role, features, log, home)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_keys_party_and_label_holder_fit_together(folder: Path, run: Run) -> None:
    port = plan(folder)
    threads = [served(folder, port, name, ranges=PUBLIC[name]) for name in ("a", "b")]
    same = ("--label", "income", "--tol", "1e-3", "--json", "--no-report")
    result = run("sharing", "--parties", "parties.toml", *same)
    for thread in threads:
        thread.join()
    assert result.exit_code == 0, result.stderr
    rows = [pd.read_csv(folder / f"{name}.csv") for name in ("labels", "a", "b")]
    rows[0].merge(rows[1]).merge(rows[2]).to_csv(folder / "together.csv", index=False)
    split = ("--party", "age,hours", "--party", "x", "--test-fraction", "0", "--no-crosscheck", "--out", "one")
    ranges = [f"--range={one}" for name in PUBLIC for one in PUBLIC[name]]
    together = run("sharing", "together.csv", *same, *split, *ranges, "--accelerate", "none")
    assert together.exit_code == 0, together.stderr
    expected = pd.read_csv(folder / "one" / "coefficients.csv").set_index("feature")["coefficient"]
    found = pd.concat([pd.read_csv(folder / f"party-{name}" / "coefficients.csv") for name in ("a", "b")])
    found = found.set_index("feature")["coefficient"]
    assert sorted(found.index) == sorted(expected.index)
    for name in expected.index:  # the rows are in another order: sums differ in rounding
        assert found[name] == pytest.approx(expected[name], abs=1e-9)
    spoken = {"hello", "positions", "aligned", "begin", "ready", "step", "share", "finish", "finished", "end"}
    spoken |= {"weigh", "weighed"}  # the penalty of each row changes on the way
    assert spoken <= set(pd.read_csv(folder / "out" / "messages.csv")["kind"]) <= spoken | {"wait", "poll"}
    assert not (folder / "out" / "model.json").exists()


def test_a_private_fit_keeps_ledger_and_coefficients_with_the_party(folder: Path, run: Run) -> None:
    port = plan(folder)
    allowed = {"exact": False, "epsilon": 2.0}
    threads = [served(folder, port, name, ranges=PUBLIC[name], **allowed) for name in ("a", "b")]
    options = ("--label", "income", "--positive", "high", "--epsilon", "2", "--no-report")
    result = run("sharing", "--parties", "parties.toml", *options)
    for thread in threads:
        thread.join()
    assert result.exit_code == 0, result.stderr
    model = cpv.load(folder / "out" / "model.json")
    assert model.accounting.epsilon == pytest.approx(2.0, rel=1e-6)  # the budget, to the margin of the noise's scale
    assert "coefficient" not in {part for file in (folder / "out").iterdir() for part in file.name.split(".")}
    ledger = json.loads((folder / "party-a" / "ledger.json").read_text())
    assert [entry["iteration"] for entry in ledger] == [1, 2, 3, 4]
    assert (folder / "party-a" / "coefficients.csv").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"listen": 8815}, "listen is missing or malformed"),
        ({"parties": []}, "distinct names"),
        ({"party": "a"}, "'party' is no entry"),
        ({"keys": "nowhere"}, "cvxpriv keys add"),
        ({"listen": "nowhere"}, "give HOST:PORT"),
    ],
)
def test_a_parties_file_that_is_wrong_is_one_line(folder: Path, run: Run, changes: dict[str, Any], said: str) -> None:
    plan(folder, **changes)
    result = run("sharing", "--parties", "parties.toml", "--label", "income")
    assert said in one_error_line(result)


def test_private_runs_need_public_ranges_and_a_named_class(folder: Path, run: Run) -> None:
    plan(folder)
    result = run(*SERVING, "--identifier", "person", "--epsilon", "1")
    assert "would be read off the private rows" in one_error_line(result)
    result = run("sharing", "--parties", "parties.toml", "--label", "income", "--epsilon", "1")
    assert "--positive VALUE" in one_error_line(result)
    result = run("sharing", "--parties", "parties.toml", "--label", "income", "--delta", "1e-5")
    assert "--delta goes with --epsilon" in one_error_line(result)


def test_who_never_comes_ends_a_run_on_either_side(folder: Path, run: Run) -> None:
    plan(folder, wait=0.2)
    result = run("sharing", "--parties", "parties.toml", "--label", "income", "--no-report")
    assert (result.exit_code, "a, b did not join within 0.2 seconds" in result.stderr) == (3, True)
    result = run(*SERVING, "--identifier", "person", "--exact", "--wait", "0")
    assert (result.exit_code, "was not reached within 0 seconds" in result.stderr) == (3, True)


@pytest.mark.slow
def test_a_second_process_does_not_serve_the_folder_of_a_first_one_until_that_is_killed(folder: Path) -> None:
    serving = [sys.executable, "-u", "-m", "cvxpriv", *SERVING, "--identifier", "person", "--exact", "--wait"]
    with subprocess.Popen([*serving, "60"], cwd=folder, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert any("dials 127.0.0.1:1" in line for line in first.stdout)
        second = subprocess.run([*serving, "0"], cwd=folder, capture_output=True, text=True, check=False)
        assert (second.returncode, "served by another process" in second.stderr) == (3, True)
        first.kill()
    third = subprocess.run([*serving, "0"], cwd=folder, capture_output=True, text=True, check=False)
    assert (third.returncode, "was not reached within 0 seconds" in third.stderr) == (3, True)


@pytest.mark.slow
def test_real_processes_fit_from_the_command_line(folder: Path) -> None:
    port = plan(folder, wait=120)
    command = [sys.executable, "-m", "cvxpriv"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    joining = ["--join", f"127.0.0.1:{port}", "--wait", "120", "--identifier", "person", "--exact"]
    parties = [
        subprocess.Popen(
            [*command, "party", "serve", f"{name}.csv", *joining, "--keys", f"team/{name}", "--out", f"party-{name}"],
            cwd=folder,
            env=environment,
        )
        for name in ("a", "b")
    ]
    options = ["--parties", "parties.toml", "--label", "income", "--no-report", "--json"]
    found = subprocess.run([*command, "sharing", *options], cwd=folder, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert [party.wait(60) for party in parties] == [0, 0]
    assert json.loads(found.stdout)["converged"] is True


@pytest.mark.parametrize("model", ["ADMMSharing", "RecycledADMM"])
def test_a_label_or_an_identifier_is_no_column_to_learn_from(tmp_path: Path, model: str) -> None:
    (tmp_path / "rows.csv").write_text("person,age,ill\n1,30,0\n2,40,1\n")
    said = {"label": "ill", "positive": "1", "identifier": None} if model == "RecycledADMM" else {}
    given = {**GIVEN, "model_name": model, "intercept": True, "ranges": ("age:0:100", "ill:0:1", "person:0:9"), **said}
    with pytest.raises(DataError, match="learn from other columns"):
        party_of(str(tmp_path / "rows.csv"), tmp_path, b"", **{**given, "columns": ("age", "ill", "person")})


@pytest.mark.parametrize("model", ["ADMMSharing", "RecycledADMM"])
def test_a_private_party_says_nothing_of_a_row_that_it_refuses(tmp_path: Path, model: str) -> None:
    given = {**GIVEN, "model_name": model, "epsilon": 1.0, "ranges": ("age:0:100",), "intercept": True}
    given |= {"identifier": None, "label": "ill", "positive": "yes"} if model == "RecycledADMM" else {}
    said = set()
    for number, age in enumerate(("31415", "", "x31415")):
        (tmp_path / "rows.csv").write_text(f"person,age,ill\np1,30,yes\np2,{age},no\n")
        with pytest.raises(DataError, match="Which one is not said") as refused:
            party_of(str(tmp_path / "rows.csv"), tmp_path / str(number), b"", **{**given, "columns": ("age",)})
        said.add(str(refused.value))
    assert len(said) == 1
