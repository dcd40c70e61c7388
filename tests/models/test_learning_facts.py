"""What every run of a learning model says of itself: facts, a short repr, a certified gap, a picture."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import minimize

import cvxpriv as cpv
from cvxpriv.errors import DataError, ModelError
from cvxpriv.models import ISTDP, ADMMSharing, RecycledADMM
from cvxpriv.penalties import loss_named
from cvxpriv.privacy import PrivacyWarning

pytestmark = pytest.mark.filterwarnings("ignore::cvxpriv.privacy.PrivacyWarning")

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(90, 4))
Y = np.where(X @ [2.0, -1.0, 0.5, 0.0] + 0.3 * RNG.normal(size=90) > 0.0, 1, -1)
SHARING = ADMMSharing([X[:, :2], X[:, 2:]], Y)
SPARSE = ISTDP(X, Y, penalty="l2:0.1")
CONSENSUS = RecycledADMM(nx.path_graph(3), [(X[node::3], Y[node::3]) for node in range(3)], reg=1.0)
RUNS: list[Any] = [SHARING.solve(gap=0.0), SPARSE.solve(), CONSENSUS.solve()]
with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
    PRIVATE: list[Any] = [
        SHARING.solve_private(epsilon=1.0, delta=1e-5, row_bound=1.0, noise_seed=0),
        SPARSE.solve_private(epsilon=1.0, delta=1e-5, noise_seed=0),
        CONSENSUS.solve_private(epsilon=1.0, noise_seed=0),
    ]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.model)
def test_a_run_says_its_facts_and_so_does_its_file(run: Any, tmp_path: Path) -> None:
    facts = run.facts
    assert facts["objective"].value == run.objective
    assert facts["kkt"].value == run.kkt.largest <= run.settings.tol
    assert facts["iterations"].value == run.iterations
    assert facts.converged
    assert facts.unmet == ""
    assert all(fact.sentence for fact in facts.facts)
    loaded = cpv.load(run.save(tmp_path / "run.json"))
    assert loaded.facts["objective"].value == run.objective
    assert loaded.gap == run.gap
    with pytest.raises(DataError, match="solve again"):
        loaded.plot()


@pytest.mark.parametrize("run", [*RUNS, *PRIVATE], ids=lambda run: type(run).__name__)
def test_a_repr_is_a_few_lines(run: Any) -> None:
    assert 2 <= len(repr(run).splitlines()) <= 5
    assert run._repr_html_().startswith("<table>")
    assert run.model in repr(run)


@pytest.mark.parametrize("run", PRIVATE, ids=lambda run: run.model)
def test_a_private_run_says_its_guarantee_and_nothing_that_was_not_released(run: Any) -> None:
    facts = run.facts
    assert facts["epsilon"].value == run.accounting.epsilon
    assert facts["releases"].value == run.accounting.releases
    assert not {"objective", "kkt", "gap", "seconds"} & {fact.name for fact in facts.facts}
    assert run.accounting.neighbours in facts.promises[0]
    assert any("whoever knows its seed" in promise for promise in facts.promises)


@pytest.mark.parametrize("run", PRIVATE, ids=lambda run: run.model)
def test_a_private_run_comes_back_from_its_file_and_says_the_same(run: Any, tmp_path: Path) -> None:
    loaded = cpv.load(run.save(tmp_path / "run.json"))
    assert loaded.settings == run.settings
    assert loaded.ledger == run.ledger
    assert loaded.history.equals(run.history)
    assert loaded.facts == run.facts
    assert loaded.posable == run.posable


def test_a_run_that_poses_no_block_says_so() -> None:
    assert [run.posable for run in [*RUNS, *PRIVATE]] == [True, True, True, True, True, False]
    with pytest.raises(ModelError, match="a node's step reads its rows"):
        PRIVATE[2].certify()


def test_a_gap_bounds_the_distance_to_the_optimum_of_another_solver() -> None:
    logistic = loss_named("logistic")

    def least(weight: float, ridge: float) -> float:
        def f(v: np.ndarray) -> float:
            return float(weight * logistic.value(X @ v, Y).sum() + 0.5 * ridge * v @ v)

        return float(minimize(f, np.zeros(4), method="BFGS", options={"gtol": 1e-10}).fun)

    # BFGS is above the optimum itself, by its own error: 1e-9.
    assert -1e-9 <= RUNS[0].objective - least(1.0, 1.0) <= RUNS[0].gap + 1e-9
    early = SPARSE.solve(max_iter=1, accelerate="none")
    assert 0.0 < early.objective - least(1.0 / 90.0, 0.1) <= early.gap + 1e-9
    rough = CONSENSUS.solve(max_iter=3)
    excess = CONSENSUS.problem.objective(rough.mean) - least(1.0, 1.0)  # C = B: every row weighs 1
    assert 0.0 < excess <= rough.gap + 1e-9


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.model)
def test_a_run_draws_its_residual(run: Any) -> None:
    pytest.importorskip("matplotlib")
    axes = run.plot()
    assert axes.get_ylabel() == "KKT residual"
    assert run.plot(axes) is axes


@pytest.mark.parametrize("run", PRIVATE, ids=lambda run: run.model)
def test_a_private_run_draws_what_it_released(run: Any) -> None:
    pytest.importorskip("matplotlib")
    name, label = run.drawn
    axes = run.plot()
    assert axes.get_ylabel() == label
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), run.history[name])


@pytest.mark.parametrize(
    "model",
    [
        ADMMSharing([X[:, :2], X[:, 2:]], Y, penalty="l1"),
        ISTDP(X, Y, penalty="l1:0.1"),
        RecycledADMM(nx.path_graph(3), [(X[node::3], Y[node::3]) for node in range(3)], penalty="l1"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_an_unknown_gap_is_none_and_the_run_says_why(model: Any, tmp_path: Path) -> None:
    run = model.solve(max_iter=2)
    again = cpv.load(run.save(tmp_path / "run.json"))
    assert run.gap is run.facts["gap"].value is again.gap is None
    assert run.facts["gap"].detail == again.no_gap == run.no_gap != ""
    assert RUNS[0].no_gap == ""
