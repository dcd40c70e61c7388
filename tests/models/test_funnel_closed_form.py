"""The closed-form blocks of PF Algorithm 1 solve their convex problems, and a pass of them obeys PF (10)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from cvxpriv_models.privacy_funnel import closed_form, multiplier, starts
from hypothesis import given, settings, strategies as st

EXACT = 1e-12  # rounding of sums of some hundred terms of size 1


def entropy(p):
    return float(-(p @ np.log(p)))


def problem(symbols=3, rows=5, fraction=0.6, seed=0, uneven=1.0):
    rng = np.random.default_rng(seed)
    p = np.maximum(rng.dirichlet(np.full(rows, uneven)), 1e-4)
    p /= p.sum()
    return p, rng.dirichlet(np.ones(symbols), rows).T, fraction * entropy(p)


def passes(p, s, rate, size_y, count, number, seed=0):
    target = rate - entropy(p)
    state = closed_form.complete(starts.feasible_starts(p, rate, size_y, count, seed), s)
    for _ in range(number):
        state = closed_form.iteration(state, p, s, target)
    return state, target


def root(base, log_w, p, target, start=None):
    return multiplier.rows_at_root(np.array(base), log_w, p, target, start).lam


def test_a_mechanism_goes_through_its_log_masses_and_back_with_its_empty_cells():
    p, rows = np.array([0.2, 0.8]), np.array([[[1.0, 0.0], [0.3, 0.7]]])
    log_u = closed_form.log_joint(p, rows)
    np.testing.assert_allclose(np.exp(log_u[0]), p[:, None] * rows[0], rtol=EXACT, atol=1e-300)
    assert log_u[0, 0, 1] == closed_form.FLOOR
    np.testing.assert_allclose(closed_form.rows_of(log_u[0]), rows[0], rtol=EXACT)


def q_tensor(log_u, s):
    """q_ijk = s_ki u_ij / sum_i' s_ki' u_i'j by the paper's formula (docs/errata.md), one start, (M, N, K)."""
    weights = s.T[:, None, :] * np.exp(log_u)[:, :, None]
    return weights / weights.sum(axis=0, keepdims=True)


def test_phi_is_what_the_q_tensor_gives():
    p, s, rate = problem()
    state, _ = passes(p, s, rate, 6, 2, 3)
    q = q_tensor(state["log_u"][1], s)
    by_tensor = np.sum(s.T[:, None, :] * (np.log(q) - np.log(s.T[:, None, :])), axis=2)
    np.testing.assert_allclose(closed_form.expectation(state["log_u"], s)[1], by_tensor, atol=EXACT)


def test_phi_allows_zeros_in_p_s_given_x():
    log_u = np.log(np.full((1, 2, 2), 0.25))
    phi = closed_form.expectation(log_u, np.array([[1.0, 0.5], [0.0, 0.5]]))
    # q = 1 * .25 / .375 for the first x, and .5 log(1/3) + .5 log 1 - log .5 terms for the second.
    np.testing.assert_allclose(phi[0, 0], np.log(0.25 / 0.375), atol=EXACT)
    np.testing.assert_allclose(phi[0, 1], 0.5 * np.log(0.25 / 0.375) + 0.5 * np.log(0.25 / 0.125), atol=EXACT)


def test_the_u_block_solves_its_cone_program():
    p, s, rate = problem(seed=2, fraction=0.3)
    state, target = passes(p, s, rate, 4, 2, 1)
    phi = closed_form.expectation(state["log_u"], s)
    log_u, lam = closed_form.mechanism(phi, state["log_r"], state["log_w"], p, target)
    for k in range(2):
        u = cp.Variable((len(p), 4))
        attraction = np.exp(phi[k] + state["log_r"][k])
        assert attraction.min() > 1e-9  # below that cone solvers fail: the block's own form prunes such cells
        enough = cp.sum(cp.multiply(state["log_w"][k], u)) >= target
        cone = cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(u, attraction))), [cp.sum(u, axis=1) == p, enough])
        cone.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        value = np.sum(np.exp(log_u[k]) * (log_u[k] - phi[k] - state["log_r"][k]))
        assert value == pytest.approx(cone.value, abs=1e-8)  # the solver's gap
        assert lam[k] == pytest.approx(float(enough.dual_value), abs=1e-5)  # duals are looser than values
        np.testing.assert_allclose(np.exp(log_u[k]), u.value, atol=1e-4)  # the root of the solver's gap


def test_r_and_w_are_the_minimisers_of_their_blocks():
    p, s, rate = problem()
    state, _ = passes(p, s, rate, 6, 3, 4)
    u = np.exp(state["log_u"])
    np.testing.assert_allclose(np.exp(closed_form.marginal(state["log_u"])), u.sum(axis=1), rtol=EXACT)
    w = np.exp(closed_form.posterior(state["log_u"], closed_form.marginal(state["log_u"])))
    np.testing.assert_allclose(w, u / u.sum(axis=1, keepdims=True), rtol=EXACT)


def test_the_slope_of_g_is_its_difference_quotient_and_not_negative():
    p, s, rate = problem(seed=4)
    state, target = passes(p, s, rate, 6, 4, 2)
    base = closed_form.expectation(state["log_u"], s) + state["log_r"][:, None, :]
    lam, step = np.array([0.0, 0.1, 1.0, 5.0]) + 1e-4, 1e-5
    (above, _), (below, _) = (
        multiplier.constraint_gap(base, state["log_w"], lam + sign * step, p, target) for sign in (1, -1)
    )
    _, slope = multiplier.constraint_gap(base, state["log_w"], lam, p, target)
    # Central differences: error step**2 times a third derivative of size up to 1e3.
    np.testing.assert_allclose(slope, (above - below) / (2 * step), rtol=1e-5, atol=1e-8)
    assert slope.min() >= 0.0


def test_the_multiplier_does_not_depend_on_the_first_guess():
    p, s, rate = problem(rows=8, seed=5, fraction=0.8)
    state, target = passes(p, s, rate, 9, 6, 2)
    base = closed_form.expectation(state["log_u"], s) + state["log_r"][:, None, :]
    cold = root(base, state["log_w"], p, target)
    for guess in (1e-6, 0.3, 50.0, 1e4):
        warm = root(base, state["log_w"], p, target, np.full(6, guess))
        np.testing.assert_allclose(warm, cold, rtol=1e-9, atol=1e-11)  # |G| <= 1e-13 over slopes down to 1e-2


def test_small_moves_of_the_multiplier_end_where_g_evaluated_afresh_is_zero():
    p, s, rate = problem(rows=70, seed=5, fraction=0.7)
    state, target = passes(p, s, rate, 71, 3, 5)  # 70 x 71 cells: large enough for moves in place
    base = state["phi"] + state["log_r"][:, None, :]
    base[:, ::2, ::3] -= 900.0  # cells at the floor are moved too
    cold = root(base, state["log_w"], p, target)
    for offset in (1e-6, 3e-3):
        warm = root(base, state["log_w"], p, target, cold + offset)
        np.testing.assert_allclose(warm, cold, rtol=1e-9)  # |G| <= 1e-13 over slopes of size 1e-1
        gap, _ = multiplier.constraint_gap(base, state["log_w"], warm, p, target)
        np.testing.assert_allclose(gap, 0.0, atol=EXACT)


@pytest.mark.parametrize("starts", [1, 3])
def test_a_pass_where_few_cells_live_is_the_papers(starts):
    p, s, rate = problem(rows=70, seed=5, fraction=0.7)
    state, target = passes(p, s, rate, 71, starts, 2)
    dead = np.random.default_rng(0).random(state["log_u"].shape) < 0.85
    dead[:, np.arange(70), np.arange(70)] = False
    log_u = np.where(dead, -350.0, state["log_u"] + 3.0 * np.eye(70, 71))
    log_u -= np.log(np.exp(log_u).sum(axis=2) / p)[..., None]
    state = closed_form.complete(log_u, s, state["lam"])
    target = float((np.exp(log_u) * state["log_w"]).sum(axis=(1, 2)).min())
    after = closed_form.iteration(state, p, s, target)
    logits = state["phi"] + state["log_r"][:, None, :] + after["lam"][:, None, None] * state["log_w"]
    logits -= logits.max(axis=2, keepdims=True)
    u = p[:, None] * np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(np.exp(after["log_u"]), u, rtol=1e-11, atol=1e-300)
    excess = (u * state["log_w"]).sum(axis=(1, 2)) - target
    assert excess.min() >= -EXACT
    np.testing.assert_allclose(np.minimum(after["lam"], excess), 0.0, atol=EXACT)
    log_u = after["log_u"]
    np.testing.assert_allclose(after["log_r"], closed_form.marginal(log_u), rtol=1e-12, atol=1e-13)


def test_a_large_pass_is_bit_for_bit_the_same_alone_and_in_a_batch():
    p, s, rate = problem(rows=70, seed=6, fraction=0.7)
    state, target = passes(p, s, rate, 71, 4, 2)
    state["lam"][1:3] += 0.3, 1e-3  # so that starts need different numbers of moves, far and near
    together = closed_form.iteration(state, p, s, target)
    for start in range(4):
        alone = closed_form.iteration({key: value[[start]] for key, value in state.items()}, p, s, target)
        for key in ("log_u", "log_r", "log_w", "phi", "lam"):
            assert np.array_equal(together[key][start], alone[key][0]), key


def test_a_pass_whose_cells_have_died_is_the_same_alone_in_a_batch_and_searched_on_all_cells(monkeypatch):
    p, s, rate = problem(rows=70, seed=6, fraction=0.9)
    state, target = passes(p, s, rate, 71, 2, 40)
    fresh, _ = passes(p, s, rate, 71, 1, 1)
    state = {key: np.concatenate([value, fresh[key]]) for key, value in state.items()}
    searched = multiplier._root_of_few
    fewer = []
    monkeypatch.setattr(multiplier, "_root_of_few", lambda *a: fewer.append(len(a[-1])) or searched(*a))
    together = closed_form.iteration(state, p, s, target)
    assert [count >= 70 for count in fewer] == [True, True, False]  # all cells of the third weigh: it has just begun
    alone = [closed_form.iteration({k: v[[start]] for k, v in state.items()}, p, s, target) for start in range(3)]
    monkeypatch.setattr(closed_form, "_FEW", 0.0)
    whole = closed_form.iteration(state, p, s, target)
    np.testing.assert_allclose(np.exp(together["log_u"]), np.exp(whole["log_u"]), rtol=1e-9, atol=1e-16)
    for key in ("log_u", "log_r", "log_w", "phi", "lam"):
        assert np.array_equal(together[key], np.concatenate([one[key] for one in alone])), key
        np.testing.assert_allclose(together[key], whole[key], rtol=1e-9, atol=1e-8)


def test_a_pass_does_not_depend_on_the_order_in_which_memory_holds_its_cells():
    p, s, rate = problem(rows=70, seed=6, fraction=0.9)
    state, target = passes(p, s, rate, 71, 1, 40)
    turned = {key: np.asfortranarray(value) for key, value in state.items()}
    usual, after = (closed_form.iteration(one, p, s, target) for one in (state, turned))
    assert closed_form._heavy(turned["log_u"]) is not None  # the search on the cells that weigh
    for key in ("log_u", "log_r", "log_w", "phi", "lam"):
        np.testing.assert_allclose(after[key], usual[key], rtol=1e-9, atol=1e-8)


def test_a_search_on_few_cells_that_leads_nowhere_leaves_the_guess():
    base, log_w, p = np.zeros((2, 3)), -np.ones((2, 3)), np.array([0.4, 0.6])
    assert multiplier._root_of_few(base, log_w, 0.3, p, -1.0, np.array([0, 1])) == 0.3  # a row without a cell
    with np.errstate(divide="ignore", invalid="ignore"):
        assert multiplier._root_of_few(base, log_w, 0.3, p, -0.5, np.arange(6)) == 0.3  # G does not depend on lam


def test_rows_that_would_overflow_are_shifted():
    p, s, rate = problem(rows=6, seed=2)
    state, target = passes(p, s, rate, 7, 2, 3)
    base = state["phi"] + state["log_r"][:, None, :]
    shift = np.array([900.0, -900.0, 0.0, 500.0, -650.0, 0.0])[:, None]  # a row's constant does not change its softmax
    plain, shifted = (root(b, state["log_w"], p, target) for b in (base, base + shift))
    np.testing.assert_allclose(shifted, plain, rtol=1e-9)


def test_a_slack_constraint_has_multiplier_zero():
    p, s, _ = problem()
    log_u = np.log(p[:, None] * np.eye(5) * 0.99 + 1e-3)[None]
    state = closed_form.complete(log_u - np.log(np.exp(log_u).sum(axis=2, keepdims=True) / p[:, None]), s)
    base = state["phi"] + state["log_r"][:, None, :]
    assert root(base, state["log_w"], p, -entropy(p) + 0.05)[0] == 0.0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.2, 0.6, 0.95]), st.integers(0, 40))
def test_the_fused_pass_equals_the_separate_blocks(seed, fraction, number):
    p, s, rate = problem(rows=6, fraction=fraction, seed=seed)
    state, target = passes(p, s, rate, 7, 3, number, seed)
    fused = closed_form.iteration(state, p, s, target)
    log_u, lam = closed_form.mechanism(state["phi"], state["log_r"], state["log_w"], p, target, state["lam"])
    log_r, phi = closed_form.marginal(log_u), closed_form.expectation(log_u, s)
    separate = {"phi": phi, "lam": lam, "log_r": log_r, "log_u": log_u, "log_w": closed_form.posterior(log_u, log_r)}
    np.testing.assert_allclose(np.exp(fused["log_u"]), np.exp(log_u), atol=EXACT)
    np.testing.assert_allclose(np.exp(fused["log_r"]), np.exp(log_r), atol=EXACT)
    for key in ("phi", "log_u", "log_r", "log_w"):
        # G is solved to 1e-13; where its slope is small the multiplier moves more, and cells of e^-600 with it.
        np.testing.assert_allclose(fused[key], separate[key], rtol=1e-9, atol=1e-8)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.2, 0.6, 0.95]))
def test_every_pass_obeys_the_general_descent_identity_and_does_not_rise(seed, fraction):
    p, s, rate = problem(rows=6, fraction=fraction, seed=seed)
    state, target = passes(p, s, rate, 7, 3, 0, seed)
    for _ in range(25):
        after = closed_form.iteration(state, p, s, target)
        sides = closed_form.descent(state, after, target)
        np.testing.assert_allclose(sides.drop, sides.explained, atol=1e-10)
        assert sides.drop.min() >= -EXACT
        assert closed_form.utility(after["log_u"]).min() >= rate - EXACT
        state = after


def test_the_printed_form_of_the_descent_identity_fails_where_the_constraint_was_slack():
    p, s, rate = problem(rows=6, fraction=0.3, seed=1)
    before, target = passes(p, s, rate, 7, 20, 0)
    worst = 0.0
    for _ in range(10):
        after = closed_form.iteration(before, p, s, target)
        sides = closed_form.descent(before, after, target)
        u = np.exp(before["log_u"])
        slack = np.sum(u * before["log_w"], axis=(1, 2)) - target
        # PF (10) prints lam sum r KL(w || w_before), which equals lam * slack only when the last pass was tight.
        worst = max(worst, float(np.max(np.abs(sides.drop - (sides.explained - after["lam"] * slack)))))
        before = after
    assert worst > 1e-4


def test_a_start_is_solved_the_same_alone_and_in_a_batch():
    p, s, rate = problem(rows=6)
    together, _ = passes(p, s, rate, 7, 5, 30)
    alone, _ = passes(p, s, rate, 7, 1, 30)
    np.testing.assert_allclose(np.exp(alone["log_u"][0]), np.exp(together["log_u"][0]), atol=1e-10)


def test_dead_cells_stay_at_the_floor_and_finite_for_hundreds_of_passes():
    p, s, rate = problem(rows=4, fraction=0.8, seed=3)
    state, _ = passes(p, s, rate, 5, 4, 3000)
    assert state["log_u"].min() == closed_form.FLOOR  # the case does reach the floor
    assert all(np.isfinite(value).all() for value in state.values())


def test_relaxed_objective_at_the_optimal_q_is_leakage_less_the_entropy_of_s():
    p, s, rate = problem()
    state, _ = passes(p, s, rate, 6, 3, 5)
    fresh = closed_form.complete(state["log_u"], s)
    value = closed_form.relaxed_objective(fresh["log_u"], fresh["log_r"], fresh["phi"])
    np.testing.assert_allclose(value + entropy(s @ p), closed_form.leakage(state["log_u"], s), atol=EXACT)
    joint = s @ np.exp(state["log_u"])
    told = (joint * np.log(joint / joint.sum(axis=1, keepdims=True))).sum(axis=(1, 2))  # -H(S|Y), the paper's objective
    np.testing.assert_allclose(value, told, atol=EXACT)
    # PF Lemma 2 says f~ >= 0 (docs/errata.md).
    assert value.max() < -0.1


def test_relaxed_objective_is_the_papers_triple_sum():
    p, s, rate = problem()
    state, _ = passes(p, s, rate, 6, 2, 3)
    u, r, q = np.exp(state["log_u"][0]), np.exp(state["log_r"][0]), q_tensor(state["log_u"][1], s)
    stale_phi = closed_form.expectation(state["log_u"], s)[1:2]
    by_sum = 0.0
    for k in range(len(s)):
        mass = s[k][:, None] * u
        by_sum += np.sum(mass * (np.log(mass) - np.log(r) - np.log(q[:, :, k])))
    value = closed_form.relaxed_objective(state["log_u"][:1], state["log_r"][:1], stale_phi)
    assert value[0] == pytest.approx(by_sum, abs=EXACT)
