"""Tangents: bounds from below for any convex f, refined until the gap is small, and the term that hides them."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.blocks.refinement import Refinement, Round, solve_refined
from cvxpriv.certify import crosscheck
from cvxpriv.divergences import FDivergence, divergence
from cvxpriv.divergences.term import DivergenceTerm, TermForm, refined, starting_points, tangents
from cvxpriv.errors import ModelError, SolverFailure
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.chain import Attempt, Solution

NAMES = [
    "mutual-information",
    "reverse-kl",
    "jensen-shannon",
    "le-cam",
    "hellinger",
    "chi-square",
    "neyman",
    "total-variation",
    "alpha:3",
    "alpha:-1.5",
    "hockey-stick:1.5",
]
#: Divergences with a form by hand: an exponential cone, a norm, a power cone.
OTHERS = ["exp(t-1) - t", "sqrt(1+t**2) - (1+t)/sqrt(2)", "(t-1)**4"]
ROWS, COLUMNS = 4, 3
PRIOR = np.array([0.1, 0.2, 0.3, 0.4])
WEIGHT = np.tile(PRIOR[:, None], COLUMNS)
COST = np.random.default_rng(7).uniform(0.0, 2.0, (ROWS, COLUMNS))
VIEW = {"cost": COST}
#: Relative, of `Refinement`; solvers add about 1e-8.
GAP = 5e-8


def without_form(name: str) -> FDivergence:
    return replace(divergence(name), expression=None, auxiliary=None)


def other_form(text: str, p: cp.Expression, q: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
    """A DCP form of one of `OTHERS`, by hand."""
    p, q = cp.vec(p, order="C"), cp.vec(q, order="C")
    if text.startswith("sqrt"):
        return cp.sum(cp.norm(cp.vstack([p, q]), axis=0)) - cp.sum(p + q) / np.sqrt(2.0), []
    z = cp.Variable(p.shape[0])
    if text.startswith("exp"):
        return cp.sum(z) / np.e - cp.sum(q), [cp.ExpCone(q, p, z)]
    return cp.sum(z), [cp.PowCone3D(z, p, q - p, 0.25)]


def by_hand(text: str) -> FDivergence:
    """One of `OTHERS` as a user's object: with a form, and without the values of what it brings along."""
    return replace(divergence(text), expression=lambda p, q: other_form(text, p, q), auxiliary=None)


def numbers(mechanism: Array) -> tuple[Array, Array]:
    return WEIGHT * mechanism, WEIGHT * (PRIOR @ mechanism)


def joint(f: FDivergence, maximise: bool = False, **limits: float) -> Block:
    """Minimise D_f(mechanism, its marginal), weighted by the prior, and a cost: the shape of IAS (10)."""
    term = DivergenceTerm(f, (ROWS, COLUMNS))

    def declare(_: object) -> Declaration:
        mechanism = cp.Variable((ROWS, COLUMNS), name="mechanism")
        cost = cp.Parameter((ROWS, COLUMNS), name="cost")
        form = term.declare(
            cp.multiply(WEIGHT, mechanism), cp.multiply(WEIGHT, np.ones((ROWS, ROWS)) @ cp.multiply(WEIGHT, mechanism))
        )
        objective = form.expression + cp.sum(cp.multiply(cost, mechanism))
        return Declaration(
            cp.Maximize(-objective) if maximise else cp.Minimize(objective),
            {"mass": cp.sum(mechanism, axis=1) == 1, "floor": mechanism >= 1e-3, **form.constraints},
            {"mechanism": mechanism, **form.variables},
            {"cost": cost, **form.parameters},
            mechanism,
        )

    def values(mechanism: Array) -> Values:
        return {"mechanism": mechanism, **term.values(*numbers(mechanism))}

    def repair(found: Values, view: Values) -> Values:
        above = np.maximum(found["mechanism"] - 1e-3, 0.0)
        return values(1e-3 + (1.0 - COLUMNS * 1e-3) * above / above.sum(axis=1, keepdims=True))

    return Block(
        name="joint",
        reads=frozenset({"cost"}),
        writes=frozenset({"mechanism"}),
        declare=declare,
        parameters=lambda view: {"cost": view["cost"], **term.parameters(view)},
        embed=lambda point, at: values(point["mechanism"]),
        repair=repair,
        write=lambda solution, view: {"mechanism": solution.values["mechanism"]},
        refinement=term.refinement(lambda found, view: numbers(found["mechanism"]), **limits),
    )


