"""What RADMM prints and what is right: for each line the printed form fails and the corrected one holds.

The formulas as printed stand here and, where the product offers them, under the name `printed`.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from cvxpriv_models.recycled_admm import RecycledADMM
from cvxpriv_models.recycled_admm.blocks import odd_step
from cvxpriv_models.recycled_admm.conditions import conditions
from cvxpriv_models.recycled_admm.graph import dual_step, edge_weights, even_step
from cvxpriv_models.recycled_admm.newton import centralised

from cvxpriv.errors import NoGuaranteeWarning
from cvxpriv.numerics.arrays import Array
from tests.models.consensus_sample_complexity import samples_needed, samples_needed_privately

from ..models.consensus_cases import HOUSE, model, shards

ETA = np.array([0.5, 0.9, 0.6, 0.8, 0.7])


class TestPenaltiesOfEachNode:
    """(14)-(17) with unequal eta_i, Theorem IV.1, and Algorithm 2's growing penalties."""

    def test_the_printed_form_converges_to_another_point_and_says_so(self) -> None:
        several = model()
        with pytest.warns(NoGuaranteeWarning, match="sum_i O_i/eta_i"):
            found = several.solve(method="mr-admm", eta=ETA, max_iter=300, tol=1e-13, variant="printed")
        problem, shares = several.problem, 1.0 / ETA
        weights = problem.row_weights * np.repeat(shares, problem.rows.counts)
        weighted = centralised(problem.rows, problem.y, problem.loss, weights, problem.ridge * shares.sum())
        assert np.abs(found.parameters - weighted).max() < 1e-8
        assert not found.joint
        assert found.optimality.distance > 0.05
        # Everything but the sum of the multipliers is at rounding: (30) and (31) do not tell the two points apart.
        assert max(found.kkt.stationarity) < 1e-11
        assert found.kkt.consensus < 1e-11
        assert found.kkt.dual_sum > 0.1
        assert not found.converged

    def test_what_it_keeps_is_the_sum_of_the_multipliers_over_their_penalties(self) -> None:
        rng = np.random.default_rng(0)
        f, dual = rng.normal(size=(2, 5, 4))
        after = dual_step(dual, f, edge_weights(ETA, nx.to_numpy_array(HOUSE), "printed"))
        assert (after / ETA[:, None]).sum(axis=0) == pytest.approx((dual / ETA[:, None]).sum(axis=0), abs=1e-13)

    def test_one_weight_an_edge_reaches_the_optimum(self) -> None:
        found = model().solve(method="mr-admm", eta=ETA, max_iter=300, tol=1e-13)
        assert found.converged
        assert found.optimality.distance < 1e-8
        assert found.kkt.dual_sum < 1e-12

    def test_equal_penalties_make_no_difference_and_no_warning(self) -> None:
        printed, edge = (
            model().solve(method="r-admm", eta=0.7, max_iter=20, variant=one) for one in ("printed", "edge")
        )
        assert printed.parameters == pytest.approx(edge.parameters, abs=1e-12)

    @pytest.mark.grid(every=2)
    @pytest.mark.parametrize(("growth", "floor"), [(1.04, 1e-7), (1.1, 1e-3), (1.3, 0.05)])
    def test_a_penalty_that_grows_without_end_freezes_short_of_the_optimum(self, growth: float, floor: float) -> None:
        distances = [
            model()
            .solve(method="mr-admm", eta=1.0, growth=growth, eta_cap=np.inf, max_iter=rounds, tol=1e-16)
            .optimality.distance
            for rounds in (250, 350)
        ]
        assert distances[1] > floor
        assert distances[1] == pytest.approx(distances[0], rel=0.05)  # a hundred rounds more change nothing


