"""What a release discloses: the measures against brute force, the intervals against simulated populations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from cvxpriv.errors import DataError
from cvxpriv.mechanisms.disclosure import STATEMENT, disclosure
from cvxpriv.tables import information
from cvxpriv.tables.datasets import heart_failure
from cvxpriv.tables.information import (
    MEASURES,
    bayes_accuracy,
    corrected_interval,
    measure,
    mutual_information,
    percentile_interval,
    resampled_tables,
    with_unseen_cells,
)
from cvxpriv.tables.joint import JointTable

COUNTS = [[40, 10, 3], [10, 40, 7]]
MATRIX = np.array([[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]])


def information_by_hand(joint: NDArray[np.float64]) -> float:
    """I of a table of positive numbers, term by term."""
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    return sum(
        joint[i, j] * math.log(joint[i, j] / (rows[i] * columns[j]))
        for i, j in itertools.product(range(joint.shape[0]), range(joint.shape[1]))
    )


def test_the_measures_are_those_of_the_joint_tables_written_out() -> None:
    p = np.array(COUNTS) / np.sum(COUNTS)
    found = disclosure(JointTable.from_counts(COUNTS), MATRIX)
    released = np.array([[sum(p[s, x] * MATRIX[x, y] for x in range(3)) for y in range(2)] for s in range(2)])
    kept = np.array([[p[:, x].sum() * MATRIX[x, y] for y in range(2)] for x in range(3)])
    # Equal up to rounding: other orders of the same sums.
    assert found.value("leakage") == pytest.approx(information_by_hand(released), abs=1e-14)
    assert found.value("utility") == pytest.approx(information_by_hand(kept), abs=1e-14)
    assert found.value("information") == pytest.approx(information_by_hand(p), abs=1e-14)
    assert found.value("accuracy_nothing") == pytest.approx(57 / 110, abs=1e-14)
    assert found.value("accuracy_x") == pytest.approx((40 + 40 + 7) / 110, abs=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_accuracy_is_that_of_the_best_of_all_guessing_rules(seed: int) -> None:
    joint = np.random.default_rng(seed).dirichlet(np.ones(12)).reshape(3, 4)
    rules = itertools.product(range(3), repeat=4)
    best = max(sum(joint[guess, b] for b, guess in enumerate(rule)) for rule in rules)
    assert float(bayes_accuracy(joint)) == pytest.approx(best, abs=1e-14)  # rounding


def test_a_batch_of_tables_is_measured_like_each_of_them() -> None:
    tables = np.random.default_rng(0).dirichlet(np.ones(6), size=5).reshape(5, 2, 3)
    assert np.allclose(measure(tables, MATRIX), [measure(table[None], MATRIX)[0] for table in tables], atol=1e-15)


def test_releasing_x_itself_leaks_everything_and_a_constant_leaks_nothing() -> None:
    table = JointTable.from_counts(COUNTS)
    whole, none = disclosure(table, np.eye(3)), disclosure(table, np.ones((3, 1)))
    assert whole.value("leakage") == pytest.approx(table.information, abs=1e-14)
    assert whole.value("utility") == pytest.approx(table.entropy_x, abs=1e-14)
    assert whole.value("accuracy_y") == whole.value("accuracy_x")
    assert none.value("leakage") == 0
    assert none.value("utility") == 0
    assert none.value("accuracy_y") == pytest.approx(none.value("accuracy_nothing"), abs=1e-14)
    assert none.interval("leakage") == pytest.approx((0, 0), abs=1e-14)  # rounding


def test_values_are_of_the_smoothed_table_and_intervals_of_the_bare_counts() -> None:
    bare = disclosure(JointTable.from_counts(COUNTS), MATRIX)
    smooth = disclosure(JointTable.from_counts(COUNTS, smoothing=50), MATRIX)
    assert smooth.value("leakage") < bare.value("leakage")
    assert smooth.interval("leakage") == bare.interval("leakage")
    assert smooth.frame.loc["leakage", "empirical"] == bare.value("leakage")
    assert any("smoothed table (50 added to each count" in note for note in smooth.notes)
    assert not any("smoothed table" in note for note in bare.notes)


def test_the_same_seed_gives_the_same_intervals_however_many_replicates_fit_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = JointTable.from_counts(COUNTS)
    first, other = disclosure(table, MATRIX, seed=3), disclosure(table, MATRIX, seed=4)
    monkeypatch.setattr(information, "CHUNK", 20)
    again = disclosure(table, MATRIX, seed=3)
    assert first.frame.equals(again.frame)
    assert first.interval("leakage") != other.interval("leakage")


def test_replicates_have_as_many_records_and_leave_empty_cells_empty() -> None:
    counts = np.array([[5, 0], [2, 3]])
    tables = np.concatenate(list(resampled_tables(counts, 500, 0)))
    assert tables.shape == (500, 2, 2)
    assert np.array_equal(tables * 10, np.round(tables * 10))
    assert np.allclose(tables.sum(axis=(1, 2)), 1, atol=1e-15)
    assert not tables[:, 0, 1].any()
    # 500 means of 10 draws: a standard error of 0.007.
    assert np.allclose(tables.mean(axis=0), counts / 10, atol=0.035)


def test_the_corrected_interval_undoes_a_bias_that_the_percentile_interval_repeats() -> None:
    rng = np.random.default_rng(0)
    truth, bias = 1.0, 0.5
    value = np.array([truth + bias])
    replicates = value + bias + 0.1 * rng.standard_normal((4000, 1))
    low, high = corrected_interval(value, replicates, 0.95)
    assert low[0] < truth < high[0]
    assert percentile_interval(replicates, 0.95)[0, 0] > truth + bias


def test_the_corrected_interval_reaches_as_far_as_the_basic_and_the_shifted_one() -> None:
    value = np.array([1.0, 1.0])
    upward = np.concatenate([np.linspace(0.9, 1.2, 50), np.linspace(1.2, 3.0, 51)])  # skewed upward
    replicates = np.stack([upward, 2.2 - upward], axis=1)  # and downward
    low, high = percentile_interval(replicates, 0.9)
    bias = replicates.mean(axis=0) - value
    basic, shifted = (2 * value - high, 2 * value - low), (low - 2 * bias, high - 2 * bias)
    assert (basic[0][0] < shifted[0][0]) != (basic[0][1] < shifted[0][1])  # each of the two is the lower one once
    found = corrected_interval(value, replicates, 0.9)
    assert np.array_equal(found[0], np.minimum(basic[0], shifted[0]))
    assert np.array_equal(found[1], np.maximum(basic[1], shifted[1]))


def test_a_correction_measured_on_another_population_is_applied_to_the_value() -> None:
    rng = np.random.default_rng(0)
    value, drawn_from, bias = np.array([1.5]), np.array([3.0]), 0.5
    replicates = drawn_from + bias + 0.1 * rng.standard_normal((4000, 1))
    low, high = corrected_interval(value, replicates, 0.95, drawn_from)
    assert low[0] < 1.0 < high[0]
    # 3.92 standard deviations, with the sampling error of the quantiles of 4000 draws.
    assert high[0] - low[0] == pytest.approx(0.392, abs=0.02)


def test_unseen_cells_get_the_share_of_cells_seen_once_and_the_others_keep_their_proportions() -> None:
    counts = np.array([[5, 1, 0], [0, 3, 1]])
    found = with_unseen_cells(counts)
    assert found.sum() == pytest.approx(1.0, abs=1e-15)
    assert found[counts == 0].sum() == pytest.approx(2 / 10, abs=1e-15)
    assert found[counts > 0] == pytest.approx(0.8 * counts[counts > 0] / 10, abs=1e-15)
    assert found[0, 2] / found[1, 0] == pytest.approx((6.5 * 1.5) / (4.5 * 5.5), abs=1e-12)


@pytest.mark.parametrize("counts", [[[5, 2], [2, 3]], [[5, 0], [2, 3]], [[1, 0], [0, 1]]])
def test_without_an_empty_cell_or_a_cell_seen_once_the_records_stand_for_themselves(counts: list[list[int]]) -> None:
    assert np.array_equal(with_unseen_cells(np.array(counts)), np.array(counts) / np.sum(counts))


def test_with_many_unseen_cells_the_interval_holds_the_true_information_where_bare_replicates_do_not() -> None:
    rng = np.random.default_rng(2)
    truth = rng.dirichlet(np.full(400, 0.3)).reshape(10, 40)
    held, bare = 0, 0
    for study in range(20):
        counts = rng.multinomial(400, truth.ravel()).reshape(truth.shape)
        found = disclosure(JointTable.from_counts(counts, smoothing=1e-3), np.eye(40), seed=study)
        low, high = found.interval("information") or (0.0, 0.0)
        held += low <= mutual_information(truth) <= high
        own = np.concatenate([measure(part, np.eye(40)) for part in resampled_tables(counts, 200, study)])
        value = measure((counts / counts.sum())[None], np.eye(40))[0]
        low, high = corrected_interval(value, own, 0.95)[:, 2]
        bare += low <= mutual_information(truth) <= high
    assert held >= 17  # 95% of 20 less two standard errors; the seed is fixed
    assert bare <= 5


def simulate(same_records: bool, studies: int = 120) -> tuple[float, float]:
    """How often intervals hold the true I(S;Y): by `disclosure`, and by plain percentiles.

    The population is like the heart failure table, 299 records a study. With `same_records` the mechanism of each
    study is the partition, of 200 random ones into 6 groups, with the least leakage on its own records.
    """
    rng = np.random.default_rng(1)
    counts = heart_failure().counts
    assert counts is not None
    truth = (counts + 0.5) / (counts + 0.5).sum()
    partitions = np.eye(6)[rng.integers(0, 6, size=(200, truth.shape[1]))]
    held, plain = [], []
    for study in range(studies):
        drawn = rng.multinomial(299, truth.ravel()).reshape(truth.shape)
        table = JointTable.from_counts(drawn, smoothing=1e-3)
        leakage = mutual_information(table.probabilities @ partitions, axis=(-2, -1))
        matrix = partitions[int(leakage.argmin()) if same_records else 0]
        true_leakage = mutual_information(truth @ matrix)
        interval = disclosure(table, matrix, seed=study, same_records=same_records).interval("leakage")
        assert interval is not None
        held.append(interval[0] <= true_leakage <= interval[1])
        replicates = np.concatenate(
            [measure(part, matrix) for part in resampled_tables(drawn, 200, study)],
        )
        low, high = percentile_interval(replicates, 0.95)[:, 0]
        plain.append(low <= true_leakage <= high)
    return float(np.mean(held)), float(np.mean(plain))


@pytest.mark.parametrize(("seed", "records"), [(5, 600), (None, 300)])
def test_every_interval_holds_the_truth_as_often_as_it_says(seed: int | None, records: int) -> None:
    if seed is None:  # the values of S are nearly tied, where the best guess is biased most
        truth = np.array([[0.26, 0.16, 0.1], [0.1, 0.14, 0.24]])
    else:
        truth = np.random.default_rng(seed).dirichlet(np.ones(12)).reshape(3, 4)
    matrix = np.random.default_rng(9).dirichlet(np.ones(3), truth.shape[1])
    true, rng, studies = measure(truth[None], matrix)[0], np.random.default_rng(0), 150
    held = dict.fromkeys(MEASURES, 0)
    for study in range(studies):
        counts = rng.multinomial(records, truth.ravel()).reshape(truth.shape)
        found = disclosure(JointTable.from_counts(counts), matrix, seed=study, same_records=False)
        for name, value in zip(MEASURES, true, strict=True):
            low, high = found.interval(name) or (np.nan, np.nan)
            held[name] += low - 1e-12 <= value <= high + 1e-12
    # 95 % less two standard errors of 1.8 %.
    assert {name: count for name, count in held.items() if count < 0.914 * studies} == {}


def test_for_a_mechanism_of_other_records_the_interval_holds_the_truth_where_percentiles_do_not() -> None:
    held, plain = simulate(same_records=False)
    # 120 studies: 95% less three standard errors of 2%. Seeds are fixed.
    assert held >= 0.89
    assert plain < 0.6


def test_for_a_mechanism_designed_on_the_records_the_interval_still_holds_the_truth() -> None:
    held, _ = simulate(same_records=True)
    assert held >= 0.89


def test_the_design_on_the_same_records_widens_the_intervals_of_what_y_tells_and_no_others() -> None:
    table = heart_failure()
    matrix = np.random.default_rng(0).dirichlet(np.full(17, 0.1), size=16)
    same, other = disclosure(table, matrix), disclosure(table, matrix, same_records=False)
    for name in MEASURES:
        (low, high), (low_other, high_other) = same.interval(name) or (0, 0), other.interval(name) or (0, 0)
        if name in ("leakage", "utility", "accuracy_y"):
            assert low <= low_other
            assert high >= high_other
        else:
            assert (low, high) == (low_other, high_other)
    assert same.interval("leakage") != other.interval("leakage")
    assert any("designed on these records" in note for note in same.notes)
    assert not any("designed on these records" in note for note in other.notes)


def test_intervals_stay_within_what_is_possible() -> None:
    table = JointTable.from_counts([[2, 1], [1, 2]])
    frame = disclosure(table, np.eye(2)).frame
    assert (frame["low"] <= frame["high"]).all()
    assert frame.loc["leakage", "low"] == 0
    assert frame.loc["leakage", "high"] <= math.log(2)
    assert frame.loc["accuracy_nothing", "low"] == 0.5
    assert (frame.loc[["accuracy_y", "accuracy_x"], "high"] <= 1).all()


def test_many_cells_seen_once_are_noted() -> None:
    sparse = disclosure(JointTable.from_counts([[1, 1, 20], [1, 20, 1]]), np.eye(3))
    assert any("About 9.1% of the population lie in cells" in note for note in sparse.notes)
    assert not any("of the population lie" in note for note in disclosure(JointTable.from_counts(COUNTS), MATRIX).notes)


def test_a_table_without_counts_gives_values_only_when_asked() -> None:
    table = JointTable.from_array([[0.4, 0.1], [0.1, 0.4]])
    with pytest.raises(DataError, match=r"without counts.*bootstrap=0"):
        disclosure(table, np.eye(2))
    found = disclosure(table, np.eye(2), bootstrap=0)
    assert found.value("accuracy_x") == pytest.approx(0.8, abs=1e-15)
    assert found.interval("leakage") is None
    assert found.frame[["low", "high"]].isna().all(axis=None)
    assert found.notes[0].startswith("Values without intervals")


def test_the_statement_says_that_the_figures_are_not_differentially_private() -> None:
    assert "computed from private data and are not themselves differentially private" in STATEMENT
    assert disclosure(JointTable.from_counts(COUNTS), MATRIX).statement == STATEMENT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mechanism": np.eye(2)}, "mechanism has 2 rows, the table has 3 public symbols"),
        ({"mechanism": 2 * np.eye(3)}, "mechanism is no mechanism: row 0 sums to 2"),
        ({"bootstrap": 1}, "bootstrap=1: expected a whole number >= 2"),
        ({"bootstrap": 2.5}, "bootstrap=2.5"),
        ({"seed": -1}, "seed=-1"),
        ({"level": 1.0}, "level=1.0: expected a number between 0 and 1"),
        ({"level": float("nan")}, "level=nan"),
    ],
)
def test_wrong_arguments_are_refused(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"mechanism": MATRIX} | change
    with pytest.raises(DataError, match=message):
        disclosure(JointTable.from_counts(COUNTS), **arguments)  # type: ignore[arg-type]


def test_an_unknown_measure_is_named_with_its_nearest() -> None:
    with pytest.raises(DataError, match="'leakge' is no measure: did you mean 'leakage'"):
        disclosure(JointTable.from_counts(COUNTS), MATRIX).value("leakge")
