"""The certified bound of inference as a service, by routes that share no code with it."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cvxpriv_models.inference_service import bound_search, crossover, summed_costs, whole_newton
from cvxpriv_models.inference_service.bound import bound
from cvxpriv_models.inference_service.cells_of_s import (
    bisected,
    cell_bounds,
    centre_bounds,
    first_cell,
    kl_to_prior,
    verify,
)
from cvxpriv_models.inference_service.local_dp_pricing import _Cone, local_dp_pricing
from cvxpriv_models.inference_service.pricing import Pricing, solve_simplex
from cvxpriv_models.inference_service.problem import Problem
from cvxpriv_models.inference_service.smoothed_master import Pace
from hypothesis import given, settings, strategies as st

from cvxpriv import constraints, datasets
from cvxpriv.bounds.any_conjugate import conjugate_of
from cvxpriv.bounds.conjugates import closed_form
from cvxpriv.bounds.merged_symbols import information_lost, merge, merged_table
from cvxpriv.constraints.text import parse
from cvxpriv.divergences import FDivergence, divergence
from cvxpriv.errors import ModelError
from cvxpriv.models import InferenceAsService
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.sizes import processor_time

from .inference_cases import KINKED, PAPER, SMOOTH, g10, random_mechanisms

#: Values that another program certified on G10 to a relative 1e-6 or better, nats.
CERTIFIED = {
    ("jensen-shannon", 0.3): 0.25765276841,
    ("jensen-shannon", 0.6): 0.11780109901,
    ("jensen-shannon", 1.0): 0.022068417717,
    ("le-cam", 0.3): 0.29408522093,
    ("hellinger", 0.3): 0.22994918357,
    ("mutual-information", 0.3): 0.14392012563,
}


def own_jensen_shannon() -> FDivergence:
    return FDivergence("my own", f=lambda t: t * np.log(2.0 * t / (t + 1.0)) + np.log(2.0 / (t + 1.0)))


def pricing_of(problem: Problem) -> Pricing:
    conjugate = conjugate_of(problem.divergence, 1.0 / problem.p_y.min())
    return Pricing.of(problem.p_s_given_y, problem.p_y, problem.beta, conjugate)


def random_table(seed: int, symbols: int, cells: int, spread: float = 1.0) -> Array:
    return np.random.default_rng(seed).dirichlet(np.full(symbols * cells, spread)).reshape(symbols, cells)


# --- the conjugates ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*SMOOTH, "alpha:3"])
def test_the_conjugate_is_the_largest_value_on_a_fine_grid(name: str) -> None:
    f = divergence(name)
    conjugate = closed_form(f)
    assert conjugate is not None
    r = np.geomspace(1e-7, 1e4, 200_001)
    tilt = float(f.derivative(np.ones(1))[0])
    price = r * f.f(1.0 / r) + tilt * (r - 1.0)
    t = conjugate.slope(np.array([0.05, 0.4, 1.0, 1.9, 30.0]))
    largest = (t[:, None] * r - price).max(axis=1)
    # A grid of relative spacing 1.3e-4 misses the maximum by r^2 H'' (1.3e-4)^2 / 8.
    assert np.allclose(conjugate.value(t), largest, rtol=3e-6, atol=3e-8)
    assert (conjugate.value(t) >= largest - 1e-10 * (1.0 + np.abs(largest))).all()


@pytest.mark.parametrize("name", [*PAPER, "chi-square", "neyman"])
def test_the_table_of_a_users_f_bounds_the_closed_form_from_above_and_tightly(name: str) -> None:
    known = divergence(name)
    own = FDivergence("own", f=known.f, at_zero=known.at_zero, slope_at_infinity=known.slope_at_infinity)
    exact, table = closed_form(known), conjugate_of(own, 1e3)
    assert exact is not None
    r = np.geomspace(1e-4, 900.0, 2001)
    t = exact.slope(r)
    # Both may carry a multiple of r - 1: the user's f'(1) is a difference quotient.
    tilt = table.price(np.array([2.0]))[0] - exact.price(np.array([2.0]))[0]
    above = table.value(t + tilt) - tilt - exact.value(t)
    assert (above >= -1e-9 * (1.0 + r)).all()
    assert (above <= 1e-6 * (1.0 + r) + 1e-14 * np.abs(t)).all()  # t reaches -1e8


@pytest.mark.parametrize("name", KINKED)
def test_the_table_of_straight_pieces_is_right_at_kinks_and_beside_them(name: str) -> None:
    f = divergence(name)
    conjugate = conjugate_of(f, 50.0)
    r = np.unique(np.concatenate([np.linspace(1e-9, 50.0, 5001), 1.0 / np.array(f.kinks), [50.0]]))
    t = np.linspace(-1.0, 2.5, 71)
    largest = (t[:, None] * r - conjugate.price(r)).max(axis=1)
    assert np.allclose(conjugate.value(t), largest, rtol=1e-7, atol=1e-7)


# --- the price --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMOOTH)
def test_the_inner_problem_ends_on_the_simplex_at_the_value_of_its_bound(name: str) -> None:
    pricing = pricing_of(g10(name, 0.4))
    rng = np.random.default_rng(0)
    mu, alpha = rng.normal(size=(40, 3)), 0.1 * rng.normal(size=10)
    inner = pricing.inner(mu, alpha)
    c = mu @ pricing.channel - alpha
    value = (c * inner.x).sum(axis=1) - 0.4 * (pricing.conjugate.price(inner.x / pricing.p_y) @ pricing.p_y)
    assert np.allclose(inner.x.sum(axis=1), 1.0, atol=1e-12)
    assert np.allclose(value, inner.value, atol=1e-11)


def test_any_n_bounds_the_inner_problem() -> None:
    pricing = pricing_of(g10("jensen-shannon", 0.4))
    rng = np.random.default_rng(1)
    mu, alpha = rng.normal(size=(20, 3)), 0.1 * rng.normal(size=10)
    exact = pricing.inner(mu, alpha).value
    for steps in range(3):
        assert (pricing.inner(mu, alpha, steps).value >= exact - 1e-13).all()


def test_slopes_of_the_surface_are_those_of_differences() -> None:
    pricing = pricing_of(g10("hellinger", 0.4))
    rng = np.random.default_rng(2)
    mu, alpha, step = rng.normal(size=(1, 3)), 0.1 * rng.normal(size=10), 1e-6
    surface = pricing.surface(mu, alpha)
    slope = surface.inner.x @ pricing.channel.T - surface.share
    for k in range(3):
        moved = mu + step * np.eye(3)[k]
        back = mu - step * np.eye(3)[k]
        quotient = (pricing.surface(moved, alpha).value - pricing.surface(back, alpha).value) / (2.0 * step)
        assert quotient == pytest.approx(slope[:, k], abs=1e-9)  # rounding 1e-16 / 1e-6, and the third derivative
    for y in range(10):
        plus, minus = alpha + step * np.eye(10)[y], alpha - step * np.eye(10)[y]
        quotient = (pricing.surface(mu, plus).value - pricing.surface(mu, minus).value) / (2.0 * step)
        assert quotient == pytest.approx(-surface.inner.x[:, y], abs=1e-9)


def test_no_column_of_a_cell_has_a_price_above_the_cells_bound() -> None:
    problem = g10("jensen-shannon", 0.3)
    pricing = pricing_of(problem)
    rng = np.random.default_rng(3)
    alpha = 0.2 * rng.normal(size=10)
    cells = first_cell(problem.p_s_given_y)
    for _ in range(6):
        cells = bisected(cells, problem.p_s)[0]
    bounds = np.minimum(cell_bounds(pricing, alpha, cells), centre_bounds(pricing, alpha, cells)[2])
    x = rng.dirichlet(np.full(10, 0.3), size=4000)
    price = pricing.gain(x) - x @ alpha
    inside = np.linalg.solve(cells.transpose(0, 2, 1)[:, None], (x @ problem.p_s_given_y.T)[None, :, :, None])[..., 0]
    belongs = (inside >= -1e-12).all(axis=2)
    assert belongs.any(axis=0).all()  # the cells cover every s = A x
    for cell in range(len(cells)):
        assert (price[belongs[cell]] <= bounds[cell]).all()


def test_the_bound_of_the_first_cell_is_that_of_its_chord() -> None:
    problem = Problem.of([[0.4, 0.1], [0.1, 0.4]], 0.5, "mutual-information")
    pricing = pricing_of(problem)
    cell = first_cell(problem.p_s_given_y)
    ends = kl_to_prior(cell, problem.p_s)[0]
    x = np.stack([np.linspace(0.0, 1.0, 20001), 1.0 - np.linspace(0.0, 1.0, 20001)], axis=1)
    s = x @ problem.p_s_given_y.T
    weight = np.linalg.solve(cell[0].T, s.T).T
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = np.where(x > 0.0, x * np.log(x / 0.5), 0.0).sum(axis=1)
    assert cell_bounds(pricing, np.zeros(2), cell)[0] == pytest.approx((weight @ ends - 0.5 * cost).max(), abs=1e-8)


# --- the bound --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "beta"), CERTIFIED)
def test_g10_has_the_certified_values(name: str, beta: float) -> None:
    found = bound(g10(name, beta))
    assert found.certified
    assert found.gap <= 1e-6 * found.lower
    assert found.lower == pytest.approx(CERTIFIED[name, beta], rel=1e-8)
    assert found.lower == pytest.approx(g10(name, beta).objective(found.mechanism), abs=1e-14)
    assert np.allclose(found.mechanism.sum(axis=1), 1.0)


def test_a_much_smaller_gap_costs_little() -> None:
    found = bound(g10("jensen-shannon", 0.3), gap=1e-10)
    assert found.certified
    assert found.gap <= 1e-10 * found.lower


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    symbols=st.integers(2, 4),
    cells=st.integers(2, 6),
    name=st.sampled_from([*SMOOTH, *KINKED]),
    beta=st.floats(0.02, 3.0),
    spread=st.sampled_from([0.2, 1.0]),
)
def test_nothing_is_worth_more_than_the_bound(
    seed: int, symbols: int, cells: int, name: str, beta: float, spread: float
) -> None:
    table = random_table(seed, symbols, cells, spread) + 1e-9
    problem = Problem.of(table / table.sum(), beta, name, size_u=cells + 1)
    found = bound(problem, gap=1e-4, time_limit=5.0)
    mechanisms = random_mechanisms(problem, 200, seed)
    assert problem.objective(mechanisms).max() <= found.upper
    assert 0.0 <= found.lower <= found.upper <= problem.table.information + 1e-12
    assert problem.objective(found.mechanism) == pytest.approx(found.lower, abs=1e-9)


@pytest.mark.parametrize("name", ["jensen-shannon", "le-cam", "mutual-information"])
def test_three_symbols_of_y_agree_with_the_concave_envelope_on_a_grid(name: str) -> None:
    """The optimum is the concave envelope of g at P_Y, which a linear program over a grid of columns nearly reaches."""
    from scipy.optimize import linprog

    problem = Problem.of(random_table(7, 2, 3), 0.15, name)
    steps = 150
    x = np.array([[i, j, steps - i - j] for i in range(steps + 1) for j in range(steps + 1 - i)]) / steps
    s = x @ problem.p_s_given_y.T
    gain = np.where(s > 0.0, s * np.log(np.maximum(s, 1e-300) / problem.p_s), 0.0).sum(axis=1)
    gain -= 0.15 * problem.divergence.terms(x, problem.p_y).sum(axis=1)
    program = linprog(-gain, A_eq=x.T, b_eq=problem.p_y, method="highs")
    found = bound(problem)
    assert found.certified
    assert -program.fun <= found.upper
    assert -program.fun == pytest.approx(found.lower, rel=5e-3)  # a grid of 1/150 misses second-order terms


def test_a_users_f_without_a_derivative_has_the_bound_of_the_built_in_one() -> None:
    own, built_in = bound(g10(own_jensen_shannon(), 0.3)), bound(g10("jensen-shannon", 0.3))
    assert own.certified
    assert own.lower == pytest.approx(built_in.lower, abs=1e-9)


@pytest.mark.parametrize("name", KINKED)
def test_kinks_are_no_obstacle(name: str) -> None:
    problem = g10(name, 0.3)
    found = bound(problem)
    assert found.certified
    assert problem.objective(found.mechanism) == pytest.approx(found.lower, abs=1e-12)


def test_a_users_f_with_a_kink_and_curvature_has_a_bound_that_holds() -> None:
    own = FDivergence("bent", f=lambda t: np.abs(t - 1.0) + 0.1 * (t - 1.0) ** 2, kinks=(1.0,))
    problem = Problem.of(random_table(0, 3, 4), 0.1, own)
    with processor_time(True):
        found = bound(problem, time_limit=1.0)
    values = [problem.objective(one) for one in random_mechanisms(problem, 50, 0)]
    assert max(*values, 0.03) <= found.lower
    assert found.upper >= 0.0329551717  # worth of a mechanism that a longer search found


@pytest.mark.parametrize(
    ("epsilon", "beta", "value"),
    [pytest.param(1.0, 0.3, 0.0432018711727, marks=pytest.mark.slow)],  # 0.1 stands in test_inference_certified.py
)
def test_local_differential_privacy_on_g10(epsilon: float, beta: float, value: float) -> None:
    asked = (("ldp", constraints.local_differential_privacy(epsilon)),)
    found = bound(g10("jensen-shannon", beta), constraints=asked, gap=1e-4)
    assert found.certified
    assert found.lower == pytest.approx(value, rel=1e-8)
    assert (found.mechanism.max(axis=0) <= np.exp(epsilon) * found.mechanism.min(axis=0) * (1.0 + 1e-9)).all()
    assert found.upper < bound(g10("jensen-shannon", beta)).lower


def test_the_cone_of_local_differential_privacy_holds_every_column_that_it_prices() -> None:
    problem = g10("jensen-shannon", 0.2)
    conjugate = conjugate_of(problem.divergence, 1.0 / problem.p_y.min())
    pricing = local_dp_pricing(problem.p_s_given_y, problem.p_y, 0.2, conjugate, 1.0)
    rng = np.random.default_rng(5)
    mu, alpha = rng.normal(size=(30, 3)), 0.1 * rng.normal(size=10)
    inner = pricing.inner(mu, alpha)
    ratio = inner.x / problem.p_y
    assert (ratio.max(axis=1) <= np.e * ratio.min(axis=1) * (1.0 + 1e-9)).all()
    c = mu @ problem.p_s_given_y - alpha
    price = (c * inner.x).sum(axis=1) - 0.2 * (conjugate.price(ratio) @ problem.p_y)
    assert np.allclose(price, inner.value, atol=1e-9)
    for _ in range(200):
        m = rng.uniform(np.exp(-1.0), 1.0)
        r = rng.uniform(m, m * np.e, size=10)
        x = r * problem.p_y / (r @ problem.p_y)
        other = c @ x - 0.2 * (conjugate.price(x / problem.p_y) @ problem.p_y)
        assert (other <= inner.value + 1e-12).all()


def test_cells_beyond_every_m_stand_exactly_at_its_ends() -> None:
    """Rounding there once made them look free at m = 1, and cost fifty steps for one."""
    problem, width = g10("jensen-shannon", 0.1), float(np.exp(2.0))
    cone = _Cone(problem.p_y, 0.1, conjugate_of(problem.divergence, 10.0), width)
    ratios, _ = cone.free_ratios(np.linspace(-2.0, 2.0, 10)[None], np.zeros(1))
    assert ratios[0, :4].tolist() == [1.0 / width] * 4
    assert ratios[0, -4:].tolist() == [width] * 4


def test_an_enormous_beta_leaves_exactly_nothing() -> None:
    found = bound(random_table(0, 3, 4), 1e9)
    assert found.certified
    assert found.lower == 0.0
    assert found.mechanism.shape == (4, 1)
    assert found.upper <= 1e-9


@pytest.mark.parametrize("steps", [0, 3])
def test_a_newton_system_that_cannot_be_solved_ends_its_method_and_not_the_search(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with inputs of mass 1e-12, whose systems hold no numbers in the end."""
    step, done = crossover.newton_step, []

    def failing(*arguments: Any) -> Any:
        done.append(1)
        if len(done) > steps:
            raise np.linalg.LinAlgError("SVD did not converge")
        return step(*arguments)

    for module in (crossover, whole_newton):
        monkeypatch.setattr(module, "newton_step", failing)
    table = random_table(0, 3, 5)
    found, run = bound(table, 0.05), InferenceAsService(table, 0.05).solve()
    assert len(done) > steps
    assert 0.0 < found.lower <= found.upper
    assert run.objective <= found.upper


