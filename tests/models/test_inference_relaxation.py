"""The bound's programs in DCP form: what solvers make of them, beside the master's own answers."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from cvxpriv_models.inference_service.bound import bound
from cvxpriv_models.inference_service.cells_of_s import bisected, first_cell, kl_to_prior
from cvxpriv_models.inference_service.model import InferenceAsService
from cvxpriv_models.inference_service.problem import Problem
from cvxpriv_models.inference_service.run import columns_block

from cvxpriv.certify import crosscheck
from cvxpriv.divergences.term import DivergenceTerm
from cvxpriv.numerics.arrays import Array

TABLE = [[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]]


@pytest.mark.parametrize("divergence", ["jensen-shannon", "le-cam", "hellinger", "mutual-information"])
def test_every_solver_agrees_with_the_master_over_the_same_columns(divergence: str) -> None:
    problem = Problem.of(TABLE, 0.2, divergence)
    found = bound(problem, gap=1e-8)
    joint = problem.p_y[:, None] * found.mechanism
    columns = np.hstack([joint / joint.sum(axis=0), np.eye(3)])
    block = columns_block(problem, columns)
    assert -block.solve({})[1].objective == pytest.approx(found.lower, abs=1e-9)
    assert block.direct is not None
    exact = {"weights": block.direct({})["weights"][0]}
    assert -block.objective(exact, exact) == pytest.approx(found.lower, abs=1e-9)
    crosscheck(block, ["CLARABEL", "ECOS", "HIGHS"], at={}).raise_if_failed()


def over_cells(problem: Problem, cells: Array) -> float:
    """The relaxation over cells v_c of s = P(S|Y) x: one column a cell, KL(s || P_S) on its chords; by CLARABEL.

    maximise    sum_ca W_ca KL(v_ca || P_S) - beta sum_cy x_cy f(p_y m_c / x_cy)
    subject to  P(S|Y) x_c = sum_a W_ca v_ca,   m_c = sum_y x_cy,   sum_c x_c = P_Y,   W, x >= 0.
    """
    shape = (len(cells), problem.p_y.size)
    x, w = cp.Variable(shape, nonneg=True), cp.Variable((len(cells), len(problem.p_s)), nonneg=True)
    mass = cp.reshape(cp.sum(x, axis=1), (len(cells), 1), order="C") @ problem.p_y[None, :]
    term = DivergenceTerm(problem.divergence, shape)
    form, values = term.declare(x, mass), term.parameters({})
    for name, parameter in form.parameters.items():
        parameter.value = values[name]
    inside = [problem.p_s_given_y @ x[index] == cell.T @ w[index] for index, cell in enumerate(cells)]
    worth = cp.sum(cp.multiply(kl_to_prior(cells, problem.p_s), w)) - problem.beta * form.expression
    constraints = [cp.sum(x, axis=0) == problem.p_y, *inside, *form.constraints.values()]
    return float(cp.Problem(cp.Maximize(worth), constraints).solve(solver="CLARABEL"))


@pytest.mark.parametrize("divergence", ["jensen-shannon", "hellinger"])
def test_the_relaxation_over_cells_falls_to_the_optimum_and_never_below(divergence: str) -> None:
    problem = Problem.of(TABLE, 0.2, divergence)
    found = bound(problem, gap=1e-8)
    cells, values = first_cell(problem.p_s_given_y), []
    for _ in range(6):
        values.append(over_cells(problem, cells))
        cells = bisected(cells, problem.p_s)[0]
    assert np.diff(values).max() <= 1e-8  # a solver's
    assert min(values) >= found.lower - 1e-8
    assert values[-1] <= 1.01 * found.lower  # chords miss the square of the cells' size


def test_a_certified_run_is_cross_checked_with_its_columns() -> None:
    run = InferenceAsService(TABLE, beta=0.2).solve()
    check = run.certify(["CLARABEL"])
    assert "columns" in set(check.table["case"])
    check.raise_if_failed()
