"""Cross-checks: what goes in, what is refused before any solve, isolation, references, and what comes out."""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import threading
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.certify.answers import Context, Stored
from cvxpriv.certify.cases import Case, case_of_problem
from cvxpriv.certify.check import CLOSED_FORM, crosscheck
from cvxpriv.certify.corpus.liars import LIARS
from cvxpriv.certify.solver_answers import claimed_answer
from cvxpriv.certify.verdicts import Tolerances, Verdict, judge
from cvxpriv.errors import DataError, Disagreement, ModelError
from cvxpriv.solvers.isolation import _read, _write, isolated, work
from cvxpriv.solvers.place import Place
from cvxpriv.solvers.registry import installed

SHARES = np.array([0.2, 0.3, 0.5])


def entropy() -> cp.Problem:
    """Minimise KL(x || shares) on the simplex: x = shares, value 0."""
    x = cp.Variable(3, name="x")
    return cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(x, SHARES))), [cp.sum(x) == 1])


def least_squares() -> cp.Problem:
    """Project (1, 2) on x0 + x1 = 1: (0, 1), value 2."""
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(cp.sum_squares(x - np.array([1, 2]))), [cp.sum(x) == 1])


def block(offset: float = 0.0) -> Block:
    """Minimise KL(x || w) over the simplex; the exact update is w itself, which a test may spoil by an offset."""

    def declare(_: Any) -> Declaration:
        x, w = cp.Variable(3, name="x"), cp.Parameter(3, nonneg=True, name="w")
        return Declaration(cp.Minimize(cp.sum(cp.rel_entr(x, w))), {"sum to 1": cp.sum(x) == 1}, {"x": x}, {"w": w})

    return Block(
        name="share",
        reads=frozenset({"w"}),
        writes=frozenset({"x"}),
        declare=declare,
        parameters=lambda view: {"w": view["w"]},
        embed=lambda point, at: {"x": point["x"]},
        repair=lambda values, at: {"x": np.maximum(values["x"], 0) / np.maximum(values["x"], 0).sum()},
        write=lambda solution, view: {"x": solution.values["x"]},
        direct=lambda state: {"x": state["w"] + offset * np.array([1.0, -1.0, 0.0])},
    )


# What goes in


def test_a_problem_a_function_a_mapping_and_a_block_are_all_cases() -> None:
    assert crosscheck(least_squares(), ["CLARABEL"]).table["case"].tolist() == ["problem"]
    assert crosscheck(least_squares, ["CLARABEL"]).table["case"].tolist() == ["least_squares"]
    several = crosscheck({"a": least_squares(), "b": entropy}, ["CLARABEL"])
    assert several.table["case"].tolist() == ["a", "b"]
    found = crosscheck(block(), ["CLARABEL"], at={"w": SHARES})
    assert found.table["solver"].tolist() == [CLOSED_FORM, "CLARABEL"]
    assert found.references["share"].startswith("closed form")


def test_none_asks_every_installed_solver_that_takes_the_cones_and_a_named_one_that_does_not_is_listed() -> None:
    assert set(crosscheck(least_squares()).table["solver"]) == set(installed())  # those of the extra as well
    assert {"CLARABEL", "ECOS", "SCS", "OSQP", "HIGHS"} <= set(installed())
    found = crosscheck({"entropy": entropy(), "squares": least_squares()}, ["OSQP", "CLARABEL", "CLARABEL"])
    assert list(zip(found.table["case"], found.table["solver"], strict=True)) == [
        ("entropy", "CLARABEL"), ("squares", "OSQP"), ("squares", "CLARABEL"),
    ]  # fmt: skip
    assert found.skipped == {"entropy": {"OSQP": "takes only nonneg, quadratic, zero"}}
    assert crosscheck(entropy()).skipped == {}


