"""`cvxpriv crosscheck funnel`: every block, every solver, verdicts first."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from cvxpriv_models.privacy_funnel.run import FunnelRun

from cvxpriv.crosschecks.check import CrossCheck

from .conftest import Run, one_error_line

OPTIONS = ("--private", "income", "--public", "age", "--count", "count", "--rate", "0.6", "--starts", "3")


def test_every_block_is_judged_by_every_solver_and_nothing_is_written(run: Run, counts: str) -> None:
    result = run("crosscheck", "funnel", "--table", counts, *OPTIONS, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    pairs = {(answer["case"], answer["solver"]) for answer in document["answers"]}
    blocks = {case for case, _ in pairs}
    assert {"q", "u", "r", "w"} <= blocks
    for solver in ("CLARABEL", "ECOS", "SCS"):
        assert {case for case, by in pairs if by == solver} == blocks
    assert {path.name for path in Path().iterdir()} == {counts}


def test_the_table_shows_verdicts_first_within_100_columns(run: Run, counts: str) -> None:
    result = run("crosscheck", "funnel", "--table", counts, *OPTIONS, "--solvers", "ECOS")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert any(line.split()[:3] == ["verdict", "block", "solver"] for line in lines)
    assert "CLARABEL" not in result.stdout
    assert max(map(len, lines)) <= 100


def test_out_writes_the_whole_table(run: Run, counts: str) -> None:
    run("crosscheck", "funnel", "--table", counts, *OPTIONS, "--solvers", "ECOS", "--out", "o")
    assert {"case", "solver", "verdict", "bound"} <= set(pd.read_csv("o/crosscheck.csv").columns)


@pytest.mark.parametrize(("verdict", "code"), [("agrees", 0), ("loose", 0), ("failed", 3), ("WRONG", 3)])
def test_wrong_and_failed_verdicts_exit_with_3(
    run: Run, counts: str, monkeypatch: pytest.MonkeyPatch, verdict: str, code: int
) -> None:
    certify = FunnelRun.certify

    def judged(self: FunnelRun, *arguments: object, **options: object) -> CrossCheck:
        check = certify(self, ["ECOS"])
        check.table.loc[len(check.table) - 1, ["verdict", "reason"]] = [verdict, "as the test says"]
        return check

    monkeypatch.setattr(FunnelRun, "certify", judged)
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
