"""Measurements of a point of a case, whoever gave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cvxpriv.certify.cases import Case, case_of_problem
from cvxpriv.certify.yardstick import NEAR, Measures
from cvxpriv.kkt.conic.solving import ConicSolution
from cvxpriv.kkt.integers import MixedInteger
from cvxpriv.numerics.arrays import Values

INTEGRAL = 1e-5
"""Relative distance from a whole number that a solver may leave: most allow 1e-6."""


def measured(
    case: Case, raw: Values, multipliers: Mapping[str, Any] | None, solution: ConicSolution | None = None
) -> dict[str, Any]:
    """Return the measurements of a point, and its place in the domain.

    What a mixed-integer case restricts is fixed at the allowed values nearest to it, and the point is measured as one
    of the convex problem that is left.
    """
    if case.mixed is not None:
        return _of_integers(case, case.mixed, raw)
    yardstick = case.yardstick
    x = yardstick.point(raw)
    measures = yardstick.measures(x, multipliers)
    unknown = ""
    if np.isinf(measures.missed[0]) and solution is not None and _rows_hold(solution):
        unknown = f"constraint {measures.missed[1]!r} has no value at its point: the rows of its cone program hold"
        measures = replace(measures, missed=measures.defined)
    if case.repair is not None:
        values = {name: np.asarray(value, dtype=float) for name, value in case.repair(raw).items()}
        moved = max((float(np.abs(values[name] - raw[name]).max(initial=0.0)) for name in values), default=0.0)
        objective, error = yardstick.value(yardstick.point({**raw, **values}))
        return {"values": values, "objective": objective, "moved": moved, "measures": measures}
    inside, moved = yardstick.domain.moved(x)
    objective, error = yardstick.value(inside)
    found: dict[str, Any] = {"values": yardstick.values(inside), "objective": objective, "moved": moved}
    if unknown:  # a support function is infinite 1e-12 beside its domain, which nobody can say
        found["error"] = unknown
    if error and not np.isfinite(objective):
        # Atoms of cvxpy raise what they like: perspective an AssertionError where its scale is near zero.
        found["error"] = f"its objective cannot be evaluated at its point ({error})"
        if solution is not None and solution.x is not None:
            found["objective"] = solution.program.user_value(solution.program.value(solution.x))
            found["error"] += ": the value is the cone program's"
    return {**found, "measures": measures}


def _rows_hold(solution: ConicSolution) -> bool:
    return solution.residuals is not None and solution.residuals.relative["cone"] <= NEAR


def _of_integers(case: Case, mixed: MixedInteger, values: Values) -> dict[str, Any]:
    variables = case.declare().variables
    for name, twin in variables.items():
        twin.save_value(np.asarray(values[name], dtype=float).reshape(twin.shape))
    off, where = mixed.off()
    if off > INTEGRAL:
        objective, _ = case.yardstick.value(case.yardstick.point(values))
        measures = Measures(missed=(off, f"{where} is allowed"), displacement=0.0)
        return {"values": values, "objective": objective, "measures": measures}
    left = case_of_problem(case.name, mixed.fixed())
    mixed.round()
    return measured(left, {name: np.asarray(twin.value, dtype=float) for name, twin in variables.items()}, None)
