"""From starts to final states: the algorithm's run, after a first phase where a user's constraints ask for one."""

from __future__ import annotations

import numpy as np

from cvxpriv.blocks.engines import Engine
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array, Values, put
from cvxpriv.runs.shared_options import Watch
from cvxpriv.schedules.history import History
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Context, Loop

from . import algorithm, closed_form, measures
from .algorithm import Constraints
from .problem import Problem
from .starts import feasible_starts

__all__ = ["solve_starts"]


def solve_starts(
    problem: Problem, constraints: Constraints, loop: Loop, engine: Engine, callback: Watch | None, log_u: Array
) -> tuple[Values, Context]:
    """Run the algorithm from starts given as log P(X, Y), (starts, |X|, |Y|); return the final state and its context.

    Raises
    ------
    ModelError
        With constraints: no mechanism that satisfies them at the rate was found.
    """
    context = Context(engine, History(), callback, starts=np.arange(len(log_u)))
    state: Values = algorithm.initial_state(problem, log_u)
    if constraints:
        state = _inside(problem, constraints, state, context)
    return run(loop, state, context), context


def _inside(problem: Problem, constraints: Constraints, state: Values, context: Context) -> Values:
    """Lead every start into the constraints, at the rate; one that gets stuck begins again from an injective map."""
    climb = algorithm.phase_one(problem, constraints)
    reached = run(climb, state, context)
    stuck = np.flatnonzero(~context.reports[climb.name].converged)
    if stuck.size and problem.size_y >= problem.p_x.size:
        injective = feasible_starts(problem.p_x, problem.table.entropy_x, problem.size_y, stuck.size)
        again = run(climb, algorithm.initial_state(problem, injective), context)
        reached = put(reached, stuck, again)
        stuck = stuck[~context.reports[climb.name].converged]
    if stuck.size:
        told = float(measures.utility(reached["log_u"])[stuck].max())
        raise ModelError(
            f"constraints {', '.join(name for name, _ in constraints)}: no mechanism that satisfies them and tells "
            f"rate={problem.rate:.6g} nats was found; I(X;Y) climbed to {told:.6g}: lower rate, relax a constraint, "
            "or raise size_y"
        )
    return {**state, **closed_form.complete(reached["log_u"], problem.p_s_given_x)}
