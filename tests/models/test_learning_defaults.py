"""What the learning models do with nothing but data: they converge, whatever the data's size and scale."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from cvxpriv.models import ISTDP, ADMMSharing, RecycledADMM
from cvxpriv.numerics.arrays import Array


def rows_of(count: int, features: int, seed: int = 0, scale: float = 1.0) -> tuple[Array, Array]:
    """Rows of a logistic model, and its labels."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, features))
    y = np.where(x @ rng.normal(size=features) + rng.logistic(size=count) > 0.0, 1, -1)
    return scale * x, y


@pytest.mark.grid(every=2)
@pytest.mark.parametrize(("nodes", "rows", "degree"), [(5, 80, 4), (100, 200, 4), (8, 25, 3)])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_a_consensus_converges_in_tens_of_passes_whatever_the_nodes_hold(
    nodes: int, rows: int, degree: int, scale: float
) -> None:
    x, y = rows_of(nodes * rows, 4, scale=scale)
    shards = [(x[node::nodes], y[node::nodes]) for node in range(nodes)]
    run = RecycledADMM(nx.random_regular_graph(degree, nodes, seed=0), shards).solve()
    assert run.converged
    assert run.iterations < 100
    assert run.settings.eta[0] > 0.0


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("parties", [1, 2, 4])
def test_sharing_converges_whatever_the_scale_of_the_columns(parties: int, scale: float) -> None:
    x, y = rows_of(400, 8, scale=scale)
    run = ADMMSharing(np.array_split(x, parties, axis=1), y).solve()
    assert run.converged
    assert run.gap <= 1e-6 * run.objective


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("penalty", ["mcp:0.05:15", "mcp:0.05:3", "scad:0.05:8", "capped-l1:0.05:0.5", "l1:0.05"])
@pytest.mark.parametrize("accelerate", ["auto", "none"])
def test_thresholding_ends_at_a_stationary_point_from_every_far_start(penalty: str, accelerate: str) -> None:
    for seed, scale in itertools.product(range(4), (1.0, 3.0, 10.0)):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(40, 12)), rng.choice([-1.0, 1.0], 40)
        start = scale * (np.ones(12) if seed == 0 else rng.normal(size=12))
        run = ISTDP(x, y, penalty=penalty).solve(init=start, accelerate=accelerate)
        assert run.kkt.largest <= 1e-7, (seed, scale, run.iterations)


def test_newton_steps_that_lead_back_to_where_a_pass_began_are_not_taken() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 12)), rng.choice([-1.0, 1.0], 40)
    model = ISTDP(x, y, penalty="mcp:0.05:15")
    found = [model.solve(init=np.full(12, 3.0), accelerate=one) for one in ("auto", "none")]
    assert [run.converged for run in found] == [True, True]
    assert found[0].objective == pytest.approx(found[1].objective, abs=1e-9)  # both stationary to 1e-7
    assert found[0].objective < 0.6366


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_empty_columns_do_not_stand_in_the_way_of_a_fit(kind: Any) -> None:
    x, y = rows_of(200, 5)
    wide = np.column_stack([x[:, :2], np.zeros(200), x[:, 2:], np.zeros(200)])
    run, bare = ISTDP(kind(wide), y, penalty="l1:0.02").solve(), ISTDP(x, y, penalty="l1:0.02").solve()
    assert run.theta[[2, 6]].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(np.delete(run.theta, [2, 6]), bare.theta, atol=1e-6)  # of a KKT residual of 1e-7


def test_two_empty_columns_of_a_hundred_thousand_do_neither() -> None:
    x, y = rows_of(60, 3)
    wide = sp.csr_array(sp.hstack([x, sp.random_array((60, 99_995), density=1e-3, rng=1), np.zeros((60, 2))]))
    run = ISTDP(wide, y, penalty="l1:0.1").solve()
    assert run.converged
    assert run.theta[-2:].tolist() == [0.0, 0.0]


def test_several_starts_return_the_best_and_tell_of_each() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 12)), rng.choice([-1.0, 1.0], 40)
    model = ISTDP(x, y, penalty="mcp:0.05:15")
    few, many = model.solve(starts=2, seed=3), model.solve(starts=6, seed=3)
    assert many.starts is not None
    assert few.starts is not None
    assert many.starts["objective"][:2].tolist() == few.starts["objective"].tolist()
    assert many.objective == many.starts["objective"].min()
    assert many.starts["best"].sum() == 1


@pytest.mark.slow
def test_starts_are_the_same_in_several_processes() -> None:
    x, y = rows_of(40, 12)
    model = ISTDP(x, y, penalty="mcp:0.05:15")
    alone, together = (model.solve(starts=4, seed=3, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert alone.starts is not None
    assert alone.starts.equals(together.starts)


def test_a_node_may_hold_one_row() -> None:
    x, y = rows_of(6, 4)
    shards = [(x[node : node + 1], y[node : node + 1]) for node in range(6)]
    assert RecycledADMM(nx.random_regular_graph(3, 6, seed=0), shards).solve().converged


def test_unscaled_columns_converge_with_an_intercept() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    from cvxpriv_models import VerticalLogisticRegression

    x, y = datasets.load_breast_cancer(return_X_y=True)  # columns from 0.002 to 4,254
    fitted = VerticalLogisticRegression(2, tol=1e-6).fit(x, y)
    assert fitted.converged_
    assert fitted.n_iter_ < 500
