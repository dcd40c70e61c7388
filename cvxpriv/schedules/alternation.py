"""Alternation over the blocks of any multi-convex problem: passes, and stationarity of the whole problem."""

from collections.abc import Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.complex_parts import RealProblem
from cvxpriv.blocks.parts import Part, label
from cvxpriv.kkt import Residuals
from cvxpriv.numerics.arrays import Array, Values, single, starts_in
from cvxpriv.schedules.steps import Measure


def placed(problem: cp.Problem, values: Values) -> None:
    """Set the values of a problem's variables, and of the complex ones that they stand for."""
    for variable in problem.variables():
        variable.save_value(np.array(values[variable.name()], dtype=float))
    if isinstance(problem, RealProblem):
        problem.give_back()


def violation(problem: cp.Problem) -> float:
    """Return the largest violation of a constraint at the variables' values; 0 where all hold."""
    return max((float(np.max(one.violation(), initial=0.0)) for one in problem.constraints), default=0.0)


def figures(parts: Sequence[Part], blocks: Sequence[Block], *, passing: bool = False) -> Measure:
    """Return the figures of each pass, per start: objective, largest violation, and residual of the whole problem. They
    are measured after a pass: the block that was solved last stands at its optimum, and is not asked again.
    """
    problem, shared = parts[0].problem, coupling(parts)

    def of_state(state: Values) -> dict[str, Array]:
        starts = [single(state, start) for start in range(starts_in(state))]
        values, missed = [], []
        for one in starts:
            placed(problem, one)
            values.append(float(problem.objective.value))
            missed.append(violation(problem))
        asked = slice(None, -1) if passing and len(parts) > 1 and not shared else slice(None)
        found = [stationarity(parts[asked], blocks[asked], one, shared) for one in starts]
        return {"objective": np.array(values), "violation": np.array(missed), "kkt": np.array(found)}

    return of_state


def coupling(parts: Sequence[Part]) -> frozenset[str]:
    """Return the labels of constraints that stand in more than one block."""
    held = [set(part.declaration().constraints) for part in parts]
    problem = parts[0].problem
    every = (label(one, place) for place, one in enumerate(problem.constraints))
    return frozenset(name for name in every if sum(name in names for names in held) > 1)


def stationarity(
    parts: Sequence[Part], blocks: Sequence[Block], at: Values, shared: frozenset[str] | None = None
) -> float:
    """Return the largest exact residual of the whole problem's optimality conditions at a point.

    A point is stationary for the whole problem where one set of multipliers makes it stationary in each block. A
    constraint of one block has the best multipliers there; one that couples blocks must have the same in all of them,
    those that are best for one of the blocks: the least of these is returned, which bounds the residual from above.
    Where what couples the blocks has kinks this says only that no block alone can move. `blocks`: The blocks of the
    parts. `at`: The values of every variable. `shared`: The result of `coupling` for the parts, where it is known.
    """
    alone = [block.residual(at, at) for block in blocks]
    shared = coupling(parts) if shared is None else shared
    if not shared:
        return max(found.largest for found in alone)
    return min(_with_multipliers_of(found, shared, blocks, alone, at) for found in alone)


def _with_multipliers_of(
    one: Residuals, shared: frozenset[str], blocks: Sequence[Block], alone: Sequence[Residuals], at: Values
) -> float:
    taken: Mapping[str, Any] = {name: value for name, value in one.multipliers.items() if name in shared}
    largest = 0.0
    for block, own in zip(blocks, alone, strict=True):
        named = block.declaration().constraints
        duals = {name: taken.get(name, own.multipliers[name]) for name in named}
        found = block.residual(at, at, duals)
        # A point that no multipliers but its own hold in place does not move: the gradient tells.
        largest = max(largest, found.largest, found.scaled["stationarity"])
    return largest