@pytest.mark.parametrize(
    ("rule", "beta"), [("ldp=1.0", 1e15), ("tv=0.2", 1e300), ("forbidden=0:1", 1e9), ("fixed=0:1:0.3", 1e15)]
)
def test_an_enormous_beta_under_constraints_leaves_exactly_nothing(rule: str, beta: float) -> None:
    """Solvers call it unbounded, or make 1e283 nats of rounding."""
    run = InferenceAsService(random_table(0, 3, 3), beta).constrain("rule", parse(rule)).solve()
    assert run.converged
    assert (run.objective, run.leakage) == (0.0, 0.0)
    assert not run.missed


def test_a_table_without_information_has_the_value_zero() -> None:
    found = bound(np.outer([0.3, 0.7], [0.2, 0.3, 0.5]), 0.5)
    assert found.lower == 0.0
    assert found.upper <= 1e-12


def test_zeros_of_the_table_and_of_le_cam() -> None:
    table = np.array([[0.3, 0.1, 0.0, 0.0], [0.0, 0.1, 0.2, 0.0], [0.0, 0.0, 0.1, 0.2]])
    for name in ("le-cam", "jensen-shannon", "hellinger"):
        found = bound(table, 0.2, name)
        assert found.certified
        assert found.lower > 0.1
    impossible = bound(np.vstack([table, np.zeros(4)]), 0.2, "le-cam")
    assert impossible.upper == pytest.approx(bound(table, 0.2, "le-cam").upper, abs=1e-7)


