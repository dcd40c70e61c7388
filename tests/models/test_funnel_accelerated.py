"""The pass of the funnel where it is made faster: over columns at the floor"""

from __future__ import annotations

import numpy as np
import pytest
from cvxpriv_models.privacy_funnel import closed_form, interior
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


def test_the_sum_of_the_columns_inverses_is_that_of_dense_ones_where_cells_are_at_the_floor() -> None:
    rng = np.random.default_rng(0)
    u = np.exp(np.where(rng.random((3, 4)) < 0.3, FLOOR, rng.normal(size=(3, 4)) - 3.0))
    at = interior.point(u[None], S)
    lam, damping, newton = np.array([0.4]), np.array([0.1]), np.array([0.0])
    found = interior._ColumnInverse(at, lam, damping, newton, S).schur()[0]
    reduced = interior.reduced_costs(at, lam)[0]
    expected = np.zeros((3, 3))
    for j in range(4):
        rank = np.diag(1.0 / (S @ u[:, j])) - 1.0 / u[:, j].sum()
        expected += np.linalg.inv(np.diag((np.maximum(reduced[:, j], 0.0) + 0.1) / u[:, j]) + S.T @ rank @ S)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
