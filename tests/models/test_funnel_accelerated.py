"""The pass of the funnel where it is made faster: over columns at the floor, and by SQUAREM's extrapolation."""

from __future__ import annotations

import numpy as np
import pytest
from cvxpriv_models.privacy_funnel import accelerated, closed_form, interior
from cvxpriv_models.privacy_funnel.multiplier import FLOOR

from cvxpriv.numerics.arrays import Array

JOINT = np.array([[0.30, 0.03, 0.13], [0.01, 0.27, 0.02], [0.03, 0.03, 0.18]])
P = JOINT.sum(axis=0)
S = JOINT / P


def log_joint(logits: Array) -> Array:
    """log P(x, y) of rows given by logits, (1, M, N)."""
    rows = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.maximum(np.log(P[:, None] * rows / rows.sum(axis=1, keepdims=True)), FLOOR)[None]


@pytest.mark.parametrize("above", [-8.0, -1.0, 2.0, 10.0, 20.0, 39.0, 60.0])
@pytest.mark.parametrize("spread", [(0.0, 0.7, 5.0), (0.0, 6.0, 9.0), (0.0, 14.0, 18.0)])
def test_a_pass_over_a_column_near_the_floor_equals_the_blocks_in_turn(above: float, spread: tuple[float, ...]) -> None:
    rng = np.random.default_rng(0)
    log_u = log_joint(2.0 * rng.normal(size=(3, 3)))
    light = FLOOR + above + np.array(spread)  # the floor is felt by some of its cells
    log_u = np.concatenate([log_u, np.maximum(light, FLOOR)[None, :, None]], axis=2)
    state = closed_form.complete(log_u, S, np.array([0.3]))
    target = closed_form.utility(log_u)[0] - 0.1 + float(np.sum(P * np.log(P)))
    after = closed_form.iteration(state, P, S, target)
    u, lam = closed_form.mechanism(state["phi"], state["log_r"], state["log_w"], P, target, state["lam"])
    r = closed_form.marginal(u)
    w = closed_form.posterior(u, r)
    exact = {"log_u": u, "log_r": r, "log_w": w, "phi": closed_form.expectation(u, S), "lam": lam}
    for name, value in exact.items():
        np.testing.assert_allclose(after[name], value, rtol=1e-10, atol=1e-9, err_msg=name)


def test_squarem_lands_on_the_limit_of_passes_that_shrink_every_error_alike() -> None:
    # x -> x* + a (x - x*): S3 is exact at its first leap, since r = (a-1)(x-x*), v = (a-1) r and |r|/|v| = 1/(1-a).
    limit, shrink = log_joint(np.array([[1.0, 0.0, 0.2], [0.9, 0.1, 0.1], [1.1, 0.0, 0.0]])), 0.9
    start = log_joint(np.array([[4.0, 0.0, 0.2], [0.0, 4.0, 0.1], [0.1, 0.0, 4.0]]))

    def body(state: dict[str, Array]) -> dict[str, Array]:
        return closed_form.complete(limit + shrink * (state["log_u"] - limit), S, np.zeros(1))

    target = float(np.sum(P * np.log(P)))  # a rate of 0, which holds everywhere
    leap = accelerated.squarem(P, S, target)(body, closed_form.complete(start, S, np.zeros(1)), 1)
    np.testing.assert_allclose(leap["log_u"], limit, atol=1e-9)
    twice = body(body(closed_form.complete(start, S, np.zeros(1))))
    assert np.abs(twice["log_u"] - limit).max() > 1.0  # two passes alone are far from it


