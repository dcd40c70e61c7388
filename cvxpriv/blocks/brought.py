"""Values of the variables that a user's constraint adds, at a given mechanism.

An epigraph t >= f(P), t <= bound has a t at every mechanism, but none is written there. The chosen t misses the
constraints by the least, and is feasible if any is.
"""

from __future__ import annotations

import cvxpy as cp

from cvxpriv.blocks.declaration import Declaration
from cvxpriv.blocks.infeasibility import relaxed
from cvxpriv.errors import SolverFailure
from cvxpriv.solvers.chain import Solved, solve, try_solver
from cvxpriv.solvers.registry import DEFAULT_CHAIN


def give_values(declaration: Declaration) -> None:
    """Set the values of the variables that constraints add, while all other variables of a declaration stay.

    Raises SolverFailure: No solver of the usual chain finds such values.
    """
    for name, own in declaration.brought.items():
        parts = [declaration.constraints[label] for label in declaration.added[name]]
        ours = {declaration.variables[label].id for label in own}
        others = {one.id: one for part in parts for one in part.variables() if one.id not in ours}
        held = {key: one.value for key, one in others.items()}
        slack = cp.Variable(nonneg=True)
        wider = [one for part in parts for one in (relaxed(part, slack) or [part])]
        pinned = [one == held[key] for key, one in others.items()]
        problem = cp.Problem(cp.Minimize(slack), [*wider, *pinned])

        def read(_: str, problem: cp.Problem = problem) -> Solved:
            return {}, {}, float(problem.value)

        try:
            solve(lambda solver, options, one=problem: try_solver(one, solver, options), read, chain=DEFAULT_CHAIN)  # type: ignore[misc]
        except SolverFailure as failure:
            raise SolverFailure(
                f"constraint {name!r} brings variables of its own, and no solver finds their values at a given "
                f"mechanism: {failure}"
            ) from failure
        finally:
            for key, value in held.items():
                others[key].value = value
