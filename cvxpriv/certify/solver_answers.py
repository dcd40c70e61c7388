"""The answer of a solver to a case, now or stored earlier, or a user's claim, with its measurements."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.blocks.declaration import Declaration
from cvxpriv.certify.answers import CLAIMED, NAN, SOLVED, Answer, Stored, measured
from cvxpriv.certify.cases import Case
from cvxpriv.errors import CvxprivError, DataError, ModelError, suggest
from cvxpriv.kkt.conic.data import extract
from cvxpriv.kkt.conic.generic import Unreadable
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.kkt.conic.scaling import solve_scaled
from cvxpriv.kkt.conic.solving import ConicSolution, solve_conic
from cvxpriv.kkt.coordinates import dense
from cvxpriv.kkt.quadratic_forms import with_every_eigenvalue
from cvxpriv.numerics.arguments import real_numbers
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.chain import try_solver
from cvxpriv.solvers.place import HERE, Place, solvers_silent
from cvxpriv.solvers.registry import solver_spec

LIMIT = 10.0
"""Seconds that each mixed-integer solver has, where it knows a limit on the clock; for ECOS_BB, see `FIRST`."""
FIRST = 30
"""Branches after which ECOS_BB, which has no clock, is asked again for as many as `LIMIT` allows, 10,000 at most."""
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "HIGHS": {"mip_rel_gap": 1e-9, "mip_abs_gap": 1e-9, "time_limit": LIMIT},
    "SCIPY": {"scipy_options": {"mip_rel_gap": 1e-9, "time_limit": LIMIT}},
    "ECOS_BB": {"mi_abs_eps": 1e-8, "mi_rel_eps": 1e-8, "mi_max_iters": FIRST},
    "SCIP": {"scip_params": {"limits/gap": 1e-9, "limits/time": LIMIT}},
    "GUROBI": {"MIPGap": 1e-9, "TimeLimit": LIMIT},
    "MOSEK": {"mosek_params": {"MSK_DPAR_MIO_TOL_REL_GAP": 1e-9, "MSK_DPAR_OPTIMIZER_MAX_TIME": LIMIT}},
}
"""Options by which solvers are asked to close the gap in time, where they are known."""
DEAF = Place(isolate=True, time_limit=20.0)
"""The place of a solve that heeds no limit on the clock."""
LARGE = 1000
"""Variables of a quadratic problem above which HiGHS may not heed its own: in 30 s, and more, for 3,873 (AUG3D)."""


def place_for(case: Case, solver: str, place: Place, own: Mapping[str, Any]) -> Place:
    """Return the place where a solver is asked: a process of its own, with a limit, where it may heed none itself."""
    if case.mixed is not None:
        return place if place.isolate or solver in OPTIONS else DEAF
    problem = case.declare().problem
    size = sum(variable.size for variable in problem.variables())
    if place.isolate or solver != "HIGHS" or size <= LARGE or problem.objective.expr.is_affine():
        return place
    seconds = own.get("time_limit")
    return DEAF if seconds is None else replace(DEAF, time_limit=10.0 + float(seconds))


def solver_answer(
    case: Case,
    solver: str,
    tolerance: float | None,
    own: Mapping[str, Any],
    *,
    warm_start: bool = False,
    rescaled: bool = False,
) -> Answer:
    """Solve a case by one solver and measure its answer.

    `tolerance`: Requested tolerance. None is the solver's own in the table.
    `own`: The caller's options, which override the tolerance.
    `warm_start`: Start from the solver's last answer, where `case` declares the same problem as then; else from a cold
    start.
    `rescaled`: Give the solver the problem in other units, and its quadratic forms with every eigenvalue. The answer is
    measured in the case's own.
    Raises ModelError: The case is mixed-integer: `cvxpriv.certify.integer_answers` asks for such answers.
    """
    if case.mixed is not None:
        raise ModelError(f"{case.name} is mixed-integer: cross-check it, or relax its variables")
    declaration = case.declare()
    spec = solver_spec(solver)
    options = spec.full_options(tolerance, own)
    asked = spec.accuracy(tolerance, options)
    whole, entries = declaration.problem, None
    begun = time.perf_counter()
    try:
        if rescaled:
            whole = with_every_eigenvalue(whole)
            solution, entries = solve_scaled(whole, solver, options)
        else:
            solution = solve_conic(whole, solver, options, warm_start=warm_start, shared=case.compilations)
    except (CvxprivError, cp.error.SolverError) as error:
        if rescaled:
            return Answer(solver, "failed", asked, error=f"it cannot be given the problem in other units: {error}")
        if isinstance(error, Unreadable):
            return _by_cvxpy(case, declaration, solver, asked, options)
        raise
    except Exception as error:  # atoms raise what they like while they are compiled; the other solvers' rows stand
        return Answer(solver, "failed", asked, error=f"cvxpy cannot compile it: {type(error).__name__}: {error}")
    known = said(declaration, solver, asked, solution, time.perf_counter() - begun)
    if whole is not declaration.problem:
        known |= _from_below(declaration.problem, solver, options)
    if solution.status not in SOLVED or (rescaled and entries is None):
        return Answer(**known)
    if entries is None:
        return Answer(**known | _of_point(case, declaration, solution))
    values = {
        name: np.reshape(entries.get(variable.id, np.zeros(variable.shape)), variable.shape, order="F")
        for name, variable in declaration.variables.items()
    }
    return Answer(**known | measured(case, values, None, solution))


def _from_below(problem: cp.Problem, solver: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bound of a problem whose quadratic forms are nowhere above the true ones."""
    solution, _ = solve_scaled(with_every_eigenvalue(problem, below=True), solver, options)
    if solution.status not in SOLVED:
        reason = "no certificate: quadratic forms rounded downwards are not solved"
        return {"bound": NAN, "bound_reason": reason, "near": NAN}
    return _bounds(solution)


