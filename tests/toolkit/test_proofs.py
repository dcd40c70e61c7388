"""Proofs that a program has no solution, found without any solver's certificate, against answers known by hand."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from cvxpriv.blocks.declaration import Declaration
from cvxpriv.certify.answers import Stored
from cvxpriv.certify.cases import Case, case_of_problem
from cvxpriv.certify.check import crosscheck
from cvxpriv.certify.corpus.liars import LIARS
from cvxpriv.certify.proofs import Proofs
from cvxpriv.kkt.conic import certificates
from cvxpriv.kkt.conic.certificates import (
    PROOF,
    Certificate,
    infeasibility,
    infeasibility_proof,
    ray,
    roomy,
    unboundedness,
)
from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.conic.data import ConeData, extract
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.solvers.place import Place

x = cp.Variable(name="x")
y = cp.Variable(2, name="y")
X = cp.Variable((2, 2), symmetric=True, name="X")

EMPTY = {
    "linear": cp.Problem(cp.Minimize(y[0]), [y >= 0, cp.sum(y) <= -1]),
    "linear, by a hair": cp.Problem(cp.Minimize(x), [x >= 1, x <= 1 - 1e-6]),
    "equations": cp.Problem(cp.Minimize(x), [y == 0, cp.sum(y) == 1]),
    "second-order": cp.Problem(cp.Minimize(x), [cp.norm(y) <= x, x <= -0.1]),
    "semidefinite": cp.Problem(cp.Minimize(x), [X >> 0, X[0, 0] == -1]),
    "exponential": cp.Problem(cp.Minimize(x), [cp.exp(x) <= -1]),
    "power": cp.Problem(cp.Minimize(x), [cp.PowCone3D(x, 1 - x, 5 + x, 0.5)]),  # sqrt(x(1-x)) <= 1/2 < 5
}
ENDLESS = {
    "linear": cp.Problem(cp.Minimize(y[0]), [cp.sum(y) >= 1]),
    "linear, slowly": cp.Problem(cp.Minimize(-1e-6 * x), [x >= 0]),
    "quadratic": cp.Problem(cp.Minimize(y[0] ** 2 - y[1])),
    "second-order": cp.Problem(cp.Minimize(-x), [cp.norm(y) <= x]),
    "semidefinite": cp.Problem(cp.Maximize(cp.trace(X)), [X >> 0]),
    "exponential": cp.Problem(cp.Maximize(x), [cp.exp(y[0]) <= x]),
}
FINITE = {
    "quadratic": cp.Problem(cp.Minimize(cp.sum_squares(y) - y[1])),
    "linear": cp.Problem(cp.Minimize(cp.sum(y)), [y >= 1]),
    "entropy": cp.Problem(cp.Minimize(-cp.sum(cp.entr(y))), [cp.sum(y) == 1]),
    "not attained": cp.Problem(cp.Minimize(cp.inv_pos(x))),
}


def compiled(problem: cp.Problem) -> ConeData:
    return extract(problem, "CLARABEL", {})


def rows(A: list[list[float]], b: list[float], zero: int = 0, c: tuple[float, ...] = ()) -> ConeProgram:
    """A linear program: the first `zero` rows are A x = b, the others A x <= b."""
    size = len(A[0])
    objective = np.array(c or (0.0,) * size)
    return ConeProgram(
        sp.csc_array((size, size)), objective, 0.0, sp.csc_array(A), np.array(b), ConeLayout(zero, len(b) - zero)
    )


@pytest.mark.parametrize(
    ("z", "expected"),
    [
        # x <= -1 and -x <= -1: z is scaled to b'z = -1, and shows that no point is smaller than -b'z / ||A'z||_1.
        ([1.0, 1.0], Certificate("infeasible", 0.0, 0.0, np.inf, True, True)),
        ([0.5, 0.75], Certificate("infeasible", 0.2, 0.0, 5.0, True, True)),
        # A negative entry is projected away, and with it what it was worth. Each is exact once it is repaired.
        ([1.0, -0.5], Certificate("infeasible", 3.0, 1.0, 1.0, True, True)),
        ([0.0, 0.0], Certificate("infeasible", np.inf, np.inf, 0.0, False, False)),
        ([-1.0, 0.0], Certificate("infeasible", np.inf, np.inf, 0.0, False, False)),
    ],
)
def test_a_certificate_of_infeasibility_is_measured_at_strength_one(z: list[float], expected: Certificate) -> None:
    found = infeasibility(rows([[1.0], [-1.0]], [-1.0, -1.0]), np.array(z))
    assert found == replace(expected, equation=pytest.approx(expected.equation), radius=pytest.approx(expected.radius))


def test_a_certificate_that_is_nothing_once_it_is_projected_excludes_no_point() -> None:
    assert infeasibility(rows([[1.0]], [2.0]), np.array([-0.5])).radius == 0.0  # x <= 2


def test_a_certificate_is_exact_where_half_of_its_strength_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    proved = []
    for value in (None, 0.4, 0.5, 0.51, 1.0):
        monkeypatch.setattr(certificates, "lower_bound", lambda *_, value=value: SimpleNamespace(value=value))
        proved.append(infeasibility(rows([[1.0], [-1.0]], [-1.0, -1.0]), np.ones(2)).exact)
    assert proved == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("program", "size"),
    [
        (rows([[2.0]], [-6.0], zero=1), 3.0),  # 2 x = -6
        (rows([[2.0]], [6.0], zero=1), 3.0),
        (rows([[-2.0]], [-6.0]), 3.0),  # 2 x >= 6
        (rows([[2.0]], [6.0]), 0.0),  # 0 will do
        (rows([[2.0, 1.0], [1.0, 1.0]], [3.0, 90.0], zero=1), 1.0),  # some entry of 2 x + y = 3 is 1 or more
        (rows([[1.0, 0.0], [0.0, 4.0]], [8.0, -4.0], zero=1), 8.0),
        (rows([[0.0]], [-5.0]), 0.0),  # no point meets it
    ],
)
def test_single_rows_show_how_large_a_feasible_point_is(program: ConeProgram, size: float) -> None:
    assert certificates._least_size(program) == size


def test_a_certificate_of_unboundedness_is_measured_at_strength_one() -> None:
    program = rows([[1.0, 0.0]], [0.0], c=(0.0, -0.5))  # x <= 0, and y grows
    assert unboundedness(program, np.array([0.0, 4.0])) == Certificate(
        "unbounded", 0.0, 0.0, pytest.approx(np.nan, nan_ok=True), True
    )
    off = unboundedness(replace(program, P=sp.csc_array(np.diag([0.0, 0.25]))), np.array([1.0, 4.0]))
    assert (off.equation, off.membership, off.valid) == (0.5, 0.5, True)  # d = (1/2, 2)
    for direction in ([0.0, 0.0], [0.0, -1.0]):
        assert not unboundedness(program, np.array(direction)).valid


def test_a_certificate_holds_up_to_a_millionth_unless_another_limit_is_named() -> None:
    off = [Certificate("infeasible", size, 0.0, 1.0, True) for size in (1e-6, 1.001e-6)]
    assert [one.holds() for one in off] == [True, False]
    assert not Certificate("infeasible", 0.0, 1e-5, 1.0, True).holds()
    assert not Certificate("infeasible", 0.0, 0.0, 1.0, False).holds()
    assert off[1].holds(1e-5)


@pytest.mark.parametrize("name", EMPTY)
def test_an_infeasible_program_of_any_cone_has_a_certificate_and_no_room(name: str) -> None:
    proof = infeasibility_proof(compiled(EMPTY[name]))
    assert proof is not None
    assert proof.exact
    assert not roomy(compiled(EMPTY[name]))


@pytest.mark.parametrize("name", ENDLESS)
def test_an_unbounded_program_has_a_ray_and_room(name: str) -> None:
    program = ConeProgram(**compiled(ENDLESS[name]).fields)
    direction = ray(compiled(ENDLESS[name]))
    assert direction is not None
    assert unboundedness(program, direction).holds(PROOF)
    assert infeasibility_proof(compiled(ENDLESS[name])) is None
    assert roomy(compiled(ENDLESS[name]))


@pytest.mark.parametrize("name", FINITE)
def test_a_program_with_a_finite_value_has_neither(name: str) -> None:
    assert infeasibility_proof(compiled(FINITE[name])) is None
    assert ray(compiled(FINITE[name])) is None


def test_what_has_no_certificate_gets_none() -> None:
    # exp(x) <= 0 is empty, and every x = -k misses it by e^-k: no certificate separates the two sets.
    weak = compiled(cp.Problem(cp.Minimize(0 * x), [cp.exp(x) <= 0]))
    assert infeasibility_proof(weak) is None
    assert not roomy(weak)
    # A logarithm grows without end, and in no direction at a fixed rate.
    assert ray(compiled(cp.Problem(cp.Maximize(cp.log(x))))) is None


def test_a_set_without_interior_has_no_room_and_one_with_equations_has() -> None:
    assert not roomy(compiled(cp.Problem(cp.Minimize(x), [x >= 1, x <= 1])))
    assert roomy(compiled(cp.Problem(cp.Minimize(y[0]), [y >= 0, cp.sum(y) == 1])))


@pytest.mark.parametrize(
    ("problem", "endless"),
    [
        (cp.Problem(cp.Maximize(cp.log(x))), True),
        (cp.Problem(cp.Maximize(cp.sum(cp.sqrt(y))), [y[0] <= 1]), True),
        (cp.Problem(cp.Minimize(cp.inv_pos(x))), False),
        (cp.Problem(cp.Minimize(cp.sum_squares(y - 1))), False),
    ],
    ids=["logarithm", "root", "reciprocal", "squares"],
)
def test_values_grow_with_the_box_exactly_where_nothing_limits_them(problem: cp.Problem, endless: bool) -> None:
    growth = Proofs(case_of_problem("case", problem)).growth(10.0)
    assert len(growth.values) == 3
    assert growth.endless(1e-6, isinstance(problem.objective, cp.Maximize)) == endless


def test_proofs_are_looked_for_in_a_process_of_their_own_and_a_crash_there_is_no_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def crash(*_: object) -> None:
        raise AssertionError("a solver was called here")

    monkeypatch.setattr(
        "cvxpriv.kkt.conic.certificates.solved_by_clarabel", crash
    )  # another process does not know of it
    monkeypatch.setattr("cvxpriv.kkt.conic.solving.solve_conic", crash)
    empty, elsewhere = case_of_problem("case", EMPTY["linear"]), Place(isolate=True)
    found = Proofs(empty, elsewhere).infeasible
    assert found is not None
    assert found.holds(PROOF)
    doomed = replace(empty, declare=Doomed(empty, os.getpid()))
    assert Proofs(doomed, elsewhere).growth(1.0).values == ()
    assert Proofs(empty).infeasible is None  # here it raises: no proof, and nothing is lost


@dataclass(frozen=True)
class Doomed:
    """The declaration of a case that ends every process but one."""

    case: Case
    spared: int

    def __call__(self) -> Declaration:
        if os.getpid() != self.spared:
            os._exit(3)
        return self.case.declare()


def test_growth_of_a_logarithm_is_that_of_its_bound_and_values_are_kept() -> None:
    x.value = 2.0
    growth = Proofs(case_of_problem("log", cp.Problem(cp.Maximize(cp.log(x))))).growth(1.0)
    assert growth.values == pytest.approx(np.log(growth.sizes), abs=1e-6)  # solved to 1e-9, at entries up to 1e3
    assert float(x.value) == 2.0


def test_a_logarithm_without_limit_makes_no_true_claim_wrong() -> None:
    stored = Stored(None, status="unbounded", solver="ECOS", version="2.0.14")
    check = crosscheck(cp.Problem(cp.Maximize(cp.log(x))), answers={"stored": stored})
    claims = check.table[check.table["status"].str.startswith("unbounded")]
    assert "stored" in set(claims["solver"])
    assert set(claims["verdict"]) == {"loose"}
    points = check.table[check.table["objective"].notna()]
    assert "agrees" not in set(points["verdict"])
    assert {"WRONG", "failed"} >= set(points["verdict"])


@pytest.mark.parametrize("problem", [ENDLESS["linear"], EMPTY["linear, by a hair"]], ids=["unbounded", "infeasible"])
def test_highs_needs_no_certificate_of_its_own_to_agree(problem: cp.Problem) -> None:
    assert crosscheck(problem, ["HIGHS"]).verdicts["HIGHS"].verdict == "agrees"


def test_a_ray_that_both_solvers_have_proves_nothing_of_an_empty_problem() -> None:
    liar = next(one for one in LIARS if one.name == "unbounded where nothing is feasible")
    check = crosscheck(liar.build().problem, ["ECOS"], answers={"stored": liar.stored})
    assert check.table["solver"][0] == "stored"
    assert check.table["verdict"][0] == "loose"
    assert "certificate found here" in check.table["reason"][0]
