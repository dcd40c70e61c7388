"""skglm's coordinate descent on the same MCP problems: the same stationary points, and ours never higher.

The problem has several stationary points. Up to a correlation of .6 in regression both go from 0 to the same one; with
more correlation, and with the logistic loss, they part ways.
"""

from __future__ import annotations

import numpy as np
import pytest
from cvxpriv_models.istdp import ISTDP
from cvxpriv_models.istdp.kkt import residuals

from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import MCP
from tests.models.istdp_cases import correlated

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"),
]


def theirs(model: ISTDP) -> Array:
    """Return what skglm finds from 0."""
    pytest.importorskip("skglm")
    from skglm.datafits import Logistic, Quadratic
    from skglm.penalties import MCPenalty
    from skglm.solvers import AndersonCD

    problem = model.problem
    assert isinstance(problem.penalty, MCP)
    solver = AndersonCD(tol=1e-9, fit_intercept=False, max_iter=1000, max_epochs=100_000)
    datafit = Logistic() if problem.loss.margin else Quadratic()
    found = solver.solve(problem.design, problem.y, datafit, MCPenalty(problem.penalty.lam, problem.penalty.alpha))
    return np.asarray(found[0])


def posed(kind: str, rho: float, seed: int, share: float = 0.3) -> ISTDP:
    x, y, _ = correlated(200, 400, rho, seed, kind)
    model = ISTDP(x, y, loss=kind, penalty=MCP(1.0))
    return model.with_penalty(MCP(share * model.lambda_max, 3.0))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rho", [0.3, 0.6])
@pytest.mark.parametrize("share", [0.5, 0.3])
def test_regression_ends_at_the_stationary_point_of_skglm(rho: float, seed: int, share: float) -> None:
    model = posed("squared", rho, seed, share)
    run = model.solve(tol=1e-9)
    # Both residuals are 1e-9; the curvature on the support is above .1.
    np.testing.assert_allclose(run.theta, theirs(model), atol=1e-7)


@pytest.mark.parametrize("kind", ["squared", "logistic"])
@pytest.mark.parametrize("rho", [0.6, 0.9])
def test_a_point_of_skglm_is_stationary_here_and_not_left(kind: str, rho: float) -> None:
    model = posed(kind, rho, seed=0)
    theta, problem = theirs(model), model.problem
    largest = residuals(problem.penalty, theta, problem.gradient(problem.predictions(theta)), problem.features).largest
    assert largest < 1e-8  # asked for 1e-9, measured with skglm's own running sums
    again = model.solve(init=theta, tol=1e-9)
    np.testing.assert_allclose(again.theta, theta, atol=1e-5)  # the logistic Hessian has eigenvalues near 1e-3


@pytest.mark.parametrize("kind", ["squared", "logistic"])
@pytest.mark.parametrize("rho", [0.6, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_where_the_two_part_ways_ours_is_not_higher(kind: str, rho: float, seed: int) -> None:
    model = posed(kind, rho, seed)
    assert model.solve(tol=1e-9).objective <= model.problem.objective(theirs(model)) + 1e-10