def _by_cvxpy(case: Case, declaration: Declaration, solver: str, asked: float, options: Mapping[str, Any]) -> Answer:
    """Return the answer of a solver whose cone data cannot be read: its values and multipliers, as cvxpy gives them."""
    with solvers_silent():
        attempt = try_solver(declaration.problem, solver, options)
    found = _of_point(case, declaration) if attempt.status in SOLVED else {}
    known = {"seconds": attempt.seconds, "iterations": attempt.iterations, "error": attempt.message, **found}
    return Answer(solver, attempt.status, asked, bound_reason="none: its cone data cannot be read", **known)


def _of_point(case: Case, declaration: Declaration, solution: ConicSolution | None = None) -> dict[str, Any]:
    """Return the measurements of the values that a declaration holds; none where cvxpy refused to read them."""
    try:
        raw = declaration.values()
    except (TypeError, ValueError):  # the status and the error say so
        return {}
    if any(np.shape(raw[name]) != variable.shape for name, variable in declaration.variables.items()):
        return {}
    multipliers = {name: constraint.dual_value for name, constraint in declaration.constraints.items()}
    given = None if any(value is None for value in multipliers.values()) else multipliers
    return measured(case, raw, given, solution)


def said(
    declaration: Declaration, solver: str, asked: float, solution: ConicSolution, seconds: float
) -> dict[str, Any]:
    """Return the answer in a solver's raw solution."""
    program = solution.program
    known: dict[str, Any] = {
        "solver": solver,
        "status": solution.status,
        "asked": asked,
        "altered": solution.altered_by_cvxpy,
        "certificate": solution.certificate,
        "unit": program.unit,
        "seconds": seconds,
        "solver_seconds": NAN if solution.solver_seconds is None else float(solution.solver_seconds),
        "iterations": solution.iterations,
        "error": solution.error,
    }
    if solution.status.startswith(("infeasible", "unbounded")):  # the vectors are a proof, not a point
        reason = f"none: it claims {solution.status}"
        return {**known, "bound_reason": reason, "ray": _ray(declaration, solution)}
    return {**known, "cone": solution.residuals, **_bounds(solution)}


def _bounds(solution: ConicSolution) -> dict[str, Any]:
    found = solution.lower_bound
    value, near = (NAN if one is None else solution.program.user_value(one) for one in (found.value, found.near))
    return {"bound": value, "bound_reason": found.reason, "near": near}


def _ray(declaration: Declaration, solution: ConicSolution) -> Values | None:
    """Return the direction of a claim of unboundedness, by variable."""
    if solution.direction is None or not solution.status.startswith("unbounded"):
        return None
    return {
        name: solution.direction[variable.id].reshape(variable.shape, order="F")
        for name, variable in declaration.variables.items()
        if variable.id in solution.direction
    }


def claimed_answer(
    case: Case, name: str, values: Mapping[Any, Any], seconds: float = NAN, *, place: Place = HERE
) -> Answer:
    """Measure an answer that no solver gave, with the best multipliers for it.

    `values`: One value for each variable.
    `seconds`: Seconds that it took, if known.
    `place`: The place where the point is measured: at ties and kinks that needs a solver.
    Raises ModelError: A variable without a value, or a value without a variable. DataError: A value of another shape,
    or not finite.
    """
    held = claimed_values(case.name, name, case.declare(), case.split(values))
    ending = place.call(_claimed, case, name, held, seconds)
    if isinstance(ending.value, Answer):
        return ending.value
    return Answer(name, ending.status, 0.0, seconds=seconds, error=ending.error)


