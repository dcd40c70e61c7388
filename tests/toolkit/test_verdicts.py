"""Verdicts: each piece of evidence alone turns a verdict, and contradictions are settled by proofs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest

from cvxpriv.certify.answers import ROUNDED, Answer, Context
from cvxpriv.certify.contradictions import settle
from cvxpriv.certify.proofs import Growth, Proofs
from cvxpriv.certify.verdicts import CERTIFIED, SMALL, Tolerances, Verdict, judge, judge_claim
from cvxpriv.certify.yardstick import Measures
from cvxpriv.kkt.conic.certificates import Certificate
from cvxpriv.kkt.conic.program import CONDITIONS, ConeResiduals
from cvxpriv.numerics.arrays import Values

TOLERANCES = Tolerances()
POINT = {"x": np.ones(1)}


def cone(worst: str = "gap", size: float = 1e-9) -> ConeResiduals:
    relative = dict.fromkeys(CONDITIONS, 1e-12) | {worst: size}
    figures = dict.fromkeys(CONDITIONS, 0.0)
    return ConeResiduals(figures, relative, relative, 1.0, worst, "exp[1]")


def seen(**changes: Any) -> tuple[Answer, Context]:
    """An answer without fault and what it is held against, but for some figures."""
    known = {name: changes.pop(name) for name in ("reference", "tightest", "unit") if name in changes}
    own = {
        name: changes.pop(name)
        for name in ("displacement", "missed", "unmeasured", "terms", "bought", "own", "gap", "slope")
        if name in changes
    }
    measures = replace(Measures(displacement=0.0), **own)
    answer = Answer("S", "optimal", 1e-8, POINT, 1.0, cone=cone(), measures=measures)
    return replace(answer, **changes), Context(**{"reference": 1.0, **known})


def proof(kind: str = "infeasible", off: float = 1e-9, radius: float = np.inf, exact: bool = True) -> Certificate:
    return Certificate(kind, off, 0.0, radius, True, exact)


def test_an_answer_without_fault_agrees() -> None:
    assert judge(*seen(), TOLERANCES) == Verdict("agrees", "every exact residual is at most 1e-09", SMALL)


def test_a_bound_and_feasibility_certify_and_small_residuals_do_not() -> None:
    assert judge(*seen(bound=1.0), TOLERANCES).known_by == CERTIFIED
    assert judge(*seen(bound=1.0), TOLERANCES).reason.endswith("and a certified bound is 0e+00 from its value")
    assert judge(*seen(bound=0.999), TOLERANCES).known_by == SMALL
    assert judge(*seen(bound=1.0, missed=(1e-5, "rows")), TOLERANCES).known_by == SMALL
    # Near in absolute terms, but not in the units of an objective whose coefficients are tiny.
    tiny = {"objective": 2e-9, "reference": 2e-9, "bound": 1e-9, "unit": 1e-9}
    assert judge(*seen(**tiny), TOLERANCES).known_by == SMALL


@pytest.mark.parametrize(
    ("changes", "verdict", "reason"),
    [
        ({"cone": cone("dual_cone", 1e-4)}, "WRONG", "its dual lies outside the dual cone by 1.0e-04"),
        ({"cone": cone("dual_cone", 1e-4), "asked": 1e-5}, "loose", "its dual lies outside the dual cone"),
        ({"cone": cone("cone", 1e-4)}, "WRONG", "its slack lies outside the cone"),
        ({"displacement": 0.1}, "WRONG", "its point is 1.0e-01 (relative) from stationary"),
        ({"displacement": 0.1, "bound": 1.0}, "loose", "its point is 1.0e-01 (relative) from stationary"),
        ({"displacement": 0.1, "bound": 0.9}, "WRONG", "its point is 1.0e-01 (relative) from stationary"),
        ({"displacement": 0.1, "tightest": 1.0}, "loose", "its point is 1.0e-01 (relative) from stationary"),
        ({"displacement": 0.1, "bound": 1.0, "missed": (1e-5, "rows")}, "WRONG", "from stationary"),
        ({"displacement": np.nan, "unmeasured": "why"}, "loose", "from stationary is not known: why"),
        ({"displacement": np.nan, "bound": 1.0}, "agrees", "and a certified bound is 0e+00 from its value"),
        ({"displacement": np.nan, "reference": 1.1}, "WRONG", "off the reference"),
        ({"cone": cone("dual_cone", 1e-4), "bound": 1.0}, "loose", "its dual lies outside the dual cone"),
        ({"cone": cone("dual_cone", 1e-4), "tightest": 1.0}, "loose", "its dual lies outside the dual cone"),
        ({"cone": cone("dual_cone", 1e-4), "tightest": 0.9}, "WRONG", "its dual lies outside the dual cone"),
        ({"cone": cone("cone", 1e-4), "bound": 1.0}, "WRONG", "its slack lies outside the cone"),
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
        ({"status": "optimal_inaccurate", "cone": cone("dual", 1e-3)}, "failed", "claims no accuracy, and"),
        ({"status": "optimal_inaccurate", "cone": cone("dual", 1e-3), "tightest": 1.0}, "loose", "its multi"),
        ({"objective": 2e-9, "reference": 1e-9, "unit": 1e-9}, "loose", "relative to the objective's own size"),
        ({"objective": 2e-9, "reference": 1e-9}, "agrees", "every exact residual"),
        ({"objective": 0.03, "reference": 0.0}, "WRONG", "its value is 3.0e-02 (relative) off the reference"),
        ({"objective": 0.03, "reference": 0.0, "terms": 14463.0}, "loose", "its value is 3.0e-02 (relative) off"),
        ({"reference": 1.1, "bound": 1.0}, "loose", "off the reference"),  # proven: the reference is to blame
        # Violations may have bought a value.
        ({"objective": 1.5, "reference": 1.0, "bought": 1e9}, "loose", "off the reference"),
        ({"reference": 1.1, "bought": 2e5}, "loose", "off the reference"),  # up to 1e-6 times 2e5, above 0.1
        ({"reference": 1.1, "bought": 0.5}, "WRONG", "off the reference"),
        ({"objective": 0.15, "reference": 0.1, "unit": 1e-9, "tightest": 0.1}, "WRONG", "off the reference"),
        ({"own": (1e-5, "rows")}, "loose", "its point misses constraint 'rows' by 1.0e-05 (relative), in units"),
        ({"status": "failed", "values": None, "error": "ValueError: no"}, "failed", "ValueError: no"),
        ({"status": "user_limit", "values": None}, "failed", "ended with status user_limit"),
        ({"error": "its objective cannot be evaluated"}, "loose", "its objective cannot be evaluated"),
        ({"status": "infeasible", "certificate": proof(off=0.1)}, "failed", "its certificate is off by 1.0e-01"),
        ({"status": "unbounded"}, "failed", "claims unbounded and returns no certificate"),
        ({"reference": np.nan}, "agrees", "every exact residual"),
    ],
)
def test_each_fault_alone_turns_the_verdict(changes: dict[str, Any], verdict: str, reason: str) -> None:
    found = judge(*seen(**changes), TOLERANCES)
    assert (found.verdict, reason in found.reason) == (verdict, True), found


@pytest.mark.parametrize(
    ("figure", "limits"),
    [
        # What a residual, a violation, a distance from stationary and a value off the reference may be: up to the
        # first limit the answer agrees, up to the second it is loose, beyond that its claim is WRONG. It was asked
        # for 1e-7: a false claim is 100 times that, or 30 times its root for the point; values have 1e-4 at least.
        (lambda size: {"cone": cone("dual", size)}, (1e-6, 100.0 * 1e-7)),
        (lambda size: {"missed": (size, "rows")}, (1e-6, 1e-4)),
        (lambda size: {"displacement": size}, (1e-5, 30.0 * np.sqrt(1e-7) + 1e-6)),
        (lambda size: {"objective": size, "reference": 0.0}, (1e-6, 1e-4)),
        (lambda size: {"objective": size, "reference": 0.0, "terms": 0.25}, (1e-6, 1e-4)),
    ],
)
def test_each_figure_turns_the_verdict_at_its_limit(figure: Any, limits: tuple[float, float]) -> None:
    first, second = limits
    sizes = (first, 1.0001 * first, second, 1.0001 * second)
    found = [judge(*seen(asked=1e-7, **figure(size)), TOLERANCES).verdict for size in sizes]
    assert found == ["agrees", "loose", "loose", "WRONG"]


def test_who_was_asked_for_few_digits_lies_only_a_hundred_times_beyond_them() -> None:
    off = [judge(*seen(asked=1e-5, objective=size, reference=0.0), TOLERANCES).verdict for size in (9e-4, 1.1e-3)]
    assert off == ["loose", "WRONG"]
    far = [judge(*seen(asked=1e-4, displacement=size), TOLERANCES).verdict for size in (0.3, 0.302)]
    assert far == ["loose", "WRONG"]


def test_a_value_agrees_up_to_what_the_slope_may_gain() -> None:
    for name, limit in (("gap", TOLERANCES.agree), ("slope", TOLERANCES.wrong_objective)):
        found = [judge(*seen(**{name: size}), TOLERANCES).verdict for size in (limit, 1.0001 * limit)]
        assert found == ["agrees", "loose"], name


def test_violations_may_have_bought_exactly_what_a_value_is_off() -> None:
    limit = Tolerances(agree=2.0**-10)
    assert judge(*seen(objective=1.5, bought=512.0), limit).verdict == "loose"
    assert judge(*seen(objective=1.5, bought=511.0), limit).verdict == "WRONG"


def test_a_move_into_the_domain_counts_relative_to_the_size_of_the_point() -> None:
    reasons = [judge(*seen(moved=moved), TOLERANCES) for moved in (2e-9, 2.2e-9, 1.9e-6, 2.1e-6)]  # its size is 2
    assert [found.verdict for found in reasons] == ["agrees", "agrees", "agrees", "loose"]
    assert ["into the domain" in found.reason for found in reasons] == [False, True, True, False]
    limit = Tolerances(agree=2.0**-20)
    assert judge(*seen(moved=2.0**-19), limit).verdict == "agrees"  # exactly at the limit


def test_an_answer_off_in_the_objective_s_own_units_is_loose_beyond_the_limit() -> None:
    limit, tiny = Tolerances(agree=2.0**-20), {"reference": 0.0, "unit": 2.0**-10}
    assert judge(*seen(objective=2.0**-30, **tiny), limit).verdict == "agrees"
    assert judge(*seen(objective=1.001 * 2.0**-30, **tiny), limit).verdict == "loose"


def test_a_point_far_from_stationary_is_told_where_residuals_do_not_show_it() -> None:
    told = [judge(*seen(displacement=size), TOLERANCES).reason for size in (1e-6, 1.1e-6)]
    assert ["from stationary" in reason for reason in told] == [False, True]
    hidden = judge(*seen(displacement=5e-7), TOLERANCES).reason  # above the residuals, and within what agrees
    assert "from stationary" not in hidden


def test_a_closed_form_is_proven_by_a_bound_within_1e_8_of_it() -> None:
    far = {"status": "claimed", "asked": 0.0, "cone": None, "displacement": 1e-2}
    verdicts = [
        judge_claim(*seen(tightest=1.0 - off, **far), TOLERANCES, exact=True).verdict for off in (0.9e-8, 1.1e-8)
    ]
    assert verdicts == ["loose", "WRONG"]


def test_a_claim_feasible_to_rounding_is_proven_by_a_bound_of_few_digits() -> None:
    far = {"status": "claimed", "asked": 0.0, "cone": None, "displacement": 1e-2, "tightest": 1.0 - 1e-5}
    verdicts = [
        judge_claim(*seen(missed=(miss, "rows"), **far), TOLERANCES, exact=False).verdict
        for miss in (ROUNDED, 1.0001 * ROUNDED)
    ]
    assert verdicts == ["loose", "WRONG"]


def test_a_closed_form_is_not_wrong_for_a_reference_that_is_right_to_few_digits() -> None:
    own = {"status": "claimed", "asked": 0.0, "cone": None}
    assert judge_claim(*seen(reference=1.00001, **own), TOLERANCES, exact=True).verdict == "loose"
    assert judge_claim(*seen(reference=1.001, **own), TOLERANCES, exact=True).verdict == "WRONG"
    found = judge_claim(*seen(displacement=5e-7, **own), TOLERANCES, exact=True)
    assert found.reason == "every exact residual is at most 5e-07"


def test_the_same_residual_is_honest_for_a_solver_that_was_asked_for_less() -> None:
    found = [judge(*seen(cone=cone("cone", 1e-5), asked=asked), TOLERANCES).verdict for asked in (1e-8, 1e-6)]
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
    claim = seen(status="claimed", asked=0.0, cone=None, **changes)
    assert judge_claim(*claim, TOLERANCES, exact=False).verdict == of_a_claim
    assert judge_claim(*claim, TOLERANCES, exact=True).verdict == of_a_closed_form


def test_the_worst_verdict_wins_and_of_equals_the_first() -> None:
    verdicts = [Verdict("loose", "a"), Verdict("WRONG", "b"), Verdict("failed", "c"), Verdict("WRONG", "d")]
    assert max(verdicts, key=lambda one: one.rank).reason == "b"


def solved(name: str, objective: float = 1.0, **changes: Any) -> Answer:
    return replace(seen(**changes)[0], solver=name, objective=objective)


def claims(name: str, status: str, certificate: Certificate | None = None) -> Answer:
    ray = POINT if certificate is not None and certificate.kind == "unbounded" and certificate.exact else None
    return Answer(name, status, 1e-8, certificate=certificate, ray=ray)


@dataclass
class Found:
    """Proofs of a case as a test says they are; an answer's own direction holds where it has one."""

    infeasible: Certificate | None = None
    along: bool = False
    values: tuple[float, ...] = ()
    bound: float = float("nan")
    direction: Values | None = None
    empty: bool = False
    priced: bool = True

    def inhabited(self, starts: object) -> bool:
        return not self.empty

    def ray(self, starts: object) -> bool:
        return self.along

    def endless(self, direction: object, starts: object) -> bool:
        return True

    def growth(self, size: float) -> Growth:
        return Growth(tuple(10.0**k * size for k, _ in enumerate(self.values)), self.values)


