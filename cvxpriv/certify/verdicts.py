"""Verdicts: judgements of a solver's claim by the evidence.

=======  ===============================================================================================
agrees   claims a solution, and every exact residual and the distance to the reference are within tolerance
loose    claims a solution that is right, but only to fewer digits; or is right and does not claim to be
WRONG    claims `optimal` where an exact residual is far above what the solver was asked for, or the value is
         no number, or far from the reference; or claims infeasible or unbounded where it is proven not to be
failed   returned no solution, or one that claims no accuracy and has none; or claims that there is none where that is
         neither proven nor refuted
=======  ===============================================================================================

A feasible point with the value of a certified bound is proven optimal: it is never WRONG, neither for its distance from
stationary, nor for the multipliers that came with it, nor for its distance from the reference. Where its distance from
stationary cannot be measured, the proof makes it agree. A bound over points near an answer suffices not to be WRONG.
So does, for a point that meets every constraint, that no accurate point known is better once it does so too:
``x^(1/4)`` is 4e-4 where ``x <= 0`` is missed by 3e-14, and no multiplier is finite there.

A verdict names its evidence: `CERTIFIED` by a bound and feasibility or by a proof, which hold whatever anybody claims,
by `SMALL` residuals alone, or, where something is found against an answer, by its `RESIDUALS`. The number of solvers
that agree never counts.

Contradictions between answers are settled in `cvxpriv.certify.contradictions`.
"""

from dataclasses import asdict, dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import ROUNDED, Answer, Context
from cvxpriv.numerics.arguments import require_positive
from cvxpriv.numerics.doors import door

CERTIFIED, SMALL, RESIDUALS, PROVED = "certified", "small residuals", "residuals", "proved"

#: Largest distance to a certified bound at which the value of a closed form counts as proven optimal: a point may stand
#: far from stationary in variables that hardly weigh, such as a symbol of mass 1e-12.
PROVEN_EXACT = 1e-8

#: The verdicts from best to worst.
VERDICTS = ("agrees", "loose", "failed", "WRONG")

NOTICED = 1e-9
"""Relative size of a move into the domain from which on the reason mentions it."""

_CONDITIONS = {
    "dual": "its multipliers do not make the Lagrangian stationary",
    "cone": "its slack lies outside the cone",
    "dual_cone": "its dual lies outside the dual cone",
    "complementarity": "slack and dual are not complementary",
    "gap": "its primal and dual values differ",
}


@door
@dataclass(frozen=True)
class Tolerances:
    """The limits at which verdicts change. All figures are relative.

    Attributes
    ----------
    agree : float
        Largest residual, and distance of the value to the reference's, of an answer that agrees.
    minimiser : float
        Largest distance of the point from stationary of an answer that agrees: minimisers are looser than values.
    overclaim : float
        Multiple of the requested tolerance from which on a residual makes `optimal` a false claim.
    drift : float
        Multiple of the square root of the requested tolerance from which on the point's distance from stationary makes
        it one: an honest minimiser is as good as the square root of its gap.
    wrong_objective : float
        Distance to the reference, or violation of a constraint as written, from which on `optimal` is a false claim
        whatever the other residuals. From there on, in any residual of the cone program as well, an answer that claims
        no accuracy counts as none.
    """

    agree: float = 1e-6
    minimiser: float = 1e-5
    overclaim: float = 100.0
    drift: float = 30.0
    wrong_objective: float = 1e-4

    def __post_init__(self) -> None:
        require_positive(**asdict(self))


@dataclass(frozen=True)
class Verdict:
    """A verdict: one word, one sentence, and its evidence."""

    verdict: str
    reason: str
    known_by: str = RESIDUALS

    @property
    def rank(self) -> int:
        """Place of the verdict in `VERDICTS`, 0 for the best one."""
        return VERDICTS.index(self.verdict)


@dataclass(frozen=True)
class _Limits:
    """The figures above which something is found against an answer."""

    residual: float
    missed: float
    drift: float
    gap: float
    claimed: bool = False
    """Whether figures are as solvers claim them: relative to the objective's terms, but not below one."""
    right: bool = False
    """Whether the point is known to be right, whatever its multipliers."""


