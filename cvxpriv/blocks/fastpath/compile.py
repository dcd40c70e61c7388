"""Which problems the fast path takes, and their compilation by cvxpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.fastpath.answer import NotFast
from cvxpriv.blocks.fastpath.solvers import OBJECTS
from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.data import without_values

__all__ = ["Compiled", "compiled", "obstacle"]

#: Attributes of a Parameter that are checked on its value; any other one changes how cvxpy stores it.
SIGNS = frozenset({"nonneg", "nonpos", "pos", "neg"})

#: cvxpy's reductions that leave the map from Parameters to data affine and the way back linear.
PLAIN = frozenset(
    {"FlipObjective", "Dcp2Cone", "CvxAttr2Constr", "ExactCone2Cone", "EliminateZeroSized", "ConeMatrixStuffing"}
)


@dataclass(frozen=True, eq=False)
class Compiled:
    """What cvxpy made of a problem for one solver.

    Attributes
    ----------
    solver : str
    program : cvxpy's parametrised cone program
    dims : cvxpy's cone dimensions
    interface : cvxpy's interface to the solver
    """

    solver: str
    program: Any
    dims: Any
    interface: Any
    _chain: Any
    _inverse: Any

    def invert(self, raw: Any) -> Any:
        """Return cvxpy's solution of the user's problem for a solver's raw answer."""
        return self._chain.invert(raw, self._inverse)


def obstacle(problem: cp.Problem, solver: str) -> str:
    """Return why the fast path does not take a problem, as far as the problem itself tells, or ""."""
    name = str(solver).upper()
    if name not in OBJECTS:
        return f"no fast path to solver {solver!r}: it has one to {', '.join(OBJECTS)}"
    if name not in cp.installed_solvers():
        return f"solver {solver!r} is not installed"
    if not problem.variables() or not problem.constraints:
        return "the problem has no variables or no constraints"
    if problem.is_mixed_integer():
        return "the problem has boolean or integer variables"
    if not problem.is_dcp():
        return "the problem is not DCP"
    if not problem.is_dcp(dpp=True):
        return "the problem is not DPP: move nonlinear functions of Parameters into the Parameters' values"
    for variable in problem.variables():
        if marked := _attributes(variable):
            return f"variable {variable.name()!r} has the attribute {marked[0]}: write it as a constraint"
    for parameter in problem.parameters():
        if marked := [one for one in _attributes(parameter) if one not in SIGNS]:
            return f"parameter {parameter.name()!r} has the attribute {marked[0]}: only signs are supported"
    return ""


def _attributes(leaf: cp.Variable | cp.Parameter) -> list[str]:
    return [name for name, value in leaf.attributes.items() if value is not None and value is not False]


def compiled(problem: cp.Problem, solver: str, options: Mapping[str, Any]) -> Compiled:
    """Compile a problem for a solver; Parameters without a value keep none.

    Raises
    ------
    NotFast
        If the fast path does not take the problem.
    """
    if reason := obstacle(problem, solver):
        raise NotFast(reason)
    empty = [parameter for parameter in problem.parameters() if parameter.value is None]
    try:
        for parameter in empty:  # cvxpy compiles with values only, but what it compiles does not depend on them
            parameter.value = parameter.project(np.ones(parameter.shape))
        with without_values(problem):
            data, chain, inverse = problem.get_problem_data(str(solver).upper(), solver_opts=dict(options))
    except cp.error.SolverError as error:
        raise NotFast(str(error).splitlines()[0]) from error
    finally:
        for parameter in empty:
            parameter.value = None
    others = [type(one).__name__ for one in chain.reductions[:-1] if type(one).__name__ not in PLAIN]
    if others:
        raise NotFast(f"cvxpy rewrites the problem with {', '.join(others)}")
    program = data["param_prob"]
    _require_finite(program)
    return Compiled(str(solver).upper(), program, data["dims"], chain.solver, chain, inverse)


def _require_finite(program: Any) -> None:
    for tensor in (program.q, program.A, program.P):
        if tensor is not None and not np.isfinite(tensor.data).all():
            raise NotFast("the problem has NaN or infinite constants")


def named(given: Mapping[str, Any] | None, present: list[Any], what: str) -> dict[str, Any]:
    """Return names for what a problem has of one kind: the caller's, or its own.

    Raises
    ------
    ModelError
        If the caller names what the problem does not have, or two of its own names are the same.
    """
    if given is not None:
        known = {one.id for one in present}
        strange = [name for name, one in given.items() if one.id not in known]
        if strange:
            raise ModelError(
                f"{what}: {', '.join(map(repr, strange))} not in the problem: leave out what it does not use"
            )
        return dict(given)
    names = [_own_name(one, index) for index, one in enumerate(present)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ModelError(f"{what}: {', '.join(map(repr, twice))} stands for several of them: pass {what}= with names")
    return dict(zip(names, present, strict=True))


def _own_name(one: Any, index: int) -> str:
    if isinstance(one, cp.Constraint):
        return one.label or f"constraint[{index}]"
    return str(one.name())
