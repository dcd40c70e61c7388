"""The residual of the whole funnel tells first-order points from others, and the accelerators reach the former."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from cvxpriv_models.privacy_funnel import accelerated, closed_form, interior, kkt, starts
from hypothesis import given, settings, strategies as st

from cvxpriv.numerics import arrays

REACHED = 1e-7  # what a run has to reach, in nats
EXACT = 1e-12  # rounding of sums of some hundred terms of size 1

P_S_X = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]])  # PF, section V-A
UNIFORM, UNEVEN = np.full(3, 1 / 3), np.array([0.1, 0.3, 0.6])
# Certified optima of PF's example, nats, by subdivision with linear programs: lower and upper within 1e-6.
UNIFORM_VALUES = [0.019582, 0.039838, 0.060181, 0.080609, 0.121083, 0.175318, 0.243661, 0.313809, 0.383957, 0.454106]
UNEVEN_VALUES = [0.008006, 0.022057, 0.038726, 0.074165, 0.118697, 0.164488, 0.210617, 0.256902, 0.310461, 0.367797]


def polish(state, p, s, target, tolerance=REACHED, limit=300):
    """Passes and Newton steps until the whole problem's residual is at most `tolerance`, start by start."""
    count = len(state["lam"])
    memory = {"damping": np.full(count, accelerated._FIRST_DAMPING), "rest": np.zeros(count)}
    whole = memory | {key: value.copy() for key, value in state.items()}
    work = np.arange(count)
    for _ in range(limit):
        found = kkt.residuals(whole["log_u"][work], p, s, target, whole["lam"][work])
        work = work[found.largest > tolerance]
        if not work.size:
            break
        part = {key: value[work] for key, value in whole.items()}
        part = accelerated.advance(closed_form.iteration(part, p, s, target), p, s, target)
        for key, value in whole.items():
            value[work] = part[key]
    return whole


def entropy(p):
    return float(-(p @ np.log(p)))


def problem(symbols=3, rows=5, fraction=0.6, seed=0, uniform=False):
    rng = np.random.default_rng(seed)
    p = np.full(rows, 1 / rows) if uniform else np.maximum(rng.dirichlet(np.ones(rows)), 1e-4)
    p = p / p.sum()
    return p, rng.dirichlet(np.ones(symbols), rows).T, fraction * entropy(p)


def initial(p, s, rate, size_y, count, seed=0):
    return closed_form.complete(starts.feasible_starts(p, rate, size_y, count, seed), s), rate - entropy(p)


def deterministic(p, labels, size_y):
    log_u = np.full((1, len(p), size_y), closed_form.FLOOR)
    log_u[0, np.arange(len(p)), labels] = np.log(p)
    return log_u


def test_the_slopes_are_the_derivatives_of_leakage_and_utility():
    p, s, rate = problem()
    state, _ = initial(p, s, rate, 4, 2)
    ((_, rise, log_w),) = kkt.LagrangianSlopes(state["log_u"], s).parts()
    u, rng, step = np.exp(state["log_u"]), np.random.default_rng(1), 1e-6
    towards = rng.normal(size=u.shape) * u
    towards -= u * (towards.sum(axis=2, keepdims=True) / u.sum(axis=2, keepdims=True))  # rows keep their sums
    for measure, slope in ((lambda x: closed_form.leakage(x, s), rise), (closed_form.utility, log_w)):
        quotient = (measure(np.log(u + step * towards)) - measure(np.log(u - step * towards))) / (2 * step)
        np.testing.assert_allclose(np.sum(slope * towards, axis=(1, 2)), quotient, atol=1e-8)


