"""`cvxpriv release`: what comes out, what stays behind, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from cvxpriv import decode

from .conftest import Run, one_error_line


def test_only_the_drawn_column_comes_out(run: Run, mechanism: str, people: str) -> None:
    result = run("release", mechanism, people)
    assert result.exit_code == 0
    released = pd.read_csv("released.csv")
    assert list(released.columns) == ["released"]
    assert len(released) == 60
    assert set(released["released"]) <= {"y0", "y1", "y2"}
    assert "60 of 60 rows to released.csv" in result.stdout
    assert result.stderr == ""


def test_each_row_is_drawn_from_the_row_of_its_own_symbol(run: Run, mechanism: str, people: str) -> None:
    run("release", mechanism, people)
    drawn, age = pd.read_csv("released.csv")["released"], pd.read_csv(people)["age"]
    assert set(drawn[age == "young"]) == {"y0"}
    assert "y2" not in set(drawn[age == "middle"])
    assert "y0" not in set(drawn[age == "old"])


def test_a_seed_draws_the_same_again_and_warns(run: Run, mechanism: str, people: str) -> None:
    first = run("release", mechanism, people, "--seed", "1", "--out", "first.csv")
    run("release", mechanism, people, "--seed", "1", "--out", "second.csv")
    run("release", mechanism, people, "--seed", "2", "--out", "third.csv")
    texts = [Path(f"{name}.csv").read_text() for name in ("first", "second", "third")]
    assert texts[0] == texts[1] != texts[2]
    assert first.stderr.startswith(
        "warning: the noise of this release comes from a seed: its guarantee holds only while"
    )
    assert first.stderr.count("\n") == 1


def test_a_secret_seed_is_told_to_nobody(run: Run, mechanism: str, people: str) -> None:
    result = run("release", mechanism, people, "--seed", "918273645", "--json")
    assert "918273645" not in result.stdout + result.stderr + Path("released.csv").read_text()


def test_a_kept_cell_that_a_spreadsheet_would_run_is_made_inert(run: Run, mechanism: str, people: str) -> None:
    rows = pd.read_csv(people).assign(id="=cmd()\x9b2J", change="-1.5")
    rows.to_csv("rows.csv", index=False)
    assert run("release", mechanism, "rows.csv", "--keep", "id,change", "--yes").exit_code == 0
    assert set(pd.read_csv("released.csv", dtype=str)["id"]) == {r"'=cmd()\x9b2J"}
    assert set(pd.read_csv("released.csv", dtype=str)["change"]) == {"-1.5"}


def test_without_a_seed_two_releases_differ(run: Run, mechanism: str, people: str) -> None:
    # 42 rows of a fair or a 1:3 coin: the same draw twice has probability below 1e-10.
    run("release", mechanism, people, "--out", "first.csv")
    run("release", mechanism, people, "--out", "second.csv")
    assert Path("first.csv").read_text() != Path("second.csv").read_text()


def test_kept_columns_come_first_and_a_tsv_has_tabs(run: Run, mechanism: str, people: str) -> None:
    assert (
        run("release", mechanism, people, "--keep", "id", "--yes", "--name", "Y", "--out", "out/r.tsv").exit_code == 0
    )
    assert Path("out/r.tsv").read_text().splitlines()[0] == "id\tY"


def test_json_is_one_document(run: Run, mechanism: str, people: str) -> None:
    for line in (["--json", "release", mechanism, people], ["release", mechanism, people, "--json"]):
        document = json.loads(run(*line).stdout)
        assert (document["rows"], document["released"], document["files"]) == (60, 60, ["released.csv"])
        assert sum(document["outputs"].values()) == 60


@pytest.mark.parametrize("seed", [[], ["--seed", "5"]])
def test_quiet_says_nothing(run: Run, mechanism: str, people: str, seed: list[str]) -> None:
    result = run("release", mechanism, people, "--quiet", *seed)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert Path("released.csv").exists()


def test_unseen_rows_are_refused_or_dropped(run: Run, mechanism: str) -> None:
    Path("more.csv").write_text("age\nyoung\nancient\n")
    assert "ancient" in one_error_line(run("release", mechanism, "more.csv"))
    assert not Path("released.csv").exists()
    result = run("release", mechanism, "more.csv", "--unseen", "drop")
    assert "Rows dropped: 1. " in result.stdout
    assert Path("released.csv").read_text() == "released\ny0\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--keep", "income"], "keep='income' is a private column"),
        (["--keep", "age"], "keep='age' is a public column"),
        (["--keep", "idd"], "did you mean 'id'?"),
        (["--unseen", "drp"], "did you mean 'drop'?"),
        (["--seed", "-1"], "seed=-1"),
        (["--seed", "x"], "'x' is not a valid integer"),
        (["--out", "people.csv"], "--out='people.csv' is the file 'people.csv' that is read"),
        (["--out", "mechanism.json"], "--out='mechanism.json' is the file"),
        (["--out", "people.csv/r.csv"], "is no folder"),
        (["--separator", ";"], "age"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(
    run: Run, mechanism: str, people: str, options: list[str], message: str
) -> None:
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    assert message in one_error_line(run("release", mechanism, people, *options))
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "version=99"),
        ({"format": "else"}, "format='else'"),
        ({"matrix": [[0.5, 0.5, 0.0], [0.0, 0.25, 0.7], [1.0, 0.0, 0.0]]}, "row 1 sums to 0.95"),
        ({"matrix": [[0.5, 0.5, 0.0], [-0.25, 0.5, 0.75], [1.0, 0.0, 0.0]]}, "-0.25"),
        ({"matrix": [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]}, "shape (2, 3), expected (3, 3)"),
        ({"surplus": 1}, "surplus"),
    ],
)
def test_a_mechanism_file_that_is_none_is_refused(
    run: Run, mechanism: str, people: str, change: dict[str, object], message: str
) -> None:
    document = json.loads(Path(mechanism).read_text())
    Path(mechanism).write_text(json.dumps({**document, **change}))
    line = one_error_line(run("release", mechanism, people))
    assert message in line
    assert "path='mechanism.json'" in line
    assert not Path("released.csv").exists()


def test_a_file_with_missing_values_is_refused(run: Run, mechanism: str) -> None:
    Path("holes.csv").write_text("id,age\n1,young\n2,\n3,old\n")
    assert "column 'age' has 1 missing value" in one_error_line(run("release", mechanism, "holes.csv"))


def test_a_folder_or_a_zip_is_a_bundle(run: Run, mechanism: str, people: str) -> None:
    assert "P(Y|X) stays at home" in run("release", mechanism, people, "--out", "bundle/").stdout
    document = json.loads(run("release", mechanism, people, "--out", "b.zip", "--with-matrix", "--json").stdout)
    assert (document["files"], document["matrix"]) == (["b.zip"], True)
    for place in ("bundle", "b.zip"):
        assert decode(place).frequencies("age")["estimate"].sum() == pytest.approx(1.0)


def test_a_matrix_does_not_go_into_one_table(run: Run, mechanism: str, people: str) -> None:
    assert "holds no matrix" in one_error_line(run("release", mechanism, people, "--with-matrix"))


def test_a_kept_column_that_gives_private_ones_away_wants_a_confirmation(run: Run, mechanism: str, people: str) -> None:
    message = one_error_line(run("release", mechanism, people, "--keep", "id"))
    assert "Y with id a guess of income is right for 100.0% of these rows" in message
    assert not Path("released.csv").exists()
    document = json.loads(run("release", mechanism, people, "--keep", "id", "--yes", "--json").stdout)
    assert [row["seen"] for row in document["guesses"]] == ["nothing", "Y", "Y with id"]
    # By hand: 30 of 60 from nothing. y0, y1, y2 hold (low, high) of 19:8.5, 6.5:8.75 and 4.5:12.75 rows.
    assert [row["accuracy"] for row in document["guesses"]] == pytest.approx([0.5, (19 + 8.75 + 12.75) / 60, 1.0])


@pytest.mark.parametrize("leakage", [0.0, 5e-11, 0.0037])
def test_a_leakage_is_said_to_be_that_of_the_table(run: Run, mechanism: str, people: str, leakage: float) -> None:
    document = json.loads(Path(mechanism).read_text())
    document["figures"]["leakage"] = leakage
    Path(mechanism).write_text(json.dumps(document))
    said = run("release", mechanism, people).stdout
    assert said.index("In the table that the mechanism was designed on") < said.index("leakage  I(S;Y)")
    assert "0 in it is no 0 in the population" in " ".join(said.split())
