"""Recycled ADMM's steps: exact Newton, cone solvers and plain formulas agree; the stacked recursion is the same run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from cvxpriv_models.recycled_admm import RecycledADMM, algorithm, blocks
from cvxpriv_models.recycled_admm.blocks import kinked, odd_step
from cvxpriv_models.recycled_admm.conditions import Operators
from cvxpriv_models.recycled_admm.graph import dual_step, edge_weights, even_step, pull, reach
from scipy import sparse
from scipy.optimize import minimize

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.errors import NotConverged, PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import GroupLasso
from cvxpriv.schedules.history import Context
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Public, Update

from .consensus_cases import HOUSE, UNEQUAL, model, shards
from .consensus_recursion import even_gap, odd_gap, recursion_gaps

LOSSES = ("logistic", "squared", "huber", "smoothed-hinge")
ETA = np.array([0.5, 0.9, 0.6, 0.8, 0.7])
ADJACENCY = nx.to_numpy_array(HOUSE)


def a_point(seed: int = 1) -> tuple[Array, Array, Array]:
    """f(2k-2), lambda(2k-2) and noise, none of them 0."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(5, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 4))


class TestOddStep:
    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("sizes", [(20,) * 5, UNEQUAL])
    def test_its_gradient_is_0_by_the_formula_of_18(self, loss: str, sizes: tuple[int, ...]) -> None:
        problem = model(loss, sizes, reg=0.22).problem
        previous, dual, noise = a_point()
        links = edge_weights(ETA, ADJACENCY)
        found = odd_step(problem, previous, dual, noise, links)
        for i, (x, y) in enumerate(shards(sizes, loss=loss)):
            slopes = 20.0 / len(y) * x.T @ problem.loss.gradient(x @ found.f[i], y) + 0.22 / 5 * found.f[i]
            drawn = sum(links[i, j] * (2.0 * found.f[i] - previous[i] - previous[j]) for j in range(5))
            # Terms of size ten: their rounding.
            assert np.linalg.norm(slopes + 2.0 * dual[i] + noise[i] + drawn) < 1e-12
            assert found.gradient[i] == pytest.approx(slopes, abs=1e-12)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_scipy_finds_no_lower_value(self, loss: str) -> None:
        problem = model(loss).problem
        previous, dual, noise = a_point()
        links = edge_weights(ETA, ADJACENCY)
        found = odd_step(problem, previous, dual, noise, links)
        one = problem.of_node(2)

        def value(f: Array) -> float:
            squares = sum(links[2, j] * np.sum(((previous[2] + previous[j]) / 2 - f) ** 2) for j in range(5))
            return float(one.objectives(f[None])[0] + (2.0 * dual[2] + noise[2]) @ f + squares)

        other = minimize(value, previous[2], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12})
        assert value(found.f[2]) <= other.fun + 1e-12
        assert other.x == pytest.approx(found.f[2], abs=1e-5)  # a simplex sees its least to a root of rounding

    def test_sparse_rows_and_dense_ones_give_the_same(self) -> None:
        dealt = shards(UNEQUAL)
        rare = RecycledADMM(HOUSE, [(sparse.csr_array(x), y) for x, y in dealt], reg=1.0, C=20.0).problem
        previous, dual, noise = a_point()
        links = edge_weights(ETA, ADJACENCY)
        dense = odd_step(model(sizes=UNEQUAL).problem, previous, dual, noise, links)
        assert odd_step(rare, previous, dual, noise, links).f == pytest.approx(dense.f, abs=1e-13)

    def test_it_is_exact_from_a_start_where_the_logistic_loss_is_flat(self) -> None:
        problem = model(reg=0.01).problem
        previous, dual, noise = a_point()
        links = edge_weights(np.full(5, 0.01), ADJACENCY)
        near, far = (odd_step(problem, previous, dual, noise, links, start) for start in (None, np.full((5, 4), 1e3)))
        assert far.f == pytest.approx(near.f, rel=1e-11)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_the_cone_solver_agrees_node_by_node(self, loss: str) -> None:
        problem = model(loss, UNEQUAL).problem
        previous, dual, noise = a_point()
        links = edge_weights(ETA, ADJACENCY)
        exact = odd_step(problem, previous, dual, noise, links).f
        zeros = {"odd": np.zeros((5, 4)), "gradient": np.zeros((5, 4)), "loss": np.zeros(5)}
        view = {"f": previous, "dual": dual, "noise": noise, "eta": ETA, **zeros}
        for node in range(5):
            block = blocks.odd_block(problem, node, "edge")
            written, solution = block.solve(view, solver="CLARABEL")
            assert block.direct is not None
            alone = block.direct({name: value[None] for name, value in view.items()})["odd"][0]
            # One node by itself takes the same Newton steps.
            assert alone[node] == pytest.approx(exact[node], abs=1e-12)
            assert not alone[np.arange(5) != node].any()
            assert written["odd"][node] == pytest.approx(exact[node], abs=1e-5)  # the root of a solver's gap
            mine = block.objective({**view, "odd": exact}, view)
            assert mine <= solution.objective + 1e-12
            assert solution.objective == pytest.approx(mine, rel=1e-8)
            assert block.residual({**view, "odd": exact}, view).largest < 1e-10

    def test_without_a_penalty_and_with_separable_data_the_optimum_is_refused(self) -> None:
        dealt = [(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])) for _ in range(2)]
        with pytest.raises(NotConverged, match="reg"):
            _ = RecycledADMM(nx.path_graph(2), dealt, reg=0.0, C=2.0).optimum

    @pytest.mark.parametrize("loss", ["squared", "huber"])
    @pytest.mark.parametrize(("rows", "features", "reg"), [(4, 8, 1e-3), (10, 10, 1e-8), (30, 60, 1e-12)])
    def test_a_fit_that_goes_through_all_rows_is_found(self, loss: str, rows: int, features: int, reg: float) -> None:
        # There all terms of the gradient vanish: what is left is the rounding of the predictions.
        rng = np.random.default_rng(rows)
        for _ in range(8):
            x, y = rng.normal(size=(rows, features)), rng.choice([-1.0, 1.0], rows)
            halves = [(x[half::2], y[half::2]) for half in range(2)]
            problem = RecycledADMM(nx.path_graph(2), halves, loss=loss, reg=reg, C=1.0)
            left = sum(a.T @ (a @ problem.optimum - b) / len(b) for a, b in halves)
            scale = reg * 2 + sum(np.linalg.norm(a, 2) ** 2 for a, _ in halves)
            assert np.linalg.norm(left + reg * problem.optimum) <= 1e-12 * scale * (1 + np.linalg.norm(problem.optimum))