@pytest.mark.parametrize("text", [*NAMES, *OTHERS, "max(t, 1/t) - 1", "exp(1/t) - e"])
def test_tangents_lie_below_and_touch(text: str) -> None:
    f, t = divergence(text), np.geomspace(0.02, 50.0, 101)
    points = starting_points(f, 1)[0]
    of_p, of_q = tangents(f, points)
    height = of_p + of_q * t[:, None]
    assert (height <= f.f(t)[:, None] + 1e-9 * np.abs(height).clip(1.0)).all()  # rounding of f at t = 1000
    inside = points[(points > 0.02) & (points < 50.0)]
    own_p, own_q = tangents(f, inside)
    assert own_p + own_q * inside == pytest.approx(f.f(inside), rel=1e-9, abs=1e-9)


def test_a_tangent_where_f_overflows_is_replaced_by_the_one_at_1() -> None:
    f = FDivergence("steep", f=lambda t: np.exp(t) - np.e, fprime=np.exp)
    of_p, of_q = tangents(f, np.array([1.0, 1e6]))
    assert np.isfinite(of_p).all()
    assert (of_p[0], of_q[0]) == (of_p[1], of_q[1])


def test_new_tangents_go_to_the_cells_own_t_and_halfway_to_its_neighbours() -> None:
    f = divergence("js")
    points = starting_points(f, 2)
    p, q = np.array([0.2, 0.0]), np.array([0.3, 0.0])
    new = refined(f, points, p, q)
    log_t = np.log(1.5)
    away = np.log(points[0]) - log_t
    expected = np.exp([log_t, log_t + away[away < 0].max() / 2, log_t + away[away > 0].min() / 2])
    assert sorted(set(new[0]) - set(points[0])) == pytest.approx(sorted(expected), rel=1e-12)
    assert new[1].tolist() == points[1].tolist()  # a cell without mass keeps its own
    assert new[0, :6].tolist() == points[0, :6].tolist()  # six stay for good
    assert new.shape == points.shape


@pytest.mark.parametrize("name", NAMES)
def test_tangents_reach_what_the_dcp_form_reaches(name: str) -> None:
    _, exact = joint(divergence(name)).solve(VIEW)
    _, cut = joint(without_form(name)).solve(VIEW)
    slack = 2e-8 * max(1.0, abs(exact.objective))  # two solvers' own accuracy
    assert cut.gap is not None
    assert cut.bound is not None
    assert cut.gap <= GAP * max(1.0, abs(cut.objective))
    assert cut.bound - slack <= exact.objective <= cut.objective + slack
    assert cut.rounds <= 12  # 40 is the limit; each round gains a factor of 16


@pytest.mark.parametrize("text", OTHERS)
def test_an_f_without_a_form_reaches_what_a_form_by_hand_reaches(text: str) -> None:
    _, cut = joint(without_form(text)).solve(VIEW)
    _, exact = joint(by_hand(text)).solve(VIEW)
    assert cut.objective == pytest.approx(exact.objective, rel=2 * GAP, abs=2 * GAP)
    assert cut.reached


def test_a_maximisation_is_bounded_from_above() -> None:
    _, least = joint(without_form("js")).solve(VIEW)
    _, most = joint(without_form("js"), maximise=True).solve(VIEW)
    assert most.bound is not None
    assert most.bound >= most.objective == pytest.approx(-least.objective, abs=2 * GAP)


