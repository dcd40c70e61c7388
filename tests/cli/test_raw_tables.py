"""Tables as people have them: from the file's bytes to a mechanism and a bundle, in one command each."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import click
import pytest

import cvxpriv as cpv
from cvxpriv.cli import main
from cvxpriv.models import PrivacyFunnel
from cvxpriv.tables.frames import read_table

from .conftest import Run, one_error_line

QUICK = ("--no-report", "--bootstrap", "0", "--no-crosscheck")


EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "real_tables.py"))
TABLES = EXAMPLE["TABLES"]
#: Of each file: the refusal without what it needs, a warning, rows that are dropped, symbols of a column.
EXPECTED = {
    "penguins.csv": (
        "11 missing values in 344 rows",
        "rows lack a value",
        2,
        {"species": {"Adelie", "Chinstrap", "Gentoo"}},
    ),
    "weather.csv": (
        "",
        "",
        0,
        {"temp_max": {"below 8", "8 to below 16", "16 to below 24", "24 and above"}},
    ),
    "cars.csv": ("missing values in 406 rows", "rows lack a value", 14, {"Cylinders": {"4", "6", "8", "other"}}),
    "survey.csv": (
        "",
        "no UTF-8 and was read as cp1252",
        0,
        {"Ortsgröße (Mio.)": {"below 0.01", "0.01 to below 0.1", "0.1 and above"}},
    ),
    "hospital.csv": ("", "", 0, {"smoking": {"0", "1"}}),
}


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(one, id=one.name, marks=pytest.mark.slow if one.name in ("weather.csv", "cars.csv") else ())
        for one in TABLES
    ],
)
def test_from_a_real_file_to_a_bundle_in_one_command_each(run: Run, tmp_path: Path, raw: Any) -> None:
    refusal, warning, dropped, symbols = EXPECTED[raw.name]
    (tmp_path / raw.name).write_bytes(raw.made())
    if raw.needed:
        assert refusal in one_error_line(run("funnel", raw.name, *raw.options, *QUICK))
    made = run("funnel", raw.name, *raw.options, *raw.needed, *QUICK, "--release", "bundle.zip", "--json")
    assert made.exit_code == 0, made.stderr
    assert made.stderr.count(warning) == 1 or not warning
    told = json.loads(made.stdout)
    designed = {one["column"]: one for one in told["tables"]["columns"] if one["role"] != "private"}
    told = told["release"]
    assert (told["dropped"], told["files"]) == (dropped, ["bundle.zip"])
    truth = read_table(raw.name, encoding="latin-1" if raw.name == "survey.csv" else None)
    shutil.rmtree("out")
    Path(raw.name).unlink()
    decoded = cpv.decode("bundle.zip")  # a recipient has nothing else
    assert decoded.bundle.counts.sum() == told["released"] == told["rows"] - dropped
    for column, one in designed.items():
        found = decoded.frequencies(column)
        assert found["estimate"].sum() == pytest.approx(1)
        # Said before the release, of the records that the design counted; some more are released.
        assert (found["high"] - found["low"]).max() / 2 == pytest.approx(one["within"], abs=0.005)
        assert one["within"] < 0.1
    for column, expected in symbols.items():
        assert set(decoded.frequencies(column).index) == expected
    for column in set(truth) & set(designed):  # columns of names: their truth is counted here
        shares = truth[column].astype(str).value_counts(normalize=True)
        found = decoded.frequencies(column)
        for value in set(shares.index) & set(found.index):
            assert found.loc[value, "low"] <= shares[value] <= found.loc[value, "high"]


def test_rows_that_lack_a_value_are_dropped_and_rare_symbols_are_one_other(run: Run) -> None:
    rows = [
        "Origin\tCylinders",
        *10 * ["USA\t8", "USA\t6", "Japan\t4", "Japan\t6"],
        *3 * ["Japan\t3", "Europe\t5"],
        "USA\t",
    ]
    Path("cars.csv").write_text("\n".join([*rows, "\t8"]), encoding="utf-16")
    options = ("--private", "Origin", "--public", "Cylinders", "--rare", "Cylinders=5", "--starts", "1", *QUICK)
    assert "missing value in 48 rows" in one_error_line(run("funnel", "cars.csv", *options))
    made = run("funnel", "cars.csv", *options, "--missing", "drop", "--release", "bundle.zip", "--json")
    assert made.exit_code == 0, made.stderr
    assert "rows lack a value" in made.stderr
    assert json.loads(made.stdout)["release"]["dropped"] == 1  # the row whose Origin alone is missing is released
    decoded = cpv.decode("bundle.zip")
    assert decoded.bundle.counts.sum() == 47
    assert set(decoded.frequencies("Cylinders").index) == {"4", "6", "8", "other"}


def test_release_is_refused_where_nothing_can_be_released(run: Run, counts: str, people: str) -> None:
    columns = ("--private", "income", "--public", "age", "--release")
    assert "no records" in one_error_line(run("funnel", counts, "--count", "count", *columns, "b.zip"))
    assert "no records" in one_error_line(run("funnel", "heart-failure", "--release", "b.zip"))
    assert "is the file" in one_error_line(run("funnel", people, *columns, people))
    assert "stays at home" in one_error_line(run("funnel", people, *columns, "out"))
    assert not Path("out").exists()


def test_the_sizes_come_before_the_search(
    people: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # The real descriptor: what is printed while solvers are silent would be lost.
    def searching(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PrivacyFunnel, "solve", searching)
    with pytest.raises((KeyboardInterrupt, SystemExit, click.Abort)):
        main(["funnel", people, "--private", "income", "--public", "age", "--rate", "0.5", *QUICK])
    assert capfd.readouterr().out.startswith("60 records for 2 x 3 cells, 10.00 a cell\nthe work takes at most about")


def test_nothing_is_released_by_a_mechanism_that_is_not_finished(run: Run, people: str) -> None:
    columns = ("--private", "income", "--public", "age", "--rate", "0.5", "--method", "aem", "--max-iter", "1")
    made = run("funnel", people, *columns, *QUICK, "--release", "b.zip")
    assert made.exit_code == 3, made.stdout
    assert "no row was released" in made.stderr
    assert not Path("b.zip").exists()


def test_a_spreadsheet_goes_in_and_comes_out(run: Run, mechanism: str, people: str) -> None:
    pytest.importorskip("openpyxl")
    read_table(people).to_excel("people.xlsx", index=False)
    assert run("release", mechanism, "people.xlsx", "--out", "released.xlsx", "--keep", "id", "--yes").exit_code == 0
    assert Path("released.xlsx").read_bytes()[:2] == b"PK"
    assert list(read_table("released.xlsx")) == ["id", "released"]
    assert "ends in neither of" in one_error_line(run("release", mechanism, people, "--out", "released.ods"))