def test_a_cell_without_mass_does_not_change_the_leap_of_the_others() -> None:
    # One cell falls for ever, by 5 a pass: its second difference is 0, and counted in full it would make the ratio
    # of differences that of itself. The other cells shrink every error alike, as above.
    limit, shrink = log_joint(np.array([[1.0, 0.0, 0.2], [0.9, 0.1, 0.1], [1.1, 0.0, 0.0]])), 0.9
    start = log_joint(np.array([[4.0, 0.0, 0.2], [0.0, 4.0, 0.1], [0.1, 0.0, 4.0]]))
    start[0, 1, 2] = -300.0

    def body(state: dict[str, Array]) -> dict[str, Array]:
        moved = limit + shrink * (state["log_u"] - limit)
        moved[0, 1, 2] = state["log_u"][0, 1, 2] - 5.0
        return closed_form.complete(moved, S, np.zeros(1))

    target = float(np.sum(P * np.log(P)))
    leap = accelerated.squarem(P, S, target)(body, closed_form.complete(start, S, np.zeros(1)), 1)
    expected = np.exp(limit[0, 1]) * [1.0, 1.0, 0.0]
    np.testing.assert_allclose(np.exp(leap["log_u"][0, 1]), P[1] * expected / expected.sum(), atol=1e-9)
    np.testing.assert_allclose(leap["log_u"][0, [0, 2]], limit[0, [0, 2]], atol=1e-9)


@pytest.mark.parametrize("outwards", [1.0, -1.0])
def test_squarem_never_goes_less_far_than_two_passes(outwards: float) -> None:
    # x -> x* - (x - x*)/2 overshoots: |r|/|v| = 2/3 < 1, and a leap of length 1 is the second pass itself.
    high = log_joint(np.array([[3.0, 0.0, 0.2], [0.0, 3.0, 0.1], [0.1, 0.0, 3.0]]))
    low = log_joint(np.array([[1.0, 0.0, 0.2], [0.9, 0.1, 0.1], [1.1, 0.0, 0.0]]))
    limit, start = (low, high) if outwards > 0.0 else (high, low)

    def body(state: dict[str, Array]) -> dict[str, Array]:
        return closed_form.complete(limit - 0.5 * (state["log_u"] - limit), S, np.zeros(1))

    at = closed_form.complete(start, S, np.zeros(1))
    twice = body(body(at))["log_u"]
    leap = accelerated.squarem(P, S, float(np.sum(P * np.log(P))))(body, at, 1)["log_u"]
    rows = twice - np.log(np.exp(twice).sum(axis=2, keepdims=True)) + np.log(P)[:, None]
    kept = [np.abs(leap - one).max() for one in (twice, rows)]  # kept as it is, or with rows that sum to P
    assert min(kept) < 1e-9


def test_a_number_added_to_a_row_of_a_leap_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    safe = closed_form.complete(log_joint(6.0 * np.eye(3)), S, np.zeros(1))
    leap = log_joint(rng.normal(size=(3, 3)))
    # A rate above the leap's own: its rows are tilted, by columns' masses that unequal rows would change.
    target = closed_form.utility(leap)[0] + 0.05 + float(np.sum(P * np.log(P)))
    kept = accelerated._keep_better(safe, leap, P, S, target)["log_u"]
    assert np.abs(kept - safe["log_u"]).max() > 0.1
    for shift in ([0.0, 2.0, -3.0], [1000.0, 0.0, -1000.0], [-2000.0, -2000.0, 0.0]):
        moved = leap + np.array(shift)[:, None]
        np.testing.assert_allclose(accelerated._keep_better(safe, moved, P, S, target)["log_u"], kept, atol=1e-9)


def test_the_sum_of_the_columns_inverses_is_that_of_dense_ones_where_cells_are_at_the_floor() -> None:
    rng = np.random.default_rng(0)
    u = np.exp(np.where(rng.random((3, 4)) < 0.3, FLOOR, rng.normal(size=(3, 4)) - 3.0))
    at = interior.point(u[None], S)
    lam, damping, newton = np.array([0.4]), np.array([0.1]), np.array([0.0])
    found = interior._ColumnInverse(at, lam, damping, newton, S).schur()[0]
    reduced = (at.rise - lam * at.log_w - interior.row_prices(at, lam)[..., None])[0]
    expected = np.zeros((3, 3))
    for j in range(4):
        rank = np.diag(1.0 / (S @ u[:, j])) - 1.0 / u[:, j].sum()
        expected += np.linalg.inv(np.diag((np.maximum(reduced[:, j], 0.0) + 0.1) / u[:, j]) + S.T @ rank @ S)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
