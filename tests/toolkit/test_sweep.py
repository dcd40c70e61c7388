"""Sweeps: same bits on every backend, nothing lost to kills, nothing done twice, and what is refused."""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib._parallel_backends import ThreadingBackend

import cvxpriv as cpv
from cvxpriv.errors import DataError, ModelError, PrivacyError
from cvxpriv.models import ISTDP, ADMMSharing, InferenceAsService, PrivacyFunnel, RecycledADMM
from cvxpriv.privacy import GaussianNoise
from cvxpriv.reports.progress import Pace
from cvxpriv.runs import sweep_checkpoint, sweep_workers
from cvxpriv.runs.sweep_checkpoint import CheckpointWarning, digest, opened
from cvxpriv.runs.sweep_tasks import Task
from cvxpriv.runs.sweep_workers import Fitted, Order, fit

from .sweep_models import Lottery

TABLE = [[0.4, 0.1], [0.1, 0.4]]
WEIGHTS = [1.0, 2.0, 3.0, 4.0]


def _answers(frame: pd.DataFrame) -> list[Any]:
    """Return all that must not depend on the machine's load: every column but the times."""
    return frame.drop(columns="seconds").astype(object).where(frame.notna(), None).to_numpy().tolist()


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_rows_are_the_fits_of_the_model_itself() -> None:
    frame = cpv.sweep(PrivacyFunnel, TABLE, rate=[0.2, 0.5], method="aem", starts=[1, 2], seed=5)
    assert frame["status"].eq("done").all()
    assert len(frame) == 4
    assert frame["rate"].tolist() == [0.2, 0.2, 0.5, 0.5]
    for row in frame.to_dict("records"):
        run = PrivacyFunnel(TABLE, rate=row["rate"]).solve(method="aem", starts=row["starts"], seed=row["task_seed"])
        assert (row["leakage"], row["kkt"], row["converged"]) == (run.leakage, run.kkt.largest, run.converged)


def test_same_bits_whatever_the_workers_the_order_and_the_file(tmp_path: Path) -> None:
    one = cpv.sweep(Lottery, TABLE, weight=WEIGHTS, seed=[0, 7])
    two = cpv.sweep(Lottery, TABLE, weight=WEIGHTS, seed=[0, 7], n_jobs=2, checkpoint=tmp_path / "a.jsonl")
    back = cpv.sweep(Lottery, TABLE, weight=WEIGHTS[::-1], seed=[7, 0], checkpoint=tmp_path / "b.jsonl")
    read = cpv.sweep(Lottery, TABLE, weight=WEIGHTS, seed=[0, 7], checkpoint=tmp_path / "b.jsonl")
    assert _answers(one) == _answers(two) == _answers(read)
    assert sorted(map(str, _answers(back))) == sorted(map(str, _answers(one)))
    assert one["objective"].nunique() == one["task_seed"].nunique() == 8


def test_the_order_in_memory_changes_no_bit() -> None:
    # A view reaches another process as a copy in another order, in which sums round differently.
    rng = np.random.default_rng(0)
    rows, labels = rng.uniform(-0.3, 0.3, size=(60, 8))[:, ::2], rng.choice([-1.0, 1.0], 60)
    table, weights = rng.dirichlet(np.ones(12)).reshape(4, 3).repeat(2, axis=0)[::2].T, rng.uniform(1, 2, 120)[::2]
    graph, few, found = nx.path_graph(2), {"starts": 1, "max_iter": 4}, []
    for way in (np.asarray, np.ascontiguousarray, np.asfortranarray, lambda view: pickle.loads(pickle.dumps(view))):
        x, y, w, p_sx = (way(view) for view in (rows, labels, weights, table))
        runs = (
            ADMMSharing([way(x[:, :2]), way(x[:, 2:])], y, weights=w).solve(max_iter=4),
            RecycledADMM(graph, [(way(x[:30]), y[:30]), (way(x[30:]), y[30:])]).solve(max_iter=4),
            ISTDP(x, y).solve(max_iter=4),
            PrivacyFunnel(p_sx, 0.5).solve(method="aem", **few),
            InferenceAsService(p_sx, 0.1).solve(**few),
        )
        found.append([[fact.value for fact in run.facts.facts if fact.name != "seconds"] for run in runs])
    assert all(one == found[0] for one in found[1:])


