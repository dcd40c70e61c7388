"""`cvxpriv funnel`: the files of a run, its exit codes, and every kind of bad input."""

from __future__ import annotations

import json
import shutil
import signal
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import Result
from cvxpriv_models.privacy_funnel.model import PrivacyFunnel

from cvxpriv.cli.terminal import Terminal
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.reports.sets import require_whole
from cvxpriv.tables.joint import JointTable

from .conftest import COUNTS, Run, one_error_line, run_in
from .design_cases import (
    BARE,
    FEW,
    pressed_at_the_second_iteration,
    require_every_file,
    require_interrupted,
    require_no_count_and_no_income,
    require_not_converged,
    require_silent,
    value_of,
)

COLUMNS = ("--private", "income", "--public", "age")


def designed(run: Run, table: str, *options: str) -> dict[str, Any]:
    """The JSON result of a design at rate 0.6 that must succeed."""
    result = run("funnel", table, *COLUMNS, "--rate", "0.6", *BARE, "--json", *options)
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """One run with everything, for all tests that read what it says, and the folder that it wrote."""
    folder = tmp_path_factory.mktemp("funnel")
    options = ("--count", "count", "--rate", "0.6", *FEW, "--curve", "2", "--solvers", "ECOS", "--out", "o")
    return run_in(folder, "funnel", "counts.csv", *COLUMNS, *options), folder / "o"


def test_a_run_writes_what_it_says_and_nothing_else(whole: tuple[Result, Path]) -> None:
    require_every_file(*whole, "certificate.json", "check_certificate.py", "columns_along_curve.csv")


