"""Limits of a solve: a time for all of it, and a time for each call of a solver, in a process of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from cvxpriv_models.inference_service import interior
from cvxpriv_models.inference_service.joint import joint

import cvxpriv as cpv
from cvxpriv.blocks.engines import DCP, ENGINES, Checked
from cvxpriv.divergences import FDivergence
from cvxpriv.errors import ModelError, SolverFailure
from cvxpriv.models import ISTDP, ADMMSharing, InferenceAsService, PrivacyFunnel, RecycledADMM
from cvxpriv.numerics.sizes import now, until
from cvxpriv.reports.text import text_of
from cvxpriv.runs.alternation import alternate
from cvxpriv.solvers.isolation import Ending, Worker
from cvxpriv.solvers.place import Elsewhere

TABLE = cpv.JointTable.from_counts([[12, 3, 5], [1, 8, 6], [2, 2, 9]])
RNG = np.random.default_rng(0)
ROWS, LABELS = RNG.normal(size=(24, 4)), RNG.choice([-1.0, 1.0], 24)
LONG = np.cumsum(RNG.normal(size=(400, 60)), axis=1)
MODELS: dict[str, Callable[..., Any]] = {
    "funnel": lambda **options: PrivacyFunnel(TABLE, 0.8).solve(method="aem", accelerate="none", **options),
    "inference": lambda **options: InferenceAsService(TABLE, 0.3).solve(method="admm", **options),
    "sharing": lambda **options: ADMMSharing([ROWS[:, :2], ROWS[:, 2:]], LABELS).solve(accelerate="none", **options),
    "consensus": lambda **options: RecycledADMM(
        nx.path_graph(3), [(ROWS[k::3], LABELS[k::3]) for k in range(3)], C=1.0, reg=0.1
    ).solve(accelerate="none", **options),
    "sparse": lambda **options: ISTDP(LONG, LONG[:, 0] > 0, penalty="mcp:0.001:3").solve(accelerate="none", **options),
}


def product() -> cp.Problem:
    w, h = cp.Variable((4, 2), nonneg=True, name="w"), cp.Variable((2, 4), nonneg=True, name="h")
    return cp.Problem(cp.Minimize(cp.sum_squares(np.random.default_rng(0).uniform(size=(4, 4)) - w @ h)))


@pytest.mark.parametrize("model", MODELS)
def test_a_time_limit_returns_the_best_so_far_and_says_so(model: str) -> None:
    begun = time.monotonic()
    run = MODELS[model](tol=1e-300, max_iter=10**6, time_limit=0.05)
    assert time.monotonic() - begun < 5.0  # 0.05 s, a pass, and what is computed of the point
    assert (run.overdue, run.interrupted, run.converged) == (True, False, False)
    assert "the time limit ended it" in run.facts.unmet
    assert "raise --time-limit" in run.facts.unmet
    assert not MODELS[model](max_iter=2).overdue


@pytest.mark.parametrize("one", ["funnel", "inference"])
def test_what_comes_before_and_within_a_pass_ends_at_the_limit_too(one: str) -> None:
    large = np.random.default_rng(7).dirichlet(np.ones(500)).reshape(5, 100)
    model: Any = PrivacyFunnel(large, 0.8) if one == "funnel" else InferenceAsService(large, 0.3)
    run = model.solve(method={"funnel": "aem", "inference": "auto"}[one], time_limit=0.001)
    begun = 1 if one == "funnel" else 2
    assert (run.overdue, run.converged, len(run.starts), run.settings.starts) == (True, False, begun, begun)
    if one == "inference":
        assert run.starts["origin"].tolist() == ["identity", "grid"]
    assert np.allclose(run.mechanism.sum(axis=1), 1.0)


def test_an_exact_update_that_ends_late_is_feasible_and_says_how_far_it_is() -> None:
    problem = InferenceAsService(TABLE, 0.3).problem
    posterior = RNG.dirichlet(np.ones(3), (1, problem.size_u)).swapaxes(1, 2)
    with until(now() - 1.0):
        mechanism, gap = interior.maximise(problem, posterior)
        checked = Checked().solve(joint(problem), {"mechanism": mechanism, "posterior": posterior})
    assert np.allclose(mechanism.sum(axis=2), 1.0)
    assert gap[0] > interior.maximise(problem, posterior)[1][0]
    assert checked.values["mechanism"].shape == mechanism.shape


def test_an_alternation_has_the_same_limits() -> None:
    found = alternate(product(), tol=1e-300, max_iter=10**6, time_limit=0.05)
    assert found.overdue
    assert not found.converged


def test_a_limited_curve_goes_on_with_the_next_point() -> None:
    curve = PrivacyFunnel(TABLE).curve([0.5, 0.9], method="aem", tol=1e-300, max_iter=10**6, time_limit=0.02)
    assert len(curve) == 2
    assert not curve["converged"].any()


def test_limits_are_positive_and_isolation_goes_with_engines_by_name() -> None:
    with pytest.raises(ModelError, match="time_limit=0 is not a finite number > 0"):
        PrivacyFunnel(TABLE).solve(time_limit=0)
    for limit in (0, 1e-300, 1e-4):  # nobody answers within this, and each try costs the start of a process
        with pytest.raises(ModelError, match=f"isolate={limit} is not a finite number >= 0.001"):
            PrivacyFunnel(TABLE).solve(isolate=limit)
    with pytest.raises(ModelError, match="isolate=1.0 goes with engines by name"):
        PrivacyFunnel(TABLE).solve(engine=DCP(), isolate=1.0)


#: How CLARABEL ends in a process that finds this file first.
ENDINGS = {
    "hangs": ("import time; time.sleep(600)", "no answer within"),
    "is killed": ("import os; os.kill(os.getpid(), 9)", "its process was killed by SIGKILL"),
    "faults": ("import ctypes; ctypes.string_at(0)", "its process was killed by SIGSEGV"),
    "exits": ("import os; os._exit(3)", "its process ended with exit code 3"),
}


def broken(ending: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let CLARABEL end so at its first call in a process that is started from here; it stays whole after and here."""
    first = folder / "first"
    first.touch()
    (folder / "sitecustomize.py").write_text(
        "import os, clarabel\n"
        "class Ending:\n"
        "    def __init__(self, *_): pass\n"
        "    def solve(self):\n"
        f"        __import__('os').remove({str(first)!r})\n"
        f"        {ENDINGS[ending][0]}\n"
        f"if os.path.exists({str(first)!r}):\n"
        "    clarabel.DefaultSolver = Ending\n"
    )
    monkeypatch.syspath_prepend(folder)


