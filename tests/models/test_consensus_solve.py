"""Solving recycled ADMM: what it converges to, by every algorithm and engine, and what a run holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from cvxpriv_models.recycled_admm import ConsensusRun, Problem, RecycledADMM, blocks, kkt
from cvxpriv_models.recycled_admm.blocks import OddStep
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import cvxpriv
from cvxpriv.certify.check import crosscheck
from cvxpriv.errors import DataError, Disagreement, ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import GroupLasso, Penalty

from .consensus_cases import HOUSE, UNEQUAL, model, shards

SLOW = pytest.mark.slow
ETA = np.array([0.5, 0.9, 0.6, 0.8, 0.7])


def test_the_centralised_optimum_is_scikit_learn_s() -> None:
    dealt = shards(UNEQUAL)
    rows, labels = np.vstack([x for x, _ in dealt]), np.concatenate([y for _, y in dealt])
    weights = np.concatenate([np.full(len(y), 20.0 / len(y)) for _, y in dealt])
    theirs = LogisticRegression(C=1.0, fit_intercept=False, solver="newton-cholesky", tol=1e-12)
    theirs.fit(rows, labels, sample_weight=weights)
    assert model(sizes=UNEQUAL).optimum == pytest.approx(theirs.coef_.ravel(), abs=1e-9)  # their stopping rule


def badly_scaled(penalty: str | Penalty, seed: int) -> RecycledADMM:
    """A model whose columns have scales from 1e-3 to 1e3, of fewer rows at each node than the passes like."""
    random = np.random.default_rng(seed)
    scales, shards = 10.0 ** random.uniform(-3.0, 3.0, size=8), []
    for _ in HOUSE:
        x = random.normal(size=(12, 8))
        shards.append((x * scales, np.where(x.sum(axis=1) + random.logistic(size=12) > 0.0, 1.0, -1.0)))
    return RecycledADMM(HOUSE, shards, penalty=penalty, reg=0.1)


class TestConvergence:
    def test_conventional_admm_is_1e_12_from_the_optimum_after_200_rounds(self) -> None:
        found = model().solve(method="admm", eta=0.5, max_iter=200, tol=1e-15, accelerate="anderson")
        assert found.optimality.distance < 1e-12
        assert found.consensus < 1e-12

    @pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 5.0, 20.0])
    def test_recycled_admm_reaches_it_for_every_gamma(self, gamma: float) -> None:
        found = model().solve(method="r-admm", eta=0.7, gamma=gamma, max_iter=150, tol=1e-15, accelerate="anderson")
        assert found.optimality.distance < 1e-12  # the rate is at most .72: 1e-21 after 150 passes

    @pytest.mark.parametrize("algorithm", ["mr-admm", "m-admm"])
    def test_nodes_with_penalties_of_their_own_reach_it_too(self, algorithm: str) -> None:
        found = model(sizes=UNEQUAL).solve(method=algorithm, eta=ETA, growth=1.02, eta_cap=1.0, max_iter=200, tol=1e-12)
        assert found.converged
        assert found.optimality.distance < 1e-8

    @pytest.mark.parametrize("loss", ["squared", "huber", "smoothed-hinge"])
    def test_every_loss_does(self, loss: str) -> None:
        found = model(loss).solve(method="mr-admm", eta=ETA, max_iter=300, tol=1e-12, accelerate="anderson")
        assert found.converged
        assert found.optimality.distance < 1e-10

    @pytest.mark.parametrize(
        ("penalty", "seed"),
        [("l2", 0), ("l2", 1), ("l2", 2), ("l1", 2), pytest.param("elastic-net:1:0.5", 3, marks=SLOW)],
    )
    def test_newton_s_method_ends_what_passes_do_not(self, penalty: str | Penalty, seed: int, tmp_path: Path) -> None:
        slow = badly_scaled(penalty, seed)
        run, passes = slow.solve(), slow.solve(accelerate="anderson", max_iter=120)
        assert (run.converged, run.joint, run.iterations) == (True, True, 100)
        assert (passes.converged, passes.joint) == (False, False)
        assert slow.problem.objective(run.mean) < slow.problem.objective(passes.mean) + 1e-9
        assert kkt.residuals(slow.problem, run.parameters, run.state["dual"]).largest <= 1e-7  # from the data
        assert "Newton" in run.reached
        run.save(tmp_path / "run.json")
        assert ConsensusRun.load(tmp_path / "run.json").joint

    def test_an_optimum_that_is_none_ends_no_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        slow = badly_scaled("l2", 0)
        monkeypatch.setitem(slow.problem.__dict__, "optimum", slow.optimum * (1.0 + 1e-5))
        told = slow.solve(max_iter=110)
        assert (told.converged, told.joint, told.iterations) == (False, False, 110)

    @pytest.mark.parametrize(
        ("graph", "each", "loss"),
        [
            (nx.cycle_graph(20), 50, "logistic"),
            (nx.cycle_graph(20), 10, "logistic"),
            (nx.cycle_graph(20), 50, "huber"),
            (nx.star_graph(19), 50, "logistic"),
            (nx.grid_2d_graph(5, 5), 50, "squared"),
            (nx.random_regular_graph(4, 30, seed=0), 10, "logistic"),
        ],
        ids=["ring", "ring of ten rows", "ring huber", "star", "grid", "ten rows"],
    )
    def test_the_default_penalty_takes_under_a_hundred_passes(self, graph: nx.Graph, each: int, loss: str) -> None:
        # Ten rows of ten columns: a node's least curvature says nothing of the mean's.
        random = np.random.default_rng(5)
        truth, dealt = random.normal(size=10), []
        for _ in graph:
            rows = random.normal(size=(each, 10)) / np.sqrt(10.0)
            scores = 4.0 * rows @ truth / np.sqrt(10.0) + random.logistic(size=each)
            dealt.append((rows, np.where(scores > 0.0, 1.0, -1.0) if loss == "logistic" else scores))
        found = RecycledADMM(nx.convert_node_labels_to_integers(graph), dealt, loss=loss).solve()
        assert found.converged
        assert found.iterations < 100

    def test_it_does_on_a_bipartite_graph_although_the_theorem_says_nothing(self) -> None:
        found = model(graph=nx.star_graph(4)).solve(method="r-admm", eta=0.7, gamma=0.0, max_iter=300, tol=1e-13)
        assert found.converged
        assert found.optimality.distance < 1e-11

    def test_a_penalty_without_cap_freezes_the_iterates_and_the_default_cap_does_not(self) -> None:
        frozen, capped = (
            model().solve(method="mr-admm", eta=1.0, growth=1.3, eta_cap=cap, max_iter=300) for cap in (np.inf, None)
        )
        assert not frozen.converged
        assert frozen.optimality.distance > 100.0 * capped.optimality.distance

    def test_it_stops_at_its_tolerance(self) -> None:
        found = model().solve(method="r-admm", eta=0.7, max_iter=200, tol=1e-6)
        assert found.converged
        assert found.iterations < 60
        assert found.kkt.largest <= 1e-6

    def test_where_the_optimum_is_not_unique_nodes_agree_on_one_of_them(self) -> None:
        dealt = [(np.column_stack([x, x[:, 0]]), y) for x, y in shards(loss="squared")]
        found = RecycledADMM(HOUSE, dealt, loss="squared", reg=0.0, C=20.0).solve(
            method="r-admm", eta=1.0, max_iter=300, tol=1e-8
        )
        assert found.converged
        assert found.consensus < 1e-7
        assert "distance" not in found.history.columns

    def test_a_table_of_penalties_is_followed(self) -> None:
        table = 0.5 + 0.01 * np.arange(40.0)[:, None] * np.ones(5)
        history = model().solve(method="mr-admm", eta=table, max_iter=40, tol=1e-15).history
        assert history.query("block == 'pass'")["eta_least"].to_numpy() == pytest.approx(table[:, 0])


class TestEngines:
    @pytest.mark.parametrize("loss", ["logistic", "huber"])
    def test_cone_solvers_newton_and_both_at_once_end_alike(self, loss: str) -> None:
        exact, dcp, checked = (
            model(loss, UNEQUAL).solve(eta=ETA, max_iter=8, engine=engine, accelerate="none")
            for engine in ("closed_form", "dcp", "checked")
        )
        assert checked.parameters == pytest.approx(exact.parameters, abs=1e-12)  # it goes on with the exact answers
        assert dcp.parameters == pytest.approx(exact.parameters, abs=1e-5)  # minimisers: the root of a solver's gap
        assert dcp.objective == pytest.approx(exact.objective, rel=1e-6)
        assert set(checked.history["engine"]) == {"checked"}

    def test_the_checked_engine_notices_a_wrong_exact_step(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = blocks.odd_step

        def wrong(problem: Problem, previous: Array, dual: Array, noise: Array, *rest: Array) -> OddStep:
            return right(problem, previous, dual, noise + 0.5, *rest)

        monkeypatch.setattr(blocks, "odd_step", wrong)
        with pytest.raises(Disagreement, match="f/0"):
            model().solve(engine="checked", max_iter=2)

    @pytest.mark.parametrize("penalty", ["l1", "nonneg", "elastic-net:1:0.5", GroupLasso([[0, 1], [2, 3]])])
    def test_penalties_with_kinks_reach_what_a_solver_finds_for_the_whole(self, penalty: str | Penalty) -> None:
        several = RecycledADMM(nx.complete_graph(3), shards()[:3], reg=4.0, C=20.0, penalty=penalty)
        found = several.solve(method="r-admm", eta=1.0, max_iter=200, tol=1e-10)
        assert found.converged
        assert found.optimality.distance < 1e-4  # the solver's minimiser: the root of its gap
        assert found.optimality.excess < 1e-8

    def test_their_exact_step_is_the_solver_s(self) -> None:
        several = RecycledADMM(nx.complete_graph(3), shards()[:3], reg=4.0, C=20.0, penalty="l1")
        checked, dcp = (several.solve(method="r-admm", max_iter=6, engine=engine) for engine in ("checked", "dcp"))
        assert dcp.parameters == pytest.approx(checked.parameters, abs=1e-5)
        assert np.array_equal(dcp.parameters == 0.0, checked.parameters == 0.0)

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", [0, 1])
    def test_cone_solvers_are_asked_for_what_the_residual_needs(self, seed: int) -> None:
        rng = np.random.default_rng(seed)  # with a gap of 1e-10 the residual stays at 1e-6
        rows = rng.normal(size=(60, 6))
        y = np.sign(rows @ rng.normal(size=6) + 0.5 * rng.normal(size=60))
        parts = [(rows[k : k + 20], y[k : k + 20]) for k in (0, 20, 40)]
        assert RecycledADMM(nx.complete_graph(3), parts, reg=1.0).solve(engine="dcp", max_iter=100).converged

    def test_every_block_is_certified_at_the_final_point(self) -> None:
        report = model().solve(method="r-admm", eta=0.7).certify(nodes=2)
        assert report.table["case"].nunique() == 2
        report.raise_if_failed()

    def test_the_example_cases_of_the_command_line_agree(self) -> None:
        crosscheck(RecycledADMM.example_cases(), ("CLARABEL",)).raise_if_failed()


class TestResiduals:
    def test_they_are_0_at_the_optimum_and_its_multipliers(self) -> None:
        problem = model().problem
        f = np.tile(problem.optimum, (5, 1))
        found = kkt.residuals(problem, f, -0.5 * problem.gradients(f))
        assert found.largest < 1e-13

    def test_each_sees_its_own_fault(self) -> None:
        problem = model().problem
        f = np.tile(problem.optimum, (5, 1))
        dual = -0.5 * problem.gradients(f)
        moved = f.copy()
        moved[3] += 0.1
        degrees = problem.network.degrees
        assert kkt.residuals(problem, moved, dual).consensus == pytest.approx(
            0.2 * np.sqrt(degrees[3] + degrees[3] ** 2)
        )
        shifted = dual.copy()
        shifted[2, 0] += 0.1
        assert kkt.residuals(problem, f, shifted).dual_sum == pytest.approx(0.1)
        assert max(kkt.residuals(problem, f, shifted).stationarity) == pytest.approx(0.2)


@pytest.fixture(scope="module")
def run() -> ConsensusRun:
    return model(sizes=UNEQUAL).solve(method="r-admm", eta=0.7, max_iter=100)


class TestRun:
    def test_its_parameters_are_the_odd_iterate_and_its_state_has_the_even_one(self, run: ConsensusRun) -> None:
        assert np.array_equal(run.parameters, run.state["odd"])
        assert run.state["f"] == pytest.approx(run.parameters, abs=1e-7)  # both converge; the tolerance is 1e-8
        assert run.objective == pytest.approx(run.history["objective"].dropna().iloc[-1], rel=1e-13)

    def test_its_history_has_every_figure_and_the_distance_falls(self, run: ConsensusRun) -> None:
        passes = run.history.query("block == 'pass'")
        assert len(passes) == run.iterations
        assert passes["distance"].iloc[-1] < 1e-6 * passes["distance"].iloc[0]
        assert passes["kkt"].iloc[-1] == pytest.approx(run.kkt.largest, rel=1e-3)

    def test_it_predicts_by_the_mean_or_by_one_node(self, run: ConsensusRun) -> None:
        x = shards()[0][0]
        assert run.decision_function(x) == pytest.approx(x @ run.parameters.mean(axis=0))
        assert run.decision_function(x, node=3) == pytest.approx(x @ run.parameters[3])
        assert run.predict_proba(x)[:, 1] == pytest.approx(expit(run.decision_function(x)))
        assert set(run.predict(x)) <= {-1.0, 1.0}
        with pytest.raises(ModelError, match="node=9"):
            run.predict(x, node=9)
        with pytest.raises(DataError, match="3 columns"):
            run.predict(x[:, :3])

    def test_labels_come_back_as_they_were_given(self) -> None:
        dealt = [(x, np.where(y > 0, "yes", "no")) for x, y in shards()]
        found = RecycledADMM(HOUSE, dealt, reg=1.0, C=20.0).solve(eta=0.7)
        assert set(found.predict(dealt[0][0])) == {"yes", "no"}

    def test_other_losses_model_no_probability(self) -> None:
        found = model("squared").solve(eta=0.7, max_iter=5)
        x = shards()[0][0]
        assert found.predict(x) == pytest.approx(found.decision_function(x))
        with pytest.raises(ModelError, match="gives no probabilities"):
            found.predict_proba(x)

    def test_what_is_saved_comes_back_without_the_data(self, run: ConsensusRun, tmp_path: Path) -> None:
        back = cvxpriv.load(run.save(tmp_path / "run.json"))
        assert isinstance(back, ConsensusRun)
        assert np.array_equal(back.parameters, run.parameters)
        assert (back.settings, back.kkt, back.labels, back.iterations) == (
            run.settings,
            run.kkt,
            run.labels,
            run.iterations,
        )
        x = shards()[0][0]
        assert np.array_equal(back.predict(x), run.predict(x))
        with pytest.raises(ModelError, match="solve again"):
            _ = back.optimality

    def test_nodes_that_json_cannot_name_are_refused(self, tmp_path: Path) -> None:
        grid = nx.grid_2d_graph(1, 2)
        found = RecycledADMM(grid, shards()[:2], C=20.0).solve(max_iter=1)
        with pytest.raises(ModelError, match="relabel"):
            found.save(tmp_path / "run.json")

    def test_a_callback_sees_every_round_and_may_end_the_run(self) -> None:
        seen: list[tuple[str, int]] = []

        def callback(loop: str, iteration: int, figures: Mapping[str, Array]) -> bool:
            seen.append((loop, iteration))
            return iteration == 3

        found = model().solve(max_iter=10, callback=callback)
        assert seen == [("pass", 1), ("pass", 2), ("pass", 3)]
        assert found.interrupted
        assert found.iterations == 3

    def test_a_start_is_taken_for_all_nodes_or_for_each(self) -> None:
        one = np.arange(4.0)
        same, each = (model().solve(max_iter=2, init=init) for init in (one, np.tile(one, (5, 1))))
        assert np.array_equal(same.parameters, each.parameters)
        assert not np.allclose(same.parameters, model().solve(max_iter=2).parameters)
