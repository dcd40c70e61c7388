"""The problems that the fast path takes, and their compilation by cvxpy."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.fastpath.answer import NotFast
from cvxpriv.blocks.fastpath.solvers import OBJECTS
from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.data import without_values

#: Attributes that fix the sign of a leaf.
SIGNS = frozenset({"nonneg", "nonpos", "pos", "neg"})
#: Attributes of variables that cvxpy writes out as constraints, and reads back by a triangle or a clip.
WRITTEN = SIGNS | {"bounds", "symmetric", "PSD", "NSD"}
#: Attributes of Parameters that are checked on their values, or that leave fewer entries to be stored.
STORED = SIGNS | {"symmetric", "PSD", "NSD", "sparsity"}

#: cvxpy's reductions that leave the map from Parameters to data affine and the way back linear.
PLAIN = frozenset(
    {"FlipObjective", "Dcp2Cone", "CvxAttr2Constr", "ExactCone2Cone", "EliminateZeroSized", "ConeMatrixStuffing"}
)


@dataclass(frozen=True, eq=False)
class Compiled:
    """A problem as cvxpy compiled it for one solver."""

    solver: str
    program: Any
    dims: Any
    interface: Any
    _chain: Any
    _inverse: Any
    _variables: tuple[cp.Variable, ...]

    def invert(self, raw: Any) -> Any:
        """Return cvxpy's solution of the user's problem for a solver's raw answer, before it is moved into bounds."""
        try:
            for variable in self._variables:
                variable.project = lambda value: value
            return self._chain.invert(raw, self._inverse)
        finally:
            for variable in self._variables:
                del variable.project

    @property
    def stored(self) -> dict[int, cp.Parameter]:
        """The user's Parameters by the number under which the program stores them, of fewer entries or of all."""
        stored = {parameter.id: parameter for parameter in self.program.parameters}
        for reduction in self._chain.reductions:
            for parameter, reduced in getattr(reduction, "_parameters", {}).items():
                stored[reduced.id] = parameter
        return stored


def obstacle(problem: cp.Problem, solver: str) -> str:
    """Return the reason why the fast path does not take a problem, as far as the problem itself tells, or ""."""
    name = str(solver).upper()
    if name not in OBJECTS:
        return f"no fast path to solver {solver!r}: it has one to {', '.join(OBJECTS)}"
    if name not in cp.installed_solvers():
        return f"solver {solver!r} is not installed"
    if not problem.variables():
        return "the problem has no variables"
    if problem.is_mixed_integer():
        return "the problem has boolean or integer variables"
    if not problem.is_dcp():
        return "the problem is not DCP"
    if not problem.is_dcp(dpp=True):
        return "the problem is not DPP: move nonlinear functions of Parameters into the Parameters' values"
    for leaf, kind, taken in (
        *((one, "variable", WRITTEN) for one in problem.variables()),
        *((one, "parameter", STORED) for one in problem.parameters()),
    ):
        if others := [one for one in _attributes(leaf) if one not in taken]:
            return f"{kind} {leaf.name()!r} has the attribute {others[0]}: write it as a constraint, or as full entries"
        if leaf.attributes["bounds"] and any(isinstance(end, cp.Expression) for end in leaf.bounds):
            return f"{kind} {leaf.name()!r} has bounds that are expressions: write them as constraints"
    return ""


def _attributes(leaf: cp.Variable | cp.Parameter) -> list[str]:
    return [name for name, value in leaf.attributes.items() if value is not None and value is not False]


def value_of(parameter: cp.Parameter) -> Any:
    """Return the value that a Parameter holds, or None; that of a sparse one as a sparse matrix."""
    return parameter.value_sparse if parameter.attributes["sparsity"] else parameter.value


def compiled(problem: cp.Problem, solver: str, options: Mapping[str, Any]) -> Compiled:
    """Compile a problem for a solver; Parameters without a value keep none.

    Raises NotFast: The fast path does not take the problem.
    """
    if reason := obstacle(problem, solver):
        raise NotFast(reason)
    # HiGHS would be given bounds of variables apart, those too that cvxpy 1.9.3 finds for its own, some of them wrong
    # (the hinge loss's): it takes OSQP's form, where all are rows.
    form = "OSQP" if str(solver).upper() == "HIGHS" else str(solver).upper()
    empty = [parameter for parameter in problem.parameters() if value_of(parameter) is None]
    try:
        for parameter in empty:  # cvxpy compiles with values only, but what it compiles does not depend on them
            ones = np.ones(parameter.shape)
            parameter.save_value(ones if parameter.attributes["sparsity"] else parameter.project(ones))
        with without_values(problem), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # cvxpy reads sparse values in a way that it discourages
            data, chain, inverse = problem.get_problem_data(form, solver_opts=dict(options))
    except cp.error.SolverError as error:
        raise NotFast(str(error).splitlines()[0].replace(form, solver)) from error
    finally:
        for parameter in empty:
            parameter.save_value(None)
    others = [type(one).__name__ for one in chain.reductions[:-1] if type(one).__name__ not in PLAIN]
    if others:
        raise NotFast(f"cvxpy rewrites the problem with {', '.join(others)}")
    program = data["param_prob"]
    for tensor in (program.q, program.A, program.P):
        if tensor is not None and not np.isfinite(tensor.data).all():
            raise NotFast("the problem has NaN or infinite constants")
    variables = tuple(problem.variables())
    return Compiled(str(solver).upper(), program, data["dims"], chain.solver, chain, inverse, variables)


def named(given: Mapping[str, Any] | None, present: list[Any], what: str) -> dict[str, Any]:
    """Return names for a problem's parts of one kind: the caller's, or its own.

    Raises ModelError: The caller names a part that the problem does not have, or two of its own names are the same.
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
