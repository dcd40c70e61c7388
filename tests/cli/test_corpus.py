"""`cvxpriv corpus run`: a table by solver and version, files, JSON, and an exit code for false verdicts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cvxpriv.certify.corpus import items

from .conftest import Run, one_error_line

FREE = """NAME free
ROWS
 N cost
 G total
COLUMNS
 x cost 1.0 total 1.0
RHS
 r total 2.0
ENDATA
"""


def test_a_folder_of_files_is_judged_with_the_corpus(run: Run) -> None:
    Path("files").mkdir()
    Path("files/free.mps").write_text(FREE, encoding="utf-8")
    Path("files/torn.mps").write_text("nothing", encoding="utf-8")
    options = ("--sources", "adversarial", "--count", "2", "--folder", "files", "--solvers", "CLARABEL,HIGHS")
    result = run("corpus", "run", *options, "--out", "out", "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["facts"]["problems"]["value"] == 3
    assert document["facts"]["false_verdicts"]["value"] == 0
    assert {row["solver"] for row in document["tables"]["solvers"]} == {
        *("claim", "stored denial", "CLARABEL", "HIGHS")
    }
    assert [row["problem"] for row in document["tables"]["skipped"]] == ["torn.mps"]
    names = {"report.html", "answers.csv", "problems.csv", "solvers.csv", "sources.csv", "skipped.csv", "manifest.json"}
    assert {path.name for path in Path("out").iterdir()} == names
    assert "By solver" in Path("out/report.html").read_text(encoding="utf-8")


def test_a_false_verdict_ends_with_3(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(items.adversarial(1))
    untrue = replace(first, value=first.value + 1.0, answers={})
    monkeypatch.setattr(items, "adversarial", lambda count, seed: iter([untrue]))
    result = run("corpus", "run", "--sources", "adversarial", "--solvers", "CLARABEL")
    assert result.exit_code == 3
    assert "1 of 3 verdicts are false" in result.stderr
    assert "By solver" in result.stdout


def test_a_folder_without_problems_is_one_line(run: Run) -> None:
    assert "holds no file that ends with" in one_error_line(run("corpus", "run", "--sources", "liars", "--folder", "x"))
