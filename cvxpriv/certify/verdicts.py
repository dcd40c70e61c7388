"""Verdicts: what the evidence says of a solver's claim.

=======  ===============================================================================================
agrees   claims a solution, and every exact residual and the distance to the reference are within tolerance
loose    claims a solution that is right, but only to fewer digits; or is right and does not claim to be
WRONG    claims `optimal` where an exact residual is far above what the solver was asked for, or the value is
         no number, or far from the reference; or claims infeasible or unbounded where it is proven not to be
failed   returned no solution, or one that claims no accuracy and has none; or claims that there is none where that is
         neither proven nor refuted
=======  ===============================================================================================

A feasible point with the value of a certified bound is proven optimal: it is never WRONG for standing far from
stationary, nor for the digits of the dual that proves it. Where its distance from stationary cannot be measured, that
proof makes it agree.

A solver that claims infeasible or unbounded agrees if its certificate holds. One that does not hold is WRONG here,
where an answer is judged alone. Whether the claim is true all the same, and what answers say of each other, is settled
in `cvxpriv.certify.contradictions`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.certify.evidence import Evidence

__all__ = ["VERDICTS", "Evidence", "Tolerances", "Verdict", "judge", "judge_claim", "worst_of"]

#: How near a certified bound the value of a closed form must be for its point to count as proven optimal: a point may
#: stand far from stationary in variables that hardly weigh, such as a symbol of mass 1e-12.
PROVEN_EXACT = 1e-8

#: From best to worst.
VERDICTS = ("agrees", "loose", "failed", "WRONG")

NOTICED = 1e-9
"""A move into the domain, relative, that is worth a word."""

_CONDITIONS = {
    "primal": "its point misses the constraints",
    "dual": "its multipliers do not make the Lagrangian stationary",
    "cone": "its slack lies outside the cone",
    "dual_cone": "its dual lies outside the dual cone",
    "complementarity": "slack and dual are not complementary",
    "gap": "its primal and dual values differ",
}


@dataclass(frozen=True)
class Tolerances:
    """Where verdicts change. All figures are relative.

    Attributes
    ----------
    agree : float
        Residuals and distance of the value to the reference's up to which an answer agrees.
    minimiser : float
        Distance of the point from stationary up to which an answer agrees: minimisers are looser than values.
    overclaim : float
        How many times the tolerance it was asked for a residual may be before `optimal` is a false claim.
    drift : float
        How many times the square root of that tolerance the point may be from stationary before it is one: an honest
        minimiser is as good as the square root of its gap.
    wrong_objective : float
        Distance to the reference, or violation of a constraint as written, from which `optimal` is a false claim
        whatever the other residuals. From there on, in any residual of the cone program as well, an answer that claims
        no accuracy is none.
    """

    agree: float = 1e-6
    minimiser: float = 1e-5
    overclaim: float = 100.0
    drift: float = 30.0
    wrong_objective: float = 1e-4


@dataclass(frozen=True)
class Verdict:
    """One word and one sentence."""

    verdict: str
    reason: str

    @property
    def rank(self) -> int:
        """0 for the best verdict."""
        return VERDICTS.index(self.verdict)


def judge(evidence: Evidence, tolerances: Tolerances) -> Verdict:
    """Return the verdict on a solver's answer."""
    if evidence.status.startswith(("infeasible", "unbounded")):
        return _judge_certificate(evidence, tolerances)
    if evidence.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) or evidence.residuals is None:
        return Verdict("failed", evidence.error or f"ended with status {evidence.status}")
    claims = evidence.status == cp.OPTIMAL
    allowed = max(tolerances.overclaim * evidence.asked, tolerances.agree)
    drift = max(tolerances.drift * np.sqrt(evidence.asked) + tolerances.agree, tolerances.minimiser)
    value = max(tolerances.wrong_objective, tolerances.overclaim * evidence.asked)
    if evidence.proven(tolerances.agree):
        drift = np.inf  # at worst loose
    if evidence.proves_itself(tolerances.agree):
        allowed = np.inf
    far = _findings(evidence, residual=allowed, missed=value, drift=drift, gap=value)
    if not np.isfinite(evidence.objective):
        what = f"claims {evidence.status} at a point where the objective is {evidence.objective}"
        return Verdict("WRONG" if claims else "failed", ", and ".join([what, *far[:1]]))
    if claims and far:
        given = evidence.bounded and evidence.largest <= tolerances.agree
        blame = "; it solved what cvxpy gave it, with bounds that cvxpy found and may have wrong" if given else ""
        return Verdict("WRONG", f"claims optimal to {evidence.asked:.0e}, but {' and '.join(far[:2])}{blame}")
    if not claims and (useless := _useless(evidence, value)):
        return Verdict("failed", f"claims no accuracy, and has none: {' and '.join(useless[:2])}")
    agree = tolerances.agree
    near = _findings(evidence, residual=agree, missed=agree, drift=tolerances.minimiser, gap=agree)
    if near:
        return Verdict("loose", " and ".join(near[:2]))
    if evidence.error:
        return Verdict("loose", evidence.error)
    if not claims:
        return Verdict("loose", "does not claim to be accurate, though every residual is within tolerance")
    return _within(evidence, tolerances, evidence.largest)


