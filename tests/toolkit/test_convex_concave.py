"""The convex-concave procedure: known optima, what it refuses to call converged, and that tangents bound."""

from __future__ import annotations

from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import cvxpriv as cpv
from cvxpriv.blocks.convexified import PRICE, Convexified
from cvxpriv.errors import DataError, ModelError, SolverFailure
from cvxpriv.schedules.alternation import SHARE, usual_price

RNG = np.random.default_rng(3)


def corner() -> tuple[cp.Problem, cp.Variable]:
    """The far corner of a square outside of a circle."""
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(cp.sum(x)), [cp.norm(x) >= 1, cp.max(cp.abs(x)) <= 2]), x


def test_a_feasible_point_is_not_called_converged() -> None:
    problem, x = corner()
    x.value = np.array([1.0, 1.0])  # feasible, and the objective falls from there
    run = cpv.convex_concave(problem, max_iter=1)
    assert run.history["block"].tolist() == ["convexified", "convex-concave"]
    full = cpv.convex_concave(problem, init={"x": [1.0, 1.0]})
    assert full.converged
    assert full.objective == pytest.approx(-4.0, abs=1e-7)
    first = Convexified(problem).block().residual({"x": np.ones(2)}, {"x": np.ones(2)})
    assert first.primal == 0.0
    assert first.largest > 0.1


def test_the_largest_value_of_an_indefinite_form_in_the_ball_is_its_largest_eigenvalue() -> None:
    matrix = np.array([[1.0, 2.0, 0.0], [2.0, -3.0, 1.0], [0.0, 1.0, 0.5]])
    x = cp.Variable(3, name="x")
    # cvxpy knows no curvature of the form
    run = cpv.convex_concave(cp.Problem(cp.Maximize(cp.quad_form(x, matrix)), [cp.norm(x) <= 1]), init={"x": [1, 1, 0]})
    values, vectors = np.linalg.eigh(matrix)
    assert run.converged
    assert run.objective == pytest.approx(values[-1], abs=1e-6)
    assert abs(vectors[:, -1] @ run.values["x"]) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.slow
def test_on_the_sphere_the_first_problem_falls_without_bound_at_a_low_price_and_the_price_is_raised() -> None:
    x = cp.Variable(2, name="x")
    sphere = cp.Problem(cp.Maximize(cp.quad_form(x, np.diag([1.0, -1.0]))), [cp.norm(x) == 1])
    run = cpv.convex_concave(sphere, init={"x": [0.5, 0.5]})
    assert run.history["price of slack"].dropna().iloc[0] > usual_price(sphere, {"x": np.array([0.5, 0.5])})
    assert run.converged
    assert run.objective == pytest.approx(1.0, abs=1e-6)


@pytest.mark.slow
def test_a_product_of_affine_expressions_is_a_difference_of_squares() -> None:
    u, v = cp.Variable(name="u"), cp.Variable(name="v")
    # u v = 4 with the least u^2 + v^2: 8, as the arithmetic mean is above the geometric one.
    problem = cp.Problem(cp.Minimize(cp.square(u) + cp.square(v)), [u * v == 4])
    run = cpv.convex_concave(problem, init={"u": 1.0, "v": 3.0}, tol=1e-3)
    assert run.converged
    assert run.objective == pytest.approx(8.0, abs=1e-3)


def test_a_complex_signal_is_found_from_the_sizes_of_its_measurements() -> None:
    random = np.random.default_rng(2)
    A, signal = (random.normal(size=(12, 2)) + 1j * random.normal(size=(12, 2))), np.array([1.0 - 0.5j, 0.3 + 2.0j])
    x, sizes = cp.Variable(2, complex=True, name="x"), np.abs(A @ signal)
    missed = cp.sum_squares(cp.abs(A @ x)) - 2.0 * sizes @ cp.abs(A @ x)  # and the squares of sizes, which are fixed
    run = cpv.convex_concave(cp.Minimize(missed), init={"x.real": [0.5, 0.5], "x.imag": [0.5, 1.0]}, tol=1e-2)
    assert run.converged
    assert run.objective == pytest.approx(-(sizes**2).sum(), abs=1e-4)  # quadratic in the residual of 1e-2
    assert abs(x.value.conj() @ signal) == pytest.approx(np.linalg.norm(signal) ** 2, abs=1e-2)  # up to a phase


def test_two_circles_in_the_smallest_square_touch_on_its_diagonal() -> None:
    centre = cp.Variable((2, 2), name="centre")
    apart = cp.norm(centre[0] - centre[1]) >= 2.0
    run = cpv.convex_concave(cp.Problem(cp.Minimize(2 * cp.max(cp.abs(centre)) + 2), [apart]), starts=2, seed=0)
    assert run.converged
    assert run.objective == pytest.approx(2.0 + np.sqrt(2.0), abs=1e-6)
    assert run.starts["violation"].max() < 1e-6