def test_the_users_problem_keeps_its_values_multipliers_and_status() -> None:
    problem = least_squares()
    x, row = problem.variables()[0], problem.constraints[0]
    problem.solve(solver="OSQP")
    before = x.value.copy(), np.copy(row.dual_value), problem.status
    x.value = np.array([7.0, 7.0])
    crosscheck(problem, ["CLARABEL", "SCS"], answers={"mine": {x: [0, 1]}}, reference="accurate")
    assert x.value.tolist() == [7.0, 7.0]
    assert (np.copy(row.dual_value), problem.status) == (before[1], before[2])
    fresh = least_squares()
    crosscheck(fresh, ["CLARABEL"])
    assert fresh.variables()[0].value is None
    assert fresh.constraints[0].dual_value is None


def test_variables_of_one_name_are_told_apart() -> None:
    x, y = cp.Variable(name="x"), cp.Variable(name="x")
    problem = cp.Problem(cp.Minimize(cp.square(x - 1) + cp.square(y - 2)), [x >= 0, x >= 0])
    found = crosscheck(problem, ["CLARABEL"], answers={"right": {x: 1, y: 2}, "swapped": {"x": 2, "x#2": 1}})
    assert found.verdicts["right"].verdict == "agrees"
    assert found.verdicts["swapped"].verdict == "WRONG"


# What is refused, before any solve


def x_of(*shape: int, **attributes: Any) -> cp.Variable:
    return cp.Variable(shape or (), name="x", **attributes)


def unset_parameters() -> cp.Problem:
    x = cp.Variable(2, name="x")
    floor, cap = cp.Parameter(2, name="floor"), cp.Parameter(name="cap")
    return cp.Problem(cp.Minimize(cp.sum(x)), [x >= floor, x <= cap])


def nan_parameter() -> cp.Problem:
    x, floor = cp.Variable(2, name="x"), cp.Parameter(2, name="floor")
    floor.value = np.zeros(2)
    floor.value[1] = np.nan  # cvxpy refuses a value with NaN, not one that becomes so
    return cp.Problem(cp.Minimize(cp.sum(x)), [x >= floor])


X = cp.Variable((2, 2), name="X", symmetric=True)
x = x_of()
REFUSED: list[tuple[Any, list[str] | None, list[str]]] = [
    (cp.Problem(cp.Maximize(cp.square(x))), None, ["not DCP in its objective", "maximize a function that is convex"]),
    (
        cp.Problem(cp.Minimize(x), [x >= 0, cp.sqrt(x) <= 1]),
        None,
        ["not DCP in its constraint [1]", "subexpressions are not"],
    ),
    (unset_parameters(), None, ["Parameters without values: set the value of", "floor", "cap"]),
    (nan_parameter(), None, ["NaN in Parameter 'floor' of shape (2,) in the constraint [0]"]),
    (cp.Problem(cp.Minimize(np.nan * x), [x >= 0]), None, ["NaN in a constant of shape () in the objective"]),
    (
        cp.Problem(cp.Minimize(x), [x >= 0, x >= -np.inf]),
        None,
        ["an infinite number in a constant of shape () in the constraint [1] -inf <= x: drop the rows"],
    ),
    (
        cp.Problem(cp.Minimize(np.array([np.inf, 1.0]) @ x_of(2))),
        None,
        ["an infinite number in a constant of shape (2,) in the objective: correct the data"],
    ),
    (
        cp.Problem(cp.Minimize(x), [x >= cp.log(cp.Constant(0.0))]),
        None,
        ["an infinite number in the constant part log(0.0)"],
    ),
    (cp.Problem(cp.Minimize(x_of(integer=True))), ["CLARABEL"], ["no solver takes the mixed-integer problem", "HIGHS"]),
    (cp.Problem(cp.Minimize(cp.trace(X)), [X >> 0]), ["ECOS", "OSQP"], ["no solver takes", "try CLARABEL, SCS"]),
    (least_squares(), ["CLARABLE"], ["did you mean 'CLARABEL'?"]),
    (least_squares(), [], ["names no solver"]),
    (3, None, ["problem is a int: expected a cvxpy Problem"]),
    ([], None, ["holds nothing to check"]),
    (block(), None, ["block 'share' needs the state"]),
    ([case_of_problem("a", least_squares())] * 2, None, ["two cases have the same name"]),
]


