"""Asking: a solver for its answer to a case, or anybody for a claim, and measuring what comes back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.declaration import Declaration
from cvxpriv.certify.answers import CLAIMED, NAN, SOLVED, Answer
from cvxpriv.certify.cases import Case
from cvxpriv.certify.domain import into_domain
from cvxpriv.certify.isolation import HERE, Place
from cvxpriv.certify.measures import measures
from cvxpriv.errors import CvxprivError, DataError, ModelError, suggest
from cvxpriv.kkt.conic.solving import ConicSolution, solve_conic
from cvxpriv.numerics.arrays import Values
from cvxpriv.solvers.registry import solver_spec

__all__ = ["claimed_answer", "solver_answer"]


def solver_answer(
    case: Case, solver: str, tolerance: float | None, own: Mapping[str, Any], *, warm_start: bool = False
) -> Answer:
    """Solve a case by one solver and measure what it returns.

    Parameters
    ----------
    tolerance : float, optional
        None is the solver's own in the table.
    own : mapping
        The caller's options on top of the tolerance set.
    warm_start : bool
        Start from the solver's last answer, where `case` declares the same problem as then; else from a cold start.
    """
    declaration = case.declare()
    spec = solver_spec(solver)
    options = spec.full_options(tolerance, own)
    asked = float(options[spec.main_option])
    begun = time.perf_counter()
    try:
        solution = solve_conic(declaration.problem, solver, options, warm_start=warm_start)
    except (CvxprivError, cp.error.SolverError):
        raise
    except Exception as error:  # atoms raise what they like while they are compiled; the other solvers' rows stand
        return Answer(solver, "failed", asked, error=f"cvxpy cannot compile it: {type(error).__name__}: {error}")
    seconds = time.perf_counter() - begun
    bound = solution.lower_bound
    known: dict[str, Any] = {
        "solver": solver,
        "status": solution.status,
        "asked": asked,
        "cone": solution.residuals,
        "bounded": solution.bounded_by_cvxpy,
        "certificate": solution.certificate,
        "bound": NAN if bound.value is None else solution.program.user_value(bound.value),
        "bound_reason": bound.reason,
        "steepness": _steepness(solution),
        "unit": _unit(solution),
        "reach": NAN if solution.x is None else float(np.abs(solution.x).max(initial=0.0)),
        "seconds": seconds,
        "solver_seconds": NAN if solution.solver_seconds is None else float(solution.solver_seconds),
        "iterations": solution.iterations,
        "error": solution.error,
    }
    if solution.status not in SOLVED:
        if solution.status.startswith(("infeasible", "unbounded")):  # the vectors are a proof, not a point
            known |= {"cone": None, "bound": NAN, "bound_reason": f"none: it claims {solution.status}"}
        return Answer(**known)
    try:
        raw = declaration.values()
    except (TypeError, ValueError):  # cvxpy refused to read the answer: the status and the error say so
        return Answer(**known)
    known |= vars(measures(declaration, "solver"))
    try:
        values, objective, moved = _repaired(case, declaration, raw)
    except Exception as error:  # atoms of cvxpy raise what they like: perspective an AssertionError where s is near 0
        value = NAN if solution.x is None else solution.program.value(solution.x)
        values, objective, moved = raw, solution.program.user_value(value), 0.0
        known["error"] = f"its objective cannot be evaluated at its point ({error}): the value is the cone program's"
    return Answer(**known, values=values, objective=objective, moved=moved)


def claimed_answer(
    case: Case, name: str, values: Mapping[Any, Any], seconds: float = NAN, *, place: Place = HERE
) -> Answer:
    """Measure an answer that no solver gave, with the best multipliers for it.

    Parameters
    ----------
    values : mapping of str or cvxpy.Variable to array
        One for each variable.
    seconds : float
        What it took, if that is known.
    place : Place
        Where the point is measured: at ties and kinks a solver is needed for that.

    Raises
    ------
    ModelError
        A variable without a value, or a value without a variable.
    DataError
        A value of another shape, or not finite.
    """
    held = _claimed_values(case.name, name, case.declare(), values)
    ending = place.call(_measured, case, name, held, seconds)
    if isinstance(ending.value, Answer):
        return ending.value
    return Answer(name, ending.status, 0.0, seconds=seconds, error=ending.error)


def _measured(case: Case, name: str, held: Values, seconds: float) -> Answer:
    declaration = case.declare()
    for key, value in held.items():
        declaration.variables[key].save_value(value)
    measured = measures(declaration, None)
    placed, objective, moved = _repaired(case, declaration, held) if case.exact is None else (held, NAN, 0.0)
    if case.exact is not None:
        objective = float(np.squeeze(declaration.objective.value))
    steepness = 1.0 if measured.residuals is None else measured.residuals.steepness
    return Answer(name, CLAIMED, 0.0, placed, objective, moved, **vars(measured), steepness=steepness, seconds=seconds)


def _claimed_values(case: str, name: str, declaration: Declaration, values: Mapping[Any, Any]) -> Values:
    spelled = {variable.id: key for key, variable in declaration.variables.items()}
    held: dict[str, Any] = {}
    for key, value in values.items():
        text = spelled.get(key.id, key.name()) if isinstance(key, cp.Variable) else str(key)
        if text not in declaration.variables:
            raise ModelError(
                f"{name} has a value for {text!r}, no variable of {case}: {suggest(text, spelled.values())}"
            )
        shape = declaration.variables[text].shape
        array = np.array(value, dtype=float)
        if array.shape != shape or not np.isfinite(array).all():
            raise DataError(f"{name} has a value of shape {array.shape} for {text!r}: expected finite numbers, {shape}")
        held[text] = array
    if missing := [key for key in declaration.variables if key not in held]:
        raise ModelError(f"{name} has no value for {', '.join(missing)} of {case}: give one for each variable")
    return held


def _repaired(case: Case, declaration: Declaration, raw: Values) -> tuple[Values, float, float]:
    if case.repair is None:
        moved = into_domain(declaration.problem)
        return declaration.values(), _objective(declaration), moved
    values = case.repair(raw)
    for key, value in values.items():
        declaration.variables[key].save_value(np.asarray(value, dtype=float))
    moved = max((float(np.abs(values[key] - raw[key]).max(initial=0.0)) for key in values), default=0.0)
    return values, _objective(declaration), moved


def _objective(declaration: Declaration) -> float:
    with np.errstate(all="ignore"):
        value = declaration.objective.value
    return NAN if value is None else float(np.squeeze(value))


def _unit(solution: ConicSolution) -> float:
    program = solution.program
    largest = max(float(np.abs(part).max(initial=0.0)) for part in (program.c, program.P.data))
    return min(1.0, largest) or 1.0


def _steepness(solution: ConicSolution) -> float:
    program = solution.program
    terms = [program.c]
    if solution.x is not None:
        terms.append(program.P @ solution.x)
    if solution.z is not None:
        terms.append(program.A.T @ solution.z)
    return 1.0 + max(float(np.abs(term).max(initial=0.0)) for term in terms)
