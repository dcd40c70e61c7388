"""SHARING, the private half of docs/errata.md: what is printed fails, and what stands in its place holds."""

from __future__ import annotations

import numpy as np
import pytest
from cvxpriv_models.admm_sharing import ADMMSharing, sensitivity

from cvxpriv.errors import PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import (
    PrivacyWarning,
    Release,
    account_ledger,
    audit,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)
from tests.models.sharing_cases import operator_bound, printed_lemma_1

#: Rows of norm 1, as Assumption 2.3 asks; the neighbour flips one sign.
pytestmark = pytest.mark.filterwarnings("ignore:The noise 'printed'")

ONE = np.array([[0.5, np.sqrt(0.75)], [0.5, np.sqrt(0.75)], [1.0, 0.0]])
OTHER = np.array([[-0.5, np.sqrt(0.75)], [0.5, np.sqrt(0.75)], [1.0, 0.0]])


def read_off(dual: Array) -> Array:
    """The labels, -1 and 1, that anyone reads off the broadcast dual of a margin loss."""
    return np.where(dual < 0.0, 1.0, -1.0)


def released(part: Array, noise: str) -> Array:
    given = ADMMSharing([part], np.array([1.0, 1.0, -1.0]), lam=1.0)
    run = given.solve_private(
        epsilon=1.0, delta=1e-5, max_iter=1, row_bound=1.0, noise=noise, shrink=False, clip_entries=50.0
    )
    return run.released["v/0"]


def lies_in_the_range_of_one(vector: Array) -> bool:
    outside = vector - ONE @ np.linalg.lstsq(ONE, vector, rcond=None)[0]
    return bool(np.linalg.norm(outside) < 1e-9)


@pytest.mark.filterwarnings("ignore:noise='printed'")
@pytest.mark.parametrize(("runs", "shown"), [(80, 2.5), pytest.param(300, 4.0, marks=pytest.mark.slow)])
def test_theorem_1_noise_tells_two_data_sets_apart_with_certainty(runs: int, shown: float) -> None:
    found = audit(
        lambda part: released(part, "printed"), ONE, OTHER, delta=1e-5, runs=runs, event=lies_in_the_range_of_one
    )
    assert (found.hits, found.hits_neighbour) == (runs, 0)
    assert found.epsilon > shown  # the claim is 1; with so many runs no more can be shown


@pytest.mark.slow
def test_isotropic_noise_passes_the_audit_that_catches_the_printed_one() -> None:
    found = audit(
        lambda part: released(part, "gaussian"), ONE, OTHER, delta=1e-5, runs=300, event=lies_in_the_range_of_one
    )
    assert (found.hits, found.hits_neighbour, found.epsilon) == (0, 0, 0.0)
    assert audit(lambda part: released(part, "gaussian"), ONE, OTHER, delta=1e-5, runs=500).epsilon <= 1.0


def test_the_printed_noise_warns_why_and_has_no_guarantee() -> None:
    given = ADMMSharing([ONE], np.array([1.0, 1.0, -1.0]))
    with pytest.warns(PrivacyWarning, match="range of D_m, which moves with the data"):
        run = given.solve_private(epsilon=1.0, delta=1e-5, max_iter=2, row_bound=1.0, noise="printed")
    assert not run.accounting.table.holds.any()
    assert "Corollary 1 as printed" in list(run.accounting.table.rule)
    with pytest.raises(PrivacyError, match="no rule holds"):
        _ = run.accounting.epsilon


@pytest.mark.slow
def test_the_printed_noise_has_the_covariance_of_a_projector_of_deficient_columns_too() -> None:
    from cvxpriv_models.admm_sharing.factor import Factor
    from cvxpriv_models.admm_sharing.mechanism import _in_range

    from cvxpriv.privacy import Noise

    wide = np.array([[1.0, 2.0, 0.0, 1.0], [2.0, 4.0, 0.0, 2.0], [0.0, 0.0, 1.0, 1.0]])
    deficient = np.array([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]])
    source = Noise(np.random.default_rng(0))
    for part in (ONE, wide, deficient):
        draws = np.array([_in_range(Factor(part), 2.0, source) for _ in range(20000)])
        projector = part @ np.linalg.pinv(part)
        assert np.allclose(np.cov(draws.T), 4.0 * projector, atol=0.15)  # 4 / sqrt(20000), five standard errors


def test_lemma_1_takes_an_inverse_for_one_over_its_columns() -> None:
    rng = np.random.default_rng(0)
    part = rng.normal(size=(60, 40))
    part /= np.linalg.norm(part, axis=1, keepdims=True)
    assert np.linalg.norm(np.linalg.inv(part.T @ part), 2) > 100 * (1.0 / 40)