def settled(*answers: Answer, maximise: bool = False, found: Found | None = None) -> list[str]:
    context = Context()
    alone = [judge(answer, context, TOLERANCES) for answer in answers]
    proofs = cast(Proofs, found or Found())
    return [verdict.verdict for verdict in settle(answers, alone, maximise, TOLERANCES, proofs, context)]


UNKNOWN = Found(empty=True)


def test_a_feasible_point_that_is_found_here_refutes_a_claim_that_there_is_none() -> None:
    assert settled(claims("B", "infeasible")) == ["WRONG"]
    assert settled(claims("B", "infeasible"), found=UNKNOWN) == ["failed"]


def test_a_bound_that_is_found_here_refutes_an_unbounded_claim_unless_a_ray_holds() -> None:
    claim = Answer("one", "unbounded", 1e-8)
    assert settled(claim, found=Found(bound=3.0)) == ["WRONG"]
    assert settled(claim, found=Found(bound=3.0, along=True)) == ["agrees"]
    assert settled(claim, found=Found(along=True, empty=True)) == ["loose"]  # a ray from nowhere
    assert settled(claim, found=Found()) == ["failed"]


def test_an_unbounded_claim_of_an_empty_problem_is_wrong_without_a_ray() -> None:
    empty, claim = claims("one", "infeasible", proof()), Answer("two", "unbounded", 1e-8)
    assert settled(empty, claim) == ["agrees", "WRONG"]
    assert settled(empty, claim, found=Found(direction={"x": np.ones(1)})) == ["agrees", "loose"]
    assert settled(empty, replace(claim, certificate=proof(kind="unbounded"))) == ["agrees", "loose"]


