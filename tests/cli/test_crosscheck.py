"""`cvxpriv crosscheck funnel`: every block, every solver, verdicts first."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from cvxpriv_models.privacy_funnel.run import FunnelRun

from cvxpriv import models
from cvxpriv.certify.bugs import BugReport
from cvxpriv.certify.cases import case_of_problem
from cvxpriv.certify.check import CrossCheck
from cvxpriv.certify.corpus.liars import LIARS
from cvxpriv.certify.solver_answers import recalled
from cvxpriv.certify.verdicts import Verdict
from cvxpriv.cli.problem_command import crosscheck_command
from cvxpriv.cli.terminal import Terminal
from cvxpriv.kkt.conic.solving import ConicSolution, solve_conic
from cvxpriv.reports.sets import require_whole
from cvxpriv.tables.joint import JointTable

from ..outside_package.factorisation import Factorisation
from .conftest import COUNTS, Run, one_error_line

OPTIONS = ("--private", "income", "--public", "age", "--count", "count", "--rate", "0.6", "--starts", "1")


def test_every_block_is_judged_by_every_solver_and_nothing_is_written(run: Run, counts: str) -> None:
    result = run("crosscheck", "funnel", "--table", counts, *OPTIONS, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    pairs = {(answer["case"], answer["solver"]) for answer in document["tables"]["crosscheck"]}
    blocks = {case for case, _ in pairs}
    assert {"q", "u", "r", "w"} <= blocks
    for solver in ("CLARABEL", "ECOS", "SCS"):
        assert {case for case, by in pairs if by == solver} == blocks
    assert {path.name for path in Path().iterdir()} == {counts}


def test_the_table_shows_verdicts_first_within_100_columns_and_out_writes_all_of_it(run: Run, counts: str) -> None:
    result = run("crosscheck", "funnel", "--table", counts, *OPTIONS, "--solvers", "ECOS", "--out", "o")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert any(line.split()[:3] == ["verdict", "block", "solver"] for line in lines)
    assert "CLARABEL" not in result.stdout
    assert max(map(len, lines)) <= 100
    assert {"case", "solver", "verdict", "bound"} <= set(pd.read_csv("o/crosscheck.csv").columns)
    assert set(require_whole("o")) == {"crosscheck.csv", "crosscheck.html"}


@pytest.fixture(scope="module")
def judged() -> CrossCheck:
    table = JointTable.from_array(np.array(list(COUNTS.values())).reshape(2, 3) / 60)
    return models.PrivacyFunnel(table, 0.6).solve(starts=1).certify(["ECOS"])


@pytest.mark.parametrize(("verdict", "code"), [("loose", 0), ("failed", 3), ("WRONG", 3)])
def test_wrong_and_failed_verdicts_exit_with_3(
    run: Run, counts: str, judged: CrossCheck, monkeypatch: pytest.MonkeyPatch, verdict: str, code: int
) -> None:
    table = judged.table.copy()
    table.loc[len(table) - 1, ["verdict", "reason"]] = [verdict, "as the test says"]
    monkeypatch.setattr(FunnelRun, "certify", lambda *_, **__: replace(judged, table=table))
    result = run("crosscheck", "funnel", "--table", counts, *OPTIONS)
    assert result.exit_code == code
    assert ("as the test says" in result.stderr) == (code == 3)
    assert "verdict" in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--solvers", "ECOS,CLARABLE"], "did you mean 'CLARABEL'?"),
        (["--table", "none.csv"], "path='none.csv' cannot be read"),
        (["--out", "counts.csv"], "is no folder"),
    ],
)
def test_bad_input_is_one_line(run: Run, counts: str, options: list[str], message: str) -> None:
    assert message in one_error_line(run("crosscheck", "funnel", "--table", counts, *OPTIONS, *options))


def test_the_table_is_asked_for(run: Run) -> None:
    assert "--table" in one_error_line(run("crosscheck", "funnel", "--rate", "0.6"))


PROBLEMS = """
import cvxpy as cp
import numpy as np


def lie():
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(np.array([0, 10.5]) @ x - cp.sum(cp.entr(x))), [cp.sum(x) == 1, x >= 0])


def corner():
    x = cp.Variable(3, name="x")
    return cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1])


def hole():
    x = cp.Variable(name="x")
    return cp.Problem(cp.Minimize(cp.sqrt(x)))
"""


@pytest.fixture
def problems(tmp_path: Path) -> str:
    path = tmp_path / "problems.py"
    path.write_text(PROBLEMS)
    return str(path)


def test_a_problem_of_one_s_own_is_judged_by_every_solver_that_takes_it() -> None:
    Path("problems.py").write_text(PROBLEMS)
    done = subprocess.run(
        [sys.executable, "-m", "cvxpriv", "crosscheck", "problems.py:corner", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    document = json.loads(done.stdout)  # a whole process: nothing that a solver prints may spoil it
    verdicts = {name: document["facts"][name]["value"] for name in ("CLARABEL", "ECOS", "SCS", "OSQP", "HIGHS")}
    assert set(verdicts.values()) == {"agrees"}


def test_a_lying_solver_is_caught_and_the_exit_code_says_so(
    run: Run, problems: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = LIARS[0].stored  # what SCS 3.3.1 said of this problem, on some processors

    def scs_or(problem: cp.Problem, solver: str, options: dict[str, Any], **more: Any) -> ConicSolution:
        if solver != "SCS":
            return solve_conic(problem, solver, options, **more)
        assert stored.values is not None
        problem.variables()[0].value = np.array(stored.values["x"])
        return recalled(case_of_problem("lie", problem).declare(), "SCS", stored)

    monkeypatch.setattr("cvxpriv.certify.solver_answers.solve_conic", scs_or)
    result = run("crosscheck", f"{problems}:lie", "--tolerance", "1e-12", "--solvers", "ECOS,SCS", "--out", "o")
    assert result.exit_code == 3
    assert "SCS on lie: WRONG, claims optimal to 1e-12, but its dual lies outside the dual cone" in result.stderr
    assert set(require_whole("o")) == {"crosscheck.csv", "crosscheck.html"}


SCALES = """
import cvxpy as cp
import numpy as np


