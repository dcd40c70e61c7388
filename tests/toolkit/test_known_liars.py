"""Known liars, each small: what the tools said, what is true, and that a cross-check names it on every machine.

A lie depends on the solver's version and on the processor. What was said once is stored, and judged here without
asking anybody again.
"""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.certify import Stored
from cvxpriv.certify.check import crosscheck
from cvxpriv.certify.corpus.liars import LIARS, softmin
from cvxpriv.certify.formulations import compare_formulations
from cvxpriv.errors import DataError, ModelError
from cvxpriv.kkt import residuals

CLARABEL_DEFAULT = {"tol_gap_abs": 1e-8, "tol_gap_rel": 1e-8, "tol_feas": 1e-8}
FALSE_OPTIMUM = LIARS[0]


@pytest.mark.parametrize("liar", LIARS, ids=lambda liar: liar.name)
def test_a_stored_lie_is_named_and_the_truth_beside_it_is_not(liar: object) -> None:
    assert isinstance(liar, type(FALSE_OPTIMUM))
    known = liar.build()
    claims = {name: dict(values) for name, values in known.answers.items()}
    check = crosscheck(known.problem, ["CLARABEL"], answers={"liar": liar.stored, **claims})
    assert check.verdicts["liar"].verdict in liar.verdicts, str(check)
    assert liar.stored.solver
    assert liar.stored.version
    assert liar.stored.machine
    if "truth" in claims:
        assert check.verdicts["truth"].verdict == "agrees"


def test_fact_1_a_false_optimum_with_tiny_residuals_is_wrong_for_its_dual_cone() -> None:
    known = FALSE_OPTIMUM.build()
    truth = known.answers["truth"]
    check = crosscheck(
        known.problem, ["CLARABEL", "ECOS"], answers={"stored": FALSE_OPTIMUM.stored}, reference=dict(truth)
    )
    rows = check.table.set_index("solver")
    assert rows.loc["stored", "status"] == "optimal"
    assert rows.loc["stored", ["primal", "cone", "dual", "complementarity", "duality_gap"]].max() < 1e-11
    assert rows.loc["stored", ["verdict", "known_by"]].tolist() == ["WRONG", "residuals"]
    assert "its dual lies outside the dual cone" in rows.loc["stored", "reason"]
    assert rows.loc["stored", "natural"] == pytest.approx(np.exp(-10.5), rel=1e-3)
    assert rows.loc["stored", "stationarity"] > 20
    assert set(rows.loc[["CLARABEL", "ECOS"], "verdict"]) == {"agrees"}
    assert check.worst_offender.startswith("stored WRONG: problem: claims optimal to 1e-12, but its dual")


def test_three_equal_lies_do_not_outvote_one_truth() -> None:
    known = FALSE_OPTIMUM.build()
    lies = dict.fromkeys(("first", "second", "third"), FALSE_OPTIMUM.stored)
    check = crosscheck(known.problem, ["CLARABEL"], answers=lies)
    assert {name: check.verdicts[name].verdict for name in lies} == dict.fromkeys(lies, "WRONG")
    assert check.verdicts["CLARABEL"].verdict == "agrees"
    assert check.references["problem"].startswith("CLARABEL: ")


def test_three_equal_claims_that_there_is_no_solution_do_not_outvote_a_point() -> None:
    known = FALSE_OPTIMUM.build()
    lies = dict.fromkeys(("first", "second", "third"), Stored(None, status="infeasible", solver="SCS"))
    check = crosscheck(known.problem, ["CLARABEL"], answers=lies)
    assert {name: check.verdicts[name].verdict for name in lies} == dict.fromkeys(lies, "WRONG")
    assert check.verdicts["CLARABEL"].verdict == "agrees"


def test_three_equal_lies_are_no_reference_for_each_other() -> None:
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x)), [cp.sum(x) == 1])
    lie = Stored({"x": [0.3, 0.7]}, asked=1e-8, solver="OSQP")
    check = crosscheck(problem, ["CLARABEL"], answers=dict.fromkeys(("first", "second", "third"), lie))
    assert {check.verdicts[name].verdict for name in ("first", "second", "third")} == {"WRONG"}
    assert check.verdicts["CLARABEL"].known_by == "certified"


def test_a_stored_answer_must_say_whose_it_is_and_fit_the_problem() -> None:
    known = FALSE_OPTIMUM.build()
    wrong: list[tuple[Stored, type[Exception], str]] = [
        (Stored(None), ModelError, "stored as optimal without values: give one for each variable"),
        (replace(FALSE_OPTIMUM.stored, solver=""), ModelError, "name the solver that it was made for"),
        (replace(FALSE_OPTIMUM.stored, cone=([1.0], None)), DataError, r"needs \(4,\): it belongs to another problem"),
        (replace(FALSE_OPTIMUM.stored, values={"y": 1.0}), ModelError, "no variable of problem"),
    ]
    for stored, error, message in wrong:
        with pytest.raises(error, match=message):
            crosscheck(known.problem, ["CLARABEL"], answers={"mine": stored})