def test_points_that_coincide_at_a_low_price_part_in_directions_of_their_own() -> None:
    """Where all tangents lean one way they part along one line, a saddle of half side sqrt(2)."""
    c = cp.Variable((3, 2), name="c")
    apart = [cp.norm(c[i] - c[j]) >= 2 for i in range(3) for j in range(i)]
    run = cpv.convex_concave(cp.Problem(cp.Minimize(cp.max(cp.abs(c))), apart), starts=4, seed=0)
    assert run.objective == pytest.approx(np.cos(np.pi / 12), abs=1e-5)  # an equilateral triangle of side 2


def test_a_kink_that_is_a_maximum_is_left() -> None:
    x = cp.Variable(2, name="x")
    run = cpv.convex_concave(cp.Minimize(cp.sum_squares(x) - 2 * cp.norm1(x)), init={"x": [0.0, 0.0]})
    assert run.converged
    assert run.objective == pytest.approx(-2.0, abs=1e-8)


def test_what_cannot_hold_is_said_and_no_start_has_converged() -> None:
    x = cp.Variable(2, name="x")
    far = cp.Problem(cp.Minimize(cp.sum(x)), [cp.norm(x) >= 3, cp.max(cp.abs(x)) <= 2])
    run = cpv.convex_concave(far, init={"x": [0.5, 0.1]}, growth=100.0)
    assert not run.converged
    assert run.starts["ended"][0] == "infeasible: stands still where a constraint is violated by 1.7e-01"
    assert run.starts["violation"][0] == pytest.approx(3.0 - np.sqrt(8.0), abs=1e-6)
    assert "infeasible" in repr(run)
    with pytest.raises(SolverFailure, match="no start came through its first pass"):
        cpv.convex_concave(cp.Problem(cp.Minimize(-cp.square(x[0])), [x >= 1, x <= 0]), init={"x": [0.5, 0.5]})


def test_what_is_no_difference_is_named() -> None:
    x, y = cp.Variable(2, name="x"), cp.Variable((2, 2), name="y")
    for problem, words in (
        (cp.Problem(cp.Minimize(cp.sum_squares(y @ x - 1))), "objective: .* is no difference of convex functions"),
        (cp.Problem(cp.Minimize(cp.pos(x[0]) * cp.square(x[1] - 1))), "objective: .* is no difference of convex"),
        (cp.Problem(cp.Minimize(x[0] / x[1])), "objective: .* is no difference of convex functions"),
        (cp.Problem(cp.Minimize(cp.sum(x)), [cp.norm(y @ x) <= 1]), r"constraint\[0\]: .* is no difference"),
        (cp.Problem(cp.Minimize(cp.sum(x)), [cp.square(y) >> 0]), r"constraint\[0\]: .* is not DCP"),
    ):
        with pytest.raises(ModelError, match=words):
            cpv.convex_concave(problem)
    with pytest.raises(ModelError, match="growth > 1"):
        cpv.convex_concave(corner()[0], growth=1.0)
    with pytest.raises(ModelError, match="starts"):
        cpv.convex_concave(corner()[0], starts=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: cp.sum_squares(x) - cp.norm(x - 1),
        lambda x: -cp.max(cp.square(x)) + cp.exp(x[0]),
        lambda x: cp.sum(cp.multiply(np.array([1.0, -2.0, 0.5]), cp.square(x))),
        lambda x: cp.maximum(cp.square(x[0]) - cp.square(x[1]), x[2]),
        lambda x: np.array([[1.0, -1.0, 2.0], [0.0, 3.0, -1.0]])[0] @ cp.abs(x),
        lambda x: cp.sum(cp.sqrt(x + 5)) - cp.log_sum_exp(x),
        lambda x: x[0] * x[1] - x[2] * (x[0] + 1),
        lambda x: cp.quad_form(x, np.diag([1.0, -2.0, 0.0])),
        lambda x: -cp.sum(cp.norm(cp.vstack([x, 2 * x]), axis=0)),
        lambda x: cp.log(5 - cp.norm(x)) + cp.sqrt(cp.min(x) + 6),
    ],
)
def test_the_convex_problem_bounds_the_one_it_stands_for_and_meets_it_at_the_point(make: object) -> None:
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(make(x)))  # type: ignore[operator]
    made = Convexified(problem)
    declaration = made.declaration()
    assert declaration.problem.is_dcp()
    at = RNG.normal(size=3)
    for name, value in made.values({"x": at}).items():
        declaration.parameters[name].value = value
    x.value = at
    assert declaration.objective.value == pytest.approx(problem.objective.value, abs=1e-12)
    for _ in range(20):
        x.value = RNG.uniform(-2.0, 2.0, 3)
        assert declaration.objective.value >= problem.objective.value - 1e-12


