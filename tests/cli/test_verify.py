"""`cvxpriv verify` and `cvxpriv formulations`: tables, JSON, exit codes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run, one_error_line

MODULE = """
import cvxpy as cp
import numpy as np
import cvxpriv as cpv

right = cpv.FDivergence("right", f=lambda t: t * np.log(t), expression=lambda P, Q: (cp.sum(cp.rel_entr(Q, P)), []))
wrong = cpv.FDivergence("wrong", f=lambda t: t * np.log(t), expression=lambda P, Q: (cp.sum(cp.kl_div(Q, P)), []))
number = 3

def made():
    return right

def raises():
    raise KeyError("key")
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(MODULE)
    return "mine.py"


@pytest.mark.parametrize("what", ["js", pytest.param("alpha:0.5", marks=pytest.mark.slow), "t*log(t)"])
def test_what_passes_is_a_table_and_exit_code_0(run: Run, what: str) -> None:
    result = run("verify", what, "--solvers", "CLARABEL")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "t = q/p in [0.001, 1000]" in lines[0]
    assert any(line.split() == ["verdict", "check", "worst", "at"] for line in lines)
    assert "0 fail" in lines[-1]
    assert max(map(len, lines)) <= 100


def test_what_fails_says_where_and_why_and_exits_with_1(run: Run, module: str) -> None:
    result = run("verify", f"{module}:wrong", "--solvers", "ECOS")
    assert result.exit_code == 1, result.output
    row = next(line for line in result.stdout.splitlines() if "expression is sum p f(q/p)" in line)
    assert row.split()[0] == "fails"
    assert "p = " in row
    assert "as kl_div is from rel_entr" in " ".join(result.stdout.split())
    assert result.stderr == ""


@pytest.mark.parametrize("name", ["right", "made"])
def test_an_object_of_a_file_or_a_function_that_returns_one_is_verified(run: Run, module: str, name: str) -> None:
    assert run("verify", f"{module}:{name}", "--solvers", "ECOS").exit_code == 0


def test_a_formula_that_is_not_convex_exits_with_1(run: Run) -> None:
    result = run("verify", "log(t)")
    assert result.exit_code == 1
    assert "f is convex" in result.stdout


def test_json_holds_verdicts_and_worst_points_as_numbers(run: Run, module: str) -> None:
    result = run("verify", f"{module}:wrong", "--solvers", "ECOS", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    checks = {one["check"]: one for one in document["checks"]}
    assert document["passed"] is False
    assert checks["expression is sum p f(q/p)"]["verdict"] == "fails"
    assert set(checks["expression is sum p f(q/p)"]["worst_point"]) == {"p", "q"}


def test_the_floor_sets_the_interval(run: Run) -> None:
    result = run("verify", "neyman", "--floor", "0.1", "--solvers", "ECOS")
    assert "t = q/p in [0.1, 10]" in result.stdout.splitlines()[0]


def test_quiet_leaves_the_exit_code(run: Run) -> None:
    result = run("verify", "log(t)", "--quiet")
    assert (result.exit_code, result.stdout) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["jensen-shanon"], "did you mean 'jensen-shannon'"),
        (["alpha:x"], "takes a number"),
        (["alph:2"], "names no place"),
        (["t***2"], "cannot be read"),
        (["__import__('os').getcwd()"], "is refused"),
        (["js", "--floor", "2"], "--floor=2"),
        (["js", "--solvers", "ECSO"], "did you mean 'ECOS'"),
        (["nowhere.py:name"], "cannot be read: check the path"),
        (["mine.py:number"], "is a int: it must be a cpv.FDivergence"),
        (["mine.py:nothing"], "nothing of that name"),
        (["mine.py:raises"], "raised KeyError"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(run: Run, module: str, arguments: list[str], message: str) -> None:
    assert message in one_error_line(run("verify", *arguments))


def test_formulations_show_the_problem_sizes_verdicts_and_the_reference(run: Run) -> None:
    result = run("formulations", "jensen-shannon", "--size", "4", "--solvers", "CLARABEL")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Problem: the smallest D(p, q)")
    assert any(line.split() == ["formulation", "cones", "rows", "columns", "nonzeros"] for line in lines)
    assert sum(line.split()[:1] in (["agrees"], ["loose"]) for line in lines) == 6
    assert "Reference 0." in result.stdout
    assert max(map(len, lines)) <= 100


def test_formulations_as_json(run: Run) -> None:
    result = run("formulations", "tv", "--size", "3", "--solvers", "HIGHS", "--json")
    document = json.loads(result.stdout)
    assert {answer["formulation"] for answer in document["answers"]} >= {"abs", "inequalities", "adaptive tangents"}
    assert document["problem"].endswith("N = 3")
    # A mass moved within [0, 1] changes the mean by itself at most: 0.3 from p = (.6, .2, .2) to q = (.3, .2, .5).
    assert document["reference"] == pytest.approx(0.3, abs=1e-9)


def test_formulations_refuse_bad_sizes_and_names(run: Run) -> None:
    assert "from 3 to 100" in one_error_line(run("formulations", "js", "--size", "2"))
    assert "did you mean" in one_error_line(run("formulations", "hellingr"))