def judge(answer: Answer, context: Context, tolerances: Tolerances) -> Verdict:
    """Return the verdict on a solver's answer, alone."""
    if answer.status.startswith(("infeasible", "unbounded")):
        return _undecided(answer)
    if answer.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) or answer.values is None:
        return Verdict("failed", answer.error or f"ended with status {answer.status}")
    claims = answer.status == cp.OPTIMAL
    value = max(tolerances.wrong_objective, tolerances.overclaim * answer.asked)
    drift = max(tolerances.drift * np.sqrt(answer.asked) + tolerances.agree, tolerances.minimiser)
    allowed = max(tolerances.overclaim * answer.asked, tolerances.agree)
    proven = context.right(answer, tolerances.agree)
    limits = _Limits(allowed, value, drift, value, claimed=True)
    far = [] if proven else _findings(answer, context, limits)
    if not np.isfinite(answer.objective):
        what = f"claims {answer.status} at a point where the objective is {answer.objective}"
        measured = bool(far) or not answer.error
        return Verdict("WRONG" if claims and measured else "failed", ", and ".join([what, *far[:1]]))
    if claims and far:
        given = answer.altered and answer.residual <= tolerances.agree
        blame = "; it solved what cvxpy gave it, with bounds or an approximation of cvxpy's own" if given else ""
        return Verdict("WRONG", f"claims optimal to {answer.asked:.0e}, but {' and '.join(far[:2])}{blame}")
    useless = _findings(answer, context, _Limits(value, value, np.inf, value, claimed=True))
    if not claims and not proven and useless:
        why = f"; {answer.error}" if answer.error else ""
        return Verdict("failed", f"claims no accuracy, and has none: {' and '.join(useless[:2])}{why}")
    known_by = CERTIFIED if context.certified(answer, tolerances.agree) else SMALL
    if near := _near(answer, context, tolerances, tolerances.minimiser):
        return Verdict("loose", " and ".join(near[:2]), known_by)
    if answer.error:
        return Verdict("loose", answer.error, known_by)
    if not claims:
        return Verdict("loose", "does not claim to be accurate, though every residual is within tolerance", known_by)
    return _within(answer, context, tolerances, answer.residual)


def _near(answer: Answer, context: Context, tolerances: Tolerances, minimiser: float) -> list[str]:
    agree = tolerances.agree
    # Multipliers that the proof does without are held to what their solver claims of them.
    certified = context.certified(answer, agree)
    limits = _Limits(agree, agree, minimiser, agree, claimed=certified, right=context.right(answer, agree))
    found = _findings(answer, context, limits)
    own = context.gap(answer, context.unit)
    if not found and own > agree and np.isfinite(context.reference):
        what = f"its value is {own:.1e} off the reference, relative to the objective's own size"
        found = [f"{what}: its terms are of {context.unit:.0e}"]
    off, where = answer.measures.own
    if not found and agree < off < np.inf:
        found = [f"its point misses constraint {where!r} by {off:.1e} (relative), in units of so small variables"]
    return found


def judge_claim(answer: Answer, context: Context, tolerances: Tolerances, *, exact: bool) -> Verdict:
    """Return the verdict on an answer that no solver gave.

    `exact`: Whether it is a closed form: one that is only near is wrong.
    """
    if not np.isfinite(answer.objective):
        # An atom that raises an error may be right about the point, or not.
        return Verdict("failed" if answer.error else "WRONG", answer.error or f"its objective is {answer.objective}")
    agree, wrong = tolerances.agree, tolerances.agree if exact else tolerances.wrong_objective
    minimiser = agree if exact else tolerances.minimiser
    # Where no multiplier is finite, a feasible point 2e-6 from the optimum is half its size from stationary.
    bound = PROVEN_EXACT if exact else wrong if answer.infeasibility <= ROUNDED else agree
    proven = context.proven(answer, bound) or answer.solver in context.unbeaten
    drift = np.inf if proven else max(wrong, minimiser)
    gap = np.inf if proven else max(wrong, tolerances.wrong_objective)
    if far := _findings(answer, context, _Limits(wrong, wrong, drift, gap, claimed=True)):
        return Verdict("WRONG", f"{'claims to be exact' if exact else 'is claimed'}, but {' and '.join(far[:2])}")
    if near := _near(answer, context, tolerances, minimiser):
        return Verdict("loose", " and ".join(near[:2]), CERTIFIED if context.certified(answer, agree) else SMALL)
    return _within(answer, context, tolerances, answer.measures.missed[0])


