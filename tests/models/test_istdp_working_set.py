"""Working sets: many columns end where passes over all of them would, in fewer of them, and within the options."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from cvxpriv_models.istdp import support_newton
from cvxpriv_models.istdp.algorithm import WORKING_SET
from cvxpriv_models.istdp.kkt import residuals
from scipy import sparse
from scipy.special import expit

from cvxpriv.models import ISTDP
from cvxpriv.numerics.arrays import Array

SHAPE = (300, 2500)


def rows(dense: bool) -> tuple[Any, Array]:
    """Return rows with few entries, and labels by ten columns."""
    random = np.random.default_rng(3)
    x: Any = sparse.random_array(SHAPE, density=0.02, rng=random, format="csr")
    x.data[:] = random.normal(size=x.nnz)
    y = np.where(x[:, :10].sum(axis=1) + 0.3 * random.logistic(size=SHAPE[0]) > 0.0, 1.0, -1.0)
    return (x.toarray() if dense else x), y


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_convex_problem_of_many_columns_ends_where_passes_over_all_of_them_end(dense: bool, intercept: bool) -> None:
    x, y = rows(dense)
    model = ISTDP(x, y, penalty="l1:0.004", intercept=intercept)
    run, plain = model.solve(tol=1e-9), model.solve(tol=1e-9, accelerate="none", max_iter=5000)
    assert (run.converged, plain.converged) == (True, True)
    blocks = run.history["block"]
    assert (blocks == WORKING_SET).any()
    assert not (plain.history["block"] == WORKING_SET).any()
    assert run.iterations == int(blocks.isin(["pass", WORKING_SET]).sum())
    # Both are stationary to 1e-9: strongly convex on the support, with a modulus of about 1e-3.
    np.testing.assert_allclose(run.theta, plain.theta, atol=1e-5)
    assert run.objective == pytest.approx(plain.objective, abs=1e-12)


def test_the_end_is_stationary_for_all_columns_by_a_gradient_of_its_own() -> None:
    x, y = rows(False)
    model = ISTDP(x, y, penalty="mcp:0.004:20")
    run = model.solve()
    z = x @ run.theta
    gradient = -(x.T @ (y * expit(-y * z))) / y.size
    assert residuals(run.penalty, run.theta, gradient, SHAPE[1]).largest <= 1.1e-7
    assert run.support.size > 50


def test_few_passes_are_not_exceeded() -> None:
    x, y = rows(False)
    model = ISTDP(x, y, penalty="l1:0.004")
    assert [model.solve(max_iter=limit, tol=1e-12).iterations for limit in (1, 2, 7)] == [1, 2, 7]


def test_a_callback_ends_a_working_set() -> None:
    x, y = rows(False)
    seen: list[str] = []

    def watch(loop: str, iteration: int, measured: Any) -> bool:
        seen.append(loop)
        return len(seen) >= 3

    run = ISTDP(x, y, penalty="mcp:0.004:20").solve(callback=watch)
    assert run.interrupted
    assert (seen.count(WORKING_SET), seen.count("pass")) == (2, 1)


def test_conjugate_gradients_and_the_factor_find_the_same_direction() -> None:
    x, _ = rows(False)
    columns = sparse.csr_array(x[:, :80])
    random = np.random.default_rng(0)
    weight, slope = random.uniform(0.1, 0.25, SHAPE[0]), random.normal(size=80)
    with mock.patch.object(support_newton, "PRODUCTS", 1000):
        for bend in (np.zeros(80), np.full(80, 0.3)):
            found, *_ = support_newton._by_products(columns, weight, bend, 1e-9 * slope)
            exact, *_ = support_newton._by_factor(columns.toarray(), weight, bend, 1e-9 * slope)
            # A slope of 1e-9 asks for a part of about 1e-4 of it, in the norm of the inverse diagonal.
            np.testing.assert_allclose(found, exact, atol=1e-3 * np.abs(exact).max())


def test_a_hessian_that_bends_down_leaves_the_upward_direction_alone() -> None:
    x, _ = rows(False)
    columns = sparse.csr_array(x[:, :80])
    slope = np.random.default_rng(0).normal(size=80)
    directions = list(support_newton._by_products(columns, np.full(SHAPE[0], 1e-3), np.full(80, -1.0), slope))
    assert len(directions) == 1
    assert float(directions[0] @ slope) < 0.0
