"""Mixed-integer and complex problems: integers fixed, feasibility, certified bounds of branches; real parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.atoms.elementwise import logic

from cvxpriv.certify import Stored
from cvxpriv.certify.cases import case_of_problem
from cvxpriv.certify.check import crosscheck
from cvxpriv.certify.integer_answers import ASKED, OPTIONS, branched, integer_answer
from cvxpriv.errors import DataError, ModelError
from cvxpriv.kkt.integers import mixed_integer
from cvxpriv.kkt.plain import real_form
from cvxpriv.solvers.isolation import Ending
from cvxpriv.solvers.place import Place

VALUES, WEIGHTS = np.array([7.0, 9.0, 5.0, 12.0]), np.array([3.0, 4.0, 2.0, 6.0])


def _chosen() -> Iterator[np.ndarray]:
    yield from (np.array(choice) for choice in product([0.0, 1.0], repeat=4) if WEIGHTS @ np.array(choice) <= 8)


@pytest.fixture
def knapsack() -> tuple[cp.Problem, cp.Variable]:
    b = cp.Variable(4, boolean=True, name="b")
    return cp.Problem(cp.Maximize(VALUES @ b), [WEIGHTS @ b <= 8]), b


def test_the_best_of_sixteen_choices_is_certified_and_others_are_not(
    knapsack: tuple[cp.Problem, cp.Variable], capfd: pytest.CaptureFixture[str]
) -> None:
    problem, b = knapsack
    best = max(_chosen(), key=lambda choice: float(VALUES @ choice))
    worse = [choice for choice in _chosen() if VALUES @ choice < VALUES @ best]
    others = {f"other {k}": {b: choice} for k, choice in enumerate(worse[::3])}
    lie = Stored({"b": [1, 0, 0, 0]}, asked=1e-6, solver="a solver", version="1", machine="any")
    check = crosscheck(problem, ["HIGHS"], answers={"best": {b: best}, "lie": lie, **others})
    rows = check.table.set_index("solver")
    assert rows.loc[["HIGHS", "best"], "verdict"].tolist() == ["agrees", "agrees"]
    assert rows.loc[["HIGHS", "best"], "known_by"].tolist() == ["certified", "certified"]
    assert rows.loc["best", "bound"] == pytest.approx(float(VALUES @ best), rel=1e-8)
    assert set(rows.loc[["lie", *others], "verdict"]) == {"WRONG"}
    assert b.value is None
    assert capfd.readouterr() == ("", "")  # HiGHS prints a banner where it is let


def test_halves_are_no_whole_numbers_and_a_point_outside_is_named(knapsack: tuple[cp.Problem, cp.Variable]) -> None:
    problem, b = knapsack
    claims = {"halves": {b: np.full(4, 0.5)}, "too much": {b: np.ones(4)}}
    rows = crosscheck(problem, ["HIGHS"], answers=claims).table.set_index("solver")
    assert "misses constraint 'b is allowed'" in rows.loc["halves", "reason"]
    assert "misses constraint" in rows.loc["too much", "reason"]
    assert set(rows.loc[list(claims), "verdict"]) == {"WRONG"}


def test_the_continuous_rest_has_to_be_best_for_its_integers() -> None:
    n, y = cp.Variable(integer=True, name="n"), cp.Variable(name="y")
    problem = cp.Problem(cp.Minimize((n - 1.2) ** 2 + (y - n) ** 2), [y <= 0.5])
    claims = {"right": {n: 1.0, y: 0.5}, "slack": {n: 1.0, y: 0.0}, "other integer": {n: 0.0, y: 0.0}}
    rows = crosscheck(problem, ["ECOS_BB"], answers=claims).table.set_index("solver")
    assert rows.loc["right", ["verdict", "known_by"]].tolist() == ["agrees", "certified"]
    assert rows.loc[["slack", "other integer"], "verdict"].tolist() == ["WRONG", "WRONG"]
    assert rows.loc["slack", "displacement"] > 0.1  # y alone would move
    assert rows.loc["other integer", "displacement"] == 0.0  # best for n = 0, which is not the best n


def test_no_whole_number_is_half_of_one() -> None:
    n = cp.Variable(integer=True, name="n")
    problem = cp.Problem(cp.Minimize(n), [2 * n == 1, n >= -9, n <= 9])
    rows = crosscheck(problem, ["HIGHS"], answers={"none": {n: 0.0}}).table.set_index("solver")
    assert rows.loc["HIGHS", ["status", "verdict", "known_by"]].tolist() == ["infeasible", "agrees", "certified"]
    assert rows.loc["none", "verdict"] == "WRONG"


def test_a_point_refutes_a_claim_that_there_is_none() -> None:
    n = cp.Variable(integer=True, name="n")
    lie = Stored(None, status="infeasible", asked=1e-6, solver="a solver", version="1", machine="any")
    check = crosscheck(cp.Problem(cp.Minimize(n), [n >= 0.5]), ["HIGHS"], answers={"lie": lie})
    assert check.verdicts["lie"].verdict == "WRONG"


def test_an_answer_that_no_bound_proves_is_loose_and_an_endless_problem_is_told() -> None:
    n = cp.Variable(2, integer=True, name="n")
    problem = cp.Problem(cp.Minimize(n[0]), [n[1] >= 0.5, n[0] <= 3])
    said = Stored(None, status="unbounded", asked=1e-6, solver="a solver", version="1", machine="any")
    point = {n: [-1e6, 1.0]}
    alone = crosscheck(problem, ["HIGHS"], answers={"point": point}).table.set_index("solver")
    assert alone.loc["point", "verdict"] in ("loose", "WRONG")
    both = crosscheck(problem, ["HIGHS"], answers={"point": point, "said": said}).table.set_index("solver")
    assert both.loc["said", ["verdict", "known_by"]].tolist() == ["agrees", "certified"]
    assert both.loc["point", "verdict"] == "WRONG"


def test_a_finite_set_restricts_an_expression() -> None:
    z = cp.Variable(2, name="z")
    problem = cp.Problem(cp.Minimize(cp.sum(z) + z[0] ** 2), [cp.FiniteSet(z[0], [-2.0, 1.0, 3.0]), z >= -1.5])
    rows = crosscheck(problem, ["ECOS_BB"], answers={"between": {z: [-0.5, -1.5]}}).table.set_index("solver")
    assert rows.loc["ECOS_BB", ["verdict", "known_by"]].tolist() == ["agrees", "certified"]
    assert rows.loc["between", "verdict"] == "WRONG"


def test_attributes_of_some_entries_and_bounds_stay() -> None:
    x = cp.Variable(3, integer=[(1,)], name="x")
    apart = mixed_integer(cp.Problem(cp.Minimize(cp.sum(x)), [x >= 0.5]))
    assert apart is not None
    assert branched(apart, float("nan")).bound == pytest.approx(2.0, abs=1e-7)
    bounded = cp.Variable(2, boolean=True, bounds=[0.2, 2.0], name="y")
    apart = mixed_integer(cp.Problem(cp.Minimize(cp.sum(bounded))))
    assert apart is not None
    assert branched(apart, float("nan")).bound == pytest.approx(2.0, abs=1e-7)


def test_a_reference_of_tight_re_solves_is_refused(knapsack: tuple[cp.Problem, cp.Variable]) -> None:
    with pytest.raises(ModelError, match="mixed-integer; take 'best'"):
        crosscheck(knapsack[0], ["HIGHS"], reference="accurate")


def test_complex_variables_are_judged_in_real_and_imaginary_parts() -> None:
    a, H = cp.Variable(2, complex=True, name="a"), cp.Variable((2, 2), hermitian=True, name="H")
    least = np.array([[1, 1j], [-1j, 2]])
    objective = cp.sum_squares(a - np.array([1 + 1j, 2])) + cp.real(cp.trace(H))
    problem = cp.Problem(cp.Minimize(objective), [H >> least, cp.imag(a[0]) <= 0.5])
    claims = {"truth": {a: [1 + 0.5j, 2], H: least}, "conjugate": {a: [1 + 0.5j, 2], H: least.conj()}}
    rows = crosscheck(problem, ["CLARABEL"], answers=claims).table.set_index("solver")
    assert rows.loc["truth", "objective"] == pytest.approx(3.25, abs=1e-12)
    assert rows.loc[["truth", "CLARABEL"], "verdict"].tolist() == ["agrees", "agrees"]
    assert rows.loc["conjugate", "verdict"] == "WRONG"  # not above the matrix
    with pytest.raises(DataError, match="shape"):
        crosscheck(problem, ["CLARABEL"], answers={"truth": {a: 1j, H: least}})


def test_an_imaginary_part_that_is_rounding_is_no_constraint() -> None:
    A = np.array([[2.0 + 1e-16j, 1 - 3j], [1 + 3j, 4.0 - 2e-16j]])  # Hermitian but for the last digit
    H = cp.Variable((2, 2), hermitian=True, name="H")
    problem = cp.Problem(cp.Minimize(cp.real(cp.trace(H))), [H >> 0, cp.trace(A @ H) == 3, H[0, 1] == 0.1 + 0.2j])
    form = real_form(problem)
    # The trace keeps its real part, the entry both.
    assert sorted(one.size for one in form.problem.constraints if isinstance(one, cp.constraints.Equality)) == [1, 1, 1]
    assert crosscheck(problem, ["CLARABEL"]).verdicts["CLARABEL"].verdict == "agrees"


def test_complex_parameters_enter_by_their_values() -> None:
    p, a = cp.Parameter(complex=True, name="p"), cp.Variable(complex=True, name="a")
    problem = cp.Problem(cp.Minimize(cp.abs(a - p)), [cp.real(a) <= 0])
    with pytest.raises(ModelError, match="set the value of p"):
        crosscheck(problem)
    p.value = 1 + 2j
    check = crosscheck(problem, ["CLARABEL"], answers={"truth": {a: 2j}})
    assert {one.verdict for one in check.verdicts.values()} == {"agrees"}


def test_lists_of_entries_are_read_as_cvxpy_reads_them() -> None:
    # All first coordinates, then all second ones: the last row is integer, as cvxpy's own test expects.
    v = cp.Variable((2, 2), boolean=[(0, 0), (0, 1)], integer=[(1, 1), (0, 1)], name="v")
    problem = cp.Problem(cp.Minimize(cp.sum(v)), [v >= np.array([[0.5, -0.5], [2.3, 3.2]])])
    check = crosscheck(problem, ["HIGHS"], answers={"half": {"v": [[1, 0], [2.3, 4]]}})
    assert check.verdicts["HIGHS"].verdict == "agrees"
    assert check.table.set_index("solver").loc["HIGHS", "objective"] == pytest.approx(8.0)
    assert check.verdicts["half"].verdict == "WRONG"


def test_boolean_functions_agree_with_a_list_of_all_cases() -> None:
    a, b, c = (cp.Variable(boolean=True, name=name) for name in "abc")
    score = logic.Xor(a, b, c) + 2 * logic.And(a, logic.Not(b)) - 3 * logic.Or(b, c) + 0.1 * c
    best = max(
        (one + two + three) % 2 + 2 * (one and not two) - 3 * (two or three) + 0.1 * three
        for one, two, three in product((0, 1), repeat=3)
        if one + two + three >= 1 and not (one and not two and not three)
    )
    problem = cp.Problem(cp.Maximize(score), [a + b + c >= 1, b + c >= a])
    check = crosscheck(problem, ["HIGHS"])
    assert check.verdicts["HIGHS"].verdict == "agrees"
    assert check.table["objective"].iloc[0] == pytest.approx(best)


@pytest.fixture
def market_split() -> cp.Problem:
    """Five equations that halve random integers, by 40 choices: branches of the relaxation prove nothing."""
    rng = np.random.default_rng(3)
    A = rng.integers(0, 100, (5, 40)).astype(float)
    x = cp.Variable(40, boolean=True, name="x")
    return cp.Problem(cp.Minimize(cp.norm1(A @ x - np.floor(A.sum(axis=1) / 2))))


def test_a_problem_that_no_solver_ends_stops_at_the_clock_and_says_so(
    market_split: cp.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = {name: {**own, "time_limit": 0.3} if name == "HIGHS" else own for name, own in OPTIONS.items()}
    limited["SCIPY"] = {"scipy_options": {"time_limit": 0.3}}
    monkeypatch.setattr("cvxpriv.certify.integer_answers.OPTIONS", limited)
    monkeypatch.setattr("cvxpriv.certify.integer_answers.LIMIT", 0.3)
    monkeypatch.setattr("cvxpriv.certify.integer_answers.SECONDS", 0.1)
    begun = time.process_time()
    rows = crosscheck(market_split, ["HIGHS", "SCIPY", "ECOS_BB"]).table
    assert time.process_time() - begun < 6.0  # the solves and the branches have 1.0 s; compilation takes the rest
    assert rows["reason"].str.contains("stopped at its limit").all()
    assert set(rows["verdict"]) <= {"loose", "failed"}
    assert "no others in the" in rows["bound_reason"].iloc[-1]


class Late(Place):
    """A place where nothing is done in time. `test_isolation.py` holds what a process does that is late."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Ending:
        return Ending("timed out", error="no answer within 1 s", seconds=1.0)


