"""Cone programs read from cvxpy, solved, and judged without their solver."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from cvxpriv.certify.cases import case_of_problem
from cvxpriv.certify.corpus.liars import LIARS
from cvxpriv.certify.solver_answers import recalled
from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.bounds import lower_bound, variable_bounds
from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.conic.data import extract
from cvxpriv.kkt.conic.program import ConeProgram, cone_residuals
from cvxpriv.kkt.conic.repair import DOUBLINGS, _step_inwards, rounding_room
from cvxpriv.kkt.conic.solving import ConicSolution, solve_conic

TIGHT = {
    "CLARABEL": {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11},
    "ECOS": {"abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11},
    "SCS": {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iters": 100_000},
    "OSQP": {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 100_000},
    "HIGHS": {},
}
# The loosest of the settings above leaves 1e-10 in the residuals; the rest is conditioning of the small problems.
SOLVED = 1e-7


def linear() -> tuple[cp.Problem, float]:
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(x[0] + 2 * x[1] + 1), [x >= 0, x[0] + x[1] == 3, x[0] <= 2]), 5.0


def bounded_maximum() -> tuple[cp.Problem, float]:
    v = cp.Variable(3, bounds=[-1, 2], name="v")
    objective = cp.Maximize(1 - cp.sum_squares(v - np.array([3, 0, -3])))
    # v0 meets v0 + v1 <= 1.5 with v1 = -.75 : minimise (v0-3)^2 + v1^2 on the line gives v0 = 2.25, cut to 2.
    return cp.Problem(objective, [v[0] + v[1] <= 1.5]), 1 - (1 + 0.25 + 4)


def cone_lengths() -> tuple[cp.Problem, float]:
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(cp.norm(x - np.array([3, 4]))), [cp.norm(x) <= 1]), 4.0


def softmin(cost: float) -> tuple[cp.Problem, float]:
    x = cp.Variable(2, name="x")
    objective = cp.Minimize(np.array([0, cost]) @ x - cp.sum(cp.entr(x)))
    return cp.Problem(objective, [cp.sum(x) == 1, x >= 0]), -float(np.log1p(np.exp(-cost)))


def smallest_eigenvalue() -> tuple[cp.Problem, float]:
    C = np.array([[1.0, 2, 0], [2, 0, 1], [0, 1, -1]])
    X = cp.Variable((3, 3), PSD=True, name="X")
    return cp.Problem(cp.Minimize(cp.trace(C @ X)), [cp.trace(X) == 1]), float(np.linalg.eigvalsh(C)[0])


def power_mean() -> tuple[cp.Problem, float]:
    x = cp.Variable(3, name="x")
    # Maximise x0^.3 x1^.7 on x0 + x1 = 1: x = (.3, .7).
    return cp.Problem(cp.Maximize(x[2]), [cp.PowCone3D(x[0], x[1], x[2], 0.3), x[0] + x[1] == 1]), 0.3**0.3 * 0.7**0.7


CASES = [
    *((linear, solver) for solver in ("CLARABEL", "ECOS", "HIGHS", "OSQP", "SCS")),
    *((bounded_maximum, solver) for solver in ("CLARABEL", "ECOS", "HIGHS", "OSQP", "SCS")),
    *((cone_lengths, solver) for solver in ("CLARABEL", "ECOS", "SCS")),
    *((lambda: softmin(1.0), solver) for solver in ("CLARABEL", "ECOS", "SCS")),
    *((smallest_eigenvalue, solver) for solver in ("CLARABEL", "SCS")),
    *((power_mean, solver) for solver in ("CLARABEL", "SCS")),
]


@pytest.mark.parametrize(("build", "solver"), CASES)
def test_every_solver_is_read_into_the_same_form(build: object, solver: str) -> None:
    problem, optimum = build()  # type: ignore[operator]
    solution = solve_conic(problem, solver, TIGHT[solver])
    found = solution.residuals
    assert found is not None
    assert solution.status == "optimal"
    assert solution.error == ""
    # HIGHS solves the quadratic case with its active-set method, which regularises by 1e-7.
    assert found.largest <= (1e-6 if solver == "HIGHS" else SOLVED), found
    assert solution.program.user_value(found.objective) == pytest.approx(optimum, abs=2e-6)
    assert problem.value == pytest.approx(optimum, abs=2e-6)
    assert all(variable.value is not None for variable in problem.variables())
    bound = solution.lower_bound
    assert bound.value is not None, bound.reason
    least = optimum if isinstance(problem.objective, cp.Minimize) else -optimum
    # The bound may not exceed the truth by more than rounding, and is as tight as the dual was good.
    assert least - 3e-6 <= bound.value <= least + 1e-12


def test_variable_values_and_duals_are_filled_like_problem_solve() -> None:
    problem, _ = linear()
    solution = solve_conic(problem, "CLARABEL", TIGHT["CLARABEL"])
    # L = x0 + 2 x1 + nu (x0 + x1 - 3) + mu (x0 - 2): nu = -2, mu = 1 at x = (2, 1).
    np.testing.assert_allclose(problem.variables()[0].value, [2, 1], atol=1e-8)
    np.testing.assert_allclose(problem.constraints[1].dual_value, -2, atol=1e-8)
    np.testing.assert_allclose(problem.constraints[2].dual_value, 1, atol=1e-8)
    assert solution.iterations is not None
    assert solution.solver_seconds is not None


def lie() -> ConicSolution:
    """What SCS 3.3.1 once said, `optimal` to 1e-12, at a cost of 10.5 for the second entry."""
    liar = LIARS[0]
    return recalled(case_of_problem("lie", liar.build().problem).declare(), "SCS", liar.stored)


def test_false_optimum_of_scs_is_exposed_by_the_dual_cone_alone() -> None:
    solution = lie()
    found = solution.residuals
    assert solution.status == "optimal"
    assert solution.x is not None
    assert abs(solution.x[1]) < 1e-15  # the truth is 2.8e-5
    assert found is not None
    for condition in ("dual", "cone", "complementarity", "gap"):
        assert found.relative[condition] < 1e-11, condition
    assert found.absolute["dual_cone"] > 1e-5
    assert (found.worst, found.worst_block) == ("dual_cone", "exp[1]")


def test_lower_bound_stays_below_the_truth_even_from_a_lying_dual() -> None:
    solution, truth = lie(), softmin(10.5)[1]
    bound, found = solution.lower_bound, solution.residuals
    assert bound.value is not None
    assert found is not None
    assert bound.value <= truth < found.objective - 2.7e-5
    assert truth - bound.value < 1e-4


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("seed", range(8))
def test_lower_bound_holds_for_arbitrary_duals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for build in (linear, bounded_maximum, cone_lengths, lambda: softmin(3.0), smallest_eigenvalue):
        problem, optimum = build()
        least = optimum if isinstance(problem.objective, cp.Minimize) else -optimum
        solution = solve_conic(problem, "CLARABEL")
        assert solution.x is not None
        assert solution.z is not None
        for size in (1e-6, 1e-2, 10.0):
            z = solution.z + size * rng.standard_normal(solution.z.size)
            x = solution.x + size * rng.standard_normal(solution.x.size)
            bound = lower_bound(solution.program, x, z)
            if bound.value is None:
                assert "no certificate" in bound.reason
            else:
                assert bound.value <= least + 1e-9 * max(1.0, size * size)  # rounding grows with the dual


def test_no_certificate_names_the_variable_and_a_known_bound_gives_one() -> None:
    x = cp.Variable(2, name="free")
    problem = cp.Problem(cp.Minimize(x[0] + x[1]), [x[0] >= 0])  # unbounded in x[1]: there is no bound to find
    program = ConeProgram.from_problem(problem, "CLARABEL")
    bound = lower_bound(program, np.zeros(2), np.ones(1))
    assert bound.value is None
    assert "free[1]" in bound.reason
    known = lower_bound(program, np.zeros(2), np.ones(1), bounds=(np.array([-np.inf, -4]), np.array([np.inf, np.inf])))
    assert known.value == pytest.approx(-4.0, abs=1e-12)


def test_bounds_are_propagated_through_the_rows() -> None:
    problem, _ = softmin(1.0)
    program = ConeProgram.from_problem(problem, "CLARABEL")
    low, high = variable_bounds(program)
    np.testing.assert_allclose(low[:2], 0, atol=1e-12)
    np.testing.assert_allclose(high[:2], 1, atol=1e-12)
    assert np.isinf(low[2:]).all()


def test_a_propagated_bound_is_never_inside_the_exact_one_and_hardly_outside() -> None:
    # a x0 + b x1 <= c with x1 in [0, 1] known: x0 <= (c - min(0, b))/a, in exact fractions of these doubles.
    rng = np.random.default_rng(0)
    for a, b, c in rng.uniform(0.1, 3.0, size=(40, 3)) * rng.choice([-1.0, 1.0], size=(40, 3)):
        x = cp.Variable(2)
        program = ConeProgram.from_problem(cp.Problem(cp.Minimize(x[0]), [a * x[0] + b * x[1] <= c]), "CLARABEL")
        known = np.array([-np.inf, 0.0]), np.array([np.inf, 1.0])
        low, high = variable_bounds(program, known)
        exact = (Fraction(c) - min(Fraction(0), Fraction(b))) / Fraction(a)
        found, outside = (high[0], 1) if a > 0.0 else (low[0], -1)
        assert 0 <= outside * (Fraction(found) - exact) <= Fraction(1e-13)
        assert np.isinf(low[0] if a > 0.0 else high[0])
        assert (low[1], high[1]) == (0.0, 1.0) == (known[0][1], known[1][1])  # x0 is open: x1 learns nothing
        assert np.isinf([known[0][0], known[1][0]]).all()  # what the caller knows is not written over


@pytest.mark.parametrize("equal", [False, True])
def test_bounds_of_rows_of_any_size_allow_for_their_rounding_and_hardly_more(equal: bool) -> None:
    # a'x <= c, or a'x == c, with all but x0 in a known box: x0 <= (c - sum of least a_k x_k)/a_0, in exact fractions.
    rng = np.random.default_rng(1)
    for _ in range(40):
        a = 10.0 ** rng.uniform(-4, 4, size=3) * rng.choice([-1.0, 1.0], size=3)
        low, high = -(10.0 ** rng.uniform(-3, 3, size=3)), 10.0 ** rng.uniform(-3, 3, size=3)
        c = float(rng.choice([0.0, a[1] * high[1] * rng.normal()]))
        x = cp.Variable(3)
        row = a @ x == c if equal else a @ x <= c
        program = ConeProgram.from_problem(cp.Problem(cp.Minimize(x[0]), [row]), "CLARABEL")
        low[0], high[0] = -np.inf, np.inf
        found = variable_bounds(program, (low, high))
        for side in (1, -1) if equal else (1,):  # an equality bounds from both sides
            terms = [[Fraction(side * a[k]) * Fraction(end[k]) for end in (low, high)] for k in (1, 2)]
            others = min(terms[0]) + min(terms[1])
            exact = (Fraction(side * c) - others) / Fraction(side * a[0])
            upper = side * a[0] > 0.0
            outside = (Fraction(found[1][0]) - exact) if upper else (exact - Fraction(found[0][0]))
            size = (abs(Fraction(c)) + sum(max(map(abs, pair)) for pair in terms)) / abs(Fraction(a[0]))
            assert 0 <= outside <= 100 * Fraction(float(np.finfo(float).eps)) * size


@pytest.mark.parametrize("solver", ["CLARABEL", "ECOS", "HIGHS", "OSQP", "SCS"])
def test_infeasibility_certificates_are_checked(solver: str) -> None:
    x = cp.Variable(2)
    solution = solve_conic(cp.Problem(cp.Minimize(x[0]), [x >= 0, x[0] + x[1] <= -1]), solver)
    assert solution.status == "infeasible"
    proof = solution.certificate
    assert proof is not None
    assert proof.holds(1e-6)
    assert proof.radius > 1e6


@pytest.mark.parametrize("solver", ["CLARABEL", "ECOS", "OSQP", "SCS"])
def test_unboundedness_certificates_are_checked(solver: str) -> None:
    x = cp.Variable(2)
    solution = solve_conic(cp.Problem(cp.Minimize(x[0] - x[1]), [x >= 0]), solver)
    assert solution.status == "unbounded"
    assert solution.certificate is not None
    assert solution.certificate.holds(1e-6)


def test_a_forged_certificate_does_not_hold() -> None:
    x = cp.Variable(2)
    program = ConeProgram.from_problem(cp.Problem(cp.Minimize(x[0]), [x >= 0, x[0] + x[1] <= 1]), "CLARABEL")
    from cvxpriv.kkt.conic.certificates import infeasibility, unboundedness

    assert not infeasibility(program, np.array([1.0, 1.0, 1.0])).holds()  # b'z = 1 is no contradiction
    assert not unboundedness(program, np.array([-1.0, 0.0])).holds()  # leaves x >= 0
    assert not unboundedness(program, np.array([1.0, 0.0])).valid


def test_each_perturbation_shows_in_its_own_condition() -> None:
    problem, _ = cone_lengths()
    solution = solve_conic(problem, "CLARABEL", TIGHT["CLARABEL"])
    program = solution.program
    assert solution.x is not None
    assert solution.z is not None
    x, z = solution.x, solution.z

    def tilted(v: np.ndarray, index: int, amount: float) -> np.ndarray:
        moved = v.copy()
        moved[index] += amount
        return moved

    moved = cone_residuals(program, tilted(x, 0, -1e-3), z)
    assert moved.absolute["cone"] > 5e-4  # the slack follows the point
    assert moved.absolute["dual_cone"] < SOLVED
    first = program.layout.slices["soc[0]"].start
    assert cone_residuals(program, x, tilted(z, first, -1e-3)).absolute["dual_cone"] > 5e-4
    assert cone_residuals(program, x, 1.01 * z).relative["dual"] > 1e-3


def test_a_solver_that_raises_is_reported_not_raised() -> None:
    problem, _ = linear()
    solution = solve_conic(problem, "CLARABEL", {"no_such_option": 1})
    assert solution.status == "failed"
    assert "no_such_option" in solution.error
    assert solution.residuals is None
    assert solution.lower_bound.value is None


class Panic(BaseException):
    """What a panic of a solver that is written in Rust raises: no Exception."""


def test_a_panic_is_reported_and_an_interrupt_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = linear()

    def panic(*_: object) -> None:
        raise raised

    monkeypatch.setattr("clarabel.DefaultSolver", panic)
    raised: BaseException = Panic("called `Option::unwrap()` on a `None` value")
    assert solve_conic(problem, "CLARABEL").error.startswith("Panic: called")
    raised = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        solve_conic(problem, "CLARABEL")


def test_a_bound_that_only_rounding_makes_is_none() -> None:
    # Minimise -t over ||(2 t, x - 1)|| <= x + 1, which is t <= sqrt x. The dual (a, b, -1/2) with a + b = s and
    # a - b = 1 / (4 s) misses the equation of x by s alone, and would certify -1 / (4 s).
    x = cp.Variable(name="x")
    program = ConeProgram.from_problem(cp.Problem(cp.Maximize(cp.sqrt(x))), "CLARABEL")
    s = 1e-8
    z = program.layout.project(np.array([s + 0.25 / s, s - 0.25 / s, -1.0]) / 2, dual=True)
    assert lower_bound(program, np.ones(program.c.size), z).value is None


def test_parameters_enter_by_their_values_and_cost_no_map_for_re_solves() -> None:
    # cvxpy's map for re-solves of a block of 2.6e5 cells, each times a Parameter, asks for 494 GiB.
    x, weight = cp.Variable(3, name="x"), cp.Parameter(3, value=np.array([1.0, 2.0, 3.0]))
    problem = cp.Problem(cp.Minimize(weight @ x), [x >= 1])
    compiled = extract(problem, "CLARABEL", {})
    assert compiled.data["param_prob"].parameters == []
    assert solve_conic(problem, "CLARABEL", TIGHT["CLARABEL"]).program.c == pytest.approx([1, 2, 3], abs=0)
    weight.value = np.array([3.0, 2.0, 1.0])
    assert ConeProgram.from_problem(problem, "CLARABEL").c == pytest.approx([3, 2, 1], abs=0)


@pytest.mark.parametrize(
    ("solver", "limit"),
    [("CLARABEL", {"max_iter": 2}), ("ECOS", {"max_iters": 2}), ("OSQP", {"max_iter": 2})],
)
def test_a_solver_that_gives_up_says_how_after_how_many_iterations_and_what_to_do(
    solver: str, limit: dict[str, int]
) -> None:
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - np.arange(3.0)) + cp.norm1(x)), [cp.sum(x) == 1, x >= 0])
    solution = solve_conic(problem, solver, limit)
    assert solution.status == "user_limit"
    assert f"{solver} ended with '" in solution.error
    assert "after 2 iterations: raise its limit" in solution.error


def test_unknown_solvers_and_integer_problems_are_refused() -> None:
    problem, _ = linear()
    with pytest.raises(ModelError, match="did you mean 'CLARABEL'"):
        solve_conic(problem, "CLARABELL")
    count = cp.Variable(integer=True)
    with pytest.raises(ModelError, match="integer"):
        solve_conic(cp.Problem(cp.Minimize(count), [count >= 0]), "HIGHS")


def test_a_dual_that_is_tiny_but_not_nothing_is_not_rounded_away() -> None:
    # minimise 1e-14 x - log x: the optimum is 1 - log 1e14 at x = 1e14. Rounding the 1e-14 to zero would leave a dual
    # that seems feasible for -log x alone, and a bound far above the optimum.
    x = cp.Variable(name="x")
    program = ConeProgram.from_problem(cp.Problem(cp.Minimize(1e-14 * x - cp.log(x))), "CLARABEL")
    optimum = 1.0 - np.log(1e14)
    for height in (-5.0, 0.0, 20.0, 31.0):
        z = np.zeros(program.layout.size)
        z[:3] = [-1.0, height, np.exp(-height - 1.0)]  # in the dual exponential cone
        bound = lower_bound(program, np.zeros(program.c.size), z).value
        assert bound is None or bound <= optimum + 1e-9


def test_a_bound_over_ten_thousand_cells_with_one_full_row_needs_no_full_matrix() -> None:
    costs = np.random.default_rng(0).random(10_000)
    x = cp.Variable(10_000)
    problem = cp.Problem(cp.Minimize(costs @ x - cp.sum(cp.entr(x))), [cp.sum(x) == 1])
    bound = solve_conic(problem, "CLARABEL").lower_bound
    # The optimum is -log sum exp(-c); a bound from a repaired dual is below it, and close.
    optimum = -np.log(np.exp(-costs).sum())
    assert bound.value is not None
    assert optimum - 1e-6 < bound.value <= optimum + 1e-12


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(("cones", "cases"), [({"nonneg": 2, "soc": (3,), "psd": (2,)}, 30), ({"exp": 3}, 4)])
def test_a_step_inwards_is_the_first_of_all_levels_that_is_inside(
    cones: dict[str, Any], cases: int, together: bool
) -> None:
    layout = ConeLayout(zero=1, **cones)
    rng, size = np.random.default_rng(5), layout.size
    block = np.repeat(np.arange(len(layout.names)), np.diff(np.append(layout.starts, size)))
    # Of one column: a step may be taken in each block apart only where no row asks for anything.
    A = sp.csc_array(np.full((size, 1), float(together)))
    moved = 0
    for case in range(cases):
        far = 10.0 ** rng.uniform(-14, 2, len(layout.names))[block]
        v = layout.project(rng.normal(size=size), dual=True) + far * rng.normal(size=size)
        direction = layout.interior() + 0.6 * (case % 3) * rng.normal(size=size)  # inside of every third
        points = [v + 2.0**power * direction for power in range(-DOUBLINGS, DOUBLINGS, 2)]
        outside = np.array(
            [layout.block_distances(one, dual=True) > rounding_room(layout, one) for one in [v, *points]]
        )
        if together:
            outside[:] = outside.any(axis=1)[:, None]
        first, steps = outside.argmin(axis=0), np.array([v, *points])
        expected = v if outside.all(axis=0).any() else steps[first[block], np.arange(size)]
        np.testing.assert_array_equal(_step_inwards(layout, v, direction, A), expected)
        moved += not np.array_equal(v, expected)
    assert moved >= cases // 3


@pytest.mark.parametrize(("far", "others"), [(1.0, 0.0), (3.0, 0.5)])
def test_a_dual_near_a_limit_that_no_point_attains_proves_the_limit_and_not_more(far: float, others: float) -> None:
    x = cp.Variable(2, name="x")
    ends = [cp.inv_pos(x[0]) + others, cp.norm(cp.hstack([x, far])) - cp.sum(x) / np.sqrt(2) + others]
    for problem in (cp.Problem(cp.Minimize(cost)) for cost in ends):
        bounds = [solve_conic(problem, solver).lower_bound.value for solver in ("CLARABEL", "SCS")]
        assert all(bound is not None and others - 1e-9 <= bound <= others + 1e-15 for bound in bounds), bounds
