"""No verdict on the small problems contradicts what is known, and some solver's answer is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cvxpy as cp
import cvxpy.lin_ops.lin_utils as identifiers
import numpy as np
import pytest

from cvxpriv.certify import Stored, crosscheck, task
from cvxpriv.certify.corpus.known import INFEASIBLE, OPTIMAL, UNBOUNDED, false_verdicts, least, most
from cvxpriv.kkt.written import Written
from tests.toolkit.small_problems import SMALL, known_of, x


@pytest.mark.grid(every=15)
@pytest.mark.parametrize("name", SMALL)
def test_no_verdict_on_a_small_problem_is_false(name: str) -> None:
    known = known_of(name)
    denials = {one: Stored(None, status=one) for one in (INFEASIBLE, UNBOUNDED) if one != known.status}
    table = crosscheck(known.problem, answers=denials).table
    assert not false_verdicts(known, table), table[["solver", "verdict", "objective", "reason"]].to_string()
    own = table[~table["solver"].isin(denials)]
    assert own["verdict"].isin(["agrees", "loose"]).any(), table[["solver", "verdict", "reason"]].to_string()
    if known.status == OPTIMAL:
        right = own.loc[own["verdict"] == "agrees", "objective"]
        assert right.size == 0 or max(map(known.error, right)) < 1e-5


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("name", list(SMALL)[::9])
def test_what_is_beyond_doubt_is_not_changed_by_settling_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = ["solver", "verdict", "known_by"]
    usual = crosscheck(SMALL[name][0]()).table[told]
    monkeypatch.setattr(task, "SEEN", -1.0)  # no answer is beyond doubt
    assert crosscheck(SMALL[name][0]()).table[told].equals(usual)


def verdict(problem: cp.Problem, claim: Any, solvers: Sequence[str] = ("CLARABEL", "SCS")) -> tuple[str, str]:
    """The verdict on a claim beside these solvers' answers, and its evidence: a status, or values of `x`."""
    said = Stored(None, status=claim) if isinstance(claim, str) else {"x": claim}
    table = crosscheck(problem, solvers, answers={"claim": said}).table.set_index("solver")
    return str(table.loc["claim", "verdict"]), str(table.loc["claim", "known_by"])


@pytest.mark.parametrize("rows", [0, 1])
def test_a_quadratic_that_falls_along_a_line_is_unbounded_with_constraints_and_without(rows: int) -> None:
    v = x(2)
    problem = least(cp.square(v[0] - v[1]) - cp.sum(v), [cp.sum(v) >= -1] * rows)
    assert verdict(problem, UNBOUNDED) == ("agrees", "certified")


def test_a_ray_is_no_proof_where_no_point_is_feasible() -> None:
    v, flat, whole = x(), x(2), x(2, integer=True)
    assert verdict(least(v, [cp.exp(v) <= 0]), UNBOUNDED)[0] == "loose"  # met to any accuracy, and by no point
    assert verdict(most(flat[0], [cp.norm(flat[1:]) <= 0]), UNBOUNDED) == ("agrees", "certified")
    odd = most(whole[0], [2 * whole[0] - 2 * whole[1] == 1])  # points of the relaxation are no points
    assert verdict(odd, UNBOUNDED, ["HIGHS"])[0] == "failed"


def test_a_problem_that_was_made_in_another_process_keeps_its_numbers_apart() -> None:
    for ahead in (12, 19, 57):  # numbers that cvxpy would give to variables of its own meanwhile
        v = cp.Variable(2, name="x", var_id=identifiers.ID_COUNTER.count + ahead)
        told = crosscheck(least(cp.sum_squares(v - 1) + cp.norm1(v), [cp.sum(v) <= 1]), ["CLARABEL"]).table
        assert told["verdict"].tolist() == ["agrees"]
        assert told["objective"].tolist() == pytest.approx([1.5])


def test_an_objective_of_1e_8_is_judged_in_its_own_size() -> None:
    b, v = x(3, boolean=True), x()
    sack = most(1e-8 * (np.array([5, 4, 3]) @ b), [np.array([4, 3, 2]) @ b <= 5])
    assert verdict(sack, [1, 0, 0], ["HIGHS"])[0] == "loose"
    lean = least(1e-8 * (v + cp.kl_div(v, 1.0)))
    assert [verdict(lean, one)[0] for one in (np.exp(-1.0), 0.0)] == ["agrees", "loose"]