def test_a_task_keeps_its_seed_when_the_grid_grows() -> None:
    small = cpv.sweep(Lottery, TABLE, weight=2.0)
    large = cpv.sweep(Lottery, TABLE, weight=WEIGHTS)
    assert small["objective"][0] == large["objective"][1]


def test_several_tables_by_name() -> None:
    frame = cpv.sweep(Lottery, {"a": TABLE, "b": [[1.0, 0.0], [0.0, 0.0]]}, weight=[1, 2])
    assert frame["table"].tolist() == ["a", "a", "b", "b"]
    assert frame["task_seed"].nunique() == 4


def test_learners_take_a_tuple() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3))
    labels = np.sign(rows @ [1.0, -1.0, 0.0])
    frame = cpv.sweep(ISTDP, (rows, labels), loss=["logistic"], tol=1e-6)
    assert frame["objective"][0] == ISTDP(rows, labels).solve(tol=1e-6, seed=frame["task_seed"][0]).objective
    with pytest.raises(ModelError, match=r"pass the tuple \(X, y\)"):
        cpv.sweep(ISTDP, rows, tol=1e-6)


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({"rat": [0.5]}, "rat is no option of PrivacyFunnel: did you mean 'rate'?"),
        ({"rate": []}, "no value"),
        ({"rate": [0.5, 0.5]}, "twice"),
        ({"tol": [1e-7, -1.0]}, "tol=-1.0 is not a finite number > 0"),
        ({"callback": print}, "callback is set by the sweep"),
        ({"p_sx": [TABLE]}, "p_sx is no option"),
        ({"solver": [print]}, "cannot be told from another"),
        ({"seed": [-1]}, "is no seed"),
        ({"seed": [0, 0]}, "several that differ"),
        ({"n_jobs": 0}, "no number of workers"),
        ({"n_jobs": 10**9}, "no number of workers: pass 1 to 1,000"),
        ({"backend": "ray"}, "is not known"),
        ({"scheduler": "tcp://127.0.0.1:1"}, "pass backend='dask' too"),
    ],
)
def test_what_is_wrong_is_refused_before_any_work(grid: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError) as error:
        cpv.sweep(PrivacyFunnel, TABLE, **grid)
    assert said in str(error.value)


def test_a_failure_is_a_row_and_retry_does_it_again(tmp_path: Path) -> None:
    path, trace = tmp_path / "c.jsonl", tmp_path / "trace"
    given: dict[str, Any] = {"weight": [1.0, 13.0], "trace": str(trace), "checkpoint": path}
    first = cpv.sweep(Lottery, TABLE, **given)
    assert first["status"].tolist() == ["done", "failed"]
    assert (first["error_type"][1], first["error"][1]) == ("ArithmeticError", "13 is no weight")
    assert _answers(cpv.sweep(Lottery, TABLE, **given)) == _answers(first)
    cpv.sweep(Lottery, TABLE, **given, retry=True)
    cpv.sweep(Lottery, TABLE, **given, resume=False)
    assert trace.read_text(encoding="utf-8").split() == ["1.0", "13.0", "13.0", "1.0", "13.0"]
    assert [row["status"] for row in _lines(path)] == ["done", "failed", "failed", "done", "failed"]


ROWS = np.random.default_rng(0).normal(size=(60, 30))
LABELS = np.sign(ROWS[:, :3].sum(axis=1))
DOWN = [f"mcp:{lam}:3" for lam in (0.3, 0.1, 0.05)]


def test_along_an_option_each_task_starts_at_the_answer_before() -> None:
    frame = cpv.sweep(ISTDP, (ROWS, LABELS), penalty=DOWN, loss=["logistic", "squared"], warm_along="penalty")
    assert frame["task_seed"].nunique() == 6
    for _, chain in frame.groupby("loss"):
        init = None
        for row in chain.to_dict("records"):
            model = ISTDP(ROWS, LABELS, penalty=row["penalty"], loss=row["loss"])
            run = model.solve(init=init, seed=row["task_seed"])
            assert (row["objective"], row["iterations"]) == (run.objective, run.iterations)
            init = run.theta
    parts, shards = [ROWS[:, :10], ROWS[:, 10:]], [(ROWS[:30], LABELS[:30]), (ROWS[30:], LABELS[30:])]
    sharing = cpv.sweep(ADMMSharing, (parts, LABELS), lam=[1.0, 0.9], warm_along="lam", accelerate="none")
    before = ADMMSharing(parts, LABELS, lam=1.0).solve(accelerate="none")
    second = ADMMSharing(parts, LABELS, lam=0.9).solve(accelerate="none", init=np.concatenate(before.coefficients))
    assert sharing["objective"][1] == second.objective
    consensus = cpv.sweep(RecycledADMM, (nx.path_graph(2), shards), reg=[1.0, 0.9], warm_along="reg")
    first = RecycledADMM(nx.path_graph(2), shards, reg=1.0).solve()
    assert (
        consensus["kkt"][1] == RecycledADMM(nx.path_graph(2), shards, reg=0.9).solve(init=first.parameters).kkt.largest
    )


