"""Bug reports: the least problem that still shows a false answer, as a script that runs alone."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.certify import solver_answers, task
from cvxpriv.certify.answers import Answer, Stored
from cvxpriv.certify.bug_scripts import CALLS, Trial
from cvxpriv.certify.bugs import bug_report, problem_of_program, rounded, with_blocks, with_columns
from cvxpriv.certify.check import crosscheck
from cvxpriv.certify.corpus.liars import LIARS, softmin
from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.solvers.place import quiet

SHOWN = "the bug is shown"
TIGHT = {"eps_abs": 1e-12, "eps_rel": 1e-12, "max_iters": 100_000}


def _printed(script: str) -> str:
    """What a script prints, run alone and without this package."""
    assert "cvxpriv" not in script
    run = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def _crowd() -> cp.Problem:
    """Four variables and many constraints, of which a stub gets one wrong: x[0] >= 1.23456."""
    x = cp.Variable(4, name="x")
    return cp.Problem(
        cp.Minimize(cp.sum(x) + 0.123456 * x[1]), [x <= 9.87654, x[0] >= 1.23456, x[1:] >= -1, cp.norm(x[2:]) <= 3]
    )


def _judge_of_rows(problem: cp.Problem) -> Trial:
    """A stub: WRONG as long as some row bounds some variable from below by at least 1 and another from above."""
    program = ConeProgram.from_problem(problem, "CLARABEL")
    A, b = program.A.toarray(), program.b
    low = any(row.min() < 0 and side / row.min() >= 1 for row, side in zip(A, b, strict=True))
    high = any(row.max() > 0 and side / row.max() >= 2 for row, side in zip(A, b, strict=True))
    verdict = "WRONG" if low and high else "agrees"
    return Trial(verdict, "a stub says so", "optimal", 0.0, None, 1.0, {})


def test_constraints_columns_and_digits_are_dropped_while_the_verdict_stays() -> None:
    problem = _crowd()
    report = bug_report(problem, "CLARABEL", _judge_of_rows, {}, seconds=60.0)
    program = ConeProgram.from_problem(report.problem, "CLARABEL")
    assert program.b.size == 2  # one row each, of one variable or of two
    assert program.c.size <= 2
    assert sorted(np.abs(program.b)) == [1.0, 10.0]  # one digit each of 1.23456 and 9.87654
    assert report.trials > 5
    assert len(problem.constraints) == 4


def test_a_budget_that_is_spent_leaves_the_whole_problem() -> None:
    report = bug_report(_crowd(), "CLARABEL", _judge_of_rows, {}, seconds=0.0)
    assert report.trials == 1
    assert report.late
    assert "Time ended the search for a smaller problem after 0 s." in report.script
    assert len(report.problem.constraints) == 4


def _lying(monkeypatch: pytest.MonkeyPatch, liar: str) -> None:
    """One solver whose points are moved by 1/2 on their way to the judge."""
    honest = solver_answers.solver_answer

    def lie(case: Any, solver: str, *rest: Any, **how: Any) -> Answer:
        answer = honest(case, solver, *rest, **how)
        if solver != liar or answer.values is None:
            return answer
        moved = {name: value + 0.5 for name, value in answer.values.items()}
        measures = replace(answer.measures, displacement=0.5, drift=0.5)
        return replace(answer, values=moved, objective=answer.objective + 0.5, measures=measures, bound=float("nan"))

    monkeypatch.setattr(task, "solver_answer", lie)


@pytest.mark.parametrize(
    "solver", ["SCS", *(pytest.param(name, marks=pytest.mark.slow) for name in ("CLARABEL", "ECOS", "OSQP", "HIGHS"))]
)
def test_a_script_asks_the_solver_by_its_own_interface(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _lying(monkeypatch, solver)
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(2 * x[0] + x[1] + cp.square(x[0])), [x[0] + x[1] >= 1, x[1] == 0.25, x <= 4])
    check = crosscheck(problem, [solver])
    assert check.verdicts[solver].verdict == "WRONG"
    script = check.bug(solver, seconds=0.0).script
    module = {"HIGHS": "highspy"}.get(solver, solver.lower())
    assert f"import {module}" in script
    assert "import cvxpy" not in script
    printed = _printed(script)
    assert "the bug is not shown by this version" in printed  # the solver itself is right
    value, expected = (float(word) for word in re.findall(r"value +given (\S+) +expected (\S+)", printed)[0])
    assert (value, expected) == pytest.approx((2.3125, 2.3125), abs=1e-4)  # 2 * .75 + .25 + .75^2


def test_the_script_of_a_stored_lie_shows_it_beside_the_truth(tmp_path: Path) -> None:
    liar = LIARS[3]
    known = liar.build()
    check = crosscheck(known.problem, ["CLARABEL"], answers={"liar": liar.stored})
    report = check.bug("liar")
    text = report.write(tmp_path / "bug.py").read_text(encoding="utf-8")
    assert text == report.script == str(report)
    assert f"{liar.stored.solver} {liar.stored.version}" in text
    printed = _printed(text)
    assert "value       given 12.0    expected 5.75" in printed
    assert SHOWN in printed
    assert report.trials == 1  # an answer to the whole problem says nothing of a part of it


def test_the_script_of_a_complex_lie_has_its_parts_and_a_denial_has_no_point() -> None:
    z = cp.Variable(2, name="z", complex=True)
    problem = cp.Problem(cp.Minimize(cp.norm(z - np.array([1 + 1j, 2]))))
    lies = {"lie": Stored({"z": [1.5 + 1j, 2]}), "denial": Stored(None, status="infeasible")}
    check = crosscheck(problem, ["CLARABEL"], answers=lies)
    printed = _printed(check.bug("lie").script)
    assert "Re z: given [1.5, 2.0]" in printed
    assert SHOWN in printed
    denied = _printed(check.bug("denial").script)
    assert "given infeasible    expected optimal" in denied
    assert "largest difference" not in denied
    assert SHOWN in denied


def test_a_stored_answer_that_is_no_number_is_wrong_and_its_script_says_so() -> None:
    x = cp.Variable(name="x")
    check = crosscheck(cp.Problem(cp.Minimize(x), [x >= 1]), ["CLARABEL"], answers={"lie": Stored({"x": np.nan})})
    assert check.verdicts["lie"].verdict == "WRONG"
    script = check.bug("lie").script
    printed = _printed(script)
    assert "value       given nan    expected 1.0" in printed
    assert SHOWN in printed
    assert "is not shown" in _printed(
        script.replace("x[[0]] = [nan]", "x[[0]] = 0.0").replace("value = nan", "value = 0")
    )


def test_a_script_knows_its_solver_s_words_for_claims_without_accuracy() -> None:
    for solver, own in (("SCS", "-6"), ("CLARABEL", "Almost"), ("ECOS", "10 + own"), ("OSQP", "inaccurate")):
        assert own in CALLS[solver]
    t = cp.Variable(name="t")
    check = crosscheck(cp.Problem(cp.Minimize(t), [1e-8 * t >= 1]), ["CLARABEL", "SCS"])
    if check.verdicts["SCS"].verdict == "WRONG":  # SCS 3.3.1: unbounded_inaccurate, of a problem whose optimum is 1e8
        assert SHOWN in _printed(check.bug("SCS", seconds=0.0).script)


@pytest.mark.slow
def test_what_scs_lies_about_here_is_shrunk_and_shown_again() -> None:
    costs = np.array([0.0, 10.0, 10.5, 11.0, 12.0])
    for cost in costs[1:]:
        known = softmin(np.array([0.0, cost]), redundant=True)
        check = crosscheck(known.problem, ["CLARABEL", "SCS"], options={"SCS": TIGHT})
        if check.verdicts["SCS"].verdict == "WRONG":
            report = check.bug("SCS", seconds=4.0)
            assert len(report.problem.constraints) <= len(known.problem.constraints) + 8
            assert SHOWN in _printed(report.script)
            return
    with pytest.raises(ModelError, match="has no answer that is WRONG"):  # right here at every cost
        check.bug("SCS")


def test_there_is_no_report_of_an_answer_that_is_right() -> None:
    x = cp.Variable(name="x")
    check = crosscheck(cp.Problem(cp.Minimize(x), [x >= 1]), ["CLARABEL"])
    with pytest.raises(ModelError, match="CLARABEL: agrees"):
        check.bug("CLARABEL")
    with pytest.raises(ModelError, match="has no answer that is WRONG"):
        check.bug("SCS")


def _whole() -> cp.Problem:
    """Two whole numbers and a boolean one; best is 7 = 2 + 3 + 2."""
    n, b = cp.Variable(2, integer=True, name="n"), cp.Variable(boolean=True, name="b")
    return cp.Problem(cp.Maximize(cp.sum(n) + 2 * b), [n <= 3.7, n >= 0, b + n[0] <= 3.2])


@pytest.mark.parametrize("solver", ["HIGHS", pytest.param("ECOS_BB", marks=pytest.mark.slow)])
def test_the_script_of_a_mixed_integer_lie_asks_for_whole_numbers(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(case: Any, asked: str, own: Any) -> Answer:
        if asked != solver:
            return honest(case, asked, own)
        worse = solver_answers.claimed_answer(case, asked, {"n": [1, 1], "b": 1})
        return replace(worse, status="optimal")

    honest = task.integer_answer
    monkeypatch.setattr(task, "integer_answer", lie)
    then = Stored({"n": [2, 3], "b": 0}, asked=1e-8, solver="SCIP", version="9")
    check = crosscheck(_whole(), [solver], answers={"then": then, "best": {"n": [2, 3], "b": 1}})
    printed = _printed(check.bug(solver, seconds=0.0).script)  # the solver itself is right
    assert re.search(r"value +given [67]\.\d+ +expected 7\.0", printed)
    assert "is not shown" in printed
    assert "claims optimal" in check.bug("then").script


def test_a_mixed_integer_lie_is_shrunk_and_its_columns_stay_whole() -> None:
    @quiet()
    def stub(problem: cp.Problem) -> Trial:
        value = cp.Problem(problem.objective, problem.constraints).solve(solver="HIGHS")
        wrong = problem.is_mixed_integer() and 6 <= value < np.inf  # two whole numbers of at most 3.7
        return Trial("WRONG" if wrong else "agrees", "a stub says so", "optimal", 0.0, None, 6.0, {})

    report = bug_report(_whole(), "HIGHS", stub, {}, seconds=60.0)
    assert report.problem.is_mixed_integer()
    (x,) = report.problem.variables()
    assert x.size == 2
    assert "integers = [0" in report.script


def test_an_entry_of_a_finite_set_is_written_in_no_script() -> None:
    x = cp.Variable(name="x")
    problem = cp.Problem(cp.Minimize(cp.square(x - 1.2)), [cp.FiniteSet(x, [0, 5])])
    check = crosscheck(problem, ["SCIPY", "HIGHS", "ECOS_BB"], answers={"lie": {x: 5.0}})
    with pytest.raises(ModelError, match="restricted to a set of values"):
        check.bug("lie")


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_a_cone_program_is_the_same_problem_written_out(solver: str) -> None:
    x, X = cp.Variable(3, name="x"), cp.Variable((2, 2), symmetric=True, name="X")
    problem = cp.Problem(
        cp.Maximize(cp.sum(cp.entr(x)) - cp.lambda_max(X) - cp.norm(x - 1)),
        [cp.sum(x) == 1, X >> np.array([[2.0, 1.0], [1.0, 3.0]]), cp.power(x[0], 3) <= 0.5],
    )
    program = ConeProgram.from_problem(problem, solver)
    written = problem_of_program(program)
    assert written.solve(solver="CLARABEL") == pytest.approx(problem.solve(solver="CLARABEL"), abs=1e-6)
    every = with_columns(with_blocks(program, program.layout.names), range(program.c.size))
    assert (abs(every.A - program.A).max(), every.layout) == (0.0, program.layout)
    assert float(rounded(program, 2).b.max()) == float(f"{program.b.max():.1e}")
