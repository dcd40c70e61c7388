"""Contradictions between answers, settled by certificates.

A verdict on one answer sees that answer alone. Between several answers proofs decide, none of which trusts a solver: a
certified bound on the optimum, a certificate of infeasibility with the radius that it covers, a ray, a feasible point
with its exact residual. What no answer brings a proof of is proven here, if it can be (`cvxpriv.certify.proofs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import Answer
from cvxpriv.certify.proofs import Proofs
from cvxpriv.certify.verdicts import Tolerances, Verdict
from cvxpriv.kkt.conic.residuals import Certificate

__all__ = ["settle"]


@dataclass
class _Table:
    """Answers of one case with their verdicts, which change as contradictions are settled."""

    answers: Sequence[Answer]
    verdicts: list[Verdict]
    maximise: bool
    tolerances: Tolerances
    proofs: Proofs

    def give(self, indices: Iterable[int], verdict: Callable[[Answer], Verdict]) -> None:
        """Give some answers their verdicts."""
        for k in indices:
            self.verdicts[k] = verdict(self.answers[k])

    def indices(self, start: str, proven: bool) -> list[int]:
        """Answers whose status begins so, with or without a certificate that holds."""
        return [
            k
            for k, answer in enumerate(self.answers)
            if answer.status.removesuffix("_inaccurate") == start and (self.verdicts[k].verdict == "agrees") == proven
        ]

    def solutions(self) -> list[int]:
        """Answers with a point that stands so far."""
        return [
            k
            for k, answer in enumerate(self.answers)
            if answer.values is not None and self.verdicts[k].verdict in ("agrees", "loose")
        ]


def settle(
    answers: Sequence[Answer], verdicts: Sequence[Verdict], maximise: bool, tolerances: Tolerances, proofs: Proofs
) -> list[Verdict]:
    """Return the verdicts on the answers to one case once they have heard each other.

    A claim that there is no solution, which no certificate proves, is true or false all the same: `proofs` decide.
    Where they cannot either, it is failed and not WRONG.
    """
    table = _Table(answers, list(verdicts), maximise, tolerances, proofs)
    _beyond_bound(table)
    _infeasible(table)
    _unbounded(table)
    _either(table)
    return table.verdicts


def _best_bound(table: _Table) -> tuple[float, str]:
    """The tightest certified bound in the sense of the problem, and whose it is; NaN if there is none."""
    certified = [(answer.bound, answer.solver) for answer in table.answers if np.isfinite(answer.bound)]
    if not certified:
        return float("nan"), ""
    return min(certified) if table.maximise else max(certified)


def _beyond_bound(table: _Table) -> None:
    """A value better than the optimum can be belongs to a point that is not feasible."""
    bound, whose = _best_bound(table)
    for k in table.solutions():
        objective = table.answers[k].objective
        beyond = (objective - bound if table.maximise else bound - objective) / max(1.0, abs(bound))
        if beyond > table.tolerances.agree:
            side = "above" if table.maximise else "below"
            what = f"its value is {beyond:.1e} (relative) {side} the bound that {whose}'s dual certifies"
            near = beyond <= table.tolerances.wrong_objective
            verdict = "loose" if near else _off_by_far(table.answers[k])
            table.verdicts[k] = Verdict(verdict, f"{what}: its point is not feasible")


def _infeasible(table: _Table) -> None:
    for k in table.indices("infeasible", proven=True):
        for other in table.solutions():
            _point_against_proof(table, k, other)
            if table.verdicts[k].verdict == "WRONG":
                break
    standing = table.indices("infeasible", proven=True)
    for k in table.indices("infeasible", proven=False):
        answer = table.answers[k]
        if standing:
            table.verdicts[k] = _proven_elsewhere(answer, f"{table.answers[standing[0]].solver}'s certificate")
        elif (proof := table.proofs.infeasible) is not None:
            table.verdicts[k] = _proven_elsewhere(answer, _found_here(proof))
        elif table.proofs.roomy:
            what = f"claims {answer.status}, but some points meet every constraint with room to spare"
            table.verdicts[k] = Verdict("WRONG", what + _point(table))
        else:
            table.verdicts[k] = _undecided(answer, _point(table))


def _point_against_proof(table: _Table, claim: int, other: int) -> None:
    """A certificate covers all points within a radius: beyond it, a feasible point refutes the claim."""
    proof, answer = table.answers[claim], table.answers[other]
    radius = 0.0 if proof.certificate is None else proof.certificate.radius
    reach = answer.reach
    if np.isnan(reach) and answer.values is not None:
        reach = max((float(np.abs(value).max(initial=0.0)) for value in answer.values.values()), default=0.0)
    if reach < radius:
        table.verdicts[other] = Verdict(
            "loose",
            f"its point satisfies the constraints nearly, and {proof.solver}'s certificate proves that no point with "
            f"entries below {radius:.0e} does exactly",
        )
    else:
        table.verdicts[claim] = Verdict(
            "WRONG",
            f"claims {proof.status}, but {answer.solver} has a point with exact residual {answer.quality:.0e}, beyond "
            f"the {radius:.0e} that the certificate covers",
        )


def _unbounded(table: _Table) -> None:
    bound, whose = _best_bound(table)
    rays = table.indices("unbounded", proven=True)
    claims = [*rays, *table.indices("unbounded", proven=False)]
    if not claims:
        return
    if np.isfinite(bound):
        side = "at most" if table.maximise else "at least"
        what = f"but {whose}'s dual certifies that the objective is {side} {bound:.6g}"
        table.give(claims, lambda answer: Verdict("WRONG", f"claims {answer.status}, {what}"))
    elif empty := _emptiness(table):
        what = f"but {empty} proves it infeasible"
        table.give(claims, lambda answer: Verdict("loose", f"{answer.status}, {what}"))
    elif ray := _ray(table, rays):
        table.give(claims[len(rays) :], lambda answer: _proven_elsewhere(answer, ray))
        what = f"but {ray} improves the objective without end"
        table.give(table.solutions(), lambda answer: Verdict(_off_by_far(answer), f"claims {answer.status}, {what}"))
    else:
        _without_ray(table, claims)


def _either(table: _Table) -> None:
    """A claim that there is no solution, without a word on why, is right if either reason can be proven."""
    claims = table.indices(cp.settings.INFEASIBLE_OR_UNBOUNDED, proven=False)
    if not claims:
        return
    bound, whose = _best_bound(table)
    if proof := _emptiness(table) or _ray(table, table.indices("unbounded", proven=True)):
        table.give(claims, lambda answer: _proven_elsewhere(answer, proof))
    elif np.isfinite(bound) and table.solutions():
        what = f"but {whose}'s dual certifies a bound of {bound:.6g}{_point(table)}"
        table.give(claims, lambda answer: Verdict("WRONG", f"claims {answer.status}, {what}"))
    else:
        table.give(claims, lambda answer: _undecided(answer, _point(table)))


def _emptiness(table: _Table) -> str:
    """What proves that there is no feasible point, or ``""``; a ray says nothing there."""
    if proven := table.indices("infeasible", proven=True):
        return f"{table.answers[proven[0]].solver}'s certificate"
    if table.solutions() or (proof := table.proofs.infeasible) is None:
        return ""
    return _found_here(proof)


def _ray(table: _Table, rays: Sequence[int]) -> str:
    """Whose ray holds, or ``""``."""
    if rays:
        return f"{table.answers[rays[0]].solver}'s ray"
    return "" if (proof := table.proofs.ray) is None else f"a ray found here, exact to {_off(proof):.0e},"


def _without_ray(table: _Table, claims: Sequence[int]) -> None:
    """Where there is no ray, values in larger and larger boxes say whether the points that stand are best."""
    points = table.solutions()
    growth = table.proofs.growth(max((table.answers[k].size for k in points), default=1.0))
    for k in points:
        answer = table.answers[k]
        sign = 1.0 if table.maximise else -1.0
        gain = max((sign * (value - answer.objective) for value in growth.values), default=0.0)
        if gain > table.tolerances.wrong_objective * max(1.0, abs(answer.objective)):
            what = f"but feasible points of larger entries are better: {growth}"
            table.verdicts[k] = Verdict(_off_by_far(answer), f"claims {answer.status}, {what}")
    if growth.endless(table.tolerances.agree):
        what = f"no ray proves it, nor does it need one: nothing limits the values, {growth}"
        table.give(claims, lambda answer: Verdict("loose", f"{answer.status}: {what}"))
    else:
        table.give(claims, lambda answer: _undecided(answer, _point(table)))


def _off_by_far(answer: Answer) -> str:
    """The verdict on a value that is far off: only a claim of accuracy can be false."""
    return "failed" if answer.status == cp.OPTIMAL_INACCURATE else "WRONG"


def _proven_elsewhere(answer: Answer, proof: str) -> Verdict:
    """A true claim: its solver is right, and to blame only for a certificate that does not hold."""
    if answer.certificate is None:
        return Verdict("agrees", f"{answer.status}: it returns no certificate, and {proof} proves it")
    return Verdict("loose", f"{answer.status}: right, as {proof} shows, not its own")


def _undecided(answer: Answer, point: str) -> Verdict:
    """A claim that is neither proven nor refuted; nobody can use it."""
    proof = answer.certificate
    own = "returns no certificate" if proof is None else f"its certificate is off by {_off(proof):.1e}"
    what = f"claims {answer.status}, but {own}, and no proof was found of it or of the contrary"
    return Verdict("failed", what + point)


def _found_here(proof: Certificate) -> str:
    return f"a certificate found here, exact to {_off(proof):.0e},"


def _off(proof: Certificate) -> float:
    return max(proof.equation, proof.membership, 1e-16)


def _point(table: _Table) -> str:
    """The best point that contradicts a claim, as the end of a sentence."""
    if not table.solutions():
        return ""
    best = min((table.answers[k] for k in table.solutions()), key=lambda answer: answer.quality)
    return f"; {best.solver} has a solution with exact residual {best.quality:.0e}"
