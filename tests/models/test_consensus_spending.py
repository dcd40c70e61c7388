"""What a node's releases cost, RADMM section V, against explicit records and determinants."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cvxpriv_models.recycled_admm import spending
from cvxpriv_models.recycled_admm.private_settings import COVER, Privacy, Releases, releases_of

from cvxpriv.privacy import BallNoise, Claim, GaussianNoise, Release, account_ledger, gaussian_mu

ROWS, WEIGHT, SLOPE, BEND = np.array([3.0, 8.0]), 2.5, 0.7, np.array([0.4, 5.0])


def test_two_opposite_records_of_norm_1_move_a_gradient_by_its_bound_exactly() -> None:
    record = np.array([0.6, -0.8])
    for at, rows in enumerate(ROWS):
        moved = WEIGHT / rows * np.linalg.norm(SLOPE * record - (-SLOPE) * record)
        assert spending.gradient_move(ROWS, WEIGHT, SLOPE)[at] == pytest.approx(moved, rel=1e-14)
        # A quadratic of that bend is minimised where the gradient vanishes.
        assert spending.output_move(ROWS, WEIGHT, BEND, SLOPE)[at] == pytest.approx(moved / BEND[at], rel=1e-14)
    np.testing.assert_allclose(spending.gradient_move(ROWS, WEIGHT), [5.0 / 3.0, 5.0 / 8.0], rtol=1e-14)
    np.testing.assert_allclose(spending.output_move(ROWS, WEIGHT, BEND), [25.0 / 6.0, 1.0 / 8.0], rtol=1e-14)


def test_the_cost_of_a_perturbed_minimiser_is_the_densitys_and_the_determinants() -> None:
    alpha, curvature = np.array([0.3, 0.05]), 0.25
    record = np.array([[0.6], [-0.8]])
    for at, rows in enumerate(ROWS):
        own = BEND[at] * np.eye(2)
        more = own + WEIGHT / rows * curvature * record @ record.T
        log_volume = np.log(np.linalg.det(more) / np.linalg.det(own))
        log_density = alpha[at] * 2.0 * WEIGHT * SLOPE / rows
        found = spending.objective_epsilon(alpha, ROWS, WEIGHT, BEND, curvature, SLOPE)[at]
        assert found == pytest.approx(log_density + log_volume, rel=1e-12)
    default = spending.objective_epsilon(alpha, ROWS, WEIGHT, BEND, curvature)
    np.testing.assert_array_equal(default, spending.objective_epsilon(alpha, ROWS, WEIGHT, BEND, curvature, 1.0))


def test_the_printed_cost_is_that_of_32() -> None:
    # C/B_i (1.4 * 2 c1/mu_i + 2 alpha_i), by hand for both nodes.
    found = spending.printed_epsilon(np.array([0.3, 0.05]), ROWS, WEIGHT, BEND, 0.25)
    np.testing.assert_allclose(
        found, [2.5 / 3.0 * (2.8 * 0.25 / 0.4 + 0.6), 2.5 / 8.0 * (2.8 * 0.25 / 5.0 + 0.1)], rtol=1e-14
    )


def test_each_node_pays_for_its_own_releases_and_for_those_that_touch_everyone() -> None:
    names = [spending.node_name(label) for label in ("a", 2)]
    ledger = [
        Release(epsilon=0.5, touches=names[0]),
        Release(epsilon=0.25, touches=names[0]),
        Release(mu=0.3, touches=names[1]),
        Release(mu=0.4),
    ]
    costs = spending.node_costs(ledger, ("a", 2))
    assert costs.loc["a"].tolist() == pytest.approx([0.75, 0.4])
    assert costs.loc[2].tolist() == pytest.approx([0.0, 0.5])


def test_the_printed_sum_stands_beside_the_accounting_and_is_the_worst_nodes() -> None:
    ledger = [Release(epsilon=0.5, touches=spending.node_name(1))]
    found = spending.accounted(ledger, None, np.array([0.7, 0.9]), secure=False)
    assert found.claims[-1] == Claim(spending.PRINTED, 0.9, 0.0, holds=False, note=spending.UNCOVERED)
    assert spending.accounted(ledger, None, np.array([0.3, 0.4])).epsilon == 0.5  # it is no bound of the whole ledger
    assert (found.epsilon, found.secure, len(spending.accounted(ledger, None).claims)) == (0.5, False, 1)


def test_the_nodes_that_spent_most_come_first_and_conventional_admm_pays_for_twice_the_releases() -> None:
    losses = pd.DataFrame({"rows": [5, 7], "mu": [0.1, 0.3]}, index=["a", "b"])
    frame, _ = spending.worst_nodes(losses, 1e-6, recycles=True)
    assert frame["node"].tolist() == ["b", "a"]
    for mu, spent, usual in zip((0.3, 0.1), frame["epsilon"], frame["ADMM"], strict=True):
        assert spent == pytest.approx(account_ledger([Release(mu=mu)], 1e-6, neighbours="").epsilon, rel=1e-12)
        assert usual == pytest.approx(account_ledger([Release(mu=mu)] * 2, 1e-6, neighbours="").epsilon, rel=1e-9)


def test_the_noise_of_a_node_covers_its_move_and_twice_the_distance_to_its_minimiser() -> None:
    grid = np.array([[0.25, 9.0], [0.5, 9.0]])
    several = dict.fromkeys(("scale", "epsilon", "printed"), 100.0 * grid)
    given: dict[str, Any] = {
        "alpha": np.zeros(2),
        "moves": grid,
        "convexity": 8.0 * grid,
        "last": 2.0 * grid,
        **several,
    }
    gaussian = Releases(**given, mu=0.125).noise(1, 0, 3.0, 3)
    assert isinstance(gaussian, GaussianNoise)
    assert (gaussian.sensitivity, gaussian.mu, gaussian.size) == (2.0, 0.125, 3)
    pure = Releases(**given).noise(1, 0, 3.0, 3)
    assert isinstance(pure, BallNoise)
    assert (pure.sensitivity, pure.size) == (gaussian.sensitivity, 3)
    assert pure.epsilon == pytest.approx(1.0, rel=1e-12)


def test_moves_are_those_of_rows_as_long_as_rounding_lets_pass() -> None:
    loss = SimpleNamespace(slope=SLOPE, smoothness=0.25)
    problem: Any = SimpleNamespace(rows=SimpleNamespace(counts=ROWS), loss=loss, ridge=0.4, C=WEIGHT)
    settings: Any = SimpleNamespace(row_bound=2.0, perturbation="output", method="r-admm")
    reaches = np.array([[1.0, 2.0], [3.0, 0.5]])
    exact = spending.output_move(ROWS, WEIGHT, 0.4 + 2.0 * reaches, 2.0 * SLOPE)
    found = releases_of(problem, settings, reaches, Privacy(1.0, 1e-6))
    np.testing.assert_allclose(found.moves / exact - 1.0, 1e-12, rtol=1e-2)


@pytest.mark.parametrize("method", ["r-admm", "dvp", "m-admm"])
def test_the_plan_of_noise_in_an_objective_spends_what_was_asked_by_the_rule_of_one_pass(method: str) -> None:
    loss = SimpleNamespace(slope=SLOPE, smoothness=0.25)
    problem: Any = SimpleNamespace(rows=SimpleNamespace(counts=ROWS), loss=loss, ridge=0.4, C=WEIGHT)
    settings: Any = SimpleNamespace(row_bound=2.0, perturbation="objective", method=method)
    reaches = np.array([[1.0, 2.0], [3.0, 0.5]])
    inside = {"r-admm": 1.0, "dvp": 2.0, "m-admm": 2.0 * reaches}[method]
    volume = np.log1p(WEIGHT * 0.25 * 4.0 / (ROWS * (0.4 + 2.0 * reaches)))
    for asked in (Privacy(5.0), Privacy(alpha=0.3)):
        found = releases_of(problem, settings, reaches, asked)
        exact = found.alpha / inside * 4.0 * WEIGHT * SLOPE / ROWS + volume
        np.testing.assert_allclose(found.epsilon, (1.0 + COVER) * exact, rtol=1e-11)
        np.testing.assert_allclose(found.last, COVER * exact, rtol=1e-11)
        np.testing.assert_allclose(found.scale, inside / found.alpha * np.ones((2, 2)), rtol=1e-14)
        printed = 2.0 * WEIGHT / ROWS * (1.4 / (0.4 + 2.0 * reaches) + found.alpha / inside * 2.0 * SLOPE)
        np.testing.assert_allclose(found.printed, printed, rtol=1e-11)
        assert (found.moves == 0.0).all()
        total = found.epsilon.sum(axis=0) if asked.alpha is None else found.alpha
        np.testing.assert_allclose(total, 5.0 if asked.alpha is None else 0.3, rtol=1e-11)


def test_the_plan_of_noise_on_minimisers_spends_what_was_asked() -> None:
    loss = SimpleNamespace(slope=SLOPE, smoothness=0.25)
    problem: Any = SimpleNamespace(rows=SimpleNamespace(counts=ROWS), loss=loss, ridge=0.4, C=WEIGHT)
    settings: Any = SimpleNamespace(row_bound=2.0, perturbation="output", method="dvp")
    several = [releases_of(problem, settings, np.ones((4, 2)), one) for one in (Privacy(2.0, 1e-6), Privacy(2.0))]
    assert several[0].mu == pytest.approx(gaussian_mu(2.0, 1e-6) / 2.0, rel=1e-15)
    assert several[1].mu == 0.0
    assert several[1].epsilon.tolist() == several[1].last.tolist() == [[0.5, 0.5]] * 4
    rated = releases_of(problem, settings, np.ones((4, 2)), Privacy(alpha=0.3))
    np.testing.assert_allclose(rated.epsilon, (1.0 + COVER) * 0.3 * rated.moves, rtol=1e-14)
    assert (rated.last == rated.epsilon).all()
