"""The local gap, certified: how far a mechanism can be below the optimum of IAS (10) at its own posterior."""

from __future__ import annotations

from cvxpriv.certify.cases import case_of_block
from cvxpriv.kkt.conic.solving import solve_conic
from cvxpriv.numerics.arrays import Values
from cvxpriv.solvers.registry import solver_spec

from . import kkt
from .joint import joint
from .measured import Constraints, with_constraints
from .problem import Problem

__all__ = ["local_gap"]

#: Whose duals are asked for a bound, in this order: at exponential cones those of ECOS can be repaired most often.
ASKED = ("ECOS", "CLARABEL", "SCS")


def local_gap(problem: Problem, state: Values, constraints: Constraints = ()) -> float:
    """Return an upper bound of F* - F of (10) at a state's mechanism and its own posterior.

    Without constraints the bound comes from tangents of F (`kkt.joint_gap`). With constraints it is the bound that a
    solver's dual, made exactly feasible, certifies; where no solver's dual can be, that without constraints, which
    holds and is loose.

    Parameters
    ----------
    problem : Problem
    state : mapping of str to array
        Of one start.
    constraints : tuple of (str, Constraint)
    """
    free = float(kkt.joint_gap(problem, state["mechanism"][None], state["posterior"][None])[0])
    if not constraints:
        return free
    case = case_of_block(with_constraints(joint(problem), constraints), state)
    for name in ASKED:
        solution = solve_conic(case.declare().problem, name, solver_spec(name).full_options(None, {}))
        bound = solution.lower_bound.value
        if bound is not None:
            return float(solution.program.user_value(bound)) - problem.objective(state["mechanism"])
    return free