class Scripted:
    """A worker in this process that ends a call as it is told."""

    def __init__(self, endings: dict[str, Ending]) -> None:
        self.endings = endings

    def call(self, function: Callable[..., Any], view: Any, name: str, *more: Any, time_limit: float) -> Ending:
        assert time_limit == 60.0
        ended = self.endings.get(name) if isinstance(name, str) else None
        return ended or Ending("returned", function(view, name, *more), seconds=0.0)


@pytest.mark.parametrize(
    ("status", "error"), [("timed out", "no answer within 60 s"), ("crashed", "its process ended")]
)
def test_an_ending_of_a_process_is_one_of_the_chain_s_failures(status: str, error: str) -> None:
    funnel = PrivacyFunnel(TABLE, 0.8)
    block, state = funnel.blocks()["u"], funnel.solve(method="aem", max_iter=3, starts=1).state
    worker: Any = Scripted({"CLARABEL": Ending(status, error=error, seconds=1.0)})
    here, alone = block.solve(state, solver=("ECOS",))
    there, solution = Elsewhere(60.0, worker).solve(block, state, solver=("CLARABEL", "ECOS"))
    assert solution.status == f"{alone.status} after CLARABEL: solver_error"
    assert solution.attempts[0].message == error
    assert all(np.array_equal(here[name], there[name]) for name in here)
    with pytest.raises(SolverFailure, match=rf"CLARABEL: solver_error \({error}\)"):
        Elsewhere(60.0, worker).solve(block, state, solver=("CLARABEL",))


PRIVATE = cpv.constraints.local_differential_privacy(1.0)
#: The others, whose blocks a solver may hang in.
OTHERS: dict[str, Callable[..., Any]] = {
    "constrained funnel": lambda **options: PrivacyFunnel(TABLE, 0.02).constrain("dp", PRIVATE).solve(**options),
    "constrained inference": lambda **options: (
        InferenceAsService(TABLE, 0.05).constrain("dp", PRIVATE).solve(method="joint", **options)
    ),
    "alternation": lambda **options: alternate(product(), **options),
    "convex-concave": lambda engine, **options: cpv.convex_concave(outside_the_disc(), **options),
}


def outside_the_disc() -> cp.Problem:
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(cp.sum(x)), [cp.norm(x) >= 1, cp.max(cp.abs(x)) <= 2])


