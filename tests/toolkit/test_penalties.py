"""Penalties: proximal step, stationarity, DCP form and text, each against an independent route."""

from __future__ import annotations

import json

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from cvxpriv.errors import ModelError
from cvxpriv.penalties import (
    L1,
    L2,
    MCP,
    SCAD,
    Box,
    CappedL1,
    ElasticNet,
    GroupLasso,
    Penalty,
    Separable,
    Within,
    convex_penalty,
    penalty_named,
    require_penalty,
)
from cvxpriv.penalties.contract import CONVEX_STEPS, distance
from cvxpriv.penalties.named import penalty_of, penalty_record

SEPARABLE = [
    MCP(1.0, 3.0),
    MCP(0.3, 1.5),
    SCAD(1.0, 3.7),
    SCAD(0.4, 2.2),
    CappedL1(1.0, 0.8),
    CappedL1(0.5, 2.0),
    L1(0.7),
    L2(0.4),
    ElasticNet(0.6, 0.3),
]
CONVEX = [
    *map(penalty_named, ("none", "l2", "l1", "elastic-net:1:0.3", "elastic-net:1:0", "nonneg", "box:-0.5:1")),
    GroupLasso([[0, 2], [1], [3, 4, 5]], 1.2),
    Within(L2(), Box()),
    Within(ElasticNet(1.0, 0.3), Box(-0.5, 1.0)),
]
EVERY = [*SEPARABLE, *CONVEX]


def names(penalty: Penalty) -> str:
    return penalty.name


@pytest.mark.parametrize("penalty", SEPARABLE, ids=names)
@given(s=st.floats(-8, 8), step=st.sampled_from([0.05, 0.5, 1.0, 1.2, 2.7, 3.0, 3.5, 8.0]))
def test_no_point_of_a_grid_beats_the_proximal_step(penalty: Separable, s: float, step: float) -> None:
    def height(t: np.ndarray) -> np.ndarray:
        return 0.5 * (t - s) ** 2 + step * penalty.terms(t)

    mine = penalty.prox(np.array([s]), step)
    coarse = np.linspace(-10, 10, 4001)
    fine = coarse[np.argmin(height(coarse))] + np.linspace(-5e-3, 5e-3, 4001)
    best = min(height(coarse).min(), height(fine).min(), height(np.zeros(1))[0])
    # The grid itself is at worst above the least; rounding of heights up to 100 is 1e-14.
    assert height(mine)[0] <= best + 1e-12