def test_lemma_1_is_exceeded_and_the_right_bound_is_not() -> None:
    """The setting of errata 4: N = 60, d = 40, M = 2, rho = 231, b_1 = c_1 = 1."""
    rng = np.random.default_rng(1)
    rho, lam, worst = 231.0, 1.0, 0.0
    claim = printed_lemma_1(40, 2, rho, lam, 1.0, 1.0)
    for _ in range(20):
        part = rng.normal(size=(60, 40))
        part /= np.linalg.norm(part, axis=1, keepdims=True)
        other = part.copy()
        # The paper's neighbour: one feature column, rows still of norm 1 (which scales the others a little).
        other[:, 0] = rng.normal(size=60)
        other /= np.linalg.norm(other, axis=1, keepdims=True)
        z = rng.normal(size=60)
        target = z / np.linalg.norm(z)  # y = 0 and the other party's share 0: -w/rho = z, of norm b_1
        kappa = lam / rho

        def share(columns: Array, target: Array = target, kappa: float = kappa) -> Array:
            return columns @ np.linalg.solve(columns.T @ columns + kappa * np.eye(40), columns.T @ target)

        moved = float(np.linalg.norm(share(part) - share(other)))
        norm, change = max(np.linalg.norm(part, 2), np.linalg.norm(other, 2)), np.linalg.norm(part - other, 2)
        assert moved <= operator_bound(target, kappa, float(norm), float(change)) * (1.0 + 1e-9)
        worst = max(worst, moved)
    assert claim == pytest.approx(0.1506, abs=5e-5)
    assert worst > claim


def test_the_right_bound_holds_for_any_two_columns_and_is_reached() -> None:
    rng = np.random.default_rng(2)
    ratios = []
    for _ in range(5000):
        samples, width, kappa = int(rng.integers(1, 6)), int(rng.integers(1, 5)), 10 ** rng.uniform(-2, 2)
        part, target = rng.normal(size=(samples, width)), rng.normal(size=samples)
        other = part + rng.normal(size=part.shape) * 10 ** rng.uniform(-3, 1)

        def share(columns: Array, target: Array = target, kappa: float = kappa) -> Array:
            return columns @ np.linalg.solve(columns.T @ columns + kappa * np.eye(columns.shape[1]), columns.T @ target)

        norm = max(np.linalg.norm(part, 2), np.linalg.norm(other, 2))
        bound = operator_bound(target, kappa, float(norm), float(np.linalg.norm(part - other, 2)))
        ratios.append(np.linalg.norm(share(part) - share(other)) / bound)
    assert 0.95 < max(ratios) <= 1.0 + 1e-9


def test_the_broadcast_dual_is_the_labels_whatever_the_noise_on_the_shares() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-0.5, 0.5, size=(500, 4))
    y = np.where(rng.random(500) < 0.5, 1.0, -1.0)
    given = ADMMSharing([rows[:, :2], rows[:, 2:]], y, lam=10.0)
    plain = given.solve(max_iter=1, accelerate="none")
    with pytest.warns(PrivacyWarning, match="noise_seed"):
        private = given.solve_private(epsilon=1.0, delta=1e-6, max_iter=1, row_bound=1.0, noise_seed=0)
    assert np.array_equal(read_off(plain.state["y"]), y)
    said = np.abs(private.released["y"]) > 1e-9  # below, a confident prediction's y is rounding
    assert said.sum() > 20
    assert np.array_equal(read_off(private.released["y"])[said], y[said])


def test_the_classical_scale_fails_above_epsilon_1_and_the_exact_one_does_not() -> None:
    """Errata 5: sqrt(2 log(1.25/delta))/epsilon at epsilon = 10, delta = 1e-5 has delta 2.27e-5."""
    classical = np.sqrt(2.0 * np.log(1.25e5)) / 10.0
    assert gaussian_delta(10.0, 1.0 / classical) == pytest.approx(2.27e-5, rel=5e-3)
    assert gaussian_delta(10.0, gaussian_mu(10.0, 1e-5)) <= 1e-5


def test_corollary_1_counts_the_releases_of_one_party_while_a_person_stands_in_all() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-0.5, 0.5, size=(100, 4))
    given = ADMMSharing([rows[:, :2], rows[:, 2:]], rows[:, 0] > 0.0, lam=5.0)
    printed = {
        adjacency: given.solve_private(
            epsilon=0.5, delta=1e-5, max_iter=4, adjacency=adjacency, row_bound=1.0
        ).accounting.claims[-1]
        for adjacency in ("replace-one", "party-row")
    }
    assert not printed["replace-one"].holds
    assert printed["party-row"].holds
    assert printed["party-row"].epsilon > 0.5  # a bound, and a loose one


def test_corollary_1_is_looser_than_basic_composition_at_its_own_setting() -> None:
    """Errata 8: epsilon = 1 a release, T = 20, delta' = 1e-5: 55.8 printed, 20 by adding up, 4.41 by zCDP of .5."""
    total = np.sqrt(2.0 * 20 * np.log(1e5)) + 20 * np.expm1(1.0)
    assert total == pytest.approx(55.8, abs=0.05)
    mu = gaussian_mu(1.0, 1e-5)
    exact = gaussian_epsilon(delta=1e-5, mu=mu * np.sqrt(20.0))
    assert exact < 20.0 < total
    found = account_ledger([Release(mu=mu)] * 20, 1e-5, neighbours="one row")
    assert exact == pytest.approx(found.epsilon)
    assert found.epsilon <= sensitivity.corollary_1(mu, 20, 1e-5).epsilon