def test_values_that_rise_are_no_proof_that_a_minimisation_falls_without_end() -> None:
    rising = Growth((1.0, 10.0, 100.0), (1.0, 2.0, 4.0))
    assert rising.endless(1e-6, maximise=True)
    assert not rising.endless(1e-6, maximise=False)


def test_a_claim_whose_atom_has_no_value_is_not_called_wrong() -> None:
    unmeasured = Answer("claim", "claimed", 1e-8, {"x": np.ones(1)}, error="its objective cannot be evaluated")
    assert judge_claim(unmeasured, Context(), TOLERANCES, exact=False).verdict == "failed"
    assert judge_claim(replace(unmeasured, error=""), Context(), TOLERANCES, exact=False).verdict == "WRONG"


def test_a_value_beyond_a_certified_bound_is_wrong() -> None:
    assert settled(solved("A", 0.9), solved("B", 1.0, bound=0.9999999)) == ["WRONG", "agrees"]
    assert settled(solved("A", 1.1), solved("B", 1.0, bound=1.0), maximise=True) == ["WRONG", "agrees"]
    assert settled(solved("A", 1.1), solved("B", 1.0, bound=1.0)) == ["agrees", "agrees"]
    assert settled(solved("A", 1 - 1e-5), solved("B", 1.0, bound=1.0)) == ["loose", "agrees"]
    inaccurate = replace(solved("A", 0.9), status="optimal_inaccurate")
    assert settled(inaccurate, solved("B", 1.0, bound=1.0)) == ["failed", "agrees"]


