"""Scores of two classes, against scikit-learn's and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from cvxpriv.errors import DataError
from cvxpriv.learning.scores import area_under_curve, scores_of


@pytest.mark.parametrize("ties", [False, True])
def test_scores_are_those_of_scikit_learn(ties: bool) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(500) < 0.3, 1.0, -1.0)
    margin = labels + 2.0 * rng.normal(size=500)
    margin = np.round(margin) if ties else margin
    found = scores_of(labels, margin)
    assert found.log_loss == pytest.approx(metrics.log_loss(labels, expit(margin)), rel=1e-12)  # rounding of 500 terms
    assert found.auc == pytest.approx(metrics.roc_auc_score(labels, margin), rel=1e-12)
    assert found.accuracy == metrics.accuracy_score(labels, np.where(margin > 0, 1, -1))
    assert found.rows == 500


def test_the_area_counts_pairs_and_half_of_the_ties() -> None:
    labels, margin = np.array([1.0, 1.0, -1.0, -1.0, -1.0]), np.array([2.0, 0.0, 0.0, -1.0, 3.0])
    pairs = [(p > q) + 0.5 * (p == q) for p in margin[labels > 0] for q in margin[labels < 0]]
    assert area_under_curve(labels, margin) == pytest.approx(np.mean(pairs), rel=1e-15)


def test_rows_of_one_class_have_no_area_and_a_loss_without_log_odds_no_log_loss() -> None:
    found = scores_of([1, 1], [0.5, -0.5], log_odds=False)
    assert (found.accuracy, found.log_loss, found.auc) == (0.5, None, None)
    with pytest.raises(DataError, match="one class only"):
        area_under_curve(np.ones(2), np.zeros(2))


def test_huge_log_odds_neither_overflow_nor_round_to_certainty() -> None:
    assert scores_of([1, -1], [-1000.0, 0.0]).log_loss == pytest.approx((1000.0 + np.log(2.0)) / 2.0, rel=1e-15)


@pytest.mark.parametrize(
    ("labels", "margin", "message"),
    [([], [], "at least one row"), ([1, 0], [1.0, 2.0], "other values than -1 and 1"), ([1, -1], [1.0, np.nan], "NaN")],
)
def test_what_cannot_be_scored_is_refused(labels: list[int], margin: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        scores_of(labels, margin)
