"""Solvers that fail in any way: the next one is asked, the result says so, and nothing wrong passes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import clarabel
import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import cvxpriv as cpv
from cvxpriv.divergences.verification.agreement import _least
from cvxpriv.errors import Disagreement, SolverFailure
from cvxpriv.kkt.conic.cones.layout import ConeLayout
from cvxpriv.kkt.conic.program import solved_by_clarabel
from cvxpriv.models import ISTDP, ADMMSharing, InferenceAsService, PrivacyFunnel, RecycledADMM
from cvxpriv.schedules.problem_starts import drawn

TABLE = cpv.JointTable.from_counts([[12, 3, 5], [1, 8, 6], [2, 2, 9]])


class Panic(BaseException):
    """As compiled code raises it."""


def raising(error: BaseException) -> Callable[[cp.Problem], None]:
    def stub(problem: cp.Problem) -> None:
        raise error

    return stub


def claiming(value_of: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> Callable[[cp.Problem], None]:
    """Return a stub that calls optimal what it makes up from each variable's shape."""

    def stub(problem: cp.Problem) -> None:
        for variable in problem.variables():
            variable.save_value(value_of(np.ones(variable.shape)))
        problem._status, problem._value, problem._solver_stats = cp.OPTIMAL, 0.0, None

    return stub


STUBS = {
    "value error": raising(ValueError("broken")),
    "runtime error": raising(RuntimeError("broken")),
    "panic": raising(Panic("called unwrap on None")),
    "memory": raising(MemoryError()),
    "solver error": raising(cp.error.SolverError("broken")),
    "not a number": claiming(lambda ones: ones * np.nan),
    "garbage": claiming(lambda ones: 1e3 * np.random.default_rng(0).normal(size=ones.shape)),
    "infinite": claiming(lambda ones: ones * np.inf),
}
#: What is said of each where every solver does it.
WORDS = {
    "value error": "ValueError: broken",
    "runtime error": "RuntimeError: broken",
    "panic": "Panic: called unwrap on None",
    "memory": "out of memory",
    "solver error": "broken",
    "not a number": "optimal, but .* no numbers",
    "garbage": "optimal, but its point violates",
    "infinite": "optimal, but .* no numbers",
}
#: Constraints under which a solver does the work.
PRIVATE, OWN = cpv.constraints.local_differential_privacy(1.0), lambda mechanism: mechanism[0, 0] <= 0.6
FEW: dict[str, Any] = {"engine": "dcp", "starts": 1, "max_iter": 2}
MODELS: dict[str, Callable[..., Any]] = {
    "funnel": lambda **o: PrivacyFunnel(TABLE, 0.8).solve(**{"method": "aem", **FEW, **o}),
    "inference": lambda **o: InferenceAsService(TABLE, 0.5).solve(**{**FEW, **o}),
    "funnel, constrained": lambda **o: PrivacyFunnel(TABLE, 0.02).constrain("dp", PRIVATE).solve(**{**FEW, **o}),
    "inference, constrained": lambda **o: InferenceAsService(TABLE, 0.05).constrain("own", OWN).solve(**{**FEW, **o}),
    "sharing": lambda **o: ADMMSharing(*sharing_data()).solve(**{"engine": "dcp", "max_iter": 20, **o}),
    "consensus": lambda **o: RecycledADMM(nx.path_graph(3), shards()).solve(**{"engine": "dcp", "max_iter": 10, **o}),
    "sparse": lambda **o: ISTDP(*sparse_data(), penalty="mcp:0.05:3").solve(**{"engine": "dcp", "max_iter": 20, **o}),
    "alternate": lambda engine="dcp", **o: cpv.alternate(product(), starts=1, max_iter=50, engine=engine, **o),
    "convex-concave": lambda engine="dcp", **o: cpv.convex_concave(outside_the_disc(), starts=1, max_iter=50, **o),
}
#: Those whose blocks have no constraints that garbage would violate.
FREE = ("sharing", "consensus", "sparse")


def product() -> cp.Problem:
    w, h = cp.Variable((3, 1), nonneg=True, name="w"), cp.Variable((1, 3), nonneg=True, name="h")
    data = np.random.default_rng(0).uniform(size=(3, 3))
    return cp.Problem(cp.Minimize(cp.sum_squares(data - w @ h)), [cp.sum(w) == 1])


def outside_the_disc() -> cp.Problem:
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(cp.sum(x)), [cp.norm(x) >= 1, cp.max(cp.abs(x)) <= 2])


def sharing_data() -> tuple[list[Any], Any]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(12, 2)) for _ in range(2)], rng.choice([-1.0, 1.0], 12)


def sparse_data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(20, 4)), rng.choice([-1.0, 1.0], 20)