def test_residuals_of_a_large_point_are_those_of_its_rows_together(monkeypatch):
    p, s, rate = problem()
    state, _ = initial(p, s, rate, 4, 3)
    asked = state["log_u"], p, s, rate - entropy(p), np.array([np.nan, 0.3, np.nan])
    whole = kkt.residuals(*asked)
    monkeypatch.setattr(arrays, "CELLS_AT_ONCE", 2 * state["log_u"].shape[0] * state["log_u"].shape[2])
    slopes = kkt.LagrangianSlopes(state["log_u"], s)
    assert [u.shape[1] for u, _, _ in slopes.parts()] == [2, 2, 1]
    for found, expected in zip(vars(kkt.residuals(*asked)).values(), vars(whole).values(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.6, 0.95])
def test_the_identity_fails_where_its_rate_is_slack(fraction):
    p, s, rate = problem(fraction=fraction)
    assert kkt.residuals(deterministic(p, np.arange(5), 6), p, s, rate - entropy(p)).largest[0] > 1e-4


def test_a_slack_merging_map_fails():
    p, s, _ = problem(rows=6)
    log_u = deterministic(p, [0, 0, 1, 2, 3, 3], 7)
    slack_rate = 0.8 * closed_form.utility(log_u)[0]
    assert kkt.residuals(log_u, p, s, slack_rate - entropy(p)).largest[0] > 1e-4


def test_an_injective_map_is_first_order_at_full_rate():
    p, s, rate = problem(fraction=1.0)
    found = kkt.residuals(deterministic(p, np.arange(5), 6), p, s, rate - entropy(p))
    assert found.largest[0] <= EXACT


def test_independence_is_first_order_at_rate_zero():
    p, s, _ = problem()
    log_u = np.log(np.outer(p, [0.5, 0.3, 0.2]))[None]
    found = kkt.residuals(log_u, p, s, -entropy(p))
    assert found.largest[0] <= EXACT


def test_a_mechanism_short_of_the_rate_fails_by_what_it_lacks():
    p, s, rate = problem()
    found = kkt.residuals(np.log(np.outer(p, [0.5, 0.5]))[None], p, s, rate - entropy(p))
    assert found.feasibility[0] == pytest.approx(rate, abs=EXACT)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_the_best_multiplier_beats_a_fine_grid(seed):
    p, s, rate = problem(seed=seed)
    state, target = initial(p, s, rate, 6, 1, seed)
    state = closed_form.iteration(state, p, s, target)
    best = kkt.residuals(state["log_u"], p, s, target)
    grid = [
        kkt.residuals(state["log_u"], p, s, target, np.array([lam])).largest[0] for lam in np.linspace(1e-6, 3, 400)
    ]
    assert best.largest[0] <= min(grid) + EXACT


def test_a_start_has_the_same_residuals_whatever_the_others_are():
    p, s, rate = problem()
    state, target = initial(p, s, rate, 4, 20)
    log_u = closed_form.iteration(state, p, s, target)["log_u"]
    together = kkt.residuals(log_u, p, s, target)
    alone = [kkt.residuals(one[None], p, s, target).of(0) for one in log_u]
    assert [together.of(k) for k in range(len(log_u))] == alone


def block_residuals(state, p, s, target):
    """The distance of each block of a state from its own exact update, (B,) each, with the others fixed."""
    log_u, log_r, log_w, lam = state["log_u"], state["log_r"], state["log_w"], state["lam"]
    u = np.exp(log_u)
    mass = u.sum(axis=-2)
    logits = state["phi"] + log_r[:, None, :] + lam[:, None, None] * log_w
    shift = np.sum(u * (log_u - logits), axis=-1, keepdims=True) / u.sum(axis=-1, keepdims=True)
    spread = np.where(u > np.exp(closed_form.FLOOR) * 2.0, u * np.abs(log_u - logits - shift), 0.0)
    slack = np.sum(u * log_w, axis=(-2, -1)) - target
    return SimpleNamespace(
        q=(u * np.abs(state["phi"] - closed_form.expectation(log_u, s))).max(axis=(-2, -1)),
        u=spread.max(axis=(-2, -1)),
        u_rows=np.abs(u.sum(axis=-1) - p).max(axis=-1),
        u_slack=np.maximum(lam * np.abs(slack), -slack),
        r=np.abs(np.exp(log_r) - mass).max(axis=-1),
        w=np.abs(np.exp(log_w) * mass[:, None, :] - u).max(axis=(-2, -1)),
    )