def thin():
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Maximize(x[0]), [cp.quad_form(x, np.diag([1e-3, 1e8])) <= 1])


def corner():
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(cp.sum(x)), [x >= 0.1, x[0] + x[1] >= 1])
"""


def test_other_units_are_one_option_away(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "scales.py"
    file.write_text(SCALES)
    without = run("crosscheck", f"{file}:thin", "--solvers", "CLARABEL")
    assert without.exit_code == 3
    assert "all are off: no answer to thin agrees" in " ".join(without.stdout.split())
    again = run("crosscheck", f"{file}:thin", "--solvers", "CLARABEL", "--rescale")
    assert again.exit_code == 0, again.stderr
    assert "No answer to thin agreed: solved again in other units" in " ".join(again.stdout.split())


def test_a_proof_and_a_bug_report_are_options(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "scales.py"
    file.write_text(SCALES)
    chosen = ("--solvers", "CLARABEL", "--proof", "interval", "--bug", "clarabel")
    assert "give --out" in run("crosscheck", f"{file}:corner", *chosen).stderr
    done = run("crosscheck", f"{file}:corner", *chosen, "--out", str(tmp_path / "o"), "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["tables"]["crosscheck"][0]["known_by"] == "proved"
    assert set(require_whole(tmp_path / "o")) == {"crosscheck.csv", "crosscheck.html"}


def test_a_bug_report_is_written_for_a_lying_solver(run: Run, problems: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(check: CrossCheck, solver: str) -> BugReport:
        return BugReport(solver, None, None, f"# of {solver}", 1)  # type: ignore[arg-type]

    monkeypatch.setattr(CrossCheck, "bug", told)
    monkeypatch.setattr(CrossCheck, "verdicts", {"SCS": Verdict("WRONG", "it is far off")})
    run("crosscheck", f"{problems}:corner", "--solvers", "SCS", "--bug", "scs", "--out", "o")
    assert Path("o/bug_SCS.py").read_text() == "# of SCS"


@pytest.mark.slow
def test_all_means_every_block_of_every_model(run: Run) -> None:
    result = run("crosscheck", "--all", "--solvers", "CLARABEL", "--json")
    assert result.exit_code == 0, result.stderr
    blocks = {answer["case"] for answer in json.loads(result.stdout)["tables"]["crosscheck"]}
    assert blocks >= {f"funnel {name}" for name in ("q", "u", "r", "w", "(u, r)", "(q, u, r)")}
    assert len(models.available()) == len({block.split()[0] for block in blocks})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to check: give --all"),
        (("{}:lye",), "has no function 'lye': did you mean 'lie'"),
        (("{}:hole",), "is not DCP"),
        (("nowhere.py:lie",), "nowhere.py"),
        (("--all", "{}:lie"), "--all: give it after what is checked"),
        (("{}:lie", "--solvers", "CLARABELLE"), "did you mean 'CLARABEL'"),
        (("{}:lie", "--time-limit", "3"), "--time-limit=3.0"),
        (("funel",), "'funel' is no model that is installed: did you mean 'funnel'?"),
        (("problems",), "or a problem of yours: my_problem.py:build"),
        (("{}",), "has no function 'build'"),
    ],
)
def test_what_cannot_be_checked_is_refused(run: Run, problems: str, arguments: tuple[str, ...], message: str) -> None:
    result = run("crosscheck", *(argument.format(problems) for argument in arguments))
    assert message in one_error_line(result)


def test_a_file_alone_means_its_build_and_says_so(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import cvxpy as cp\n\ndef build():\n    return cp.Problem(cp.Minimize(cp.norm(cp.Variable(2) - 1)))"
    )
    result = run("crosscheck", str(path), "--solvers", "CLARABEL")
    assert result.exit_code == 0, result.stderr
    assert f"Checked {path}:build, as no function was named" in " ".join(result.stdout.split())
    named = run("crosscheck", f"{path}:build", "--solvers", "CLARABEL")
    assert "Checked" not in named.stdout


def test_a_model_that_is_one_problem_is_checked_by_its_name(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "matrix.csv", np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 5.0]]), delimiter=",")
    words = ["matrix.csv", "--rank", "1", "--solvers", "CLARABEL"]
    result = CliRunner().invoke(crosscheck_command(Factorisation), words, obj=Terminal(json=True))
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["tables"]["crosscheck"]
    assert {row["verdict"] for row in rows} <= {"agrees", "loose"}
    assert len({row["case"] for row in rows}) == 2
