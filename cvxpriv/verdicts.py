"""Verdicts: what the evidence says of a solver's claim.

=======  ===============================================================================================
agrees   claims a solution, and every exact residual and the distance to the reference are within `agree`
loose    claims a solution that is right, but only to fewer digits; or does not claim to be accurate
WRONG    claims `optimal` where an exact residual is far above what the solver was asked for, or the value is
         no number, or far from the reference; or claims infeasible or unbounded without a valid certificate
failed   returned no solution
=======  ===============================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.cone_residuals import Certificate, ConeResiduals

__all__ = ["VERDICTS", "Evidence", "Tolerances", "Verdict", "judge", "worst_of"]

#: From best to worst.
VERDICTS = ("agrees", "loose", "failed", "WRONG")

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
    """Where verdicts change.

    Attributes
    ----------
    agree : float
        Relative residuals and relative distance to the reference up to which an answer agrees.
    overclaim : float
        How many times the tolerance it was asked for a residual may be before `optimal` is a false claim.
    drift : float
        How many times the square root of that tolerance the natural residual may be: an honest minimiser is as good as
        the square root of its gap.
    wrong_objective : float
        Relative distance to the reference from which `optimal` is a false claim, whatever the residuals.
    """

    agree: float = 1e-6
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


@dataclass(frozen=True)
class Evidence:
    """What is known of one solver's answer to one problem.

    Attributes
    ----------
    status : str
        The solver's own.
    asked : float
        The tolerance it was asked for.
    objective : float
        At its repaired point; NaN if it has none.
    reference : float
        The reference's objective; NaN if there is none.
    residuals : ConeResiduals, optional
        Of the cone program.
    natural : float
        Of the problem as written: how far its point is from stationary, in the units of the variables.
    certificate : Certificate, optional
        Of a claim of infeasibility or unboundedness.
    error : str
        What it raised.
    """

    status: str
    asked: float
    objective: float
    reference: float
    residuals: ConeResiduals | None = None
    natural: float = 0.0
    certificate: Certificate | None = None
    error: str = ""

    @property
    def gap(self) -> float:
        """Distance to the reference, relative to max(1, |reference|)."""
        return abs(self.objective - self.reference) / max(1.0, abs(self.reference))


def judge(evidence: Evidence, tolerances: Tolerances) -> Verdict:
    """Return the verdict on one answer."""
    if evidence.status.startswith(("infeasible", "unbounded")):
        return _judge_certificate(evidence, tolerances)
    if evidence.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) or evidence.residuals is None:
        return Verdict("failed", evidence.error or f"ended with status {evidence.status}")
    if not np.isfinite(evidence.objective):
        what = f"claims {evidence.status} at a point where the objective is {evidence.objective}"
        return Verdict("WRONG" if evidence.status == cp.OPTIMAL else "failed", what)
    largest = evidence.residuals.largest
    where = f"by {largest:.1e} (relative) at {evidence.residuals.worst_block}"
    what = f"{_CONDITIONS[evidence.residuals.worst]} {where}"
    claims = evidence.status == cp.OPTIMAL
    if claims and largest > max(tolerances.overclaim * evidence.asked, tolerances.agree):
        return Verdict("WRONG", f"claims optimal to {evidence.asked:.0e}, but {what}")
    if claims and evidence.natural > tolerances.drift * np.sqrt(evidence.asked) + tolerances.agree:
        return Verdict(
            "WRONG", f"claims optimal to {evidence.asked:.0e}, but its point is {evidence.natural:.1e} from stationary"
        )
    known = np.isfinite(evidence.reference)
    if claims and known and evidence.gap > max(tolerances.wrong_objective, tolerances.overclaim * evidence.asked):
        return Verdict("WRONG", f"claims optimal, but its value is {evidence.gap:.1e} (relative) off the reference")
    if largest > tolerances.agree:
        return Verdict("loose", what)
    if known and evidence.gap > tolerances.agree:
        return Verdict("loose", f"its value is {evidence.gap:.1e} (relative) off the reference")
    if not claims:
        return Verdict("loose", "does not claim to be accurate, though every residual is within tolerance")
    return Verdict("agrees", f"every exact residual is at most {max(largest, 1e-16):.0e}")


def _judge_certificate(evidence: Evidence, tolerances: Tolerances) -> Verdict:
    certificate = evidence.certificate
    if certificate is None:
        return Verdict("failed", f"claims {evidence.status} and returns no certificate")
    if certificate.holds(max(tolerances.agree, tolerances.overclaim * evidence.asked)):
        return Verdict("agrees", f"{evidence.status}: its certificate holds")
    off = max(certificate.equation, certificate.membership)
    return Verdict("WRONG", f"claims {evidence.status}, but its certificate is off by {off:.1e}")


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of several verdicts; the first of equals."""
    return max(verdicts, key=lambda verdict: verdict.rank)