def test_block_residuals_vanish_after_each_block_and_not_before():
    p, s, rate = problem()
    state, target = initial(p, s, rate, 6, 3)
    assert block_residuals(state, p, s, target).u.min() > 1e-3
    state["log_u"], state["lam"] = closed_form.mechanism(state["phi"], state["log_r"], state["log_w"], p, target)
    after_u = block_residuals(state, p, s, target)
    assert max(after_u.u.max(), after_u.u_rows.max(), after_u.u_slack.max()) <= 10 * EXACT
    assert min(after_u.q.min(), after_u.r.min(), after_u.w.min()) > 1e-4
    fresh = block_residuals(closed_form.complete(state["log_u"], s, state["lam"]), p, s, target)
    assert max(fresh.q.max(), fresh.r.max(), fresh.w.max()) <= EXACT


def test_the_interior_direction_solves_its_dense_quadratic_model():
    p, s, rate = problem(symbols=2, rows=4, seed=3)
    state, target = initial(p, s, rate, 3, 1)
    state = closed_form.iteration(state, p, s, target)
    lam, damping, newton = state["lam"], np.array([0.7]), np.array([1.0])
    at = interior.point(np.exp(state["log_u"]), s)
    found = interior.direction(at, lam, damping, newton, p, s, target)
    u, cells = at.u[0], at.u[0].size
    reduced = interior.reduced_costs(at, lam)[0]
    hessian = np.zeros((4, 3, 4, 3))
    for j in range(3):
        pull = s.T @ np.diag(1 / (s @ u[:, j])) @ s - (1 - lam[0]) / u[:, j].sum()
        hessian[:, j, :, j] = pull + np.diag((np.maximum(reduced[:, j], 0) + 0.7 - lam[0]) / u[:, j])
    rows = np.kron(np.eye(4), np.ones(3))
    bound = np.vstack([rows, at.log_w[0].ravel()])
    system = np.block([[hessian.reshape(cells, cells), bound.T], [bound, np.zeros((5, 5))]])
    slack = np.sum(u * at.log_w[0]) - target
    dense = np.linalg.solve(system, np.concatenate([-at.rise[0].ravel(), p - u.sum(axis=1), [-slack]]))
    np.testing.assert_allclose(found.step[0].ravel(), dense[:cells], atol=1e-9)
    assert found.lam[0] == pytest.approx(-dense[-1], abs=1e-9)


@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.1, 0.5, 0.8, 0.99]),
)
def test_accelerated_passes_stay_feasible_and_never_raise_the_leakage(seed, fraction):
    p, s, rate = problem(symbols=3, rows=5, fraction=fraction, seed=seed)
    state, target = initial(p, s, rate, 6, 4, seed)
    for _ in range(25):
        before = closed_form.leakage(state["log_u"], s)
        state = accelerated.advance(closed_form.iteration(state, p, s, target), p, s, target)
        assert np.max(closed_form.leakage(state["log_u"], s) - before) <= EXACT
        assert closed_form.utility(state["log_u"]).min() >= rate - EXACT
        np.testing.assert_allclose(np.exp(state["log_u"]).sum(axis=2), np.broadcast_to(p, (4, 5)), atol=EXACT)
        assert all(np.isfinite(value).all() for value in state.values())


