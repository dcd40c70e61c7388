"""Alternation over any multi-convex problem: known optima, and what it refuses to call converged."""

from __future__ import annotations

import warnings
from itertools import product
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize

import cvxpriv as cpv
from cvxpriv.blocks.block import Block
from cvxpriv.blocks.convexified import Convexified
from cvxpriv.blocks.declaration import NotDPPWarning
from cvxpriv.blocks.engines import DCP, Outcome
from cvxpriv.blocks.parts import RealProblem, parts_of_problem, proposed, real_problem
from cvxpriv.errors import DataError, Disagreement, ModelError, SolverFailure
from cvxpriv.kkt import residuals
from cvxpriv.runs.alternation import PATIENCE, _Floor
from cvxpriv.schedules.history import Context
from cvxpriv.schedules.problem_starts import drawn

RNG = np.random.default_rng(4)
#: Singular values of 4, 1, .5 and .2: alternation closes a factor of 16 a pass.
DATA = (
    np.linalg.qr(RNG.normal(size=(5, 4)))[0] @ np.diag([4.0, 1.0, 0.5, 0.2]) @ np.linalg.qr(RNG.normal(size=(4, 4)))[0]
)


def rank_one() -> tuple[cp.Problem, cp.Variable, cp.Variable]:
    """Nearest matrix of rank one: known by singular values."""
    w, h = cp.Variable((5, 1), name="w"), cp.Variable((1, 4), name="h")
    return cp.Problem(cp.Minimize(cp.sum_squares(DATA - w @ h))), w, h


def test_the_nearest_matrix_of_rank_one_is_that_of_eckart_and_young() -> None:
    problem, w, h = rank_one()
    run = cpv.alternate(problem, [[w], [h]], starts=2, seed=0, tol=1e-6)
    values = np.linalg.svd(DATA, compute_uv=False)
    assert run.converged
    assert run.objective == pytest.approx((values[1:] ** 2).sum(), abs=1e-8)
    assert problem.objective.value == pytest.approx(run.objective)  # the variables hold the best values
    assert np.array_equal(w.value, run.values["w"])
    steps = run.history[run.history["block"] == "alternation"]
    assert np.diff(steps["objective"]).max() <= 1e-9  # passes never climb
    assert steps["kkt"].iloc[0] > 1e-6 >= steps["kkt"].iloc[-1]


class BlocksAlone:
    """An engine that solves blocks, and no step of all of them together."""

    name, checks = "dcp", False

    def solve(self, block: Block, state: cpv.Values) -> Outcome:
        if block.name == "all together":
            raise SolverFailure("not asked")
        return DCP().solve(block, state)


def test_blocks_that_cannot_move_alone_move_together() -> None:
    # Maximise w h with w + h <= 1: at (.3, .7) neither can grow alone, and the optimum is at (.5, .5).
    w, h = cp.Variable(nonneg=True, name="w"), cp.Variable(nonneg=True, name="h")
    problem = cp.Problem(cp.Maximize(w * h), [w + h <= 1])
    stuck = cpv.alternate(problem, [[w], [h]], init={"w": 0.3, "h": 0.7}, engine=BlocksAlone())
    assert not stuck.converged
    assert stuck.starts["iterations"].iloc[0] < 20
    assert "hold each other" in stuck.starts["ended"].iloc[0]
    assert "hold each other" in repr(stuck)
    assert stuck.residual > 0.1
    assert stuck.objective == pytest.approx(0.21, abs=1e-6)
    best = cpv.alternate(problem, [[w], [h]], init={"w": 0.3, "h": 0.7}, max_iter=20)
    assert best.converged
    assert best.objective == pytest.approx(0.25, abs=1e-6)
    assert "all together" in set(best.history["block"])


def test_a_kink_that_blocks_share_holds_no_point_that_is_not_stationary() -> None:
    a, b = cp.Variable(name="a"), cp.Variable(name="b")
    problem = cp.Problem(cp.Minimize(cp.abs(a - b) + 0.1 * cp.square(a - 1) + 0.1 * cp.square(b - 2)))
    at = {"a": 1.0, "b": 1.0}
    stuck = cpv.alternate(problem, [[a], [b]], init=at, max_iter=3, engine=BlocksAlone())
    assert "hold each other" in stuck.starts["ended"].iloc[0]
    assert stuck.residual > 0.05
    assert cpv.alternate(problem, [[a], [b]], init=at, max_iter=10).objective == pytest.approx(0.05, abs=1e-8)
    assert cpv.alternate(problem, [[a], [b]], init={"a": 1.5, "b": 1.5}, max_iter=3).converged


