"""Starts of the privacy funnel are feasible, positive, reproducible, and keep a root of G."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cvxpriv_models.privacy_funnel import closed_form, starts
from cvxpriv_models.privacy_funnel.baselines import quickly_merged
from hypothesis import given, settings, strategies as st

from cvxpriv.errors import ModelError
from cvxpriv.tables.information import mutual_information

ROUNDING = 1e-12  # sums of at most a few hundred logarithms of size up to 10


def entropy(p):
    return float(-(p @ np.log(p)))


def root_exists(log_w: np.ndarray, p: np.ndarray, target: float) -> np.ndarray:
    """Whether G has a root or is nowhere negative, per start: sum_i p_i max_j log w_ij >= R^, to rounding."""
    return log_w.max(axis=-1) @ p >= target - 1e-13


@st.composite
def problems(draw):
    """P(x), P(s|x), R and N, from nearly even to very uneven, R from 0 to just below the reachable."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, symbols = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    p = np.maximum(rng.dirichlet(np.full(rows, draw(st.sampled_from([0.3, 1.0, 10.0])))), 1e-5)
    p /= p.sum()
    s = rng.dirichlet(np.full(symbols, draw(st.sampled_from([0.1, 1.0]))), rows).T
    fraction = draw(st.sampled_from([0.0, 0.1, 0.5, 0.7, 0.9, 0.999]))
    return p, s, fraction * entropy(p), rows + draw(st.integers(0, 2)), draw(st.integers(0, 1000))


@settings(max_examples=60, deadline=None)
@given(problems())
def test_starts_are_feasible_and_strictly_positive(problem):
    p, _, rate, size_y, seed = problem
    log_u = starts.feasible_starts(p, rate, size_y, count=3, seed=seed)
    assert log_u.shape == (3, len(p), size_y)
    assert np.exp(log_u).min() > 0.0
    np.testing.assert_allclose(np.exp(log_u).sum(axis=2), np.broadcast_to(p, (3, len(p))), rtol=ROUNDING)
    assert closed_form.utility(log_u).min() >= rate - ROUNDING


@settings(max_examples=40, deadline=None)
@given(problems())
def test_a_root_of_g_or_a_zero_multiplier_exists_at_every_later_step(problem):
    p, s, rate, size_y, seed = problem
    target = rate - entropy(p)
    state = closed_form.complete(starts.feasible_starts(p, rate, size_y, count=3, seed=seed), s)
    for _ in range(30):
        assert root_exists(state["log_w"], p, target).all()
        before = state
        state = closed_form.iteration(state, p, s, target)
        reached = np.sum(np.exp(state["log_u"]) * before["log_w"], axis=(1, 2))
        assert reached.min() >= target - ROUNDING
        slack = np.where(state["lam"] > 0.0, np.abs(reached - target), 0.0)
        assert slack.max() <= 10 * ROUNDING  # a tenth of a bit in the last of 12 digits of sums of size 5


def test_start_k_is_the_same_however_many_are_drawn():
    p = np.array([0.4, 0.3, 0.2, 0.1])
    few, many = (starts.feasible_starts(p, 0.8, 5, count=count, seed=11) for count in (3, 9))
    np.testing.assert_array_equal(few, many[:3])


def test_starts_differ_from_each_other_and_from_another_seeds():
    p = np.array([0.4, 0.3, 0.2, 0.1])
    one, other = (starts.feasible_starts(p, 0.8, 5, count=4, seed=seed) for seed in (1, 2))
    both = np.concatenate([one, other]).reshape(8, -1)
    assert len(np.unique(both, axis=0)) == 8


def test_full_rate_gives_injective_maps():
    p = np.array([0.5, 0.3, 0.2])
    log_u = starts.feasible_starts(p, entropy(p), 4, count=10)
    live = log_u > closed_form.FLOOR
    assert (live.sum(axis=2) == 1).all()
    assert (live.sum(axis=1) <= 1).all()


