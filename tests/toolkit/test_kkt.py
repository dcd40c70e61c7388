"""Optimality conditions of cvxpy problems: right answers pass, each fault shows in its own component."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq

from cvxpriv.errors import ModelError
from cvxpriv.kkt import proximal, residuals
from cvxpriv.kkt.derivatives import DerivativeError, Slopes
from cvxpriv.kkt.natural import _first_not_negative
from cvxpriv.kkt.point import NEAR, Point
from cvxpriv.kkt.written import Written
from cvxpriv.numerics.arrays import Array

ROUNDING = 1e-12  # closed-form answers leave a few units in the last place, times the size of the data
TIGHT = {"solver": "CLARABEL", "tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
SOLVED = 1e-6  # what CLARABEL leaves in points and duals at the settings above: about the root of the gap


def softmin(cost: np.ndarray) -> tuple[cp.Problem, cp.Variable, np.ndarray]:
    """Minimise cost'x - H(x) on the simplex; the answer is the softmin of the cost."""
    x = cp.Variable(cost.size, name="x")
    problem = cp.Problem(cp.Minimize(cost @ x - cp.sum(cp.entr(x))), [cp.sum(x) == 1, x >= 0])
    weights = np.exp(-(cost - cost.min()))
    return problem, x, weights / weights.sum()


def linear_program() -> tuple[cp.Problem, cp.Variable, dict[str, cp.Constraint]]:
    """Minimise x0 + 2 x1 on x0 + x1 = 3, 0 <= x, x0 <= 2: x = (2, 1), multipliers -2, (0, 0), 1."""
    x = cp.Variable(2, name="x")
    names = {"total": x[0] + x[1] == 3, "sign": x >= 0, "cap": x[0] <= 2}
    problem = cp.Problem(cp.Minimize(x[0] + 2 * x[1]), list(names.values()))
    x.value = np.array([2.0, 1.0])
    return problem, x, names


def test_known_multipliers_of_a_linear_program_are_found() -> None:
    problem, _, names = linear_program()
    found = residuals(problem, None, names=names)
    assert found.largest <= ROUNDING
    assert found.stationarity <= ROUNDING
    np.testing.assert_allclose(found.multipliers["total"], -2, atol=ROUNDING)
    np.testing.assert_allclose(found.multipliers["sign"], 0, atol=ROUNDING)
    np.testing.assert_allclose(found.multipliers["cap"], 1, atol=ROUNDING)


def test_each_fault_shows_in_its_own_component() -> None:
    problem, x, names = linear_program()
    right = {"total": -2.0, "sign": [0.0, 0.0], "cap": 1.0}
    assert max(residuals(problem, right, names).largest, residuals(problem, right, names).stationarity) == 0.0
    wrong_sign = residuals(problem, {"total": -1.0, "sign": [0.0, 1.0], "cap": -0.5}, names)
    assert (wrong_sign.dual, wrong_sign.worst_constraint) == (0.5, "sign")  # sign's product of 1 is larger still
    assert wrong_sign.by_constraint["cap"] == (0.0, 0.5, 0.0)
    slack = residuals(problem, {"total": -3.0, "sign": [1.0, 1.0], "cap": 1.0}, names)
    assert slack.complementarity == 2.0
    assert residuals(problem, {**right, "total": -1.75}, names).stationarity == 0.25
    x.value = np.array([2.5, 1.0])
    moved = residuals(problem, right, names)
    assert (moved.primal, moved.stationarity) == (0.5, 0.0)
    x.value = np.array([1.0, 2.0])  # feasible, not optimal
    assert residuals(problem, None, names=names).natural > 0.1
    assert residuals(problem, None, names=names).stationarity > 0.1


def test_solver_duals_follow_one_sign_convention_for_both_senses() -> None:
    for objective in (cp.Minimize, cp.Maximize):
        x = cp.Variable(3, name="x")
        inside = cp.sum(cp.rel_entr(x, np.array([1.0, 2.0, 3.0])))
        f = inside if objective is cp.Minimize else -inside
        problem = cp.Problem(objective(f), [cp.sum(x) == 1, x[0] >= 0.5, 2 * x[1] <= 0.1, cp.square(x[2]) <= 0.1])
        problem.solve(**TIGHT)
        found = residuals(problem, "solver")
        assert found.largest < SOLVED
        assert found.stationarity < 1e-5  # log x magnifies an error of x by 1/x = 20
        assert residuals(problem, None).stationarity < 1e-5


