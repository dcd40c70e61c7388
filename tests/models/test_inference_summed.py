"""The bound of inference as a service under sums over columns and named outputs, by routes of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from cvxpriv_models.inference_service.bound import bound
from cvxpriv_models.inference_service.conjugates import JENSEN_SHANNON, LE_CAM, Conjugate, moved_away
from cvxpriv_models.inference_service.pricing import solve_simplex
from cvxpriv_models.inference_service.problem import Problem
from cvxpriv_models.inference_service.summed_costs import levelled
from scipy.optimize import linprog

from cvxpriv import constraints
from cvxpriv.blocks.declaration import Known
from cvxpriv.bounds.output_names import matched
from cvxpriv.constraints import ReadyConstraint
from cvxpriv.models import InferenceAsService
from cvxpriv.numerics.arrays import Array

from .inference_cases import g10

TABLE = np.array([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
BETA, STEPS = 0.1, 120
DISTORTION = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
FORBIDDEN = np.array([[False, True, False], [False, False, True], [True, False, False]])
Rows = Callable[[Array, Array], Array]


def _excess(asked: ReadyConstraint, mechanism: Array, problem: Problem) -> float:
    return float(asked.excess(mechanism, Known.of_table(problem.table)))


def _peak(x: Array, p: Array) -> Array:
    return np.asarray((x / p).max(axis=1, keepdims=True))


def _moved(x: Array, p: Array) -> Array:
    return np.asarray(0.5 * np.abs(x / p - 1.0))


def _moved_on_average(x: Array, p: Array) -> Array:
    return np.asarray(0.5 * np.abs(x - p).sum(axis=1, keepdims=True))


def _grid(problem: Problem) -> tuple[Array, Array]:
    """Columns on a grid, and P_Y; and what each is worth."""
    x = np.array([[i, j, STEPS - i - j] for i in range(STEPS + 1) for j in range(STEPS + 1 - i)]) / STEPS
    x = np.vstack([x, problem.p_y])
    s = x @ problem.p_s_given_y.T
    gain = np.where(s > 0.0, s * np.log(np.maximum(s, 1e-300) / problem.p_s), 0.0).sum(axis=1)
    return x, gain - problem.beta * problem.divergence.terms(x, problem.p_y).sum(axis=1)


def _over(x: Array, p: Array) -> Array:
    """(r_y - sqrt(e) r_y')_+ for each pair."""
    r = x / p
    return np.stack([np.maximum(r[:, i] - np.sqrt(np.e) * r[:, j], 0.0) for i in range(3) for j in range(3)], axis=1)


def _guess(x: Array, p: Array) -> Array:
    """The chance to name S right."""
    return np.asarray((x @ (TABLE / p).T).max(axis=1, keepdims=True))


def _apart(x: Array, p: Array) -> Array:
    """Half the difference of p(u|s) of both private symbols, for a unit of p(u)."""
    each = x @ (TABLE / p).T / TABLE.sum(axis=1)
    return np.asarray(0.5 * np.abs(each[:, :1] - each[:, 1:]))


def _told(x: Array, p: Array) -> Array:
    """Le Cam's information between Y and U."""
    return np.asarray(((x - p) ** 2 / (2.0 * (x + p))).sum(axis=1, keepdims=True))


SUMS = [
    (constraints.maximal_leakage(0.3), _peak, np.exp(0.3)),
    (constraints.total_variation_to_prior(0.15), _moved, 0.15),
    (constraints.total_variation_to_prior(0.1, average=True), _moved_on_average, 0.1),
    pytest.param(constraints.local_differential_privacy(0.5, 0.05), _over, 0.05, marks=[pytest.mark.slow], id="delta"),
    pytest.param(constraints.bayes_vulnerability(0.6), _guess, 0.6, marks=[pytest.mark.slow], id="guess"),
    pytest.param(constraints.group_fairness(0.1), _apart, 0.1, id="fair"),
    pytest.param(
        constraints.f_information("le-cam", 0.02, "input"), _told, 0.02, marks=[pytest.mark.slow], id="information"
    ),
]


@pytest.mark.parametrize(("asked", "rows", "upper"), SUMS)
def test_sums_over_columns_agree_with_a_linear_program_over_a_grid(
    asked: ReadyConstraint, rows: Rows, upper: float
) -> None:
    problem = Problem.of(TABLE, BETA)
    x, worth = _grid(problem)
    sums = rows(x, problem.p_y)
    program = linprog(
        -worth, A_eq=x.T, b_eq=problem.p_y, A_ub=sums.T, b_ub=np.full(sums.shape[1], upper), method="highs"
    )
    found = bound(problem, constraints=(("asked", asked),))
    assert found.certified
    assert found.ignored == ()
    assert program.fun is not None
    assert -program.fun <= found.upper
    assert -program.fun == pytest.approx(found.lower, rel=2e-2)  # a grid of 1/120 misses second-order terms and kinks
    assert _excess(asked, found.mechanism, problem) <= 1e-12
    assert problem.objective(found.mechanism) == pytest.approx(found.lower, abs=1e-12)
    assert found.upper < 0.6 * bound(problem).lower


def test_a_bound_under_sums_is_never_above_that_without_them() -> None:
    asked = (("peak", constraints.maximal_leakage(0.3)),)
    problem = Problem.of(TABLE, BETA)
    assert bound(problem, constraints=asked, gap=1e-2).upper <= bound(problem, gap=1e-3).upper + 1e-12


NAMED = [
    (constraints.expected_distortion(DISTORTION, 0.15), DISTORTION, 0.15),
    (constraints.forbidden(FORBIDDEN), 1e3 * FORBIDDEN, 0.0),
]


@pytest.mark.parametrize(("asked", "matrix", "upper"), NAMED)
def test_named_outputs_agree_with_a_linear_program_over_a_grid(
    asked: ReadyConstraint, matrix: Array, upper: float
) -> None:
    problem = Problem.of(TABLE, BETA, size_u=3)
    x, worth = _grid(problem)
    program = linprog(
        -np.tile(worth, 3),
        A_eq=np.tile(x.T, 3),
        b_eq=problem.p_y,
        A_ub=np.concatenate([x @ matrix[:, u] for u in range(3)])[None],
        b_ub=[upper],
        method="highs",
    )
    found = bound(problem, constraints=(("asked", asked),))
    assert program.fun is not None
    assert -program.fun <= found.upper
    assert -program.fun == pytest.approx(found.upper, rel=5e-3)
    assert found.mechanism.shape == (3, 3)
    assert _excess(asked, found.mechanism, problem) <= 1e-12
    assert found.upper < bound(problem).lower - 1e-5
    assert found.lower > 0.9 * found.upper  # names that two columns share, where the mechanism merges them


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(constraints.maximal_leakage(0.3), marks=pytest.mark.slow),
        pytest.param(constraints.total_variation_to_prior(0.15), marks=pytest.mark.slow),
        pytest.param(constraints.expected_distortion(DISTORTION, 0.3), marks=pytest.mark.slow),
        pytest.param(constraints.forbidden(FORBIDDEN), marks=pytest.mark.slow),
    ],
)
def test_the_usual_run_is_no_worse_than_a_solver_from_many_starts(asked: ReadyConstraint) -> None:
    model = InferenceAsService(TABLE, BETA, size_u=3).constrain("asked", asked)
    run = model.solve()
    assert run.gap is not None
    assert run.bound is not None
    assert run.bound.ignored == ()
    others = model.solve(method="joint", starts=4, max_iter=15)
    assert others.objective <= run.bound.upper + 1e-7  # a solver's point may miss the constraint by so much
    assert others.objective <= run.objective + 1e-6