def test_four_symbols_of_s_are_certified() -> None:
    found = bound(datasets.heart_failure(), 0.1)
    assert found.certified
    assert found.lower == pytest.approx(0.12590535866, rel=1e-8)


def test_empty_cells_of_a_table_leave_its_bound_tight() -> None:
    """Counts as they are: P(S|Y) has zeros, and cells of s shrink to a point where two of its entries are 0."""
    frame = datasets.load_table("heart-failure")
    public = ["anaemia", "high_blood_pressure", "diabetes", "smoking"]
    for private, beta in ((["death"], 0.05), (["sex", "death"], 0.1)):
        table = frame.pivot_table(index=private, columns=public, values="count", aggfunc="sum").to_numpy(float)
        found = bound(table / table.sum(), beta)
        assert found.certified
        if len(private) == 1:
            assert found.lower == pytest.approx(0.00648285325, rel=1e-8)  # by another program


def test_cells_whose_vertices_no_float_tells_apart_have_a_bound() -> None:
    pricing = pricing_of(Problem.of(random_table(1, 3, 5), 0.2))
    cells = np.array([[[0.0, 0.5, 0.5], [0.25, 0.25, 0.5], [0.125, 0.375, 0.5]]])  # on one line
    found = cell_bounds(pricing, np.zeros(5), cells)
    assert found == pytest.approx(centre_bounds(pricing, np.zeros(5), cells)[2], abs=1e-9)


