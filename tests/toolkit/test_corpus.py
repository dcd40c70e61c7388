"""The corpus: where its problems come from, that files become the problems they hold, and that false verdicts show."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from scipy.io import savemat

from cvxpriv.certify.answers import Stored
from cvxpriv.certify.check import crosscheck
from cvxpriv.certify.corpus import edges
from cvxpriv.certify.corpus.files import problem_of_file, problems_of_folder
from cvxpriv.certify.corpus.items import Item, cvxpys, items
from cvxpriv.certify.corpus.known import UNKNOWN, Known, false_verdicts
from cvxpriv.certify.corpus.running import run_corpus
from cvxpriv.errors import DataError, ModelError
from cvxpriv.reports.document import document_of

#: Minimise 1 + x + 2 y with 3 <= x + y <= 5, x - y = 1, 0 <= x <= 4, y free: x = 2, y = 1, worth 5.
LINEAR = """NAME small
ROWS
 N cost
 G total
 E apart
COLUMNS
 x cost 1.0 total 1.0
 x apart 1.0
 y cost 2.0 total 1.0
 y apart -1.0
RHS
 r cost -1.0 total 3.0
 r apart 1.0
RANGES
 s total 2.0
BOUNDS
 UP b x 4.0
 FR b y
ENDATA
"""

#: Minimise x^2 + x y + y^2 - x with x + y >= 1.
QUADRATIC = """NAME square
ROWS
 N cost
 G total
COLUMNS
 x cost -1.0 total 1.0
 y total 1.0
RHS
 r total 1.0
BOUNDS
 FR b x
 FR b y
QUADOBJ
 x x 2.0
 x y 1.0
 y y 2.0
ENDATA
"""

INTEGER = """\\ whole numbers
Minimize
 cost: x
Subject To
 c: x >= 0.5
General
 x
