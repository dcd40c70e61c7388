"""The default call of ADMM sharing: its penalty from the data, and the certified gap that ends it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cvxpriv_models.admm_sharing import ADMMSharing, accelerated
from cvxpriv_models.admm_sharing.apart import SharingApart
from cvxpriv_models.admm_sharing.apart_messages import SPOKEN
from cvxpriv_models.admm_sharing.apart_party import Allowance, SharingParty
from cvxpriv_models.admm_sharing.factor import Factor
from cvxpriv_models.admm_sharing.problem import Problem
from cvxpriv_models.admm_sharing.schemes import SCHEMES
from scipy import sparse

from cvxpriv.distributed.carriers import InProcess
from cvxpriv.numerics.arrays import Array

from .sharing_cases import CONVERGENT, columns, pooled, split

X, Y = columns(60, 6)
PARTS = split(X, 2)


def optimum(x: Array, y: Array, lam: float) -> float:
    """The least objective, by scikit-learn."""
    theta = pooled(x, y, "logistic", lam)
    return float(np.logaddexp(0.0, -y * (x @ theta)).sum() + 0.5 * lam * theta @ theta)


def drawn(seed: int) -> tuple[Array, Array, int, float]:
    """Columns, labels, number of parties and lam, of scales over six orders of magnitude."""
    rng = np.random.default_rng(seed)
    parties, samples = int(rng.integers(1, 5)), int(rng.choice([30, 200, 1000]))
    x = rng.normal(size=(samples, parties * int(rng.integers(1, 40)))) * 10.0 ** rng.uniform(-3.0, 3.0)
    if rng.uniform() < 0.5:
        x *= 10.0 ** rng.uniform(-1.0, 1.0, size=x.shape[1])
    signal = x @ rng.normal(size=x.shape[1])
    y = np.where(signal / signal.std() + rng.logistic(size=samples) * rng.choice([0.1, 1.0]) > 0.0, 1.0, -1.0)
    return x, y, parties, float(10.0 ** rng.uniform(-1.0, 2.0))


@pytest.mark.parametrize("seed", range(16))
def test_the_default_call_ends_within_a_millionth_of_scikit_learns_optimum_whatever_the_scales(seed: int) -> None:
    x, y, parties, lam = drawn(seed)
    run = ADMMSharing(split(x, parties), y, lam=lam).solve()
    assert run.converged
    assert run.iterations <= 200  # one of these sets takes 670 where the penalty stays after pass 10
    best = optimum(x, y, lam)
    assert run.objective - best <= 1e-6 * run.objective
    assert run.objective - best <= run.gap + 1e-12 * best  # rounding of the peer's objective


def test_a_run_says_which_rule_ended_it() -> None:
    model = ADMMSharing(PARTS, Y)
    by_gap, by_residual = model.solve(), model.solve(gap=0.0)
    assert by_gap.converged
    assert by_gap.gap <= 1e-6 * by_gap.objective
    assert by_gap.kkt.largest > 1e-7
    assert "certified gap" in by_gap.reached
    assert "certified gap" in str(by_gap)
    assert by_residual.converged
    assert by_residual.kkt.largest <= 1e-7
    assert by_residual.reached == "converged"
    assert by_residual.iterations > by_gap.iterations


def test_another_residual_and_an_unknown_gap_leave_the_residual_alone() -> None:
    assert ADMMSharing(PARTS, Y).solve(tol=1e-9).kkt.largest <= 1e-9
    for options in ({"lam": 0.0}, {"penalty": "l1"}):
        run = ADMMSharing(PARTS, Y, **options).solve(method="proximal_jacobi", max_iter=2000)  # type: ignore[arg-type]
        assert run.settings.gap == 0.0
        assert run.converged
        assert run.kkt.largest <= 1e-7


def test_a_gap_is_empty_in_the_history_where_it_was_not_near_and_where_the_objective_is_0() -> None:
    far, nought = ADMMSharing(PARTS, Y).solve(), ADMMSharing(PARTS, 0.0 * Y, loss="squared").solve()
    for run in (far, nought):
        gaps = run.history["gap"].to_numpy()
        assert np.isnan(gaps[0])
        assert not np.isinf(gaps).any()
    assert (nought.objective, nought.gap, nought.converged) == (0.0, 0.0, True)


@pytest.mark.parametrize("scheme", CONVERGENT)
def test_rho_is_the_curvature_times_one_number_and_changes_after_four_passes_at_most(scheme: str) -> None:
    weights = np.linspace(0.5, 2.0, 60)
    model = ADMMSharing(PARTS, Y, weights=weights)
    seen = model.solve(method=scheme, tol=1e-12, max_iter=40).history["rho"].dropna().to_numpy()
    changed = 2 + np.flatnonzero(np.diff(seen))  # passes count from 1, and differences from the second
    assert set(changed) <= set(accelerated.AFTER)
    assert changed.size > 0
    run = model.solve(method=scheme, max_iter=accelerated.AFTER[0], gap=0.0)
    p = 1.0 / (1.0 + np.exp(-run.state["z"]))
    bend = weights * p * (1.0 - p)
    ratio = run.state["rho"] / np.maximum(bend, accelerated.LEAST * bend.mean())
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)  # a logistic formula written twice


def test_a_rho_that_is_named_and_a_loss_with_a_kink_keep_one_number() -> None:
    named = ADMMSharing(PARTS, Y).solve(rho=0.4, max_iter=20)
    kinked = ADMMSharing(PARTS, Y, loss="hinge").solve(max_iter=20)
    flat = ADMMSharing(PARTS, 1e6 * Y, loss="huber").solve(max_iter=12)  # every residual is beyond its width
    assert all(run.state["rho"].ndim == 0 for run in (named, kinked, flat))
    assert named.state["rho"] == 0.4


@pytest.mark.parametrize("shape", [(40, 6), (6, 40)])
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_a_step_with_a_rho_for_each_sample_is_the_least_of_its_square(shape: tuple[int, int], stored: Any) -> None:
    rng = np.random.default_rng(1)
    part, u, anchor = rng.normal(size=shape), rng.normal(size=shape[0]), rng.normal(size=shape[1])
    each = rng.uniform(0.01, 2.0, size=shape[0])
    found = Factor(stored(part)).minimiser(u, each, 0.7, 0.2, anchor)
    expected = np.linalg.solve(0.9 * np.eye(shape[1]) + part.T * each @ part, part.T @ u + 0.2 * anchor)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.grid(every=2)
@pytest.mark.parametrize("scheme", CONVERGENT)
def test_the_blocks_of_a_default_run_are_right_by_a_cone_solver(scheme: str) -> None:
    run = ADMMSharing(PARTS, Y).solve(method=scheme, max_iter=accelerated.AFTER[0] + 1, gap=0.0)
    assert run.state["rho"].shape == (60,)
    run.certify(("CLARABEL",), rows=30).raise_if_failed()


def test_parties_apart_get_the_same_rho_and_stop_at_the_same_pass() -> None:
    roles = {name: SharingParty(part, Allowance(exact=True)) for name, part in zip("ab", PARTS, strict=True)}
    far = SharingApart(InProcess(roles, SPOKEN), Y).solve()
    near = ADMMSharing(PARTS, Y).solve(accelerate="none", max_iter=2000)
    assert far.state["rho"].shape == (60,)
    assert far.state["rho"].tobytes() == near.state["rho"].tobytes()
    assert (far.iterations, far.gap, far.converged, far.reached) == (near.iterations, near.gap, True, near.reached)
    assert "certified gap" in far.reached


def test_a_weighed_step_of_proximal_jacobi_is_held_by_the_weighed_norm() -> None:
    each = np.array([4.0, 1.0])
    factor = Factor(np.array([[3.0, 0.0], [0.0, 1.0]]))  # ||sqrt(each) D||^2 = 36
    problem = Problem.of([np.eye(2)], [1.0, -1.0])
    assert SCHEMES["proximal_jacobi"].tau(factor, problem.penalties[0], each, 3) == pytest.approx(72.0)
