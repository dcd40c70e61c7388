"""The closed forms of inference as a service: scalar roots, row and marginal blocks, posterior, pass."""

from __future__ import annotations

import numpy as np
import pytest
from cvxpriv_models.inference_service import closed_form, measures, simplex_rows
from cvxpriv_models.inference_service.problem import floored_rows
from cvxpriv_models.inference_service.simplex_rows import solve_rows
from scipy.optimize import brentq, minimize

from cvxpriv.bounds import linear_pieces
from cvxpriv.divergences import FDivergence, divergence
from cvxpriv.divergences.sides import slopes_of
from cvxpriv.numerics.arrays import Array, single
from cvxpriv.numerics.simplex import projected_rows
from cvxpriv.tables.information import kl_divergence

from .inference_cases import KINKED, PAPER, SMOOTH, augmented as augmented_of, g10, random_state

TIGHT = 1e-13  # what the closed forms promise
RHO = 1.0


def row_residual(problem: object, index: int, state: dict[str, Array], row: Array, floor: float) -> float:
    """max(|sum x - 1|, |min(x - floor, nu - s)|), written out from the definitions, for the best nu of each row."""
    p_y, beta, f = problem.p_y, problem.beta, problem.divergence  # type: ignore[attr-defined]
    share = p_y[index]
    d = np.array(
        [
            [kl_divergence(problem.p_s_given_y[:, index], column) for column in one.T]  # type: ignore[attr-defined]
            for one in state["posterior"]
        ]
    )
    c = state["q"] - (p_y @ state["mechanism"] - share * state["mechanism"][:, index])
    with np.errstate(all="ignore"):
        slope = f.gradients(row, state["q"])[0]
        s = -beta * slope - d - state["lam"] + RHO * (c - share * row)
        top = s.max(axis=-1, keepdims=True)
        off = np.minimum(row - floor, 0.5 * (top - s))
    return float(max(np.abs(row.sum(axis=-1) - 1.0).max(), np.abs(off).max()))


@pytest.mark.parametrize("name", SMOOTH)
def test_scalar_roots_solve_their_equation_over_many_magnitudes(name: str) -> None:
    rng = np.random.default_rng(0)
    level = rng.normal(size=3000) * 10.0 ** rng.uniform(-2, 2, 3000)
    q, weight = 10.0 ** rng.uniform(-8, 0, 3000), 10.0 ** rng.uniform(-4, 1, 3000)
    f = divergence(name)
    x = simplex_rows.row_roots(f, level, q, weight, 0.5)
    with np.errstate(all="ignore"):
        slope, _ = slopes_of(f).in_x(np.maximum(x, 1e-300), q)
    left = 0.5 * slope + weight * x - level
    size = np.maximum(1.0, np.abs(level) + 0.5 * np.abs(slope))
    assert np.abs(left / size)[x > 0.0].max() <= TIGHT
    assert (left[x == 0.0] >= 0.0).all()


