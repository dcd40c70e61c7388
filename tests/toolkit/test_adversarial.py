"""Problems that mislead, with known answers: no right answer is WRONG, and no wrong one agrees."""

from __future__ import annotations

from itertools import islice
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from cvxpy.transforms.indicator import indicator
from cvxpy.transforms.partial_optimize import partial_optimize

from cvxpriv.certify.answers import Answer, Context, Stored
from cvxpriv.certify.check import crosscheck
from cvxpriv.certify.corpus import edges
from cvxpriv.certify.corpus.items import FAMILIES, adversarial
from cvxpriv.certify.corpus.known import Known, false_verdicts
from cvxpriv.certify.corpus.polyhedral import endless
from cvxpriv.certify.verdicts import Tolerances, judge
from cvxpriv.certify.yardstick import Measures
from cvxpriv.errors import ModelError
from cvxpriv.kkt import residuals
from cvxpriv.kkt.conic.bounds import lower_bound
from cvxpriv.kkt.conic.certificates import infeasibility
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.kkt.conic.solving import solve_conic
from cvxpriv.kkt.rays import improves_for_ever
from cvxpriv.kkt.written import Written
from tests.toolkit.held_back_problems import HELD_BACK

SLOW = edges.FAMILIES


def judged(known: Known, *solvers: str) -> pd.DataFrame:
    table = crosscheck(known.problem, solvers or None, answers={name: dict(one) for name, one in known.answers.items()})
    assert not (false := false_verdicts(known, table.table)), "\n".join([*false, str(table)])
    return table.table.set_index("solver")


@pytest.mark.grid(every=4)
@pytest.mark.parametrize(
    "family",
    [
        pytest.param(number, marks=[pytest.mark.slow] * (made in SLOW), id=made.__name__)
        for number, made in enumerate(FAMILIES)
    ],
)
def test_one_problem_of_each_family_is_judged_right(family: int) -> None:
    (known,) = islice(adversarial(family + 1, seed=0), family, None)
    judged(known)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_problems_are_judged_right(part: int) -> None:
    for known in islice(adversarial(1000, seed=11), part, None, 10):
        judged(known)


@pytest.mark.slow
@pytest.mark.parametrize("name", HELD_BACK)
def test_families_that_were_held_back_are_judged_right(name: str) -> None:
    for seed in range(3):
        judged(HELD_BACK[name](np.random.default_rng([2, seed, *name.encode()])))


def test_a_false_verdict_is_noticed() -> None:
    x = cp.Variable(name="x")
    known = Known(cp.Problem(cp.Minimize(x), [x >= 1]), value=1.0, answers={"lie": {x: np.array(2.0)}}, name="k")
    rows = [("A", "optimal", 1.0, "WRONG"), ("B", "optimal", 2.0, "agrees"), ("C", "infeasible", np.nan, "agrees")]
    rows += [("lie", "claimed", 2.0, "agrees"), ("D", "optimal", 1.0, "agrees"), ("E", "optimal", 1 + 1e-5, "WRONG")]
    table = pd.DataFrame(rows, columns=["solver", "status", "objective", "verdict"]).assign(reason="")
    assert [text.split(" is called ")[0] for text in false_verdicts(known, table)] == [
        "k: A (optimal, right to 0e+00)",
        "k: B (optimal, off by 1e+00)",
        "k: C (infeasible, which is wrong)",
        "k: lie (claimed, a false answer)",
    ]


# What compiled problems do not know


def test_an_eigenvalue_that_cvxpy_drops_makes_no_problem_unbounded() -> None:
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Maximize(x[0]), [cp.quad_form(x, np.diag([1e-3, 1e8])) <= 1])
    truth = np.array([1e3**0.5, 0.0])
    table = judged(Known(problem, value=1e3**0.5, answers={"truth": {x: truth}, "lie": {x: truth / 2}}))
    assert "agrees" not in set(table.loc[table["status"] == "unbounded", "verdict"])


@pytest.mark.parametrize("form", ["objective", "constraint"])
def test_a_matrix_that_is_only_said_to_be_semidefinite_is_refused(form: str) -> None:
    x = cp.Variable(2, name="x")
    curved = cp.quad_form(x, cp.psd_wrap(np.diag([1.0, -1.0])))
    problem = {
        "objective": cp.Problem(cp.Minimize(curved), [cp.abs(x) <= 1]),
        "constraint": cp.Problem(cp.Minimize(x[0]), [curved <= 1]),
    }[form]
    with pytest.raises(ModelError, match=r"taken for convex and is not \(the eigenvalue -1.0e\+00\)"):
        crosscheck(problem)