def test_full_rate_leaks_all_that_x_knows_of_s():
    p, s = np.array([0.5, 0.3, 0.2]), np.array([[0.9, 0.2, 0.4], [0.1, 0.8, 0.6]])
    log_u = starts.feasible_starts(p, entropy(p), 3, count=2)
    joint = s * p
    known = np.sum(joint * np.log(s / joint.sum(axis=1, keepdims=True)))
    np.testing.assert_allclose(closed_form.leakage(log_u, s), known, rtol=ROUNDING)


def test_a_rate_that_a_map_meets_exactly_still_gets_room_to_move():
    # Uniform P(x), R = log 2: a balanced map onto two symbols has entropy R, and no feasible neighbour.
    p = np.full(4, 0.25)
    log_u = starts.feasible_starts(p, np.log(2.0), 5, count=20)
    assert log_u.min() > -30.0


def test_one_symbol_serves_rate_zero_only():
    p = np.array([0.5, 0.3, 0.2])
    assert closed_form.utility(starts.feasible_starts(p, 0.0, 1, count=2)).max() <= ROUNDING
    with pytest.raises(ModelError, match=r"size_y=1 is too small for rate=0\.1 .*choose size_y=3 or more"):
        starts.feasible_starts(p, 0.1, 1, count=2)


@pytest.mark.parametrize("seed", range(5))
def test_few_symbols_get_a_map_balanced_enough_for_the_rate(seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(12))
    best = starts.entropy_of_map(starts._balance(starts._longest_first(p, 3), p, np.inf, 3), p, 3)
    labels = starts.deterministic_map(p, best - 1e-9, 3, rng)
    assert starts.entropy_of_map(labels, p, 3) >= best - 1e-8


def test_balancing_finds_the_most_even_map_of_a_small_case():
    # Brute force over all 2**6 maps onto two symbols.
    p = np.array([0.31, 0.23, 0.19, 0.13, 0.09, 0.05])
    maps = [np.array([(k >> i) & 1 for i in range(6)]) for k in range(64)]
    most = max(starts.entropy_of_map(labels, p, 2) for labels in maps)
    found = starts.deterministic_map(p, most - 1e-9, 2, np.random.default_rng(0))
    assert starts.entropy_of_map(found, p, 2) >= most - 1e-8


def test_pairs_merged_one_after_the_other_carry_the_rate_at_little_cost() -> None:
    rng = np.random.default_rng(0)
    table = rng.gamma(0.5, size=(4, 300))
    table /= table.sum()
    p = table.sum(axis=0)
    rate = 0.7 * float(entropy(p))
    mechanism = quickly_merged(table, rate)
    assert set(np.unique(mechanism)) == {0.0, 1.0}
    assert (mechanism.sum(axis=1) == 1.0).all()
    assert rate - 1e-9 <= mutual_information(p[:, None] * mechanism) <= rate + 0.1
    assert mutual_information(table @ mechanism) < 0.02 * mutual_information(table)  # in a line: a third
    assert np.array_equal(quickly_merged(table, float(entropy(p))).sum(axis=0), np.ones(300))


@pytest.mark.parametrize("seed", range(4))
def test_the_quick_merging_takes_the_pair_worth_most_at_every_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(3 * 14, 0.3)).reshape(3, 14) + 1e-9
    table /= table.sum()
    p = table.sum(axis=0)
    rate = rng.uniform(0.2, 0.95) * float(entropy(p))
    slow = np.eye(14)
    while True:  # every pair is tried anew
        best, after = -np.inf, slow
        for i, j in itertools.combinations(range(slow.shape[1]), 2):
            trial = np.delete(slow, j, axis=1)
            trial[:, i] += slow[:, j]
            told, left = (mutual_information(p[:, None] * one) for one in (slow, trial))
            worth = (mutual_information(table @ slow) - mutual_information(table @ trial)) / (told - left)
            if left >= rate and worth > best:
                best, after = worth, trial
        if after is slow:
            break
        slow = after
    assert np.array_equal(slow, quickly_merged(table, rate))
