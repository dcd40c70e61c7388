"""`cpv.residuals`: what stands in a problem after `problem.solve()`, whoever solved it."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import cvxpriv as cpv
from cvxpriv.errors import CvxprivError, ModelError

ROUNDING = 1e-12


def _problem(sense: type = cp.Minimize) -> tuple[cp.Problem, cp.Variable]:
    """The optimum is (1, 0): sum x = 1, multiplier 2 - 4 = -2 of the sum, 4 of x1 >= 0."""
    x = cp.Variable(2, name="x")
    sign = 1 if sense is cp.Minimize else -1
    objective = sense(sign * (cp.sum_squares(x - np.array([2.0, -1.0]))))
    return cp.Problem(objective, [cp.sum(x) == 1, x >= 0]), x


@pytest.mark.parametrize("sense", [cp.Minimize, cp.Maximize])
@pytest.mark.parametrize("solver", ["CLARABEL", "ECOS", "SCS", "OSQP", "HIGHS"])
def test_every_solver_leaves_a_point_and_multipliers_that_are_optimal(sense: type, solver: str) -> None:
    problem, _ = _problem(sense)
    problem.solve(solver=solver)
    found = cpv.residuals(problem)
    assert max(found.largest, found.stationarity, found.gap, *found.scaled.values()) < 1e-3  # SCS asks for 1e-5
    assert found.objective == pytest.approx(2.0 if sense is cp.Minimize else -2.0, abs=1e-3)


def test_each_figure_is_the_one_by_hand() -> None:
    problem, x = _problem()
    problem.solve(solver="CLARABEL")
    total, sign = problem.constraints
    x.value = [1.25, -0.125]
    total.dual_variables[0].save_value(2.0)
    sign.dual_variables[0].save_value(np.array([-0.5, 4.0]))
    found = cpv.residuals(problem, names={"total": total, "sign": sign})
    assert found.by_constraint["total"] == pytest.approx((0.125, 0.0, 0.25), abs=ROUNDING)  # |1.125 - 1|, and times 2
    assert found.by_constraint["sign"] == pytest.approx((0.125, 0.5, 0.625), abs=ROUNDING)  # .5 * 1.25
    # 2 (x - (2, -1)) + 2 - (-.5, 4) = (-1.5 + 2 + .5, 1.75 + 2 - 4)
    assert found.stationarity == pytest.approx(1.0, abs=ROUNDING)
    assert found.gap == pytest.approx(abs(0.125 * 2 + 0.5 * 1.25 + 4 * 0.125), abs=ROUNDING)
    assert found.table.loc["total", "violation"] == pytest.approx(0.125, abs=ROUNDING)
    assert found.scaled["primal"] == found.table["relative"].max()
    assert found.scaled["stationarity"] == pytest.approx(1.0 / found.steepness, abs=ROUNDING)


def test_a_large_problem_is_measured_in_its_own_units_and_relative_to_its_terms() -> None:
    x = cp.Variable(name="x")
    problem = cp.Problem(cp.Minimize(1e6 * x), [1e6 * x >= 1e6])
    problem.solve(solver="CLARABEL")
    x.value = 1 - 1e-6
    found = cpv.residuals(problem)
    assert found.primal == pytest.approx(1.0, rel=1e-6)
    assert found.scaled["primal"] == pytest.approx(1e-6 / 3, rel=0.4)  # of a row whose terms are 1e6 each


def test_without_values_or_multipliers_the_remedy_is_named() -> None:
    problem, x = _problem()
    with pytest.raises(ModelError, match="'x' has no value: assign one or solve first"):
        cpv.residuals(problem)
    empty = cp.Problem(cp.Minimize(x[0]), [x >= 1, x <= 0])
    empty.solve(solver="CLARABEL")
    with pytest.raises(ModelError, match="no value: .* ended as infeasible"):
        cpv.residuals(empty)
    x.value = [1.0, 0.0]
    with pytest.raises(ModelError, match="has no multiplier: solve first, or pass duals=None"):
        cpv.residuals(problem)
    assert cpv.residuals(problem, None).largest < ROUNDING
    with pytest.raises(ModelError, match="problem is a int"):
        cpv.residuals(3)  # type: ignore[arg-type]
    p = cp.Parameter(name="p")
    with pytest.raises(ModelError, match="set the value of p first"):
        cpv.residuals(cp.Problem(cp.Minimize(cp.abs(x[0] - p))))


def test_integers_are_fixed_and_their_distance_from_whole_is_a_violation() -> None:
    n, y = cp.Variable(integer=True, name="n"), cp.Variable(name="y")
    limit = y <= 0.5
    problem = cp.Problem(cp.Minimize((n - 1.2) ** 2 + (y - n) ** 2), [limit])
    problem.solve(solver="ECOS_BB")
    found = cpv.residuals(problem, names={"limit": limit})
    assert max(found.largest, found.stationarity) < 1e-5
    assert "limit" in found.by_constraint
    n.save_value(1.25)
    off = cpv.residuals(problem, names={"limit": limit})
    assert off.worst_constraint == "n is allowed"
    assert off.table.loc["n is allowed", "violation"] == pytest.approx(0.2, abs=1e-6)  # .25, relative to 1.25
    assert off.primal >= 0.2 - 1e-6
    assert n.value == 1.25


def test_complex_problems_are_measured_in_parts() -> None:
    a = cp.Variable(2, complex=True, name="a")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(a - np.array([1 + 1j, 2]))), [cp.imag(a[0]) <= 0.5])
    problem.solve(solver="CLARABEL")
    assert max(cpv.residuals(problem).largest, cpv.residuals(problem).stationarity) < 1e-5
    a.value = np.array([1 + 0.75j, 2])
    assert cpv.residuals(problem).primal == pytest.approx(0.25, abs=ROUNDING)


def test_an_indicator_is_a_constraint() -> None:
    x = cp.Variable(name="x")
    problem = cp.Problem(cp.Minimize(x + cp.transforms.indicator([x >= 1])))
    problem.solve(solver="CLARABEL")
    assert cpv.residuals(problem).largest < 1e-6
    x.value = 0.5
    assert cpv.residuals(problem).primal == pytest.approx(0.5, abs=ROUNDING)


def test_a_support_function_of_any_affine_argument_is_measured() -> None:
    x, t = cp.Variable(2, name="x"), cp.Variable(2)
    longest = cp.suppfunc(t, [cp.norm(t) <= 2])  # twice the Euclidean norm
    problem = cp.Problem(cp.Minimize(cp.sum(x)), [longest(x - 1) <= np.sqrt(8)])  # at 0
    problem.solve(solver="CLARABEL")
    assert cpv.residuals(problem).largest < 1e-6
    x.value = np.array([-3.0, -4.0]) + 1
    assert cpv.residuals(problem).primal == pytest.approx(10 - np.sqrt(8), abs=1e-6)


def test_boolean_functions_take_the_values_of_their_arguments_and_approximate_cones_say_what_lacks() -> None:
    a, b = (cp.Variable(boolean=True, name=name) for name in "ab")
    problem = cp.Problem(cp.Maximize(cp.logic.Xor(a, b) + cp.logic.And(a, b)), [cp.logic.Or(a, b) <= a])
    a.save_value(1 - 1e-9)
    b.save_value(1 - 1e-9)  # cvxpy's own parity of these is 1.99
    found = cpv.residuals(problem)
    assert (found.objective, found.primal) == (1.0, pytest.approx(0.0, abs=1e-8))
    x, z = cp.Variable(name="x"), cp.Variable(name="z")
    x.value, z.value = 1.0, 0.0
    cone = cp.constraints.RelEntrConeQuad(x, cp.Constant(1.0), z, 3, 3)
    with pytest.raises(cpv.ModelError, match="variables of its own"):
        cpv.residuals(cp.Problem(cp.Minimize(z), [cone]))


def test_a_sparse_variable_is_measured_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    X = cp.Variable((2, 2), name="X", sparsity=(np.array([0, 1]), np.array([1, 1])))
    X.save_value(np.array([[0.0, 1.0], [0.0, 2.0]]))
    assert (
        cpv.residuals(cp.Problem(cp.Minimize(cp.sum_squares(X - np.array([[3, 1], [3, 2]])))), None).natural < ROUNDING
    )
    assert [str(warning.message) for warning in recwarn] == []


@pytest.mark.parametrize(
    ("duals", "options", "message"),
    [
        ({"constraint[0]": "text"}, {}, r"duals\['constraint\[0\]'\]='text' does not hold numbers"),
        (
            {"constraint[0]": np.nan, "constraint[1]": [0, 0]},
            {},
            r"duals\['constraint\[0\]'\] holds a number that is not",
        ),
        (None, {"beside": -1.0}, "beside=-1.0 is not a finite number >= 0"),
        (None, {"kink_tolerance": np.nan}, "kink_tolerance=nan is not a finite number >= 0"),
    ],
)
def test_multipliers_and_tolerances_that_are_no_numbers_are_refused(
    duals: object, options: dict[str, float], message: str
) -> None:
    problem, x = _problem()
    x.value = [1.0, 0.0]
    with pytest.raises(CvxprivError, match=message):
        cpv.residuals(problem, duals, **options)