def test_all_rounds_use_one_compiled_problem() -> None:
    block = joint(without_form("js"))
    _, solution = block.solve(VIEW)
    assert solution.rounds > 2
    assert len(block._compiled) == len(block._programs) == 1


@pytest.mark.parametrize("fast", [True, False])
def test_the_fast_path_and_cvxpy_reach_the_same_bound(fast: bool) -> None:
    _, solution = joint(without_form("le-cam")).solve(VIEW, fast=fast)
    assert solution.bound == pytest.approx(0.5 * (solution.bound + solution.objective), abs=GAP)  # type: ignore[operator]
    assert solution.reached


def test_the_last_cuts_can_be_handed_on() -> None:
    block = joint(without_form("js"))
    _, first = block.solve(VIEW)
    _, second = block.solve({**VIEW, **first.refined})
    assert (first.rounds > 2, second.rounds) == (True, 1)
    assert second.objective == pytest.approx(first.objective, abs=2 * GAP)


def test_the_declared_objective_is_the_true_one_whatever_the_cuts() -> None:
    f, mechanism = without_form("js"), np.full((ROWS, COLUMNS), 0.2) + np.eye(ROWS, COLUMNS) * 0.4
    mechanism /= mechanism.sum(axis=1, keepdims=True)
    true = float(f.between(*numbers(mechanism)) + (COST * mechanism).sum())
    assert joint(f).objective({"mechanism": mechanism}, VIEW) == pytest.approx(true, abs=1e-14)


def test_a_gap_that_stays_open_stands_in_the_status() -> None:
    _, solution = joint(without_form("js"), rounds=2).solve(VIEW)
    assert not solution.reached
    assert solution.status.startswith("optimal, gap ")
    assert solution.status.endswith(" after 2 rounds")


def test_rounds_end_when_they_bring_nothing_more() -> None:
    _, solution = joint(without_form("js"), gap=0.0, rounds=1000).solve(VIEW)
    assert solution.rounds < 60
    assert solution.gap is not None
    assert abs(solution.gap) < 1e-7  # what CLARABEL's own accuracy leaves


def test_a_cross_check_takes_the_last_cuts_and_certifies_the_bound() -> None:
    block = joint(without_form("js"))
    _, solution = block.solve(VIEW)
    check = crosscheck(block, ["CLARABEL", "ECOS", "HIGHS"], at=VIEW)
    assert set(check.table["verdict"]) == {"agrees"}
    certified = check.table.set_index("solver")["bound"]
    assert solution.objective - GAP * 2 <= certified["HIGHS"] <= solution.objective


def test_a_constraint_works_with_tangents() -> None:
    cap = 0.5
    _, exact = joint(divergence("js")).constrain("cap", lambda mechanism: mechanism <= cap).solve(VIEW)
    values, cut = joint(without_form("js")).constrain("cap", lambda mechanism: mechanism <= cap).solve(VIEW)
    assert values["mechanism"].max() <= cap + 1e-6
    # repair does not know the cap: both points are a hair outside, which the objective sees
    assert cut.objective == pytest.approx(exact.objective, abs=1e-6)


def single(f: FDivergence, fixed: str, quadratic: float) -> Block:
    """One of p and q is given, the other is near a target: the shape of IAS (20) and (21)."""
    term = DivergenceTerm(f, (4,), fixed=fixed)  # type: ignore[arg-type]
    given = {fixed: PRIOR}

    def pair(x: Array) -> tuple[Array, Array]:
        return (x, PRIOR) if fixed == "q" else (PRIOR, x)

    def declare(_: object) -> Declaration:
        x = cp.Variable(4, name="x")
        form = term.declare(*((x, cp.Constant(PRIOR)) if fixed == "q" else (cp.Constant(PRIOR), x)))
        objective = form.expression + quadratic * cp.sum_squares(x - np.array([0.7, 0.1, 0.1, 0.1]))
        return Declaration(
            cp.Minimize(objective),
            {"mass": cp.sum(x) == 1, "floor": x >= 0, **form.constraints},
            {"x": x, **form.variables},
            form.parameters,
        )

    def values(x: Array) -> Values:
        x = np.maximum(x, 1e-12)
        return {"x": x / x.sum(), **term.values(*pair(x / x.sum()))}

    return Block(
        name="single",
        reads=frozenset(),
        writes=frozenset({"x"}),
        declare=declare,
        parameters=lambda view: term.parameters(view, **given),
        embed=lambda point, at: values(point["x"]),
        repair=lambda found, view: values(found["x"]),
        write=lambda solution, view: {"x": solution.values["x"]},
        refinement=term.refinement(lambda found, view: pair(found["x"])),
    )


