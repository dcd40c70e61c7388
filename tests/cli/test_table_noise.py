"""`--table-epsilon`: noise in the counts before anything else, and what the files say with and without it."""

from __future__ import annotations

import json
import re
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from cvxpriv.cli import main
from cvxpriv.privacy import Budget, private_tables

from .conftest import Run, one_error_line
from .design_cases import BARE, FEW

FUNNEL = ("--private", "income", "--public", "age", "--rate", "0.6", "--rate-unit", "fraction", *BARE)
INFERENCE = ("--infer", "income", "--data", "age", "--beta", "0.5", *BARE)
DOMAIN = ("--domain", "income=low,high", "--domain", "age=young,middle,old,ancient")


def designed(run: Run, *arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_with_noise_the_file_says_that_it_may_be_published(run: Run, counts: str) -> None:
    document = designed(run, "funnel", counts, "--count", "count", *FUNNEL, "--table-epsilon", "1", *DOMAIN)
    held = json.loads(Path("out/mechanism.json").read_text())
    assert held["origin"]["publish"].startswith("differentially private (epsilon=1, neighbours: replace-one)")
    assert ["ancient"] in held["symbols"]
    assert document["about"]["table_epsilon"] == 1.0
    assert document["about"]["records"] == 60
    assert "may be published" in document["promises"][-1]


def test_without_noise_the_file_says_that_it_is_private(run: Run, counts: str) -> None:
    document = designed(run, "funnel", counts, "--count", "count", *FUNNEL)
    held = json.loads(Path("out/mechanism.json").read_text())
    assert held["origin"]["publish"] == document["about"]["publish"] == "private: do not publish; apply it at home"
    assert "stay at home" in document["promises"][-1]


def test_inference_takes_the_same_noise(run: Run, counts: str) -> None:
    options = ("--table-epsilon", "2", "--table-delta", "1e-6", "--domain", "table")
    document = designed(run, "inference", counts, "--count", "count", *INFERENCE, *options)
    assert document["about"]["table_noise"].startswith("Gaussian noise of standard deviation")
    assert "may be published" in document["promises"][-1]


def test_noise_spends_from_a_budget_that_fits_share_and_stops_where_it_is_empty(run: Run, counts: str) -> None:
    noise = ("--table-epsilon", "0.6", "--domain", "table", "--adjacency", "add-remove", "--budget", "budget.json")
    own = Budget(1.0, 0.0, "budget.json", adjacency="add-remove")
    designed(run, "funnel", counts, "--count", "count", *FUNNEL, *noise)
    assert [entry.epsilon for entry in own.ledger] == [0.6]
    assert "does not hold" in one_error_line(run("funnel", counts, "--count", "count", *FUNNEL, *noise))
    assert len(own.ledger) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--budget", "budget.json"), "--budget is given without --table-epsilon"),
        (("--table-epsilon", "1"), "give all that it may have, --domain 'income=A,B,...'"),
        (("--adjacency", "nan"), "--adjacency is given without --table-epsilon"),
        (("--domain", "age=young"), "--domain is given without --table-epsilon"),
        (("--table-epsilon", "1", "--domain", "age"), "expected COLUMN=VALUE,VALUE"),
        (("--table-epsilon", "1", "--domain", "table", "--smoothing", "1"), "noise fills the cells; leave it out"),
        (("--table-epsilon", "-1", "--domain", "table"), "--table-epsilon=-1.0 is no budget"),
        (
            ("--table-epsilon", "1", "--missing", "drop", "--domain", "table"),
            "give --missing symbol, or --adjacency add",
        ),
    ],
)
def test_wrong_options_are_refused(run: Run, counts: str, options: tuple[str, ...], message: str) -> None:
    assert message in one_error_line(run("funnel", counts, "--count", "count", *FUNNEL, *options))


#: Ages in two numbers of digits, jobs with one that a single record has, and a column that is not asked for.
ROWS = [f"{age},{job},{ill},n" for age in (20, 35, 60) for job in ("clerk", "smith") for ill in ("yes", "no")] * 3
ROWS.append("41,typist,no,n")
NEIGHBOURS = {
    "itself": "41,typist,no,n",
    "no record to merge": "41,clerk,no,n",
    "a fraction": "41.5,typist,no,n",
    "a percentage": "41%,typist,no,n",
    "a missing value": ",typist,no,n",
    "another spelling": "41,typist,No,n",
    "other separators": "41,typist,no,a;b;c;d",
    "a quoted separator": '41,typist,no,"a,b"',
    "a mark of comments": "41,typist,no,#n",
    "decimals in another column": '41,typist,no,"1.234,5"',
}
"""The last record, and those in its place that say something of the rows when they are read."""
PREPARED = ("--bins", "age=30,50", "--merge", "job=clerk|typist=office", "--merge", "age=below 30|30 to below 50=low")
ALLOWED = ("--domain", "job=office,smith", "--domain", "ill=yes,no,No", "--domain", "age=low,50 and above,missing")
READ = ("--table-epsilon", "1", "--missing", "symbol", *PREPARED, *ALLOWED)
BRIEF = ("--starts", "1", "--max-iter", "5", *BARE[2:])
DESIGNS = {
    "funnel": ("--private", "ill", "--public", "age,job", "--rate", "0.6", "--rate-unit", "fraction"),
    "inference": ("--infer", "ill", "--data", "age,job", "--beta", "0.5"),
}


