"""What recycled ADMM refuses, and what its problem's figures mean."""

from __future__ import annotations

import itertools
import re
from typing import Any

import networkx as nx
import numpy as np
import pytest
from cvxpriv_models.recycled_admm import RecycledADMM
from cvxpriv_models.recycled_admm.options import eta_table
from scipy import sparse
from scipy.optimize import approx_fprime

from cvxpriv.errors import DataError, ModelError

from .consensus_cases import HOUSE, UNEQUAL, model, shards


def changed(node: int, shard: Any) -> Any:
    dealt: list[Any] = list(shards())
    dealt[node] = shard
    return dealt


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.Graph([(0, 1), (2, 3), (3, 4)]), "not connected: it has 2 parts, one of them 0, 1"),
        (nx.DiGraph([(0, 1)]), "directed"),
        (nx.Graph([(0, 1), (1, 1)]), "loop at 1"),
        (nx.empty_graph(1), "1 node"),
    ],
)
def test_a_graph_that_cannot_agree_is_refused(graph: nx.Graph, message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        RecycledADMM(graph, shards(), C=20.0)


@pytest.mark.parametrize("matrix", [np.ones((2, 3)), np.array([[0, 2], [2, 0]]), np.array([[0, 1], [0, 0]]), "circle"])
def test_what_is_no_adjacency_matrix_is_refused(matrix: Any) -> None:
    with pytest.raises(DataError, match="adjacency matrix"):
        RecycledADMM(matrix, shards(), C=20.0)


@pytest.mark.parametrize(
    ("node", "shard", "message"),
    [
        (3, (np.zeros((0, 4)), np.zeros(0)), "node 3 has no rows"),
        (3, ([], []), "node 3 has no rows"),
        (1, (np.full((20, 4), np.nan), np.ones(20)), "X of node 1 holds NaN"),
        (1, ([["a", "b", "c", "d"]] * 20, np.ones(20)), "X of node 1 does not hold numbers"),
        (2, (np.zeros((20, 4)), np.ones(19)), "y of node 2 has shape (19,), expected (20,)"),
        (2, (np.zeros((20, 4)), np.full(20, np.nan)), "y of node 2 holds NaN"),
        (2, (np.zeros((20, 4)), np.full(20, 7.0)), "3 classes"),
        (4, (np.zeros((20, 3)), np.ones(20)), "columns"),
        (4, np.zeros((20, 4)), "no pair"),
    ],
)
def test_data_that_do_not_fit_are_refused_by_the_node_s_name(node: int, shard: Any, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        RecycledADMM(HOUSE, changed(node, shard), C=20.0)


def test_another_number_of_shards_than_nodes_is_refused() -> None:
    with pytest.raises(DataError, match="4 for 5 nodes"):
        RecycledADMM(HOUSE, shards()[:4], C=20.0)
    with pytest.raises(DataError, match="node 'x'"):
        RecycledADMM(HOUSE, {**dict(enumerate(shards())), "x": shards()[0]}, C=20.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 21.0}, "(0, 20]"),
        ({"C": 0.0}, "C=0.0 is not a finite number > 0"),
        ({"reg": -1.0}, "reg=-1.0"),
        ({"loss": "hinge"}, "kink"),
        ({"loss": "sigmoid"}, "not convex"),
        ({"loss": "logistc"}, "did you mean 'logistic'"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        RecycledADMM(HOUSE, shards(), **{"C": 20.0, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "radmm"}, "did you mean"),
        ({"eta": 0.0}, "> 0"),
        ({"eta": [1.0, 1.0, 1.0, 1.0, -1.0]}, "> 0"),
        ({"eta": [1.0, 2.0]}, "one for each of 5 nodes"),
        ({"eta": np.vstack([np.full((5, 5), 2.0), np.full((5, 5), 1.0)])}, "falls from pass 5 to 6"),
        ({"growth": 0.99}, "may not decrease"),
        ({"eta": 2.0, "eta_cap": 1.0}, "eta_cap"),
        ({"method": "r-admm", "eta": [1.0, 1.0, 1.0, 1.0, 2.0]}, "mr-admm"),
        ({"method": "admm", "growth": 1.1}, "m-admm"),
        ({"gamma": -0.1}, "gamma"),
        ({"variant": "edges"}, "did you mean 'edge'"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": 0.0}, "tol"),
        ({"init": np.zeros(3)}, "init has shape (3,)"),
        ({"engine": "newton"}, "engine"),
        ({"callback": 3}, "callback"),
    ],
)
def test_options_of_a_solve_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        model().solve(**{"max_iter": 10, **options})


def test_graph_and_adjacency_matrix_give_the_same_model() -> None:
    matrix = nx.to_numpy_array(HOUSE)
    dense, rare = (RecycledADMM(one, shards(), C=20.0).problem.network for one in (matrix, sparse.csr_array(matrix)))
    assert np.array_equal(dense.adjacency, model().problem.network.adjacency)
    assert np.array_equal(rare.adjacency, dense.adjacency)
    assert (dense.nodes, dense.edges, dense.bipartite) == (5, 6, False)


@pytest.mark.parametrize("graph", [nx.path_graph(4), nx.star_graph(5), nx.cycle_graph(6), nx.cycle_graph(5), HOUSE])
def test_a_graph_is_bipartite_where_the_signless_laplacian_is_singular(graph: nx.Graph) -> None:
    network = RecycledADMM(graph, shards((20,) * len(graph)), C=20.0).problem.network
    least = np.linalg.eigvalsh(np.diag(network.degrees) + network.adjacency)[0]
    assert network.bipartite == (least < 1e-9)


def test_shards_by_node_name_follow_the_names() -> None:
    dealt = shards(UNEQUAL)
    letters = nx.relabel_nodes(HOUSE, dict(enumerate("abcde")))
    named = RecycledADMM(letters, {"abcde"[node]: dealt[node] for node in (4, 2, 0, 1, 3)}, C=20.0)
    assert named.problem.network.labels == tuple("abcde")
    assert named.problem.rows.counts.tolist() == list(UNEQUAL)


def test_rows_of_any_norm_are_taken_without_privacy() -> None:
    long = [(10.0 * x, y) for x, y in shards()]
    assert RecycledADMM(HOUSE, long, C=20.0, reg=1.0).problem.rows.norms.max() > 5.0


@pytest.mark.parametrize("loss", ["logistic", "squared", "huber", "smoothed-hinge"])
def test_gradients_are_those_of_the_objectives(loss: str) -> None:
    problem = model(loss, UNEQUAL).problem
    f = np.random.default_rng(1).normal(size=(5, 4))
    for node in range(5):

        def own(at: np.ndarray, node: int = node) -> float:
            return float(problem.of_node(node).objectives(at[None])[0])

        # Forward differences of a step 1e-7 in functions with slopes of size ten.
        assert problem.gradients(f)[node] == pytest.approx(approx_fprime(f[node], own, 1e-7), abs=2e-5)
        assert own(f[node]) == pytest.approx(problem.objectives(f)[node], rel=1e-13)


def test_the_gradient_s_lipschitz_constant_bounds_it() -> None:
    problem = model().problem
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 5, 4))
    moved = np.linalg.norm(problem.gradients(one) - problem.gradients(other), axis=1)
    assert (moved <= problem.smoothness * np.linalg.norm(one - other, axis=1)).all()


