"""A cross-check is quiet: no solver's banner on stdout or stderr, and no warning of solvers, of cvxpy or of numpy."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv import crosscheck
from cvxpriv.kkt import residuals

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
