"""Answers: what a solver, a closed form or anybody else says the solution of a case is, and what is measured of it.

An answer holds figures and arrays only, nothing of the solver, so that it can come from another process.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.conic.program import ConicSolution, solve_conic
from cvxpriv.conic.residuals import Certificate, ConeResiduals
from cvxpriv.crosschecks.cases import Case
from cvxpriv.crosschecks.domain import into_domain
from cvxpriv.crosschecks.verdicts import Evidence
from cvxpriv.declaration import Declaration
from cvxpriv.errors import DataError, ModelError, suggest
from cvxpriv.kkt.conditions import Residuals, residuals
from cvxpriv.solvers import solver_spec
from cvxpriv.state import Values

__all__ = ["CLAIMED", "Answer", "claimed_answer", "solver_answer"]

CLAIMED = "claimed"
"""The status of an answer that no solver gave."""
_SOLVED = (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
NAN = float("nan")
NEAR = 1e-6
"""A natural residual that needs no better multipliers than the solver's."""


@dataclass(frozen=True)
class Answer:
    """One answer to one case.

    Attributes
    ----------
    solver : str
        Or the name under which a claimed answer stands.
    status : str
        The solver's own, ``"claimed"``, or what became of its process.
    asked : float
        The tolerance it was asked for.
    values : mapping of str to ndarray, optional
        The variables' values, in the domain.
    objective : float
        There, in the sense of the problem; NaN without values.
    moved : float
        The largest move of a value into the domain.
    residuals : Residuals, optional
        Of the problem as written, at the solver's own point; None where its functions have no derivative there.
    missed : tuple of (float, str)
        The worst violation of a constraint as written, relative to its sides, and the constraint.
    cone : ConeResiduals, optional
        Of the cone program.
    certificate : Certificate, optional
        Of a claim of infeasibility or unboundedness, checked.
    bound : float
        Certified bound on the optimum from the dual, in the sense of the problem: lower for a minimisation, upper for
        a maximisation. NaN where there is none.
    bound_reason : str
        Where it comes from, or why there is none.
    steepness : float
        One plus the largest term of the cone program's gradient.
    reach : float
        The largest entry of the cone program's point.
    seconds, solver_seconds : float
        Wall time with compilation, and the solver's own clock.
    iterations : int or None
    error : str
        What was raised, or what could not be measured.
    """

    solver: str
    status: str
    asked: float
    values: Values | None = None
    objective: float = NAN
    moved: float = 0.0
    residuals: Residuals | None = None
    missed: tuple[float, str] = (0.0, "")
    cone: ConeResiduals | None = None
    certificate: Certificate | None = None
    bound: float = NAN
    bound_reason: str = "no certificate: there is no dual"
    steepness: float = 1.0
    reach: float = NAN
    seconds: float = NAN
    solver_seconds: float = NAN
    iterations: int | None = None
    error: str = ""

    @property
    def displacement(self) -> float:
        """How far the point is from stationary, relative.

        The natural residual in the units of the variables, or the stationarity in those of the gradient, whichever is
        less: a flat problem has a large step and a tiny gradient, a steep one a large gradient and a tiny step.
        """
        if self.residuals is None or self.values is None:
            return 0.0
        size = 1.0 + max((float(np.abs(value).max(initial=0.0)) for value in self.values.values()), default=0.0)
        return min(self.residuals.natural / size, self.residuals.stationarity / self.steepness)

    @property
    def quality(self) -> float:
        """The largest exact residual of all, relative: the smaller, the better the answer."""
        if self.status not in (*_SOLVED, CLAIMED) or not np.isfinite(self.objective):
            return float("inf")
        cone = 0.0 if self.cone is None else self.cone.largest
        primal = self.residuals.primal if self.cone is None and self.residuals is not None else 0.0
        return max(cone, primal, self.displacement)

    def evidence(self, reference: float) -> Evidence:
        """What a verdict on this answer rests on, beside a reference's objective."""
        return Evidence(
            status=self.status,
            asked=self.asked,
            objective=self.objective,
            reference=reference,
            residuals=self.cone,
            displacement=self.displacement,
            missed=self.missed,
            certificate=self.certificate,
            error=self.error,
            bound=self.bound,
        )


