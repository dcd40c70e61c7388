"""Compilations of one problem for several solvers, which share the steps that are the same.

cvxpy compiles a problem in a chain of reductions, of which only the last depends on the solver by name. The steps
before it depend on a few of the solver's abilities: a quadratic objective, bounds on variables, power cones. They are
done once for all solvers that are alike in these.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import PowCone3D, PowConeND
from cvxpy.reductions.cvx_attr2constr import CvxAttr2Constr
from cvxpy.reductions.dcp2cone.cone_matrix_stuffing import ConeMatrixStuffing
from cvxpy.reductions.dcp2cone.dcp2cone import Dcp2Cone
from cvxpy.reductions.eliminate_zero_sized import EliminateZeroSized
from cvxpy.reductions.eval_params import EvalParams
from cvxpy.reductions.flip_objective import FlipObjective
from cvxpy.reductions.solvers.solver_inverse_data import SolverInverseData
from cvxpy.reductions.solvers.solving_chain import SolvingChain

SHARED = (EvalParams, FlipObjective, Dcp2Cone, CvxAttr2Constr, EliminateZeroSized, ConeMatrixStuffing)
"""The steps that solvers share where they are alike; a chain with others is compiled for its solver alone."""
CONTEXTUAL = (cp.perspective,)
"""Atoms that ask for the solver by name."""
POWERS = (PowCone3D, PowConeND)
"""Cones whose support decides how these atoms are written:"""
POWERED = {"Power", "Pnorm", "GeoMean"}


class Compilations:
    """Compilations of one problem. A problem of other expressions or other Parameter values is compiled anew."""

    def __init__(self) -> None:
        self._begun: dict[Hashable, tuple[Any, SolvingChain, list[Any]]] = {}
        self._subject: tuple[Any, ...] = ()
        self._values: list[Any] = []

    def data(self, problem: cp.Problem, solver: str, options: Mapping[str, object]) -> tuple[Any, Any, list[Any]]:
        """Return data, chain and inverse data, as `cvxpy.Problem.get_problem_data` does."""
        self._require_same(problem)
        chain = problem._construct_chain(solver=solver, ignore_dpp=True, solver_opts=dict(options))
        key = _likeness(problem, chain)
        if key is None:
            data, inverse = chain.apply(problem)
        else:
            if key not in self._begun:
                self._begun[key] = _stuffed(problem, chain)
            stuffed, first, before = self._begun[key]
            # Reductions remember what they did: the chain that inverts has to hold those that were applied.
            chain = SolvingChain(
                reductions=[*first.reductions[:-1], chain.reductions[-1]], solver_context=chain.solver_context
            )
            data, last = chain.reductions[-1].apply(stuffed)
            inverse = [*before, last]
        return data, chain, [*inverse[:-1], SolverInverseData(inverse[-1], chain.solver, dict(options))]

    def _require_same(self, problem: cp.Problem) -> None:
        """Forget what was compiled of other expressions or with other values."""
        subject = (problem.objective, *problem.constraints)
        values = [_dense(parameter.value) for parameter in problem.parameters()]
        same = len(subject) == len(self._subject) and all(a is b for a, b in zip(subject, self._subject, strict=True))
        if not (same and all(np.array_equal(a, b) for a, b in zip(values, self._values, strict=True))):
            self._begun.clear()
        self._subject, self._values = subject, values


def _stuffed(problem: cp.Problem, chain: SolvingChain) -> tuple[Any, SolvingChain, list[Any]]:
    """Return the problem before the solver's own step, the chain, and the inverse data of its steps."""
    current: Any = problem
    inverse = []
    for reduction in chain.reductions[:-1]:
        current, undo = reduction.apply(current)
        inverse.append(undo)
    return current, chain, inverse


def _likeness(problem: cp.Problem, chain: SolvingChain) -> Hashable | None:
    """Return what the steps before the solver's own depend on; None where nothing is to be shared."""
    steps = chain.reductions[:-1]
    atoms = problem.atoms()
    names = {one.__name__.removesuffix("Approx") for atom in atoms for one in atom.__mro__}
    if not all(type(step) in SHARED for step in steps) or any(issubclass(atom, CONTEXTUAL) for atom in atoms):
        return None
    context = chain.solver_context
    return (
        tuple(type(step) for step in steps),
        chain.get(Dcp2Cone).quad_obj,
        chain.get(ConeMatrixStuffing).quad_obj,
        chain.get(CvxAttr2Constr).reduce_bounds,
        context.solver_supports_bounds,
        tuple(cone in context.solver_supported_constraints for cone in POWERS) if POWERED & names else (),
    )


def _dense(value: Any) -> Any:
    held = value
    return held.toarray() if sp.issparse(value) else held