def completion() -> cp.Problem:
    """Entries of a matrix of rank 2 from three of five: a pass leaves nearly all of what rotates the factors."""
    random = np.random.default_rng(0)
    seen = (random.random((8, 7)) < 0.6) * 1.0
    U, V = cp.Variable((8, 2), name="U"), cp.Variable((2, 7), name="V")
    misfit = cp.multiply(seen, random.random((8, 2)) @ random.random((2, 7)) - U @ V)
    return cp.Problem(cp.Minimize(cp.sum_squares(misfit) + 0.01 * cp.sum_squares(U) + 0.01 * cp.sum_squares(V)))


def robust() -> cp.Problem:
    """A matrix of rank one with an entry that is none of it: its blocks share kinks."""
    random = np.random.default_rng(0)
    data = random.random((6, 1)) @ random.random((1, 5))
    data[0, 0] = 5.0
    U, V = cp.Variable((6, 1), name="U"), cp.Variable((1, 5), name="V")
    return cp.Problem(cp.Minimize(cp.norm1(data - U @ V) + 0.01 * cp.sum_squares(U) + 0.01 * cp.sum_squares(V)))


def control() -> cp.Problem:
    """A bilinear system: states follow from inputs, and alone neither moves."""
    x, u = cp.Variable(4, name="x"), cp.Variable(3, name="u")
    steps = [x[t + 1] == 0.9 * x[t] + 0.5 * u[t] * x[t] + 0.2 * u[t] for t in range(3)]
    return cp.Problem(cp.Minimize(cp.sum_squares(u) + cp.sum_squares(x)), [x[0] == 1, cp.abs(u) <= 1, *steps])


@pytest.mark.parametrize("make", [completion, robust, control])
def test_valleys_kinks_and_equations_that_blocks_share_take_few_passes(make: Any) -> None:
    alone = cpv.alternate(make(), seed=0, max_iter=5, engine=BlocksAlone())
    run = cpv.alternate(make(), seed=0, max_iter=40)
    assert run.converged
    assert run.starts["violation"].iloc[0] <= 1e-6
    assert run.objective <= alone.objective
    passes = run.history[run.history["block"] == "alternation"]
    assert np.diff(passes["objective"]).max() <= 1e-7  # no pass climbs
    if make is control:
        found = minimize(effort, np.zeros(3), bounds=[(-1, 1)] * 3, tol=1e-14)
        assert run.objective == pytest.approx(found.fun, abs=1e-7)


def effort(u: np.ndarray) -> float:
    """The cost of `control` as a function of its inputs alone."""
    x, cost = 1.0, 1.0 + float(u @ u)
    for one in u:
        x = 0.9 * x + 0.5 * one * x + 0.2 * one
        cost += x * x
    return cost


def test_starts_that_meet_no_constraint_in_which_blocks_meet_are_led_to_where_it_holds() -> None:
    x, y = cp.Variable(2, nonneg=True, name="x"), cp.Variable(2, name="y")
    root = 0.5 ** (1 / 3)  # of 1 / y + y^2
    bent = cp.Problem(cp.Minimize(cp.sum(x) + cp.sum_squares(y)), [cp.multiply(x, y) >= 1])
    run = cpv.alternate(bent, [[x], [y]], init={"x": np.ones(2), "y": np.array([-1.0, 1.0])}, max_iter=40)
    assert run.converged
    assert run.objective == pytest.approx(2 * (1 / root + root**2), abs=1e-6)
    P, K = cp.Variable((2, 2), PSD=True, name="P"), cp.Variable((1, 2), name="K")
    A = np.array([[0.0, 1.0], [0.0, 0.0]])
    closed = A + np.array([[0.0], [1.0]]) @ K
    feedback = cp.Problem(cp.Minimize(cp.trace(P) + cp.sum_squares(K)), [closed.T @ P + P @ closed << -np.eye(2)])
    start = {"P": np.eye(2), "K": np.array([[-0.5, 0.5]])}  # unstable: no P fits this K
    run = cpv.alternate(feedback, [[P], [K]], init=start, max_iter=40)
    assert run.converged
    assert np.linalg.eigvals(A + np.array([[0.0], [1.0]]) @ run.values["K"]).real.max() < 0.0
    assert run.objective == pytest.approx(4.235807, abs=1e-5)  # as from the other starts