def test_a_matrix_with_a_rounded_negative_eigenvalue_is_convex_enough() -> None:
    A, x = np.random.default_rng(0).normal(size=(2, 4)), cp.Variable(4, name="x")
    problem = cp.Problem(cp.Minimize(cp.quad_form(x, cp.psd_wrap(A.T @ A)) - cp.sum(A @ x)))
    assert crosscheck(problem, ["CLARABEL", "OSQP"]).verdicts["CLARABEL"].verdict == "agrees"


# Rounding, and cones without room


def test_products_that_cancel_are_no_proof_of_emptiness() -> None:
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(x[1]), [x[0] >= 3, x[0] <= 3, x[1] >= x[0]])
    check = crosscheck(problem, ["CLARABEL"], answers={"denial": Stored(None, status="infeasible")})
    verdicts = {name: one.verdict for name, one in check.verdicts.items()}
    assert verdicts == {"denial": "WRONG", "CLARABEL": "agrees"}


def test_a_certificate_that_a_cone_misses_by_rounding_proves_nothing_of_points_at_1e9() -> None:
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - 1e9)), [cp.sum(x) == 1e9])
    dual = np.array(
        [3949.9674687867968, 3813807.4590878221, 3813806.4312362159, 1931.0948419259703, 1931.0948397299433]
    )
    proof = infeasibility(ConeProgram.from_problem(problem, "ECOS"), dual)  # as ECOS 2.0.14 gave it
    assert proof.valid
    assert not proof.exact


def test_a_bound_counts_rounding_in_the_units_of_its_row() -> None:
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(x[0] + 2 * x[1]), [1e9 * x >= 0, 1e9 * cp.sum(x) >= 1e9])
    program = ConeProgram.from_problem(problem, "ECOS")
    found = lower_bound(program, np.array([0.51, 0.49]), np.array([2.17e-12, 3.77e-12, 1.486e-9]))
    assert found.value is None or found.value <= 1 + 1e-9  # the optimum is 1


@pytest.mark.parametrize(("entries", "endless"), [((1.0, 1.0, 2.36e-5), False), ((1.0, 0.5, 0.8), True)])
def test_a_direction_on_the_edge_of_a_cone_does_not_improve_for_ever(entries: tuple[float, ...], endless: bool) -> None:
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Maximize(x[2]), [cp.SOC(x[0], x[1:])])
    assert improves_for_ever(Written.of(problem), np.zeros(3), np.array(entries)) is endless


x_, s_ = cp.Variable(name="x"), cp.Variable(name="s", nonneg=True)
X_, Y_ = (cp.Variable((2, 2), name=name, symmetric=True) for name in "XY")
RANK_ONE = np.outer([0.6, 0.8], [0.6, 0.8])


@pytest.mark.parametrize(
    ("atom", "at", "value"),
    [
        (cp.perspective(cp.square(x_), s_), {x_: 0.0, s_: 0.0}, 0.0),
        (cp.perspective(cp.square(x_), s_), {x_: 1.0, s_: 1e-9}, 1e9),
        (cp.perspective(cp.huber(x_, 1), s_), {x_: 3.0, s_: 0.0}, 6.0),
        (cp.perspective(-cp.log(x_), s_), {x_: 0.0, s_: 0.0}, 0.0),
        (cp.quad_over_lin(x_, s_), {x_: 0.0, s_: 0.0}, 0.0),
        (cp.quad_over_lin(x_, s_), {x_: 1e-3, s_: 0.0}, np.inf),
        (cp.log(x_), {x_: 0.0}, -np.inf),
        (cp.von_neumann_entr(X_), {X_: RANK_ONE}, 0.0),
        (cp.quantum_rel_entr(X_, Y_), {X_: RANK_ONE, Y_: RANK_ONE}, 0.0),
        (cp.quantum_rel_entr(X_, Y_), {X_: np.eye(2), Y_: RANK_ONE}, np.inf),
    ],
    ids=lambda given: str(given)[:40] if isinstance(given, cp.Expression) else None,
)
def test_an_atom_has_its_limit_at_the_end_of_its_domain(
    atom: cp.Expression, at: dict[cp.Variable, Any], value: float
) -> None:
    written = Written.of(cp.Problem(cp.Minimize(atom) if atom.is_convex() else cp.Maximize(atom)))
    for variable, entry in at.items():
        variable.save_value(np.asarray(entry))
    assert written.objective(written.state()) == pytest.approx(value, rel=1e-9, abs=1e-14)