@pytest.mark.parametrize("name", SMOOTH)
def test_fast_derivatives_are_those_of_the_divergence(name: str) -> None:
    rng = np.random.default_rng(1)
    x, q = rng.uniform(0.01, 1.0, 50), rng.uniform(0.01, 1.0, 50)
    f, step = divergence(name), 1e-5
    in_x, in_xx = slopes_of(f).in_x(x, q)
    in_q, in_qq = slopes_of(f).in_q(x, q)
    # Central differences with step 1e-5 x are good to about 1e-10 of the scale of the function.
    by_x = (f.terms(x * (1 + step), q) - f.terms(x * (1 - step), q)) / (2 * step * x)
    by_q = (f.terms(x, q * (1 + step)) - f.terms(x, q * (1 - step))) / (2 * step * q)
    np.testing.assert_allclose(in_x, by_x, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(in_q, by_q, rtol=1e-6, atol=1e-7)
    for slope, second, pair in ((slopes_of(f).in_x, in_xx, (x, q)), (slopes_of(f).in_q, in_qq, (x, q))):
        which = 0 if second is in_xx else 1
        up, down = (tuple(one * (1 + sign * step * (k == which)) for k, one in enumerate(pair)) for sign in (1, -1))
        difference = (slope(*up)[0] - slope(*down)[0]) / (2 * step * pair[which])
        np.testing.assert_allclose(second, difference, rtol=1e-5, atol=1e-6)


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("floor", [0.0, 1e-3])
@pytest.mark.parametrize("name", SMOOTH)
def test_row_blocks_reach_residual_1e_13(name: str, floor: float) -> None:
    problem = g10(name, 0.5, floor)
    for passes in (0, 3, 20):
        state = random_state(problem, 5, seed=passes, passes=passes)
        for index in (0, 4, 9):
            row = closed_form.row(problem, index, state, RHO)
            assert row.min() >= floor
            assert row_residual(problem, index, state, row, floor) <= TIGHT


@pytest.mark.parametrize("floor", [0.0, 1e-3])
@pytest.mark.parametrize("name", [*PAPER, "chi-square", "alpha:0.5"])
def test_the_bracketed_solution_of_a_row_is_the_quick_one(
    name: str, floor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = g10(name, 0.5, floor)
    state = random_state(problem, 3)
    quick = closed_form.row(problem, 2, state, RHO)
    monkeypatch.setattr("cvxpriv_models.inference_service.simplex_rows.QUICK_LIMIT", 0)
    bracketed = closed_form.row(problem, 2, state, RHO)
    np.testing.assert_allclose(bracketed, quick, atol=1e-12)  # both solve a well conditioned system to rounding
    assert row_residual(problem, 2, state, bracketed, floor) <= TIGHT


@pytest.mark.parametrize("name", [*SMOOTH, *KINKED])
def test_no_other_row_has_a_larger_lagrangian(name: str) -> None:
    problem = g10(name, 0.5, 1e-3)
    state = random_state(problem, 1)
    best = closed_form.row(problem, 3, state, RHO)

    def lagrangian(row: Array) -> float:
        mechanism = state["mechanism"].copy()
        mechanism[:, 3] = row
        parts = (problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)
        value = augmented_of(mechanism, state["q"], state["lam"], state["posterior"], RHO, *parts)
        return float(value[0])

    top, rng = lagrangian(best), np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3, 1e-4):
        for _ in range(30):
            other = projected_rows(best + size * rng.normal(size=best.shape), problem.floor)
            assert lagrangian(other) <= top + 1e-15


def test_a_row_is_what_a_general_optimiser_finds() -> None:
    problem = g10("jensen-shannon", 0.5, 0.01, 4)
    state = random_state(problem, 1)
    row = closed_form.row(problem, 5, state, RHO)[0]
    view = single(state, 0)

    def loss(x: Array) -> float:
        mechanism = view["mechanism"].copy()
        mechanism[5] = x
        parts = (problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)
        return -float(augmented_of(mechanism, view["q"], view["lam"], view["posterior"], RHO, *parts))

    rows_sum = {"type": "eq", "fun": lambda x: x.sum() - 1.0}
    found = minimize(loss, np.full(4, 0.25), bounds=[(0.01, 1.0)] * 4, constraints=[rows_sum], tol=1e-14)
    np.testing.assert_allclose(row, found.x, atol=1e-5)  # SLSQP's minimiser is good to the root of its value
    assert loss(row) <= found.fun + 1e-15


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("name", SMOOTH)
def test_marginal_blocks_reach_residual_1e_13(name: str) -> None:
    problem = g10(name, 0.5, 0.0)
    for passes in (1, 20):
        state = random_state(problem, 5, seed=passes, passes=passes)
        q = closed_form.marginal(problem, state, RHO)
        with np.errstate(all="ignore"):
            slope = problem.divergence.gradients(np.maximum(state["mechanism"], 1e-300), q[:, None, :])[1]
        rise = -problem.beta * (problem.p_y @ slope) + state["lam"] - RHO * (q - problem.p_y @ state["mechanism"])
        assert np.abs(np.minimum(q, -rise)).max() <= TIGHT


@pytest.mark.parametrize("name", SMOOTH)
def test_marginal_blocks_are_solved_beside_cells_of_0(name: str) -> None:
    # There the slope in q jumps at 0: Newton's method stood still at q = 0, or short of the root.
    f, rng = divergence(name), np.random.default_rng(7)
    for beta in (0.05, 0.5, 5.0):
        mechanism = rng.dirichlet(np.full(4, 0.3), size=(20, 3))
        mechanism[mechanism < 0.05] = 0.0
        p_y, start = rng.dirichlet(np.ones(3)), rng.choice([0.0, 1e-3, 0.3], size=(20, 4))
        level = p_y @ mechanism + 0.1 * rng.normal(size=(20, 4))
        q = closed_form.solve_marginal(f, start, mechanism, level, p_y, beta, RHO)
        with np.errstate(all="ignore"):
            slope = f.gradients(np.maximum(mechanism, 1e-300), np.maximum(q, 1e-280)[:, None, :])[1]
        excess = beta * (p_y @ slope) - level + RHO * q
        scale = 1.0 + beta * (p_y @ np.abs(slope))
        assert (np.abs(excess) <= 1e-9 * scale)[q > 0.0].all()
        dear = np.isinf(f.limit_slope) & (mechanism == 0.0).any(axis=1)
        assert (excess >= 0.0)[(q == 0.0) & ~dear].all()


def test_a_negative_root_of_the_marginal_is_clipped() -> None:
    # docs/errata.md: "ignoring" p(u) > 0 fails for Le Cam, whose equation may have a negative root.
    problem = g10("le-cam", 1.0)
    state = random_state(problem, 1)
    state["lam"] = state["lam"] - 3.0
    q = closed_form.marginal(problem, state, RHO)
    assert (q == 0.0).all()


@pytest.mark.parametrize("name", KINKED)
def test_straight_pieces_and_the_general_search_agree(name: str) -> None:
    f, rng = divergence(name), np.random.default_rng(0)
    level, q = rng.normal(size=500), 10.0 ** rng.uniform(-4, 0, 500)
    pieces = linear_pieces.pieces_of(f)
    assert pieces is not None
    with np.errstate(all="ignore"):
        general = simplex_rows._kinked(f, level, q, np.full(500, 0.3), 0.5)
    np.testing.assert_allclose(simplex_rows.row_roots(f, level, q, 0.3, 0.5), general, rtol=1e-12, atol=1e-14)
    state = random_state(g10(f), 3)
    tension = state["lam"] + rng.normal(size=state["lam"].shape)
    args = (f, state["mechanism"], tension, g10(f).p_y, 0.5, 1.0)
    with np.errstate(all="ignore"):
        searched = closed_form._bracketed(*args)
    exact = closed_form.solve_marginal(f, state["q"], *args[1:])
    np.testing.assert_allclose(exact, searched, atol=1e-14)


def test_roots_of_a_kinked_f_with_curved_pieces_are_found() -> None:
    f = FDivergence(
        "bent",
        f=lambda t: (t - 1.0) ** 2 + np.abs(t - 1.0),
        fprime=lambda t: 2.0 * (t - 1.0) + np.where(t >= 1, 1.0, -1.0),
        fsecond=lambda t: np.full_like(t, 2.0),
        kinks=(1.0,),
    )
    levels = np.linspace(-3.0, 3.0, 41)
    x = simplex_rows.row_roots(f, levels, np.full(41, 0.2), 0.3, 0.5)
    for level, root in zip(levels, x, strict=True):

        def left(y: float, at: float = float(level)) -> float:
            return 0.5 * float(f.gradients(np.array([y]), np.array([0.2]))[0][0]) + 0.3 * y - at

        expected = 0.0 if left(1e-12) > 0 else brentq(left, 1e-12, 50.0, xtol=1e-15)
        assert root == pytest.approx(expected, abs=1e-11)  # brentq meets the kink only to its own tolerance


@pytest.mark.parametrize("name", [*PAPER, *KINKED])
def test_the_fused_pass_is_rows_then_marginal_then_multiplier(name: str) -> None:
    problem = g10(name, 0.5, 1e-3)
    state = random_state(problem, 3)
    fused, step = closed_form.one_pass(problem, state, RHO), dict(state)
    for index in range(10):
        mechanism = step["mechanism"].copy()
        mechanism[:, index] = closed_form.row(problem, index, step, RHO)
        step["mechanism"] = mechanism
    step["q"] = closed_form.marginal(problem, step, RHO)
    step["lam"] = closed_form.multiplier(problem, step, RHO)
    for key in ("mechanism", "q", "lam"):
        np.testing.assert_allclose(fused[key], step[key], atol=1e-13)  # a row's sum is formed in another order


def test_starts_do_not_see_each_other() -> None:
    problem = g10("jensen-shannon", 0.5, 1e-3)
    state = random_state(problem, 4)
    together = closed_form.one_pass(problem, state, RHO)
    for start in range(4):
        alone = closed_form.one_pass(problem, {key: value[start : start + 1] for key, value in state.items()}, RHO)
        for key, value in alone.items():
            np.testing.assert_allclose(together[key][start], value[0], atol=1e-13)


def test_the_pass_leaves_its_state_as_it_was() -> None:
    problem = g10("le-cam")
    state = random_state(problem, 2)
    before = {key: value.copy() for key, value in state.items()}
    closed_form.one_pass(problem, state, RHO)
    for key, value in before.items():
        np.testing.assert_array_equal(state[key], value)


def test_an_impossible_posterior_puts_the_cell_at_the_floor() -> None:
    problem = g10("mutual-information")
    state = random_state(problem, 1)
    state["posterior"][0, :, 2] = [1.0, 0.0, 0.0]
    row = closed_form.row(problem, 3, state, RHO)
    assert row[0, 2] <= 1e-300
    assert row.sum() == pytest.approx(1.0, abs=1e-14)


def test_a_symbol_without_q_gets_no_mass_where_that_would_be_infinitely_dear() -> None:
    row = solve_rows(
        divergence("mutual-information"),
        np.full((1, 3), 1 / 3),
        np.zeros((1, 3)),
        np.array([[0.5, 0.5, 0.0]]),
        1.0,
        0.1,
        0.0,
    )
    np.testing.assert_allclose(row, [[0.5, 0.5, 0.0]], atol=1e-15)


def test_the_posterior_is_bayes_rule_and_the_prior_where_nothing_is_sent() -> None:
    problem = g10("le-cam", size_u=3)
    mechanism = np.zeros((1, 10, 3))
    mechanism[0, :5, 0] = mechanism[0, 5:, 1] = 1.0
    found = closed_form.posterior(mechanism, problem.p_y, problem.p_s_given_y)[0]
    joint = problem.table.probabilities[:, :5].sum(axis=1)
    np.testing.assert_allclose(found[:, 0], joint / joint.sum(), atol=1e-15)
    np.testing.assert_allclose(found[:, 2], problem.p_s, atol=1e-15)


def test_cost_is_the_divergence_of_each_pair_with_its_zeros() -> None:
    given, posterior = np.array([[1.0, 0.5], [0.0, 0.5]]), np.array([[1.0, 0.25], [0.0, 0.75]])
    expected = [[kl_divergence(given[:, y], posterior[:, u]) for u in range(2)] for y in range(2)]
    np.testing.assert_allclose(closed_form.cost(posterior, given), expected, atol=1e-15)
    assert np.isinf(closed_form.cost(posterior, given)[1, 0])


def test_lagrangian_and_surrogate_meet_the_objective_at_the_mechanisms_own_q_and_posterior() -> None:
    problem = g10("hellinger", 0.4)
    state = random_state(problem, 3)
    mechanism = state["mechanism"]
    own = closed_form.posterior(mechanism, problem.p_y, problem.p_s_given_y)
    parts = (problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)
    value = problem.objective(mechanism)
    np.testing.assert_allclose(measures.surrogate(mechanism, own, *parts), value, atol=1e-14)
    assert (measures.surrogate(mechanism, state["posterior"], *parts) <= value + 1e-15).all()
    augmented = augmented_of(mechanism, problem.p_y @ mechanism, state["lam"], own, 3.0, *parts)
    np.testing.assert_allclose(augmented, value, atol=1e-14)
    assert problem.objective(mechanism[1]) == pytest.approx(value[1], abs=1e-15)


def test_projection_is_the_nearest_row() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20, 5))
    near = projected_rows(points, 0.05)
    assert near.min() >= 0.05
    assert np.abs(near.sum(axis=-1) - 1.0).max() <= 1e-14
    for _ in range(50):  # a projection makes an obtuse angle with every feasible point
        other = floored_rows(rng.uniform(size=(20, 5)), 0.05)
        assert np.vecdot(points - near, other - near).max() <= 1e-14


@pytest.mark.slow  # to make f of its text takes seconds
def test_a_row_is_in_proportion_to_marginals_so_small_that_f_overflows() -> None:
    q, kappa = np.array([[1e-200, 0.0, 3e-200]]), np.array([[0.0, 0.1, 0.2]])
    x = solve_rows(divergence("alpha:3"), np.full((1, 3), 1 / 3), kappa, q, 1.0, 1.0, 0.0)
    assert x == pytest.approx(np.array([[0.25, 0.0, 0.75]]), abs=1e-12)