def test_a_start_that_meets_no_constraint_ends_and_says_by_how_much() -> None:
    x, y = (cp.Variable(2, nonneg=True, name=name) for name in "xy")
    never = cp.Problem(cp.Minimize(cp.sum(x) + cp.sum_squares(y)), [x @ y <= -1])
    run = cpv.alternate(never, seed=0)
    assert not run.converged
    assert run.starts["iterations"].iloc[0] < 50
    assert run.starts["ended"].iloc[0].startswith("infeasible: stands still where a constraint is violated by 1.0e+00")


@pytest.mark.parametrize(
    "of",
    [
        lambda W, H, c: cp.norm1(1.0 - W @ H),
        lambda W, H, c: cp.sum(cp.multiply(W[0], cp.square(H[:, 0] - 1.0))) - cp.sum(cp.multiply(W, H.T)),
        lambda W, H, c: cp.sum(cp.square(cp.multiply(W[1], cp.exp(H[:, 1])))) * 0.1 + cp.max(c * W @ H),
        lambda W, H, c: -cp.sum(cp.sqrt(cp.multiply(W[0], c))) - cp.sum(cp.log(1.0 + cp.diag(W @ H.T))),
    ],
)
def test_a_problem_and_its_convex_one_have_the_same_slopes_at_the_point(of: Any) -> None:
    random = np.random.default_rng(3)
    W, H = cp.Variable((2, 2), nonneg=True, name="W"), cp.Variable((2, 2), nonneg=True, name="H")
    c = cp.Variable(nonneg=True, name="c")
    problem = cp.Problem(cp.Minimize(of(W, H, c)))
    point = {one.name(): np.abs(random.normal(size=one.shape)) for one in (W, H, c)}
    point["W"], point["H"] = np.array([[0.5, 0.5], [1.0, 0.3]]), np.array([[1.0, 0.2], [1.0, 0.5]])  # kinks: W @ H = 1
    made = Convexified(problem, bounding=False).block().place(point, point)
    assert made.problem.is_dcp()
    value = problem.objective.value
    assert made.objective.value == pytest.approx(value, abs=1e-12)
    for _ in range(3):
        away = {name: random.normal(size=np.shape(one)) for name, one in point.items()}
        risen = []
        for size in (1e-5, 1e-6):
            for one in (W, H, c):
                one.save_value(point[one.name()] + size * away[one.name()])
            risen.append(abs(problem.objective.value - made.objective.value) / size)
        assert risen[1] <= 0.11 * risen[0] + 1e-8


def test_a_problem_taken_apart_once_has_the_residuals_of_one_taken_apart_anew() -> None:
    random, x = np.random.default_rng(0), cp.Variable((3, 2), nonneg=True, name="x")
    y, scale = cp.Variable((2, 3), name="y"), cp.Variable(pos=True, name="scale")
    cost = cp.norm1(np.ones((3, 3)) - x @ y) + cp.sum_squares(x @ y) + cp.quad_over_lin(y[0], scale)
    problem = cp.Problem(cp.Minimize(cost), [cp.norm(y @ x, "fro") <= 2.0, cp.sum(x) == 1.0])
    declaration = Convexified(problem, bounding=False).declaration()
    for _ in range(4):
        values = {name: random.uniform(0.1, 1.0, one.shape) for name, one in declaration.variables.items()}
        declaration.give({name: random.uniform(size=p.shape) for name, p in declaration.parameters.items()}, values)
        once, anew = declaration.residuals(), residuals(declaration.problem, None, declaration.constraints)
        assert once.by_constraint == {name: pytest.approx(row) for name, row in anew.by_constraint.items()}
        assert [once.natural, once.objective] == pytest.approx([anew.natural, anew.objective])
    assert declaration._written is not None  # not DPP would be taken apart anew


def test_rows_that_vanish_in_two_blocks_hold_no_point_that_is_not_stationary() -> None:
    generator = np.random.default_rng(5)
    generator.uniform(size=22), generator.normal(size=30)
    points = generator.normal(size=(7, 2))  # two of them come to lie on the line between the centres
    centre, share = cp.Variable((2, 2), name="C"), cp.Variable((7, 2), name="S", nonneg=True)
    far = cp.sum(cp.norm(points - share @ centre, axis=1))
    problem = cp.Problem(cp.Minimize(far), [cp.sum(share, axis=1) == 1, centre <= 2, centre >= -2])
    run = cpv.alternate(problem, [[centre], [share]], seed=1, max_iter=2)
    assert not run.converged  # a joint step falls by 0.15 for each unit of its length


