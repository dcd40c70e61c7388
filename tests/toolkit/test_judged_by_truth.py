"""Verdicts follow the truth of the point: poor multipliers make no right answer WRONG, good ones no wrong one agree.

Problems are drawn around their solution: point, slacks and multipliers first, and the numbers that make these optimal.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.certify import Stored, crosscheck
from cvxpriv.certify.answers import Answer, Context
from cvxpriv.certify.cases import case_of_problem
from cvxpriv.certify.proofs import Proofs
from cvxpriv.certify.references import reference_of
from cvxpriv.certify.solver_answers import stored_answer
from cvxpriv.certify.task import rows_of
from cvxpriv.certify.verdicts import Tolerances
from cvxpriv.kkt.conic.bounds import NEARBY, lower_bound
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.numerics.arrays import Array

KINDS = ("lp", "qp", "socp")


def drawn(kind: str, rng: np.random.Generator) -> tuple[cp.Problem, Array, Array]:
    """A problem of a kind, its optimal point, and its multipliers in the order of CLARABEL's rows."""
    n, equal, less, cone = int(rng.integers(3, 8)), 1, int(rng.integers(8, 14)), 4 if kind == "socp" else 0
    spread = 10.0 ** rng.uniform(-1.5, 1.5) if rng.random() < 0.5 else 1.0
    A = rng.normal(size=(equal + less + cone, n)) * spread ** rng.uniform(-1, 1, size=n)
    best, slack, dual = rng.normal(size=n), np.zeros(equal + less + cone), np.zeros(equal + less + cone)
    dual[:equal] = rng.normal(size=equal)
    active = rng.random(less) < 0.5
    active[: n - equal] = True
    slack[equal : equal + less] = np.where(active, 0.0, rng.uniform(0.1, 2.0, less))
    dual[equal : equal + less] = np.where(active, rng.uniform(0.1, 2.0, less), 0.0)
    if cone:  # slack and multiplier on opposite rays of the cone's boundary
        ray = rng.normal(size=cone - 1)
        slack[-cone:] = np.append(np.linalg.norm(ray), ray)
        dual[-cone:] = rng.uniform(0.1, 2.0) * np.append(np.linalg.norm(ray), -ray)
    root = rng.normal(size=(n, 2)) if kind == "qp" else np.zeros((n, 1))
    P, b = root @ root.T, A @ best + slack
    c = -P @ best - A.T @ dual
    x = cp.Variable(n, name="x")
    rows = [A[:equal] @ x == b[:equal], A[equal : equal + less] @ x <= b[equal : equal + less]]
    if cone:
        rows.append(cp.SOC(b[-cone] - A[-cone] @ x, b[1 - cone :] - A[1 - cone :] @ x))
    cost = c @ x + (cp.quad_form(x, cp.psd_wrap(P)) / 2 if kind == "qp" else 0)
    return cp.Problem(cp.Minimize(cost), rows), best, dual


def spoiled_dual(dual: Array, rng: np.random.Generator) -> Array:
    noise = 10.0 ** rng.uniform(-7, 1) * rng.normal(size=dual.size)
    return (dual + noise, dual * 10.0 ** rng.uniform(-3, 3), -dual, 0.0 * dual, 1e6 * noise)[int(rng.integers(5))]


def off(problem: cp.Problem, best: Array, point: Array) -> float:
    """How far a point is from right: its worst violation, or the distance of its value from the optimum, relative."""
    program = ConeProgram.from_problem(problem, "CLARABEL")
    missed = program.layout.block_distances(program.slack(point)) / program.block_sizes(point)
    value = program.value(best)
    return max(float(missed.max()), abs(program.value(point) - value) / max(1.0, abs(value), program.terms(point)))


def judged(seed: int, kind: str) -> None:
    rng = np.random.default_rng([KINDS.index(kind), seed])
    problem, best, dual = drawn(kind, rng)

    def answer(point: Array, multipliers: Array) -> Stored:
        return Stored({"x": point}, asked=1e-9, cone=(point, multipliers), solver="CLARABEL")

    # Directions that leave the feasible set, and the way back to the mean of feasible points and further.
    other = best + 10.0 ** rng.uniform(-4, 0) * rng.normal(size=best.size)
    answers = {"right": answer(best, dual), "poor multipliers": answer(best, spoiled_dual(dual, rng))}
    if off(problem, best, other) > 1e-5:
        answers["poor point"] = answer(other, dual)
    rows = crosscheck(problem, ["CLARABEL"], answers=answers).table.set_index("solver")
    assert rows.loc["right", "verdict"] == "agrees", rows.loc["right", "reason"]
    assert rows.loc["poor multipliers", "verdict"] in ("agrees", "loose"), rows.loc["poor multipliers", "reason"]
    case = case_of_problem("alone", problem)
    for name in answers:
        said = [stored_answer(case, name, answers[name])]
        (row,) = rows_of(case, said, reference_of(case, said, None), Tolerances(), Proofs(case))
        if name == "poor point":
            assert "agrees" not in (row["verdict"], rows.loc[name, "verdict"]), (
                row["reason"],
                rows.loc[name, "reason"],
            )
        else:
            assert row["verdict"] in ("agrees", "loose"), (name, row["reason"])