def test_a_certificate_that_is_not_exact_proves_nothing_of_points_beyond_its_radius() -> None:
    weak = claims("B", "infeasible", proof(radius=1e8, exact=False))
    assert settled(weak, found=UNKNOWN) == ["failed"]
    assert settled(solved("A"), weak, found=Found()) == ["agrees", "WRONG"]
    nearly = solved("A", missed=(1e-8, "rows"))
    assert settled(nearly, weak, found=UNKNOWN) == ["agrees", "failed"]  # nearly feasible: neither is proven
    assert settled(solved("A", missed=(1e-15, "rows"), cone=cone("gap")), weak) == ["agrees", "WRONG"]


def test_an_exact_certificate_of_infeasibility_makes_a_nearly_feasible_point_loose() -> None:
    strong = claims("B", "infeasible", proof(radius=np.inf))
    assert settled(solved("A"), strong) == ["loose", "agrees"]


def test_a_claim_without_certificate_is_true_if_anybody_proves_it() -> None:
    for status, found in (
        ("infeasible", Found(infeasible=proof())),
        ("unbounded", Found(along=True)),
        ("infeasible_or_unbounded", Found(infeasible=proof())),
        ("infeasible_or_unbounded", Found(along=True)),
    ):
        bare = claims("B", status)
        assert settled(bare, found=UNKNOWN) == ["failed"], status
        assert settled(bare, found=found) == ["agrees"], status
    for status in ("infeasible", "unbounded"):
        assert settled(claims("A", status, proof(status)), claims("B", status)) == ["agrees", "agrees"]