def test_a_chain_has_the_same_bits_after_a_kill_with_workers_and_with_more_values(tmp_path: Path) -> None:
    path, given = tmp_path / "c.jsonl", {"loss": ["logistic", "squared"], "warm_along": "penalty"}
    whole = cpv.sweep(ISTDP, (ROWS, LABELS), penalty=DOWN, **given)
    anew = cpv.sweep(ISTDP, (ROWS, LABELS), penalty=DOWN, loss=given["loss"], checkpoint=path)
    assert not set(anew["task"]) & set(whole["task"])
    path.unlink()
    cpv.sweep(ISTDP, (ROWS, LABELS), penalty=DOWN[:2], **given, checkpoint=path)
    first, second, *_ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:-9])
    again = cpv.sweep(ISTDP, (ROWS, LABELS), penalty=DOWN, **given, checkpoint=path, n_jobs=2)
    assert _answers(again) == _answers(whole)
    assert len(_lines(path)) == len({row["task"] for row in _lines(path)}) == 6
    assert path.read_bytes().startswith(first)


def test_after_a_failure_a_chain_goes_on_from_the_last_answer() -> None:
    failing = [DOWN[0], "mcp:-1:3", DOWN[2]]
    frame = cpv.sweep(ISTDP, (ROWS, LABELS), penalty=failing, warm_along="penalty")
    assert frame["status"].tolist() == ["done", "failed", "done"]
    init = ISTDP(ROWS, LABELS, penalty=DOWN[0]).solve().theta
    assert frame["objective"][2] == ISTDP(ROWS, LABELS, penalty=DOWN[2]).solve(init=init).objective