def solver_answer(case: Case, solver: str, tolerance: float | None, own: Mapping[str, Any]) -> Answer:
    """Solve a case by one solver, from a cold start, and measure what it returns.

    Parameters
    ----------
    tolerance : float, optional
        None is the solver's own in the table.
    own : mapping
        The caller's options on top of the tolerance set.
    """
    declaration = case.declare()
    spec = solver_spec(solver)
    options = spec.full_options(tolerance, own)
    asked = float(options[spec.main_option])
    begun = time.perf_counter()
    solution = solve_conic(declaration.problem, solver, options)
    seconds = time.perf_counter() - begun
    bound = solution.lower_bound
    known: dict[str, Any] = {
        "solver": solver,
        "status": solution.status,
        "asked": asked,
        "cone": solution.residuals,
        "certificate": solution.certificate,
        "bound": NAN if bound.value is None else solution.program.user_value(bound.value),
        "bound_reason": bound.reason,
        "steepness": _steepness(solution),
        "reach": NAN if solution.x is None else float(np.abs(solution.x).max(initial=0.0)),
        "seconds": seconds,
        "solver_seconds": NAN if solution.solver_seconds is None else float(solution.solver_seconds),
        "iterations": solution.iterations,
        "error": solution.error,
    }
    if solution.status not in _SOLVED:
        if solution.status.startswith(("infeasible", "unbounded")):  # the vectors are a proof, not a point
            known |= {"cone": None, "bound": NAN, "bound_reason": f"none: it claims {solution.status}"}
        return Answer(**known)
    try:
        raw = declaration.values()
    except (TypeError, ValueError):  # cvxpy refused to read the answer: the status and the error say so
        return Answer(**known)
    measured = _best_measured(declaration)
    missed = _missed(declaration, measured)
    try:
        values, objective, moved = _repaired(case, declaration, raw)
    except Exception as error:  # atoms of cvxpy raise what they like: perspective an AssertionError where s is near 0
        value = NAN if solution.x is None else solution.program.value(solution.x)
        values, objective, moved = raw, solution.program.user_value(value), 0.0
        known["error"] = f"its objective cannot be evaluated at its point ({error}): the value is the cone program's"
    return Answer(**known, values=values, objective=objective, moved=moved, residuals=measured, missed=missed)


def claimed_answer(case: Case, name: str, values: Mapping[Any, Any], seconds: float = NAN) -> Answer:
    """Measure an answer that no solver gave, with the best multipliers for it.

    Parameters
    ----------
    values : mapping of str or cvxpy.Variable to array
        One for each variable.

    Raises
    ------
    ModelError
        A variable without a value, or a value without a variable.
    DataError
        A value of another shape, or not finite.
    """
    declaration = case.declare()
    held = _claimed_values(case.name, name, declaration, values)
    for key, value in held.items():
        declaration.variables[key].save_value(value)
    measured = _as_written(declaration, None)
    missed = _missed(declaration, measured)
    placed, objective, moved = _repaired(case, declaration, held) if case.exact is None else (held, NAN, 0.0)
    if case.exact is not None:
        objective = float(np.squeeze(declaration.objective.value))
    return Answer(name, CLAIMED, 0.0, placed, objective, moved, measured, missed, seconds=seconds)


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


def _best_measured(declaration: Declaration) -> Residuals | None:
    """Residuals with the solver's multipliers, or with the best ones where those make the point look worse."""
    own = _as_written(declaration, "solver")
    if own is not None and own.natural <= NEAR:
        return own
    best = _as_written(declaration, None)
    return min((found for found in (own, best) if found is not None), key=lambda found: found.natural, default=None)


def _as_written(declaration: Declaration, duals: Any) -> Residuals | None:
    """Residuals of the problem as written; None where its functions have no derivative, such as log of -1e-5."""
    try:
        with np.errstate(all="ignore"):
            return residuals(declaration.problem, duals=duals, names=declaration.constraints)
    except Exception:  # atoms of cvxpy raise what they like; without these residuals the cone program's still judge
        return None


def _missed(declaration: Declaration, measured: Residuals | None) -> tuple[float, str]:
    """The worst violation of a constraint, relative to the size of its sides."""
    if measured is None:
        return 0.0, ""
    worst = (0.0, "")
    for name, constraint in declaration.constraints.items():
        sides = [np.abs(np.asarray(arg.value, dtype=float)) for arg in constraint.args if not arg.is_complex()]
        size = 1.0 + max((float(side.max(initial=0.0)) for side in sides), default=0.0)
        worst = max(worst, (measured.by_constraint.get(name, (0.0,))[0] / size, name))
    return worst


def _steepness(solution: ConicSolution) -> float:
    program = solution.program
    terms = [program.c]
    if solution.x is not None:
        terms.append(program.P @ solution.x)
    if solution.z is not None:
        terms.append(program.A.T @ solution.z)
    return 1.0 + max(float(np.abs(term).max(initial=0.0)) for term in terms)
