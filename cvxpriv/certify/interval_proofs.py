"""Verdicts that are proved: the optimum lies in an interval that is worked out in fractions."""

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.cases import Case
from cvxpriv.certify.verdicts import CERTIFIED, PROVED, Tolerances
from cvxpriv.kkt.conic.exact import Interval, proved_infeasible, proved_interval
from cvxpriv.kkt.conic.solving import attempts
from cvxpriv.solvers.registry import fallback_chain


def proof_of(case: Case) -> Interval:
    """Return what exact arithmetic proves of a case, from the first solver's answer that is near enough."""
    if case.mixed is not None:
        return Interval(why="mixed-integer problems are not worked out in fractions")
    why = "no solver has an answer that is near enough"
    for solution in attempts(case.declare().problem, ((solver, None) for solver in fallback_chain(None))):
        if solution.altered_by_cvxpy:
            why = "cvxpy gives solvers bounds or an approximation of its own"
        elif solution.z is not None and solution.status.startswith("infeasible"):
            if proved_infeasible(solution.program, solution.z):
                return Interval(infeasible=True)
        elif solution.x is not None and solution.z is not None and solution.status == cp.OPTIMAL:
            found = proved_interval(solution.program, solution.x, solution.z)
            if not found.why:
                return replace(found, low=-found.high, high=-found.low) if solution.program.maximise else found
            why = found.why
    return Interval(why=why)


def with_proof(rows: list[dict[str, Any]], proof: Interval, tolerances: Tolerances) -> list[dict[str, Any]]:
    """Return the rows of a case, those proved whose verdict the proof bears out; the others say what is missing."""
    if proof.why:
        missing = f"; not proved: {proof.why}"
        return [{**row, "reason": row["reason"] + missing * (row["known_by"] == CERTIFIED)} for row in rows]
    proved = {"known_by": PROVED}
    return [
        {**row, **proved, "reason": f"{row['reason']}; {proof}"} if _borne(row, proof, tolerances) else row
        for row in rows
    ]


def _borne(row: dict[str, Any], proof: Interval, tolerances: Tolerances) -> bool:
    """Return whether a proof bears out a verdict."""
    claims, verdict = str(row["status"]).removesuffix("_inaccurate"), row["verdict"]
    if proof.infeasible:
        return verdict in (("agrees", "loose") if claims == "infeasible" else ("WRONG",))
    value = float(row["objective"])
    off = max(abs(value - proof.low), abs(value - proof.high)) / max(1.0, abs(proof.low))
    off = off if np.isfinite(off) else np.inf
    if verdict == "WRONG":
        return claims in ("infeasible", "unbounded") or off > tolerances.wrong_objective
    return bool(verdict == "agrees" and off <= tolerances.agree)