@pytest.mark.parametrize(
    ("model", "grid", "said"),
    [
        (PrivacyFunnel, {"rate": [0.2, 0.5], "warm_along": "rate"}, "PrivacyFunnel has no warm start.*curve"),
        (ISTDP, {"penalty": DOWN, "warm_along": "penalt"}, "no option of the grid: did you mean 'penalty'"),
        (ISTDP, {"tol": 1e-6, "init": [[0.0] * 30], "warm_along": "tol"}, "init stands in the grid"),
        (ISTDP, {"penalty": [DOWN[0], DOWN[0]], "warm_along": "penalty"}, "twice"),
    ],
)
def test_warm_starts_that_cannot_be_are_refused(model: Any, grid: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        cpv.sweep(model, TABLE if model is PrivacyFunnel else (ROWS, LABELS), **grid)


def test_a_torn_last_line_is_done_again_wherever_it_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    whole = cpv.sweep(Lottery, TABLE, weight=WEIGHTS, checkpoint=path)
    data = path.read_bytes()
    start = data.rstrip(b"\n").rfind(b"\n") + 1
    for end in (start, start + 1, (start + len(data)) // 2, len(data) - 1):
        path.write_bytes(data[:end])
        assert len(cpv.sweep(Lottery, TABLE, weight=WEIGHTS[:3], checkpoint=path)) == 3
        assert path.read_bytes() == data[:start]
        assert _answers(cpv.sweep(Lottery, TABLE, weight=WEIGHTS, checkpoint=path)) == _answers(whole)
        assert len(_lines(path)) == 4


def _checked(lines: bytes, **changed: Any) -> bytes:
    """Return the first line with other entries, and the sum that belongs to them."""
    row = {**json.loads(lines.splitlines()[0]), **changed}
    del row["check"]
    return json.dumps({**row, "check": sweep_checkpoint._check(row)}).encode() + b"\n"


def test_files_that_are_no_checkpoint_are_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    cpv.sweep(Lottery, TABLE, weight=[1.0, 2.0], checkpoint=path)
    damaged = path.read_bytes().replace(b'"seed": ', b'"seed": 1', 1)
    for content, said in (
        (damaged, "line 1, is no row"),
        (_checked(path.read_bytes(), versions=[1]), "line 1, is no row"),
        (b"a,b\n1,2\n", "line 1, is no row"),
        (b'{"format": "cvxpriv run"}', "of another kind"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=said):
            cpv.sweep(Lottery, TABLE, weight=[1.0, 2.0], checkpoint=path)
        assert path.read_bytes() == content
    with pytest.raises(DataError, match="to_parquet"):
        cpv.sweep(Lottery, TABLE, checkpoint=tmp_path / "c.parquet")


def test_rows_of_other_data_or_versions_are_named_and_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.jsonl"
    cpv.sweep(Lottery, TABLE, checkpoint=path)
    other = [[0.5, 0.0], [0.1, 0.4]]
    with pytest.warns(CheckpointWarning, match="1 rows are of other data"):
        frame = cpv.sweep(Lottery, other, checkpoint=path)
    assert _answers(frame) == _answers(cpv.sweep(Lottery, other))
    monkeypatch.setattr("cvxpriv.runs.sweep.versions", lambda: {"numpy": "9.9"})
    with pytest.warns(CheckpointWarning, match=r"rows are of numpy \S+ \(now 9.9\)"):
        cpv.sweep(Lottery, TABLE, checkpoint=path)
    assert len(_lines(path)) == 3


def test_two_writers_are_kept_apart(tmp_path: Path) -> None:
    with opened(tmp_path / "c.jsonl"), pytest.raises(DataError, match="written by another sweep"):
        cpv.sweep(Lottery, TABLE, checkpoint=tmp_path / "c.jsonl")
    assert len(cpv.sweep(Lottery, TABLE, checkpoint=tmp_path / "c.jsonl")) == 1


def test_jobs_of_dead_workers_are_done_again_and_a_death_alone_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools that give one result and die; job 3 never gives one."""
    asked: list[list[int]] = []

    def dying(jobs: dict[int, Any]) -> Iterator[tuple[int, list[Fitted]]]:
        asked.append(list(jobs))
        for number in list(jobs):
            if number != 3:
                yield number, jobs[number]()
            raise RuntimeError("a worker died")

    monkeypatch.setattr(sweep_workers, "_in_parallel", dying)
    jobs = {number: partial(list, [Fitted({"status": "done"}, 1.0)]) for number in (0, 1, 3)}
    found = dict(sweep_workers.each_fitted(jobs, processes=True))
    assert [found[number][0].row["status"] for number in (0, 1, 3)] == ["done", "done", "failed"]
    assert asked == [[0, 1, 3], [1, 3], *([[3]] * (2 * sweep_workers.LIVES))]


@pytest.mark.slow
def test_a_task_that_kills_its_worker_is_a_row_and_the_others_are_done() -> None:
    frame = cpv.sweep(Lottery, TABLE, weight=[1.0, 2.0], deadly=[False, True], n_jobs=2)
    assert frame["status"].tolist() == ["done", "failed", "done", "failed"]
    assert frame["error_type"][1] == "TerminatedWorkerError"
    assert "3 workers died" in frame["error"][1]


def test_a_keyboard_interrupt_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cpv.sweep(Lottery, TABLE, weight=WEIGHTS)

    def pressed(self: Lottery, seed: int = 0, pause: float = 0.0, trace: str = "", deadly: bool = False) -> Any:
        if self.weight == 3.0:
            raise KeyboardInterrupt
        return solve(self, seed)

    solve = Lottery.solve
    monkeypatch.setattr(Lottery, "solve", pressed)
    frame = cpv.sweep(Lottery, TABLE, weight=WEIGHTS, checkpoint=tmp_path / "c.jsonl")
    assert frame["status"].tolist() == ["done", "done", "waiting", "waiting"]
    monkeypatch.setattr(Lottery, "solve", solve)
    assert _answers(cpv.sweep(Lottery, TABLE, weight=WEIGHTS, checkpoint=tmp_path / "c.jsonl")) == _answers(whole)


CODE = """
import sys
import cvxpriv as cpv
from tests.toolkit.sweep_models import Lottery
weights = [float(one) for one in range(1, int(sys.argv[3]) + 1)]
cpv.sweep(Lottery, [[.4, .1], [.1, .4]], weight=weights, pause=float(sys.argv[4]), trace=sys.argv[2],
          checkpoint=sys.argv[1], n_jobs=int(sys.argv[5]))
"""


def _killed(folder: Path, kills: int, tasks: int, pause: float, n_jobs: int, longest: float) -> tuple[int, int]:
    """Kill a sweep at random times until it ends; return the number of kills and of fits that were begun."""
    path, trace, draw = folder / "c.jsonl", folder / "trace", random.Random(3)
    arguments = [str(path), str(trace), str(tasks), str(pause), str(n_jobs)]
    done, root = 0, Path(__file__).parents[2]
    while True:
        process = subprocess.Popen([sys.executable, "-c", CODE, *arguments], cwd=root, start_new_session=True)
        before = len(path.read_bytes().split(b"\n")) if path.exists() else 0
        begun = time.monotonic()
        while process.poll() is None and done < kills:
            now = len(path.read_bytes().split(b"\n")) if path.exists() else 0
            if now > before and time.monotonic() - begun > draw.uniform(0.0, longest):
                os.killpg(process.pid, signal.SIGKILL)
                done += 1
                break
            time.sleep(0.01)
        if process.wait() == 0:
            return done, len(trace.read_text(encoding="utf-8").split())


def _require_nothing_lost(folder: Path, tasks: int, kills: int, begun: int, n_jobs: int) -> None:
    rows = _lines(folder / "c.jsonl")
    assert sorted(row["settings"]["weight"] for row in rows) == [float(one) for one in range(1, tasks + 1)]
    assert begun <= tasks + kills * max(1, 2 * n_jobs)  # in flight, or on its way to or from a worker
    assert all(row["status"] == ("failed" if row["settings"]["weight"] == 13.0 else "done") for row in rows)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the test copies this process")
def test_three_killed_runs_lose_what_was_in_flight(tmp_path: Path) -> None:
    path, trace = tmp_path / "c.jsonl", tmp_path / "trace"
    given: dict[str, Any] = {"weight": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "trace": str(trace), "checkpoint": path}
    for results in (1, 2, 4):
        child = os.fork()
        if not child:
            try:
                cpv.sweep(Lottery, TABLE, pause=0.03, **given)
            finally:
                os._exit(1)
        while not path.exists() or path.read_bytes().count(b"\n") < results:
            time.sleep(0.002)
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
    resumed = cpv.sweep(Lottery, TABLE, pause=0.03, **given)
    _require_nothing_lost(tmp_path, 6, 3, len(trace.read_text(encoding="utf-8").split()), 0)
    assert _answers(resumed) == _answers(cpv.sweep(Lottery, TABLE, pause=0.03, **{**given, "checkpoint": None}))


@pytest.mark.slow
def test_a_killed_run_with_workers_loses_what_was_in_flight(tmp_path: Path) -> None:
    kills, begun = _killed(tmp_path, 1, 6, 0.15, 2, 0.0)
    assert kills == 1
    _require_nothing_lost(tmp_path, 6, kills, begun, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("n_jobs", "asked"), [(1, 40), (2, 10)])  # workers take as long to start again
def test_fifty_killed_runs_lose_what_was_in_flight(n_jobs: int, asked: int, tmp_path: Path) -> None:
    kills, begun = _killed(tmp_path, asked, 8 * asked, 0.05, n_jobs, 2.0)
    assert kills == asked
    _require_nothing_lost(tmp_path, 8 * asked, kills, begun, n_jobs)


@pytest.mark.slow
def test_fifty_killed_workers_lose_what_was_in_flight(tmp_path: Path) -> None:
    """Each kill follows a result: pools that die without any, one after the other, are a failure of their tasks."""
    path, trace, root, draw = tmp_path / "c.jsonl", tmp_path / "trace", Path(__file__).parents[2], random.Random(5)
    arguments = [str(path), str(trace), "200", "0.1", "2"]
    process = subprocess.Popen([sys.executable, "-c", CODE, *arguments], cwd=root, start_new_session=True)
    kills = results = 0
    while process.poll() is None:
        time.sleep(draw.uniform(0.01, 0.15))
        found = path.read_bytes().count(b"\n") if path.exists() else 0
        if found == results:
            continue
        children = subprocess.run(
            ["pgrep", "-P", str(process.pid), "-f", "LokyProcess"], capture_output=True, text=True, check=False
        ).stdout.split()
        if children and kills < 50:
            with suppress(ProcessLookupError):  # it ended in between
                os.kill(int(draw.choice(children)), signal.SIGKILL)
                kills, results = kills + 1, found
    assert process.returncode == 0
    assert kills == 50
    _require_nothing_lost(tmp_path, 200, kills, len(trace.read_text(encoding="utf-8").split()), 2)


def test_dask_without_its_package_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_workers, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"pip install 'cvxpriv\[distributed\]'"):
        cpv.sweep(Lottery, TABLE, backend="dask")


def test_the_dask_backend_is_joblibs_and_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's place is taken by a client of no cluster, and joblib's backend by one of threads."""
    clients: list[Any] = []

    class Client:
        def __init__(self, address: str, timeout: float) -> None:
            if address != "tcp://127.0.0.1:8786":
                raise OSError("nobody is there")

        def __enter__(self) -> Client:
            return self

        def __exit__(self, *_: object) -> None:
            clients.append("closed")

    class Backend(ThreadingBackend):  # type: ignore[misc]
        def __init__(self, client: Any = None, **options: Any) -> None:
            if client is not None:
                clients.append(client)
            super().__init__(**options)

    package = type(sys)("distributed")
    package.Client = Client  # type: ignore[attr-defined]
    package.__spec__ = type("Spec", (), {})()  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "distributed", package)
    monkeypatch.setitem(joblib.parallel.BACKENDS, "dask", Backend)
    given: dict[str, Any] = {"weight": [1.0, 13.0, 2.0]}
    frame = cpv.sweep(Lottery, TABLE, **given, backend="dask", scheduler="tcp://127.0.0.1:8786", n_jobs=2)
    assert isinstance(clients[0], Client)
    assert clients[-1] == "closed"
    assert _answers(frame) == _answers(cpv.sweep(Lottery, TABLE, **given))
    with pytest.raises(ModelError, match="does not answer"):
        cpv.sweep(Lottery, TABLE, backend="dask", scheduler="tcp://127.0.0.1:1")


@pytest.mark.slow
def test_a_real_dask_cluster_gives_the_same_bits_and_outlives_a_killed_worker(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    weights = [float(one) for one in range(1, 13)]
    expected = _answers(cpv.sweep(Lottery, TABLE, weight=weights, pause=0.2))
    assert _answers(cpv.sweep(Lottery, TABLE, weight=weights, pause=0.2, backend="dask", n_jobs=2)) == expected
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as local,
        distributed.Client(local) as client,
    ):
        killer = subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"import os, time; time.sleep(.7); os.kill({next(iter(client.run(os.getpid).values()))}, 9)",
            ]
        )
        path = tmp_path / "c.jsonl"
        frame = cpv.sweep(
            Lottery,
            TABLE,
            weight=weights,
            pause=0.2,
            backend="dask",
            scheduler=local.scheduler_address,
            checkpoint=path,
        )
        killer.wait()
    assert _answers(frame) == expected
    assert len(_lines(path)) == 12