TINY: dict[str, tuple[Callable[[cp.Variable], cp.Problem], list[float], list[str]]] = {
    # problem of the variables, its optimum, and verdicts on answers that are 60 %, 1 % and 0 off
    "bound of 1e-9": (lambda v: most(cp.sum(v), [v <= 1e-9]), [1e-9, 1e-9], ["loose", "loose", "agrees"]),
    "bound and objective": (lambda v: most(1e-8 * cp.sum(v), [v <= 1e-9]), [1e-9, 1e-9], ["loose", "loose", "agrees"]),
    "row of 1e9": (lambda v: most(cp.sum(v), [1e9 * v <= 1]), [1e-9, 1e-9], ["WRONG", "WRONG", "agrees"]),
    "cost of 1e9": (
        lambda v: least(1e9 * v[0] + 2e9 * v[1], [1e9 * cp.sum(v) >= 1, v >= 0]),
        [1e-9, 0.0],
        ["WRONG", "WRONG", "agrees"],
    ),
    "one of two": (
        lambda v: least(v[0] + 1e9 * v[1], [1e9 * v[1] >= 0.5, v[0] >= 0.5]),
        [0.5, 0.5e-9],
        ["WRONG", "WRONG", "agrees"],
    ),
    "squares": (
        lambda v: least(cp.sum_squares(v - np.array([1e-9, 2e-9])), [cp.sum(v) == 1e-9]),
        [0.0, 1e-9],
        ["loose", "loose", "agrees"],
    ),
    "norm": (lambda v: most(v[0], [cp.norm(v) <= 1e-9]), [1e-9, 0.0], ["loose", "loose", "agrees"]),
}


@pytest.mark.parametrize("name", TINY)
def test_variables_far_below_1_are_judged_in_their_own_size(name: str) -> None:
    build, best, expected = TINY[name]
    v = x(2)
    answers = {f"{off} off": Stored({v: (1.0 + off) * np.array(best)}, asked=1e-8) for off in (0.6, 0.01, 0.0)}
    told = crosscheck(build(v), ["CLARABEL"], answers=answers).table
    assert told[told["solver"] != "CLARABEL"]["verdict"].tolist() == expected


def test_reach_follows_constants_through_rows_norms_and_squares() -> None:
    v = x(2)

    def of(problem: cp.Problem) -> list[float]:
        return Written.of(problem).reach[:2].tolist()

    assert of(least(cp.sum(v), [v[0] <= 1e-6, v[1] == 1e-2 * v[0]])) == pytest.approx([1e-6, 1e-8])
    assert of(least(cp.sum_squares(v - 1e-5))) == pytest.approx([1e-5, 1e-5])
    assert of(least(cp.sum(v), [cp.quad_form(v, 1e-2 * np.eye(2)) <= 1e-10])) == pytest.approx([1e-4, 1e-4])
    assert of(least(cp.sum(cp.exp(v)), [v <= 1e-9])) == [1.0, 1.0]  # exp has a scale of its own
    assert of(least(cp.norm(v), [v >= 0])) == [1.0, 1.0]  # nothing tells one


def test_the_exact_answer_of_a_tiny_objective_is_the_reference_and_agrees() -> None:
    v = x(2)
    check = crosscheck(least(1e-9 * cp.sum_squares(v - 1), [cp.sum(v) <= 1]), answers={"claim": {v: [0.5, 0.5]}})
    assert dict(zip(check.table["solver"], check.table["verdict"], strict=True))["claim"] == "agrees"
    assert check.references["problem"].startswith(("HIGHS", "SCS", "claim"))


@pytest.mark.parametrize("scale", [1.0, 1e-8])
def test_a_point_far_out_where_the_slope_is_small_is_not_the_best(scale: float) -> None:
    v, w = x(), x(2)
    solver = ["CLARABEL"]
    assert verdict(most(scale * cp.log(v)), 1e6, solver)[0] != "agrees"
    assert verdict(most(scale * (cp.sqrt(w[0]) - w[1]), [w[1] >= -1]), [1e4, -1.0], solver)[0] != "agrees"
    assert verdict(most(scale * (cp.log(v) - 1e-5 * v)), 1e5, solver)[0] == "agrees"