def test_false_optimum_of_scs_is_caught_by_stationarity_alone() -> None:
    problem, x, truth = softmin(np.array([0.0, 10.5]))
    # What SCS 3.3.1 once said, `optimal` to 1e-12 (`cvxpriv.certify.corpus.liars`).
    x.value = np.array([1.000000000000001, -8.708938709089547e-19])
    total, sign = problem.constraints
    total.save_dual_value(-1.0000000000000067)
    sign.save_dual_value(np.array([0.0, 0.026333984375845776]))
    found = residuals(problem, "solver")
    assert max(found.primal, found.dual, found.complementarity) < 1e-12
    assert found.stationarity > 20
    # In the variable's own units the point is wrong by what is missing in x[1].
    assert found.natural == pytest.approx(truth[1], rel=1e-3)
    best = residuals(problem, None)
    assert best.stationarity > 20
    assert (best.natural, best.worst_variable) == (pytest.approx(truth[1], rel=1e-3), "x[1]")


@pytest.mark.parametrize("tiny", [0.0, 1e-300, 1e-17, 1e-9])
def test_a_cell_that_should_hold_mass_but_does_not_has_the_missing_mass_as_natural_residual(tiny: float) -> None:
    problem, x, truth = softmin(np.array([0.0, 10.0]))
    x.value = np.array([1.0 - tiny, tiny])
    assert residuals(problem, None).natural == pytest.approx(truth[1], rel=2e-2)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_tiny_cell_off_by_a_factor_has_a_tiny_natural_residual(factor: float) -> None:
    problem, x, truth = softmin(np.array([0.0, 0.0, -np.log(1e-9)]))
    x.value = truth * np.array([1, 1, factor])
    found = residuals(problem, None)
    assert found.natural < 2e-9
    x.value = truth
    assert max(residuals(problem, None).largest, residuals(problem, None).stationarity) < ROUNDING


def test_a_tiny_cell_off_by_a_factor_still_shows_in_the_raw_stationarity() -> None:
    problem, x, truth = softmin(np.array([0.0, 0.0, -np.log(1e-9)]))
    x.value = truth * np.array([1, 1, 0.5])
    # The gradient's error log 2 in one of three cells, less its mean: two thirds of it.
    assert residuals(problem, None).stationarity == pytest.approx(2 / 3 * np.log(2), rel=1e-6)


def test_kinks_of_the_objective_are_free_within_their_interval() -> None:
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(x - np.array([3.0, 0.5, -2.0])) + cp.norm1(x)))
    x.value = np.array([2.0, 0.0, -1.0])  # soft thresholding
    assert max(residuals(problem, None).stationarity, residuals(problem, None).natural) < ROUNDING
    x.value = np.array([2.0, 1e-7, -1.0])
    near = residuals(problem, None)
    assert near.stationarity > 0.4  # the slope at 1e-7 is 1, not in [-1, 1]
    assert near.natural == pytest.approx(1e-7, rel=1e-3)  # ... though the answer is 1e-7 away
    x.value = np.array([2.0, 0.0, -0.5])
    assert residuals(problem, None).stationarity == pytest.approx(0.5, abs=ROUNDING)


@pytest.mark.parametrize("first", [0, pytest.param(4, marks=pytest.mark.slow)])
def test_a_right_answer_beside_a_kink_has_a_small_natural_residual(first: int) -> None:
    # A solver's zeros are 1e-12, not 0: the kink beside the point, not the slope at it, decides the multipliers.
    for seed in range(first, first + 4):  # each objective once
        generator = np.random.default_rng(seed)
        x = cp.Variable(int(generator.integers(3, 9)))
        rows = generator.normal(size=(int(generator.integers(1, 3)), x.size))
        middle = generator.normal(size=x.size) * generator.choice([0.3, 0.8])
        level = rows @ np.where(generator.random(x.size) < 0.5, 0.0, generator.normal(size=x.size))
        objective = [
            cp.norm1(x) + 0.5 * (middle @ x),
            cp.norm1(x) + 0.5 * cp.sum_squares(x - middle),
            cp.sum(cp.pos(x)) + cp.sum(cp.abs(x - 1.0)) + 0.2 * cp.norm1(x),
            cp.norm_inf(x) + cp.norm1(x - middle),
        ][seed % 4]
        problem = cp.Problem(cp.Minimize(objective), [rows @ x == level])
        problem.solve(**TIGHT)
        assert residuals(problem, duals=None).natural < 1e-6, seed  # .03 to .8 where only the slope at the point counts
        step = np.linalg.svd(rows)[2][-1]  # keeps the equalities
        x.value = x.value + 1e-3 * step
        assert residuals(problem, duals=None).natural > 1e-5, seed