def test_a_parameter_that_holds_a_bare_number_is_read_like_any_other() -> None:
    x, p = cp.Variable(name="x"), cp.Parameter(nonneg=True, name="p")
    p.value = 2
    problem = cp.Problem(cp.Minimize(cp.quad_over_lin(x, p) + x))
    assert crosscheck(problem, ["CLARABEL"]).verdicts["CLARABEL"].verdict == "agrees"


def test_a_matrix_fraction_has_its_value_at_a_singular_matrix() -> None:
    S, b = cp.Variable((2, 2), name="S", PSD=True), np.array([1.0, 2.0])
    problem = cp.Problem(cp.Minimize(cp.matrix_frac(b, S)), [cp.trace(S) <= 1])
    written = Written.of(problem)
    S.value = np.outer(b, b) / 5
    assert written.objective(written.state()) == pytest.approx(5.0, rel=1e-12)
    S.value = np.diag([1.0, 0.0])
    assert written.objective(written.state()) == np.inf


@pytest.mark.parametrize(("entry", "verdict"), [(0.5, "loose"), (1e-3, "loose"), (2.0, "WRONG")])
def test_poor_multipliers_where_none_is_finite_make_no_best_point_wrong(entry: float, verdict: str) -> None:
    # Every point with x0 = 0 and the others in [0, 1] has the best value, 0, and an infinite multiplier.
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Maximize(cp.geo_mean(x)), [x[0] <= 0, x[1:] <= 1])
    solution = solve_conic(problem, "CLARABEL", {})
    assert solution.z is not None
    poor = Stored({"x": [0, entry, 1]}, cone=(solution.x, 0 * solution.z), solver="CLARABEL")
    check = crosscheck(problem, ["CLARABEL"], answers={"poor": poor})
    assert check.verdicts["poor"].verdict == verdict, str(check)


def test_a_feasible_point_with_poor_multipliers_is_wrong_beside_a_better_one() -> None:
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Maximize(cp.geo_mean(x)), [x <= 1])
    solution = solve_conic(problem, "CLARABEL", {})
    assert solution.z is not None
    poor = Stored({"x": [1, 1, 1 - 1e-4]}, cone=(solution.x, 0 * solution.z), solver="CLARABEL")
    assert crosscheck(problem, ["CLARABEL"], answers={"poor": poor}).verdicts["poor"].verdict == "WRONG"


# Scale


def test_a_certificate_that_is_off_by_1e_8_proves_nothing_of_a_point_at_1e8() -> None:
    x = cp.Variable(name="x")
    table = judged(Known(cp.Problem(cp.Minimize(x), [1e-8 * x >= 1]), value=1e8))
    assert table.loc[["CLARABEL", "HIGHS"], "verdict"].tolist() == ["agrees", "agrees"]
    assert table.loc[["CLARABEL", "HIGHS"], "known_by"].tolist() == ["certified", "certified"]


def test_a_direction_that_is_off_by_1e_9_is_no_ray() -> None:
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Maximize(x[0]), [x[0] <= 1e9 * x[1], x[1] <= 1])
    table = judged(Known(problem, value=1e9))
    assert "WRONG" not in set(table.loc[table["status"] == "optimal", "verdict"])


def test_the_exact_answer_of_a_flat_problem_agrees_and_is_the_reference() -> None:
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(1e-9 * cp.sum_squares(x - 1)), [cp.sum(x) <= 1])
    check = crosscheck(problem, answers={"truth": {x: np.full(3, 1 / 3)}, "near": {x: np.full(3, 1 / 3 - 1e-3)}})
    verdicts = {name: verdict.verdict for name, verdict in check.verdicts.items()}
    assert (verdicts["truth"], verdicts["near"]) == ("agrees", "loose")
    best = check.table.set_index("solver").loc["truth", "gap"]
    assert best < 1e-14  # the reference is as good as the truth, in units of 1e-9


