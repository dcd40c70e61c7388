"""The local gap, certified: how far a mechanism can be below the optimum of IAS (10) at its own posterior."""

from __future__ import annotations

from cvxpriv.certify.cases import case_of_block
from cvxpriv.certify.problem_checks import capable
from cvxpriv.kkt.conic.solving import solve_conic
from cvxpriv.numerics.arrays import Values
from cvxpriv.solvers.registry import among_installed, solver_spec

from . import kkt, measures
from .joint import CERTIFIED, exact_maximiser, joint
from .measured import Constraints, with_constraints
from .problem import Problem

__all__ = ["local_gap"]

#: Whose duals are asked for a bound, in this order: at exponential cones those of ECOS can be repaired most often.
ASKED = among_installed("ECOS", "CLARABEL", "SCS")


def local_gap(problem: Problem, state: Values, constraints: Constraints = ()) -> float:
    """Return an upper bound of F* - F of (10) at a state's mechanism and posterior.

    Without constraints the bound comes from tangents of F (`kkt.joint_gap`), or, where that is loose because a solver's
    point has inaccurate derivatives, from the certified maximum of F. With constraints it is the bound that a solver's
    dual, made exactly feasible, certifies; where no solver's dual can be, that without constraints, which holds and is
    loose.

    Parameters
    ----------
    problem : Problem
    state : mapping of str to array
        The state of one start.
    constraints : tuple of (str, Constraint)
    """
    tangents = float(kkt.joint_gap(problem, state["mechanism"][None], state["posterior"][None])[0])
    if not constraints:
        return tangents if tangents <= CERTIFIED else min(tangents, _to_maximum(problem, state))
    case = case_of_block(with_constraints(joint(problem), constraints), state)
    stated = case.declare().problem
    for name in capable(stated, ASKED)[0]:
        solution = solve_conic(stated, name, solver_spec(name).full_options(None, {}))
        bound = solution.lower_bound.value
        if bound is not None:
            return float(solution.program.user_value(bound)) - problem.objective(state["mechanism"])
    return tangents


def _to_maximum(problem: Problem, state: Values) -> float:
    """Return how far F of (10) is below its maximum, by the exact update; infinite where there is none."""
    maximise = exact_maximiser(problem)
    if maximise is None:
        return float("inf")
    best, gap = maximise(state["posterior"][None])
    values = [
        measures.surrogate(one, state["posterior"], problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)
        for one in (best[0], state["mechanism"])
    ]
    return float(values[0] + gap[0] - values[1])