def test_kinks_of_a_constraint_stay_within_its_multiplier() -> None:
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(x - np.array([3.0, 0.5, -1.0]))), [cp.norm1(x) <= 2])
    x.value = np.array([2.0, 0.0, 0.0])  # multiplier 1
    found = residuals(problem, None)
    assert max(found.stationarity, found.natural) < 1e-9
    np.testing.assert_allclose(found.multipliers["constraint[0]"], 1, atol=1e-9)
    x.value = np.array([1.5, 0.0, -0.5])  # needs 1.5 and .5 at once
    assert residuals(problem, None).stationarity > 0.2


def test_second_order_exponential_power_and_matrix_constraints_are_judged() -> None:
    x, t = cp.Variable(3, name="x"), cp.Variable(name="t")
    X = cp.Variable((3, 3), name="X", symmetric=True)
    C = np.array([[1.0, 2, 0], [2, 0, 1], [0, 1, -1]])
    problems = {
        "soc": cp.Problem(cp.Minimize(cp.sum(x)), [cp.SOC(cp.Constant(2.0), x - 1)]),
        "soc columns": cp.Problem(
            cp.Minimize(cp.sum(x)), [cp.SOC(cp.Constant([1.0, 2.0]), cp.vstack([x[:2] - 1, x[1:] + 1]))]
        ),
        "exp": cp.Problem(cp.Minimize(t + x[0]), [cp.ExpCone(-x[0], cp.Constant(1.0), t), x[1:] == 0]),
        "power": cp.Problem(cp.Maximize(x[2]), [cp.PowCone3D(x[0], x[1], x[2], 0.3), x[0] + x[1] == 1]),
        "psd": cp.Problem(cp.Minimize(cp.trace(C @ X)), [cp.trace(X) == 1, X >> 0]),
        "psd value": cp.Problem(cp.Maximize(t), [C - t * np.eye(3) >> 0]),
    }
    for name, problem in problems.items():
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        for duals in ("solver", None):
            found = residuals(problem, duals)
            # A ray fitted at a point with error e is off by about sqrt(e) of the gap.
            assert max(found.largest, found.stationarity) < 2e-5, (name, duals, found)


def test_a_cone_at_its_apex_takes_any_dual() -> None:
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(2 * x[0] + x[1]), [cp.SOC(x[0], x[1:])])
    x.value = np.zeros(2)
    found = residuals(problem, None)
    assert max(found.stationarity, found.dual, found.complementarity) < 1e-10  # first-order fit
    outside = cp.Problem(cp.Minimize(x[0] + 2 * x[1]), [cp.SOC(x[0], x[1:])])
    assert (
        residuals(outside, None).stationarity > 0.4
    )  # (1, 2) is at distance 1/sqrt 2 from the cone, split over two entries


def test_attributes_of_variables_count_as_constraints() -> None:
    x = cp.Variable(2, nonneg=True, name="x")
    y = cp.Variable(2, bounds=[-1, [2, np.inf]], name="y")
    X = cp.Variable((2, 2), PSD=True, name="X")
    problem = cp.Problem(cp.Minimize(cp.sum(x) - y[0] + y[1] + cp.trace(X)))
    x.value, y.value, X.value = np.zeros(2), np.array([2.0, -1.0]), np.zeros((2, 2))
    for duals in (None, "solver"):
        found = residuals(problem, duals)
        assert max(found.largest, found.stationarity) < 1e-9, found
    y.save_value(np.array([2.0, -1.5]))  # cvxpy itself refuses such a value, a solver's answer may still hold one
    assert residuals(problem, None).primal == 0.5
    assert residuals(problem, None).worst_constraint == "y >= bound"


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_random_problems_agree_with_a_solver_and_perturbations_do_not() -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        A, b = rng.standard_normal((6, 4)), rng.standard_normal(6)
        x = cp.Variable(4, name="x")
        f = cp.sum_squares(A @ x - b) + cp.log_sum_exp(x) + cp.norm(x) + cp.max(x)
        problem = cp.Problem(cp.Minimize(f), [cp.sum(x) == 1, cp.norm(x, 4) <= 1, x[:2] >= -0.2])
        problem.solve(**TIGHT)
        good = residuals(problem, None, kink_tolerance=1e-6)
        assert max(good.stationarity, good.largest) < 1e-4
        x.value = x.value + np.array([1e-2, -1e-2, 0, 0])
        assert residuals(problem, None, kink_tolerance=1e-6).stationarity > 1e-3


