"""Earlier answers of a solver on some machine, measured again as its own word, without solving."""

from typing import Any

import numpy as np

from cvxpriv.blocks.declaration import Declaration
from cvxpriv.certify.answers import NAN, SOLVED, Answer, Stored, measured
from cvxpriv.certify.cases import Case
from cvxpriv.certify.solver_answers import claimed_values, said
from cvxpriv.errors import DataError, ModelError
from cvxpriv.kkt.conic.data import extract
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.kkt.conic.solving import ConicSolution
from cvxpriv.numerics.arrays import Array
from cvxpriv.solvers.place import HERE, Place
from cvxpriv.solvers.registry import solver_spec


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
    held = claimed_values(case.name, name, declaration, case.split(stored.values))
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
    direction, bounded = None if point is None else compiled.variables(point), compiled.bounded_by_cvxpy
    parts = (program, point, dual, stored.status, None, None)
    return ConicSolution(*parts, direction=direction, bounded_by_cvxpy=bounded)


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