def test_a_saddle_is_stationary_and_other_starts_are_better() -> None:
    problem, w, h = rank_one()
    left, values, right = np.linalg.svd(DATA, full_matrices=False)
    saddle = {"w": values[1] * left[:, 1:2], "h": right[1:2]}
    found = cpv.alternate(problem, [[w], [h]], init=[saddle, {"w": np.ones((5, 1)), "h": np.ones((1, 4))}], tol=1e-6)
    assert found.starts["converged"].all()
    assert found.starts["objective"][0] == pytest.approx((values[[0, 2, 3]] ** 2).sum(), rel=1e-8)
    assert found.start == 1


def test_a_nonnegative_factorisation_of_a_matrix_that_has_one_is_found() -> None:
    data = RNG.random((6, 2)) @ RNG.random((2, 5))
    W, H = cp.Variable((6, 2), name="W"), cp.Variable((2, 5), name="H")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(data - W @ H)), [W >= 0, H >= 0])
    run = cpv.alternate(problem, [[W], [H]], starts=2, seed=0, tol=1e-4)
    assert run.converged
    assert run.objective < 1e-6
    assert min(run.values["W"].min(), run.values["H"].min()) >= -1e-8
    assert {one.verdict for one in run.certify(["CLARABEL", "OSQP"]).verdicts.values()} <= {"agrees", "loose"}


def test_a_signal_and_its_filter_are_found_from_their_convolution() -> None:
    signal, kernel = np.array([0.0, 2.0, 0.0, 0.0, 1.0, 0.0]), np.array([0.6, 0.3, 0.1])
    x, k = cp.Variable(6, nonneg=True, name="x"), cp.Variable(3, nonneg=True, name="k")
    spread = sum(k[j] * cp.hstack([np.zeros(j), x, np.zeros(2 - j)]) for j in range(3))
    residual = cp.sum_squares(np.convolve(kernel, signal) - spread)
    # Only what is known of the filter tells it from a shifted or a wider one: it falls.
    problem = cp.Problem(cp.Minimize(residual), [cp.sum(k) == 1, k[0] >= 0.5, x[[0, 2, 3, 5]] == 0])
    run = cpv.alternate(problem, [[x], [k]], seed=0, tol=1e-5, max_iter=100)
    assert run.converged
    assert run.values["k"] == pytest.approx(kernel, abs=1e-3)
    assert run.values["x"] == pytest.approx(signal, abs=1e-3)


def k_means(points: np.ndarray, clusters: int) -> tuple[cp.Problem, cp.Variable, cp.Variable]:
    """Shares of points in clusters, and the clusters' centres: linear in the ones, quadratic in the others."""
    share = cp.Variable((len(points), clusters), bounds=[0, 1], name="share")
    centre = cp.Variable((clusters, points.shape[1]), name="centre")
    one = np.ones((len(points), 1))
    far = [cp.sum(cp.square(points - one @ centre[k : k + 1]), axis=1) for k in range(clusters)]
    cost = sum(share[:, k] @ far[k] for k in range(clusters))
    return cp.Problem(cp.Minimize(cost), [cp.sum(share, axis=1) == 1]), share, centre


def test_k_means_finds_the_best_of_all_assignments() -> None:
    points = RNG.normal(size=(7, 2)) + np.repeat([[0.0, 0.0], [3.0, 3.0]], [4, 3], axis=0)
    problem, share, centre = k_means(points, 2)
    run = cpv.alternate(problem, [[share], [centre]], starts=4, seed=1)
    best = min(
        sum(
            ((points[chosen == k] - points[chosen == k].mean(axis=0)) ** 2).sum() for k in (0, 1) if (chosen == k).any()
        )
        for chosen in map(np.array, product((0, 1), repeat=7))
    )
    assert run.converged
    assert run.objective == pytest.approx(best, rel=1e-6)