class TestPenalties:
    def test_they_grow_by_the_power_of_the_round_up_to_the_cap(self) -> None:
        table = eta_table([1.0, 2.0], [1.0, 1.5], None, 8, 2)
        assert table[:, 0].tolist() == [1.0] * 8
        assert table[:3, 1] == pytest.approx([3.0, 4.5, 6.75])
        assert table[-1, 1] == 20.0

    def test_without_a_cap_they_grow_on(self) -> None:
        assert eta_table(1.0, 1.5, np.inf, 10, 1)[-1, 0] == pytest.approx(1.5**10)

    def test_a_table_of_all_rounds_is_taken_as_it_is(self) -> None:
        table = np.arange(1.0, 7.0).reshape(3, 2)
        assert np.array_equal(eta_table(table, 1.0, None, 3, 2), table)


def test_labels_of_several_types_and_shards_without_end_are_refused() -> None:
    rows, whole = np.random.default_rng(0).normal(size=(4, 2)), np.array([1, -1, 1, -1])
    records = np.array([(1,), (2,), (1,), (2,)], dtype=[("a", "f8")])
    for other in (whole.astype(str), records, np.array(["2020-01-01", "2020-01-02"] * 2, dtype="M8[D]")):
        with pytest.raises(DataError, match="mixes labels of several types"):
            RecycledADMM(nx.path_graph(2), [(rows, whole), (rows, other)])
    with pytest.raises(DataError, match="shards has more than 2 for 2 nodes"):
        RecycledADMM(nx.path_graph(2), itertools.repeat((rows, whole)))  # type: ignore[arg-type]
