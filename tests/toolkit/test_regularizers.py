"""Regularisers: DCP form, proximal step and stationarity distance, each against an independent route."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.errors import ModelError
from cvxpriv.penalties import Regularizer, regularizer_named
from cvxpriv.penalties.regularizers import box, group, nonnegative, restricted

EVERY = [
    *map(regularizer_named, ("none", "l2", "l1", "elastic-net:0.3", "elastic-net:0", "nonneg", "box:-0.5:1")),
    group([[0, 2], [1], [3, 4, 5]]),
    restricted(regularizer_named("l2"), nonnegative()),
    restricted(regularizer_named("elastic-net:0.3"), box(-0.5, 1.0)),
]


def names(regularizer: Regularizer) -> str:
    return regularizer.name


@pytest.mark.parametrize("regularizer", EVERY, ids=names)
@pytest.mark.parametrize("step", [0.2, 1.0, 3.0])
def test_the_proximal_step_solves_its_problem(regularizer: Regularizer, step: float) -> None:
    s = np.random.default_rng(0).normal(size=6)
    t = cp.Variable(6)
    value, constraints = regularizer.expression(t)
    problem = cp.Problem(cp.Minimize(value + cp.sum_squares(t - s) / (2.0 * step)), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    mine = regularizer.prox(s, step)
    energy = regularizer.value(mine) + ((mine - s) ** 2).sum() / (2.0 * step)
    # An interior-point value is good to its gap; a minimiser to its root.
    assert energy == pytest.approx(problem.value, abs=1e-9)
    np.testing.assert_allclose(mine, t.value, atol=1e-5)


@pytest.mark.parametrize("regularizer", EVERY, ids=names)
def test_the_distance_is_zero_at_a_proximal_step_and_positive_beside_it(regularizer: Regularizer) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        s = rng.normal(size=6)
        t = regularizer.prox(s, 0.7)
        assert regularizer.distance(t, (t - s) / 0.7) < 1e-14
        beside = regularizer.prox(s + 0.05 * rng.normal(size=6), 0.7)
        if not np.allclose(beside, t, atol=1e-3):
            assert regularizer.distance(beside, (beside - s) / 0.7) > 1e-4


@pytest.mark.parametrize("regularizer", EVERY, ids=names)
def test_the_dcp_form_has_the_value(regularizer: Regularizer) -> None:
    x = np.random.default_rng(2).uniform(0.0, 0.9, size=6)
    value, constraints = regularizer.expression(cp.Constant(x))
    shown = value if isinstance(value, float) else float(value.value)
    assert shown == pytest.approx(regularizer.value(x), abs=1e-12)
    assert all(constraint.value() for constraint in constraints)


@pytest.mark.parametrize("regularizer", EVERY, ids=names)
def test_a_stated_ridge_is_the_value(regularizer: Regularizer) -> None:
    x = np.random.default_rng(3).normal(size=6)
    if regularizer.ridge is not None:
        assert regularizer.value(x) == pytest.approx(0.5 * regularizer.ridge * x @ x)


def test_outside_its_set_a_regulariser_is_infinite() -> None:
    assert regularizer_named("nonneg").value(np.array([-1e-3, 1.0])) == np.inf


def test_a_group_is_dropped_whole() -> None:
    assert np.count_nonzero(group([[0, 1], [2]]).prox(np.array([0.5, 0.6, 3.0]), 1.0)) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("l3", "is not known"),
        ("elastic-net", r"needs 1 number\(s\): write, for example, elastic-net:0.5"),
        ("elastic-net:2", r"not in \[0, 1\]"),
        ("box:1", r"needs 2 number\(s\)"),
        ("box:1:0", "choose low < high"),
        (7, "lacks name, value, expression"),
    ],
)
def test_a_regulariser_that_is_none_is_refused(name: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        regularizer_named(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("groups", [[[0], []], [[0, 1], [1]]])
def test_groups_that_overlap_or_are_empty_are_refused(groups: list[list[int]]) -> None:
    with pytest.raises(ModelError, match="at most one group"):
        group(groups)
