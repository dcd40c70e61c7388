"""The solver table and the fallback chain."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.errors import ModelError, SolverFailure
from cvxpriv.solvers.chain import Attempt, Solved, solve, try_solver
from cvxpriv.solvers.registry import DEFAULT_CHAIN, SOLVERS, fallback_chain, installed, solver_spec


def entropy_problem() -> tuple[cp.Problem, cp.Variable]:
    x = cp.Variable(3, name="x")
    return cp.Problem(cp.Minimize(-cp.sum(cp.entr(x))), [cp.sum(x) == 1]), x


def by(problem: cp.Problem) -> Callable[[str, Mapping[str, object]], Attempt]:
    return lambda name, options: try_solver(problem, name, options)


def reader(x: cp.Variable, spoil: Callable[[str], float] = lambda name: 0.0) -> Callable[[str], Solved]:
    def read(name: str) -> Solved:
        return {"x": x.value}, {}, float(-np.sum(cp.entr(x).value)) + spoil(name)

    return read


def test_solvers_of_the_table_are_those_installed_in_its_order() -> None:
    present = cp.installed_solvers()
    assert installed() == tuple(name for name in SOLVERS if name in present)
    assert set(installed()) >= {"CLARABEL", "ECOS", "SCS", "OSQP", "HIGHS"}


@pytest.mark.parametrize("name", ["CLARABEL", "ECOS", "SCS"])
def test_each_conic_solver_answers_an_entropy_problem_with_its_own_tolerance_set(name: str) -> None:
    problem, x = entropy_problem()
    solution = solve(by(problem), reader(x), chain=[name])
    assert (solution.solver, solution.status) == (name, "optimal")
    assert solution.objective == pytest.approx(-np.log(3), abs=1e-6)


def test_highs_multipliers_of_a_quadratic_problem_are_as_good_as_asked() -> None:
    # Its own default adds 1e-7 to the quadratic: the multiplier of x0 + x1 == 1e3 is then off by 5e-5.
    x = cp.Variable(2, name="x")
    total = cp.sum(x) == 1e3
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x)), [total])
    problem.solve(solver="HIGHS", **SOLVERS["HIGHS"].options(1e-9))
    assert float(total.dual_value) == pytest.approx(-1e3, rel=1e-9)


def test_osqp_is_given_the_iterations_that_tangents_need_and_a_limit_in_seconds() -> None:
    options = SOLVERS["OSQP"].options(1e-6)
    assert (options["max_iter"], options["time_limit"]) == (100_000, 10.0)


def test_the_first_solver_that_fails_is_followed_by_the_next_and_the_status_says_so() -> None:
    problem, x = entropy_problem()
    solution = solve(by(problem), reader(x), chain=["OSQP", "ECOS"])  # OSQP takes no exponential cone
    assert solution.solver == "ECOS"
    assert solution.status == "optimal after OSQP: solver_error"


def test_a_users_options_go_to_the_first_solver_alone_and_the_others_keep_their_own() -> None:
    # An option of one solver is an error of the next, or means another thing there.
    given: dict[str, dict[str, object]] = {}

    def failing(name: str, options: Mapping[str, object]) -> Attempt:
        given[name] = dict(options)
        return Attempt(name, cp.SOLVER_ERROR, 0.0)

    with pytest.raises(SolverFailure):
        solve(failing, lambda name: ({}, {}, 0.0), chain=DEFAULT_CHAIN, tolerance=1e-8, options={"max_iter": 7})
    assert given["CLARABEL"]["max_iter"] == 7
    for name in ("ECOS", "SCS"):
        assert given[name] == solver_spec(name).options(1e-8)


def test_optimal_with_an_infinite_value_is_a_failure() -> None:
    problem, x = entropy_problem()
    read = reader(x, spoil=lambda name: np.inf if name == "CLARABEL" else 0.0)
    solution = solve(by(problem), read, chain=DEFAULT_CHAIN)
    assert solution.solver == "ECOS"
    assert solution.attempts[0].message == "objective inf at its own point"


def test_an_inaccurate_answer_is_used_when_nobody_has_a_better_one() -> None:
    problem, x = entropy_problem()
    solution = solve(by(problem), reader(x), chain=["SCS", "OSQP"], tolerance=1e-13, options={"max_iters": 5})
    assert solution.solver == "SCS"
    assert solution.status == "optimal_inaccurate after OSQP: solver_error"


def test_when_all_fail_the_message_lists_every_attempt() -> None:
    problem, x = entropy_problem()
    with pytest.raises(SolverFailure, match=r"OSQP: solver_error \(.*\); HIGHS: solver_error"):
        solve(by(problem), reader(x), chain=["OSQP", "HIGHS"])


def test_clarabel_does_not_keep_the_options_of_the_solve_before() -> None:
    problem, x = entropy_problem()
    solve(
        by(problem),
        reader(x),
        chain=["CLARABEL"],
        options={"max_iter": 1, "tol_gap_abs": 1.0, "tol_feas": 1.0, "tol_gap_rel": 1.0},
    )
    again = solve(by(problem), reader(x), chain=["CLARABEL"])
    assert again.status == "optimal"
    assert again.objective == pytest.approx(-np.log(3), abs=1e-9)


def test_the_chain_starts_with_the_solver_asked_for() -> None:
    assert fallback_chain("scs") == ("SCS", "CLARABEL", "ECOS")
    assert fallback_chain(["ECOS"]) == ("ECOS",)
    assert fallback_chain(None) == DEFAULT_CHAIN


def test_an_unknown_solver_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(ModelError, match="did you mean 'CLARABEL'"):
        solver_spec("CLARABELL")
    with pytest.raises(ModelError, match="names no solver"):
        fallback_chain([])


def test_each_solve_is_logged_with_options_and_status(caplog: pytest.LogCaptureFixture) -> None:
    problem, x = entropy_problem()
    with caplog.at_level("DEBUG", logger="cvxpriv"):
        solve(by(problem), reader(x), chain=["CLARABEL"], tolerance=1e-9)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "cvxpriv.solvers.chain"]
    assert line.startswith("CLARABEL {'tol_gap_abs': 1e-09")
    assert ": optimal in " in line


@pytest.mark.parametrize("solver", ["HIGHS", "OSQP"])
def test_solvers_that_may_go_round_for_ever_have_a_time_limit(solver: str) -> None:
    rows, target = np.random.default_rng(3).normal(size=(20, 40)), np.ones(20)
    z = cp.Variable(40, name="z")
    spec = solver_spec(solver)
    assert spec.full_options(None, {})["time_limit"] == 10.0
    problem = cp.Problem(cp.Minimize(cp.sum_squares(rows @ z - target)))
    found = try_solver(problem, solver, spec.full_options(None, {"time_limit": 1e-9}))
    assert found.status != cp.OPTIMAL