def test_certify_compares_a_whole_folder_with_its_manifest(
    whole: tuple[Result, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole[1], "o")
    found = run_in(tmp_path, "certify", "o")
    assert found.exit_code == 0, found.stderr
    assert "unchanged" in found.stdout
    assert "proved" in found.stdout
    Path("o/report.html").write_text("another")
    assert "o/report.html' is not the file" in one_error_line(run_in(tmp_path, "certify", "o"))
    shutil.copy("o/report.html", "o/mechanism.json")
    assert "o/mechanism.json' is not the file" in one_error_line(
        run_in(tmp_path, "release", "o/mechanism.json", "t.csv")
    )


def test_the_mechanism_file_is_the_one_that_python_designs(run: Run, counts: str) -> None:
    document = designed(run, counts, "--count", "count")
    table = JointTable.from_csv(counts, ["income"], ["age"], "count")
    solved = PrivacyFunnel(table, rate=0.6).solve(starts=2, seed=0)
    loaded = Mechanism.load("out/mechanism.json")
    assert np.array_equal(loaded.array, solved.mechanism)
    assert value_of(document, "leakage") == solved.leakage
    assert loaded.private_columns == ("income",)
    assert loaded.inputs.columns == ("age",)


def test_the_mechanism_file_holds_no_count_and_no_private_symbol(run: Run, counts: str) -> None:
    designed(run, counts, "--count", "count")
    require_no_count_and_no_income("out/mechanism.json")


def test_records_and_counts_give_the_same_mechanism(run: Run, counts: str, people: str) -> None:
    first, second = designed(run, counts, "--count", "count"), designed(run, people)
    assert value_of(first, "leakage") == value_of(second, "leakage")
    assert first["about"] == second["about"]


def test_what_is_designed_can_be_released(run: Run, people: str) -> None:
    designed(run, people)
    assert run("release", "out/mechanism.json", people, "--out", "released.csv").exit_code == 0
    assert list(pd.read_csv("released.csv").columns) == ["released"]


def test_a_tsv_and_another_separator_are_read(run: Run, counts: str) -> None:
    expected = value_of(designed(run, counts, "--count", "count"), "leakage")
    text = Path(counts).read_text()
    Path("t.tsv").write_text(text.replace(",", "\t"))
    Path("t.csv").write_text(text.replace(",", ";"))
    assert value_of(designed(run, "t.tsv", "--count", "count"), "leakage") == expected
    assert value_of(designed(run, "t.csv", "--count", "count", "--separator", ";"), "leakage") == expected


@pytest.mark.parametrize(
    "options", [["--rate-unit", "bits"], ["--rate-unit", "nats"], ["--size-y", "3"], ["--smoothing", "0.5"]]
)
def test_options_reach_the_model(run: Run, counts: str, options: list[str]) -> None:
    document = designed(run, counts, "--count", "count", *options)
    smoothing = 0.5 if "--smoothing" in options else 0.0
    table = JointTable.from_csv(counts, ["income"], ["age"], "count", smoothing)
    unit = options[1] if "--rate-unit" in options else "fraction"
    problem = PrivacyFunnel(table, 0.6, rate_unit=unit, size_y=3 if "--size-y" in options else None).problem
    assert document["settings"]["rate"] == problem.rate
    assert document["about"]["entropy"] == table.entropy_x
    assert Mechanism.load("out/mechanism.json").shape == (3, problem.size_y)


def test_history_has_every_start_that_made_a_pass(run: Run, counts: str) -> None:
    starts = designed(run, counts, "--count", "count")["settings"]["starts"]
    history = pd.read_csv("out/history.csv")
    assert set(range(1, starts)) <= set(history["start"]) <= set(range(starts))  # columns, the first, may need none
    assert {"iteration", "block", "objective", "kkt"} <= set(history.columns)


def test_json_is_the_only_text_on_standard_output(run: Run, counts: str) -> None:
    options = (counts, *COLUMNS, "--count", "count", "--rate", "0.6", *FEW, "--no-report", "--curve", "2")
    first, second = json.loads(run("--json", "funnel", *options).stdout), designed(run, counts, "--count", "count")
    assert value_of(first, "leakage") == value_of(second, "leakage")
    assert first["facts"]["leakage"]["unit"] == "nats"
    assert (first["schema_version"], first["converged"]) == (1, True)
    assert len(first["tables"]["curve"]) == 2
    assert {row["solver"] for row in first["tables"]["crosscheck"]} == {"closed form", "CLARABEL", "ECOS", "SCS"}
    assert {row["name"] for row in first["tables"]["disclosure"]} >= {"leakage", "accuracy_y"}
    names = (
        "columns.csv",
        "columns_along_curve.csv",
        "curve.csv",
        "crosscheck.csv",
        "disclosure.csv",
        "history.csv",
        "mechanism.json",
    )
    names += ("certificate.json", "check_certificate.py")
    assert first["files"] == [f"out/{name}" for name in names]


def test_quiet_says_nothing(run: Run, counts: str) -> None:
    result = run("--quiet", "funnel", counts, *COLUMNS, "--count", "count", "--rate", "0.6", *BARE)
    require_silent(result)


def test_the_terminal_text_keeps_to_100_columns_and_says_what_it_does_not_promise(whole: tuple[Result, Path]) -> None:
    result = whole[0]
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert "not themselves differentially private" in " ".join(result.stdout.split())
    assert "records 60 " in " ".join(result.stdout.split())


def test_an_embedded_table_goes_by_its_name(run: Run) -> None:
    result = run("funnel", "heart-failure", "--rate", "0.3", *BARE, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["about"]["private"] == ["sex", "death"]
    assert document["about"]["smoothing"] != "none"


def test_the_columns_of_an_embedded_table_can_be_chosen(run: Run) -> None:
    result = run("funnel", "heart-failure", "--private", "death", "--public", "smoking,sex", *BARE, "--json")
    assert result.exit_code == 0, result.stderr
    about = json.loads(result.stdout)["about"]
    assert (about["private"], about["public"]) == (["death"], ["smoking", "sex"])
    assert Mechanism.load("out/mechanism.json").shape == (4, 5)


def test_a_file_of_that_name_goes_before_the_embedded_table(run: Run, counts: str) -> None:
    Path("adult").write_text(Path(counts).read_text())
    assert "ends in neither of" in one_error_line(run("funnel", "adult", *COLUMNS, "--rate", "0.6"))
    document = designed(run, "adult", "--count", "count", "--separator", ",")
    assert document["about"]["records"] == 60


def test_a_run_that_does_not_converge_writes_its_files_and_exits_with_3(run: Run, counts: str) -> None:
    options = ("--count", "count", "--rate", "0.6", "--starts", "2", "--max-iter", "1", "--tol", "1e-15")
    result = run("funnel", counts, *COLUMNS, *options, "--accelerate", "none", "--bootstrap", "0", "--no-crosscheck")
    require_not_converged(result)


def test_an_interrupted_solve_writes_the_best_so_far_and_exits_with_130(
    run: Run, counts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Terminal, "iterations", pressed_at_the_second_iteration)
    options = ("--count", "count", "--rate", "0.6", *BARE, "--accelerate", "none", "--tol", "1e-15", "--curve", "3")
    result = run("funnel", counts, *COLUMNS, *options)
    require_interrupted(result)
    assert pd.read_csv("out/history.csv")["iteration"].max() <= 2


def test_an_interrupt_after_the_solve_keeps_the_mechanism(
    run: Run, counts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @wraps(PrivacyFunnel.traced)
    def press(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(PrivacyFunnel, "traced", press)
    result = run("funnel", counts, *COLUMNS, "--count", "count", "--rate", "0.6", *BARE, "--curve", "3")
    assert result.exit_code == 130
    assert set(require_whole("out")) == {
        *("columns.csv", "history.csv", "mechanism.json", "certificate.json", "check_certificate.py")
    }


def test_an_interrupted_curve_keeps_the_rates_that_were_finished(
    run: Run, counts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve = PrivacyFunnel.solve

    @wraps(solve)
    def press_at_the_third(self: PrivacyFunnel, **options: Any) -> object:
        if self.problem.rate > 0.7 * self.problem.table.entropy_x:
            signal.raise_signal(signal.SIGINT)
        return solve(self, **options)

    monkeypatch.setattr(PrivacyFunnel, "solve", press_at_the_third)
    result = run("funnel", counts, *COLUMNS, "--count", "count", "--rate", "0.6", *BARE, "--curve", "4")
    assert result.exit_code == 130
    assert list(pd.read_csv("out/curve.csv")["fraction"]) == [0.25, 0.5]


@pytest.mark.slow  # that of inference is fast, by the same code
def test_the_curve_is_that_of_python_however_many_processes(run: Run, counts: str) -> None:
    table = JointTable.from_csv(counts, ["income"], ["age"], "count")
    expected = PrivacyFunnel(table).curve(4, starts=2)
    for jobs in ("1", "2"):
        designed(run, counts, "--count", "count", "--curve", "4", "--jobs", jobs)
        found = pd.read_csv("out/curve.csv")
        columns = ["fraction", "utility", "leakage", "found_at"]
        # BLAS may add in another order in another process.
        assert np.allclose(found[columns], expected[columns], rtol=0, atol=1e-12)


def test_a_folder_that_cannot_be_written_is_found_before_the_solve(
    run: Run, counts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @wraps(PrivacyFunnel.solve)
    def never(*_: object, **__: object) -> None:
        raise AssertionError("solved before the folder was checked")

    monkeypatch.setattr(PrivacyFunnel, "solve", never)
    options = ("--count", "count", "--rate", "0.6", "--out", f"{counts}/out")
    assert "--out='counts.csv/out' is no folder" in one_error_line(run("funnel", counts, *COLUMNS, *options))


H_X = float(JointTable.from_array(np.array(list(COUNTS.values())).reshape(2, 3) / 60).entropy_x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rate", "-0.1"], "rate=-0.1"),
        (["--rate", "1.01"], "choose rate <= 1"),
        (["--rate", str(H_X * (1 + 1e-9)), "--rate-unit", "nats"], "exceeds H(X)"),
        (["--rate", "nan"], "rate=nan"),
        (["--rate", "much"], "'much' is not a valid float"),
        (["--rate", "0.6", "--rate-unit", "nat"], "did you mean 'nats'?"),
        (["--rate", "0.6", "--size-y", "0"], "--size-y=0"),
        (["--rate", "0.9", "--size-y", "2"], "raise --size-y or lower rate"),
        (["--rate", "0.6", "--starts", "0"], "starts=0"),
        (["--rate", "0.6", "--max-iter", "0"], "--max-iter=0"),
        (["--rate", "0.6", "--tol", "0"], "tol=0"),
        (["--rate", "0.6", "--jobs", "0"], "--jobs=0"),
        (["--rate", "0.6", "--solver", "CLARABLE"], "did you mean 'CLARABEL'?"),
        (["--rate", "0.6", "--solvers", "ECOS,SCCS"], "did you mean 'SCS'?"),
        (["--rate", "0.6", "--engine", "closed"], "did you mean 'closed_form'?"),
        (["--rate", "0.6", "--method", "eam"], "did you mean 'aem'?"),
        (["--rate", "0.6", "--accelerate", "non"], "did you mean 'none'?"),
        (["--rate", "0.6", "--smoothing", "-1"], "smoothing=-1"),
        (["--rate", "0.6", "--smoothing", "1", "--smoothing-on", "count"], "did you mean 'counts'?"),
        (["--rate", "0.6", "--bootstrap", "-2"], "bootstrap=-2"),
        (["--rate", "0.6", "--public", "aeg"], "did you mean 'age'?"),
        (["--rate", "0.6", "--public", "age,income"], "column 'income' stands in --private and --public"),
        (["--rate", "0.6", "--public", "age,age"], "'age' 2 times"),
        (["--rate", "0.6", "--count", "cuont"], "did you mean 'count'?"),
        (["--rate", "0.6", "--count", "age"], "count='age'"),
        (["--rate", "0.6", "--seed", "-1"], "seed=-1"),
    ],
)
def test_bad_options_are_one_line_and_leave_nothing_behind(
    run: Run, counts: str, options: list[str], message: str
) -> None:
    line = ["funnel", counts, *COLUMNS, "--count", "count", *options]
    assert message in one_error_line(run(*line))
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("income,age,count\nlow,young,5\nhigh,,4\n", "column 'age' has 1 missing value"),
        ("income,age,count\nlow,young,5\nhigh,old,NaN\n", "count='count': row 1"),
        ("income,age,count\nlow,young,5\nhigh,old,-4\n", "'-4'"),
        ("income,age,count\nlow,young,5\nhigh,old,0.5\n", "'0.5'"),
        ("income,age,count\nlow,young,0\nhigh,old,0\n", "no records"),
        ("income,age,count\n", "no records"),
        ("", "is no table"),
        ("income,age,age,count\nlow,young,old,5\n", "2 columns of that name"),
        ("income,age,count\nlow,young,5,6\n", "is no table"),
    ],
)
def test_a_bad_file_is_one_line_and_leaves_nothing_behind(run: Run, text: str, message: str) -> None:
    Path("bad.csv").write_text(text)
    line = one_error_line(run("funnel", "bad.csv", *COLUMNS, "--count", "count", "--rate", "0.6"))
    assert message in line
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["none.csv", *COLUMNS], "path='none.csv' cannot be read"),
        (["table.ods", *COLUMNS], "ends in neither of"),
        (["counts.csv", "--public", "age"], "--private names no column"),
        (["counts.csv", "--private", "income"], "--public names no column"),
        (["counts.csv", "--private", "income,", "--public", "age"], "empty name"),
        (["heart-failure", *COLUMNS], "private='income' is no column"),
        (["heart-failure", "--count", "count"], "is an embedded table"),
    ],
)
def test_a_table_that_is_not_named_right_is_refused(run: Run, counts: str, line: list[str], message: str) -> None:
    assert message in one_error_line(run("funnel", *line, "--rate", "0.6"))