@pytest.mark.parametrize("uniform", [True, False])
def test_thirty_starts_converge_where_plain_alternation_crawls(uniform):
    p, s, rate = problem(symbols=4, rows=16, seed=8, uniform=uniform)
    state, target = initial(p, s, rate, 17, 30)
    plain = state
    for _ in range(300):
        plain = closed_form.iteration(plain, p, s, target)
    assert np.median(kkt.residuals(plain["log_u"], p, s, target, plain["lam"]).largest) > 1e-6
    polished = polish(state, p, s, target)
    assert kkt.residuals(polished["log_u"], p, s, target).largest.max() <= REACHED


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("p", "values"), [(UNIFORM, UNIFORM_VALUES), (UNEVEN, UNEVEN_VALUES)], ids=["uniform", "uneven"]
)
def test_the_best_of_thirty_is_the_certified_optimum_of_the_papers_example(p, values, every):
    for tenth, certified in list(enumerate(values, start=1))[::every]:
        state, target = initial(p, P_S_X, tenth / 10 * entropy(p), 4, 30)
        state = polish(state, p, P_S_X, target)
        found = kkt.residuals(state["log_u"], p, P_S_X, target)
        leakage = closed_form.leakage(state["log_u"], P_S_X)
        assert found.largest.max() <= REACHED
        assert abs(leakage.min() - certified) <= 5e-5