@pytest.mark.parametrize(("target", "solvers", "messages"), REFUSED, ids=lambda value: None)
def test_bad_input_is_refused_before_any_solve(
    target: Any, solvers: list[str] | None, messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cvxpriv.certify.task.solver_answer", lambda *_, **__: pytest.fail("a solver was asked"))
    with pytest.raises(ModelError) as caught:
        crosscheck(target, solvers)
    for message in messages:
        assert message in str(caught.value)


def test_a_second_case_that_is_bad_is_refused_before_the_first_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cvxpriv.certify.task.solver_answer", lambda *_, **__: pytest.fail("a solver was asked"))
    with pytest.raises(ModelError, match="second has Parameters without values"):
        crosscheck({"first": least_squares(), "second": unset_parameters()})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_limit": 5}, "needs isolate=True"),
        ({"time_limit": -1, "isolate": True}, "must be a positive number"),
        ({"reference": "bset"}, "did you mean 'best'?"),
        ({"reference": "closed form"}, "has none"),
        ({"reference": {"y": 1.0}}, "no variable of problem"),
        ({"answers": {"mine": {}}}, "mine has no value for x"),
        ({"options": {"ECOSS": {}}}, "did you mean 'ECOS'?"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match="^.*" + message.replace("?", r"\?")):
        crosscheck(least_squares(), ["CLARABEL"], **options)


def test_infinite_bounds_of_a_variable_and_constants_that_become_finite_are_no_infinite_data() -> None:
    bounded = cp.Variable(2, name="x", bounds=[-np.inf, np.array([1.0, np.inf])])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(bounded - 3)), [bounded >= cp.exp(cp.Constant(-np.inf))])
    assert crosscheck(problem, ["CLARABEL"]).verdicts["CLARABEL"].verdict == "agrees"


def test_a_state_that_makes_a_block_s_parameter_infinite_is_refused() -> None:
    with pytest.raises(ModelError, match="share has an infinite number in Parameter 'w'"):
        crosscheck(block(), at={"w": np.array([np.inf, 0.0, 1.0])})


def test_who_takes_a_problem_s_cones_is_told_without_compiling_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from cvxpriv.certify.problem_checks import capable

    x, X, weight = cp.Variable(3), cp.Variable((2, 2), symmetric=True), cp.Parameter(3, value=np.ones(3))
    problems = [
        cp.Problem(cp.Minimize(weight @ x), [x >= 0]),
        cp.Problem(cp.Minimize(cp.sum_squares(x - weight)), [x >= 0]),
        cp.Problem(cp.Minimize(cp.sum_squares(x) + cp.norm(x))),
        cp.Problem(cp.Minimize(cp.sum_squares(x) + cp.sum(cp.exp(x)))),
        cp.Problem(cp.Minimize(cp.lambda_max(X)), [X[0, 0] == 1]),
        cp.Problem(cp.Minimize(cp.norm(x, 3)), [cp.sum(x) == 1]),
        cp.Problem(cp.Maximize(x[2]), [cp.PowCone3D(x[0], x[1], x[2], 0.3), x <= 1]),
    ]

    def compiles(problem: cp.Problem, solver: str) -> bool:
        try:
            problem.get_problem_data(solver)
        except cp.error.SolverError:
            return False
        return True

    expected = [tuple(name for name in installed() if compiles(problem, name)) for problem in problems]
    monkeypatch.setattr(cp.Problem, "get_problem_data", lambda *_, **__: pytest.fail("it was compiled"))
    assert [capable(problem)[0] for problem in problems] == expected


def test_a_solver_that_gives_up_is_told_with_its_own_word_its_iterations_and_a_remedy() -> None:
    found = crosscheck(entropy(), ["CLARABEL"], options={"CLARABEL": {"max_iter": 2}})
    assert found.verdicts["CLARABEL"].verdict == "failed"
    told = "CLARABEL ended with 'MaxIterations' after 2 iterations: raise its limit, or loosen its tolerance"
    assert told in found.table["reason"][0]


