"""A cross-check is quiet: no solver's banner on stdout or stderr, and no warning of solvers, of cvxpy or of numpy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpriv_models
import cvxpy as cp
import numpy as np
import pytest
from cvxpriv_models.admm_sharing.estimators import VerticalLogisticRegression

import cvxpriv
from cvxpriv import crosscheck
from cvxpriv.kkt import residuals
from cvxpriv.models import ISTDP, InferenceAsService

x = cp.Variable(2, name="x")
whole = cp.Variable(2, integer=True, name="whole")
PROBLEMS = {
    "linear": cp.Problem(cp.Minimize(cp.sum(x)), [x >= 0.1, x[0] + x[1] >= 1]),
    "quadratic": cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [x <= 0.5]),
    "entropy": cp.Problem(cp.Maximize(cp.sum(cp.entr(x))), [cp.sum(x) == 1]),
    "whole": cp.Problem(cp.Minimize(cp.sum(whole)), [whole >= 0.5]),
    "empty": cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1, x <= 0]),
    "unbounded": cp.Problem(cp.Minimize(cp.sum(x))),
    "ill scaled": cp.Problem(cp.Maximize(x[0]), [cp.quad_form(x, np.diag([1e-3, 1e8])) <= 1]),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_nothing_is_printed_and_nothing_is_warned(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        check = crosscheck(PROBLEMS[name])
        if name == "linear":
            check.rescaled()
    assert capfd.readouterr() == ("", "")
    assert [str(one.message) for one in warned] == []


def test_measuring_a_solved_problem_is_quiet_too(capfd: pytest.CaptureFixture[str]) -> None:
    PROBLEMS["entropy"].solve(solver="CLARABEL")
    capfd.readouterr()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert residuals(PROBLEMS["entropy"]).primal < 1e-6
    assert capfd.readouterr() == ("", "")
    assert [str(one.message) for one in warned] == []


LABELS = np.tile([-1.0, 1.0], 6)
ROWS = np.random.default_rng(0).uniform(-0.5, 0.5, size=(12, 2))
SEEDED: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "max_iter": 2, "noise_seed": 0}
TABLE = [[0.3, 0.1], [0.1, 0.5]]
WARNING: dict[str, Callable[[], Any]] = {
    "a method of a class behind a door": lambda: ISTDP(ROWS, LABELS, allow_constant=True).solve_private(**SEEDED),
    "a model's own condition": lambda: InferenceAsService(TABLE, 0.3).solve(method="printed", max_iter=2),
    "an estimator": lambda: VerticalLogisticRegression(max_iter=1).fit(ROWS, LABELS),
}


@pytest.mark.parametrize("kind", WARNING)
def test_a_warning_points_at_the_line_outside_that_called(kind: str) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        WARNING[kind]()
    assert {one.filename for one in warned} == {__file__}


def test_every_warning_is_given_by_the_function_that_finds_this_line() -> None:
    rooms = (Path(cvxpriv.__file__).parent, Path(cvxpriv_models.__file__).parent)
    texts = {file.name: file.read_text("utf-8") for room in rooms for file in room.rglob("*.py")}
    assert [name for name, text in texts.items() if "warnings.warn(" in text] == ["errors.py"]
