"""When recycled ADMM converges, and how fast: Theorem IV.1 as a semidefinite program, and the exact linear rate."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from cvxpriv_models.recycled_admm import RecycledADMM
from scipy.optimize import minimize

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from tests.models.consensus_sample_complexity import samples_needed, samples_needed_privately

from .consensus_cases import model, shards


def margins_by_hand(several: RecycledADMM, eta: float, gamma: float, L: float, mu: float) -> tuple[float, float]:
    """The least eigenvalues of the symmetric parts of (i) and (ii) as the paper prints them."""
    network = several.problem.network
    degrees, a = np.diag(network.degrees), network.adjacency
    squares = np.diag(several.problem.smoothness**2)
    divisor = 2.0 * eta * network.degrees + gamma
    inverse, sigma = np.diag(1.0 / divisor), divisor.min()
    signless, laplacian = eta * (degrees + a), eta * (degrees - a)
    first = np.eye(len(a)) + signless @ inverse - L * mu / (2 * sigma) * np.linalg.pinv(laplacian) @ squares
    second = signless - signless @ inverse @ (laplacian + 2 / L * signless) - L * mu / (2 * sigma * (mu - 1)) * squares
    least = [float(np.linalg.eigvalsh(0.5 * (one + one.T))[0]) for one in (first, second)]
    return least[0], least[1]


class TestTheorem:
    def test_it_holds_at_the_l_and_mu_that_it_names(self) -> None:
        several = model(reg=0.22)
        found = several.convergence_conditions(eta=0.5, gamma=10.0)
        assert found.holds
        first, second = margins_by_hand(several, 0.5, 10.0, found.L, found.mu)
        assert min(first, second) > 0.0
        assert found.margins[0] == pytest.approx(first, rel=1e-9)
        # (ii) is reported relative to the norm of W(D + A).
        size = 0.5 * np.linalg.norm(np.diag(several.problem.network.degrees) + several.problem.network.adjacency, 2)
        assert found.margins[1] == pytest.approx(second / size, rel=1e-9)

    @pytest.mark.parametrize("gamma", [1.0, 10.0, 100.0])
    def test_both_solvers_and_our_own_certificate_meet(self, gamma: float) -> None:
        found = model(reg=0.22).convergence_conditions(eta=0.5, gamma=gamma)
        assert set(found.table["solver"]) == {"CLARABEL", "SCS"}
        assert found.table["residual"].max() < 5e-6  # row by row: SCS stops at its sum over all rows
        # By weak duality no margin exceeds the bound: together they are a proof of the optimum.
        assert (found.table["own_margin"] <= found.table["bound"].min() + 1e-12).all()
        assert found.table["own_margin"].to_numpy() == pytest.approx(found.table["bound"].to_numpy(), abs=1e-5)
        assert found.table["margin"].to_numpy() == pytest.approx(found.table["bound"].to_numpy(), abs=1e-5)

    @pytest.mark.parametrize("gamma", [1.0, 10.0])
    def test_a_search_over_l_and_mu_finds_no_better_margin(self, gamma: float) -> None:
        several = model(reg=0.22)
        found = several.convergence_conditions(eta=0.5, gamma=gamma)
        network = several.problem.network
        size = 0.5 * np.linalg.norm(np.diag(network.degrees) + network.adjacency, 2)

        def lack(logs: Array) -> float:
            L, mu = np.exp(logs[0]), 1.0 + np.exp(logs[1])
            first, second = margins_by_hand(several, 0.5, gamma, L, mu)
            return -min(first, float(second / size))

        searched = minimize(
            lack, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11, "maxiter": 2000}
        )
        assert min(found.margins) == pytest.approx(-searched.fun, abs=1e-5)
        assert min(found.margins) >= -searched.fun - 1e-7  # a solver's optimum, up to its gap

    def test_a_gamma_too_small_is_refuted_by_the_bound(self) -> None:
        found = model(reg=0.22).convergence_conditions(eta=0.5, gamma=1.0)
        assert found.holds is False
        assert "sufficient only" in found.verdict
        assert found.table["bound"].min() < -0.1

    @pytest.mark.parametrize("graph", [nx.path_graph(3), nx.cycle_graph(4), nx.star_graph(4)])
    def test_no_gamma_serves_a_bipartite_graph(self, graph: nx.Graph) -> None:
        several = model(graph=graph, sizes=(20,) * len(graph))
        for gamma in (0.0, 1.0, 100.0, 1e5):
            found = several.convergence_conditions(eta=1.0, gamma=gamma, solvers=("CLARABEL",))
            assert found.holds is False
            assert "bipartite" in found.verdict
            assert several.linear_rate(eta=1.0, gamma=gamma) < 1.0  # and yet it converges

    def test_it_holds_from_some_gamma_on(self) -> None:
        options = {"eta": 0.5, "solvers": ("CLARABEL",)}
        found = [model(reg=0.22).convergence_conditions(gamma=gamma, **options).holds for gamma in (1.0, 10.0, 100.0)]
        assert found == [False, True, True]

    def test_a_penalty_that_is_no_square_is_refused(self) -> None:
        several = RecycledADMM(nx.complete_graph(3), shards()[:3], C=20.0, penalty="l1")
        with pytest.raises(ModelError, match="not smooth"):
            several.convergence_conditions()


class TestRate:
    @pytest.mark.parametrize("algorithm", ["r-admm", "admm"])
    @pytest.mark.parametrize("eta", [0.4, 2.0])
    def test_it_is_what_a_run_on_a_squared_loss_shows(self, algorithm: str, eta: float) -> None:
        several = model("squared")
        rate = several.linear_rate(eta=eta, gamma=0.5, method=algorithm)
        # From 1e4 down to 1e-8: other modes are gone by then, and rounding, 1e-12, is not yet seen.
        length = int(np.log(1e-12) / np.log(rate))
        start = 1e4 * np.random.default_rng(0).normal(size=(5, 4))
        options = {"method": algorithm, "eta": eta, "gamma": 0.5, "max_iter": length, "tol": 1e-15, "init": start}
        found = several.solve(accelerate="none", **options)
        distance = found.history.query("block == 'pass'")["distance"].to_numpy()
        window = length // 5
        assert (distance[-1] / distance[-1 - window]) ** (1.0 / window) == pytest.approx(rate, rel=0.02)

    def test_it_is_the_same_for_large_models(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from cvxpriv_models.recycled_admm import rate

        several = model("squared")
        dense = several.linear_rate(eta=0.7)
        monkeypatch.setattr(rate, "DENSE", 10)
        assert several.linear_rate(eta=0.7) == pytest.approx(dense, rel=1e-8)

    def test_unequal_printed_penalties_converge_as_fast_though_elsewhere(self) -> None:
        with pytest.warns(UserWarning, match="printed"):
            assert model("squared").linear_rate(eta=np.array([0.5, 0.9, 0.6, 0.8, 0.7]), variant="printed") < 1.0


class TestSampleComplexity:
    def test_it_is_the_formula_at_the_worst_round(self) -> None:
        assert samples_needed(2.0, 0.5, 0.1, [0.3, 0.1], w=3.0) == pytest.approx(3.0 * 4.0 * np.log(10.0) / 0.2**2)

    def test_the_private_one_tends_to_twice_the_other_without_noise(self) -> None:
        calm = samples_needed_privately(2.0, 0.5, 0.1, 0.1, alpha=1e9, C=1750.0, nodes=5, features=105)
        assert calm == pytest.approx(2.0 * samples_needed(2.0, 0.5, 0.1, 0.1), rel=1e-9)

    def test_more_noise_and_more_features_need_more_rows_up_to_none_being_enough(self) -> None:
        needs = [
            samples_needed_privately(2.0, 0.5, 0.1, alpha=alpha, C=1750.0, nodes=5, features=5)
            for alpha in (10.0, 1.0, 0.1, 1e-3)
        ]
        assert needs == sorted(needs)
        assert needs[-1] == np.inf

    @pytest.mark.parametrize("options", [{"tau": 0.05, "excess": 0.1}, {"delta": 1.5}, {"reference_norm": -1.0}])
    def test_what_makes_no_sense_is_refused(self, options: dict[str, float]) -> None:
        with pytest.raises(ModelError):
            samples_needed(**{"reference_norm": 1.0, "tau": 0.5, "delta": 0.1, **options})