def test_a_point_outside_the_domain_is_named_and_is_loose_where_it_is_far_outside() -> None:
    near = crosscheck(entropy(), ["CLARABEL"], answers={"mine": {"x": SHARES + np.array([1e-8, -1e-8, 0])}}).table
    assert near["moved"].max() == 0.0  # inside

    def spoilt(offset: float) -> Case:
        case = case_of_problem("entropy", entropy())
        return replace(case, repair=lambda values: {"x": values["x"] + offset * np.array([1.0, -1.0, 0.0])})

    slightly, much = (crosscheck(spoilt(offset), ["ECOS"]).table.iloc[0] for offset in (1e-7, 1e-5))
    assert slightly["moved"] == pytest.approx(1e-7, rel=1e-6)
    assert (slightly["verdict"], "once its point is moved 7e-08 (relative)" in slightly["reason"]) == ("agrees", True)
    assert (much["verdict"], "(relative) outside the domain" in much["reason"]) == ("loose", True)


def test_an_accurate_reference_starts_first_order_methods_from_the_answer_before() -> None:
    from cvxpriv.certify.references import accurate_answer

    x = cp.Variable(4, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(np.arange(16.0).reshape(4, 4) @ x - 1) + cp.norm1(x)))
    answer, how = accurate_answer(case_of_problem("lasso", problem), ("SCS",))
    assert "by SCS the first cold and then each from the answer before" in how
    cold = crosscheck(problem, ["SCS"], tolerance=answer.asked).table
    assert answer.objective == pytest.approx(cold["objective"][0], rel=1e-9)
    if answer.asked < 1e-10:  # it was not the first
        assert answer.iterations is not None
        assert answer.iterations < cold["iterations"][0]


def test_values_of_another_shape_are_refused() -> None:
    with pytest.raises(DataError, match=r"shape \(3,\) for 'x': expected finite numbers, \(2,\)"):
        crosscheck(least_squares(), ["CLARABEL"], answers={"mine": {"x": [1, 2, 3]}})


@pytest.mark.parametrize("value", ["text", [[1], [1, 2]], [1j, 1], [np.nan, 1]], ids=str)
def test_answers_that_are_no_numbers_are_refused_by_type(value: Any) -> None:
    with pytest.raises(DataError, match=r"mine"):
        crosscheck(least_squares(), ["CLARABEL"], answers={"mine": {"x": value}})


def test_a_tolerance_that_is_none_and_an_answer_with_the_name_of_a_solver_are_refused() -> None:
    for tolerance in (0.0, -1.0, np.nan):
        with pytest.raises(ModelError, match=r"tolerance=.* is not a finite number > 0"):
            crosscheck(least_squares(), ["CLARABEL"], tolerance=tolerance)
        with pytest.raises(ModelError, match=r"asked=.* is not a finite number > 0"):
            Stored({"x": [1, 2]}, asked=tolerance)
    with pytest.raises(ModelError, match=r"answers has 'CLARABEL', which is the name of a solver that is asked"):
        crosscheck(least_squares(), ["CLARABEL"], answers={"CLARABEL": {"x": [1, 2]}})


# References


def test_the_reference_says_what_it_is_and_why() -> None:
    solvers = ["CLARABEL", "SCS"]
    at = {"w": SHARES}
    best = crosscheck(block(), solvers, at=at, reference="best").references["share"]
    assert "from a certified bound (exact residual" in best
    exact = crosscheck(block(), solvers, at=at, reference="closed form").references["share"]
    assert exact.startswith("closed form: exact (exact residual")
    accurate = crosscheck(entropy(), solvers, reference="accurate").references["problem"]
    assert "re-solves at tight tolerances; by ECOS each from a cold start (exact residual" in accurate
    mine = crosscheck(entropy(), solvers, reference={"x": SHARES}).references["problem"]
    assert mine.startswith("the caller's own values (exact residual")


@pytest.mark.slow
def test_an_accurate_reference_from_processes_of_its_own_is_the_same() -> None:
    here, apart = (crosscheck(entropy(), ["ECOS"], reference="accurate", isolate=apart) for apart in (False, True))
    assert apart.references == here.references