def test_blocks_are_proposed_and_checked() -> None:
    problem, share, centre = k_means(DATA, 2)
    assert [[one.name() for one in group] for group in proposed(problem)] == [["share"], ["centre"]]
    for part in parts_of_problem(problem, [[share], [centre]]):
        assert part.declaration().problem.is_dpp()  # what is held is one Parameter, and each block is compiled once
    with pytest.raises(ModelError, match=r"block 'share, centre' is not convex where nothing is held"):
        cpv.alternate(problem, [[share, centre]])
    with pytest.raises(ModelError, match=r"centre is in none: give each variable a block"):
        cpv.alternate(problem, [[share]])
    with pytest.raises(ModelError, match=r"each is a list of variables of the problem"):
        cpv.alternate(problem, [[share], [centre], [cp.Variable()]])
    a, b = cp.Variable(name="same"), cp.Variable(name="same")
    with pytest.raises(ModelError, match=r"two variables are called 'same'"):
        cpv.alternate(cp.Problem(cp.Minimize(cp.square(a * b))))


def test_the_nearest_complex_matrix_of_rank_one_is_that_of_its_singular_values(tmp_path: Path) -> None:
    data = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))
    data *= np.array([3.0, 0.5, 0.2])[:, None]
    a, b = cp.Variable((3, 1), complex=True, name="a"), cp.Variable((1, 4), complex=True, name="b")
    # A pass leaves (1 - 2 * weight / values[0])^2 of what the norms of a and b differ by, and values[0] is about 6.
    distance = cp.sum_squares(cp.abs(a @ b - data)) + 2.0 * cp.sum_squares(cp.abs(a)) + 2.0 * cp.sum_squares(cp.abs(b))
    problem = cp.Problem(cp.Minimize(distance))
    # Cone solvers leave a residual of about 1e-5 where the problem is of size 30.
    run = cpv.alternate(problem, [[a], [b]], starts=2, seed=0, tol=1e-4)
    values = np.linalg.svd(data, compute_uv=False)
    # A rank of one at weight s costs (values[0] - s)^2 + 2 * 2 * s: s = values[0] - 2.
    assert run.converged
    assert run.objective == pytest.approx((values[1:] ** 2).sum() + 4.0 * values[0] - 4.0, abs=1e-7)
    assert sorted(run.values) == ["a.imag", "a.real", "b.imag", "b.real"]
    assert np.array_equal(a.value, run.values["a.real"] + 1j * run.values["a.imag"])
    assert problem.objective.value == pytest.approx(run.objective)
    path = run.save(tmp_path / "run.json")
    a.value = np.zeros((3, 1))
    again = cpv.AlternationRun.load(path, problem)
    assert repr(again) == repr(run)
    assert np.array_equal(a.value, run.values["a.real"] + 1j * run.values["a.imag"])


def test_a_problem_with_complex_numbers_is_one_of_their_parts() -> None:
    z, w = cp.Variable(2, complex=True, name="z"), cp.Variable(2, imag=True, name="w")
    matrix, given = cp.Variable((2, 2), hermitian=True, name="H"), cp.Parameter(complex=True, value=1 + 2j)
    whole = cp.Problem(
        cp.Minimize(cp.sum_squares(cp.multiply(z, w) - given) + cp.real(cp.trace(matrix))),
        [cp.norm(z) <= 1, matrix >> 0, cp.real(z) >= w[0] * 1j, matrix[0, 1] == given * z[0]],
    )
    real = real_problem(whole)
    assert isinstance(real, RealProblem)
    for one in real.variables():
        entries = RNG.normal(size=one.shape)
        one.value = entries + entries.T if one.attributes["symmetric"] else entries
    real.give_back()
    assert real.objective.value == pytest.approx(whole.objective.value, rel=1e-12)
    assert np.allclose(matrix.value, matrix.value.conj().T)
    assert not np.allclose(matrix.value.imag, 0.0)
    assert real_problem(real) is real
    given.value = None
    with pytest.raises(ModelError, match="has no value: set it"):
        real_problem(whole)


def test_whole_numbers_are_refused_with_the_way_out() -> None:
    w, h = cp.Variable(2, boolean=True, name="w"), cp.Variable(2, name="h")
    with pytest.raises(ModelError, match=r"'w' takes whole numbers.* relax it, cp.Variable\(bounds=\[0, 1\]\)"):
        cpv.alternate(cp.Problem(cp.Minimize(cp.square(w @ h - 1))))


