"""Verdicts that are proved: the optimum lies in an interval that is worked out in fractions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.cases import Case
from cvxpriv.certify.verdicts import CERTIFIED, PROVED, Tolerances
from cvxpriv.kkt.conic.exact import proved_infeasible, proved_interval
from cvxpriv.kkt.conic.solving import attempts
from cvxpriv.solvers.registry import fallback_chain


@dataclass(frozen=True)
class Proof:
    """The proved facts of a case.

    `low`, `high`: Between which the optimum lies, in the sense of the problem.
    `infeasible`: No point satisfies the constraints.
    `why`: The part that could not be proved, or ``""``.
    """

    low: float = -np.inf
    high: float = np.inf
    infeasible: bool = False
    why: str = ""

    def __str__(self) -> str:
        if self.infeasible:
            return "exact arithmetic proves that no point satisfies the constraints"
        return f"exact arithmetic proves the optimum to lie between {self.low!r} and {self.high!r}"


def proof_of(case: Case) -> Proof:
    """Return what exact arithmetic proves of a case, from the first solver's answer that is near enough."""
    if case.mixed is not None:
        return Proof(why="mixed-integer problems are not worked out in fractions")
    why = "no solver has an answer that is near enough"
    for solution in attempts(case.declare().problem, ((solver, None) for solver in fallback_chain(None))):
        if solution.z is not None and solution.status.startswith("infeasible"):
            if proved_infeasible(solution.program, solution.z):
                return Proof(infeasible=True)
        elif solution.x is not None and solution.z is not None and solution.status == cp.OPTIMAL:
            found = proved_interval(solution.program, solution.x, solution.z)
            if not found.why:
                ends = (found.low, found.high)
                low, high = (-ends[1], -ends[0]) if solution.program.maximise else ends
                return Proof(low, high)
            why = found.why
    return Proof(why=why)


def with_proof(rows: list[dict[str, Any]], proof: Proof, tolerances: Tolerances) -> list[dict[str, Any]]:
    """Return the rows of a case, those proved whose verdict the proof bears out; the others say what is missing."""
    return [_with_proof(row, proof, tolerances) for row in rows]


def _with_proof(row: dict[str, Any], proof: Proof, tolerances: Tolerances) -> dict[str, Any]:
    if proof.why:
        missing = f"{row['reason']}; not proved: {proof.why}" if row["known_by"] == CERTIFIED else row["reason"]
        return {**row, "reason": missing}
    claims = str(row["status"]).removesuffix("_inaccurate")
    if proof.infeasible:
        right = claims == "infeasible" and row["verdict"] in ("agrees", "loose")
        borne = right or (claims != "infeasible" and row["verdict"] == "WRONG")
    else:
        off = _off(float(row["objective"]), proof)
        right = row["verdict"] == "agrees" and off <= tolerances.agree
        wrong = row["verdict"] == "WRONG" and (
            claims in ("infeasible", "unbounded") or off > tolerances.wrong_objective
        )
        borne = right or wrong
    return {**row, "known_by": PROVED, "reason": f"{row['reason']}; {proof}"} if borne else row


def _off(value: float, proof: Proof) -> float:
    """Return the largest distance of a value from the optimum, relative."""
    if not np.isfinite(value):
        return float("inf")
    return max(abs(value - proof.low), abs(value - proof.high)) / max(1.0, abs(proof.low))