def test_an_accurate_reference_is_looked_for_in_other_units_where_none_is_accurate() -> None:
    from cvxpriv.certify.references import accurate_answer

    x = cp.Variable(2, name="x")
    thin = cp.Problem(cp.Maximize(x[0]), [cp.quad_form(x, np.diag([1e-3, 1e8])) <= 1])
    steep = cp.Problem(cp.Minimize(1e6 * cp.sum_squares(x - np.array([1, 2]))), [cp.sum(x) == 1])
    for problem, value, count in ((thin, 1e3**0.5, 6), (steep, 2e6, 3)):
        answer, how = accurate_answer(case_of_problem("case", problem), ("CLARABEL",))
        assert (answer.objective, f"the best of {count} re-solves" in how) == (pytest.approx(value, rel=1e-9), True)


def test_a_spoiled_closed_form_is_wrong_and_the_solvers_are_then_judged_by_it() -> None:
    found = crosscheck(block(offset=1e-3), ["CLARABEL"], at={"w": SHARES})
    assert found.verdicts[CLOSED_FORM].verdict == "WRONG"
    assert "claims to be exact" in found.verdicts[CLOSED_FORM].reason
    best = crosscheck(block(offset=1e-3), ["CLARABEL"], at={"w": SHARES}, reference="best")
    assert best.verdicts["CLARABEL"].verdict == "agrees"


# Contradictions


def test_an_infeasible_problem_with_a_ray_is_settled_by_the_certificate() -> None:
    # Minimise x0 + x1 with exp x0 <= x1 <= -1: empty, and x0 -> -inf is a ray of the cone program.
    liar = next(one for one in LIARS if one.name == "unbounded where nothing is feasible")
    # SCS's proof: its multipliers of the cone program.
    multipliers = [1.3398251793942504, 1.3398251793942568, 0.0, 0.3398251793942567, 1.3398251793942497]
    proof = Stored(None, status="infeasible", cone=(None, multipliers), solver="SCS", version="3.3.1")
    found = crosscheck(liar.build().problem, ["CLARABEL"], answers={"stored": liar.stored, "proof": proof})
    found = replace(found, table=found.table[found.table["solver"] != "CLARABEL"])
    rows = found.table.set_index("status")
    assert rows.loc["infeasible", "verdict"] == "agrees"
    assert rows.loc["unbounded", "verdict"] == "loose"
    assert "certificate proves it infeasible" in rows.loc["unbounded", "reason"]


# Isolation


def crashing_ecos() -> Declaration:
    """Stand-in: whoever solves this by ECOS loses the whole process, by SCS waits for ever."""
    import ecos
    import scs

    def crash(*_: object, **__: object) -> None:
        os._exit(7)

    def hang(*_: object, **__: object) -> None:
        time.sleep(600)

    ecos.solve, scs.SCS = crash, hang
    return case_of_problem("entropy", entropy()).declare()


@pytest.mark.slow
def test_a_function_that_never_returns_or_ends_its_process_is_named_where_it_is_isolated() -> None:
    for build, why in ((lambda: time.sleep(600), "timed out, no answer within 2 s"), (lambda: os._exit(7), "crashed")):
        with pytest.raises(ModelError, match=f"returned no problem: it {why}"):
            crosscheck(build, ["CLARABEL"], isolate=True, time_limit=2)


@pytest.mark.slow
def test_a_crash_or_a_hang_inside_one_solver_never_loses_the_others_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    import ecos
    import scs

    monkeypatch.setattr(ecos, "solve", ecos.solve)  # the case is also declared here, to be looked at
    monkeypatch.setattr(scs, "SCS", scs.SCS)
    found = crosscheck(
        Case("entropy", crashing_ecos), ["ECOS", "SCS", "CLARABEL"], isolate=True, time_limit=4
    ).table.set_index("solver")
    assert found["verdict"].to_dict() == {"ECOS": "failed", "SCS": "failed", "CLARABEL": "agrees"}
    assert found["status"].to_dict() == {"ECOS": "crashed", "SCS": "timed out", "CLARABEL": "optimal"}
    assert found.loc["ECOS", "reason"] == "its process ended with exit code 7"
    assert found.loc["SCS", "reason"] == "no answer within 4 s"
    assert found.loc["CLARABEL", "objective"] == pytest.approx(0.0, abs=1e-8)


