"""Rows prepared by options: what the mechanism's file keeps, and what `release` does with raw rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run, one_error_line

QUICK = ("--no-report", "--bootstrap", "0", "--no-crosscheck")


@pytest.fixture
def patients(tmp_path: Path) -> str:
    lines = ["id,age,job,ill"]
    for i in range(120):
        age = "" if i % 40 == 7 else 20 + i % 60
        lines.append(f"{i},{age},{('clerk', 'typist', 'smith')[i % 3] if i != 50 else 'pilot'},{int(i % 60 > 35)}")
    (tmp_path / "patients.csv").write_text("\n".join(lines) + "\n")
    return "patients.csv"


def test_from_raw_rows_to_a_release_of_raw_rows(run: Run, patients: str) -> None:
    line = ["--bins", "age=30,50", "--merge", "job=clerk|typist=office", "--rare", "5", "--missing", "drop"]
    made = run("funnel", patients, "--private", "ill", "--public", "age,job", *line, *QUICK, "--json")
    assert made.exit_code == 0, made.stderr
    assert made.stderr.startswith("warning: 3 of 120 rows lack a value and were dropped")
    about = json.loads(made.stdout)["about"]
    assert "age in 3 classes: below 30, 30 to 49, 50 and above" in about["preparation"]
    assert about["records"] == 117
    released = run("release", "out/mechanism.json", patients, "--json")
    document = json.loads(released.stdout)
    assert (document["rows"], document["released"], document["dropped"]) == (120, 117, 3)
    refused = run("release", "out/mechanism.json", patients, "--missing", "refuse")
    assert "'age' has 3 missing values in 120 rows" in one_error_line(refused)
    assert "--missing drop" in one_error_line(refused)


def test_missing_values_are_refused_with_the_options_that_treat_them(run: Run, patients: str) -> None:
    line = one_error_line(run("funnel", patients, "--private", "ill", "--public", "age,job", *QUICK))
    assert "3 missing values in 120 rows" in line
    assert "--missing drop" in line
    assert "--missing symbol" in line


def test_old_spellings_are_pointed_to_their_option(run: Run, patients: str) -> None:
    line = one_error_line(run("funnel", patients, "--private", "ill", "--public", "job", "--missing", "NA,?", *QUICK))
    assert "--missing-text" in line


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--bins", "job=1,2"], "--bins of 'job': 'clerk' is no number"),
        (["--bins", "job=x"], "edges are numbers"),
        (["--bins", "age=1", "--bins", "age=2"], "--bins names 'age' twice"),
        (["--merge", "job=clark=office"], "did you mean 'clerk'"),
        (["--rare", "-1"], "give a whole number >= 1"),
    ],
)
def test_wrong_recipes_are_one_line_before_any_work(run: Run, patients: str, option: list[str], message: str) -> None:
    public = ["--private", "ill", "--public", "age,job", "--missing", "drop"]
    assert message in one_error_line(run("funnel", patients, *public, *option, *QUICK))