def test_private_sweeps_spend_from_a_budget_and_keep_what_they_release(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(60, 3))
    rows /= np.linalg.norm(rows, axis=1).max()
    data = (rows, np.sign(rows @ [1.0, -1.0, 0.0]))
    with pytest.raises(PrivacyError, match="each private fit costs: pass budget="):
        cpv.sweep(ISTDP, data, epsilon=[0.5, 1.0])
    cpv.Budget(1.2, 1e-6, path=tmp_path / "budget.json")
    given: dict[str, Any] = {
        "epsilon": [0.4, 0.5, 2.0],
        "delta": 1e-6,
        "max_iter": 3,
        "row_bound": 1.0,
        "budget": tmp_path / "budget.json",
        "checkpoint": tmp_path / "c.jsonl",
    }
    with pytest.raises(PrivacyError, match="pass keep='folder'"):
        cpv.sweep(ISTDP, data, **given)
    frame = cpv.sweep(ISTDP, data, **given, keep=tmp_path / "runs")
    assert frame["status"].tolist() == ["done", "done", "failed"], frame["error"].tolist()
    assert frame["error_type"][2] == "PrivacyError"
    assert frame["seconds"].isna().all()
    spent = len(cpv.Budget.open(tmp_path / "budget.json").ledger)
    assert spent >= 2
    assert cpv.load(tmp_path / "runs" / f"{frame['task'][0]}.json").accounting.epsilon <= 0.4
    cpv.sweep(ISTDP, data, **given, keep=tmp_path / "runs")
    assert len(cpv.Budget.open(tmp_path / "budget.json").ledger) == spent
    with pytest.raises(PrivacyError, match="paid again"):
        cpv.sweep(ISTDP, data, **given, keep=tmp_path / "runs", resume=False)