@pytest.mark.parametrize("rate", ["0", "1"])
def test_the_ends_of_the_curve_are_no_errors(run: Run, counts: str, rate: str) -> None:
    result = run("funnel", counts, *COLUMNS, "--count", "count", "--rate", rate, *BARE, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    # At rate 0 nothing need be told; at rate 1 all of X is, and with it I(S;X).
    expected = 0.0 if rate == "0" else document["about"]["information"]
    assert value_of(document, "leakage") == pytest.approx(expected, abs=1e-6)


def test_the_rate_is_that_of_the_model_where_none_is_given(run: Run, counts: str) -> None:
    result = run("funnel", counts, *COLUMNS, "--count", "count", *BARE, "--json")
    assert result.exit_code == 0, result.stderr
    entropy = JointTable.from_csv(counts, ["income"], ["age"], count="count").entropy_x
    assert json.loads(Path("out/mechanism.json").read_text())["figures"]["rate"] == pytest.approx(0.8 * entropy)


def test_certify_asks_for_a_proof_that_is_derived_again(run: Run, counts: str) -> None:
    common = ("funnel", counts, *COLUMNS, "--count", "count", "--rate", "0.6", *BARE, "--certify")
    result = run(*common)
    assert result.exit_code == 0
    assert "derived again in exact arithmetic" in " ".join(result.stdout.split())
    result = run(*common, "--method", "aem", "--starts", "2")
    assert result.exit_code == 3
    assert "nothing is proved of this mechanism" in result.stderr
