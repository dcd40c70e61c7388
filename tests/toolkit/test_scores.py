"""Scores of two classes, against scikit-learn's and by hand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from cvxpriv.errors import DataError
from cvxpriv.learning.scores import SENSITIVITIES as sensitivities, _sums, area_under_curve, private_scores, scores_of
from cvxpriv.privacy import GaussianNoise, gaussian_mu
from tests.models.private_searches import CELLS


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


@pytest.mark.parametrize("counted", [False, True])
def test_no_neighbour_moves_the_sums_of_private_scores_further_than_their_noise_covers(counted: bool) -> None:
    """A row of any label and margin in the place of another, or beside it: searched at the ends of both sums."""
    rng, moved = np.random.default_rng(0), []
    labels, margin = rng.random(20) < 0.5, rng.normal(size=20)
    for one, other in itertools.product(itertools.product([True, False], [0.0, -5e-324, 3.0, -1e300, 1e300]), repeat=2):
        pair = [_sums(np.append(labels, own[0]), np.append(margin, own[1]), counted) for own in (one, other)]
        if counted:
            pair[1] = _sums(labels, margin, counted)
        moved.append(float(np.linalg.norm(pair[0] - pair[1])))
    assert max(moved) <= sensitivities[counted] == pytest.approx(max(moved), rel=1e-5)


def test_private_scores_are_sums_over_the_released_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    gaussian: list[GaussianNoise] = []
    said = [1.0]

    def plain(own: GaussianNoise, query: np.ndarray, noise: object) -> np.ndarray:
        gaussian.append(own)
        return query if query[0] else np.full(query.size, said[0])

    monkeypatch.setattr(GaussianNoise, "release", plain)
    margin, labels, mu = np.array([0.0, 2.0, -1.0, 3.0]), np.array([-1, 1, 1, 1]), gaussian_mu(1.0, 1e-6)
    for adjacency, size, least in (("replace-one", 2, 1.0), ("add-remove", 3, 0.5)):
        found = private_scores(labels, margin, epsilon=1.0, delta=1e-6, adjacency=adjacency)
        assert found.accuracy == 0.75
        assert found.log_loss == pytest.approx(scores_of(labels, margin).log_loss, abs=4e-6)  # rounded down by a unit
        # The grid adds at most a part of 2^-12.
        assert sensitivities[size == 3] < found.deviation * 4.0 * mu < sensitivities[size == 3] * (1.0 + 2.0**-12)
        none = private_scores(np.ones(0), np.ones(0), epsilon=1.0, delta=1e-6, adjacency=adjacency)
        assert none.accuracy == least
    said[0] = 3.0
    assert private_scores(np.ones(0), np.ones(0), epsilon=1.0, delta=1e-6).accuracy == 1.0
    assert [(one.sensitivity, one.mu, one.size) for one in gaussian[:4:2]] == [
        (sensitivities[counted], mu, 2 + counted) for counted in (False, True)
    ]


class Unequal:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("made", [list, lambda cells: pd.Series(cells, dtype=object)], ids=["list", "column"])
def test_no_cell_of_a_private_row_is_refused_or_warned_of_when_it_is_scored(made: Any) -> None:
    """A cell is replaced by whatever one may hold, which counts as a number, as the first class or as a margin of 0."""
    for cell in (*CELLS, Unequal()):
        for cells in ([made([1, -1, cell]), made([0.5, 0.1, 2.0])], [made([1, -1, 1]), made([0.5, 0.1, cell])]):
            found = private_scores(cells[0], cells[1], epsilon=1.0, delta=1e-6)
            assert 0.0 <= found.accuracy <= 1.0
            assert 0.0 <= found.log_loss <= 4.0
