"""Verdicts: each piece of evidence alone turns a verdict, and contradictions are settled by proofs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest

from cvxpriv.certify.answers import Answer
from cvxpriv.certify.contradictions import settle
from cvxpriv.certify.proofs import Growth, Proofs
from cvxpriv.certify.verdicts import Evidence, Tolerances, Verdict, judge, judge_claim, worst_of
from cvxpriv.kkt.conic.residuals import CONDITIONS, Certificate, ConeResiduals

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
        ({"displacement": 0.1, "tightest": 1.0}, "loose", "its point is 1.0e-01 (relative) from stationary"),
        ({"displacement": 0.1, "bound": 1.0, "missed": (1e-5, "rows")}, "WRONG", "from stationary"),
        ({"displacement": np.nan, "unmeasured": "why"}, "loose", "from stationary is not known: why"),
        ({"displacement": np.nan, "bound": 1.0}, "agrees", "and a certified bound is 0e+00 from its value"),
        ({"displacement": np.nan, "reference": 1.1}, "WRONG", "off the reference"),
        ({"residuals": cone("dual_cone", 1e-4), "bound": 1.0}, "loose", "its dual lies outside the dual cone"),
        ({"residuals": cone("dual_cone", 1e-4), "tightest": 1.0}, "WRONG", "its dual lies outside the dual cone"),
        ({"residuals": cone("primal", 1e-4), "bound": 1.0}, "WRONG", "its point misses the constraints"),
        ({"displacement": 1e-4}, "loose", "its point is 1.0e-04 (relative) from stationary"),
        ({"missed": (0.1, "rows")}, "WRONG", "its point misses constraint 'rows' by 1.0e-01"),
        ({"missed": (1e-5, "rows")}, "loose", "its point misses constraint 'rows' by 1.0e-05"),
        ({"reference": 1.1}, "WRONG", "its value is 9.1e-02 (relative) off the reference"),
        ({"reference": 1.00001}, "loose", "its value is 1.0e-05 (relative) off the reference"),
        ({"objective": np.inf}, "WRONG", "claims optimal at a point where the objective is inf"),
        ({"objective": np.nan, "status": "optimal_inaccurate"}, "failed", "at a point where the objective is nan"),
        ({"status": "optimal_inaccurate"}, "loose", "does not claim to be accurate"),
        ({"status": "optimal_inaccurate", "reference": 1.00001}, "loose", "off the reference"),
        ({"status": "optimal_inaccurate", "reference": 1.1}, "failed", "and has none: its value is"),
        ({"status": "optimal_inaccurate", "residuals": cone("dual", 1e-3)}, "failed", "claims no accuracy, and"),
        ({"status": "optimal_inaccurate", "residuals": cone("dual", 1e-3), "tightest": 1.0}, "loose", "its multi"),
        ({"objective": 2e-9, "reference": 1e-9, "unit": 1e-9}, "loose", "relative to the objective's own size"),
        ({"objective": 2e-9, "reference": 1e-9}, "agrees", "every exact residual"),
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
        ({"displacement": 5e-6}, "agrees", "WRONG"),  # minimisers are looser than values, whoever found them
        ({"displacement": 2e-5}, "loose", "WRONG"),
        ({"displacement": 1e-2}, "WRONG", "WRONG"),
        ({"displacement": 1e-2, "tightest": 1.0}, "loose", "loose"),  # proven, in variables that hardly weigh
        ({"displacement": 1e-2, "tightest": 1.0 - 1e-7}, "loose", "WRONG"),  # proven, but to too few digits
        ({"displacement": 1e-2, "tightest": 0.9}, "WRONG", "WRONG"),
        ({"displacement": 1e-2, "tightest": 1.0, "missed": (1e-3, "rows")}, "WRONG", "WRONG"),
        ({"displacement": np.nan, "unmeasured": "no"}, "loose", "loose"),
        ({"displacement": np.nan, "unmeasured": "no", "tightest": 1.0}, "agrees", "agrees"),
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


@dataclass
class Found:
    """Proofs of a case as a test says they are."""

    infeasible: Certificate | None = None
    ray: Certificate | None = None
    roomy: bool = False
    values: tuple[float, ...] = ()

    def growth(self, size: float) -> Growth:
        return Growth(tuple(10.0**k * size for k, _ in enumerate(self.values)), self.values)


def settled(*answers: Answer, maximise: bool = False, found: Found | None = None) -> list[str]:
    alone = [judge(answer.evidence(float("nan")), TOLERANCES) for answer in answers]
    proofs = cast(Proofs, found or Found())
    return [verdict.verdict for verdict in settle(answers, alone, maximise, TOLERANCES, proofs)]


def test_a_value_beyond_a_certified_bound_is_wrong() -> None:
    assert settled(solved("A", 0.9), solved("B", 1.0, bound=0.9999999)) == ["WRONG", "agrees"]
    assert settled(solved("A", 1.1), solved("B", 1.0, bound=1.0), maximise=True) == ["WRONG", "agrees"]
    assert settled(solved("A", 1.1), solved("B", 1.0, bound=1.0)) == ["agrees", "agrees"]
    assert settled(solved("A", 1 - 1e-5), solved("B", 1.0, bound=1.0)) == ["loose", "agrees"]
    inaccurate = replace(solved("A", 0.9), status="optimal_inaccurate")
    assert settled(inaccurate, solved("B", 1.0, bound=1.0)) == ["failed", "agrees"]


def test_a_feasible_point_beyond_the_radius_refutes_a_claim_of_infeasibility() -> None:
    weak = claims("B", "infeasible", proof(radius=1.0))
    assert settled(solved("A", reach=2.0), weak, found=Found(roomy=True)) == ["agrees", "WRONG"]
    assert settled(solved("A", reach=2.0), weak) == ["agrees", "failed"]  # nearly feasible: neither is proven


def test_an_exact_certificate_of_infeasibility_makes_a_nearly_feasible_point_loose() -> None:
    strong = claims("B", "infeasible", proof(radius=np.inf))
    assert settled(solved("A", reach=2.0), strong) == ["loose", "agrees"]


def test_a_claim_without_certificate_is_true_if_anybody_proves_it() -> None:
    for status, found in (
        ("infeasible", Found(infeasible=proof())),
        ("unbounded", Found(ray=proof("unbounded"))),
        ("infeasible_or_unbounded", Found(infeasible=proof())),
        ("infeasible_or_unbounded", Found(ray=proof("unbounded"))),
    ):
        bare = claims("B", status)
        assert settled(bare) == ["failed"], status
        assert settled(bare, found=found) == ["agrees"], status
    for status in ("infeasible", "unbounded"):
        assert settled(claims("A", status, proof(status)), claims("B", status)) == ["agrees", "agrees"]


def test_a_true_claim_with_a_certificate_that_does_not_hold_is_loose() -> None:
    for status, found in (("infeasible", Found(infeasible=proof())), ("unbounded", Found(ray=proof("unbounded")))):
        poor = claims("B", status, proof(status, off=0.1))
        assert settled(poor) == ["failed"]
        assert settled(poor, found=found) == ["loose"]


def test_another_solver_s_point_alone_refutes_no_claim() -> None:
    for status in ("infeasible", "unbounded", "infeasible_or_unbounded"):
        for certificate in (None, proof(off=0.1)):
            assert settled(solved("A"), claims("B", status, certificate)) == ["agrees", "failed"]


def test_room_around_feasible_points_refutes_a_claim_of_infeasibility() -> None:
    bare = claims("B", "infeasible")
    assert settled(solved("A"), bare, found=Found(roomy=True)) == ["agrees", "WRONG"]
    assert settled(bare, found=Found(roomy=True)) == ["WRONG"]


def test_a_bound_and_a_point_refute_a_claim_of_either() -> None:
    assert settled(solved("A", bound=1.0), claims("B", "infeasible_or_unbounded")) == ["agrees", "WRONG"]


def test_where_values_grow_without_a_ray_the_point_is_wrong_and_the_claim_loose() -> None:
    bare = claims("B", "unbounded")
    assert settled(solved("A"), bare, found=Found(values=(0.0, -1.0, -2.0))) == ["WRONG", "loose"]
    assert settled(solved("A"), bare, maximise=True, found=Found(values=(2.0, 3.0, 4.0))) == ["WRONG", "loose"]
    inaccurate = replace(solved("A"), status="optimal_inaccurate")
    assert settled(inaccurate, bare, found=Found(values=(0.0, -1.0, -2.0))) == ["failed", "loose"]
    # The gains fall away, as those of 1/x do: the point is not best, and nothing is said for the claim.
    assert settled(solved("A"), bare, found=Found(values=(0.1, 0.01, 0.001))) == ["WRONG", "failed"]
    assert settled(solved("A"), bare, found=Found(values=(1.0, 1.0, 1.0))) == ["agrees", "failed"]
    assert settled(bare, found=Found(values=(0.0, -1.0))) == ["failed"]  # the last box could not be solved


def test_a_certified_bound_refutes_a_ray_and_a_ray_refutes_an_uncertified_optimum() -> None:
    ray = claims("B", "unbounded", proof("unbounded"))
    assert settled(solved("A", bound=0.99), ray) == ["agrees", "WRONG"]
    assert settled(solved("A"), ray) == ["WRONG", "agrees"]


def test_a_ray_of_an_infeasible_problem_is_loose() -> None:
    ray = claims("B", "unbounded", proof("unbounded"))
    assert settled(claims("A", "infeasible", proof()), ray) == ["agrees", "loose"]


def test_a_ray_of_a_problem_that_is_found_infeasible_here_is_loose() -> None:
    ray = claims("B", "unbounded", proof("unbounded"))
    assert settled(ray, found=Found(infeasible=proof())) == ["loose"]