def test_a_bound_over_nearby_points_is_their_optimum_where_there_is_none_over_all() -> None:
    t = cp.Variable(name="t")
    program = ConeProgram.from_problem(cp.Problem(cp.Maximize(t), [t >= 0]), "CLARABEL")
    found = lower_bound(program, np.array([3.0]), np.zeros(1))
    assert found.value is None
    assert found.near == pytest.approx(-NEARBY * (1.0 + 3.0), rel=1e-12)


def test_a_bound_over_nearby_points_says_nothing_of_those_beyond() -> None:
    far, near = 100.0 * np.ones(1), np.ones(1)
    witness = Answer("S", "optimal", 1e-8, {"x": near}, 1.0, near=1.0)
    context = Context(1.0, witnesses=[witness])
    seen = [context.right(Answer("T", "optimal", 1e-8, {"x": x}, 1.0), 1e-6) for x in (near, far)]
    assert seen == [True, False]
    assert not context.right(Answer("T", "optimal", 1e-8, {"x": near}, 1.0 + 1e-5), 1e-6)


@pytest.mark.parametrize("ball", [False, True])
def test_a_point_where_curves_touch_is_right_though_no_multipliers_prove_it(ball: bool) -> None:
    x = cp.Variable(2, name="x")
    rows = [cp.norm(x) <= 1, x[0] >= 1] if ball else [cp.exp(x[0]) <= 1, cp.square(x[1]) <= x[0]]
    points = {"right": [float(ball), 0.0], "outside": [float(ball), -0.1]}
    said = {name: Stored({"x": point}, asked=1e-8, solver="SCS") for name, point in points.items()}
    table = crosscheck(cp.Problem(cp.Minimize(x[1]), rows), answers=said).table.set_index("solver")
    assert table.loc["right", "verdict"] in ("agrees", "loose"), table.loc["right", "reason"]
    assert table.loc["outside", "verdict"] == "WRONG"


def test_the_best_point_is_not_wrong_though_its_cone_has_no_room_and_no_solver_answers() -> None:
    x = cp.Variable(2, name="x")
    rows = [cp.quad_over_lin(x[0], x[1]) <= 0]  # Duffin's: x[0] is zero
    points = {"right": {x: [0.0, 1.0]}, "outside": {x: [0.2, 1.0]}, "worse": {x: [0.0, 1.1]}}
    problem = cp.Problem(cp.Minimize(cp.exp(-x[0]) + cp.abs(x[1] - 1)), rows)
    verdicts = crosscheck(problem, ["ECOS"], answers=points).verdicts
    assert [verdicts[name].verdict == "WRONG" for name in points] == [False, True, True]


def test_rounding_in_large_entries_makes_no_point_wrong_where_multipliers_are_infinite() -> None:
    x, one = cp.Variable(2, name="x"), np.eye(3)
    matrix = x[0] * one[[1, 0, 2]] + x[1] * np.diag(one[1]) + np.diag(one[2])
    problem = cp.Problem(cp.Minimize(x[0]), [matrix >> 0])  # x[0] is zero; any other misses by 1e-9 at x[1] = 1e9
    said = {"right": {x: [0.0, 1.0]}, "endless": Stored(None, status="unbounded", solver="CLARABEL")}
    verdicts = crosscheck(problem, ["SCS"], answers=said).verdicts
    assert [verdicts[name].verdict for name in said] == ["agrees", "failed"]


def test_a_point_of_a_problem_that_is_empty_by_a_hair_is_loose_whoever_else_is_asked() -> None:
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(x[1]), [x[0] >= 1 + 1e-7, x[0] <= 1, x[1] >= x[0]])
    said = {"SCS then": Stored({"x": np.full(2, 1 + 5e-8)}, solver="SCS")}
    for solvers in (["CLARABEL"], ["OSQP"]):
        row = crosscheck(problem, solvers, answers=said).table.set_index("solver").loc["SCS then"]
        assert (row["verdict"], "proves that no point does exactly" in row["reason"]) == ("loose", True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_verdict_follows_the_point_and_not_its_multipliers(kind: str) -> None:
    judged(0, kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_verdict_follows_the_point_in_many_problems(kind: str) -> None:
    for seed in range(1, 40):
        judged(seed, kind)


def test_the_best_matrix_of_rank_one_agrees_though_its_multipliers_are_not_finite() -> None:
    b, S = np.array([1.0, 2.0]), cp.Variable((2, 2), name="S", PSD=True)
    problem = cp.Problem(cp.Minimize(cp.matrix_frac(b, S)), [cp.trace(S) <= 1])
    points = {"truth": {S: np.outer(b, b) / 5}, "lie": {S: 0.999 * np.outer(b, b) / 5}}
    verdicts = crosscheck(problem, ["SCS"], answers=points).verdicts
    assert [verdicts[name].verdict for name in points] == ["agrees", "WRONG"]


def test_a_claim_of_no_feasible_point_is_wrong_where_all_of_them_touch_a_cone() -> None:
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Maximize(x[2]), [cp.SOC(x[0], x[1:]), x[0] == x[1]])
    empty = Stored(None, status="infeasible", solver="CLARABEL")
    assert crosscheck(problem, ["ECOS"], answers={"empty": empty}).verdicts["empty"].verdict == "WRONG"