def _useless(evidence: Evidence, limit: float) -> list[str]:
    """Why an answer that claims no accuracy is no answer; multipliers are forgiven where the point is proven."""
    residual = np.inf if evidence.proven(limit) else limit
    return _findings(evidence, residual=residual, missed=limit, drift=np.inf, gap=limit)


def judge_claim(evidence: Evidence, tolerances: Tolerances, *, exact: bool) -> Verdict:
    """Return the verdict on an answer that no solver gave.

    Parameters
    ----------
    exact : bool
        It is a closed form: one that is only near is wrong.
    """
    if not np.isfinite(evidence.objective):
        return Verdict("WRONG", f"its objective is {evidence.objective}")
    agree, wrong = tolerances.agree, tolerances.agree if exact else tolerances.wrong_objective
    minimiser = agree if exact else tolerances.minimiser
    drift = np.inf if evidence.proven(PROVEN_EXACT if exact else agree) else max(wrong, minimiser)
    far = _findings(evidence, residual=wrong, missed=wrong, drift=drift, gap=max(wrong, tolerances.wrong_objective))
    if far:
        return Verdict("WRONG", f"{'claims to be exact' if exact else 'is claimed'}, but {' and '.join(far[:2])}")
    near = _findings(evidence, residual=agree, missed=agree, drift=minimiser, gap=agree)
    if near:
        return Verdict("loose", " and ".join(near[:2]))
    return _within(evidence, tolerances, max(np.nan_to_num(evidence.displacement), evidence.missed[0]))


def _within(evidence: Evidence, tolerances: Tolerances, residual: float) -> Verdict:
    """The verdict where nothing is above its limit: agrees, if the point is measured or its value is proven."""
    reason = f"every exact residual is at most {max(residual, 1e-16):.0e}"
    if evidence.moved > tolerances.agree:
        return Verdict("loose", f"{reason}, but its point lies {evidence.moved:.1e} (relative) outside the domain")
    if evidence.moved > NOTICED:
        reason += f" once its point is moved {evidence.moved:.0e} (relative) into the domain"
    if evidence.own_gap > tolerances.agree:
        what = f"its value is {evidence.own_gap:.1e} off the reference, relative to the objective's own size"
        return Verdict("loose", f"{what}: no coefficient of it is above {evidence.unit:.0e}")
    if np.isnan(evidence.displacement):
        if not evidence.proven(tolerances.agree):
            return Verdict("loose", f"how far its point is from stationary is not known: {evidence.unmeasured}")
        return Verdict("agrees", f"{reason}, and a certified bound is {evidence.proven_gap:.0e} from its value")
    point = f", and its point {evidence.displacement:.0e} from stationary"
    return Verdict("agrees", reason + (point if evidence.displacement > max(residual, tolerances.agree) else ""))


def _findings(evidence: Evidence, *, residual: float, missed: float, drift: float, gap: float) -> list[str]:
    """What is above these limits, the most telling first."""
    found = []
    if evidence.residuals is not None and evidence.largest > residual:
        where = f"by {evidence.largest:.1e} (relative) at {evidence.residuals.worst_block}"
        found.append(f"{_CONDITIONS[evidence.residuals.worst]} {where}")
    if evidence.missed[0] > missed:
        found.append(f"its point misses constraint {evidence.missed[1]!r} by {evidence.missed[0]:.1e} (relative)")
    if evidence.displacement > drift:
        found.append(f"its point is {evidence.displacement:.1e} (relative) from stationary")
    if np.isfinite([evidence.reference, evidence.objective]).all() and evidence.gap > gap:
        found.append(f"its value is {evidence.gap:.1e} (relative) off the reference")
    return found


def _judge_certificate(evidence: Evidence, tolerances: Tolerances) -> Verdict:
    certificate = evidence.certificate
    if certificate is None:
        return Verdict("failed", f"claims {evidence.status} and returns no certificate")
    off = max(certificate.equation, certificate.membership)
    if certificate.holds(max(tolerances.agree, tolerances.overclaim * evidence.asked)):
        return Verdict("agrees", f"{evidence.status}: its certificate holds to {max(off, 1e-16):.0e}")
    if not certificate.valid:
        return Verdict("WRONG", f"claims {evidence.status}, but its certificate has the wrong sign and proves nothing")
    return Verdict("WRONG", f"claims {evidence.status}, but its certificate is off by {off:.1e}")


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of several verdicts; the first of equals."""
    return max(verdicts, key=lambda verdict: verdict.rank)