@pytest.mark.filterwarnings("ignore")
def test_a_private_checkpoint_knows_its_data_by_a_secret_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GaussianNoise, "release", lambda self, query, noise: np.zeros(self.size))
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-0.5, 0.5, size=(20, 2)), np.tile([-1.0, 1.0], 10)

    def rows_of(name: str, first: float) -> list[dict[str, Any]]:
        place = tmp_path / name
        options: dict[str, Any] = {"epsilon": [0.1, 0.2], "delta": 1e-7, "max_iter": 1, "keep": place / "kept"}
        files = {"budget": place / "budget.json", "checkpoint": place / "sweep.jsonl"}
        cpv.Budget(9.0, 1e-5, files["budget"])
        other = np.vstack([[first, 0.0], x[1:]])
        assert (cpv.sweep(ISTDP, (other, y), **options, **files)["status"] == "done").all()
        return [json.loads(line) for line in files["checkpoint"].read_text().splitlines()]

    # What neighbours leave differs in keyed hashes alone, and so does what the same table leaves in two places.
    runs = [rows_of("one", 0.1), rows_of("neighbour", 0.2), rows_of("other", 0.1)]
    for several in zip(*runs, strict=True):
        assert len({row.pop("data") for row in several}) == len({row.pop("check") for row in several}) == 3
        assert several[0] == several[1] == several[2]
    assert len(rows_of("one", 0.1)) == len(cpv.Budget.open(tmp_path / "one" / "budget.json").ledger) == 2  # none again
    key = tmp_path / "one" / ".sweep.jsonl.key"
    assert key.stat().st_mode & 0o077 == 0
    key.unlink()
    with pytest.raises(DataError, match=r"'.sweep.jsonl.key' beside it, .* is gone or damaged"):
        rows_of("one", 0.1)
    assert len(cpv.Budget.open(tmp_path / "one" / "budget.json").ledger) == 2


