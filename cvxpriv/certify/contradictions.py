"""Contradictions between answers, settled by proofs.

A verdict on one answer sees that answer alone. Between several answers proofs decide, none of which trusts a solver: a
certified bound on the optimum, an exact certificate of infeasibility, a direction that was followed in the problem as
written, a feasible point with its exact residual. A proof that no answer brings is searched for here
(`cvxpriv.certify.proofs`). A claim that there is no solution is tested like this even if nobody contradicts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import ROUNDED, Answer, Context
from cvxpriv.certify.proofs import Proofs
from cvxpriv.certify.verdicts import CERTIFIED, Tolerances, Verdict
from cvxpriv.numerics.arrays import Values

EITHER = cp.settings.INFEASIBLE_OR_UNBOUNDED
SEEN = 1e-9
"""Violation, relative, that every point must have for the problem to be tested for emptiness, though nobody says so."""

LAST_DIGIT, ORDINARY = 1e-15, 1e3
"""Violation, relative, and size of a point beside which nobody looks for a proof of emptiness."""


@dataclass
class _Table:
    """Answers of one case with their verdicts, which change as contradictions are settled."""

    answers: Sequence[Answer]
    verdicts: list[Verdict]
    maximise: bool
    context: Context
    tolerances: Tolerances
    proofs: Proofs

    def give(self, indices: Iterable[int], verdict: Callable[[Answer], Verdict]) -> None:
        """Give some answers their verdicts."""
        for k in indices:
            self.verdicts[k] = verdict(self.answers[k])

    def claims(self, start: str) -> list[int]:
        """Return the answers with this status, accurate or not."""
        return [k for k, answer in enumerate(self.answers) if answer.status.removesuffix("_inaccurate") == start]

    def solutions(self) -> list[int]:
        """Return the answers with a point that stands so far."""
        return [
            k
            for k, answer in enumerate(self.answers)
            if answer.values is not None and self.verdicts[k].verdict in ("agrees", "loose")
        ]

    @property
    def bound(self) -> tuple[float, str]:
        """Return the tightest certified bound in the sense of the problem, and its solver; NaN if there is none."""
        certified = [(answer.bound, answer.solver) for answer in self.answers if np.isfinite(answer.bound)]
        return (min if self.maximise else max)(certified, default=(float("nan"), ""))


def settle(
    answers: Sequence[Answer],
    verdicts: Sequence[Verdict],
    maximise: bool,
    tolerances: Tolerances,
    proofs: Proofs,
    context: Context,
) -> list[Verdict]:
    """Return the verdicts on the answers to one case after each was compared with the others.

    A claim that there is no solution, which no certificate proves, may still be true: `proofs` decide. Where they
    cannot, it is failed and not WRONG.
    """
    table = _Table(answers, list(verdicts), maximise, context, tolerances, proofs)
    bound, whose = table.bound
    for k in table.solutions():
        answer = table.answers[k]
        better = answer.objective - bound if table.maximise else bound - answer.objective
        beyond = better / max(1.0, abs(bound), answer.measures.terms)
        if beyond > table.tolerances.agree:
            side = "above" if table.maximise else "below"
            what = f"its value is {beyond:.1e} (relative) {side} the bound that {whose}'s dual certifies"
            near = beyond <= table.tolerances.wrong_objective
            verdict = "loose" if near else _off_by_far(answer)
            table.verdicts[k] = Verdict(verdict, f"{what}: its point is not feasible", CERTIFIED)
    _infeasible(table)
    if claims := table.claims("unbounded"):
        _unbounded(table, claims)
    if claims := table.claims(EITHER):
        _either(table, claims)
    return table.verdicts


def _infeasible(table: _Table) -> None:
    claims = table.claims("infeasible")
    misses = [table.answers[k].infeasibility for k in table.solutions()]
    if not claims and min(misses, default=0.0) <= SEEN:
        return
    exact = [k for k in claims if (proof := table.answers[k].certificate) is not None and proof.exact]
    points = (table.answers[k] for k in table.solutions())
    held = any(answer.infeasibility <= LAST_DIGIT and answer.size <= ORDINARY for answer in points)
    found = None if exact or held else table.proofs.infeasible
    if exact or found is not None:
        whose = f"{table.answers[exact[0]].solver}'s certificate" if exact else "a certificate found here"
        table.give(exact, lambda answer: Verdict("agrees", f"{answer.status}: its certificate is exact", CERTIFIED))
        table.give([k for k in claims if k not in exact], lambda answer: _proven_elsewhere(answer, whose))
        what = f"its point satisfies the constraints nearly, and {whose} proves that no point does exactly"
        table.give(table.solutions(), lambda answer: Verdict("loose", what))
        return
    refuted = _refutation(table) if claims else None
    table.give(claims, lambda answer: refuted(answer) if refuted else _undecided(answer, _point(table)))


def _refutation(table: _Table) -> Callable[[Answer], Verdict] | None:
    """Return a refutation of a claim of infeasibility: a point that is known to meet every constraint."""
    points = sorted(table.solutions(), key=lambda k: table.answers[k].miss)
    if points and (best := table.answers[points[0]]).miss <= ROUNDED:
        what = f"but {best.solver} has a point that satisfies every constraint to {max(best.miss, 1e-16):.0e}"
    elif table.proofs.inhabited(_points(table)):
        what = "but some points meet every constraint" + _point(table)
    else:
        return None
    return lambda answer: Verdict("WRONG", f"claims {answer.status}, {what}", CERTIFIED)


def _unbounded(table: _Table, claims: Sequence[int]) -> None:
    bound, whose = table.bound
    if np.isfinite(bound):
        table.give(claims, lambda answer: _bounded(answer, bound, f"{whose}'s dual", table.maximise))
    elif empty := _emptiness(table):
        what = f"but {empty} proves it infeasible"
        table.give(claims, lambda answer: Verdict(_of_empty(table, answer), f"{answer.status}, {what}", CERTIFIED))
    elif ray := _ray(table, claims):
        own = ray[1] if table.proofs.inhabited(_points(table)) else None
        table.give(claims, lambda answer: _ray_verdict(answer, own, ray[0]))
        what = f"but {ray[0]} improves the objective without end"
        table.give(
            table.solutions(), lambda answer: Verdict(_off_by_far(answer), f"claims {answer.status}, {what}", CERTIFIED)
        )
    elif np.isfinite(table.proofs.bound):
        table.give(claims, lambda answer: _bounded(answer, table.proofs.bound, "a dual found here", table.maximise))
    else:
        _without_ray(table, claims)


def _of_empty(table: _Table, answer: Answer) -> str:
    """Return the verdict on a claim that an infeasible problem is unbounded: its dual may be infeasible as well."""
    proof = answer.certificate
    return "loose" if (proof is not None and proof.holds()) or table.proofs.direction is not None else "WRONG"


def _bounded(answer: Answer, bound: float, whose: str, maximise: bool) -> Verdict:
    side = "at most" if maximise else "at least"
    what = f"but {whose} certifies that the objective is {side} {bound:.6g}"
    given = answer.certificate is not None and answer.certificate.holds(ROUNDED)
    blame = "; its ray holds for what cvxpy gave it, which is not the problem as written" if given else ""
    return Verdict("WRONG", f"claims {answer.status}, {what}{blame}", CERTIFIED)


def _ray_verdict(answer: Answer, own: Sequence[str] | None, ray: str) -> Verdict:
    """Return the verdict on a claim that a ray proves if there is a feasible point; `own` is None if none is known."""
    if own is None:
        what = f"{ray} improves the objective without end, but no point is known that meets every constraint"
        return Verdict("loose", f"{answer.status}: {what}")
    if answer.solver in own:
        what = "its direction improves the problem as written as far as it was followed"
        return Verdict("agrees", f"{answer.status}: {what}", CERTIFIED)
    return _proven_elsewhere(answer, ray)


def _either(table: _Table, claims: Sequence[int]) -> None:
    """Settle a claim that there is no solution, without a reason: it is right if either reason can be proven."""
    bound, whose = table.bound
    ray = _ray(table, table.claims("unbounded"))
    if proof := _emptiness(table) or (ray[0] if ray else ""):
        table.give(claims, lambda answer: _proven_elsewhere(answer, proof))
    elif np.isfinite(bound) and table.solutions():
        what = f"but {whose}'s dual certifies a bound of {bound:.6g}{_point(table)}"
        table.give(claims, lambda answer: Verdict("WRONG", f"claims {answer.status}, {what}", CERTIFIED))
    else:
        table.give(claims, lambda answer: _undecided(answer, _point(table)))


def _emptiness(table: _Table) -> str:
    """Return a proof that there is no feasible point, or ``""``; a ray decides nothing there."""
    for k in [*table.claims("infeasible"), *table.claims(EITHER)]:
        proof = table.answers[k].certificate
        if proof is not None and proof.exact:
            return f"{table.answers[k].solver}'s certificate"
    if table.solutions() or table.proofs.infeasible is None:
        return ""
    return "a certificate found here"


def _ray(table: _Table, claims: Sequence[int]) -> tuple[str, list[str]] | None:
    """Return the proof that the objective improves without end, and the solvers whose directions show it; or None."""
    starts = _points(table)
    own = [
        answer.solver
        for answer in (table.answers[k] for k in claims)
        if answer.ray is not None and table.proofs.endless(answer.ray, starts)
    ]
    if own:
        return f"{own[0]}'s ray", own
    return ("a ray found here", []) if table.proofs.ray(starts) else None


def _points(table: _Table) -> list[Values]:
    return [values for k in table.solutions() if (values := table.answers[k].values) is not None]


def _without_ray(table: _Table, claims: Sequence[int]) -> None:
    """Decide, where there is no ray, by values in larger and larger boxes whether the points that stand are best."""
    points = table.solutions()
    growth = table.proofs.growth(max((table.answers[k].size for k in points), default=1.0))
    for k in points:
        answer = table.answers[k]
        sign = 1.0 if table.maximise else -1.0
        gain = max((sign * (value - answer.objective) for value in growth.values), default=0.0)
        if gain > table.tolerances.wrong_objective * max(1.0, abs(answer.objective)) and table.proofs.priced:
            what = f"but feasible points of larger entries are better: {growth}"
            table.verdicts[k] = Verdict(_off_by_far(answer), f"claims {answer.status}, {what}")
    if growth.endless(table.tolerances.agree, table.maximise):
        what = f"no ray proves it, nor does it need one: nothing limits the values, {growth}"
        table.give(claims, lambda answer: Verdict("loose", f"{answer.status}: {what}"))
    else:
        table.give(claims, lambda answer: _undecided(answer, _point(table)))


def _off_by_far(answer: Answer) -> str:
    """Return the verdict on a value that is far off: only a claim of accuracy can be false."""
    return "failed" if answer.status == cp.OPTIMAL_INACCURATE else "WRONG"


def _proven_elsewhere(answer: Answer, proof: str) -> Verdict:
    """Return the verdict on a true claim: its solver is right, except for a certificate that does not hold."""
    if answer.certificate is None:
        return Verdict("agrees", f"{answer.status}: it returns no certificate, and {proof} proves it", CERTIFIED)
    return Verdict("loose", f"{answer.status}: right, as {proof} shows, not its own", CERTIFIED)


def _undecided(answer: Answer, point: str) -> Verdict:
    """Return the verdict on a claim that is neither proven nor refuted, which nobody can use."""
    proof = answer.certificate
    other = "its certificate is of what cvxpy gave it, which is another problem"
    none = other if answer.altered else "returns no certificate"
    own = none if proof is None else f"its certificate is off by {max(proof.off, 1e-16):.1e}"
    if proof is not None and 0.0 < proof.radius < np.inf:
        own += f", which proves it for points with entries below {proof.radius:.0e} alone"
    what = f"claims {answer.status}, but {own}, and no proof was found of it or of the contrary"
    return Verdict("failed", what + point)


def _point(table: _Table) -> str:
    """Return the best point that contradicts a claim, as the end of a sentence."""
    if not table.solutions():
        return ""
    best = min((table.answers[k] for k in table.solutions()), key=lambda answer: answer.quality)
    return f"; {best.solver} has a solution with exact residual {best.quality:.0e}"