def _claimed(case: Case, name: str, held: Values, seconds: float) -> Answer:
    if case.exact is not None:  # a closed form is judged where it stands
        x = case.yardstick.point(held)
        objective, _ = case.yardstick.value(x)
        found: dict[str, Any] = {"values": held, "objective": objective, "measures": case.yardstick.measures(x, None)}
    else:
        found = measured(case, held, None)
    return Answer(name, CLAIMED, 0.0, seconds=seconds, **found)


def claimed_values(
    case: str, name: str, declaration: Declaration, values: Mapping[Any, Any], stored: bool = False
) -> Values:
    """Return a claim's values by the names of a declaration's variables; raises as `claimed_answer`.

    `stored`: They are a solver's, which may have given what is no number.
    """
    spelled = {variable.id: key for key, variable in declaration.variables.items()}
    held: dict[str, Any] = {}
    for key, value in values.items():
        text = spelled.get(key.id, key.name()) if isinstance(key, cp.Variable) else str(key)
        if text not in declaration.variables:
            raise ModelError(
                f"{name} has a value for {text!r}, no variable of {case}: {suggest(text, spelled.values())}"
            )
        shape = declaration.variables[text].shape
        array = real_numbers(dense(value) if sp.issparse(value) else value, f"{name}[{text!r}]")
        if array.shape != shape or not (stored or np.isfinite(array).all()):
            raise DataError(f"{name} has a value of shape {array.shape} for {text!r}: expected finite numbers, {shape}")
        held[text] = array
    if missing := [key for key in declaration.variables if key not in held]:
        raise ModelError(f"{name} has no value for {', '.join(missing)} of {case}: give one for each variable")
    return held


def stored_answer(case: Case, name: str, stored: Stored, *, place: Place = HERE) -> Answer:
    """Measure an earlier answer of a solver, with the vectors that came with it.

    Raises ModelError, DataError: As for `claimed_answer`; a solution without values; vectors without the solver's name,
    or that do not fit its cone program.
    """
    if stored.values is None and stored.status in SOLVED:
        raise ModelError(f"{name} is stored as {stored.status} without values: give one for each variable")
    declaration = case.declare()
    known: dict[str, Any] = {"solver": name, "status": stored.status, "asked": stored.asked}
    solution = None
    if stored.cone is not None:
        solution = recalled(declaration, name, stored)
        known = said(declaration, name, stored.asked, solution, NAN)
    if stored.values is None or stored.status not in SOLVED:
        return Answer(**known)
    held = claimed_values(case.name, name, declaration, case.split(stored.values), stored=True)
    ending = place.call(measured, case, held, None, solution)
    if isinstance(ending.value, dict):
        return Answer(**known | ending.value)
    return Answer(name, ending.status, stored.asked, error=ending.error)


def recalled(declaration: Declaration, name: str, stored: Stored) -> ConicSolution:
    """Return a solver's earlier solution, of the cone program that cvxpy makes for it now.

    Raises ModelError: The solver is not named. DataError: The vectors do not fit the program.
    """
    if not stored.solver:
        raise ModelError(f"{name} is stored with vectors of a cone program: name the solver that it was made for")
    spec = solver_spec(stored.solver)
    compiled = extract(declaration.problem, spec.name, spec.full_options(None, {}))
    program = ConeProgram(**compiled.fields)
    x, z = stored.cone or (None, None)
    point = _fitting(name, spec.name, "point", x, program.c.shape)
    dual = _fitting(name, spec.name, "dual", z, program.b.shape)
    direction, bounded = None if point is None else compiled.variables(point), compiled.altered_by_cvxpy
    parts = (program, point, dual, stored.status, None, None)
    return ConicSolution(*parts, direction=direction, altered_by_cvxpy=bounded)


def _fitting(name: str, solver: str, what: str, vector: Any, wanted: tuple[int, ...]) -> Array | None:
    if vector is None:
        return None
    held = np.array(vector, dtype=float)
    if held.shape != wanted:
        raise DataError(
            f"{name} is stored with a {what} of shape {held.shape}, and cvxpy's cone program for {solver} needs "
            f"{wanted}: it belongs to another problem, or to another version of cvxpy"
        )
    return held
