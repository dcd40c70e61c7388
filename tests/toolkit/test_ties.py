"""Answers at ties and kinks: right ones agree, by every solver and from elsewhere, and near ones do not.

At each answer some eigenvalues, entries, pieces or residuals coincide, so that a derivative at the point, or a hair
beside it, says nothing of optimality. Every case is small enough to be solved on paper; the working stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.certify.check import crosscheck
from cvxpriv.certify.pytest_plugin import assert_solvers_agree
from cvxpriv.kkt import proximal, residuals

Known = tuple[cp.Problem, Any]
SLACK = 1e-4  # a stationarity of a solver's point at its own tolerance, 1e-7 to 1e-10: the square root, with room
C, S = np.cos(0.7), np.sin(0.7)
TURN = np.array([[C, -S], [S, C]])


def square(*shape: int, **attributes: Any) -> cp.Variable:
    return cp.Variable(shape, name="x", **attributes)


def half_squares(x: cp.Variable, centre: Any) -> cp.Expression:
    return 0.5 * cp.sum_squares(x - np.array(centre))


def largest_eigenvalue_of_given_trace() -> Known:
    """The eigenvalues sum to 2, so the largest is at least 1: x = I."""
    x = square(2, 2, symmetric=True)
    return cp.Problem(cp.Minimize(cp.lambda_max(x)), [cp.trace(x) == 2]), np.eye(2)


def smallest_eigenvalue_of_given_trace() -> Known:
    """The same from the other side."""
    x = square(2, 2, symmetric=True)
    return cp.Problem(cp.Maximize(cp.lambda_min(x)), [cp.trace(x) == 2]), np.eye(2)


def eigenvalues_joined_by_two_matrices() -> Known:
    """diag(1, -1) + x0 diag(1, -1) + (x1 - 2) [[0, 1], [1, 0]] has the eigenvalues +-|(1 + x0, x1 - 2)|."""
    x = square(2)
    fixed, spread, across = np.diag([1.0, -1, -1]), np.diag([1.0, -1, 0]), np.diag([1.0, 0], k=1)
    matrix = fixed + x[0] * spread + (x[1] - 2) * (across + across.T)
    return cp.Problem(cp.Minimize(cp.lambda_max(matrix))), [-1, 2]


def two_largest_eigenvalues() -> Known:
    """Gradient 2 (x - centre) + W = 0 with 0 <= W <= I of trace 2: W = diag(1, .5, .5)."""
    x = square(3, 3, symmetric=True)
    loss = cp.sum_squares(x - np.diag([3.0, 1, 1]))
    return cp.Problem(cp.Minimize(cp.lambda_sum_largest(x, 2) + loss)), np.diag([2.5, 0.75, 0.75])


def largest_eigenvalue_as_a_constraint() -> Known:
    """Both eigenvalues of the projection of diag(3, 2) are cut to 1."""
    x = square(2, 2, symmetric=True)
    return cp.Problem(cp.Minimize(half_squares(x, np.diag([3.0, 2]))), [cp.lambda_max(x) <= 1]), np.eye(2)


def nuclear_norm_down_to_rank_one() -> Known:
    """Singular values 3 and .3, shrunk by 1."""
    x = square(2, 2)
    return cp.Problem(cp.Minimize(half_squares(x, TURN @ np.diag([3, 0.3])) + cp.normNuc(x))), TURN @ np.diag([2, 0])


def nuclear_norm_down_to_zero() -> Known:
    """Singular values .5 and .3, shrunk by 1."""
    x = square(2, 2)
    return cp.Problem(cp.Minimize(half_squares(x, TURN @ np.diag([0.5, 0.3])) + cp.normNuc(x))), np.zeros((2, 2))


def nuclear_norm_as_a_constraint() -> Known:
    """Singular values 3 and .5, shrunk by 1 to the sum 2."""
    x = square(2, 2)
    return cp.Problem(cp.Minimize(half_squares(x, TURN @ np.diag([3, 0.5]))), [cp.normNuc(x) <= 2]), TURN @ np.diag(
        [2, 0]
    )


def spectral_norm_with_equal_singular_values() -> Known:
    """3 and 2.5 lose 1 together: 2.25 both."""
    x = square(2, 2)
    return cp.Problem(cp.Minimize(half_squares(x, TURN @ np.diag([3, 2.5])) + cp.sigma_max(x))), 2.25 * TURN


def two_largest_of_equal_entries() -> Known:
    """The two largest of four that sum to 4 sum to 2 at least."""
    x = square(4)
    return cp.Problem(cp.Minimize(cp.sum_largest(x, 2)), [cp.sum(x) == 4]), np.ones(4)


def two_largest_as_a_constraint() -> Known:
    """All three sums of pairs are at most 2, and their total is twice the sum."""
    x = square(3)
    return cp.Problem(cp.Maximize(cp.sum(x)), [cp.sum_largest(x, 2) <= 2]), np.ones(3)


def weights_on_sorted_entries() -> Known:
    """Larger weights fall on larger entries: equal ones are cheapest."""
    x = square(3)
    return cp.Problem(cp.Minimize(cp.dotsort(x, np.array([1.0, 2, 3]))), [cp.sum(x) == 3]), np.ones(3)


def largest_entry() -> Known:
    """x - 2 + w = 0 with w on the simplex: a third each."""
    x = square(3)
    return cp.Problem(cp.Minimize(cp.max(x) + half_squares(x, [2, 2, 2]))), np.full(3, 5 / 3)


def equal_pieces() -> Known:
    """|x - (1, 0)|^2, |x + (1, 0)|^2 and x1 + 1 meet at 1; (-2, 0) and (2, 0) balance."""
    x = square(2)
    pieces = [cp.sum_squares(x - np.array([side, 0])) for side in (1, -1)]
    return cp.Problem(cp.Minimize(cp.maximum(*pieces, x[1] + 1))), np.zeros(2)


def chebyshev_line() -> Known:
    """The best line through (0, 0), (1, 1), (2, 0) is the constant 1/2, with errors that alternate."""
    x = square(2)
    heights = np.array([[1, 0], [1, 1], [1, 2]]) @ x - np.array([0, 1, 0])
    return cp.Problem(cp.Minimize(cp.norm_inf(heights))), [0.5, 0]


def norm_at_zero() -> Known:
    """The centre has norm .71 < 1."""
    x = square(3)
    return cp.Problem(cp.Minimize(half_squares(x, [0.3, 0.4, 0.5]) + cp.norm(x))), np.zeros(3)


def largest_size_at_zero() -> Known:
    """The centre has the one-norm .8 < 1."""
    x = square(3)
    return cp.Problem(cp.Minimize(half_squares(x, [0.3, 0.3, -0.2]) + cp.norm_inf(x))), np.zeros(3)


def group_lasso_with_a_zero_group() -> Known:
    """Rows of norm 5 and .5, shrunk by 1."""
    x = square(2, 2)
    loss = half_squares(x, [[3, 4], [0.3, 0.4]])
    return cp.Problem(cp.Minimize(loss + cp.sum(cp.norm(x, axis=1)))), [[2.4, 3.2], [0, 0]]


def lasso_with_a_zero() -> Known:
    """Soft thresholding by 1."""
    x = square(3)
    return cp.Problem(cp.Minimize(half_squares(x, [3, 0.5, -2]) + cp.norm1(x))), [2, 0, -1]


def regression_through_all_points_but_one() -> Known:
    """Signs of the four zero residuals balance that of the outlier, whose row (2, 1) is the sum of rows 1, 2 and 3."""
    x, rows = square(2), np.array([[1.0, 0], [0, 1], [1, 1], [1, -1], [2, 1]])
    return cp.Problem(cp.Minimize(cp.norm1(rows @ x - rows @ [1, 2] - 5 * np.eye(5)[4]))), [1, 2]


def geometric_median_at_a_data_point() -> Known:
    """Unit vectors to the other three points sum to a vector of norm .41 < 1."""
    x = square(2)
    points = np.array([[0.0, 0], [1, 0], [0, 1], [-1, -1]])
    return cp.Problem(cp.Minimize(sum(cp.norm(x - point) for point in points))), np.zeros(2)


def norm_that_vanishes() -> Known:
    """Both equations can be met."""
    x = square(2)
    return cp.Problem(cp.Minimize(cp.norm(np.array([[1.0, 2], [3, 4], [5, 6]]) @ (x - np.array([1, -1]))))), [1, -1]


def huber_at_its_bend() -> Known:
    """Slope 2 at x = 1 meets x - 3 = -2."""
    x = square(1)
    return cp.Problem(cp.Minimize(cp.sum(cp.huber(x, 1)) + half_squares(x, [3]))), [1]


def one_norm_as_a_constraint() -> Known:
    """Soft thresholding by 1 leaves the sum 2."""
    x = square(3)
    return cp.Problem(cp.Minimize(half_squares(x, [3, 0.5, -1])), [cp.norm1(x) <= 2]), [2, 0, 0]


CASES: list[Callable[[], Known]] = [
    largest_eigenvalue_of_given_trace,
    smallest_eigenvalue_of_given_trace,
    eigenvalues_joined_by_two_matrices,
    two_largest_eigenvalues,
    largest_eigenvalue_as_a_constraint,
    nuclear_norm_down_to_rank_one,
    nuclear_norm_down_to_zero,
    nuclear_norm_as_a_constraint,
    spectral_norm_with_equal_singular_values,
    two_largest_of_equal_entries,
    two_largest_as_a_constraint,
    weights_on_sorted_entries,
    largest_entry,
    equal_pieces,
    chebyshev_line,
    norm_at_zero,
    largest_size_at_zero,
    group_lasso_with_a_zero_group,
    lasso_with_a_zero,
    regression_through_all_points_but_one,
    geometric_median_at_a_data_point,
    norm_that_vanishes,
    huber_at_its_bend,
    one_norm_as_a_constraint,
]
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)


def beside(problem: cp.Problem, answer: Any, distance: float, seed: int) -> np.ndarray:
    """A point whose farthest entry is so far from the answer, symmetric and of the same total where that is asked."""
    move = np.random.default_rng(seed).standard_normal(np.shape(answer))
    if problem.variables()[0].attributes["symmetric"]:
        move = move + move.T
    for constraint in problem.constraints:
        if isinstance(constraint, cp.constraints.Equality):
            move = move - np.trace(move) / 2 * np.eye(2) if move.ndim == 2 else move - move.mean()
    return np.array(answer, dtype=float) + distance * np.array(move) / float(np.abs(move).max())


@pytest.mark.grid(every=5)
@each
def test_right_answers_agree_by_every_solver_and_from_elsewhere_and_wrong_ones_do_not(
    case: Callable[[], Known],
) -> None:
    problem, answer = case()
    claims = {"right": {"x": answer}} | {
        f"{distance:g} off": {"x": beside(problem, answer, distance, seed=1)} for distance in (1e-1, 1e-2, 1e-3, 1e-4)
    }
    check = crosscheck(problem, answers=claims)
    rows = check.table.set_index("solver")
    found = rows["verdict"].to_dict()
    assert found.pop("0.1 off") == "WRONG", check
    value, best = rows.loc[["0.01 off", "right"], "objective"]
    near = abs(value - best) <= 1e-4 * (1.0 + abs(best))  # at a bend a point so far off may have such a value
    assert found.pop("0.01 off") in (("WRONG", "loose") if near else ("WRONG",)), check
    # A curved objective is right to 1e-6 at 1e-3 from its minimiser: then the value is proven, and the point loose.
    assert {found.pop(f"{distance} off") for distance in ("0.001", "0.0001")} <= {"loose", "WRONG"}, check
    assert set(found.values()) == {"agrees"}, check
    assert rows.loc[list(found), "stationarity"].max() < SLACK
    assert rows.loc[list(found), "natural"].max() < SLACK


@each
def test_a_point_near_the_answer_is_as_far_from_stationary_as_it_is_near(case: Callable[[], Known]) -> None:
    problem, answer = case()
    for seed, distance in enumerate([1e-1, 1e-2, 1e-3, 1e-4, 1e-5]):
        problem.variables()[0].value = beside(problem, answer, distance, seed)
        found = proximal.proximal_step(problem)
        # The move goes to the answer where the objective is sharp, and half way or a third where it is curved.
        assert 0.2 * distance < found.move < 1.1 * distance + found.size * found.accuracy


@pytest.mark.parametrize("scale", [1e-2, 1e4])
@pytest.mark.parametrize(
    "case", [largest_eigenvalue_of_given_trace, nuclear_norm_down_to_rank_one, group_lasso_with_a_zero_group]
)
def test_the_scale_of_the_objective_changes_no_verdict(case: Callable[[], Known], scale: float) -> None:
    problem, answer = case()
    scaled = cp.Problem(cp.Minimize(scale * problem.objective.args[0]), problem.constraints)
    claims = {"right": {"x": answer}, "wrong": {"x": beside(problem, answer, 1e-1, seed=2)}}
    found = crosscheck(scaled, ["CLARABEL"], answers=claims).table.set_index("solver")["verdict"].to_dict()
    assert found == {"right": "agrees", "wrong": "WRONG", "CLARABEL": "agrees"}


def test_the_pytest_fixture_accepts_right_answers_at_a_tie() -> None:
    problem, answer = largest_eigenvalue_of_given_trace()
    assert_solvers_agree(problem, answers={"mine": {"x": answer}})


def test_a_gradient_outside_the_dual_ball_is_not_accepted_though_it_lies_in_its_box() -> None:
    # At zero the norm's gradients are the unit ball; (.9, .9, .9) has norm 1.56, and the answer is .36 of it.
    x = square(3)
    problem = cp.Problem(cp.Minimize(half_squares(x, [0.9, 0.9, 0.9]) + cp.norm(x)))
    x.value = np.zeros(3)
    enclosed = residuals(problem, None)
    assert (enclosed.stationarity, enclosed.exact) == (0.0, False)
    assert proximal.proximal_step(problem).move > 0.1
    table = crosscheck(problem, ["CLARABEL"], answers={"zero": {"x": np.zeros(3)}}).table.set_index("solver")
    assert table["verdict"].to_dict() == {"zero": "WRONG", "CLARABEL": "agrees"}
    assert "from stationary" in str(table.loc["zero", "reason"])


def test_the_proximal_step_is_known_where_the_objective_is() -> None:
    x = square(1)
    for value, slope in ((1e-7, 1.0), (-3.0, 0.5), (0.5, 2.0)):
        # Of slope |x| from v: v itself, or slope times the size 1 + |v|, whichever is less.
        x.value = np.array([value])
        found = proximal.proximal_step(cp.Problem(cp.Minimize(slope * cp.norm1(x))))
        assert found.move == pytest.approx(min(abs(value), slope * found.size), abs=1e-9)
    x.value = np.array([2.0])  # (2 k + 1 / 3) p = 2 / 3 for k x^2 from 2
    steep = cp.Problem(cp.Minimize(50 * cp.sum_squares(x)))
    assert proximal.proximal_step(steep).move == pytest.approx(2 - 2 / 301, abs=1e-9)


def test_a_proximal_step_leaves_values_and_multipliers_as_they_were() -> None:
    problem, answer = largest_eigenvalue_of_given_trace()
    problem.solve(solver="CLARABEL")
    x, row = problem.variables()[0], problem.constraints[0]
    x.value = beside(problem, answer, 1e-1, seed=4)
    before = x.value.copy(), float(row.dual_value)
    assert proximal.proximal_step(problem).measured
    assert (x.value == before[0]).all()
    assert float(row.dual_value) == before[1]


def test_a_point_that_is_not_finite_has_no_proximal_step() -> None:
    x = square(2)
    x.save_value(np.array([np.nan, 1.0]))
    found = proximal.proximal_step(cp.Problem(cp.Minimize(cp.norm1(x))))
    assert (found.measured, found.why) == (False, "the point is not finite")


def test_where_no_proximal_point_is_found_a_certified_bound_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proximal, "ACCURACY", -1.0)  # no answer is accurate enough
    problem, answer = largest_eigenvalue_of_given_trace()
    wrong = beside(problem, answer, 1e-1, seed=3)
    check = crosscheck(problem, ["CLARABEL", "SCS"], answers={"right": {"x": answer}, "wrong": {"x": wrong}})
    rows = check.table.set_index("solver")
    assert rows["verdict"].to_dict() == {"right": "agrees", "wrong": "WRONG", "CLARABEL": "agrees", "SCS": "agrees"}
    tied = rows.loc[["right", "CLARABEL", "SCS"], ["stationarity", "natural", "displacement"]]
    assert tied.isna().all(axis=None)  # rather than a misleading number
    assert "a certified bound is" in str(rows.loc["right", "reason"])
    assert "its value is" in str(rows.loc["wrong", "reason"])


def test_a_claim_whose_objective_has_no_derivative_is_still_held_to_the_constraints() -> None:
    y, s = cp.Variable(name="y"), cp.Variable(nonneg=True, name="s")
    problem = cp.Problem(cp.Minimize(cp.perspective(cp.square(y), s) + s), [y == 1])  # y^2 / s + s is least at s = 1
    claims: dict[str, dict[Any, float]] = {"right": {"y": 1, "s": 1}, "infeasible": {"y": 1 + 1e-3, "s": 1 - 1e-3}}
    found = crosscheck(problem, ["CLARABEL"], answers=claims).table.set_index("solver")
    assert found.loc["right", "verdict"] == "agrees"
    assert found.loc["infeasible", "verdict"] == "WRONG"
    assert "misses constraint" in str(found.loc["infeasible", "reason"])


def test_what_cvxpy_puts_in_the_place_of_an_atom_proves_nothing_and_measures_nothing() -> None:
    X, cost = cp.Variable((2, 2), name="X", symmetric=True), np.array([3.0, 0.0])
    entropy = cp.von_neumann_entr(X, quad_approx=(1, 1))  # one node: its optimum is 1.6e-4 off, 2e-2 in the point
    problem = cp.Problem(cp.Minimize(cp.trace(np.diag(cost) @ X) - entropy), [cp.trace(X) == 1])
    alone = crosscheck(problem, ["CLARABEL"]).table.iloc[0]
    assert (alone["verdict"], alone["known_by"]) == ("loose", "small residuals")
    assert alone["displacement"] > 1e-2
    truth = np.diag(np.exp(-cost) / np.exp(-cost).sum())
    beside = crosscheck(problem, ["CLARABEL"], answers={"truth": {"X": truth}}).verdicts
    assert {name: one.verdict for name, one in beside.items()} == {"truth": "agrees", "CLARABEL": "WRONG"}
    assert "an approximation of cvxpy's own" in beside["CLARABEL"].reason


@pytest.mark.parametrize(("trace", "least", "told"), [(1, 0.69, "WRONG"), (1, 0.7, "failed"), (-1, 0, "agrees")])
def test_a_claim_of_no_feasible_point_is_not_proven_by_a_quadrature(trace: float, least: float, told: str) -> None:
    X = cp.Variable((2, 2), name="X", symmetric=True)
    entropy = cp.von_neumann_entr(X, quad_approx=(1, 1))  # at most .6863 with one node, and log 2 = .6931 in truth
    problem = cp.Problem(cp.Minimize(X[0, 0]), [cp.trace(X) == trace, X >> 0, entropy >= least])
    assert crosscheck(problem, ["CLARABEL"]).verdicts["CLARABEL"].verdict == told


def test_a_steep_objective_leaves_the_proximal_step_its_digits() -> None:
    X = cp.Variable((2, 2), symmetric=True)
    X.value = np.eye(2)
    steep = cp.Problem(cp.Minimize(1e6 * cp.lambda_max(X)), [cp.trace(X) == 2])
    assert proximal.Nearby(steep).step(1e6).step < 1e-9
