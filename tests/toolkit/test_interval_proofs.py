"""Verdicts that are proved: the optimum of linear and quadratic programs, in fractions."""

from __future__ import annotations

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.certify import Stored
from cvxpriv.certify.check import crosscheck
from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.exact import proved_infeasible, proved_interval
from cvxpriv.kkt.conic.program import ConeProgram


def _program(problem: cp.Problem) -> ConeProgram:
    return ConeProgram.from_problem(problem, "CLARABEL")


def test_the_interval_of_a_linear_program_holds_the_exact_optimum_and_is_two_doubles_wide() -> None:
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(0.1 * x[0] + 0.7 * x[1]), [0.3 * x[0] + 0.9 * x[1] >= 1.1, x >= 0])
    # The cheapest way is x0 alone or x1 alone: 1.1 / .3 * .1 against 1.1 / .9 * .7, of the doubles that stand there.
    exact = Fraction(0.1) * Fraction(1.1) / Fraction(0.3)
    program = _program(problem)
    found = proved_interval(program, np.array([1.1 / 0.3 + 1e-10, 1e-11]), np.array([1 / 3, 1e-12, 0.4 - 1e-12]))
    assert Fraction(found.low) <= exact <= Fraction(found.high)
    assert found.high - found.low <= 2 * np.spacing(float(exact))


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 8))])
def test_random_quadratic_programs_are_proved_and_points_elsewhere_are_not(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, centre = rng.normal(size=(5, 3)), rng.normal(size=3)
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - centre) + x[0]), [A @ x <= 1, cp.sum(x) == 0.25])
    value = problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    far = Stored({"x": x.value + 0.1 * np.array([1, -1, 0])}, asked=1e-9, solver="a solver", version="1", machine="any")
    rows = crosscheck(problem, ["CLARABEL", "ECOS"], answers={"far": far}, proof="interval").table.set_index("solver")
    assert set(rows.loc[["CLARABEL", "ECOS"], "known_by"]) == {"proved"}
    assert set(rows.loc[["CLARABEL", "ECOS"], "verdict"]) == {"agrees"}
    assert rows.loc["far", "verdict"] == "WRONG"
    assert "exact arithmetic proves the optimum to lie between" in rows.loc["CLARABEL", "reason"]
    assert rows.loc["CLARABEL", "objective"] == pytest.approx(value, abs=1e-7)


def test_a_maximum_is_proved_in_its_own_sense() -> None:
    x = cp.Variable(name="x")
    rows = crosscheck(cp.Problem(cp.Maximize(2 * x), [x <= 3]), ["CLARABEL"], proof="interval").table.set_index(
        "solver"
    )
    assert rows.loc["CLARABEL", "known_by"] == "proved"
    assert "between 6.0 and 6.0" in rows.loc["CLARABEL", "reason"]


def test_an_empty_problem_is_proved_empty_and_a_feasible_one_is_not() -> None:
    x = cp.Variable(2, name="x")
    empty = cp.Problem(cp.Minimize(x[0]), [cp.sum(x) == 1, x[0] >= 0.6, x[1] >= 0.7])
    rows = crosscheck(empty, ["CLARABEL", "HIGHS"], proof="interval").table.set_index("solver")
    assert set(rows["known_by"]) == {"proved"}
    feasible = _program(cp.Problem(cp.Minimize(x[0]), [cp.sum(x) == 1, x[0] >= 0.6, x[1] >= 0.3]))
    assert not proved_infeasible(feasible, np.array([-1.0, 1.0, 1.0]))


def test_what_is_missing_is_said() -> None:
    x = cp.Variable(2, name="x")
    cone = cp.Problem(cp.Minimize(cp.norm(x - 1)), [x[0] <= 0])
    rows = crosscheck(cone, ["ECOS"], proof="interval").table.set_index("solver")
    assert rows.loc["ECOS", "known_by"] == "certified"
    assert "not proved: only linear and quadratic programs" in rows.loc["ECOS", "reason"]
    with pytest.raises(ModelError, match="proof='exact' is not known"):
        crosscheck(cone, ["ECOS"], proof="exact")


def test_a_form_that_is_indefinite_by_the_last_digit_proves_nothing() -> None:
    x = cp.Variable(2, name="x")
    wide = np.array([[1.0, 1.0 + 2.0**-52], [1.0 + 2.0**-52, 1.0]])
    program = _program(cp.Problem(cp.Minimize(cp.quad_form(x, cp.psd_wrap(wide))), [x >= -1, x <= 1]))
    assert "positive semidefinite" in proved_interval(program, np.zeros(2), np.zeros(4)).why