def told(folder: Path, command: str, rows: list[str], *more: str) -> dict[str, Any]:
    """All that a command writes and says of some rows, in a folder of their own."""
    folder.mkdir()
    (folder / "rows.csv").write_text("\n".join(["age,job,ill,note", *rows]) + "\n")
    with chdir(folder):
        result = CliRunner().invoke(main, [command, "rows.csv", *DESIGNS[command], *READ, *more])
    files = {str(one.relative_to(folder)): one.read_bytes() for one in sorted((folder / "out").rglob("*"))}
    return {"exit": result.exit_code, "stdout": result.stdout, "stderr": result.stderr, **files}


@pytest.fixture
def _same_noisy_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that leads to the same noisy counts whatever the counts are: what differs then was told without noise."""
    counted: list[Any] = []
    real = private_tables.on_domain

    def on_domain(*given: Any) -> Any:
        found = real(*given)
        counted.append(found[0])
        return found

    noisy = np.random.default_rng(0).integers(2, 30, 1000)
    monkeypatch.setattr(private_tables, "on_domain", on_domain)
    monkeypatch.setattr(private_tables, "_drawn", lambda *given: noisy[: given[-1]] - counted[-1].ravel())


@pytest.mark.usefixtures("_same_noisy_counts")
@pytest.mark.parametrize("command", ["funnel", pytest.param("inference", marks=pytest.mark.slow)])
def test_nothing_that_is_said_or_written_depends_on_a_record(tmp_path: Path, command: str) -> None:
    every = {
        name: told(tmp_path / str(place), command, [*ROWS[:-1], record], *BRIEF)
        for place, (name, record) in enumerate(NEIGHBOURS.items())
    }
    assert every["itself"]["exit"] in (0, 3), every["itself"]["stderr"]
    differ = {name: [k for k in one if one[k] != every["itself"].get(k)] for name, one in every.items()}
    assert not any(differ.values()), differ


@pytest.mark.parametrize("record", ["31415,typist,no,n", ",typist,no,n", "old31415,typist,no,n", "41,miner31415,no,n"])
def test_a_record_that_is_refused_is_not_described(run: Run, record: str) -> None:
    Path("rows.csv").write_text("\n".join(["age,job,ill,note", *ROWS[:-1], record]) + "\n")
    noise = ("--table-epsilon", "1", *PREPARED, *ALLOWED[:-1], "age=low")
    said = one_error_line(run("funnel", "rows.csv", *DESIGNS["funnel"], *noise))
    assert said.endswith(("leave every value in some class", "map it to one")), said
    assert not re.search("31415|miner", said)


@pytest.mark.slow
@pytest.mark.usefixtures("_same_noisy_counts")
@pytest.mark.parametrize("page", ["internal", "shareable"])
@pytest.mark.parametrize("command", DESIGNS)
def test_curve_cross_check_and_page_depend_on_no_record_and_no_clock(tmp_path: Path, command: str, page: str) -> None:
    more = (*FEW[2:], "--curve", "2", "--crosscheck", "--bootstrap", "20", "--page", page, "--certify")
    last = {"first": "41,typist,no,n", "second": ",typist,no,n"}
    first, second = (told(tmp_path / name, command, [*ROWS[:-1], record], *more) for name, record in last.items())
    assert first["exit"] == 0, first["stderr"]
    assert [name for name in first if first[name] != second.get(name)] == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--rare", "1"), "rare: the step would be read off the records"),
        (("--top", "9"), "top: the step would be read off the records"),
        (("--merge", "age=26 to 32=low"), "--merge of 'age' names '26 to 32', which does not occur"),
    ],
)
def test_a_recipe_that_reads_the_rows_is_refused_whatever_they_are(
    tmp_path: Path, more: tuple[str, ...], message: str
) -> None:
    for place, rows in enumerate((ROWS, [*ROWS[:-1], "41,clerk,no,n"], [*ROWS, "41.5,smith,no,n"])):
        said = told(tmp_path / str(place), "funnel", rows, *more, *BARE)
        assert said["exit"] == 2
        assert message in said["stderr"]


def test_many_values_are_no_refusal_under_noise(tmp_path: Path) -> None:
    ages = [f"{age},clerk,yes,n" for age in range(31)]
    domain = ("--domain", "age=" + ",".join(map(str, range(31))), "--domain", "ill=yes,no")
    (tmp_path / "rows.csv").write_text("\n".join(["age,job,ill,note", *ages]) + "\n")
    given = (
        "rows.csv",
        "--private",
        "ill",
        "--public",
        "age",
        "--rate",
        "0.1",
        "--table-epsilon",
        "1",
        *domain,
        *BRIEF,
    )
    result = CliRunner().invoke(main, ["funnel", *given, "--table-noise-seed", "0"])
    assert "of their own" not in result.stderr
    assert result.exit_code in (0, 3), result.stderr
