"""The rows of a cross-check: answers to one case, judged alone and then against each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import CLAIMED, Answer, Context, context_of
from cvxpriv.certify.cases import Case
from cvxpriv.certify.contradictions import settle
from cvxpriv.certify.integer_answers import unproven
from cvxpriv.certify.proofs import Proofs
from cvxpriv.certify.references import CLOSED_FORM, Reference
from cvxpriv.certify.verdicts import Tolerances, Verdict, judge, judge_claim
from cvxpriv.numerics.arrays import Values

__all__ = ["rows_of"]


def rows_of(
    case: Case, answers: Sequence[Answer], reference: Reference, tolerances: Tolerances, proofs: Proofs
) -> list[dict[str, Any]]:
    """Judge all answers to a case; return a row for each, with the columns of `cvxpriv.certify.check.CrossCheck`.

    What no answer proves is looked for by `proofs`.
    """
    maximise = isinstance(case.declare().objective, cp.Maximize)
    context = context_of(answers, reference.objective, maximise)
    alone = [
        judge_claim(answer, context, tolerances, exact=answer.solver == CLOSED_FORM)
        if answer.status == CLAIMED
        else judge(answer, context, tolerances)
        for answer in answers
    ]
    if case.mixed is not None:
        alone = [unproven(verdict, answer) for verdict, answer in zip(alone, answers, strict=True)]
    verdicts = settle(answers, alone, maximise, tolerances, proofs, context)
    return [
        _row(case, answer, context, _distance(answer.values, reference.values), verdict)
        for answer, verdict in zip(answers, verdicts, strict=True)
    ]


def _row(case: Case, answer: Answer, context: Context, distance: float, verdict: Verdict) -> dict[str, Any]:
    proof = answer.certificate
    relative = answer.cone.relative if answer.cone is not None else {}
    nan, measures = math.nan, answer.measures
    return {
        "case": case.name,
        "solver": answer.solver,
        "status": "exact" if answer.solver == CLOSED_FORM else answer.status,
        "verdict": verdict.verdict,
        "known_by": verdict.known_by,
        "objective": answer.objective,
        "gap": context.gap(answer),
        "distance": distance,
        "moved": nan if answer.values is None else answer.moved,
        "primal": measures.primal,
        "missed": nan if answer.values is None else measures.missed[0],
        "stationarity": measures.stationarity,
        "natural": measures.natural,
        "displacement": measures.displacement,
        "cone": relative.get("cone", nan),
        "dual": relative.get("dual", nan),
        "dual_cone": relative.get("dual_cone", nan),
        "complementarity": relative.get("complementarity", nan),
        "duality_gap": relative.get("gap", nan),
        "certificate": proof.off if proof else nan,
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
