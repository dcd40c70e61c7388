"""Verdicts that are proved: the optimum in fractions, of programs over all cones."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.certify import Stored
from cvxpriv.certify.cases import case_of_problem
from cvxpriv.certify.check import crosscheck
from cvxpriv.certify.interval_proofs import proof_of
from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.conic.exact import LARGEST, proved_infeasible, proved_interval
from cvxpriv.kkt.conic.exact_cones import inside
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.kkt.conic.solving import solve_conic


def _program(problem: cp.Problem) -> ConeProgram:
    return ConeProgram.from_problem(problem, "CLARABEL")


def test_the_interval_of_a_linear_program_holds_the_exact_optimum_and_is_two_doubles_wide() -> None:
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(0.1 * x[0] + 0.7 * x[1]), [0.3 * x[0] + 0.9 * x[1] >= 1.1, x >= 0])
    # The cheapest way is x0 alone or x1 alone: 1.1 / .3 * .1 against 1.1 / .9 * .7, of the doubles that stand there.
    exact = Fraction(0.1) * Fraction(1.1) / Fraction(0.3)
    program = _program(problem)
    found = proved_interval(program, np.array([1.1 / 0.3 + 1e-10, 1e-11]), np.array([1 / 3, 1e-12, 0.4 - 1e-12]))
    assert Fraction(found.low) <= exact <= Fraction(found.high)
    assert found.high - found.low <= 2 * np.spacing(float(exact))


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 8))])
def test_random_quadratic_programs_are_proved_and_points_elsewhere_are_not(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, centre = rng.normal(size=(5, 3)), rng.normal(size=3)
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - centre) + x[0]), [A @ x <= 1, cp.sum(x) == 0.25])
    value = problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    far = Stored({"x": x.value + 0.1 * np.array([1, -1, 0])}, asked=1e-9, solver="a solver", version="1", machine="any")
    rows = crosscheck(problem, ["CLARABEL", "ECOS"], answers={"far": far}, proof="interval").table.set_index("solver")
    assert set(rows.loc[["CLARABEL", "ECOS"], "known_by"]) == {"proved"}
    assert set(rows.loc[["CLARABEL", "ECOS"], "verdict"]) == {"agrees"}
    assert rows.loc["far", "verdict"] == "WRONG"
    assert "exact arithmetic proves the optimum to lie between" in str(rows.loc["CLARABEL", "reason"])
    assert rows.loc["CLARABEL", "objective"] == pytest.approx(value, abs=1e-7)


def test_a_maximum_is_proved_in_its_own_sense() -> None:
    x = cp.Variable(name="x")
    rows = crosscheck(cp.Problem(cp.Maximize(2 * x), [x <= 3]), ["CLARABEL"], proof="interval").table.set_index(
        "solver"
    )
    assert rows.loc["CLARABEL", "known_by"] == "proved"
    assert "between 6.0 and 6.0" in str(rows.loc["CLARABEL", "reason"])


def test_an_empty_problem_is_proved_empty_and_a_feasible_one_is_not() -> None:
    x = cp.Variable(2, name="x")
    empty = cp.Problem(cp.Minimize(x[0]), [cp.sum(x) == 1, x[0] >= 0.6, x[1] >= 0.7])
    rows = crosscheck(empty, ["CLARABEL", "HIGHS"], proof="interval").table.set_index("solver")
    assert set(rows["known_by"]) == {"proved"}
    feasible = _program(cp.Problem(cp.Minimize(x[0]), [cp.sum(x) == 1, x[0] >= 0.6, x[1] >= 0.3]))
    assert not proved_infeasible(feasible, np.array([-1.0, 1.0, 1.0]))


def test_what_is_missing_is_said() -> None:
    x = cp.Variable(LARGEST + 1, name="x")
    large = cp.Problem(cp.Minimize(cp.sum(x)), [x >= 0])
    rows = crosscheck(large, ["CLARABEL"], proof="interval").table.set_index("solver")
    assert rows.loc["CLARABEL", "known_by"] != "proved"
    assert "more than 80 rows" in proof_of(case_of_problem("large", large)).why
    with pytest.raises(ModelError, match="proof='exact' is not known"):
        crosscheck(large, ["CLARABEL"], proof="exact")


def _over_matrices_and_powers() -> dict[str, tuple[cp.Problem, float]]:
    X, x, z, t = cp.Variable((3, 3), symmetric=True), cp.Variable(3), cp.Variable(1), cp.Variable()
    C = np.array([[1.0, 0.3, -2.0], [0.3, 0.5, 0.7], [-2.0, 0.7, 3.0]])
    weights = np.array([0.2, 0.3, 0.5])
    return {
        "least eigenvalue": (
            cp.Problem(cp.Minimize(cp.trace(C @ X)), [X >> 0, cp.trace(X) == 1]),
            float(np.linalg.eigvalsh(C)[0]),
        ),
        "bounded entry": (cp.Problem(cp.Minimize(cp.trace(X)), [X >> 0, X[0, 1] >= 1]), 2.0),
        "log-determinant": (cp.Problem(cp.Maximize(cp.log_det(X) - cp.trace(X))), -3.0),
        "weighted product": (
            cp.Problem(cp.Maximize(z[0]), [cp.PowConeND(x, z, weights), cp.sum(x) <= 1]),
            float(np.prod(weights**weights)),
        ),
        "third power": (cp.Problem(cp.Minimize(t**3 - t)), -2.0 / 27.0**0.5),
    }


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name == "weighted product"))
        for name in _over_matrices_and_powers()
    ],
)
def test_optima_over_semidefinite_and_power_cones_are_proved(name: str) -> None:
    problem, value = _over_matrices_and_powers()[name]
    rows = crosscheck(problem, ["SCS"], proof="interval", tolerance=1e-9).table.set_index("solver")
    proof = proof_of(case_of_problem(name, problem))
    assert (proof.why, rows.loc["SCS", "known_by"]) == ("", "proved")
    assert proof.low <= value <= proof.high <= proof.low + 1e-6  # closed forms to 1e-16, which the ends leave room for


def _drawn(seed: int) -> tuple[cp.Problem, Decimal]:
    """A second-order or an exponential program, and its optimum to 40 digits."""
    rng = np.random.default_rng(seed)
    cost, centre, radius = rng.normal(size=3), rng.normal(size=3), 1.0
    x = cp.Variable(3, name="x")
    exact = [Decimal(float(entry)) for entry in cost]
    with localcontext() as context:
        context.prec = 40
        if seed % 2:
            best = sum(a * Decimal(float(b)) for a, b in zip(exact, centre, strict=True))
            best = Decimal(best) - sum((a * a for a in exact), Decimal(0)).sqrt()
            return cp.Problem(cp.Minimize(cost @ x), [cp.norm(x - centre) <= radius]), best
        best = -sum(((-a).exp() for a in exact), Decimal(0)).ln()
        return cp.Problem(cp.Minimize(cost @ x - cp.sum(cp.entr(x))), [cp.sum(x) == 1]), best


@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_of_a_cone_program_lies_in_its_interval_whatever_point_and_dual_it_comes_from(seed: int) -> None:
    problem, best = _drawn(seed)
    solution, rng = solve_conic(problem, "CLARABEL"), np.random.default_rng(seed)
    assert solution.x is not None
    assert solution.z is not None
    x, z = solution.x, solution.z
    proved = proved_interval(solution.program, x, z)
    assert Fraction(proved.low) <= Fraction(best) <= Fraction(proved.high)
    assert proved.high - proved.low < 1e-6
    for size in 10.0 ** np.array([-9, -6, -3, 0, 2]):
        near = x + size * rng.normal(size=x.size), z * (1.0 + size * rng.normal(size=z.size))
        for point, dual in (near, (x, (1.0 + size) * z), (x, -size * z)):
            found = proved_interval(solution.program, point, dual)
            assert Fraction(found.low) <= Fraction(best) <= Fraction(found.high)


def test_members_of_a_cone_and_of_its_dual_have_no_negative_product() -> None:
    rng = np.random.default_rng(5)
    layouts = (ConeLayout(soc=(3,)), ConeLayout(exp=1), ConeLayout(psd=(2,)), ConeLayout(power=((0.3, 0.7),)))
    kept = 0
    for layout in layouts:
        members: dict[bool, list[list[Fraction]]] = {True: [], False: []}
        for dual, held in members.items():
            for vector in rng.normal(size=(60, 3)):  # on the boundary but for a few roundings, outside as often as not
                edge = layout.project(vector, dual=True) if dual else layout.project(vector)
                beside = [Fraction(float(entry)) for entry in edge * (1.0 + 1e-15 * rng.integers(-3, 4, size=3))]
                held += [beside] if inside(layout, beside, dual) else []
        kept += len(members[True]) * len(members[False])
        assert all(sum(a * b for a, b in zip(s, z, strict=True)) >= 0 for s in members[False] for z in members[True])
    assert kept > 500


def test_a_boundary_is_told_from_what_lies_a_rounding_beyond() -> None:
    soc, exp, hair = ConeLayout(soc=(3,)), ConeLayout(exp=1), Fraction(1, 10**30)
    psd, power = ConeLayout(psd=(2,)), ConeLayout(power=((0.25, 0.75),))
    one, root = Fraction(1), Fraction("1.414213562373095048801688724209698078570")  # sqrt 2, rounded upwards
    for layout, edge, dual in (
        (psd, [one, root, one], False),
        (power, [one, Fraction(16), Fraction(8)], False),
        (power, [Fraction(1, 4), Fraction(12), Fraction(8)], True),
    ):
        assert inside(layout, [edge[0] + hair, *edge[1:]], dual)
        assert not inside(layout, [edge[0] - hair, *edge[1:]], dual)
    assert inside(soc, [Fraction(5), Fraction(3), Fraction(4)], dual=True)
    assert not inside(soc, [Fraction(5) - hair, Fraction(3), Fraction(4)], dual=True)
    e = Fraction("2.718281828459045235360287471352662497757")  # to 39 digits, rounded
    for point, dual in (([Fraction(1), Fraction(1), e], False), ([Fraction(-1), Fraction(-2), e], True)):
        assert inside(exp, [*point[:2], e + hair], dual)
        assert not inside(exp, [*point[:2], e - hair], dual)


def test_a_form_that_is_indefinite_by_the_last_digit_proves_nothing() -> None:
    x = cp.Variable(2, name="x")
    wide = np.array([[1.0, 1.0 + 2.0**-52], [1.0 + 2.0**-52, 1.0]])
    program = _program(cp.Problem(cp.Minimize(cp.quad_form(x, cp.psd_wrap(wide))), [x >= -1, x <= 1]))
    assert "positive semidefinite" in proved_interval(program, np.zeros(2), np.zeros(4)).why
