"""Sparse penalties: the proximal step in every regime against a grid, and stationarity."""

from __future__ import annotations

import numpy as np
import pytest
from cvxpriv_models.istdp import MCP, SCAD, CappedL1, ElasticNet, Penalty, penalty_named
from cvxpriv_models.istdp.penalties import L1, L2, require_penalty
from hypothesis import given, strategies as st

from cvxpriv.errors import ModelError

EVERY = [
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


def names(penalty: Penalty) -> str:
    return penalty.name


@pytest.mark.parametrize("penalty", EVERY, ids=names)
@given(s=st.floats(-8, 8), step=st.sampled_from([0.05, 0.5, 1.0, 1.2, 2.7, 3.0, 3.5, 8.0]))
def test_no_point_of_a_grid_beats_the_proximal_step(penalty: Penalty, s: float, step: float) -> None:
    def height(t: np.ndarray) -> np.ndarray:
        return 0.5 * (t - s) ** 2 + step * penalty.terms(t)

    mine = penalty.prox(np.array([s]), step)
    coarse = np.linspace(-10, 10, 4001)
    fine = coarse[np.argmin(height(coarse))] + np.linspace(-5e-3, 5e-3, 4001)
    best = min(height(coarse).min(), height(fine).min(), height(np.zeros(1))[0])
    # The grid itself is at worst above the least; rounding of heights up to 100 is 1e-14.
    assert height(mine)[0] <= best + 1e-12


@pytest.mark.parametrize("penalty", EVERY, ids=names)
@pytest.mark.parametrize("step", [0.05, 1.0, 3.0, 8.0])
def test_a_proximal_step_is_stationary_for_its_problem(penalty: Penalty, step: float) -> None:
    s = 3.0 * np.random.default_rng(0).normal(size=200)
    t = penalty.prox(s, step)
    assert penalty.residual(t, (t - s) / step).max() < 1e-13


@pytest.mark.parametrize("penalty", EVERY, ids=names)
def test_the_residual_sees_a_point_that_is_not_stationary(penalty: Penalty) -> None:
    theta = np.array([0.0, 0.3, 5.0])
    assert (penalty.residual(theta, np.array([2.0, 2.0, 2.0])) > 0.5).all()


@pytest.mark.parametrize("penalty", [one for one in EVERY if np.isfinite(one.weak_convexity)], ids=names)
def test_the_weak_convexity_makes_the_penalty_convex_and_nothing_less_does(penalty: Penalty) -> None:
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
        (lambda: require_penalty(3), "lacks value, prox, residual, weak_convexity"),
    ],
)
def test_a_penalty_that_is_none_is_refused(make: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make()  # type: ignore[operator]


def test_the_text_of_the_command_line_names_each_family() -> None:
    assert penalty_named("mcp:0.05:3") == MCP(0.05, 3.0)
    assert penalty_named("l1:0.2") == L1(0.2)
    for penalty in EVERY:
        assert penalty_named(penalty.name) == penalty