def test_a_pace_that_does_not_arrive_is_followed_by_a_surer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = bound(g10("hellinger", 1.0))
    monkeypatch.setattr(bound_search, "QUICK", Pace(points=3, tau=1e-4, factor=0.1))
    monkeypatch.setattr(bound_search, "FEW", 1)
    found = bound(g10("hellinger", 1.0))
    assert found.certified
    assert found.lower == pytest.approx(expected.lower, rel=1e-9)
    assert found.upper == pytest.approx(expected.upper, rel=1e-6)


def test_a_time_limit_returns_a_bound_that_holds() -> None:
    start = time.monotonic()
    found = bound(random_table(1, 4, 40), 0.05, time_limit=0.05)
    assert time.monotonic() - start < 20.0  # a machine under load
    assert found.lower <= bound(random_table(1, 4, 40), 0.05).upper <= found.upper + 1e-7 * found.upper
    assert "time" in found.reason


def test_the_pair_that_is_merged_first_loses_least_information() -> None:
    rng = np.random.default_rng(4)
    for scale in (1.0, 1e-3):  # rows of a table, or of a part of one
        for _ in range(50):
            table = scale * rng.dirichlet(np.full(30, 0.4)).reshape(6, 5)
            losses = {}
            for pair in itertools.combinations(range(6), 2):
                groups = np.array([pair[0] if row == pair[1] else row for row in range(6)])
                losses[pair] = information_lost(table / scale, np.unique(groups, return_inverse=True)[1])
            chosen = merge(table, 5)
            (pair,) = [one for one in losses if chosen[one[0]] == chosen[one[1]]]
            assert losses[pair] == pytest.approx(min(losses.values()), abs=1e-12)