@pytest.mark.parametrize(
    "asked",
    [
        constraints.maximal_leakage(0.3),
        pytest.param(constraints.total_variation_to_prior(0.15), marks=pytest.mark.slow),
    ],
)
def test_ten_symbols_and_three_private_ones_are_certified(asked: ReadyConstraint) -> None:
    problem = g10("jensen-shannon", BETA)
    found = bound(problem, constraints=(("asked", asked),), gap=1e-4)
    assert found.certified
    assert _excess(asked, found.mechanism, problem) <= 1e-12


def test_constraints_of_several_kinds_are_counted_together() -> None:
    asked = (
        ("peak", constraints.maximal_leakage(0.5)),
        ("moved", constraints.total_variation_to_prior(0.2, average=True)),
        ("ratio", constraints.pointwise_leakage(0.6, of="input")),
    )
    problem = Problem.of(TABLE, BETA)
    together = bound(problem, constraints=asked, gap=1e-5)
    assert together.certified
    assert together.ignored == ()
    assert all(_excess(one, together.mechanism, problem) <= 1e-9 for _, one in asked)
    assert together.lower <= min(bound(problem, constraints=(one,)).upper for one in asked)


@pytest.mark.slow
def test_a_distortion_beside_local_differential_privacy() -> None:
    asked = (
        ("ldp", constraints.local_differential_privacy(1.0)),
        ("near", constraints.expected_distortion(DISTORTION, 0.68)),
        ("peak", constraints.maximal_leakage(0.1)),
    )
    problem = Problem.of(TABLE, BETA, size_u=3)
    found = bound(problem, constraints=asked, gap=1e-4)
    assert found.ignored == ()
    assert all(_excess(one, found.mechanism, problem) <= 1e-9 for _, one in asked)
    assert found.upper <= bound(problem, constraints=asked[:1], gap=1e-4).upper + 1e-9


def test_constraints_that_cannot_hold_together_leave_the_bound_without_them() -> None:
    asked = (
        ("box", constraints.pointwise_leakage(0.05, of="input")),
        ("near", constraints.expected_distortion(DISTORTION, 0.3)),
    )
    found = bound(Problem.of(TABLE, BETA, size_u=3), constraints=asked, gap=1e-4)
    assert found.ignored == ("near",)
    assert found.certified


@pytest.mark.parametrize("conjugate", [JENSEN_SHANNON, LE_CAM])
def test_the_inner_problem_with_costs_of_peaks_and_of_moves_is_solved_exactly(conjugate: Conjugate) -> None:
    rng = np.random.default_rng(0)
    p, c = rng.dirichlet(np.ones(8)), 0.3 * rng.normal(size=(50, 8))
    away = rng.uniform(0.0, 1.0, 8)
    dear, beta, price = moved_away(conjugate, away), 0.1, 0.03
    inner = solve_simplex(levelled(c, p, price, beta * away), p, beta, dear)

    def value(x: Array) -> Array:
        return np.asarray((c * x).sum(axis=1) - beta * (dear.price(x / p) @ p) - price * (x / p).max(axis=1))

    assert (value(inner.x) <= inner.value + 1e-12).all()
    moving = inner.x.max(axis=1) > 1.0001 * inner.x.min(axis=1)
    assert np.allclose(value(inner.x)[moving], inner.value[moving], atol=1e-8)
    for _ in range(50):
        other = rng.dirichlet(np.full(8, 0.5), size=50)
        assert (value(np.maximum(other, 1e-12)) <= inner.value + 1e-12).all()


def test_columns_get_the_outputs_that_cost_least() -> None:
    columns = np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1]])
    joint = matched(columns, np.array([0.3, 0.5, 0.2]), np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]]))
    assert np.allclose(joint, [[0.05, 0.45, 0.0], [0.45, 0.05, 0.0]])