def test_what_is_convex_stays_as_it_is_and_the_block_is_compiled_once() -> None:
    problem, _ = corner()
    run = cpv.convex_concave(problem, seed=1)
    assert run.split == {"objective": 0, "constraint[0]": 1, "constraint[1]": 0}
    priced = Convexified(problem, slack=True)
    assert priced.declaration().problem.is_dpp()
    assert PRICE in priced.declaration().parameters
    assert {one.verdict for one in run.certify(["CLARABEL"]).verdicts.values()} <= {"agrees", "loose"}


def test_a_run_is_saved_and_read_with_its_problem(tmp_path: Path) -> None:
    problem, x = corner()
    run = cpv.convex_concave(problem, seed=1)
    path = run.save(tmp_path / "run.json")
    page = run.report(tmp_path / "run.html").read_text(encoding="utf-8")
    assert "no small move improves it" in page
    assert [fact.name for fact in run.facts.facts][:3] == ["objective", "residual", "violation"]
    x.value = np.zeros(2)
    again = cpv.ConvexConcaveRun.load(path, problem)
    assert repr(again) == repr(run)
    assert again.facts.facts[0] == run.facts.facts[0]
    assert np.array_equal(x.value, run.values["x"])
    with pytest.raises(DataError, match="is of another problem: its residual is"):
        cpv.ConvexConcaveRun.load(path, cp.Problem(cp.Maximize(cp.sum(x)), problem.constraints))
    with pytest.raises(DataError):
        cpv.AlternationRun.load(path, problem)


def test_where_time_is_over_the_starts_that_were_made_are_returned() -> None:
    run = cpv.convex_concave(corner()[0], starts=3, seed=1, time_limit=1e-9)
    assert run.overdue
    assert len(run.starts) == 1


@pytest.mark.slow
def test_processes_change_nothing() -> None:
    one, two = (cpv.convex_concave(corner()[0], starts=3, seed=2, n_jobs=n) for n in (1, 2))
    assert two.starts["objective"].to_numpy() == pytest.approx(one.starts["objective"].to_numpy(), abs=1e-12)
    assert two.history["kkt"].size == one.history["kkt"].size


@pytest.mark.grid(every=3)  # a small objective and a large constraint
@pytest.mark.parametrize(("scale", "unit"), [(1e-4, 1.0), (1e4, 1.0), (1.0, 1e-3), (1.0, 1e3)])
def test_the_default_price_follows_the_scale_of_objective_and_constraints(scale: float, unit: float) -> None:
    # At a fixed price of .1 an objective of size 1e-4 stood still at its largest value on the sphere.
    c, x = np.random.default_rng(1).normal(size=4), cp.Variable(4, name="x")
    sphere = cp.Problem(cp.Minimize(scale * c @ x), [unit * cp.sum_squares(x) == unit])
    run = cpv.convex_concave(sphere, starts=2, seed=1)
    assert run.starts["converged"].all()
    assert run.starts["iterations"].max() <= 20  # 8 to 11 here
    assert run.starts["objective"].to_numpy() / scale == pytest.approx(-np.linalg.norm(c), abs=1e-4)


@pytest.mark.filterwarnings("error")  # a look that leaves the domain of an atom is no news
def test_the_default_price_is_a_number_whatever_moves() -> None:
    x, start = cp.Variable(2, name="x"), {"x": np.ones(2)}
    apart = cp.norm(x) >= 1
    assert usual_price(cp.Problem(cp.Minimize(cp.sum(x))), start) == SHARE  # nothing may be violated
    assert usual_price(cp.Problem(cp.Minimize(0), [apart]), start) == SHARE  # nothing is asked for
    assert usual_price(cp.Problem(cp.Minimize(-cp.sum(cp.log(x))), [apart]), start) > 0.0  # not everywhere finite


def test_a_linear_objective_on_the_sphere_takes_few_passes_from_the_default_price() -> None:
    c = np.random.default_rng(1).normal(size=6)
    x = cp.Variable(6, name="x")
    run = cpv.convex_concave(cp.Problem(cp.Minimize(c @ x), [cp.sum_squares(x) == 1]), starts=2, seed=0)
    assert run.starts["converged"].all()
    assert run.objective == pytest.approx(-np.linalg.norm(c), abs=1e-5)  # to the requested residual
    assert run.starts["iterations"].max() <= 30  # 9 here; hundreds at a price far above the multiplier