@pytest.mark.grid(every=2)
@pytest.mark.parametrize("model", [*MODELS, *OTHERS])
def test_a_solver_that_does_not_return_is_named_in_every_model(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a worker in this process; with hanging processes below."""
    ending = Ending("timed out", error="no answer within 60 s", seconds=60.0)
    monkeypatch.setattr(Worker, "call", Scripted({"CLARABEL": ending}).call)
    solve = {**MODELS, **OTHERS}[model]
    run = solve(engine="dcp", starts=1, max_iter=2, isolate=60.0)
    assert run.history["status"].astype(str).str.contains("after CLARABEL: solver_error").any()
    with pytest.raises(SolverFailure, match=r"CLARABEL: solver_error \(no answer within 60 s\)"):
        solve(engine="dcp", starts=1, max_iter=2, isolate=60.0, solver=("CLARABEL",))


@pytest.mark.slow
def test_a_solver_that_kills_its_process_is_named_and_the_next_one_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken("is killed", tmp_path, monkeypatch)
    funnel = PrivacyFunnel(TABLE, 0.8)
    block, state = funnel.blocks()["u"], funnel.solve(method="aem", max_iter=3, starts=1).state
    here, alone = block.solve(state, solver=("ECOS",))
    elsewhere = Elsewhere(60.0)
    there, solution = elsewhere.solve(block, state, solver=("CLARABEL", "ECOS"))
    elsewhere.worker.close()
    assert solution.status == f"{alone.status} after CLARABEL: solver_error"
    assert solution.attempts[0].message == "its process was killed by SIGKILL"
    assert all(np.array_equal(here[name], there[name]) for name in here)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("model", MODELS)
def test_every_model_goes_on_where_a_solver_hangs_or_dies(
    model: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 20.0 if ending == "hangs" else 60.0  # a busy machine is not to pass for a hanging solver
    broken(ending, tmp_path, monkeypatch)
    run = MODELS[model](engine="dcp", starts=1, max_iter=1, isolate=limit)
    assert run.history["status"].astype(str).str.contains("after CLARABEL: solver_error").any()
    broken(ending, tmp_path, monkeypatch)
    limit = 1.0 if ending == "hangs" else limit  # no other solver: what is late says the same as what hangs
    with pytest.raises(SolverFailure, match=f"CLARABEL: solver_error .*{ENDINGS[ending][1]}"):
        MODELS[model](engine="dcp", starts=1, max_iter=1, isolate=limit, solver=("CLARABEL",))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_solved_in_another_process_is_the_same(engine: str) -> None:
    options: dict[str, Any] = {"engine": engine, "starts": 1, "max_iter": 6}
    here, there = MODELS["funnel"](**options), MODELS["funnel"](**options, isolate=60.0)
    assert np.array_equal(here.mechanism, there.mechanism)
    together = MODELS["funnel"](**{**options, "starts": 2}, isolate=60.0, n_jobs=2)  # the worker is not sent along
    assert np.array_equal(together.mechanism, MODELS["funnel"](**{**options, "starts": 2}).mechanism)


#: Tables whose bound asks HiGHS, which ends so in every process that is started from here.
LARGER = np.random.default_rng(1).dirichlet(np.ones(60)).reshape(6, 10)
BOUNDED: dict[str, Callable[..., Any]] = {
    "funnel": lambda **options: PrivacyFunnel(LARGER, 0.8).solve(**options),
    "constrained funnel": lambda **options: OTHERS["constrained funnel"](starts=1, **options),
    "constrained inference": lambda **options: (
        InferenceAsService(TABLE, 0.05).constrain("dp", PRIVATE).solve(max_iter=2, **options)
    ),
}


def said_of(run: Any) -> str:
    """What a run says of its bound."""
    return run.bound.reason if run.bound is not None else f"{run.note} {run.no_gap}"


@pytest.mark.parametrize("model", BOUNDED)
def test_a_bound_that_is_ended_is_named_and_the_run_goes_on(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a worker in this process; with hanging processes below."""

    def call(_: Worker, function: Any, *arguments: Any, time_limit: float) -> Ending:
        if getattr(function, "__name__", "") == "_typed":
            return Ending("timed out", error="no answer within 60 s", seconds=60.0)
        return Ending("returned", function(*arguments), seconds=0.0)

    monkeypatch.setattr(Worker, "call", call)
    run = BOUNDED[model](isolate=60.0)
    assert "the bound did not come from its process: no answer within 60 s" in said_of(run)
    sentences = [text_of(run.facts), *(fact.sentence for fact in run.facts.facts)]
    assert any("no answer within 60 s" in " ".join(one.split()) for one in sentences)
    right = BOUNDED[model]()
    assert run.converged <= (abs(run.figures["leakage"] - right.figures["leakage"]) < 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["hangs", "is killed"])
@pytest.mark.parametrize("model", BOUNDED)
def test_a_bound_whose_solver_hangs_or_dies_is_ended(
    model: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    does = ENDINGS[ending][0]
    (tmp_path / "sitecustomize.py").write_text(
        f"import highspy\ndef run(*_):\n    {does}\nhighspy.Highs.__bases__[0].run = run\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run = BOUNDED[model](isolate=20.0)
    assert f"the bound did not come from its process: {ENDINGS[ending][1]}" in said_of(run)
    assert not run.missed


@pytest.mark.slow
def test_a_bound_that_does_not_return_is_ended_and_one_that_does_is_the_same() -> None:
    here = os.getpid()

    def hanging(t: Any) -> Any:
        time.sleep(0.0 if os.getpid() == here else 60.0)
        return (t - 1.0) ** 2

    model = InferenceAsService(TABLE, 0.5, divergence=FDivergence("slow", f=hanging))
    begun = time.monotonic()
    with pytest.raises(SolverFailure, match="the bound did not come from its process: .*raise isolate"):
        model.bound(time_limit=1.0, isolate=1.0)
    assert time.monotonic() - begun < 60.0
    funnel = PrivacyFunnel(TABLE, 0.8)
    assert funnel.bound(isolate=60.0).lower == funnel.bound().lower
    with pytest.raises(ModelError, match="no mechanism that satisfies them tells"):
        funnel.constrain("dp", cpv.constraints.local_differential_privacy(0.1)).bound(isolate=60.0)