#: HS268 of Hock and Schittkowski: terms of 14,463 cancel to an optimum of zero at (1, 2, -1, 3, -4).
HS268_P = np.array(
    [
        [20394, -24908, -2026, 3896, 658],
        [-24908, 41818, -3466, -9828, -372],
        [-2026, -3466, 3510, 2178, -348],
        [3896, -9828, 2178, 3030, -44],
        [658, -372, -348, -44, 54],
    ],
    dtype=float,
)
HS268_Q = np.array([18340, -34198, 4542, 8672, 86], dtype=float)
HS268_A = np.array(
    [[-1, -1, -1, -1, -1], [10, 10, -3, 5, 4], [-8, 1, -2, -5, 3], [8, -1, 2, 5, -3], [-4, -2, 3, -5, 1]], dtype=float
)
HS268_B = np.array([-5, 20, -40, 11, -30], dtype=float)


def test_terms_of_14463_that_cancel_make_no_right_answer_wrong() -> None:
    x = cp.Variable(5, name="x")
    cost = 0.5 * cp.quad_form(x, cp.psd_wrap(HS268_P)) + HS268_Q @ x + 14463
    truth = np.array([1.0, 2, -1, 3, -4])
    assert np.allclose(HS268_P @ truth + HS268_Q, 0)
    problem = cp.Problem(cp.Minimize(cost), [HS268_A @ x >= HS268_B])
    table = judged(Known(problem, value=0.0, unit=14463.0, answers={"truth": {x: truth}}))
    assert "WRONG" not in set(table["verdict"])


# What an atom implies, and what a variable is


@pytest.mark.parametrize("form", ["PSD", "symmetric"])
def test_a_bound_on_one_entry_of_a_symmetric_matrix_bounds_both(form: str) -> None:
    X = cp.Variable((2, 2), name="X", **{form: True})
    problem = cp.Problem(cp.Minimize(cp.trace(X)), [X[0, 1] >= 1, *([X >> 0] if form == "symmetric" else [])])
    X.value = np.ones((2, 2))
    assert residuals(problem, None).natural < 1e-12
    assert set(judged(Known(problem, value=2.0))["verdict"]) == {"agrees"}


@pytest.mark.parametrize("name", ["power", "geometric mean", "matrix fraction"])
def test_the_end_of_an_atoms_domain_carries_a_multiplier(name: str) -> None:
    x, y, X = cp.Variable(name="x"), cp.Variable(3, name="y"), cp.Variable((2, 2), symmetric=True, name="X")
    problem, value = {
        "power": (cp.Problem(cp.Minimize(x + cp.power(x, 1.5)), [x <= 4]), 0.0),
        "geometric mean": (cp.Problem(cp.Minimize(cp.sum(y) - cp.geo_mean(y)), [y <= 4]), 0.0),
        "matrix fraction": (cp.Problem(cp.Minimize(cp.matrix_frac(np.ones(2), X) + cp.trace(X))), 2 * 2**0.5),
    }[name]
    table = judged(Known(problem, value=value, name=name), "SCS", "CLARABEL")
    assert set(table["verdict"]) <= {"agrees", "loose"}


def test_a_power_of_six_ends_at_zero_as_cvxpy_says_and_one_of_four_does_not() -> None:
    x = cp.Variable(name="x")
    x.value = -1.0
    assert residuals(cp.Problem(cp.Minimize(cp.power(x, 4.0)), [x <= -1]), None).natural < 1e-12
    assert residuals(cp.Problem(cp.Minimize(cp.power(x, 4)), [x <= -1]), None).primal == 0.0


# Problems within problems, and things that occur twice


def test_indicators_and_inner_problems_are_written_out() -> None:
    x, y = cp.Variable(name="x"), cp.Variable(name="y")
    inside = cp.Problem(cp.Minimize(cp.square(x) + indicator([x >= 1])))
    assert set(judged(Known(inside, value=1.0))["verdict"]) == {"agrees"}
    best = partial_optimize(cp.Problem(cp.Minimize(cp.square(x - y) + y), [y >= 1]), [y])
    nested = cp.Problem(cp.Minimize(best + x))
    assert set(judged(Known(nested, value=1.75))["verdict"]) == {"agrees"}


