"""What noise in a table costs, and which constraints survive it: with known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cvxpriv as cpv
from cvxpriv.constraints import local_differential_privacy, pointwise_leakage
from cvxpriv.errors import DataError
from cvxpriv.runs.constraint_facts import likely_excess
from cvxpriv.runs.noise_costs import _figure, costs_section, noise_costs
from cvxpriv.tables.information import measure
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.protection import Protection

COUNTS = np.array([[60, 20, 20], [20, 30, 50]])
TABLE = JointTable.from_counts(COUNTS)


def favourite(table: JointTable) -> np.ndarray:
    """Says whether X is the likeliest symbol: a mechanism that depends on the table."""
    top = int(table.p_x.argmax())
    return np.eye(2)[[int(place == top) for place in range(3)]]


def test_the_figures_are_those_of_the_bare_table_and_come_near_them_with_little_noise() -> None:
    found = noise_costs(TABLE, favourite, [0.01, 1000.0], draws=30).set_index("epsilon")
    bare = measure(TABLE.probabilities[None], favourite(TABLE))[0]
    assert found.loc[np.inf, ["leakage", "utility"]].tolist() == pytest.approx(bare[:2].tolist(), abs=1e-12)
    assert found.loc[1000.0, "utility_low"] == found.loc[1000.0, "utility_high"] == pytest.approx(bare[1], abs=1e-12)
    assert found.loc[0.01, "leakage_low"] < found.loc[0.01, "leakage_high"]


def test_a_fresh_draw_lies_in_the_interval_as_often_as_it_says() -> None:
    costs = noise_costs(TABLE, favourite, [0.02], draws=200, level=0.9, seed=1).iloc[0]
    inside = []
    for seed in range(60):
        with pytest.warns(UserWarning, match="seed"):
            noisy = cpv.private_table(TABLE, 0.02, domain="table", noise_seed=seed)
        leakage = measure(TABLE.probabilities[None], favourite(noisy))[0, 0]
        inside.append(costs["leakage_low"] - 1e-12 <= leakage <= costs["leakage_high"] + 1e-12)
    assert np.mean(inside) >= 0.78  # 0.9 less three standard errors of 60 draws


def test_the_section_says_whose_numbers_they_are() -> None:
    costs = noise_costs(TABLE, favourite, [1.0, 10.0], draws=3)
    private, public = costs_section(costs, False), costs_section(costs, True)
    assert "keep them" in private.notes[0]
    assert "may be published" in public.notes[0]
    assert private.shared is None
    assert private.tables[0].frame["epsilon"].tolist() == ["1", "10", "no noise"]
    assert private.pictures[0].file == "noise_costs.png"


@pytest.mark.parametrize(("epsilons", "draws"), [([], 3), ([0.0], 3), ([1.0], 1)])
def test_wrong_arguments_are_refused(epsilons: list[float], draws: int) -> None:
    with pytest.raises(DataError):
        noise_costs(TABLE, favourite, epsilons, draws=draws)


def test_a_constraint_of_the_matrix_alone_is_robust_and_one_of_the_table_is_missed_by_no_more_than_said() -> None:
    response = np.array([[0.7, 0.3], [0.5, 0.5], [0.3, 0.7]])
    protection = Protection(0.2, 0.0, "replace-one", 10.0)
    noisy = replace(TABLE, protection=protection)
    assert likely_excess(local_differential_privacy(1.0), response, noisy) is None
    given = COUNTS / COUNTS.sum(axis=1, keepdims=True) @ response
    own = (COUNTS.sum(axis=1) / COUNTS.sum()) @ given
    tight = pointwise_leakage(float(np.log((given / own).max())))
    said = likely_excess(tight, response, noisy)
    assert said is not None
    assert said > 0.01
    assert likely_excess(pointwise_leakage(1.0), response, noisy) == 0.0
    rng, missed = np.random.default_rng(5), []
    for _ in range(300):
        near = np.maximum(COUNTS + protection.simulated(rng, COUNTS.shape), 0.0)
        rows = near / near.sum(axis=1, keepdims=True) @ response
        every = (near.sum(axis=1) / near.sum()) @ rows
        bound = np.exp(np.log((given / own).max())) * every
        missed.append(max(0.0, float((rows - bound).max())))
    assert np.mean(np.array(missed) <= said) >= 0.9  # 0.95 less three standard errors of 300 and 200 draws


def test_the_picture_names_the_epsilons_and_no_power_of_ten() -> None:
    for axes in _figure(noise_costs(TABLE, favourite, [0.5, 2.0], draws=5)).axes:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["0.5", "2"]
        assert not axes.get_xticks(minor=True).size