def shards() -> list[Any]:
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(8, 2)), rng.choice([-1.0, 1.0], 8)) for _ in range(3)]


def perturbed(size: float) -> Callable[[cp.Problem], None]:
    """Return a stub that calls optimal a point beside the optimum."""

    def stub(problem: cp.Problem) -> None:
        TRUE_SOLVE(problem, solver="CLARABEL", warm_start=False)
        rng = np.random.default_rng(1)
        for variable in problem.variables():
            variable.save_value(variable.value * (1.0 + size * rng.normal(size=variable.shape)))

    return stub


def outside(size: float) -> Callable[[cp.Problem], None]:
    """Return a stub that calls optimal a point a little outside of the constraints."""

    def stub(problem: cp.Problem) -> None:
        TRUE_SOLVE(problem, solver="CLARABEL", warm_start=False)
        for variable in problem.variables():
            variable.save_value(variable.value - size)

    return stub


TRUE_SOLVE = cp.Problem.solve
LIES = {name: STUBS[name] for name in ("not a number", "garbage", "infinite")} | {
    "zero": claiming(lambda ones: 0.0 * ones),
    "beside the optimum": perturbed(1e-2),
    "near the optimum": perturbed(1e-4),
    "outside": outside(1e-4),
    "hardly outside": outside(1e-6),
}
QUICK = ("not a number", "infinite")
#: From these the passes, and the gate at the constraints, may still reach a right point.
NEAR = ("near the optimum", "outside", "hardly outside")


def replaced(monkeypatch: pytest.MonkeyPatch, stub: Callable[[cp.Problem], None], broken: set[str]) -> None:
    """Let some solvers do what a stub does."""
    solve = cp.Problem.solve

    def supervised(problem: cp.Problem, *args: Any, **options: Any) -> Any:
        if options.get("solver") in broken:
            stub(problem)
            return None
        return solve(problem, *args, **options)

    monkeypatch.setattr(cp.Problem, "solve", supervised)
    monkeypatch.setattr("cvxpriv.blocks.block.Block._program", lambda *_: None)  # the fast path has its own test


@pytest.mark.grid(every=7)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stub", STUBS)
@pytest.mark.parametrize("model", MODELS)
def test_what_the_first_solver_does_wrong_is_said_and_the_next_one_answers(
    model: str, stub: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced(monkeypatch, STUBS[stub], {"CLARABEL"})
    run = MODELS[model]()
    said = run.history["status"].astype(str)
    if stub == "garbage" and model in FREE:
        assert not run.converged
    else:
        assert said.str.contains("after CLARABEL: solver_error").any()
    numbers = run.history.select_dtypes("number").to_numpy()
    assert not np.isinf(numbers).any()


@pytest.mark.parametrize("stub", STUBS)
def test_random_starts_and_checks_of_divergences_go_on_with_the_next_solver(
    stub: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum(x)), [cp.sum_squares(x) <= 1.0, x >= 0.5])
    replaced(monkeypatch, STUBS[stub], {"CLARABEL"})
    start = drawn(problem, np.random.default_rng(0))["x"]
    assert start.min() > 0.499
    assert start @ start < 1.001
    if stub != "garbage":  # a wrong value by itself is for the comparison that asked for it
        assert _least(problem, 1.0, 1e-6) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("status", [cp.INFEASIBLE, pytest.param(cp.OPTIMAL, marks=pytest.mark.slow)])