def test_claims_are_measured_in_a_process_of_their_own_and_a_crash_there_is_a_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise AssertionError("it was measured here")

    monkeypatch.setattr("cvxpriv.certify.yardstick.Yardstick.measures", crash)  # another process does not know of it
    y = cp.Variable(2, name="y")
    tied = cp.Problem(cp.Minimize(cp.max(y)), [cp.sum(y) == 2])
    case, elsewhere, home = case_of_problem("tied", tied), Place(isolate=True), os.getpid()
    measured = claimed_answer(case, "mine", {y: np.ones(2)}, place=elsewhere)
    assert measured.quality < 1e-12

    def doomed() -> Declaration:
        if os.getpid() != home:
            os._exit(5)
        return case.declare()

    ended = claimed_answer(replace(case, declare=doomed), "mine", {"y": np.ones(2)}, place=elsewhere)
    assert judge(ended, Context(), Tolerances()) == Verdict("failed", "its process ended with exit code 5")


@pytest.mark.parametrize(
    "kind", [*(pytest.param(one, marks=pytest.mark.slow) for one in ("problem", "function")), "block"]
)
def test_an_isolated_answer_is_the_same_answer(kind: str) -> None:
    names = ["objective", "gap", "primal", "natural", "dual_cone", "bound", "iterations", "verdict", "reason"]
    target = {"problem": entropy, "function": lambda: entropy, "block": block}[kind]()
    at = {"w": SHARES} if kind == "block" else None
    here = crosscheck(target, ["ECOS"], at=at).table[names]
    there = crosscheck(target, ["ECOS"], at=at, isolate=True).table[names]
    assert here.equals(there)


def test_what_cannot_travel_is_said_with_the_remedy() -> None:
    with pytest.raises(ModelError, match="pass a function of a module that returns the problem, or isolate=False"):
        isolated(len, threading.Lock())


def raising() -> None:
    raise ValueError("as the test says")


def raising_two(first: int, second: int) -> None:
    raise ValueError(f"{first}, {second}")


def killed() -> None:
    os.kill(os.getpid(), 9)


def faulted() -> None:
    ctypes.string_at(0)


def ended() -> None:
    os._exit(0)


@pytest.mark.slow
def test_each_other_ending_of_an_isolated_call_is_told() -> None:
    assert isolated(faulted).error == "its process was killed by SIGSEGV"
    assert isolated(raising).error == "ValueError: as the test says"
    assert isolated(killed).error == "its process was killed by SIGKILL"


@pytest.mark.slow
def test_an_answer_an_ending_without_one_and_a_late_one_are_told() -> None:
    assert isolated(max, 1, 2).value == 2
    assert isolated(ended).error == "its process ended with exit code 0"  # and no answer: that is no success
    late = isolated(time.sleep, 60, time_limit=0.2)
    assert (late.status, late.error) == ("timed out", "no answer within 0.2 s")


def test_what_the_child_does() -> None:
    for function, ending in ((max, ("returned", 2, "")), (raising_two, ("raised", None, "ValueError: 1, 2"))):
        asked, told = io.BytesIO(), io.BytesIO()
        for _ in range(2):
            _write(asked, pickle.dumps((1, pickle.dumps(function), pickle.dumps((1, 2)))))
        asked.seek(0)
        work(asked, told)
        told.seek(0)
        said = [_read(told) for _ in range(5)]
        assert said[0] == said[2] == b"begun"
        assert said[4] is None
        assert [pickle.loads(said[place] or b"") for place in (1, 3)] == [ending, ending]


