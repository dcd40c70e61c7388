"""The private estimators of ISTDP: more classes within one budget, regression, weights, and scikit-learn's checks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from cvxpriv_models import PrivateSparseLogisticRegression, PrivateSparseRegression
from cvxpriv_models.istdp.clipping import ClippedGradient
from cvxpriv_models.istdp.problem import Problem
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import cvxpriv as cpv
from cvxpriv.errors import DataError, ModelError, PrivacyError
from cvxpriv.privacy import account_ledger, gaussian_mu

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(6000, 4))
CLASSES = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.05 * RNG.normal(size=(6000, 3)), axis=1)]
NUMBERS = 50.0 + 40.0 * X[:, 2] - 20.0 * X[:, 0] + RNG.normal(size=6000)
THREE = cpv.PublicSchema(classes=("a", "b", "c"), ranges=(-0.5, 0.5), rows=6000)
WAGES = cpv.PublicSchema(ranges=(-0.5, 0.5), rows=6000, target=(0, 100))

#: A row's weighted gradient is clipped, and n is the number of rows: a row of weight 3 is not three rows.
NOT_REPEATED = dict.fromkeys(
    ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"),
    "a weight counts within the clip of one row",
)
SHORT = (
    "check_no_attributes_set_in_init",
    "check_fit2d_1sample",
    "check_estimators_pickle",
    "check_fit_check_is_fitted",
)


@pytest.mark.filterwarnings("ignore::cvxpriv.privacy.PrivacyWarning")
@pytest.mark.slow
@parametrize_with_checks(
    [PrivateSparseRegression(noise_seed=0), PrivateSparseLogisticRegression(noise_seed=0)],
    expected_failed_checks=lambda estimator: NOT_REPEATED,
)
def test_scikit_learn_s_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.filterwarnings("ignore::cvxpriv.privacy.PrivacyWarning")
@pytest.mark.parametrize("name", SHORT)
def test_some_of_scikit_learn_s_own_checks_pass(name: str) -> None:
    for estimator in (PrivateSparseRegression(noise_seed=0), PrivateSparseLogisticRegression(noise_seed=0)):
        getattr(estimator_checks, name)(type(estimator).__name__, estimator)


def test_three_classes_are_learned_within_one_budget_and_share_the_moments() -> None:
    budget = cpv.Budget(2.0, 1e-6)
    model = PrivateSparseLogisticRegression(epsilon=2.0, schema=THREE, budget=budget).fit(X, CLASSES)
    assert model.accounting_.epsilon == pytest.approx(2.0, rel=1e-8)  # found by bisection
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert model.accounting_.releases == 1 + 3 * model.n_iter_  # one release of moments
    assert budget.left == pytest.approx(0.0, abs=1e-6)
    assert model.score(X, CLASSES) > 0.8  # one class each: about a third
    chances = model.predict_proba(X[:50])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-12)  # rounding
    assert (model.classes_[chances.argmax(axis=1)] == model.predict(X[:50])).all()


def test_the_ledger_of_several_classes_is_exactly_the_budget() -> None:
    from cvxpriv_models.istdp import ISTDP
    from cvxpriv_models.istdp.private import solve_private

    problem = ISTDP(X, np.ones(6000), intercept=True, schema=cpv.PublicSchema(classes=(-1, 1))).problem
    options: dict[str, Any] = dict.fromkeys(
        ("adjacency", "noise_seed", "max_iter", "callback", "budget", "row_bound", "public_rows", "support")
    )
    options |= {"method": "istdp", "progress": False, "clip": 1.0, "step": "lipschitz", "output": "auto"}
    labels = [np.where(one == CLASSES, 1.0, -1.0) for one in ("a", "b", "c")]
    runs = solve_private(problem, labels=labels, epsilon=1.0, delta=1e-6, centre="auto", **options)
    assert len(runs) == 3
    assert all(run.ledger == runs[0].ledger for run in runs)
    squares = sum(entry.mu**2 for entry in runs[0].ledger if entry.mu is not None)
    assert np.sqrt(squares) == pytest.approx(gaussian_mu(1.0, 1e-6), rel=1e-9)  # additions of a few hundred squares
    again = account_ledger(runs[0].ledger, 1e-6, neighbours="one row replaced")
    assert again.epsilon == runs[0].accounting.epsilon


def test_models_of_two_classes_refuse_a_schema_of_three() -> None:
    from cvxpriv_models import DecentralizedLogisticRegression, VerticalLogisticRegression

    for model in (
        VerticalLogisticRegression(epsilon=1.0, schema=THREE),
        DecentralizedLogisticRegression(epsilon=1.0, delta=1e-6, schema=THREE),
    ):
        with pytest.raises(PrivacyError, match="more than the two that this model learns"):
            model.fit(X, CLASSES)
    with pytest.raises(PrivacyError, match="more than the two"):
        cpv.models.ISTDP(X, CLASSES, schema=THREE)


def test_log_probabilities_are_the_logarithms_and_stay_finite() -> None:
    two = PrivateSparseLogisticRegression(epsilon=5.0, max_iter=20, schema=cpv.PublicSchema(classes=(-1, 1))).fit(
        X, np.where(X[:, 0] > 0.0, 1, -1)
    )
    three = PrivateSparseLogisticRegression(epsilon=5.0, schema=THREE, max_iter=20).fit(X, CLASSES)
    for model in (two, three):
        logs = model.predict_log_proba(X[:20])
        np.testing.assert_allclose(np.exp(logs), model.predict_proba(X[:20]), rtol=1e-12)
        assert np.isfinite(model.predict_log_proba(np.full((1, 4), 1e6))).all()


@pytest.mark.filterwarnings("ignore:noise_seed makes")
def test_a_seed_of_the_noise_repeats_a_fit_and_none_does_not() -> None:
    seeded, free = (
        [
            PrivateSparseRegression(schema=WAGES, noise_seed=seed, max_iter=5).fit(X, NUMBERS).coef_.tolist()
            for _ in range(2)
        ]
        for seed in (3, None)
    )
    assert seeded[0] == seeded[1]
    assert free[0] != free[1]


@pytest.mark.parametrize("loss", ["huber", "squared"])
def test_a_private_regression_finds_the_coefficients(loss: str) -> None:
    model = PrivateSparseRegression(loss=loss, epsilon=4.0, schema=WAGES, penalty="none", max_iter=200).fit(X, NUMBERS)
    assert model.accounting_.epsilon == pytest.approx(4.0, rel=1e-8)  # found by bisection
    assert model.score(X, NUMBERS) > 0.9
    # The truth is (-20, 0, 40, 0); noise and early stopping leave a few units, over five runs at most 3.
    np.testing.assert_allclose(model.coef_, [-20.0, 0.0, 40.0, 0.0], atol=8.0)


@pytest.mark.parametrize("loss", ["huber", "squared"])
def test_a_regression_in_other_units_is_the_same_one(loss: str) -> None:
    fits = []
    for scale in (1.0, 10.0):
        known = cpv.PublicSchema(ranges=(-0.5, 0.5), target=(0.0, 100.0 * scale))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = PrivateSparseRegression(loss=loss, schema=known, noise_seed=1, max_iter=10)
            fits.append(model.fit(X, scale * NUMBERS))
    np.testing.assert_allclose(fits[1].coef_, 10.0 * fits[0].coef_, rtol=1e-6)  # the grid of releases rounds
    assert fits[1].intercept_ == pytest.approx(10.0 * fits[0].intercept_, rel=1e-6)


def test_a_target_beyond_its_range_counts_as_the_end_and_a_missing_one_as_the_middle() -> None:
    assert WAGES.targets([-1e9, np.nan, None, 70.0, np.inf]).tolist() == [0.0, 50.0, 50.0, 70.0, 100.0]
    with pytest.raises(PrivacyError, match="range"):
        cpv.PublicSchema(target=(1.0, 0.0))


def test_a_square_without_a_public_range_is_refused_before_a_row_is_read() -> None:
    with pytest.raises(PrivacyError, match="only a public range of y"):
        PrivateSparseRegression(loss="squared").fit(None, None)
    with pytest.raises(ModelError, match="huber"):
        PrivateSparseRegression(loss="hubert").fit(None, None)


def test_no_weight_adds_to_the_sensitivity() -> None:
    """A search over neighbours that differ in a row, its label and its weight, up to 1e300."""
    worst, random = 0.0, np.random.default_rng(1)
    for _ in range(300):
        x, y = random.normal(size=(6, 3)), random.choice([-1.0, 1.0], 6)
        weights = 10.0 ** random.uniform(-2.0, random.choice([1.0, 300.0]), 6)
        other_x, other_y, other_weights = x.copy(), y.copy(), weights.copy()
        other_x[0], other_y[0], other_weights[0] = random.normal(size=3), -y[0], 10.0 ** random.uniform(-2.0, 300.0)
        theta = random.normal(size=3)
        found = [
            ClippedGradient(Problem.of(a, b, "logistic", "none", False, True), 0.5, 6, w)
            for a, b, w in ((x, y, weights), (other_x, other_y, other_weights))
        ]
        moved = float(np.linalg.norm(found[0].at(theta) - found[1].at(theta)))
        assert moved <= found[0].sensitivity("replace-one")
        worst = max(worst, moved / found[0].sensitivity("replace-one"))
    assert worst > 0.9  # the bound is nearly reached


def test_weights_move_the_fit_and_malformed_ones_tell_of_no_row() -> None:
    y = np.where(X[:, 0] > 0.0, 1, -1)
    flipped = np.where(RNG.uniform(size=6000) < 0.5, y, -y)
    known = cpv.PublicSchema(classes=(-1, 1), ranges=(-0.5, 0.5))
    model = PrivateSparseLogisticRegression(epsilon=4.0, schema=known, centre="none", max_iter=50)
    trusted = (flipped == y).astype(float)
    assert model.fit(X, flipped, sample_weight=trusted).score(X, y) > 0.9
    assert model.fit(X, y, sample_weight=np.where(np.arange(6000) < 3, np.nan, 1.0)).score(X, y) > 0.9
    with pytest.raises(DataError, match="pass one weight for each"):
        model.fit(X, y, sample_weight=[1.0])
    with pytest.warns(UserWarning, match="errors tell"), pytest.raises(DataError, match="a negative weight: pass"):
        PrivateSparseRegression().fit(X, NUMBERS, sample_weight=np.full(6000, -0.25))