class TestConvergenceConditions:
    """Theorem IV.1, (i)-(iv): "by controlling gamma to be sufficiently large ... can always be satisfied"."""

    def test_the_matrices_it_compares_are_not_symmetric(self) -> None:
        network = RecycledADMM(nx.star_graph(4), shards(), C=20.0).problem.network
        signless = np.diag(network.degrees) + network.adjacency
        left = np.eye(5) + signless / (2.0 * network.degrees + 1.0)
        assert not np.allclose(left, left.T)

    @pytest.mark.parametrize("graph", [nx.path_graph(3), nx.cycle_graph(4), nx.star_graph(4)])
    def test_no_gamma_satisfies_them_on_bipartite_graphs_where_the_iteration_converges(self, graph: nx.Graph) -> None:
        several = model(graph=graph, sizes=(20,) * len(graph))
        assert all(several.convergence_conditions(eta=1.0, gamma=gamma).holds is False for gamma in (0.0, 10.0, 1e5))
        assert several.solve(method="r-admm", eta=0.7, gamma=0.0, max_iter=400, tol=1e-12).converged

    @pytest.mark.parametrize(
        ("graph", "smallest"),
        [(HOUSE, 5.62), (nx.complete_graph(3), 2.24)],  # ERRATA RADMM 3: on a grid of 10^(k/20), eta = M_i = 1
    )
    def test_the_simplified_ones_begin_to_hold_where_they_do(self, graph: nx.Graph, smallest: float) -> None:
        def simplified(gamma: float) -> float:
            nodes = len(graph)
            one = RecycledADMM(graph, [(np.eye(2), np.zeros(2))] * nodes, loss="squared", reg=0.0, C=2.0)
            # The gradient of (2/2) sum of squares / 2 on the unit rows: M_i = 1.
            assert one.problem.smoothness == pytest.approx(np.ones(nodes))
            return min(conditions(one.problem, np.ones(nodes), gamma, "edge", ("CLARABEL",)).simplified)

        assert simplified(smallest) > 0.0
        assert simplified(smallest / 10 ** (1 / 20)) < 0.0


class TestTypesettingErrors:
    """Section III-C: the parentheses before (19); "a term is added to (12)"; the step of the even iteration."""

    @staticmethod
    def a_step() -> tuple[Array, Array, Array, Array, Array]:
        problem = model().problem
        previous, dual, noise = np.random.default_rng(1).normal(size=(3, 5, 4))
        links = edge_weights(ETA, nx.to_numpy_array(HOUSE))
        found = odd_step(problem, previous, dual, noise, links)
        return previous, 2.0 * dual, noise + found.gradient, found.f, links

    def test_the_parenthesis_before_19_closes_too_early(self) -> None:
        previous, twice, left, f, links = self.a_step()
        spans = links.sum(axis=1)[:, None]
        # sum_j (2 f_i) - f_i(2k-2) - f_j(2k-2), as printed, subtracts f_i(2k-2) once and f_j(2k-2) outside the sum.
        printed = -twice - (2.0 * spans * f - previous)
        right = -twice - (2.0 * spans * f - spans * previous - links @ previous)
        assert left == pytest.approx(right, abs=1e-12)
        assert np.abs(left - printed).max() > 0.1

    def test_the_step_size_of_section_iii_lacks_the_number_of_neighbours(self) -> None:
        previous, twice, left, f, links = self.a_step()
        spans, gamma = links.sum(axis=1)[:, None], 0.5
        apart = spans * f - links @ f
        direction = left + twice + 2.0 * apart  # (19): 2 lambda(2k-1) = 2 lambda(2k-2) + apart
        even = even_step(f, previous, links, gamma)
        assert even == pytest.approx(f - direction / (2.0 * spans + gamma), abs=1e-12)
        assert np.abs(even - (f - direction / (2.0 * ETA[:, None] + gamma))).max() > 0.1


def test_without_noise_theorem_vi_2_asks_for_twice_the_rows_of_vi_1_and_not_the_same() -> None:
    calm = samples_needed_privately(1.0, 0.5, 0.1, alpha=1e12, C=1750.0, nodes=5, features=105)
    assert calm == pytest.approx(2.0 * samples_needed(1.0, 0.5, 0.1), rel=1e-9)