def test_a_sign_that_only_a_constraint_says_is_asked_for() -> None:
    w, h = cp.Variable(name="w"), cp.Variable(name="h")
    problem = cp.Problem(cp.Minimize(w * cp.square(h - 1) + cp.square(w - 1)), [w >= 0])
    with pytest.raises(ModelError, match=r"block 'h' is not convex where w is held: .* declare it"):
        cpv.alternate(problem, [[w], [h]])


def test_random_starts_meet_the_constraints_on_single_variables() -> None:
    x, S = cp.Variable(3, name="x"), cp.Variable((2, 2), PSD=True, name="S")
    y, z = cp.Variable(2, bounds=[-1, 2], name="y"), cp.Variable(nonpos=True, name="z")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x) * 1 + cp.trace(S) + cp.sum(y) + z), [cp.sum(x) == 1, x >= 0])
    values = drawn(problem, np.random.default_rng(0))
    assert values["x"].sum() == pytest.approx(1.0, abs=1e-7)
    assert values["x"].min() >= -1e-7
    assert np.linalg.eigvalsh(values["S"]).min() >= 0.0
    assert (np.abs(values["y"] - 0.5) <= 1.5).all()
    assert values["z"] <= 0.0
    with pytest.raises(ModelError, match="no value of 'x' meets the constraints on it alone"):
        drawn(cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1, x <= 0]), np.random.default_rng(0))


def test_random_starts_meet_constraints_that_couple_variables_and_lie_within_domains() -> None:
    a, b, p = cp.Variable(2, name="a"), cp.Variable(2, name="b"), cp.Variable(3, name="p")
    held = [cp.norm(cp.hstack([a, b])) <= 1, cp.sum(p) == 1]
    problem = cp.Problem(cp.Maximize(a @ b + cp.sum(cp.entr(p)) + cp.sum(cp.log(p))), held)
    values = drawn(problem, np.random.default_rng(0))
    assert np.linalg.norm([values["a"], values["b"]]) <= 1 + 1e-6
    assert values["p"].sum() == pytest.approx(1.0, abs=1e-6)
    assert values["p"].min() > 1e-4


def test_the_users_values_are_the_first_start() -> None:
    problem, w, h = rank_one()
    w.value, h.value = np.ones((5, 1)), np.ones((1, 4))
    run = cpv.alternate(problem, starts=2, max_iter=1)
    assert run.starts["origin"].tolist() == ["values", "random"]
    for bad, words in (
        ({"w": np.ones((5, 1))}, "no value for 'h'"),
        ({"w": np.ones(5), "h": np.ones((1, 4))}, "shape"),
    ):
        with pytest.raises(ModelError, match=words):
            cpv.alternate(problem, init=bad)


def test_a_run_is_saved_and_read_with_its_problem(tmp_path: Path) -> None:
    problem, w, h = rank_one()
    run = cpv.alternate(problem, [[w], [h]], seed=0)
    path = run.save(tmp_path / "run.json")
    again = cpv.AlternationRun.load(path, problem)
    assert again.objective == run.objective
    assert repr(again) == repr(run)
    assert [[one.name() for one in group] for group in again.groups] == [["w"], ["h"]]
    other = cp.Problem(cp.Minimize(cp.sum_squares(2 * DATA - w @ h)))
    with pytest.raises(DataError, match="is of another problem: its residual is"):
        cpv.AlternationRun.load(path, other)
    with pytest.raises(DataError, match="does not hold the variables of this one"):
        cpv.AlternationRun.load(path, cp.Problem(cp.Minimize(cp.square(w[0, 0]))))


def test_a_run_shows_itself_as_html_and_as_a_picture_of_its_own_residuals() -> None:
    problem, w, h = rank_one()
    run = cpv.alternate(problem, [[w], [h]], starts=1, seed=0)
    page = run._repr_html_()
    assert "AlternationRun of alternation" in page
    assert all(f"<th>{fact.title}</th>" in page for fact in run.facts.main)
    axes = run.plot()
    known = run.history["kkt"].dropna()
    assert axes.lines[0].get_ydata().tolist() == known.tolist()
    assert axes.get_ylabel() == "KKT residual"
    assert run.plot(axes) is axes
    assert len(axes.lines) == 2