def test_fact_1_without_the_redundant_row_the_same_solver_is_right() -> None:
    known = softmin(np.array([0.0, 10.5]))
    tight = {"eps_abs": 1e-12, "eps_rel": 1e-12, "max_iters": 100_000}
    check = crosscheck(known.problem, ["SCS"], options={"SCS": tight}, reference=dict(known.answers["truth"]))
    assert check.verdicts["SCS"].verdict == "agrees"


def test_fact_2_minimisers_are_looser_than_values() -> None:
    liar = next(one for one in LIARS if one.name == "a minimiser that is looser than its value")
    known = liar.build()
    tight = {"abstol": 1e-13, "reltol": 1e-13, "feastol": 1e-13}
    check = crosscheck(
        known.problem,
        ["ECOS"],
        options={"ECOS": tight},
        answers={"stored": liar.stored},
        reference=dict(known.answers["truth"]),
    )
    rows = check.table.set_index("solver")
    assert rows.loc["stored", "distance"] > 1e-5
    assert rows.loc["stored", "gap"] < 1e-7
    assert rows.loc["stored", "verdict"] == "loose"
    assert "from stationary" in rows.loc["stored", "reason"]
    assert rows.loc["ECOS", "verdict"] == "agrees"
    assert rows.loc["ECOS", "distance"] < 1e-10


def test_fact_2_the_accurate_reference_is_closer_than_any_default_answer() -> None:
    known = softmin(6 * np.random.default_rng(21).random(3))
    problem, truth = known.problem, dict(known.answers["truth"])
    check = crosscheck(problem, ["CLARABEL"], options={"CLARABEL": CLARABEL_DEFAULT}, reference="accurate")
    assert check.references["problem"].startswith("accurate: ECOS")
    best = crosscheck(problem, ["CLARABEL"], options={"CLARABEL": CLARABEL_DEFAULT}, reference=truth)
    # The distance to the accurate reference is the distance to the truth: the reference itself is 1e-10 away.
    assert check.table["distance"][0] == pytest.approx(best.table["distance"][0], abs=1e-9)


def test_fact_3_options_of_earlier_solves_do_not_reach_a_cross_check() -> None:
    known = softmin(np.arange(5.0))
    known.problem.solve(solver="CLARABEL", tol_gap_abs=1e-2, tol_gap_rel=1e-2, tol_feas=1e-2)
    check = crosscheck(known.problem, ["CLARABEL"], reference=dict(known.answers["truth"]))
    assert check.table["distance"][0] < 1e-5
    assert check.verdicts["CLARABEL"].verdict == "agrees"


def test_fact_5_a_problem_that_a_solver_has_touched_is_still_checked_in_another_process() -> None:
    known = softmin(np.arange(3.0))
    known.problem.solve(solver="CLARABEL")
    check = crosscheck(known.problem, ["CLARABEL"], isolate=True, time_limit=60)
    assert check.verdicts["CLARABEL"].verdict == "agrees"


def test_fact_6_an_atom_that_cannot_be_evaluated_at_the_point_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("y is too small")

    monkeypatch.setattr(cp.log_sum_exp, "numeric", refuse)
    y = cp.Variable(2, name="y")
    problem = cp.Problem(cp.Minimize(cp.log_sum_exp(y)), [y == np.array([0.0, -30.0])])  # the value is 1e-13
    check = crosscheck(problem, ["CLARABEL", "ECOS"])
    assert set(check.table["verdict"]) == {"loose"}
    assert check.table["reason"].str.contains("its objective cannot be evaluated at its point").all()
    assert check.table["objective"].abs().max() < 1e-7


def test_fact_11_kl_div_and_rel_entr_are_not_the_same_problem() -> None:
    q, p = cp.Variable(2, name="q"), np.array([0.4, 1.6])
    found = compare_formulations(
        {
            "kl_div": cp.Problem(cp.Minimize(cp.sum(cp.kl_div(q, p))), [cp.sum(q) == 1]),
            "rel_entr": cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(q, p))), [cp.sum(q) == 1]),
        },
        ["CLARABEL", "ECOS"],
        reference=-np.log(2.0),  # of rel_entr, at q = p / 2
    )
    verdicts = found.table.groupby("formulation")["verdict"].agg(set)
    assert verdicts["rel_entr"] == {"agrees"}
    assert verdicts["kl_div"] == {"WRONG"}
    wrong = found.table[found.table["formulation"] == "kl_div"]
    assert wrong["value"].to_numpy() == pytest.approx(1 - np.log(2.0), abs=1e-6)  # sum(p) - sum(q) = 1 more
    assert wrong["reason"].str.contains("it is not the same problem").all()