@pytest.mark.parametrize("penalty", EVERY, ids=names)
@pytest.mark.parametrize("step", [0.05, 0.7, 1.0, 3.0, 8.0])
def test_a_proximal_step_is_stationary_and_no_point_beside_it_is(penalty: Penalty, step: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        s = 3.0 * rng.normal(size=6)
        t = penalty.prox(s, step)
        # Centres of up to 10, over the step.
        assert distance(penalty, t, (t - s) / step) < 1e-13 / min(step, 1.0)
        beside = penalty.prox(s + 0.05 * rng.normal(size=6), step)
        if not np.allclose(beside, t, atol=1e-3):
            assert distance(penalty, beside, (beside - s) / step) > 1e-4


@pytest.mark.parametrize("penalty", SEPARABLE, ids=names)
def test_the_residual_sees_a_point_that_is_not_stationary(penalty: Penalty) -> None:
    theta = np.array([0.0, 0.3, 5.0])
    assert (np.abs(penalty.residual(theta, np.array([2.0, 2.0, 2.0]))) > 0.5).all()


@pytest.mark.parametrize("penalty", EVERY, ids=names)
def test_a_step_of_0_projects_onto_the_set_of_the_penalty(penalty: Penalty) -> None:
    s = np.random.default_rng(3).normal(size=6)
    projected = penalty.prox(s, 0.0)
    assert np.isfinite(penalty.value(projected))
    if np.isfinite(penalty.value(s)):
        np.testing.assert_array_equal(projected, s)
    # With no weight only the set remains: the distance to stationary is that of a projected gradient step.
    assert distance(penalty, projected, np.zeros(6), 0.0) == 0.0


@pytest.mark.parametrize("penalty", [one for one in EVERY if np.isfinite(one.weak_convexity)], ids=names)
def test_the_dcp_form_is_the_penalty_and_the_square_that_makes_it_convex(penalty: Penalty) -> None:
    t = cp.Variable(6)
    cost, inside = penalty.expression(t)
    assert cp.Problem(cp.Minimize(cost), inside).is_dcp()
    t.value = penalty.prox(2.0 * np.random.default_rng(2).normal(size=6), 0.0)
    shown = cost if isinstance(cost, float) else float(cost.value)
    mine = penalty.value(t.value) + 0.5 * penalty.weak_convexity * float(t.value @ t.value)
    assert shown == pytest.approx(mine, abs=1e-12)
    assert all(constraint.value() for constraint in inside)


@pytest.mark.parametrize("penalty", CONVEX, ids=names)
@pytest.mark.parametrize("step", [0.2, 1.0, 3.0])
def test_a_solver_finds_the_proximal_step(penalty: Penalty, step: float) -> None:
    s = np.random.default_rng(0).normal(size=6)
    t = cp.Variable(6)
    value, constraints = penalty.expression(t)
    problem = cp.Problem(cp.Minimize(value + cp.sum_squares(t - s) / (2.0 * step)), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    mine = penalty.prox(s, step)
    energy = penalty.value(mine) + ((mine - s) ** 2).sum() / (2.0 * step)
    # An interior-point value is good to its gap; a minimiser to its root.
    assert energy == pytest.approx(problem.value, abs=1e-9)
    np.testing.assert_allclose(mine, t.value, atol=1e-5)


@pytest.mark.parametrize("penalty", EVERY, ids=names)
def test_a_stated_ridge_is_the_value(penalty: Penalty) -> None:
    x = np.random.default_rng(3).normal(size=6)
    if penalty.ridge is not None:
        assert penalty.value(x) == pytest.approx(0.5 * penalty.ridge * x @ x)


def test_outside_its_set_a_penalty_is_infinite() -> None:
    assert penalty_named("nonneg").value(np.array([-1e-3, 1.0])) == np.inf


def test_a_step_that_overflows_is_that_of_an_endless_one() -> None:
    point = np.array([3.0, 0.0, -2.0])
    assert ElasticNet(0.0, 0.5).prox(point, np.inf).tolist() == point.tolist()
    for penalty in (L1(0.7), L2(0.4), ElasticNet(1.0, 0.5)):
        assert not penalty.prox(point, np.inf).any()


def test_a_group_is_dropped_whole() -> None:
    assert np.count_nonzero(GroupLasso([[0, 1], [2]]).prox(np.array([0.5, 0.6, 3.0]), 1.0)) == 1


BENT = [one for one in SEPARABLE if np.isfinite(one.weak_convexity)]


@pytest.mark.parametrize("penalty", BENT, ids=names)
def test_the_weak_convexity_makes_the_penalty_convex_and_nothing_less_does(penalty: Separable) -> None:
    t = np.linspace(-6, 6, 2401)

    def least_bend(c: float) -> float:
        return float(np.diff(penalty.terms(t) + 0.5 * c * t**2, 2).min())

    assert least_bend(penalty.weak_convexity) > -1e-12
    if penalty.weak_convexity > 0.0:
        assert least_bend(0.9 * penalty.weak_convexity) < -1e-9


def test_the_known_step_of_mcp_is_the_right_one_and_not_the_printed() -> None:
    # ERRATA ISTDP 2: lam = 1, alpha = 3, step .1, s = .5: .4138; printed .600.
    assert MCP(1.0, 3.0).prox(np.array([0.5]), 0.1)[0] == pytest.approx(0.4 / (1 - 0.1 / 3), abs=1e-15)


def test_a_step_beyond_alpha_thresholds_hard() -> None:
    penalty = MCP(1.0, 1.5)
    edge = np.sqrt(6.0 * 1.5)
    np.testing.assert_array_equal(penalty.prox(np.array([edge - 1e-9, edge + 1e-9]), 6.0), [0.0, edge + 1e-9])


def test_far_coefficients_are_not_shrunk_by_the_concave_penalties() -> None:
    far = np.array([-9.0, 9.0])
    for penalty in (MCP(1.0, 3.0), SCAD(1.0), CappedL1(1.0)):
        np.testing.assert_array_equal(penalty.prox(far, 0.5), far)
    assert np.abs(L1(1.0).prox(far, 0.5)).max() == 8.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MCP(1.0, 1.0), "MCP needs alpha > 1"),
        (lambda: MCP(-1.0), "lam=-1.0"),
        (lambda: MCP(float("nan")), "lam=nan"),
        (lambda: SCAD(1.0, 2.0), "SCAD needs a > 2"),
        (lambda: CappedL1(1.0, 0.0), "cap > 0"),
        (lambda: ElasticNet(1.0, 1.5), r"not in \[0, 1\]"),
        (lambda: penalty_named("mpc:1"), "did you mean 'mcp'"),
        (lambda: penalty_named("mcp"), "write mcp:<lam>:<alpha>"),
        (lambda: penalty_named("mcp:a"), "no number"),
        (lambda: penalty_named("elastic-net:1:2"), r"not in \[0, 1\]"),
        (lambda: penalty_named("box:1"), "write box:<low>:<high>"),
        (lambda: penalty_named("box:1:0"), "choose low < high"),
        (lambda: penalty_named("l3"), "is not known"),
        (lambda: GroupLasso([[0], []]), "at most one"),
        (lambda: GroupLasso([[0, 1], [1]]), "at most one"),
        (lambda: Within(L2(), L1()), "no ready set"),
        (lambda: Within(GroupLasso([[0, 1]]), Box()), "ties coordinates together"),
        (lambda: convex_penalty("mcp:1"), "is not convex"),
        (lambda: MCP(1.0).pieces(4.0) and CappedL1(1.0).expression(cp.Variable(2)), "no convex form"),
        (lambda: require_penalty(3), "lacks value, prox, residual, weak_convexity:"),
        (lambda: require_penalty(OnlyValue()), "lacks prox, residual, weak_convexity:"),
        (lambda: require_penalty(OnlyValue(), CONVEX_STEPS), "weak_convexity, expression, ridge, name:"),
    ],
)
def test_a_penalty_that_is_none_is_refused(make: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make()  # type: ignore[operator]


class OnlyValue:
    def value(self, x: np.ndarray) -> float:
        return 0.0


def test_the_text_of_the_command_line_names_each_family() -> None:
    assert penalty_named("mcp:0.05:3") == MCP(0.05, 3.0)
    assert penalty_named("l1:0.2") == L1(0.2)
    for penalty in [*SEPARABLE, Box(), Box(-0.5, 1.0), L1(), L2(0.0)]:
        assert penalty_named(penalty.name) == penalty


@pytest.mark.parametrize("penalty", [*EVERY, MCP(0.1 + 0.2, 1.0 + 1e-15)], ids=names)
def test_a_record_is_the_penalty_with_every_digit(penalty: Penalty) -> None:
    text = json.dumps(penalty_record(penalty), allow_nan=False)
    assert penalty_of(json.loads(text)) == penalty