def test_a_solver_without_a_known_limit_has_a_process_of_its_own(
    knapsack: tuple[cp.Problem, cp.Variable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cvxpriv.certify.solver_answers.OPTIONS", {})
    monkeypatch.setattr("cvxpriv.certify.solver_answers.DEAF", Late())
    rows = crosscheck(knapsack[0], ["HIGHS"]).table
    assert rows[["status", "verdict"]].iloc[0].tolist() == ["timed out", "failed"]
    assert "no answer within" in rows["reason"].iloc[0]


def test_a_large_quadratic_problem_is_no_hazard_for_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cvxpriv.certify.solver_answers.LARGE", 2)
    monkeypatch.setattr("cvxpriv.certify.solver_answers.DEAF", Late())
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - 1.0)), [x >= 2.0])
    rows = crosscheck(problem, ["HIGHS"]).table
    assert rows["status"].iloc[0] == "timed out"


def test_a_limit_that_ecos_bb_meets_without_a_point_is_no_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cvxpriv.certify.integer_answers.FIRST", 1)
    monkeypatch.setattr("cvxpriv.certify.integer_answers.LIMIT", 1e-3)
    x = cp.Variable(12, boolean=True, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum(x)), [np.arange(3.0, 15.0) @ x == 31.0])  # 14 + 13 + 4
    row = crosscheck(problem, ["ECOS_BB"]).table.iloc[0]
    assert (row["status"], row["verdict"]) == ("user_limit", "failed")
    assert "stopped at its limit" in row["reason"]


def test_a_solver_that_is_asked_for_a_gap_is_held_to_that_gap() -> None:
    case = case_of_problem("p", cp.Problem(cp.Maximize(cp.sum(cp.Variable(3, boolean=True)))))
    options: list[tuple[str, dict[str, Any]]] = [
        ("HIGHS", {"mip_rel_gap": 0.2}),
        ("SCIPY", {"scipy_options": {"mip_rel_gap": 0.3}}),
        ("HIGHS", {}),
    ]
    assert [integer_answer(case, *one).asked for one in options] == [0.2, 0.3, ASKED]


def test_of_a_finite_set_only_solvers_of_whole_numbers_are_asked() -> None:
    x = cp.Variable(name="x")
    check = crosscheck(cp.Problem(cp.Minimize(cp.abs(x - 1.2)), [cp.FiniteSet(x, [0, 5])]))
    assert "CLARABEL" not in check.verdicts
    assert "agrees" in {one.verdict for one in check.verdicts.values()}
