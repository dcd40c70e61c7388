"""Ill-scaled problems: a bound that is disproved, answers that are all off, and the same problem in other units."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv import crosscheck
from cvxpriv.certify.cases import case_of_problem
from cvxpriv.certify.problem_checks import capable
from cvxpriv.certify.proofs import Proofs
from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.data import extract
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.kkt.conic.scaling import solve_scaled, units_of
from cvxpriv.kkt.quadratic_forms import with_every_eigenvalue
from cvxpriv.solvers.registry import among_installed, solver_spec

x, y = cp.Variable(2, name="x"), cp.Variable(3, name="y")
box = cp.Variable(3, name="box", bounds=[1e6, 2e6])
TURN = np.linalg.qr(np.array([[1.0, 2.0, 0.5], [0.3, -1.0, 2.0], [1.0, 1.0, 1.0]]))[0]


def ellipsoid(*axes: float) -> cp.Problem:
    turned = TURN @ np.diag(axes) @ TURN.T
    return cp.Problem(cp.Maximize(cp.sum(y)), [cp.quad_form(y, cp.psd_wrap((turned + turned.T) / 2)) <= 1])


THIN = cp.Problem(cp.Maximize(x[0]), [cp.quad_form(x, np.diag([1e-3, 1e8])) <= 1])
STRIP = cp.Problem(cp.Maximize(x[0]), [cp.quad_form(x, np.diag([0.0, 1e8])) <= 1])
#: The optimum of each is known in closed form.
SCALES = {
    "thin": (THIN, 1e3**0.5),
    "flat": (cp.Problem(cp.Minimize(1e-9 * cp.sum_squares(y - 1)), [cp.sum(y) <= 1]), 1e-9 * 4 / 3),
    "far": (cp.Problem(cp.Minimize(x[0] + 0 * x[1]), [1e-8 * x[0] >= 1]), 1e8),
    "steep row": (cp.Problem(cp.Maximize(x[0]), [x[0] <= 1e9 * x[1], x[1] <= 1]), 1e9),
    "bounds": (cp.Problem(cp.Minimize(cp.sum(box)), [box[0] + box[1] >= 3e6]), 4e6),
    "curved": (cp.Problem(cp.Minimize(1e6 * x[0] + x[1]), [cp.exp(x[0]) <= 1e-3 * x[1], x[0] >= -3]), None),
}


@pytest.mark.parametrize("solver", among_installed("CLARABEL", "ECOS", "SCS"))
def test_an_unbounded_claim_on_a_thin_ellipsoid_is_refuted_by_a_bound_of_the_problem_as_written(solver: str) -> None:
    check = crosscheck(THIN, [solver])
    assert check.table["status"].tolist() == ["unbounded"]
    assert check.verdicts[solver].verdict == "WRONG"
    assert "at most 31.62" in check.verdicts[solver].reason
    assert check.verdicts[solver].known_by == "certified"


def test_a_true_strip_stays_unbounded() -> None:
    check = crosscheck(STRIP, among_installed("CLARABEL", "ECOS"))
    assert {one.verdict for one in check.verdicts.values()} == {"agrees"}


def test_the_bound_of_a_turned_ellipsoid_is_above_its_optimum_by_rounding_alone() -> None:
    problem, axes = ellipsoid(1e-2, 1.0, 1e9), np.array([1e-2, 1.0, 1e9])
    optimum = float(np.sqrt(np.square(TURN.T @ np.ones(3)) @ (1 / axes)))
    bound = Proofs(case_of_problem("ellipsoid", problem)).bound
    # Rounding may take 3 * 16 eps * 1e9 = 1e-5 off the eigenvalue 1e-2, and half of that ratio off the bound.
    assert optimum * (1 - 1e-9) <= bound <= optimum * (1 + 1e-3)


def test_only_thin_forms_are_written_out() -> None:
    assert with_every_eigenvalue(ellipsoid(1.0, 2.0, 3.0)) is not THIN
    well = ellipsoid(1.0, 2.0, 3.0)
    assert with_every_eigenvalue(well) is well
    assert with_every_eigenvalue(THIN) is not THIN


#: Each with the solvers that take its cones.
PAIRS = [
    (name, solver) for name, (problem, _) in SCALES.items() for solver in capable(with_every_eigenvalue(problem))[0]
]


@pytest.mark.grid(every=5)
@pytest.mark.parametrize(("name", "solver"), PAIRS)
def test_an_answer_found_in_other_units_is_an_answer_in_the_problem_s_own(name: str, solver: str) -> None:
    problem, optimum = SCALES[name]
    whole = with_every_eigenvalue(problem)
    solution, values = solve_scaled(whole, solver, solver_spec(solver).full_options(None, {}))
    assert values is not None
    assert solution.x is not None
    assert solution.residuals is not None
    # Solvers stop at 1e-6 to 1e-9 in the scaled units; a hundred times that is left for the change of units.
    assert solution.residuals.largest < 1e-4
    if optimum is not None:
        assert solution.program.user_value(solution.program.value(solution.x)) == pytest.approx(optimum, rel=1e-5)


def test_units_make_the_largest_entries_of_rows_and_columns_one() -> None:
    compiled = extract(SCALES["steep row"][0], "CLARABEL", {})
    program = ConeProgram(**compiled.fields)
    units = units_of(program)
    scaled = np.abs(units.rows[:, None] * program.A.toarray() * units.columns)
    np.testing.assert_allclose(scaled.max(axis=0), 1.0, rtol=1e-3)
    np.testing.assert_allclose(scaled.max(axis=1), 1.0, rtol=1e-3)


def test_where_all_are_off_the_report_offers_other_units_and_these_bring_the_answer() -> None:
    check = crosscheck(THIN, among_installed("CLARABEL", "ECOS"))
    assert list(check.all_off) == ["problem"]
    assert "all are off: no answer to problem agrees; check.rescaled()" in " ".join(str(check).split())
    again = check.rescaled()
    assert again.all_off == {}
    assert {one.verdict for one in again.verdicts.values()} == {"agrees"}
    np.testing.assert_allclose(again.table["objective"], 1e3**0.5, rtol=1e-6)


def test_a_wrong_answer_is_still_wrong_in_other_units() -> None:
    problem = SCALES["flat"][0]
    check = crosscheck(problem, ["CLARABEL"], answers={"mine": {"y": [0.3, 0.3, 0.4]}})
    assert check.rescaled().verdicts["mine"].verdict != "agrees"


def test_other_units_do_not_make_an_empty_or_an_unbounded_problem_anything_else() -> None:
    empty = cp.Problem(cp.Minimize(x[0]), [1e-6 * x[0] >= 1, x[0] <= 1e5, x[1] == 0])
    for problem, status in ((empty, "infeasible"), (STRIP, "unbounded")):
        again = crosscheck(problem, ["CLARABEL"]).rescaled()
        assert again.table["status"].tolist() == [status]
        assert again.verdicts["CLARABEL"].verdict in ("agrees", "loose")


def test_mixed_integer_problems_have_no_other_units() -> None:
    whole = cp.Variable(integer=True, name="whole")
    check = crosscheck(cp.Problem(cp.Minimize(whole), [whole >= 0.5]), ["HIGHS"])
    with pytest.raises(ModelError, match="mixed-integer"):
        check.rescaled()


@pytest.mark.slow
def test_a_solver_is_not_reported_for_what_cvxpy_gave_it() -> None:
    check = crosscheck(THIN, ["CLARABEL"])
    with pytest.raises(ModelError, match="report the problem to cvxpy"):
        check.bug("CLARABEL")


@pytest.mark.slow
def test_a_constraint_that_is_far_away_does_not_set_the_units() -> None:
    problem = cp.Problem(THIN.objective, [*THIN.constraints, x[1] <= 5])
    again = crosscheck(problem, ["CLARABEL", "SCS"]).rescaled()
    # The point may be loose, as x[1] weighs 1e8; the value is proven.
    assert {one.verdict for one in again.verdicts.values()} <= {"agrees", "loose"}
    np.testing.assert_allclose(again.table["objective"], 1e3**0.5, rtol=1e-6)