class TestEdgeWeights:
    def test_edges_carry_the_smaller_penalty_and_are_symmetric(self) -> None:
        links = edge_weights(ETA, ADJACENCY)
        assert links[0, 1] == 0.5
        assert links[2, 3] == 0.6
        assert links[1, 3] == 0.0
        assert np.array_equal(links, links.T)

    def test_printed_ones_are_each_node_s_own(self) -> None:
        assert np.array_equal(edge_weights(ETA, ADJACENCY, "printed"), ETA[:, None] * ADJACENCY)

    def test_the_dual_step_keeps_the_sum_of_the_multipliers(self) -> None:
        f, dual, _ = a_point()
        after = dual_step(dual, f, edge_weights(ETA, ADJACENCY))
        assert after.sum(axis=0) == pytest.approx(dual.sum(axis=0), abs=1e-13)


class TestEvenStep:
    @pytest.mark.parametrize("gamma", [0.0, 0.5, 20.0])
    @pytest.mark.parametrize("variant", ["edge", "printed"])
    def test_public_values_give_what_19_computes_from_gradient_and_noise(self, gamma: float, variant: str) -> None:
        problem = model().problem
        previous, dual, noise = a_point()
        links = edge_weights(ETA, ADJACENCY, variant)
        found = odd_step(problem, previous, dual, noise, links)
        after = dual_step(dual, found.f, links)
        apart = reach(links)[:, None] * found.f - links @ found.f
        direction = noise + found.gradient + 2.0 * after + apart
        as_printed = found.f - direction / (2.0 * reach(links) + gamma)[:, None]
        # The odd step's residual, over a divisor of at least 2, and rounding.
        assert even_step(found.f, previous, links, gamma) == pytest.approx(as_printed, abs=1e-12)

    def test_it_may_read_nothing_unpublished(self) -> None:
        even = blocks.even_update(model().problem, "edge", 0.5)
        assert even.reads == {"f", "odd", "eta"}
        reader = Update("reader", lambda view: {"f": view["gradient"]}, even.reads | {"gradient"}, frozenset({"f"}))
        with pytest.raises(PrivacyError, match="gradient"):
            Public(reader, even.reads)

    def test_one_that_reads_more_than_it_declares_is_stopped_when_it_runs(self) -> None:
        problem = model().problem
        even = blocks.even_update(problem, "edge", 0.5)
        sly = replace(even, step=Update("even", lambda view: {"f": view["noise"]}, even.reads, even.writes))
        with pytest.raises(PrivacyError, match="noise"):
            run(sly, algorithm.initial_state(problem), Context(ClosedForm()))


