"""Intervals for the population's least leakage: coverage by simulation with known truth, and the page's section."""

from __future__ import annotations

import numpy as np
import pytest
from cvxpriv_models.privacy_funnel.bound import bound
from cvxpriv_models.privacy_funnel.facts import population_section
from cvxpriv_models.privacy_funnel.population import population_interval, total_variation
from scipy.stats import binom

from cvxpriv.errors import DataError, ModelError
from cvxpriv.mechanisms.disclosure import disclosure
from cvxpriv.models import PrivacyFunnel
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.joint import JointTable

TRUTH = np.random.default_rng(4).dirichlet(np.ones(8)).reshape(2, 4)


def drawn(truth: Array, records: int, seed: int) -> JointTable:
    return JointTable.from_counts(np.random.default_rng(seed).multinomial(records, truth.ravel()).reshape(truth.shape))


def rate_of(truth: Array, fraction: float) -> float:
    p = truth.sum(axis=0)
    return float(-fraction * (p * np.log(p)).sum())


@pytest.mark.slow
@pytest.mark.parametrize("records", [300, 3000])
def test_both_intervals_hold_the_known_truth_as_often_as_they_say(records: int) -> None:
    rate, studies, held, sure = rate_of(TRUTH, 0.7), 40, 0, 0
    truth = bound(TRUTH, rate, gap=1e-8).upper  # certified
    for seed in range(studies):
        found = population_interval(drawn(TRUTH, records, seed), rate, replicates=60, seed=seed)
        held += found.bootstrap[0] - 1e-5 <= truth <= found.bootstrap[1] + 1e-5
        sure += found.finite[0] <= truth <= found.finite[1]
    assert held >= binom.ppf(1e-3, studies, 0.9)  # what an interval that holds in 90 % misses once in a thousand times
    assert sure >= binom.ppf(1e-3, studies, 0.95)


def test_nothing_need_leak_where_nothing_need_be_told() -> None:
    assert bound(TRUTH, 0.0).lower == 0.0
    few = population_interval(drawn(TRUTH, 20, 0), rate_of(TRUTH, 0.2), replicates=20)
    assert few.finite[0] == 0.0


def test_the_finite_sample_interval_shrinks_to_the_table_s_own_optimum() -> None:
    rate = rate_of(TRUTH, 0.7)
    counts = np.round(TRUTH * 1e12).astype(np.int64)
    found = population_interval(JointTable.from_counts(counts), rate, replicates=20)
    truth = bound(TRUTH, rate, gap=1e-7).upper
    assert found.finite[0] <= truth <= found.finite[1]
    assert found.finite[1] - found.finite[0] <= 1e-3
    assert found.value == pytest.approx(truth, abs=2e-5)


def test_total_variation_is_rarely_above_its_bound() -> None:
    far = [0.5 * np.abs(drawn(TRUTH, 200, seed).probabilities - TRUTH).sum() for seed in range(400)]
    assert np.mean(np.array(far) > total_variation(200, 8, 0.95)) <= 0.05


def test_the_model_asks_for_counts_and_for_sensible_numbers() -> None:
    funnel = PrivacyFunnel(drawn(TRUTH, 500, 0), rate=0.7)
    found = funnel.population(replicates=20)
    assert found.records == 500
    assert found.rate == funnel.problem.rate
    with pytest.raises(DataError, match="no counts"):
        PrivacyFunnel(TRUTH, rate=0.7).population()
    with pytest.raises(ModelError, match="replicates=3"):
        funnel.population(replicates=3)
    with pytest.raises(ModelError, match=r"level=1\.5"):
        funnel.population(level=1.5)


def test_an_unseen_symbol_and_a_rate_above_its_entropy_are_no_trouble() -> None:
    table = JointTable.from_counts([[40, 1, 3], [2, 0, 30]])
    found = population_interval(table, rate=table.entropy_x, replicates=40)
    assert 0.0 <= found.bootstrap[0] <= found.bootstrap[1] <= np.log(2.0)
    assert found.finite[1] <= np.log(2.0)


def test_the_page_shows_both_intervals_of_a_small_table() -> None:
    funnel = PrivacyFunnel(drawn(TRUTH, 500, 0), rate=0.7)
    shown = population_section(funnel.problem, disclosure(funnel.problem.table, np.eye(4), bootstrap=20))
    assert [section.title for section in shown] == ["The best possible in the population"]
    low, high = shown[0].tables[0].frame["95% low"], shown[0].tables[0].frame["95% high"]
    assert low[1] <= low[0] <= high[0] <= high[1]
    assert population_section(funnel.problem, None) == []
