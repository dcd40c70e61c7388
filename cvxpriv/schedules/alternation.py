"""Alternation over the blocks of any multi-convex problem: passes, and stationarity of the whole problem."""

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.convexified import Convexified
from cvxpriv.blocks.parts import RealProblem
from cvxpriv.errors import DataError
from cvxpriv.kkt import proximal_step, residuals
from cvxpriv.numerics.arrays import Array, Values, single, starts_in
from cvxpriv.schedules.steps import Measure

#: Share of the gradient below which a natural residual is compared with the proximal step; and the residual below which
#: it is where derivatives decide nothing, at a kink.
HIDDEN, AT_KINK = 1e-3, 0.1


def placed(problem: cp.Problem, values: Values) -> None:
    """Set the values of a problem's variables, and of the complex ones that they stand for."""
    for variable in problem.variables():
        variable.save_value(np.array(values[variable.name()], dtype=float))
    if isinstance(problem, RealProblem):
        problem.give_back()


def violation(problem: cp.Problem) -> float:
    """Return the largest violation of a constraint at the variables' values; 0 where all hold."""
    return max((float(np.max(one.violation(), initial=0.0)) for one in problem.constraints), default=0.0)


def figures(problem: cp.Problem) -> Measure:
    """Return the figures of each pass, per start: objective, largest violation, and residual of the whole problem.

    The residual is that of a convex problem with the same directional derivatives at the point: one set of multipliers,
    and one slope of each kink, must hold all blocks in place together.
    """
    whole = Convexified(problem, bounding=False).block()

    def of_state(state: Values) -> dict[str, Array]:
        found = []
        for start in range(starts_in(state)):
            point = single(state, start)
            placed(problem, point)
            found.append((float(problem.objective.value), violation(problem), residual_of(whole, point)))
        return dict(zip(("objective", "violation", "kkt"), np.array(found).T, strict=True))

    return of_state


def residual_of(block: Block, point: Values) -> float:
    """Return the largest residual at a point of the problem made convex around it; inf where it has no tangents.

    Natural residuals move one entry at a time: where a gradient is left that they do not show, entries may hold each
    other at a kink, and the proximal step tells.
    """
    try:
        declaration = block.place(point, point)
        found = residuals(declaration.problem, duals=None, names=declaration.constraints)
    except DataError:
        return float("inf")
    if found.largest > (HIDDEN * found.scaled["stationarity"] if found.exact else AT_KINK):
        return found.largest
    step = proximal_step(declaration.problem)
    return max(found.largest, step.move) if step.measured else found.largest
