"""Problems with their known truth, and the verdicts of a cross-check that contradict it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.numerics.packages import pd

OPTIMAL, INFEASIBLE, UNBOUNDED = "optimal", "infeasible", "unbounded"
UNKNOWN = "unknown"
"""Status of a problem without a known answer: its answers can only contradict each other."""
NEAR, FAR = 1e-6, 1e-3
"""Relative distance to the optimum up to which a value is right, and from which it is not."""


@dataclass(frozen=True, eq=False)
class Known:
    """A problem and its known truth.

    `status`: ``"optimal"``, ``"infeasible"``, ``"unbounded"`` or ``"unknown"``.
    `value`: The optimal value; for an optimum that no point attains, the limit. NaN where it is not known.
    `unit`: Scale of differences of values, beside the value itself: the change of the objective when the variables
    change by their own size.
    `far`: Relative distance from which a value is not right: more than `FAR` where the optimal value is known to few
    digits.
    `answers`: Points to be judged beside the solvers' answers. The one called ``"truth"`` is optimal, the others are
    far from it.
    """

    problem: cp.Problem
    status: str = OPTIMAL
    value: float = float("nan")
    unit: float = 1.0
    far: float = FAR
    answers: Mapping[str, Mapping[cp.Variable, Any]] = field(default_factory=dict)
    name: str = ""

    def error(self, objective: float) -> float:
        """Return the distance of a value to the optimum, relative."""
        return abs(objective - self.value) / max(self.unit, abs(self.value))


def at(x: cp.Variable, **values: Any) -> dict[str, dict[cp.Variable, Any]]:
    """Return points of one variable, by name, as `Known` has them."""
    return {name: {x: value} for name, value in values.items()}


def least(cost: Any, rows: Sequence[Any] = ()) -> cp.Problem:
    """Return a minimisation."""
    return cp.Problem(cp.Minimize(cost), list(rows))


def most(value: Any, rows: Sequence[Any] = ()) -> cp.Problem:
    """Return a maximisation."""
    return cp.Problem(cp.Maximize(value), list(rows))


def false_verdicts(known: Known, table: pd.DataFrame) -> list[str]:
    """Return the verdicts that contradict the truth, one sentence each; the list of a perfect judge is empty.

    `table`: Table of the `cvxpriv.certify.check.CrossCheck` of the problem.
    """
    rows = [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
    if known.status == UNKNOWN:
        return _contradictory(known.name, [row for row in rows if row["verdict"] == "agrees"])
    return [
        f"{known.name}: {row['solver']} ({row['status']}, {why}) is called {row['verdict']}, {row['reason']}"
        for row in rows
        for why in [_contradiction(known, row)]
        if why
    ]


def _contradictory(name: str, agreeing: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the contradictions between answers that are all called right."""
    said = {str(row["status"]).removesuffix("_inaccurate") for row in agreeing}
    values = [float(row["objective"]) for row in agreeing if np.isfinite(row["objective"])]
    found = [f"{name}: answers that agree claim {' and '.join(sorted(said))}"] if len(said) > 1 else []
    if values and max(values) - min(values) > FAR * max(1.0, abs(min(values))):
        found.append(f"{name}: values that agree lie between {min(values):.10g} and {max(values):.10g}")
    return found


def _contradiction(known: Known, row: Mapping[str, Any]) -> str:
    """Return the error of a verdict, or ``""``."""
    status, verdict = str(row["status"]).removesuffix("_inaccurate"), str(row["verdict"])
    if row["solver"] in known.answers:
        truth = row["solver"] == "truth"
        if truth and verdict == "WRONG":
            return "the true answer"
        return "a false answer" if not truth and verdict == "agrees" else ""
    if status == OPTIMAL:
        return _of_solution(known, float(row["objective"]), verdict, float(row.get("missed", 0.0)))
    if status in (INFEASIBLE, UNBOUNDED):
        right = status == known.status
        if right and verdict == "WRONG":
            return "which is right"
        return "which is wrong" if not right and verdict == "agrees" else ""
    return ""


def _of_solution(known: Known, objective: float, verdict: str, missed: float) -> str:
    if known.status != OPTIMAL:
        return f"the problem is {known.status}" if verdict == "agrees" else ""
    error = known.error(objective)
    if max(error, missed) <= NEAR and verdict == "WRONG":  # a right value may belong to a point that misses a row
        return f"right to {error:.0e}"
    return f"off by {error:.0e}" if verdict == "agrees" and not (np.isnan(error) or error <= known.far) else ""