def test_exact_updates_of_single_blocks_take_the_place_of_a_solver_and_are_checked() -> None:
    problem, _, _ = rank_one()

    def rows(held: cpv.Values) -> dict[str, np.ndarray]:  # least squares in w
        return {"w": DATA @ held["h"].T / (held["h"] ** 2).sum()}

    run = cpv.alternate(problem, updates={"w": rows}, engine="checked", max_iter=4)
    steps = run.history.set_index("block")["engine"]
    assert set(steps["w"]) == {"checked"}
    plain = cpv.alternate(rank_one()[0], updates={"w": rows}, seed=0)
    assert set(plain.history.set_index("block")["engine"]["w"]) == {"closed_form"}
    assert set(plain.history.set_index("block")["engine"]["h"]) == {"dcp"}
    assert plain.objective == pytest.approx(1.0 + 0.25 + 0.04, abs=1e-8)  # the other singular values, squared
    with pytest.raises(Disagreement, match="block 'w', start 0: the closed form reaches"):
        cpv.alternate(rank_one()[0], updates={"w": lambda held: {"w": 1.1 * rows(held)["w"]}}, engine="checked")
    with pytest.raises(ModelError, match="updates: 'v' is no block"):
        cpv.alternate(rank_one()[0], updates={"v": rows})
    with pytest.raises(ModelError, match="must return finite values of w"):
        cpv.alternate(rank_one()[0], updates={"w": lambda held: {"h": held["h"]}})


@pytest.mark.slow
def test_processes_change_nothing() -> None:
    one, two = (cpv.alternate(rank_one()[0], starts=3, seed=2, n_jobs=n) for n in (1, 2))
    assert one.starts["origin"].tolist() == ["random"] * 3
    assert two.starts["objective"].to_numpy() == pytest.approx(one.starts["objective"].to_numpy(), abs=1e-12)


def test_a_block_without_an_optimum_says_what_is_missing() -> None:
    x, y = cp.Variable(name="x", value=0.0), cp.Variable(name="y", value=1.0)
    with pytest.raises(SolverFailure, match="block 'x': .*unbounded.* the objective improves without end"):
        cpv.alternate(cp.Problem(cp.Minimize(x * y)), [[x], [y]])
    kept = [x + y >= 1, x <= 0, y <= 0.5]
    with pytest.raises(SolverFailure, match="block 'x': .*infeasible.* no point meets the constraints"):
        cpv.alternate(cp.Problem(cp.Minimize(x * y), kept), [[x], [y]])


def test_blocks_that_cvxpy_compiles_again_are_named_once_and_a_users_parameter_is_no_reason() -> None:
    a, b, c = (cp.Variable(2, name=name, value=np.ones(2)) for name in "abc")
    weight = cp.Parameter(nonneg=True, value=0.2)
    products = sum(cp.sum_squares(c[k] * cp.multiply(a, b) - 1.0) for k in range(2))
    bent = cp.Problem(cp.Minimize(products + cp.sum_squares(a) + cp.sum_squares(b) + cp.sum_squares(c)))
    with pytest.warns(NotDPPWarning, match="compiles 'a', 'b' again") as said:
        cpv.alternate(bent, [[a], [b], [c]], max_iter=2)
    assert len(said) == 1
    flat = cp.Problem(cp.Minimize(cp.sum_squares(cp.multiply(a, b) - 1.0) + weight * (cp.norm1(a) + cp.norm1(b))))
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotDPPWarning)
        low = cpv.alternate(flat, [[a], [b]]).objective
        weight.value = 0.4
        assert cpv.alternate(flat, [[a], [b]]).objective > low + 0.1
    weight.value = None
    with pytest.raises(ModelError, match="has no value: set it"):
        cpv.alternate(flat, [[a], [b]])


def test_a_start_that_drifts_at_a_solvers_floor_is_stopped_and_one_that_comes_nearer_is_not() -> None:
    floor = _Floor(Context(DCP(), starts=np.arange(3)))
    random = np.random.default_rng(0)
    for passes in range(1, 3 * PATIENCE):
        residuals = 1.2e-5 * random.uniform(1.0, 1.5), 0.99**passes, 1e-3
        objectives = 2.0 + 1e-10 * random.normal(), 2.0, 2.0 + 0.999**passes  # the last still falls
        measured = {"objective": np.array(objectives), "kkt": np.array(residuals)}
        stands = floor(passes, {}, {}, measured)
        assert stands.tolist() == [passes > 2 * PATIENCE, False, False]
    assert floor.reached.keys() == {0}
    assert 1.2e-5 <= floor.reached[0] <= 1.8e-5