def test_weights_of_a_power_cone_that_miss_their_sum_by_rounding_are_taken() -> None:
    x = cp.Variable(3, name="x")
    cone = cp.PowConeND(x[:2], x[2], np.array([0.3, 0.7 + 1e-8]))
    table = judged(Known(cp.Problem(cp.Maximize(x[2]), [cone, x[0] + x[1] <= 1]), value=0.3**0.3 * 0.7**0.7), "SCS")
    assert table.loc["SCS", "verdict"] == "agrees"


def test_one_constraint_object_may_stand_in_a_problem_twice() -> None:
    x = cp.Variable(name="x")
    row = x >= 1
    assert set(judged(Known(cp.Problem(cp.Minimize(x), [row, row]), value=1.0))["verdict"]) == {"agrees"}


def test_solvers_print_nothing_and_warn_of_nothing(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    x, labels, features = cp.Variable(2, name="x"), np.array([1.0, -1.0]), np.array([[1.0, 2.0], [-1.0, 1.0]])
    hinge = cp.sum(cp.pos(1 - cp.multiply(labels, features @ x)))  # cvxpy bounds it by 0 * inf
    crosscheck(cp.Problem(cp.Minimize(hinge + cp.sum_squares(x))), ["HIGHS", "OSQP"])
    crosscheck(cp.Problem(cp.Minimize(cp.sum(x) - cp.geo_mean(x))), ["CLARABEL"])  # ends a hair outside its domain
    assert capfd.readouterr().out == ""
    assert [str(warning.message) for warning in recwarn] == []


def test_the_truth_of_an_endless_problem_is_no_rounding() -> None:
    # One column and one row: a coefficient of -6e-16 there would be a limit at 3e15, and the truth another.
    judged(endless(np.random.default_rng([4271, 128])), "CLARABEL", "HIGHS")


def test_a_problem_without_variables_is_solved_all_the_same() -> None:
    assert set(judged(Known(cp.Problem(cp.Maximize(2)), value=2.0), "CLARABEL", "HIGHS")["verdict"]) == {"agrees"}
    empty = cp.Problem(cp.Minimize(2), [cp.Constant(3) <= 2])
    assert set(judged(Known(empty, "infeasible"), "CLARABEL", "SCS")["verdict"]) == {"agrees"}
    assert residuals(empty, None).primal == 1.0


def test_an_approximate_cone_of_relative_entropies_is_judged_as_the_cones_that_make_it_up() -> None:
    x, y, z = (cp.Variable(name=name) for name in "xyz")
    problem = cp.Problem(cp.Minimize(z), [cp.constraints.RelEntrConeQuad(x, y, z, 3, 3), x == 1.5, y == 1])
    assert set(judged(Known(problem, value=1.5 * np.log(1.5)), "CLARABEL", "ECOS")["verdict"]) == {"agrees"}


# Points that hardly any multiplier, and whole numbers that hardly any row holds


@pytest.mark.parametrize(("seed", "radius"), [(2, 0.2), pytest.param(6, 20.0, marks=pytest.mark.slow)])
def test_the_only_feasible_point_is_not_wrong_beside_points_that_miss_it_by_rounding(seed: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    x, normal, cost = cp.Variable(3, name="x"), rng.normal(size=3), rng.normal(size=3)
    normal /= np.linalg.norm(normal)
    problem = cp.Problem(cp.Minimize(cost @ x), [cp.norm(x) <= radius, normal @ x >= radius])
    truth = radius * normal
    points = {"truth": {x: truth}, "outside": {x: truth - 0.1 * radius}}
    judged(Known(problem, value=float(cost @ truth), unit=max(1.0, radius), far=1e-2, answers=points), "ECOS")


@pytest.mark.parametrize("size", [1e6, *(pytest.param(size, marks=pytest.mark.slow) for size in (1e2, 1e4))])
def test_a_whole_number_that_is_nearly_zero_hides_no_miss_behind_a_large_coefficient(size: float) -> None:
    b, x = cp.Variable(name="b", boolean=True), cp.Variable(name="x", nonneg=True)
    problem = cp.Problem(cp.Maximize(x - 3 * b), [x <= 1, x <= size * b])
    trickle = {b: np.array(min(1.0 / size, 1e-6)), x: np.array(min(1.0, 1e-6 * size))}
    points = {"truth": {b: np.array(0.0), x: np.array(0.0)}, "trickle": trickle}
    table = judged(Known(problem, value=0.0, answers=points), "HIGHS")
    assert table.loc["truth", "verdict"] == "agrees"


# Terms that cancel

STEEP_AND_FLAT = 0.5 * np.array([[1e4 + 1, 1e4 - 1], [1e4 - 1, 1e4 + 1]])  # curvatures 1e4 along (1, 1), 1 across


def cancelling(form: str, P: np.ndarray, centre: np.ndarray) -> tuple[cp.Problem, cp.Variable, float]:
    """Return a problem whose terms cancel to an optimum of 0 at the centre, its variable, and the size of the terms."""
    x = cp.Variable(centre.size, name="x")
    root = np.linalg.cholesky(P).T
    terms = float(0.5 * centre @ P @ centre)
    if form == "squares":
        return cp.Problem(cp.Minimize(0.5 * cp.sum_squares(root @ x - root @ centre))), x, terms
    value = 0.5 * cp.quad_form(x, P) - (P @ centre) @ x + terms
    if form == "objective":
        return cp.Problem(cp.Minimize(value)), x, terms
    t = cp.Variable(name="t")
    return cp.Problem(cp.Minimize(t), [value <= t]), x, terms


@pytest.mark.parametrize(("off", "verdict"), [(0.01, "loose"), (0.1, "loose"), (30.0, "WRONG")])
@pytest.mark.parametrize("form", ["objective", "constraint"])
def test_a_distance_from_stationary_is_relative_to_the_terms_of_a_gradient(form: str, off: float, verdict: str) -> None:
    problem, *_ = cancelling(form, STEEP_AND_FLAT, np.ones(2))
    values = {"x": 1 + off * np.array([1.0, -1.0]), "t": off**2}  # the gradient is off, its terms are 1e4
    given = {one.name(): values[one.name()] for one in problem.variables()}
    exact = {one.name(): {"x": np.ones(2), "t": 0.0}[one.name()] for one in problem.variables()}
    check = crosscheck(problem, ["CLARABEL"], answers={"given": Stored(given, asked=1e-9)}, reference=exact)
    assert check.verdicts["given"].verdict == verdict


@pytest.mark.parametrize(("above", "verdict"), [(0.0, "loose"), (1e3, "WRONG")])
def test_a_reference_whose_value_rounding_in_a_row_of_large_terms_has_bought_makes_no_point_wrong(
    above: float, verdict: str
) -> None:
    problem, x, terms = cancelling("constraint", STEEP_AND_FLAT, np.full(2, 30.0))
    for one in problem.variables():
        one.value = 0.0 if one is not x else np.full(2, 30.0)
    found = residuals(problem, duals=None)
    assert 2.0 * terms <= found.bought <= 6.0 * terms  # the multiplier is 1: x'Px/2, q'x and r, t and their slopes
    measures = Measures(displacement=0.0, drift=0.0, bought=found.bought)
    answer = Answer("ECOS", "optimal", 1e-9, values={"x": x.value}, objective=above, measures=measures)
    context = Context(reference=-1e-9 * terms)  # 9e-3 below the optimum, for a violation of 1e-9 of its row
    assert judge(answer, context, Tolerances()).verdict == verdict


@pytest.mark.parametrize("form", ["objective", "squares", "constraint"])
@pytest.mark.parametrize("seed", [13, 43, *(pytest.param(one, marks=pytest.mark.slow) for one in range(8))])
def test_no_right_answer_is_wrong_where_random_terms_cancel(seed: int, form: str) -> None:
    rng = np.random.default_rng([268, seed])
    n = int(rng.integers(2, 7))
    turn = np.linalg.qr(rng.normal(size=(n, n)))[0]
    P = turn @ np.diag(10.0 ** rng.uniform(-2, 4, n)) @ turn.T
    problem, _, terms = cancelling(form, (P + P.T) / 2, rng.normal(size=n) * 10.0 ** rng.uniform(-1, 2))
    table = crosscheck(problem).table
    right = table[(table["status"] == "optimal") & (table["objective"].abs() <= 1e-7 * max(1.0, terms))]
    assert "WRONG" not in set(right["verdict"]), str(right[["solver", "objective", "reason"]])