def test_optimal_with_an_infinite_value_is_wrong_and_named() -> None:
    liar = next(one for one in LIARS if one.name == "optimal where the objective is infinite")
    check = crosscheck(liar.build().problem, ["ECOS"], answers={"stored": liar.stored})
    assert check.verdicts["stored"].verdict == "WRONG"
    assert check.verdicts["stored"].reason.endswith("claims optimal at a point where the objective is inf")


def test_a_point_a_hair_outside_the_domain_is_judged_inside() -> None:
    known = softmin(np.array([0.0, 500.0]))
    stored = Stored({"x": [0.999999999813517, -1.0163619988114539e-10]}, asked=1e-8, solver="CLARABEL")
    truth = {"x": np.array([1.0, 1e-217])}
    check = crosscheck(known.problem, ["CLARABEL"], answers={"stored": stored}, reference=truth)
    row = check.table.set_index("solver").loc["stored"]
    assert row["objective"] == pytest.approx(0.0, abs=1e-7)
    assert 0.0 < row["moved"] < 1e-8
    assert row["verdict"] == "agrees"


def test_a_claim_at_the_boundary_of_a_logarithm_is_moved_inside_and_still_wrong() -> None:
    x = cp.Variable(name="x")
    check = crosscheck(cp.Problem(cp.Minimize(-cp.log(x)), [x <= 1]), ["ECOS"], answers={"zero": {"x": 0.0}})
    assert check.verdicts["zero"].verdict == "WRONG"
    assert "from stationary" in check.verdicts["zero"].reason


def test_the_residuals_that_name_the_liar_are_those_of_the_toolkit() -> None:
    problem = FALSE_OPTIMUM.build().problem
    problem.variables()[0].value = np.array([1.0, 1e-17])
    assert residuals(problem, None).natural == pytest.approx(np.exp(-10.5), rel=1e-2)


def test_a_problem_that_cvxpy_compiles_wrongly_is_wrong_and_the_solver_is_not_blamed() -> None:
    # A hinge loss. cvxpy 1.9.3 bounds labels * (A @ x) by 0 * inf = NaN, taken for 0, and hands HiGHS, the one solver
    # that is given bounds of variables, the hinge with both bounds at 1.
    x, labels, features = cp.Variable(2, name="x"), np.array([1.0, -1.0]), np.array([[1.0, 2.0], [-1.0, 1.0]])
    hinge = cp.sum(cp.pos(1 - cp.multiply(labels, features @ x)))
    problem = cp.Problem(cp.Minimize(hinge + cp.sum_squares(x - np.array([-3.0, 1.0]))))
    x.value = np.array([-2.0, 1.5])  # cvxpy itself refuses to compile with a value beyond its false bounds
    found = crosscheck(problem, ["CLARABEL", "HIGHS"])
    alone = crosscheck(problem, ["HIGHS"]).verdicts["HIGHS"]
    rows = found.table.set_index("solver")
    assert rows.loc["CLARABEL", "objective"] == pytest.approx(5.75, rel=1e-8)  # at x = (-2, 1.5)
    assert rows.loc["CLARABEL", "verdict"] == "agrees"  # no bound of HiGHS's program refutes it
    # A cvxpy that is mended gives HiGHS the problem itself; one that is not is named.
    right = abs(rows.loc["HIGHS", "objective"] - 5.75) < 1e-5
    blame = "it solved what cvxpy gave it, with bounds or an approximation of cvxpy's own"
    assert alone.verdict == rows.loc["HIGHS", "verdict"] == ("agrees" if right else "WRONG")
    assert (blame in rows.loc["HIGHS", "reason"]) is not right


def test_a_certificate_of_a_wrongly_compiled_problem_proves_nothing() -> None:
    # Both hinges are at most 1/2 at x = (1/2, 0), which is optimal. HiGHS is told that they are 1, and finds it empty.
    x, labels, features = cp.Variable(2, name="x"), np.array([1.0, -1.0]), np.array([[1.0, 2.0], [-1.0, 1.0]])
    hinge = cp.pos(1 - cp.multiply(labels, features @ x))
    found = crosscheck(cp.Problem(cp.Minimize(cp.sum_squares(x)), [hinge <= 0.5]), ["CLARABEL", "HIGHS"])
    assert found.verdicts["CLARABEL"].verdict == "agrees"
    if found.table["status"].tolist() == ["optimal", "infeasible"]:
        assert found.verdicts["HIGHS"].verdict == "WRONG"
