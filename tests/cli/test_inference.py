"""`cvxpriv inference`: the files of a run, what it says, its exit codes, and every kind of bad input."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cvxpriv_models.inference_service.model import InferenceAsService
from cvxpriv_models.inference_service.pictures import distinct_outputs
from cvxpriv_models.inference_service.thresholds import critical_beta

from cvxpriv.cli.terminal import Terminal
from cvxpriv.constraints import parse
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.tables.joint import JointTable

from .conftest import Run, one_error_line
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
from .test_demo import Page

COLUMNS = ("--infer", "income", "--data", "age")


def designed(run: Run, table: str, *options: str) -> dict[str, Any]:
    """The JSON result of a design that must succeed."""
    result = run("inference", table, *COLUMNS, *BARE, "--json", *options)
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def of_python(counts: str, beta: float, divergence: str = "jensen-shannon") -> InferenceAsService:
    return InferenceAsService(JointTable.from_csv(counts, ["income"], ["age"], "count"), beta, divergence=divergence)


def test_a_run_writes_what_it_says_and_nothing_else(run: Run, counts: str) -> None:
    options = ("--count", "count", "--beta", "0.1", *FEW, "--curve", ".05,.2", "--solvers", "ECOS", "--out", "o")
    result = run("inference", counts, *COLUMNS, *options)
    require_every_file(result, "o")
    assert max(map(len, result.stdout.splitlines())) <= 100
    text = " ".join(result.stdout.split())
    assert "not themselves differentially private" in text
    assert "records 60 " in text
    page = Page(Path("o/report.html").read_text())
    for part in ("promises", "curve", "mechanism", "Cross-check", "tells", "found", "Settings"):
        assert any(part in heading for heading in page.headings), part
    assert all(address.startswith(("#", "data:")) for address in page.outside)


def test_the_mechanism_file_is_the_one_that_python_designs(run: Run, counts: str) -> None:
    document = designed(run, counts, "--count", "count", "--beta", "0.1")
    solved = of_python(counts, 0.1).solve(starts=2, seed=0)
    loaded = Mechanism.load("out/mechanism.json")
    assert np.array_equal(loaded.array, solved.mechanism)
    figures = (solved.accuracy, solved.leakage, solved.objective, solved.local_gap)
    assert tuple(value_of(document, name) for name in ("accuracy", "leakage", "objective", "local_gap")) == figures
    assert loaded.inputs.columns == ("age",)
    assert (loaded.origin["divergence"], loaded.origin["inferred"]) == ("jensen-shannon", "income")


def test_the_usual_run_writes_a_proof_that_two_programs_check(run: Run, counts: str) -> None:
    options = ("--bootstrap", "0", "--no-crosscheck", "--no-report")
    result = run("inference", counts, *COLUMNS, "--count", "count", "--beta", "0.1", *options)
    assert result.exit_code == 0, result.stderr
    assert "check_certificate.py certificate.json" in " ".join(result.stdout.split())
    checked = run("certify", "out/certificate.json", "--json")
    assert checked.exit_code == 0, checked.stderr
    document = json.loads(checked.stdout)
    assert document["gap"] <= 1e-6 * max(document["bound"], 1e-3) + 1e-11
    command = [sys.executable, "-I", "out/check_certificate.py", "out/certificate.json"]
    assert "proved" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    held = json.loads(Path("out/certificate.json").read_text())
    Path("false.json").write_text(json.dumps({**held, "bound": held["bound"] - 1e-3}))
    assert run("certify", "false.json").exit_code == 2


def test_the_mechanism_file_holds_no_count_and_no_symbol_of_what_is_inferred(run: Run, counts: str) -> None:
    designed(run, counts, "--count", "count")
    require_no_count_and_no_income("out/mechanism.json")


def test_rows_of_data_alone_are_released(run: Run, people: str) -> None:
    designed(run, people, "--beta", "0.05")
    Path("data.csv").write_text("age\nyoung\nold\n")
    result = run("release", "out/mechanism.json", "data.csv")
    assert result.exit_code == 0, result.stderr
    released = pd.read_csv("released.csv")
    assert list(released.columns) == ["released"]
    assert released["released"].str.match(r"u\d").all()
    assert "accuracy I(S;U)" in result.stdout
    assert "private" not in result.stdout


def test_what_is_inferred_comes_out_only_if_it_is_kept(run: Run, people: str) -> None:
    designed(run, people, "--beta", "0.05")
    assert run("release", "out/mechanism.json", people).exit_code == 0
    assert list(pd.read_csv("released.csv").columns) == ["released"]
    kept = run("release", "out/mechanism.json", people, "--keep", "income")
    assert list(pd.read_csv("released.csv").columns) == ["income", "released"]
    assert "Nor do they speak of income beside it" in " ".join(kept.stdout.split())
    assert "keep='age'" in one_error_line(run("release", "out/mechanism.json", people, "--keep", "age"))


def test_without_a_beta_a_quarter_of_the_threshold_is_taken(run: Run, counts: str) -> None:
    document = designed(run, counts, "--count", "count")
    threshold = critical_beta(of_python(counts, 1.0).problem, 0).searched
    assert document["settings"]["beta"] == 0.25 * threshold
    assert value_of(document, "trivial_is_optimal") is False
    assert value_of(document, "accuracy") > 0


def test_a_beta_beyond_the_threshold_says_that_nothing_is_worth_telling(run: Run, counts: str) -> None:
    result = run(
        "inference", counts, *COLUMNS, "--count", "count", "--beta", "9", *FEW, "--no-crosscheck", "--bootstrap", "0"
    )
    assert result.exit_code == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert "the trivial mechanism, which says nothing, is optimal" in text
    assert "is optimal" in Path("out/report.html").read_text()
    example = re.search(r"Give a smaller beta, for example ([0-9.]+)\.", text)
    assert example is not None
    document = designed(run, counts, "--count", "count", "--beta", example.group(1))
    assert value_of(document, "accuracy") > 1e-3


@pytest.mark.parametrize(
    "name",
    [
        "le-cam",
        "t*log(t)",
        "own.py:mine",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("alpha:2", "total-variation", "own.py:made")),
    ],
)
def test_a_divergence_is_a_name_a_formula_or_a_place(run: Run, counts: str, name: str) -> None:
    Path("own.py").write_text(
        "from cvxpriv.divergences import divergence\nmine = divergence('neyman')\ndef made():\n    return mine\n"
    )
    document = designed(run, counts, "--count", "count", "--beta", "0.05", "--divergence", name)
    known = {"t*log(t)": "reverse-kl", "own.py:mine": "neyman", "own.py:made": "neyman"}
    expected = of_python(counts, 0.05, known.get(name, name)).solve(starts=2)
    # A formula may be solved in another form than the built-in divergence; both are solved to 1e-7.
    assert value_of(document, "objective") == pytest.approx(expected.objective, abs=1e-6)


def test_constraints_hold_and_are_reported(run: Run, counts: str) -> None:
    constraints = ("--constraint", "private:ldp=0.5", "--constraint", "floor=0.01", "--starts", "1")
    thrifty = ("--no-crosscheck", "--bootstrap", "0")
    result = run("inference", counts, *COLUMNS, "--count", "count", "--beta", "0.05", *thrifty, *constraints)
    assert result.exit_code == 0, result.stderr
    assert "by pass, one line for each start" in Path("out/report.html").read_text()
    assert "0.5-locally differentially private" in " ".join(result.stdout.split())
    loaded = Mechanism.load("out/mechanism.json")
    assert loaded.origin["constraints"] == "private, floor=0.01"
    # Solvers meet constraints to about 1e-9.
    assert parse("ldp=0.5").violation(loaded.array) <= 1e-7
    assert loaded.array.min() >= 0.01 - 1e-7
    document = designed(run, counts, "--count", "count", "--beta", "0.05", *constraints)
    missed = {row["constraint"]: row["missed_by"] for row in document["tables"]["constraints"]}
    assert missed == pytest.approx({"private": 0.0, "floor=0.01": 0.0}, abs=1e-7)
    prices = {row["constraint"]: (row["per"], row["price"]) for row in document["tables"]["shadow_prices"]}
    assert prices["private"][0] == "epsilon"
    assert prices["private"][1] > 0.0 >= prices["floor=0.01"][1] - 1e-9  # more of the one helps, of the other it costs
    assert 0.0 <= value_of(document, "local_gap") <= 1e-6


def test_options_reach_the_model(run: Run, counts: str) -> None:
    options = ("--size-u", "2", "--floor", "0.1", "--method", "joint", "--seed", "3", "--max-iter", "200")
    document = designed(run, counts, "--count", "count", "--beta", "0.05", *options)
    settings = document["settings"]
    assert (settings["method"], settings["seed"], settings["max_iter"]) == ("joint", 3, 200)
    loaded = Mechanism.load("out/mechanism.json")
    assert loaded.shape == (3, 2)
    assert loaded.array.min() >= 0.1


def test_json_is_the_only_text_on_standard_output(run: Run, counts: str) -> None:
    options = (counts, *COLUMNS, "--count", "count", "--beta", "0.1", *FEW, "--no-report", "--curve", ".05,.2")
    first = json.loads(run("--json", "inference", *options, "--solvers", "CLARABEL,ECOS").stdout)
    second = designed(run, counts, "--count", "count", "--beta", "0.1")
    assert value_of(first, "accuracy") == value_of(second, "accuracy")
    assert (first["command"], first["converged"], len(first["tables"]["curve"])) == ("inference", True, 2)
    assert (first["about"]["private"], first["about"]["public"]) == (["income"], ["age"])
    assert {row["solver"] for row in first["tables"]["crosscheck"]} == {"closed form", "CLARABEL", "ECOS"}
    measures = {row["name"]: row["measure"] for row in first["tables"]["disclosure"]}
    assert measures["leakage"] == "I(S;U)"
    assert measures["information"] == "I(S;Y)"
    names = ("columns.csv", "curve.csv", "crosscheck.csv", "disclosure.csv", "history.csv", "mechanism.json")
    assert first["files"] == [f"out/{name}" for name in names]


def test_quiet_says_nothing(run: Run, counts: str) -> None:
    result = run("--quiet", "inference", counts, *COLUMNS, "--count", "count", *BARE)
    require_silent(result)


@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_the_curve_is_that_of_python_however_many_processes(run: Run, counts: str, jobs: str) -> None:
    expected = of_python(counts, 0.1).curve([0.05, 0.2], starts=1)
    designed(run, counts, "--count", "count", "--beta", "0.1", "--curve", ".05,.2", "--starts", "1", "--jobs", jobs)
    found = pd.read_csv("out/curve.csv")
    columns = ["beta", "accuracy", "leakage", "objective"]
    # BLAS may add in another order in another process.
    assert np.allclose(found[columns], expected[columns], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("columns", "table"),
    [
        ((), {"private": ["death"], "public": ["anaemia", "high_blood_pressure", "diabetes", "smoking"]}),
        (("--infer", "sex", "--data", "smoking"), {"private": ["sex"], "public": ["smoking"]}),
    ],
)
def test_an_embedded_table_goes_by_its_name(run: Run, columns: tuple[str, ...], table: dict[str, list[str]]) -> None:
    result = run("inference", "heart-failure", *columns, "--max-iter", "3", "--tol", "1", *BARE, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["about"].items() >= table.items()


def test_a_run_that_does_not_converge_writes_its_files_and_exits_with_3(run: Run, counts: str) -> None:
    options = ("--count", "count", "--beta", "0.1", "--starts", "2", "--max-iter", "1", "--method", "admm")
    result = run("inference", counts, *COLUMNS, *options, "--bootstrap", "0", "--no-crosscheck")
    require_not_converged(result)


def test_the_printed_method_warns_in_one_line(run: Run, counts: str) -> None:
    result = run("inference", counts, *COLUMNS, "--count", "count", "--method", "printed", "--max-iter", "2", *BARE)
    assert result.stderr.splitlines()[0].startswith("warning: --method='printed' takes the multiplier's sign")


def test_an_interrupted_solve_writes_the_best_so_far_and_exits_with_130(
    run: Run, counts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Terminal, "iterations", pressed_at_the_second_iteration)
    result = run(
        "inference",
        counts,
        *COLUMNS,
        "--count",
        "count",
        "--beta",
        "0.1",
        "--method",
        "auto",
        *BARE,
        "--curve",
        ".05,.2",
    )
    require_interrupted(result)


def test_an_interrupted_curve_keeps_the_weights_that_were_finished(
    run: Run, counts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve = InferenceAsService.solve

    @wraps(solve)
    def press_at_the_third(self: InferenceAsService, **options: Any) -> object:
        if self.problem.beta == 0.2:
            signal.raise_signal(signal.SIGINT)
        return solve(self, **options)

    monkeypatch.setattr(InferenceAsService, "solve", press_at_the_third)
    result = run("inference", counts, *COLUMNS, "--count", "count", "--beta", "0.06", *BARE, "--curve", ".05,.1,.2,.3")
    assert result.exit_code == 130
    assert list(pd.read_csv("out/curve.csv")["beta"]) == [0.05, 0.1]


def test_a_folder_or_a_weight_that_is_wrong_is_found_before_the_solve(
    run: Run, counts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @wraps(InferenceAsService.solve)
    def never(*_: object, **__: object) -> None:
        raise AssertionError("solved before all options were checked")

    monkeypatch.setattr(InferenceAsService, "solve", never)
    line = ("inference", counts, *COLUMNS, "--count", "count")
    assert "--out='counts.csv/out' is no folder" in one_error_line(run(*line, "--out", f"{counts}/out"))
    assert "beta=-1.0" in one_error_line(run(*line, "--curve", ".1,-1"))
    assert "did you mean 'SCS'?" in one_error_line(run(*line, "--solvers", "ECOS,SCCS"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beta", "0"], "beta=0.0 is not a finite number > 0"),
        (["--beta", "nan"], "beta=nan"),
        (["--beta", "much"], "'much' is not a valid float"),
        (["--curve", ".3,much"], "holds no numbers"),
        (["--curve", ".3,"], "holds no numbers"),
        (["--divergence", "jensen-shanon"], "did you mean 'jensen-shannon'?"),
        (["--divergence", "1 - t**2"], "not convex"),
        (["--divergence", "__import__('os')"], "no such function"),
        (["--divergence", "none.py:mine"], "none.py"),
        (["--constraint", "ldpp=1"], "did you mean 'ldp'?"),
        (["--constraint", "ldp=much"], "write ldp=EPSILON"),
        (["--constraint", "ldp=-1"], "epsilon=-1"),
        (["--constraint", "floor=0.5"], "constraint 'floor=0.5': floor: row 0"),
        (["--constraint", "forbidden=0:9"], "forbidden"),
        (["--constraint", "distortion=none.csv:1"], "none.csv"),
        (["--size-u", "0"], "--size-u=0"),
        (["--floor", "0.5"], "floor=0.5 does not fit"),
        (["--floor", "-0.1"], "floor=-0.1"),
        (["--method", "adm"], "did you mean 'admm'?"),
        (["--engine", "closed"], "did you mean 'closed_form'?"),
        (["--solver", "CLARABLE", "--engine", "dcp"], "did you mean 'CLARABEL'?"),
        (["--starts", "0"], "starts=0"),
        (["--max-iter", "0"], "--max-iter=0"),
        (["--tol", "0"], "tol=0"),
        (["--jobs", "0"], "--jobs=0"),
        (["--seed", "-1"], "seed=-1"),
        (["--bootstrap", "1"], "bootstrap=1"),
        (["--infer", "incme"], "--infer='incme' is no column of the table"),
        (["--data", "aeg"], "did you mean 'age'?"),
        (["--data", "age,income"], "column 'income' stands in --infer and --data"),
    ],
)
def test_bad_options_are_one_line_and_leave_nothing_behind(
    run: Run, counts: str, options: list[str], message: str
) -> None:
    assert message in one_error_line(run("inference", counts, *COLUMNS, "--count", "count", *options))
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--constraint", "fixed=0:0:0.9", "--constraint", "mean-tv=0", "--constraint", "fixed=1:0:0.1"],
            "cannot hold",
        ),
        (["--constraint", "ldp=1", "--method", "admm"], "couple rows (ldp=1)"),
    ],
)
def test_constraints_that_the_search_refuses_leave_nothing_behind(
    run: Run, counts: str, options: list[str], message: str
) -> None:
    result = run("inference", counts, *COLUMNS, "--count", "count", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout.count("\n") == 2  # the sizes and the estimate, said before the search
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["none.csv", *COLUMNS], "path='none.csv' cannot be read"),
        (["counts.csv", "--data", "age"], "--infer names no column"),
        (["counts.csv", "--infer", "income"], "--data names no column"),
        (["adult", "--infer", "incme"], "did you mean 'income'?"),
        (["adult", "--count", "count"], "is an embedded table"),
    ],
)
def test_a_table_that_is_not_named_right_is_refused(run: Run, counts: str, line: list[str], message: str) -> None:
    assert message in one_error_line(run("inference", *line))


def test_independent_data_have_nothing_to_tell(run: Run) -> None:
    Path("flat.csv").write_text("income,age,count\nlow,young,5\nhigh,young,10\nlow,old,10\nhigh,old,20\n")
    document = designed(run, "flat.csv", "--count", "count")
    assert value_of(document, "accuracy") == pytest.approx(0.0, abs=1e-9)
    assert value_of(document, "trivial_is_optimal") is True


def test_every_block_is_cross_checked_at_the_answer(run: Run, counts: str) -> None:
    options = ("--table", counts, *COLUMNS, "--count", "count", "--beta", "0.1", *FEW, "--solvers", "CLARABEL")
    result = run("crosscheck", "inference", *options, "--out", "o")
    assert result.exit_code == 0, result.stderr
    cases = set(pd.read_csv("o/crosscheck.csv")["case"])
    assert cases == {"P(S|U)", "P_U", "joint", *(f"P(U|y{y})" for y in range(3))}
    assert "inferred S" in result.stdout


def test_outputs_that_say_the_same_are_one_group_and_empty_ones_none() -> None:
    prior = np.array([0.25, 0.75])
    mechanism = np.array([[0.2, 0.0, 0.4, 0.4], [0.1, 0.0, 0.2, 0.7]])
    assert distinct_outputs(mechanism, prior) == {"u0": [0, 2], "u3": [3]}
