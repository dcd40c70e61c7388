"""Verdicts: each piece of evidence alone turns a verdict, and contradictions are settled by proofs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cvxpriv.conic.residuals import CONDITIONS, Certificate, ConeResiduals
from cvxpriv.crosschecks.answers import Answer
from cvxpriv.crosschecks.contradictions import settle
from cvxpriv.crosschecks.verdicts import Evidence, Tolerances, Verdict, judge, judge_claim, worst_of

TOLERANCES = Tolerances()


def cone(worst: str = "gap", size: float = 1e-9) -> ConeResiduals:
    relative = dict.fromkeys(CONDITIONS, 1e-12) | {worst: size}
    return ConeResiduals(*([0.0] * 6), relative=relative, objective=1.0, worst=worst, worst_block="exp[1]")


def evidence(**changes: Any) -> Evidence:
    return replace(Evidence("optimal", 1e-8, 1.0, 1.0, cone()), **changes)


def proof(kind: str = "infeasible", off: float = 1e-9, radius: float = np.inf, valid: bool = True) -> Certificate:
    return Certificate(kind, off, 0.0, radius, valid)


def test_an_answer_without_fault_agrees() -> None:
    assert judge(evidence(), TOLERANCES) == Verdict("agrees", "every exact residual is at most 1e-09")


@pytest.mark.parametrize(
    ("changes", "verdict", "reason"),
    [
        ({"residuals": cone("dual_cone", 1e-4)}, "WRONG", "its dual lies outside the dual cone by 1.0e-04"),
        ({"residuals": cone("dual_cone", 1e-4), "asked": 1e-5}, "loose", "its dual lies outside the dual cone"),
        ({"residuals": cone("primal", 1e-4)}, "WRONG", "its point misses the constraints"),
        ({"displacement": 0.1}, "WRONG", "its point is 1.0e-01 (relative) from stationary"),
        ({"displacement": 0.1, "bound": 1.0}, "loose", "its point is 1.0e-01 (relative) from stationary"),
        ({"displacement": 0.1, "bound": 0.9}, "WRONG", "its point is 1.0e-01 (relative) from stationary"),
        ({"displacement": 1e-4}, "loose", "its point is 1.0e-04 (relative) from stationary"),
        ({"missed": (0.1, "rows")}, "WRONG", "its point misses constraint 'rows' by 1.0e-01"),
        ({"missed": (1e-5, "rows")}, "loose", "its point misses constraint 'rows' by 1.0e-05"),
        ({"reference": 1.1}, "WRONG", "its value is 9.1e-02 (relative) off the reference"),
        ({"reference": 1.00001}, "loose", "its value is 1.0e-05 (relative) off the reference"),
        ({"objective": np.inf}, "WRONG", "claims optimal at a point where the objective is inf"),
        ({"objective": np.nan, "status": "optimal_inaccurate"}, "failed", "at a point where the objective is nan"),
        ({"status": "optimal_inaccurate"}, "loose", "does not claim to be accurate"),
        ({"status": "optimal_inaccurate", "reference": 1.1}, "loose", "off the reference"),
        ({"status": "failed", "residuals": None, "error": "ValueError: no"}, "failed", "ValueError: no"),
        ({"status": "user_limit", "residuals": None}, "failed", "ended with status user_limit"),
        ({"error": "its objective cannot be evaluated"}, "loose", "its objective cannot be evaluated"),
        ({"status": "infeasible", "certificate": proof()}, "agrees", "infeasible: its certificate holds to 1e-09"),
        ({"status": "infeasible", "certificate": proof(off=0.1)}, "WRONG", "its certificate is off by 1.0e-01"),
        ({"status": "infeasible", "certificate": proof(valid=False)}, "WRONG", "wrong sign and proves nothing"),
        ({"status": "unbounded"}, "failed", "claims unbounded and returns no certificate"),
        ({"reference": np.nan}, "agrees", "every exact residual"),
    ],
)
def test_each_fault_alone_turns_the_verdict(changes: dict[str, Any], verdict: str, reason: str) -> None:
    found = judge(evidence(**changes), TOLERANCES)
    assert (found.verdict, reason in found.reason) == (verdict, True), found


def test_the_same_residual_is_honest_for_a_solver_that_was_asked_for_less() -> None:
    found = [judge(evidence(residuals=cone("primal", 1e-5), asked=asked), TOLERANCES).verdict for asked in (1e-8, 1e-6)]
    assert found == ["WRONG", "loose"]


@pytest.mark.parametrize(
    ("changes", "of_a_claim", "of_a_closed_form"),
    [
        ({}, "agrees", "agrees"),
        ({"displacement": 1e-5}, "loose", "WRONG"),
        ({"displacement": 1e-2}, "WRONG", "WRONG"),
        ({"reference": 1.1}, "WRONG", "WRONG"),
        ({"objective": np.inf}, "WRONG", "WRONG"),
    ],
)
def test_a_closed_form_that_is_only_near_is_wrong(
    changes: dict[str, Any], of_a_claim: str, of_a_closed_form: str
) -> None:
    claim = evidence(status="claimed", asked=0.0, residuals=None, **changes)
    assert judge_claim(claim, TOLERANCES, exact=False).verdict == of_a_claim
    assert judge_claim(claim, TOLERANCES, exact=True).verdict == of_a_closed_form


def test_the_worst_verdict_wins_and_of_equals_the_first() -> None:
    verdicts = [Verdict("loose", "a"), Verdict("WRONG", "b"), Verdict("failed", "c"), Verdict("WRONG", "d")]
    assert worst_of(verdicts).reason == "b"


def solved(name: str, objective: float = 1.0, reach: float = 2.0, **changes: Any) -> Answer:
    return Answer(name, "optimal", 1e-8, {"x": np.ones(1)}, objective, cone=cone(), reach=reach, **changes)


def claims(name: str, status: str, certificate: Certificate | None = None) -> Answer:
    return Answer(name, status, 1e-8, certificate=certificate)


def settled(*answers: Answer, maximise: bool = False) -> list[str]:
    alone = [judge(answer.evidence(float("nan")), TOLERANCES) for answer in answers]
    return [verdict.verdict for verdict in settle(answers, alone, maximise, TOLERANCES)]


def test_a_value_beyond_a_certified_bound_is_wrong() -> None:
    assert settled(solved("A", 0.9), solved("B", 1.0, bound=0.9999999)) == ["WRONG", "agrees"]
    assert settled(solved("A", 1.1), solved("B", 1.0, bound=1.0), maximise=True) == ["WRONG", "agrees"]
    assert settled(solved("A", 1.1), solved("B", 1.0, bound=1.0)) == ["agrees", "agrees"]
    assert settled(solved("A", 1 - 1e-5), solved("B", 1.0, bound=1.0)) == ["loose", "agrees"]


def test_a_feasible_point_beyond_the_radius_refutes_a_claim_of_infeasibility() -> None:
    weak = claims("B", "infeasible", proof(radius=1.0))
    assert settled(solved("A", reach=2.0), weak) == ["agrees", "WRONG"]


def test_an_exact_certificate_of_infeasibility_makes_a_nearly_feasible_point_loose() -> None:
    strong = claims("B", "infeasible", proof(radius=np.inf))
    assert settled(solved("A", reach=2.0), strong) == ["loose", "agrees"]


def test_a_claim_without_certificate_lives_by_the_others() -> None:
    bare = claims("B", "infeasible")
    assert settled(bare) == ["failed"]
    assert settled(solved("A"), bare) == ["agrees", "WRONG"]
    assert settled(claims("A", "infeasible", proof()), bare) == ["agrees", "loose"]
    bare = claims("B", "unbounded")
    assert settled(solved("A"), bare) == ["agrees", "WRONG"]
    assert settled(claims("A", "unbounded", proof("unbounded")), bare) == ["agrees", "loose"]


def test_a_certified_bound_refutes_a_ray_and_a_ray_refutes_an_uncertified_optimum() -> None:
    ray = claims("B", "unbounded", proof("unbounded"))
    assert settled(solved("A", bound=0.99), ray) == ["agrees", "WRONG"]
    assert settled(solved("A"), ray) == ["WRONG", "agrees"]


def test_a_ray_of_an_infeasible_problem_is_loose() -> None:
    ray = claims("B", "unbounded", proof("unbounded"))
    assert settled(claims("A", "infeasible", proof()), ray) == ["agrees", "loose"]