@pytest.mark.parametrize("n", [40, pytest.param(160, marks=pytest.mark.slow)])
def test_a_large_entropy_problem_is_judged_to_rounding(n: int) -> None:
    """n x (n + 1) cells, n row sums and one coupling constraint; the answer by a root search in its multiplier."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(n))
    A = p[:, None] * rng.dirichlet(np.full(n + 1, 0.1), n) + 1e-12
    log_w = np.log(rng.dirichlet(np.ones(n + 1), n) + 1e-9)
    U = cp.Variable((n, n + 1), name="U")
    names = {"rows": cp.sum(U, axis=1) == p, "rate": cp.sum(cp.multiply(log_w, U)) >= -4, "sign": U >= 0}
    problem = cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(U, A))), list(names.values()))

    def tilted(multiplier: float) -> np.ndarray:
        cells = A * np.exp(multiplier * log_w)
        return np.asarray(p[:, None] * cells / cells.sum(axis=1, keepdims=True))

    multiplier = brentq(lambda m: (log_w * tilted(m)).sum() + 4, -5, 5, xtol=1e-15)
    U.value = tilted(multiplier)
    found = residuals(problem, None, names=names)
    assert max(found.largest, found.stationarity) < 1e-10
    np.testing.assert_allclose(found.multipliers["rate"], multiplier, rtol=1e-9)
    U.value = tilted(multiplier + 0.1)
    assert residuals(problem, None, names=names).natural > 1e-6


def test_a_point_just_outside_the_domain_is_judged_and_counted() -> None:
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(-cp.sum(cp.entr(x))), [cp.sum(x) == 1])
    x.value = np.array([-1e-7, 1 + 1e-7])
    found = residuals(problem, None)
    assert (found.primal, found.worst_constraint) == (pytest.approx(1e-7), "domain")
    assert found.natural > 0.3  # the answer is (1/2, 1/2)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_single_entry_is_read_in_every_shape(shape: tuple[int, ...]) -> None:
    x = cp.Variable(shape, name="x")
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(x - 3) + cp.norm1(x)))
    x.value = np.full(shape, 2.0)  # soft thresholding
    assert max(residuals(problem, None).stationarity, residuals(problem, None).natural) < ROUNDING


def test_a_soft_maximum_of_thousands_has_its_slope() -> None:
    z = cp.Variable((2, 2), name="z")
    problem = cp.Problem(cp.Minimize(cp.sum(cp.log_sum_exp(z, axis=0))), [cp.sum(z, axis=0) == np.array([2000, -2000])])
    z.value = np.array([[1000.0, -1000.0], [1000.0, -1000.0]])
    assert residuals(problem, duals=None).largest < 1e-12


@pytest.mark.parametrize(
    ("cost", "remedy"),
    [(lambda p: p * p + 1 / p, "Dgp2Dcp"), (cp.ceil, "bisection"), (lambda p: p - p**2, "cvxpy's atoms")],
)
def test_a_problem_that_is_not_convex_is_refused_with_its_remedy(cost: Any, remedy: str) -> None:
    p = cp.Variable(pos=True, name="p")
    p.value = 1.0
    with pytest.raises(ModelError, match=remedy):
        residuals(cp.Problem(cp.Minimize(cost(p))))


def test_bad_requests_are_refused_with_the_remedy() -> None:
    problem, x, names = linear_program()
    with pytest.raises(ModelError, match="no multiplier"):
        residuals(problem, "solver", names)
    with pytest.raises(ModelError, match="did you mean 'total'"):
        residuals(problem, {"totl": 1.0}, names)
    with pytest.raises(ModelError, match="has 3 entries, the constraint 2"):
        residuals(problem, {"sign": [1, 2, 3], "total": 0.0, "cap": 0.0}, names)
    with pytest.raises(ModelError, match="must be None"):
        residuals(problem, 3)  # type: ignore[arg-type]
    x.value = None
    with pytest.raises(ModelError, match="'x' has no value"):
        residuals(problem, None)
    entropy, y, _ = softmin(np.zeros(2))
    y.value = np.array([-0.5, 1.5])
    with pytest.raises(DerivativeError, match="outside the domain"):
        residuals(entropy, None)
    flag = cp.Variable(boolean=True, name="flag")
    flag.value = 1.0
    with pytest.raises(ModelError, match="boolean"):  # taken apart as it is, and not as `residuals` does
        Written.of(cp.Problem(cp.Minimize(flag)))


def test_residuals_where_derivatives_do_not_decide_are_printed_as_a_hint() -> None:
    X, y = cp.Variable((2, 2), symmetric=True, name="X"), cp.Variable(name="y")
    X.value, y.value = np.eye(2), 1.0
    tied = residuals(cp.Problem(cp.Minimize(cp.lambda_max(X)), [cp.trace(X) == 2]), None)
    smooth = residuals(cp.Problem(cp.Minimize(cp.square(y)), [y >= 1]), None)
    assert "hint only: a tie or kink" in str(tied)
    assert "hint" not in str(smooth)


def test_the_matrix_of_a_quadratic_form_has_no_rows_of_its_own() -> None:
    n = 400
    x = cp.Variable(n, name="x")
    P = sp.diags_array(np.arange(1.0, n + 1.0), format="csc")
    problem = cp.Problem(cp.Minimize(0.5 * cp.quad_form(x, cp.psd_wrap(P)) - cp.sum(x)), [x >= 0])
    x.value = 1.0 / np.arange(1.0, n + 1.0)
    written = Written.of(problem)
    assert written.flat.M.shape[0] == 2 * n + 1  # the form's argument, the objective, the constraint
    assert residuals(problem, None).largest < 1e-12
    x.value = 2.0 * x.value
    assert residuals(problem, None).stationarity == pytest.approx(1.0)


def test_a_proximal_step_that_is_not_solved_accurately_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(cp.norm(x)))
    x.value = np.ones(3)
    monkeypatch.setattr(proximal, "ACCURACY", -1.0)  # no answer is accurate enough
    assert proximal.proximal_step(problem).why == "its proximal point is not solved accurately"


SLOPE = np.array([1e-7, 0.02, 0.9, 20.0])
STEPS: dict[str, tuple[Callable[[Array], Array], int]] = {
    "quadratic": (lambda s: 1e6 * s + s - SLOPE, 4),
    "entropy of a tiny cell": (lambda s: np.log1p(s / 1e-17) + s - SLOPE, 30),
    "exponential": (lambda s: np.expm1(s) + s - SLOPE, 30),
    "kink": (lambda s: np.where(s < 0.3 * SLOPE, -SLOPE, SLOPE) + s, 12),
    "entropy that falls to nothing": (lambda s: -np.log1p(-s / 1e-9) + s - SLOPE, 100),
}


@pytest.mark.parametrize("kind", STEPS)
def test_a_proximal_step_is_found_to_the_last_digits_in_few_evaluations(kind: str) -> None:
    function, most = STEPS[kind]
    seen = []

    def left(step: Array) -> Array:
        seen.append(step)
        with np.errstate(divide="ignore"):
            return function(step)

    reach = np.minimum(SLOPE, 1e-9) if kind.endswith("nothing") else SLOPE
    kinks = np.full(4, np.inf) if kind != "kink" else 0.3 * SLOPE
    found = _first_not_negative(left, reach.copy(), SLOPE, kinks)
    assert len(seen) <= most
    assert (left(found * (1.0 + 1e-12)) >= 0.0)[found < reach].all()
    assert (left(found * (1.0 - 1e-12)) <= 0.0).all()


@pytest.mark.parametrize("off", [0.0, 1e-9, 1e-7, 1e-3])
def test_squares_taken_together_and_reaches_left_out_change_no_step(off: float) -> None:
    rng = np.random.default_rng(5)
    x, A, b = cp.Variable(6, name="x"), rng.normal(size=(8, 6)), rng.normal(size=8)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ x - b) + cp.norm1(x) + cp.quad_over_lin(x[:2], 3.0)))
    problem.solve(solver="CLARABEL")
    x.value = np.where(np.abs(x.value) < 1e-4, off, x.value + off)
    written = Written.of(problem)
    point = Point(written, written.state(), Slopes(1e-9, 1e-6, 1e-300), 1e-6)
    every = [point._steps(None, reach * (1.0 + np.abs(point.x))) for reach in NEAR]
    assert np.abs(point.natural_steps(None)).max() == min(np.abs(steps).max() for steps in every)
    at = np.array(x.value)
    gradient = 2.0 * A.T @ (A @ at - b) + np.sign(at) + np.where(np.arange(6) < 2, 2.0 / 3.0 * at, 0.0)
    bend = 2.0 * (A * A).sum(axis=0) + np.where(np.arange(6) < 2, 2.0 / 3.0, 0.0)
    smooth = np.abs(at) > 1e-2  # such an entry moves to no kink
    assert every[0][smooth] == pytest.approx((-gradient / (1.0 + bend))[smooth], rel=1e-9, abs=1e-14)
