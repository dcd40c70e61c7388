"""The answer of a solver that was given a case in other units, measured in the case's own."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import NAN, SOLVED, Answer
from cvxpriv.certify.cases import Case
from cvxpriv.certify.measuring import measured
from cvxpriv.certify.solver_answers import said
from cvxpriv.errors import CvxprivError, ModelError
from cvxpriv.kkt.conic.scaling import solve_scaled
from cvxpriv.kkt.quadratic_forms import with_every_eigenvalue
from cvxpriv.solvers.registry import solver_spec


def rescaled_answer(case: Case, solver: str, tolerance: float | None, own: Mapping[str, Any]) -> Answer:
    """Solve a case in other units by one solver, and measure its answer as if it had been solved as it is.

    Quadratic forms are compiled with every eigenvalue (`cvxpriv.kkt.quadratic_forms`). Arguments are those of
    `cvxpriv.certify.solver_answers.solver_answer`.

    Raises ModelError: The case is mixed-integer.
    """
    if case.mixed is not None:
        raise ModelError(f"{case.name} is mixed-integer: only continuous problems are solved in other units")
    declaration = case.declare()
    spec = solver_spec(solver)
    options = spec.full_options(tolerance, own)
    asked = spec.accuracy(tolerance, options)
    begun = time.perf_counter()
    try:
        whole = with_every_eigenvalue(declaration.problem)
        solution, entries = solve_scaled(whole, solver, options)
    except (CvxprivError, cp.error.SolverError) as error:
        return Answer(solver, "failed", asked, error=f"it cannot be given the problem in other units: {error}")
    except Exception as error:  # atoms raise what they like while they are compiled; the other solvers' rows stand
        return Answer(solver, "failed", asked, error=f"cvxpy cannot compile it: {type(error).__name__}: {error}")
    known = said(declaration, solver, asked, solution, time.perf_counter() - begun)
    if whole is not declaration.problem:
        known |= _bound(declaration.problem, solver, options)
    if solution.status not in SOLVED or entries is None:
        return Answer(**known)
    values = {
        name: np.reshape(entries.get(variable.id, np.zeros(variable.shape)), variable.shape, order="F")
        for name, variable in declaration.variables.items()
    }
    return Answer(**known | measured(case, values, None, solution))


def _bound(problem: cp.Problem, solver: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bound of a problem whose quadratic forms are nowhere above the true ones."""
    solution, _ = solve_scaled(with_every_eigenvalue(problem, below=True), solver, options)
    if solution.status not in SOLVED:
        return {"bound": NAN, "bound_reason": "no certificate: quadratic forms rounded downwards are not solved"}
    found = solution.lower_bound
    return {
        "bound": NAN if found.value is None else solution.program.user_value(found.value),
        "bound_reason": found.reason,
    }
