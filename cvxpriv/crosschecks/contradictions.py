"""Contradictions between answers, settled by certificates.

A verdict on one answer sees that answer alone. Between several answers three kinds of proof decide, none of which
trusts a solver: a certified bound on the optimum, a certificate of infeasibility with the radius that it covers, and a
feasible point with its exact residual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvxpriv.crosschecks.answers import Answer
from cvxpriv.crosschecks.verdicts import Tolerances, Verdict

__all__ = ["settle"]


@dataclass
class _Table:
    """Answers of one case with their verdicts, which change as contradictions are settled."""

    answers: Sequence[Answer]
    verdicts: list[Verdict]
    maximise: bool
    tolerances: Tolerances

    def indices(self, start: str, proven: bool) -> list[int]:
        """Answers whose status begins so, with or without a certificate that holds."""
        return [
            k
            for k, answer in enumerate(self.answers)
            if answer.status.startswith(start) and (self.verdicts[k].verdict == "agrees") == proven
        ]

    def solutions(self) -> list[int]:
        """Answers with a point that stands so far."""
        return [
            k
            for k, answer in enumerate(self.answers)
            if answer.values is not None and self.verdicts[k].verdict in ("agrees", "loose")
        ]


def settle(
    answers: Sequence[Answer], verdicts: Sequence[Verdict], maximise: bool, tolerances: Tolerances
) -> list[Verdict]:
    """Return the verdicts on the answers to one case once they have heard each other."""
    table = _Table(answers, list(verdicts), maximise, tolerances)
    _beyond_bound(table)
    _infeasible(table)
    _unbounded(table)
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
            claims = table.answers[k].status != "optimal_inaccurate"
            wrong = claims and beyond > table.tolerances.wrong_objective
            table.verdicts[k] = Verdict("WRONG" if wrong else "loose", f"{what}: its point is not feasible")


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
            whose = table.answers[standing[0]].solver
            table.verdicts[k] = Verdict("loose", f"{answer.status}: right, as {whose}'s certificate shows, not its own")
        elif table.solutions():
            table.verdicts[k] = Verdict("WRONG", f"claims {answer.status}, but {_point(table)}")


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
    empty = table.indices("infeasible", proven=True)
    rays = table.indices("unbounded", proven=True)
    for k in [*rays, *table.indices("unbounded", proven=False)]:
        answer = table.answers[k]
        if np.isfinite(bound):
            side = "at most" if table.maximise else "at least"
            what = f"but {whose}'s dual certifies that the objective is {side} {bound:.6g}"
            table.verdicts[k] = Verdict("WRONG", f"claims {answer.status}, {what}")
        elif empty:
            proof = table.answers[empty[0]].solver
            table.verdicts[k] = Verdict("loose", f"{answer.status}, but {proof}'s certificate proves it infeasible")
        elif k not in rays and rays:
            proof = table.answers[rays[0]].solver
            table.verdicts[k] = Verdict("loose", f"{answer.status}: right, as {proof}'s certificate shows, not its own")
        elif k not in rays and table.solutions():
            table.verdicts[k] = Verdict("WRONG", f"claims {answer.status}, but {_point(table)}")
    if rays and not np.isfinite(bound) and not empty:
        ray = table.answers[rays[0]].solver
        for k in table.solutions():
            what = f"claims {table.answers[k].status}, but {ray}'s ray improves the objective without end"
            table.verdicts[k] = Verdict("WRONG", what)


def _point(table: _Table) -> str:
    best = min((table.answers[k] for k in table.solutions()), key=lambda answer: answer.quality)
    return f"{best.solver} has a solution with exact residual {best.quality:.0e}"
