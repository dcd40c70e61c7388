"""The pytest plugin: option, marker, fixture, and that it weighs nothing."""

from __future__ import annotations

import subprocess
import sys

import cvxpy as cp
import numpy as np
import pandas as pd  # noqa: F401, here, since pytester forgets what an inner run is the first to import
import pytest

from cvxpriv.certify.pytest_plugin import assert_solvers_agree
from cvxpriv.errors import Disagreement
from cvxpriv.solvers import registry as solvers

pytest_plugins = ["pytester"]

SUITE = """
import cvxpy as cp
import numpy as np
import pytest

def problem():
    x = cp.Variable(3, name="x")
    return cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [cp.sum(x) == 0])

def test_default(cvxpriv_crosscheck):
    check = cvxpriv_crosscheck(problem(), tol=1e-6)
    print("asked:", ",".join(check.verdicts))

@pytest.mark.cvxpriv_solvers("ECOS")
def test_marked(cvxpriv_crosscheck):
    print("marked:", ",".join(cvxpriv_crosscheck(problem).verdicts))

@pytest.mark.cvxpriv_solvers("ECOS")
def test_called(cvxpriv_crosscheck):
    print("called:", ",".join(cvxpriv_crosscheck(problem, solvers=["SCS"], tol=1e-5).verdicts))
"""


def test_solvers_come_from_the_call_else_the_marker_else_the_option(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_inprocess("-s", "--strict-markers", "--cvxpriv-solvers=CLARABEL, OSQP")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines_random(["*asked: CLARABEL,OSQP", "*marked: ECOS", "*called: SCS"])


def test_without_option_every_installed_solver_is_asked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_inprocess("-s", "-k", "default")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*asked: CLARABEL,ECOS,SCS,OSQP,HIGHS"])


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ('"OSQP", "CLARABEL"', "*OSQP takes only *; the others agree"),
        ('"OSQP", "HIGHS"', "*no solver takes the problem's cones: OSQP (takes only *; try CLARABEL*"),
    ],
)
def test_a_named_solver_that_does_not_take_the_cones_is_a_visible_skip(
    pytester: pytest.Pytester, named: str, reason: str
) -> None:
    pytester.makepyfile(
        SUITE
        + f"""
@pytest.mark.cvxpriv_solvers({named})
def test_entropy(cvxpriv_crosscheck):
    x = cp.Variable(2, name="x")
    cvxpriv_crosscheck(cp.Problem(cp.Maximize(cp.sum(cp.entr(x))), [cp.sum(x) == 1]))
"""
    )
    result = pytester.runpytest_inprocess("-k", "entropy", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines([f"SKIPPED*{reason}"])


def test_a_disagreement_fails_with_the_table(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        SUITE
        + """
def test_loose(cvxpriv_crosscheck):
    cvxpriv_crosscheck(problem(), tol=1e-15, options={"SCS": {"eps_abs": 1e-3, "eps_rel": 1e-3}})
"""
    )
    result = pytester.runpytest_inprocess("-k", "loose", "--cvxpriv-solvers=SCS")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*1 of 1 answers do not agree to 1e-15", "*verdict*solver*status*objective*"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("CLARABEL,CLARABLE", "*--cvxpriv-solvers: solver='CLARABLE' *did you mean 'CLARABEL'?*"),
        ("ECOS", "*--cvxpriv-solvers: solver='ECOS' is not installed: pip install ecos*"),
        (",", "*--cvxpriv-solvers: solvers=() names no solver*"),
    ],
)
def test_a_solver_of_the_option_that_there_is_not_stops_the_run_once_before_any_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, names: str, message: str
) -> None:
    monkeypatch.setattr(solvers, "installed", lambda: ("CLARABEL", "SCS"))
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_inprocess(f"--cvxpriv-solvers={names}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])
    assert result.stderr.str().count("--cvxpriv-solvers") == 1
    result.stdout.no_fnmatch_line("*test_default*")


def test_the_option_and_the_marker_are_in_pytests_own_help(pytester: pytest.Pytester) -> None:
    assert "--cvxpriv-solvers" in pytester.runpytest_inprocess("--help").stdout.str()
    assert "cvxpriv_solvers(*names)" in pytester.runpytest_inprocess("--markers").stdout.str()


def test_the_plugin_imports_nothing_of_weight() -> None:
    heavy = ("cvxpy", "numpy", "pandas", "scipy", "joblib", "click")
    program = f"import cvxpriv.certify.pytest_plugin, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_other_test_runners_have_the_same_check() -> None:
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(np.array([0, 10]) @ x - cp.sum(cp.entr(x))), [cp.sum(x) == 1])
    assert set(assert_solvers_agree(problem, ["CLARABEL", "ECOS"]).verdicts) == {"CLARABEL", "ECOS"}
    with pytest.raises(Disagreement, match="1 of 3 answers do not agree to 1e-06\nEvery answer"):
        assert_solvers_agree(problem, ["CLARABEL", "ECOS"], answers={"mine": {"x": [0.5, 0.5]}})