@pytest.mark.parametrize("fixed", ["p", "q"])
@pytest.mark.parametrize("name", ["jensen-shannon", "neyman", "total-variation"])
def test_with_one_of_the_two_given_tangents_reach_what_the_form_reaches(name: str, fixed: str) -> None:
    exact_values, exact = single(divergence(name), fixed, 3.0).solve({})
    cut_values, cut = single(without_form(name), fixed, 3.0).solve({})
    assert cut.reached
    assert cut.objective == pytest.approx(exact.objective, abs=2 * GAP)
    assert cut_values["x"] == pytest.approx(exact_values["x"], abs=5e-4)  # about the root of the gap


def test_what_a_form_of_ones_own_brings_along_is_found_where_it_is_not_said() -> None:
    text, p, q = "exp(t-1) - t", np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.3, 0.1, 0.2, 0.4])
    term = DivergenceTerm(by_hand(text), (4,), name="mine")
    held = term.values(p, q)
    assert list(held) == ["mine/value"]
    assert held["mine/value"] == pytest.approx(p * np.exp(q / p), abs=1e-6)  # a solver's accuracy
    nowhere = term.values(np.array([1e-3, 0.5, 0.3, 0.199]), np.array([1.0, 0.0, 0.0, 0.0]))  # e^1000
    assert np.isnan(nowhere["mine/value"]).all()


def test_a_form_that_brings_nothing_needs_no_values_parameters_or_refinement() -> None:
    term = DivergenceTerm(divergence("js"), (2, 2))
    form = term.declare(cp.Variable((2, 2)), cp.Variable((2, 2)))
    assert isinstance(form, TermForm)
    assert (dict(form.variables), dict(form.parameters), term.parameters({})) == ({}, {}, {})
    assert term.values(np.ones((2, 2)), np.ones((2, 2))) == {}
    assert term.refinement(lambda found, view: (found["p"], found["q"])) is None


def test_wrong_shapes_and_missing_numbers_are_refused() -> None:
    with pytest.raises(ModelError, match=r"P and Q have shapes \(2,\) and \(3,\): both must have \(2,\)"):
        DivergenceTerm(divergence("js"), (2,)).declare(cp.Variable(2), cp.Variable(3))
    with pytest.raises(ModelError, match="q=None, but it is fixed: pass its numbers"):
        DivergenceTerm(without_form("js"), (2,), fixed="q").parameters({})


def test_the_best_point_and_the_best_bound_of_all_rounds_are_kept_and_a_failure_ends_them() -> None:
    points, bounds = [3.0, 1.0, 2.0], [-1.0, 0.5, 0.2]

    def once(view: Values) -> Round:
        count = int(view.get("count", np.zeros(()))) % 4
        if count == 3:
            raise SolverFailure("no more")
        return Round(Solution({}, {}, points[count], (Attempt("X", "optimal", 0.0),)), {}, bounds[count], False)

    refinement = Refinement(lambda found, view: {"count": np.asarray(view.get("count", np.zeros(())) + 1.0)})
    solution = solve_refined(refinement, once, {})
    assert (solution.objective, solution.bound, solution.gap, solution.rounds) == (1.0, 0.5, 0.5, 3)
    assert not solution.reached