def test_a_true_claim_with_a_certificate_that_does_not_hold_is_loose() -> None:
    for status, found in (("infeasible", Found(infeasible=proof())), ("unbounded", Found(along=True))):
        poor = claims("B", status, proof(status, off=0.1, exact=False))
        assert settled(poor, found=UNKNOWN) == ["failed"]
        assert settled(poor, found=found) == ["loose"]


def test_another_solver_s_point_that_is_feasible_to_some_digits_refutes_no_claim() -> None:
    nearly = solved("A", missed=(1e-9, "rows"))
    for status in ("infeasible", "unbounded", "infeasible_or_unbounded"):
        for certificate in (None, proof(off=0.1, exact=False)):
            assert settled(nearly, claims("B", status, certificate), found=UNKNOWN) == ["agrees", "failed"]


def test_three_equal_lies_are_three_lies() -> None:
    lies = [solved(name, 1.5, bound=1.0, cone=cone("gap", 0.3)) for name in "ABC"]
    assert settled(*lies) == ["WRONG"] * 3
    alone = [solved(name, 1.5) for name in "ABC"]  # nothing tells that they lie, but nothing is certified either
    assert {judge(answer, Context(), TOLERANCES).known_by for answer in alone} == {SMALL}
    assert settled(*alone, solved("D", 1.0, bound=1.0), found=Found()) == ["agrees"] * 4
    context = Context(reference=1.0, tightest=1.0)  # the one that a bound proves is the reference, not the many
    assert [judge(answer, context, TOLERANCES).verdict for answer in alone] == ["WRONG"] * 3


def test_room_around_feasible_points_refutes_a_claim_of_infeasibility() -> None:
    bare = claims("B", "infeasible")
    assert settled(solved("A"), bare, found=Found()) == ["agrees", "WRONG"]
    assert settled(bare, found=Found()) == ["WRONG"]


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
    assert settled(solved("A"), bare, found=Found(values=(0.1, 0.01, 0.001), priced=False)) == ["agrees", "failed"]
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