@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 4), beta=st.floats(0.05, 1.0))
def test_merging_bounds_from_above_with_the_information_lost_and_from_below_without(
    seed: int, size: int, beta: float
) -> None:
    table = random_table(seed, 4, 4)
    groups = merge(table, size)
    few = bound(merged_table(table, groups), beta, gap=1e-4)
    many = bound(table, beta, gap=1e-4)
    assert few.lower <= many.upper
    assert many.lower <= few.upper + information_lost(table, groups) + 1e-12


def test_many_symbols_of_s_have_a_bound_and_a_reason() -> None:
    table = random_table(4, 9, 12)
    found = bound(table, 0.2, time_limit=2.0)
    assert 0.0 < found.lower <= found.upper
    assert found.upper <= Problem.of(table, 0.2).table.information * (1.0 + 1e-12)  # less where time allows it
    assert found.certified or "9 symbols" in found.reason or "time" in found.reason


def test_verification_names_the_columns_that_alpha_lacks() -> None:
    pricing = pricing_of(g10("jensen-shannon", 0.3))
    shown = verify(pricing, np.zeros(10), 1e-6, time.monotonic() + 10.0)
    assert not shown.complete
    assert len(shown.above)
    assert pricing.surface(pricing.mu_of(shown.above), np.zeros(10)).value.min() > 1e-6