def test_new_expressions_in_another_process_get_numbers_of_their_own() -> None:
    # Without that a variable made while compiling there would be taken for one that came along.
    x = [cp.Variable(3) for _ in range(40)][-1]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(x, SHARES))), [cp.sum(x) == 1])
    assert crosscheck(problem, ["ECOS"], isolate=True).verdicts["ECOS"].verdict == "agrees"


# What comes out


def test_raise_if_failed_names_each_solver_and_case_that_is_refused() -> None:
    claims = {"mine": {"x": [1, 0]}}
    found = crosscheck({"squares": least_squares()}, ["CLARABEL"], answers=claims)
    with pytest.raises(Disagreement, match="mine on squares: WRONG, is claimed, but its point is"):
        found.raise_if_failed()
    crosscheck(least_squares(), ["CLARABEL"]).raise_if_failed()
    loose = crosscheck(least_squares(), ["SCS"], tolerances=Tolerances(agree=1e-20))
    loose.raise_if_failed()
    with pytest.raises(Disagreement):
        loose.raise_if_failed(allowed=["agrees"])


def test_a_bound_is_certified_in_the_sense_of_the_problem_or_says_why_not() -> None:
    x = cp.Variable(2, name="x")
    highest = cp.Problem(cp.Maximize(3 - cp.sum_squares(x)), [cp.sum(x) == 2])
    bound = crosscheck(highest, ["CLARABEL"]).table["bound"][0]
    assert 1.0 - 1e-12 <= bound <= 1.0 + 1e-6
    none = crosscheck(cp.Problem(cp.Minimize(x[0]), [x >= 0, cp.sum(x) <= -1]), ["CLARABEL"]).table
    assert none["bound_reason"][0] == "none: it claims infeasible"


def test_the_text_shows_the_worst_first_with_the_reasons_below() -> None:
    lines = str(crosscheck(least_squares(), ["CLARABEL"], answers={"mine": {"x": [1, 0]}})).splitlines()
    columns = ["verdict", "block", "solver", "gap", "residual", "natural", "ms", "known_by", "status", "objective"]
    assert lines[1].split() == columns
    assert [lines[2].split()[k] for k in (0, 1, 2, -2)] == ["WRONG", "problem", "mine", "claimed"]
    assert [lines[3].split()[k] for k in (0, 1, 2, -2)] == ["agrees", "problem", "CLARABEL", "optimal"]
    assert lines[4].startswith("  - mine on problem: is claimed, but its point is")
    assert any(line.startswith("  - reference of problem: CLARABEL") for line in lines)


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append(data.strip())


def test_the_page_is_one_file_with_verdicts_first_and_one_script_that_its_policy_allows_by_hash(tmp_path: Path) -> None:
    import base64
    import hashlib

    x = cp.Variable(2, name="x")
    empty = cp.Problem(cp.Minimize(x[0]), [x >= 0, cp.sum(x) <= -1])
    check = crosscheck({"squares": least_squares(), "entropy": entropy(), "empty": empty}, ["CLARABEL", "OSQP"])
    text = check.to_html(tmp_path / "a" / "check.html", "Three problems").read_text()
    page = Tags(text)
    assert "Three problems" in page.texts
    written, cones = "Residuals of the problem as written", "Residuals of the cone program"
    for title in ("Verdicts", written, cones, "Certificates", "Values and references", "Certified bounds", "Time"):
        assert title in page.texts
    assert page.texts.index("Verdicts") < page.texts.index(written)
    assert {"displacement", "moved"} <= set(page.texts)
    assert any("OSQP was not asked for entropy" in part for part in page.texts)
    assert any(part.startswith("cvxpy ") for part in page.texts)  # versions in the foot
    script = text.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.endswith(f"script-src 'sha256-{digest}'")
    assert text.count("<script") == 1
    assert not {"link", "iframe", "object", "img"} & {tag for tag, _ in page.tags}
    assert sum(a.get("aria-sort") == "none" for tag, a in page.tags if tag == "th") > 20
    shades = {name for _, a in page.tags for name in (a.get("class") or "").split() if name.startswith("heat-")}
    assert len(shades) > 2