class TestStackedRecursion:
    @pytest.mark.parametrize("variant", ["edge", "printed"])
    def test_20_to_27_hold_along_the_node_updates(self, variant: str) -> None:
        problem, gamma = model().problem, 0.5
        f, dual = a_point()[0], np.zeros((5, 4))
        zero = np.zeros((5, 4))
        before: tuple[Operators, Array, Array, Array] | None = None
        for k in range(1, 8):
            eta = ETA * 1.05**k
            links = edge_weights(eta, ADJACENCY, variant)
            now = Operators.of(eta, ADJACENCY, gamma, variant)
            found = odd_step(problem, f, dual, zero, links)
            after = dual_step(dual, found.f, links)
            even = even_step(found.f, f, links, gamma)
            gaps = [odd_gap(now, found.gradient, found.f, f, dual), even_gap(now, found.gradient, found.f, even, after)]
            if before is not None:
                old, gradient, odd, old_dual = before
                gradients, odds, duals = (found.gradient, gradient), (found.f, odd), (after, old_dual)
                gaps += recursion_gaps(now, old, gradients, odds, duals)
            # Terms of size ten; odd steps are exact to their rounding.
            assert max(float(np.abs(gap).max()) for gap in gaps) < 1e-12
            f, dual, before = even, after, (now, found.gradient, found.f, after)

    def test_they_notice_a_wrong_update(self) -> None:
        problem = model().problem
        f, dual, zero = *a_point()[:2], np.zeros((5, 4))
        links = edge_weights(ETA, ADJACENCY)
        now = Operators.of(ETA, ADJACENCY, 0.5, "edge")
        found = odd_step(problem, f, dual, zero, links)
        assert np.abs(odd_gap(now, found.gradient, found.f, f, 1.01 * dual)).max() > 1e-3
        wrong = even_step(found.f, f, links, 0.6)
        assert np.abs(even_gap(now, found.gradient, found.f, wrong, dual_step(dual, found.f, links))).max() > 1e-3

    def test_the_operators_are_the_paper_s_matrices(self) -> None:
        degrees, eta = np.diag(ADJACENCY.sum(axis=1)), np.diag(ETA)
        printed = Operators.of(ETA, ADJACENCY, 0.5, "printed")
        assert printed.laplacian == pytest.approx(eta @ (degrees - ADJACENCY))
        assert printed.signless == pytest.approx(eta @ (degrees + ADJACENCY))
        assert printed.divisor == pytest.approx(2.0 * ETA * ADJACENCY.sum(axis=1) + 0.5)
        f = a_point()[0]
        assert pull(edge_weights(ETA, ADJACENCY, "printed"), f) == pytest.approx(printed.signless @ f)


@pytest.mark.parametrize("variant", ["edge", "printed"])
def test_all_nodes_at_once_is_the_same_as_one_after_the_other(variant: str) -> None:
    problem = model(sizes=UNEQUAL).problem
    previous, dual, noise = a_point()
    state = {**algorithm.initial_state(problem, previous), "dual": dual[None], "noise": noise[None], "eta": ETA[None]}
    sweep = blocks.odd_sweep(problem, variant)
    together, one_by_one = (run(step, state, Context(ClosedForm())) for step in (sweep, replace(sweep, fused=None)))
    for name in ("odd", "gradient", "loss"):
        assert together[name] == pytest.approx(one_by_one[name], abs=1e-12)


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [
        *(("logistic", one) for one in ("l1", "nonneg", GroupLasso([[0, 1, 2], [3, 4]]))),
        ("smoothed-hinge", "elastic-net:1:0.5"),
    ],
)
def test_a_step_with_kinks_ends_where_a_move_stands_still_whatever_the_condition(loss: str, penalty: Any) -> None:
    rng, size = np.random.default_rng(1), 12
    rows = rng.normal(size=(100, size)) * np.geomspace(1.0, 10.0**-2.5, size)  # a condition number of 10^5
    labels = np.sign(rows @ rng.normal(size=size) + rng.normal(size=100))
    model = RecycledADMM(nx.complete_graph(2), [(rows, labels)] * 2, loss=loss, penalty=penalty, reg=5.0, C=100.0)
    step = kinked(model.problem.of_node(0), 3.0 * rng.normal(size=size), 1e-3)
    f = step.least(np.zeros(size))
    assert np.abs(step.move(f) - f).max() <= 1e-13 * (1.0 + np.abs(f).max())
    nearby = f + 1e-3 * rng.normal(size=(50, size))
    assert step.height(f) <= min(map(step.height, map(step.move, nearby))) * (1.0 + 1e-14)
