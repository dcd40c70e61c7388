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
    assert made.stderr.startswith("warning: 3 of 120 rows lack a value (3 that of age)")
    about = json.loads(made.stdout)["about"]
    assert "age in 3 classes: below 30, 30 to 49, 50 and above" in about["preparation"]
    assert about["records"] == 117
    released = run("release", "out/mechanism.json", patients, "--json")
    document = json.loads(released.stdout)
    assert (document["rows"], document["released"], document["dropped"]) == (120, 117, 3)
    refused = run("release", "out/mechanism.json", patients, "--missing", "refuse")
    assert "'age' has 3 missing values in 120 rows" in one_error_line(refused)
    assert "--missing drop" in one_error_line(refused)


def test_a_kept_column_is_weighed_on_prepared_rows_too(run: Run, patients: str) -> None:
    line = ["--bins", "age=30,50", "--merge", "job=clerk|typist=office", "--rare", "5", "--missing", "drop"]
    assert run("funnel", patients, "--private", "ill", "--public", "age,job", *line, *QUICK).exit_code == 0
    message = one_error_line(run("release", "out/mechanism.json", patients, "--keep", "id"))
    assert "Y with id a guess of ill is right for 100.0% of these rows" in message
    assert not Path("released.csv").exists()
    document = json.loads(run("release", "out/mechanism.json", patients, "--keep", "id", "--yes", "--json").stdout)
    assert [row["seen"] for row in document["guesses"]] == ["nothing", "Y", "Y with id"]
    # By hand: rows 7, 47 and 87 have no age.
    ill = sum(i % 60 > 35 for i in range(120) if i % 40 != 7)
    assert document["guesses"][0]["accuracy"] == pytest.approx(max(ill, 117 - ill) / 117)


@pytest.mark.parametrize(("private", "public", "usual"), [("age", "job", 59), ("job", "age", 78)])
def test_prepared_private_columns_are_guessed_as_the_mechanism_knows_them(
    run: Run, patients: str, private: str, public: str, usual: int
) -> None:
    line = ["--bins", "age=30,50", "--merge", "job=clerk|typist=office", "--rare", "5", "--missing", "drop"]
    assert run("funnel", patients, "--private", private, "--public", public, *line, *QUICK).exit_code == 0
    document = json.loads(run("release", "out/mechanism.json", patients, "--keep", "id", "--yes", "--json").stdout)
    # By hand, of the 117 rows with an age: 59 are 50 and above, 78 are in an office.
    assert document["guesses"][0]["accuracy"] == pytest.approx(usual / 117)
    assert document["guesses"][-1]["accuracy"] == pytest.approx(1.0)


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
        (["--bins", "job=1,2"], "--bins of 'job': 'clerk', "),
        (["--bins", "job=x"], "edges are numbers"),
        (["--bins", "age=1", "--bins", "age=2"], "--bins names 'age' twice"),
        (["--merge", "job=clark=office"], "did you mean 'clerk'"),
        (["--rare", "-1"], "give a whole number >= 1"),
    ],
)
def test_wrong_recipes_are_one_line_before_any_work(run: Run, patients: str, option: list[str], message: str) -> None:
    public = ["--private", "ill", "--public", "age,job", "--missing", "drop"]
    assert message in one_error_line(run("funnel", patients, *public, *option, *QUICK))


def test_release_reads_new_rows_with_the_decimals_and_spellings_of_the_design(run: Run, tmp_path: Path) -> None:
    lines = [f"{('1,500', '2,250', '?', '3,125')[i % 4]};{'ny'[i % 8 > 4]}" for i in range(80)]
    (tmp_path / "rows.csv").write_text("\n".join(["dose;ill", *lines]))
    line = ["--private", "ill", "--public", "dose", "--bins", "dose=2,3", "--missing", "symbol"]
    assert "say which, --decimal=','" in one_error_line(run("funnel", "rows.csv", *line, "--missing-text", "?", *QUICK))
    said = ["--missing-text", "?", "--decimal", ","]
    assert run("funnel", "rows.csv", *line, *said, *QUICK).exit_code == 0
    held = json.loads(Path("out/mechanism.json").read_text())
    assert (held["recipe"]["decimal"], held["recipe"]["missing_text"]) == (",", ["?"])
    assert held["symbols"] == [["below 2"], ["2 to below 3"], ["3 and above"], ["missing"]]
    (tmp_path / "later.csv").write_text('dose,ill\n"2,125",n\n?,n\n')  # commas between cells: 2,125 would be thousands
    assert json.loads(run("release", "out/mechanism.json", "later.csv", "--json").stdout)["released"] == 2
    release = ("release", "out/mechanism.json", "later.csv")
    assert "'?' is no number" in one_error_line(run(*release, "--missing-text", "-"))
    assert "'--decimal': ';' is not one of" in one_error_line(run(*release, "--decimal", ";"))


def test_suspicious_symbols_are_told_and_stay(run: Run, tmp_path: Path) -> None:
    lines = [f"{20 + i % 40 if i else 999},{('Yes', 'No', 'yes', 'n.a.')[i % 4]},{i % 2}" for i in range(80)]
    (tmp_path / "rows.csv").write_text("\n".join(["age,smoker,ill", *lines]))
    line = ["--private", "ill", "--public", "age,smoker", "--bins", "age=30,50"]
    shown = run("funnel", "rows.csv", *line, *QUICK).stderr
    assert "age: '999' looks like a missing value; smoker: 'Yes' and 'yes' are two symbols; smoker: 'n.a.' " in shown
    assert ["50 and above", "yes"] in json.loads(Path("out/mechanism.json").read_text())["symbols"]
    said = ["--merge", "smoker=Yes|yes=yes", "--missing-text", "999,n.a.", "--missing", "drop"]
    assert "looks like" not in run("funnel", "rows.csv", *line, *said, *QUICK).stderr