def test_a_diagonal_variable_whose_value_is_sparse_is_judged_like_any_other() -> None:
    d = cp.Variable((3, 3), diag=True, name="d")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(d - np.diag([1.0, 2.0, 3.0]))), [cp.trace(d) <= 3])
    check = crosscheck(problem, ["CLARABEL", "SCS"])
    assert set(check.table["verdict"]) == {"agrees"}
    assert check.table["objective"].to_numpy() == pytest.approx(3.0, abs=1e-6)  # each entry gives up 1


def test_an_objective_far_below_one_is_judged_in_its_own_units() -> None:
    # Minimise 1e-9 (x0 + x1) with x >= 1. A solver that may miss by 1e-6 may return 500: its value is within 1e-6.
    y = cp.Variable(2, name="y")
    small, same = (cp.Problem(cp.Minimize(size * cp.sum(y)), [y >= 1]) for size in (1e-9, 1.0))
    loose = {"SCS": {"eps_abs": 1e-4, "eps_rel": 1e-4}}
    rows = crosscheck(small, ["HIGHS", "SCS"], options=loose, reference={"y": np.ones(2)}).verdicts
    assert rows["HIGHS"].verdict == "agrees"
    assert rows["SCS"].verdict == "loose"
    assert crosscheck(same, ["HIGHS", "SCS"]).verdicts["SCS"].verdict == "agrees"


def test_no_bound_is_certified_where_only_rounding_makes_it_one() -> None:
    # sqrt x - s x <= 1 / (4 s) bounds sqrt x once s is rounded away: ECOS stops at s = 3e-8, and 8e6 is no bound.
    y = cp.Variable(name="y")
    found = crosscheck(cp.Problem(cp.Maximize(cp.sqrt(y))), ["ECOS"]).table
    assert found["bound"].isna().all()


def test_no_bound_is_certified_for_a_problem_that_has_none() -> None:
    x = cp.Variable(name="x")
    table = crosscheck(cp.Problem(cp.Maximize(cp.log(x))), ["CLARABEL", "ECOS", "SCS"]).table
    assert table["bound"].isna().all()  # a dual of 1e-34 once certified 77


def test_bounds_of_variables_may_be_parameters() -> None:
    least = cp.Parameter(2, value=[1.0, 2.0])
    z = cp.Variable(2, name="z", bounds=[least, 5])
    check = crosscheck(cp.Problem(cp.Minimize(cp.sum(z))), ["CLARABEL", "HIGHS"], answers={"low": {"z": [0.5, 2.0]}})
    assert [one.verdict for one in check.verdicts.values()] == ["WRONG", "agrees", "agrees"]
    assert check.table["objective"].iloc[1] == pytest.approx(3.0, abs=1e-6)


def test_two_objects_of_one_number_are_one_variable() -> None:
    bounded = cp.Variable(3, name="z", bounds=[1, 4])
    bare = cp.Variable(3, name="z", var_id=bounded.id)
    check = crosscheck(cp.Problem(cp.Minimize(cp.sum_squares(bare)), [cp.sum(bounded) >= 6]), ["CLARABEL"])
    assert check.verdicts["CLARABEL"].verdict == "agrees"
    assert check.table["objective"].iloc[0] == pytest.approx(12.0, rel=1e-6)


def test_a_geometric_mean_of_one_entry_is_judged() -> None:
    z = cp.Variable(2, name="z")
    # 1/a + 1/(a b) over a + b = 2 is smallest where a solves -1/a^2 (1 + 1/b) + 1/(a b^2) = 0: b (b + 1) = a.
    b = np.sqrt(3.0) - 1.0
    problem = cp.Problem(cp.Minimize(cp.inv_prod(z[:1]) + cp.inv_prod(z)), [cp.sum(z) == 2])
    check = crosscheck(problem, ["CLARABEL", "SCS"])
    assert {one.verdict for one in check.verdicts.values()} <= {"agrees", "loose"}
    assert check.table["objective"].iloc[0] == pytest.approx(1 / (2 - b) + 1 / ((2 - b) * b), rel=1e-6)
