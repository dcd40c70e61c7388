"""Solvers beyond the five that come with the package: read generically; those of the extra where installed."""

from __future__ import annotations

from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.certify.check import crosscheck
from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.generic import Unreadable, bound_multipliers, generic_answer, require_plain
from cvxpriv.kkt.conic.solving import solve_conic
from cvxpriv.solvers.registry import SOLVERS, package_of, solver_spec

EXTRA = ("PIQP", "PROXQP", "DAQP")
ROUNDING = 1e-12


def _problems() -> dict[str, cp.Problem]:
    x, y = cp.Variable(2, name="x"), cp.Variable(2, nonneg=True, name="y")
    return {
        "quadratic": cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [cp.sum(x) == 1, x >= 0.1]),
        "with bounds": cp.Problem(
            cp.Minimize(cp.sum_squares(x - 3) + cp.sum(y)), [cp.sum(x) <= 1, x[0] >= 0.2, y >= x]
        ),
        "linear": cp.Problem(cp.Maximize(cp.sum(x)), [x <= 1, x[0] + 2 * x[1] <= 2]),
    }


OPTIMA = {"quadratic": 0.5, "with bounds": 13.5, "linear": 1.5}


@pytest.mark.parametrize("solver", EXTRA)
@pytest.mark.parametrize("name", OPTIMA)
def test_a_solver_of_the_extra_is_judged_with_its_multipliers_and_a_certified_bound(solver: str, name: str) -> None:
    if solver not in cp.installed_solvers():
        pytest.skip(f"{solver} is not installed: pip install cvxpriv[solvers]")
    rows = crosscheck(_problems()[name], [solver]).table.set_index("solver")
    assert rows.loc[solver, ["verdict", "known_by"]].tolist() == ["agrees", "certified"]
    assert rows.loc[solver, "objective"] == pytest.approx(OPTIMA[name], abs=1e-6)
    assert rows.loc[solver, "bound"] == pytest.approx(OPTIMA[name], abs=1e-6)


def test_a_solver_that_the_table_does_not_know_is_read_as_cvxpy_reads_it() -> None:
    x = cp.Variable(2, name="x")
    bounded = cp.Variable(2, bounds=[-1.0, 2.0], name="b")
    problem = cp.Problem(cp.Maximize(cp.sum(x) + bounded[0]), [x <= 1, x[0] + 2 * x[1] <= 2, bounded[0] + x[0] <= 2])
    solution = solve_conic(problem, "SCIPY")
    assert solution.residuals is not None
    assert solution.residuals.largest <= ROUNDING  # the multipliers are in the right order, with the right signs
    assert "SCIPY" not in SOLVERS
    assert "own defaults" in solver_spec("SCIPY").note
    rows = crosscheck(problem, ["SCIPY"]).table.set_index("solver")
    assert rows.loc["SCIPY", ["verdict", "known_by"]].tolist() == ["agrees", "certified"]


def test_a_solver_that_is_not_installed_is_named_with_its_package() -> None:
    absent = next((name for name in ("PROXQP", "PIQP", "DAQP") if name not in cp.installed_solvers()), None)
    if absent is not None:
        with pytest.raises(ModelError, match=f"pip install {package_of(absent)}"):
            solver_spec(absent)
    with pytest.raises(ModelError, match="not in cvxpriv's table"):
        solver_spec("NO_SUCH_SOLVER")


def _stub(primal: dict[str, np.ndarray], dual: dict[int, object]) -> SimpleNamespace:
    """An interface as cvxpy has them, to a solver that says this."""
    said = SimpleNamespace(primal_vars=primal, dual_vars=dual, status="optimal")
    return SimpleNamespace(EQ_CONSTR="eq", NEQ_CONSTR="ineq", invert=lambda raw, inverse: said)


def test_multipliers_are_put_in_the_order_of_the_rows() -> None:
    rows = {"eq": [SimpleNamespace(id=7)], "ineq": [SimpleNamespace(id=3), SimpleNamespace(id=5)]}
    stub = _stub({"x": np.ones((2, 1))}, {3: np.array([1.0, 2.0]), 5: 3.0, 7: -1.0})
    x, z = generic_answer(stub, None, rows)
    assert x is not None
    assert z is not None
    assert (x.tolist(), z.tolist()) == ([1.0, 1.0], [-1.0, 1.0, 2.0, 3.0])
    assert generic_answer(_stub({"x": np.ones(2)}, {3: 1.0}), None, rows)[1] is None
    assert generic_answer(_stub({}, {}), None, rows) == (None, None)


def test_a_reduced_cost_belongs_to_the_bound_that_it_pushes_against() -> None:
    pull, columns, signs = np.array([2.0, -3.0]), np.array([0, 0, 1, 1]), np.array([-1.0, 1.0, -1.0, 1.0])
    assert bound_multipliers(pull, columns, signs).tolist() == [2.0, 0.0, 0.0, 3.0]


def test_cones_in_an_unknown_order_are_not_read() -> None:
    data = {"A": 0, "c": 0, "param_prob": 0, "dims": SimpleNamespace(exp=2, psd=[], p3d=[], pnd=[])}
    with pytest.raises(Unreadable, match="its exp cones"):
        require_plain("SOME", data)
    with pytest.raises(Unreadable, match="the form that cvxpy gives it"):
        require_plain("SOME", {"q": 0})