def test_one_lying_solver_refutes_no_divergence(status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stub(problem: cp.Problem) -> None:
        claiming(lambda ones: 1e30 * ones)(problem)
        problem._status, problem._value = status, 1e30 if status == cp.OPTIMAL else np.inf

    replaced(monkeypatch, stub, {"CLARABEL"})
    assert cpv.verify("chi-square", solvers="ECOS").passed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stub", STUBS)
@pytest.mark.parametrize("model", MODELS)
def test_where_every_solver_fails_the_error_names_each(model: str, stub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(monkeypatch, STUBS[stub], {"CLARABEL", "ECOS", "SCS"})
    words = ".*".join(rf"{name}: solver_error \({WORDS[stub]}" for name in ("CLARABEL", "ECOS", "SCS"))
    if stub == "garbage" and model in FREE:
        assert not MODELS[model]().converged
        return
    with pytest.raises(SolverFailure, match=words):
        MODELS[model]()


def test_a_start_at_a_stationary_point_needs_no_solver_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(monkeypatch, STUBS["runtime error"], {"CLARABEL", "ECOS", "SCS"})
    x = cp.Variable(2, name="x")
    corner = cp.Problem(cp.Minimize(-cp.norm(x)), [cp.norm_inf(x) <= 1])
    assert cpv.convex_concave(corner, init={"x": [1.0, 1.0]}).converged
    with pytest.raises(SolverFailure, match="no start came through its first pass: block .*RuntimeError: broken"):
        cpv.convex_concave(corner, init={"x": [1.0, 0.5]})


@pytest.mark.filterwarnings("ignore")
def test_private_fits_ask_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(monkeypatch, STUBS["panic"], set(cp.installed_solvers()))
    guarded = {"epsilon": 1.0, "noise_seed": 1}
    parts, labels = sharing_data()
    rows, signs = sparse_data()
    for run in (
        ADMMSharing(parts, labels).solve_private(**guarded, delta=1e-3, row_bound=9.0),
        RecycledADMM(nx.path_graph(3), shards()).solve_private(**guarded, clip_rows=True),
        ISTDP(rows, signs).solve_private(**guarded, delta=1e-3, row_bound=9.0),
    ):
        assert run.finite


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "lie", "engine"),
    [
        pytest.param(model, lie, engine, marks=() if lie in QUICK else pytest.mark.slow)
        for model in MODELS
        for lie in LIES
        for engine in ("dcp", "checked")
    ],
)
def test_where_every_solver_lies_nothing_wrong_is_called_converged(
    engine: str, model: str, lie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced(monkeypatch, LIES[lie], {"CLARABEL", "ECOS", "SCS"})
    try:
        run = MODELS[model](engine=engine)
    except (SolverFailure, Disagreement):
        return
    monkeypatch.undo()
    numbers = run.history.select_dtypes("number").to_numpy()
    assert not np.isinf(numbers).any()
    if run.converged:
        found = run.certify(("CLARABEL",)).table
        assert set(found["verdict"]) <= {"agrees", "loose"}
        assert not getattr(run, "missed", {})
        trivial = model in ("inference", "sparse")  # there the trivial answer may be the right one
        assert engine == "checked" or trivial or lie in NEAR


ALONE = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
import numpy as np
import cvxpriv as cpv
from cvxpriv.models import InferenceAsService, PrivacyFunnel, RecycledADMM, ISTDP, ADMMSharing
table = cpv.JointTable.from_counts([[12, 3], [1, 8]])
for run in (PrivacyFunnel(table, 0.8).solve(starts=1), InferenceAsService(table, 0.5).solve(starts=1)):
    assert run.converged, run
assert set(run.certify().table["solver"]) & {{"CLARABEL", "ECOS", "SCS"}} == {left!r}  # of the last
print("done")
"""


@pytest.mark.parametrize(
    ("blocked", "left"),
    [
        (["ecos"], {"CLARABEL", "SCS"}),
        pytest.param(["ecos", "scs", "osqp"], {"CLARABEL"}, marks=pytest.mark.slow),
        pytest.param(["ecos", "clarabel", "osqp"], {"SCS"}, marks=pytest.mark.slow),
    ],
)
def test_defaults_adapt_to_the_solvers_that_are_installed(blocked: list[str], left: set[str]) -> None:
    program = ALONE.format(blocked=blocked, left=left)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "done"


def test_a_point_of_another_shape_is_none_and_a_missing_solver_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The convex quadratic model that names a face asks CLARABEL itself: whatever it answers, there is another way."""
    eye, layout = sp.eye_array(3, format="csc"), ConeLayout(nonneg=3)
    ask = partial(solved_by_clarabel, eye, -eye, -np.ones(3), layout, 1e-9)
    found, prices = ask()
    assert found is not None
    assert prices is not None
    assert found == pytest.approx(np.ones(3), abs=1e-6)
    for x in ([1.0, 1.0], [1.0] * 4, [np.nan] * 3, ["a"] * 3, None, 1.0):
        wrong = SimpleNamespace(solve=lambda x=x: SimpleNamespace(x=x, z=[1.0]))
        monkeypatch.setattr("clarabel.DefaultSolver", lambda *_, wrong=wrong: wrong)
        assert ask() == (None, None)
    monkeypatch.setitem(sys.modules, "clarabel", None)
    assert ask() == (None, None)


@pytest.mark.parametrize("x", [[1.0], [1.0, 2.0], [[1.0, 2.0, 3.0]], [], None])
def test_a_cross_check_takes_a_point_of_another_shape_for_none(x: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    y = cp.Variable(3, name="y")
    told = {"status": "Solved", "obj_val": 0.0, "obj_val_dual": 0.0, "solve_time": 0.0, "iterations": 1}
    wrong = SimpleNamespace(x=x, s=[], z=[1.0], **told)
    monkeypatch.setattr(clarabel, "DefaultSolver", lambda *_: SimpleNamespace(solve=lambda: wrong))
    report = cpv.crosscheck(cp.Problem(cp.Minimize(cp.sum(y)), [y >= 1.0]), ["CLARABEL", "HIGHS"])
    assert report.verdicts["CLARABEL"].verdict not in ("agrees", "loose")