def test_arguments_out_of_range_are_named() -> None:
    with pytest.raises(ModelError, match="beta is missing"):
        bound([[0.3, 0.2], [0.1, 0.4]])
    with pytest.raises(ModelError, match="gap"):
        bound([[0.3, 0.2], [0.1, 0.4]], 0.3, gap=0.0)


@pytest.mark.filterwarnings("error")
def test_an_input_that_hardly_ever_occurs_changes_the_optimum_by_no_more_than_its_mass() -> None:
    table = np.random.default_rng(10).dirichlet(np.ones(6)).reshape(2, 3) * [1.0, 1e-10, 1.0]
    rare, without = (bound(Problem.of(one / one.sum(), 0.05, "le-cam", None)) for one in (table, table[:, [0, 2]]))
    assert rare.gap <= 1e-6
    assert rare.upper == pytest.approx(without.upper, abs=1e-6)
    assert rare.certificate is not None
    assert rare.certificate.verify().bound <= rare.upper + 1e-6


@pytest.mark.parametrize("name", SMOOTH)
def test_an_input_of_hardly_any_mass_does_not_slow_the_inner_problem(name: str) -> None:
    p_y = np.array([1e-13, 0.3, 0.7 - 1e-13])
    c = np.random.default_rng(0).normal(size=(50, 3)) - [4.0, 0.0, 0.0]
    exact = closed_form(divergence(name))
    assert exact is not None
    few = solve_simplex(c, p_y, 0.3, conjugate_of(divergence(name), 1e13), limit=6)
    # the light input does not draw the column: the bracket, and so every step, is that of the whole conjugate
    np.testing.assert_allclose(few.value, solve_simplex(c, p_y, 0.3, exact, limit=6).value, rtol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", SMOOTH)
def test_bounds_close_beside_inputs_of_hardly_any_mass(name: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(2):
        table = rng.dirichlet(np.full(rng.integers(2, 5), 0.7), 6).T * rng.dirichlet(np.ones(6))
        table[:, rng.choice(6, rng.integers(1, 3), replace=False)] *= 1e-12
        table, beta = table / table.sum(), float(rng.choice([0.05, 0.3]))
        found, heavy = bound(table, beta, name), table[:, table.sum(axis=0) > 1e-9]
        assert found.certified, (table, beta)
        assert found.lower == pytest.approx(bound(heavy / heavy.sum(), beta, name).lower, abs=1e-9, rel=2e-6)
        assert found.certificate is not None
        if name in PAPER:
            assert found.certificate.verify().bound <= found.lower + 1.01e-6 * max(found.lower, 1e-3) + 1e-10


def test_light_inputs_that_cost_more_than_the_gap_leave_no_more_than_their_cost() -> None:
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.full(4, 0.7), 6).T * rng.dirichlet(np.ones(6)) * [1.0, 1.0, 1.0, 1.0, 1.0, 1e-7]
    for beta in (0.3, 0.6):
        assert bound(table / table.sum(), beta, "le-cam").gap <= 1e-6  # .1 where the search is of all inputs


def test_local_privacy_is_kept_at_inputs_of_hardly_any_mass() -> None:
    table = np.random.default_rng(4).dirichlet(np.ones(15)).reshape(3, 5) * [1.0, 1e-12, 1.0, 1.0, 1.0]
    model = InferenceAsService(table / table.sum(), 0.1)
    found = model.constrain("ldp", constraints.local_differential_privacy(1.0)).bound(gap=1e-5)
    assert found.certified
    assert (found.mechanism.max(axis=0) <= np.e * (1.0 + 1e-9) * found.mechanism.min(axis=0)).all()


def test_a_step_where_sums_cannot_be_told_apart_is_one_along_the_slope() -> None:
    lines, group = np.ones((2, 2)), np.ones((2, 2))
    step = summed_costs._step(
        SimpleNamespace(lines=lines, group=group), np.ones((1, 2)), np.ones((1, 2)), np.ones((1, 2))
    )  # type: ignore[arg-type]
    assert np.isfinite(step).all()
