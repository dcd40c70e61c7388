"""The rows of a cross-check: answers to one case, judged alone and then by each other, figure by figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import CLAIMED, Answer
from cvxpriv.certify.cases import Case
from cvxpriv.certify.contradictions import settle
from cvxpriv.certify.isolation import HERE, Place
from cvxpriv.certify.proofs import Proofs
from cvxpriv.certify.references import CLOSED_FORM, Reference
from cvxpriv.certify.verdicts import Tolerances, Verdict, judge, judge_claim
from cvxpriv.numerics.arrays import Values

__all__ = ["rows_of"]


def rows_of(
    case: Case, answers: Sequence[Answer], reference: Reference, tolerances: Tolerances, place: Place = HERE
) -> list[dict[str, Any]]:
    """Judge all answers to a case; a row for each, with the columns of `cvxpriv.certify.check.CrossCheck`.

    What no answer proves is looked for at `place`.
    """
    maximise = isinstance(case.declare().objective, cp.Maximize)
    bound = _tightest(answers, maximise)
    unit = min((answer.unit for answer in answers), default=1.0)
    evidence = [answer.evidence(reference.objective, bound, unit) for answer in answers]
    alone = [
        judge_claim(seen, tolerances, exact=answer.solver == CLOSED_FORM)
        if answer.status == CLAIMED
        else judge(seen, tolerances)
        for answer, seen in zip(answers, evidence, strict=True)
    ]
    verdicts = settle(answers, alone, maximise, tolerances, Proofs(case, place))
    return [
        _row(case, answer, seen.gap, _distance(answer.values, reference.values), verdict)
        for answer, seen, verdict in zip(answers, evidence, verdicts, strict=True)
    ]


def _tightest(answers: Sequence[Answer], maximise: bool) -> float:
    """The tightest bound that any answer's dual certifies; NaN if none does."""
    bounds = [answer.bound for answer in answers if np.isfinite(answer.bound)]
    return (min if maximise else max)(bounds, default=math.nan)


def _row(case: Case, answer: Answer, gap: float, distance: float, verdict: Verdict) -> dict[str, Any]:
    proof = answer.certificate
    relative = answer.cone.relative if answer.cone is not None else {}
    nan = math.nan
    return {
        "case": case.name,
        "solver": answer.solver,
        "status": "exact" if answer.solver == CLOSED_FORM else answer.status,
        "verdict": verdict.verdict,
        "objective": answer.objective,
        "gap": gap,
        "distance": distance,
        "moved": nan if answer.values is None else answer.moved,
        "primal": answer.residuals.primal if answer.residuals else nan,
        "stationarity": answer.stationarity,
        "natural": answer.natural,
        "displacement": nan if answer.values is None else answer.displacement,
        "cone": relative.get("cone", nan),
        "dual": relative.get("dual", nan),
        "dual_cone": relative.get("dual_cone", nan),
        "complementarity": relative.get("complementarity", nan),
        "duality_gap": relative.get("gap", nan),
        "certificate": max(proof.equation, proof.membership) if proof else nan,
        "bound": answer.bound,
        "bound_reason": answer.bound_reason,
        "seconds": answer.seconds,
        "solver_seconds": answer.solver_seconds,
        "iterations": answer.iterations,
        "reason": verdict.reason,
    }


def _distance(values: Values | None, reference: Values) -> float:
    if values is None or not reference:
        return math.nan
    return max(float(np.max(np.abs(values[name] - reference[name]), initial=0.0)) for name in reference)