@pytest.mark.parametrize("case", ["clusters", "ties", "independent", "copy", "binary"])
def test_degenerate_problems_converge(case):
    s = {
        "clusters": np.repeat(np.eye(3), 2, axis=1),  # S is a function of X
        "ties": np.tile([[0.8, 0.3], [0.2, 0.7]], 3),  # x's with the same P(s|x)
        "independent": np.full((3, 6), 1 / 3),
        "copy": np.eye(6),  # S = X: leakage is utility
        "binary": np.array([[0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [1.0, 0.8, 0.6, 0.4, 0.2, 0.0]]),
    }[case]
    p = np.array([0.25, 0.2, 0.2, 0.15, 0.1, 0.1])
    for fraction in (0.0, 0.3, 0.7, 0.95, 1.0):
        state, target = initial(p, s, fraction * entropy(p), 7, 10)
        state = polish(state, p, s, target)
        assert kkt.residuals(state["log_u"], p, s, target).largest.max() <= REACHED, fraction
        if case == "copy":
            np.testing.assert_allclose(closed_form.leakage(state["log_u"], s), fraction * entropy(p), atol=REACHED)


def narrow_and_new_column(posterior):
    """PF's example at R = .9 H(X): a first-order point on three columns, and a fourth of mass 1e-14.

    Three columns cannot do better than .388548 (uniform P(x)); four reach .383957.
    """
    rate = 0.9 * entropy(UNIFORM)
    narrow, target = initial(UNIFORM, P_S_X, rate, 3, 1)
    narrow = polish(narrow, UNIFORM, P_S_X, target)
    column = 1e-14 * np.array(posterior)
    cells = np.concatenate([np.exp(narrow["log_u"]), column[None, :, None]], axis=2)
    log_u = np.log(interior.mechanism_of(cells, UNIFORM))
    return closed_form.complete(log_u, P_S_X, narrow["lam"]), target


@pytest.mark.parametrize("posterior", [[1.0, 1e-8, 1e-8], [0.65, 0.35, 1e-8]], ids=["cheap", "to be reshaped"])
def test_a_useful_column_without_mass_comes_back(posterior):
    state, target = narrow_and_new_column(posterior)
    assert closed_form.leakage(state["log_u"], P_S_X)[0] == pytest.approx(0.388548, abs=1e-6)
    assert kkt.residuals(state["log_u"], UNIFORM, P_S_X, target).largest[0] > 1e-3  # the residual sees it too
    state = polish(state, UNIFORM, P_S_X, target)
    assert closed_form.leakage(state["log_u"], P_S_X)[0] == pytest.approx(0.383957, abs=5e-6)


def test_one_look_at_the_prices_gives_a_useful_column_its_mass():
    state, target = narrow_and_new_column([1.0, 1e-8, 1e-8])
    at, near = interior.point(np.exp(state["log_u"]), P_S_X), np.array([True])
    cells = accelerated.settle_light_columns(at, state["lam"], near, UNIFORM, P_S_X, target)
    assert cells[0, :, 3].sum() > 1e-3
    assert closed_form.leakage(np.log(cells), P_S_X)[0] < closed_form.leakage(state["log_u"], P_S_X)[0] - 1e-6
    assert closed_form.utility(np.log(cells))[0] >= 0.9 * entropy(UNIFORM) - EXACT


def test_a_light_column_does_not_hide_that_the_rest_is_stationary():
    state, target = narrow_and_new_column([1.0, 1e-8, 1e-8])
    at = interior.point(np.exp(state["log_u"]), P_S_X)
    assert kkt.residuals(state["log_u"], UNIFORM, P_S_X, target, state["lam"]).stationarity[0] > 1e-3
    assert interior.stationarity(at, state["lam"])[0] <= REACHED


def test_a_column_that_follows_a_live_one_costs_no_utility():
    rate = 0.6 * entropy(UNIFORM)
    state, target = initial(UNIFORM, P_S_X, rate, 3, 1)
    state = polish(state, UNIFORM, P_S_X, target)
    cells = np.exp(state["log_u"])
    w = np.exp(state["log_w"][0])
    shared = int(np.sort(w, axis=0)[-2].argmax())  # a column that two x's share
    posterior = np.where(w[:, shared] == w[:, shared].max(), 1.001, 1.0) * w[:, shared]
    cells = interior.mechanism_of(np.concatenate([cells, 1e-7 * posterior[None, :, None]], axis=2), UNIFORM)
    at = interior.point(cells, P_S_X)
    after = accelerated.settle_light_columns(at, state["lam"], np.array([True]), UNIFORM, P_S_X, target)
    moved = after[0] / after[0].sum(axis=0) - at.u[0] / at.mass[0]
    assert np.abs(moved[:, 3]).max() > 1e-4
    # The loss is its mass times the divergence of the posteriors, 1e-7 times 1e-7; a mere change of posterior with the
    # rows scaled back would cost or bring its mass times their difference, 1e-10.
    assert abs(closed_form.utility(np.log(after))[0] - closed_form.utility(np.log(at.u))[0]) <= 1e-13
    np.testing.assert_allclose(after[0].sum(axis=1), UNIFORM, atol=EXACT)


@pytest.mark.parametrize("newton", [0.0, 1.0])
def test_the_line_search_takes_the_same_lengths_for_a_start_alone_and_among_others(newton):
    p, s, rate = problem(symbols=3, rows=6, seed=4)
    state, target = initial(p, s, rate, 7, 12)
    for _ in range(3):
        state = closed_form.iteration(state, p, s, target)
    at = interior.point(np.exp(state["log_u"]), s)
    model = np.full(12, newton)
    towards = interior.direction(at, state["lam"], np.geomspace(1e-5, 1.0, 12), model, p, s, target)
    together = interior.LineSearch(at, towards, p, s, target).run(model)
    assert len(set(together[1])) > 1  # starts take different lengths
    for start in range(12):
        one = slice(start, start + 1)
        own, way = (type(parts)(*(part[one] for part in parts)) for parts in (at, towards))
        for whole, part in zip(together, interior.LineSearch(own, way, p, s, target).run(model[one]), strict=True):
            assert whole[one] == pytest.approx(part, abs=1e-15)


def test_an_idle_column_takes_the_posterior_of_a_live_one():
    state, target = narrow_and_new_column([1.0, 1e-8, 1e-8])
    cells = np.exp(state["log_u"])
    cells[0, :, 3] = 1e-17 * np.array([0.3, 0.3, 0.4])
    at = interior.point(interior.mechanism_of(cells, UNIFORM), P_S_X)
    cells = accelerated.settle_light_columns(at, state["lam"], np.array([True]), UNIFORM, P_S_X, target)
    w = cells[0] / cells[0].sum(axis=0)
    assert np.min(np.abs(w[:, :3] - w[:, 3:]).max(axis=0)) <= EXACT
    assert kkt.residuals(np.log(cells), UNIFORM, P_S_X, target).largest[0] <= 2 * REACHED