def test_a_message_of_somebody_elses_error_in_a_private_fit_is_not_told() -> None:
    class Telling(Lottery):
        def solve_private(self, budget: str) -> Any:
            raise ValueError(f"the row {self.table[0]} is odd")

    task = Task("", {}, {}, {}, "0", 0, "0")
    private = fit(Order(Telling, "budget.json", True, os.getpid()), task, TABLE).row
    assert private["error_type"] == "ValueError"
    assert "0.4" not in private["error"]
    assert "seconds" not in private


def test_contents_tell_data_apart() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    sparse = sp.csr_array([[0.0, 1.0], [2.0, 0.0]])
    same = [
        (np.arange(4.0), np.arange(8.0)[:4]),
        (frame, frame.copy()),
        (sparse, sp.coo_array(sparse)),
        (nx.path_graph(3), nx.path_graph(3)),
        (cpv.datasets.heart_failure(), cpv.datasets.heart_failure()),
        (Path("a"), "a"),
    ]
    assert all(digest(one) == digest(two) for one, two in same)
    others = [
        *(np.arange(4.0), np.arange(4), np.arange(4.0).reshape(2, 2), frame, frame.rename(columns={"a": "c"}), {1, 2}),
        *(frame["a"], sparse, sparse * 2, nx.path_graph(3), nx.cycle_graph(3), cpv.datasets.heart_failure(), "a", 1),
    ]
    assert len({digest(one) for one in others}) == len(others)


def test_the_end_time_rests_on_finished_tasks_alone() -> None:
    pace = Pace(left=10, workers=4)
    now = pd.Timestamp("2026-01-01 12:00").to_pydatetime()
    assert pace.text(now) == "the end is not known before the first result"
    pace.done(100.0)
    pace.done(140.0, failed=True)
    assert pace.remaining == 2 * 120.0  # 8 left by 4 workers
    assert pace.text(now) == "1 failed, ends about 12:04 (1.2e+02 s a task, mean of 2)"