End
"""


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_linear_program_of_a_file_has_its_rows_ranges_bounds_and_constant(tmp_path: Path) -> None:
    problem = problem_of_file(written(tmp_path, "small.mps", LINEAR + "what follows the end is not read\n"))
    assert problem.solve(solver="CLARABEL") == pytest.approx(5.0, abs=1e-7)
    assert problem.variables()[0].value == pytest.approx([2.0, 1.0], abs=1e-7)
    assert cp.Problem(cp.Maximize(problem.objective.args[0]), problem.constraints).solve(solver="CLARABEL") == (
        pytest.approx(1.0 + 3.0 + 2.0 * 2.0, abs=1e-7)  # the other end of the range: x = 3, y = 2
    )


def test_a_quadratic_program_of_a_file_has_both_triangles_of_its_matrix(tmp_path: Path) -> None:
    problem = problem_of_file(written(tmp_path, "square.qps", QUADRATIC))
    # 2x + y - 1 = x + 2y = m and x + y = 1: x = 1, y = 0, m = 1.
    assert problem.solve(solver="CLARABEL") == pytest.approx(0.0, abs=1e-7)
    assert problem.variables()[0].value == pytest.approx([1.0, 0.0], abs=1e-6)


@pytest.mark.parametrize("whole", [True, False])
def test_a_quadratic_problem_keeps_its_whole_numbers(tmp_path: Path, whole: bool) -> None:
    text = "Minimize\n obj: x + [ 2 x ^2 ] / 2\nSubject To\n c: x >= 0.5\n" + "General\n x\n" * whole + "End\n"
    assert problem_of_file(written(tmp_path, "square.lp", text)).is_mixed_integer() is whole


def test_a_file_of_matrices_is_the_same_problem(tmp_path: Path) -> None:
    P, q = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-1.0, 0.0])
    path = tmp_path / "square.mat"
    savemat(path, {"P": P, "q": q, "r": 2.0, "A": np.ones((1, 2)), "l": [1.0], "u": [1e20]})
    assert problem_of_file(path).solve(solver="CLARABEL") == pytest.approx(2.0, abs=1e-7)


def test_what_a_file_does_not_hold_is_said(tmp_path: Path) -> None:
    written(tmp_path, "small.mps", LINEAR)
    written(tmp_path, "whole.lp", INTEGER)
    written(tmp_path, "broken.mps", "no such format\n")
    written(tmp_path, "notes.txt", "nothing to read\n")
    found = list(problems_of_folder(tmp_path, largest=10))
    assert [one.name if isinstance(one, Known) else one[0] for one in found] == ["broken.mps", "small.mps", "whole.lp"]
    assert isinstance(found[0], tuple)
    assert found[0][1] == "broken.mps has no ENDATA: it is cut off"
    assert isinstance(found[2], Known)
    assert found[2].problem.is_mixed_integer()
    with pytest.raises(ModelError, match=r"small.mps has 2 variables and 2 rows: more than 1"):
        problem_of_file(tmp_path / "small.mps", largest=1)
    with pytest.raises(DataError, match=r"expected a file that ends with .mps"):
        problem_of_file(tmp_path / "notes.txt")
    with pytest.raises(DataError, match=r"holds no file that ends with"):
        next(problems_of_folder(tmp_path / "none"))


def test_a_file_of_whole_numbers_is_judged_with_them_fixed_and_zipped_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "whole.lp.gz").write_bytes(gzip.compress(INTEGER.encode()))
    run = run_corpus(items([], folder=tmp_path), ("HIGHS",))
    assert run.table[["solver", "verdict", "known_by", "objective"]].to_numpy().tolist() == [
        ["HIGHS", "agrees", "certified", 1.0]
    ]


@pytest.mark.parametrize("kept", range(0, len(LINEAR) - 1, 15))
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, kept: int) -> None:
    with pytest.raises(DataError, match=r"cut\.mps has no ENDATA"):
        problem_of_file(written(tmp_path, "cut.mps", LINEAR[: min(kept, LINEAR.index("ENDATA"))]))


def test_what_no_problem_can_be_made_of_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "cut.mps.gz").write_bytes(gzip.compress(LINEAR.encode())[:-20])
    written(tmp_path, "empty.mps", "NAME none\nROWS\nCOLUMNS\nRHS\nENDATA\n")
    written(tmp_path, "semi.lp", "min\n cost: x\nst\n c: x >= 1\nbounds\n x <= 4\nsemi\n x\nend\n")
    for name, error, why in (
        ("cut.mps.gz", DataError, "cannot be read"),
        ("empty.mps", DataError, "holds no variables"),
        ("semi.lp", ModelError, "semi-continuous"),
        ("none.mps", DataError, "cannot be read"),
    ):
        with pytest.raises(error, match=why):
            problem_of_file(tmp_path / name)


def test_cvxpys_own_problems_are_continuous_and_most_have_a_known_value() -> None:
    found = list(cvxpys())
    assert len(found) >= 20
    assert not any(known.problem.is_mixed_integer() for known in found)
    assert {known.status for known in found} >= {"optimal", "infeasible", "unbounded"}
    assert sum(known.status != UNKNOWN for known in found) >= 20


def test_sources_are_named() -> None:
    assert [item.source for item in items(["adversarial"], count=3)] == ["adversarial"] * 3
    with pytest.raises(ModelError, match="did you mean 'liars'"):
        list(items(["liers"]))


def lie(value: float) -> Item:
    """One item with a stored answer that may only be called WRONG."""
    x = cp.Variable(name="x")
    known = Known(cp.Problem(cp.Minimize(cp.square(x - 1))), value=0.0, answers={"truth": {x: np.array(1.0)}})
    return Item("mine", "least", known, {"stored": Stored({"x": value}, solver="SCS", version="1")}, ("WRONG",))


def test_a_run_counts_verdicts_by_solver_and_version_and_says_which_are_false() -> None:
    run = run_corpus([lie(2.0), lie(1.0), Item("mine", "gone", skipped="no problem")], ("CLARABEL", "OSQP"))
    assert len(run.false) == 1  # the second lie is the truth, and is called so
    assert run.false[0].startswith("least: the stored lie is called agrees")
    assert dict(run.skipped) == {"gone": "no problem"}
    solvers: Mapping[str, int] = run.by_solver.set_index("solver")["answers"].to_dict()
    assert solvers == {"claim": 2, "stored SCS": 2, "CLARABEL": 2, "OSQP": 2}
    assert run.by_solver.set_index("solver")["version"]["stored SCS"] == "1"
    document = document_of(run.facts)
    assert document["facts"]["false_verdicts"]["value"] == 1
    assert document["facts"]["false_rate"]["value"] == pytest.approx(1 / 8)
    assert {row["problem"] for row in document["tables"]["skipped"]} == {"gone"}


def test_answers_to_an_unknown_problem_may_not_contradict_each_other(tmp_path: Path) -> None:
    written(tmp_path, "small.mps", LINEAR)
    run = run_corpus(items([], folder=tmp_path), ("CLARABEL", "HIGHS"))
    assert run.false == ()
    assert run.by_source.to_dict("records")[0]["problems"] == 1
    assert set(run.table["verdict"]) == {"agrees"}


def test_known_liars_are_judged_right() -> None:
    run = run_corpus(items(["liars"]), ("CLARABEL",))
    assert run.false == (), run.false
    assert not run.skipped


@pytest.mark.parametrize("family", edges.FAMILIES, ids=lambda family: family.__name__)
def test_a_true_answer_has_the_known_value_and_a_false_one_is_off(
    family: Callable[[np.random.Generator], Known],
) -> None:
    for seed in range(4):
        known = family(np.random.default_rng(seed))
        for name, point in known.answers.items():
            for variable, value in point.items():
                variable.save_value(value)
            missed = max((float(np.max(one.violation())) for one in known.problem.constraints), default=0.0)
            error = known.error(float(known.problem.objective.value))
            if name == "truth":
                assert max(error, missed) <= 1e-7, (seed, error, missed)
            else:
                assert max(error, missed) >= 9e-6, (seed, name, error, missed)


@pytest.mark.parametrize(
    ("family", "seed"),
    [
        (edges.near_boundary, [77, 18]),  # CLARABEL's value is 2e-2 off, and was the reference
        (edges.vanishing_denominator, [77, 7]),  # no solver has a point, and SCS's worthless one was the reference
        (edges.mean_at_zero, [1, 1]),  # CLARABEL's point misses x <= 0 by 3e-14, which is worth 4e-4
    ],
)
def test_no_true_answer_is_wrong_for_a_reference_that_is(
    family: Callable[[np.random.Generator], Known], seed: list[int]
) -> None:
    known = family(np.random.default_rng(seed))
    answers = {name: dict(point) for name, point in known.answers.items()}
    table = crosscheck(known.problem, ["CLARABEL", "SCS"], answers=answers).table
    assert false_verdicts(known, table) == []
    lies = {name: point for name, point in answers.items() if name != "truth"}
    assert "agrees" not in set(crosscheck(known.problem, ["CLARABEL"], answers=lies).table["verdict"])


def test_a_run_is_told_falsely_that_problems_have_no_solution() -> None:
    item = next(items(["adversarial"], count=1))
    assert [(name, one.status) for name, one in item.stored.items()] == [
        ("says infeasible", "infeasible"),
        ("says unbounded", "unbounded"),
    ]
    assert run_corpus([item], ("CLARABEL",)).false == ()
