"""Learning from arrays, penalties, graphs and rates of any kind: finite numbers or a typed error, and never a hang."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from cvxpriv_models.admm_sharing.kkt import SharingResiduals
from cvxpriv_models.inference_service.kkt import PointResiduals as InferenceResiduals
from cvxpriv_models.istdp.kkt import SparseResiduals
from cvxpriv_models.privacy_funnel.kkt import PointResiduals as FunnelResiduals
from cvxpriv_models.recycled_admm.kkt import ConsensusResiduals
from scipy import sparse

from cvxpriv.errors import CvxprivError
from cvxpriv.models import ISTDP, ADMMSharing, RecycledADMM

FAST, MANY = 120, 100_000
"""How many fits `make test` tries, and the slow test."""
LONGEST = 30.0
"""Seconds of one fit of three passes, on a machine that is busy with other work."""
Rng = np.random.Generator
PENALTIES = (
    *("l2", "l2:0.1", "l1:0.1", "l1:0", "l1:1e308", "l1:-1", "mcp:0.1:3", "mcp:0.1:1", "mcp:0:3", "scad:0.1:3.7"),
    *("scad:0.1:2", "elastic-net:0.1:0.5", "elastic-net:1:2", "nonneg", "box:-1:1", "box:1:-1", "box:nan:1", "none"),
    *("capped-l1:0.1:0.5", "capped-l1:0.1:0", "group:1", "l1:1e-320", "", "l1:", "l1:x", "auto", "\x1b[2J"),
)
LOSSES = ("logistic", "squared", "huber", "hinge", "smoothed-hinge", "absolute", "", "sigmoid")
NUMBERS = (1.0, 0.1, 0.0, -1.0, 1e-300, 1e300, np.nan, np.inf, 10**400, "1", None, True, 1j, 5e-324)


def rows(rng: Rng, n: int, d: int) -> Any:
    kinds: list[Callable[[], Any]] = [
        lambda: rng.normal(size=(n, d)),
        lambda: rng.normal(size=(n, d)),
        lambda: rng.normal(size=(n, d)) * 10.0 ** rng.integers(-320, 308),
        lambda: rng.normal(size=(n, d)) * 10.0 ** rng.integers(-300, 300, size=d),
        lambda: np.zeros((n, d)),
        lambda: np.ones((n, d)),
        lambda: rng.integers(-3, 4, size=(n, d)),
        lambda: rng.integers(0, 2, size=(n, d)).astype(bool),
        lambda: np.where(rng.random((n, d)) < 0.05, np.nan, rng.normal(size=(n, d))),
        lambda: np.where(rng.random((n, d)) < 0.05, np.inf, rng.normal(size=(n, d))),
        lambda: sparse.random_array((n, d), density=0.4, rng=rng, format="csr"),
        lambda: sparse.coo_array((np.ones(4), ([0, 0, 1, 1], [0, 0, 0, 0])), shape=(n, d)),
        lambda: sparse.csr_matrix((n, d)),
        lambda: sparse.csr_array(rng.normal(size=(n, d)) * 1j),
        lambda: pd.DataFrame(rng.normal(size=(n, d))),
        lambda: pd.DataFrame({"a": ["x"] * n}),
        lambda: rng.normal(size=(n, d)).astype(np.float32),
        lambda: rng.normal(size=(n, d)).astype(object),
        lambda: np.ma.masked_greater(rng.normal(size=(n, d)), 0.0),
        lambda: rng.normal(size=(n, d)) * 1j,
        lambda: rng.normal(size=n),
        lambda: rng.normal(size=(n, d, 2)),
        lambda: np.zeros((0, d)),
        lambda: np.zeros((n, 0)),
        lambda: [[1.0], [1.0, 2.0]],
        lambda: "rows",
        lambda: None,
        lambda: np.repeat(rng.normal(size=(1, d)), n, axis=0),
    ]
    return kinds[0]() if rng.random() < 0.5 else kinds[int(rng.integers(len(kinds)))]()


def labels(rng: Rng, n: int) -> Any:
    kinds: list[Callable[[], Any]] = [
        lambda: np.resize([-1.0, 1.0], n),
        lambda: np.resize(["no", "yes"], n),
        lambda: rng.normal(size=n),
        lambda: rng.normal(size=n) * 1e300,
        lambda: np.ones(n),
        lambda: np.resize([0, 1, 2], n),
        lambda: np.full(n, np.nan),
        lambda: np.resize(np.array([None, "a"], dtype=object), n),
        lambda: np.resize([True, False], n),
        lambda: np.ones(n + 1),
        lambda: np.ones((n, 1)),
        lambda: pd.Series(np.resize([-1, 1], n), index=range(5, n + 5)),
        lambda: pd.Categorical(np.resize(["a", "b"], n)),
        lambda: None,
    ]
    return kinds[0]() if rng.random() < 0.5 else kinds[int(rng.integers(len(kinds)))]()


def graph(rng: Rng, nodes: int) -> Any:
    kinds: list[Any] = [
        nx.path_graph(nodes),
        nx.complete_graph(nodes),
        nx.empty_graph(nodes),
        nx.DiGraph([(0, 1)]),
        nx.MultiGraph([(0, 1), (0, 1)]),
        nx.Graph([(0, 0), (0, 1)]),
        np.ones((nodes, nodes)) - np.eye(nodes),
        np.full((nodes, nodes), np.nan),
        np.ones((nodes, nodes + 1)),
        nx.Graph(),
        None,
    ]
    return kinds[0] if rng.random() < 0.6 else kinds[int(rng.integers(len(kinds)))]


def one_of(rng: Rng, several: Any, usual: Any) -> Any:
    return usual if rng.random() < 0.6 else several[int(rng.integers(len(several)))]


def fit(rng: Rng) -> Any:
    """Return a run of three passes at most, of anything."""
    n, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    posed = {"loss": one_of(rng, LOSSES, "logistic"), "penalty": one_of(rng, PENALTIES, "l2:0.1")}
    few: dict[str, Any] = {"max_iter": 3, "tol": one_of(rng, NUMBERS, 1e-7)}
    spent = {"epsilon": one_of(rng, NUMBERS, 1.0), "delta": one_of(rng, NUMBERS, 1e-6), "max_iter": 2}
    private, model = rng.random() < 0.3, int(rng.integers(3))
    if model == 0:
        parts = [rows(rng, n, d) for _ in range(int(rng.integers(1, 3)))]
        sharing = ADMMSharing(parts, labels(rng, n), **posed, lam=one_of(rng, NUMBERS, 1.0))
        if private:
            return sharing.solve_private(**spent, row_bound=one_of(rng, NUMBERS, 100.0), noise_seed=0)
        return sharing.solve(**few, rho=one_of(rng, NUMBERS, None))
    if model == 1:
        shards = [(rows(rng, n, d), labels(rng, n)) for _ in range(3)]
        consensus = RecycledADMM(
            graph(rng, 3), shards, **posed, reg=one_of(rng, NUMBERS, 1.0), C=one_of(rng, NUMBERS, None)
        )
        if private:
            bound = one_of(rng, NUMBERS, 1.0)
            return consensus.solve_private(**spent, row_bound=bound, clip_rows=True, noise_seed=0)
        return consensus.solve(**few, eta=one_of(rng, NUMBERS, None), growth=one_of(rng, NUMBERS, 1.0))
    sparse_model = ISTDP(rows(rng, n, d), labels(rng, n), **posed, allow_constant=bool(rng.random() < 0.5))
    if private:
        return sparse_model.solve_private(**spent, clip=one_of(rng, NUMBERS, 1.0), noise_seed=0)
    return sparse_model.solve(**few)


def fault(seed: int, fit: Callable[[Rng], Any] = fit) -> str:
    """Return what is wrong with a fit; "" where nothing is."""
    begun = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = fit(np.random.default_rng([14, seed]))
    except CvxprivError:
        return "" if time.monotonic() - begun < LONGEST else "a hang"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:120]}"
    if time.monotonic() - begun > LONGEST:
        return "a hang"
    objective = getattr(run, "objective", 0.0)
    if np.isnan(objective) or (getattr(run, "converged", False) and not np.isfinite(objective)):
        return f"objective {objective}, converged {getattr(run, 'converged', None)}"
    found = getattr(run, "coefficients", getattr(run, "parameters", ()))
    several = found if isinstance(found, (list, tuple)) else [found]
    return "" if all(np.isfinite(np.asarray(one, dtype=float)).all() for one in several) else "coefficients"


def test_hostile_fits_are_finite_or_typed_errors() -> None:
    odd = 2318  # lam times the ridge underflows
    assert {seed: said for seed in (*range(FAST), odd) if (said := fault(seed))} == {}


def scaled_fit(rng: Rng) -> Any:
    """Return a run of rows, weights, penalties and rates over the whole range of doubles."""

    def size(low: float = -320.0, high: float = 308.0) -> float:
        return 1.0 if rng.random() < 0.5 else float(10.0 ** rng.uniform(low, high))

    n, d = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    loss = str(rng.choice(LOSSES[:5]))
    margin = loss in ("logistic", "hinge", "smoothed-hinge")
    y = np.resize([-1.0, 1.0], n) if margin else rng.normal(size=n) * size(high=50.0)
    penalties = ("l2", "l2:1e-320", "l2:1e99", "l1:0.1", "l1:1e90", "elastic-net:0.1:0.5", "nonneg", "none")
    parts = [rng.normal(size=(n, d)) * size(high=74.0) for _ in range(3)]
    posed: dict[str, Any] = {"loss": loss, "penalty": str(rng.choice(penalties))}
    limit = int(rng.choice([1, 3, 12, 45]))
    if rng.random() < 0.6:
        weights = np.array([size(high=75.0) for _ in range(n)]) if rng.random() < 0.3 else None
        sharing = ADMMSharing(parts[: int(rng.integers(1, 4))], y, **posed, lam=size(), weights=weights)
        return sharing.solve(max_iter=limit, rho=one_of(rng, [size()], None))
    shards = [(part, y) for part in parts]
    consensus = RecycledADMM(nx.path_graph(3), shards, **posed, reg=size(), C=one_of(rng, [size(high=1.0)], None))
    return consensus.solve(max_iter=min(limit, 12), eta=one_of(rng, [size()], None))


#: Fits that ended in no number, or beyond the doubles and converged: what one solver met in 20,000.
SCALES = (
    *(1804, 2140, 15719, 19037),  # curvatures of 1e-300
    *(1193, 4997, 14484, 15925, 16675, 13004),  # no weight, or 1e-320, of a square beyond the doubles
    *(5140, 5378, 3002331),  # passes that leave the doubles; the last in the residuals' own scale
)


def test_fits_at_any_scale_are_finite_or_typed_errors() -> None:
    assert {seed: said for seed in (*range(40), *SCALES) if (said := fault(seed, scaled_fit))} == {}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_residual_beyond_the_doubles_is_no_small_one(bad: float) -> None:
    ones = (1.0, 1.0, 1.0)
    several = (
        ConsensusResiduals((0.0, bad), 0.0, 0.0, ones),
        ConsensusResiduals((0.0,), bad, 0.0, (1.0, bad, 1.0)),
        SharingResiduals(0.0, (0.0, bad), 0.0, ones),
        SharingResiduals(0.0, (0.0,), 0.0, (1.0, bad, 1.0)),
        SparseResiduals(np.zeros(2), bad),
        InferenceResiduals(0.0, bad, 0),
        FunnelResiduals(0.0, 0.0, bad, 1.0),
    )
    assert [one.largest for one in several] == [np.inf] * len(several)


@pytest.mark.slow
def test_thousands_of_fits_at_any_scale() -> None:
    assert {seed: said for seed in range(40, 8_000) if (said := fault(seed, scaled_fit))} == {}


@pytest.mark.slow
def test_a_hundred_thousand_hostile_fits(capsys: pytest.CaptureFixture[str]) -> None:
    found = {seed: said for seed in range(FAST, FAST + MANY) if (said := fault(seed))}
    with capsys.disabled():
        sys.stdout.write(f"\n{MANY:,} hostile fits\n")
    assert found == {}