def _within(answer: Answer, context: Context, tolerances: Tolerances, residual: float) -> Verdict:
    """Return the verdict where nothing exceeds its limit: agrees, if the point is measured or its value is proven."""
    certified = context.certified(answer, tolerances.agree)
    known_by = CERTIFIED if certified else SMALL
    displacement = answer.measures.displacement
    largest = residual if certified else float(np.fmax(residual, displacement))
    reason = f"every exact residual is at most {max(largest, 1e-16):.0e}"
    moved = answer.moved / answer.size
    if moved > tolerances.agree:
        return Verdict("loose", f"{reason}, but its point lies {moved:.1e} (relative) outside the domain", known_by)
    if moved > NOTICED:
        reason += f" once its point is moved {moved:.0e} (relative) into the domain"
    if np.isnan(displacement) and not certified:
        why = answer.measures.unmeasured
        return Verdict("loose", f"how far its point is from stationary is not known: {why}", known_by)
    if not certified:
        gap, slope = answer.measures.gap, context.slope(answer)
        if gap > tolerances.agree or slope > tolerances.wrong_objective:
            what = f"its value may be {max(gap, slope):.1e} (relative) off, to first order"
            return Verdict("loose", f"{reason}, but {what}", known_by)
    if certified:
        reason += f", and a certified bound is {context.proven_gap(answer):.0e} from its value"
    if displacement > max(residual, tolerances.agree):
        reason += f", and its point {displacement:.0e} from stationary"
    return Verdict("agrees", reason, known_by)


def _findings(answer: Answer, context: Context, limits: _Limits) -> list[str]:
    """Return the figures above these limits, the most telling first."""
    found = []
    cone, measures = answer.cone, answer.measures
    if cone is not None:
        figures = cone.claimed if limits.claimed else cone.relative
        worst = max(figures, key=lambda name: figures[name])
        if figures[worst] > limits.residual:
            where = f" at {cone.worst_block}" if worst == cone.worst and cone.worst_block else ""
            poor = "its multipliers are poor: " if limits.right and worst != "cone" else ""
            found.append(f"{poor}{_CONDITIONS[worst]} by {figures[worst]:.1e} (relative){where}")
    if measures.missed[0] > limits.missed:
        found.append(f"its point misses constraint {measures.missed[1]!r} by {measures.missed[0]:.1e} (relative)")
    displacement = float(np.fmin(measures.displacement, measures.drift if limits.claimed else np.nan))
    if displacement > limits.drift:
        found.append(f"its point is {displacement:.1e} (relative) from stationary")
    gap = context.gap(answer, max(1.0, measures.terms) if limits.claimed else 1.0)  # the terms may cancel
    # Violations that are tolerated, relative to their rows, may have bought the reference's value, or this one.
    bought = limits.residual * measures.bought if limits.claimed else 0.0
    off = abs(answer.objective - context.reference)
    if np.isfinite(off) and gap > limits.gap and off > bought:
        found.append(f"its value is {gap:.1e} (relative) off the reference")
    return found


def _undecided(answer: Answer) -> Verdict:
    """Return the verdict on a claim that there is no solution, before any proof."""
    if answer.certificate is None:
        return Verdict("failed", f"claims {answer.status} and returns no certificate")
    return Verdict(
        "failed", f"claims {answer.status}, and its certificate is off by {max(answer.certificate.off, 1e-16):.1e}"
    )
