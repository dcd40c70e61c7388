"""The figures of a state, step by step: those of a run's history, and the stopping rules on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Constraint
from cvxpriv.numerics.arrays import Array, Values, single, starts_in
from cvxpriv.schedules.steps import Measure

from . import kkt, measures
from .joint import joint
from .problem import Problem

#: Two values of F closer than this are one: the last iterate is then preferred to the best.
SAME = 1e-12
#: Fall of F that an exact joint step may have: its certified gap.
ROUNDING = 1e-11

Constraints = tuple[tuple[str, Constraint], ...]


def with_constraints(block: Block, constraints: Constraints) -> Block:
    """Return a block with a user's constraints added."""
    for name, constraint in constraints:
        block = block.constrain(name, constraint)
    return block


def figures(problem: Problem) -> Measure:
    """Return the figures of a state, per start.

    objective F, accuracy and leakage of the mechanism (whose p(u) is its own), delta = |q - p(u)|_1, and the largest
    |lambda|.
    """

    def of_state(state: Values) -> dict[str, Array]:
        mechanism = state["mechanism"]
        accuracy = measures.accuracy(mechanism, problem.p_y, problem.p_s_given_y)
        leakage = measures.leakage(mechanism, problem.p_y, problem.divergence)
        return {
            "objective": accuracy - problem.beta * leakage,
            "accuracy": accuracy,
            "leakage": leakage,
            "delta": np.abs(state["q"] - problem.p_y @ mechanism).sum(axis=-1),
            "multiplier": np.abs(state["lam"]).max(axis=-1),
        }

    return of_state


def measure(problem: Problem, constraints: Constraints = ()) -> Measure:
    """Return `figures` and the KKT residual of IAS (1); with constraints that of the joint block at its own point."""
    of_state = figures(problem)
    block = with_constraints(joint(problem), constraints) if constraints else None

    def with_residual(state: Values) -> dict[str, Array]:
        residual = block.own_residuals(state) if block else kkt.residuals(problem, state["mechanism"]).largest
        return {**of_state(state), "kkt": residual}

    return with_residual


def constrained(problem: Problem, constraints: Constraints) -> Measure:
    """Return `figures` and the gap under constraints: the gain of one more joint step, by a solver's value.

    The residual would take far longer than the step itself.
    """
    of_state, block = figures(problem), with_constraints(joint(problem), constraints)

    def with_gap(state: Values) -> dict[str, Array]:
        found = of_state(state)
        best = [block.solve(single(state, start))[1].objective for start in range(starts_in(state))]
        return {**found, "gap": np.array(best) - found["objective"]}

    return with_gap


@dataclass(frozen=True)
class Risen:
    """Stop a start when a step raised its value by at most a bound."""

    value: Callable[[Array], Array]
    bound: float

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        return np.asarray(self.value(after["mechanism"]) <= self.value(before["mechanism"]) + self.bound)


def rises(problem: Problem, before: Values, after: Values) -> npt.NDArray[np.bool_]:
    """Return which starts' F rose, or fell by no more than rounding."""
    return np.asarray(objective(problem, after["mechanism"]) >= objective(problem, before["mechanism"]) - ROUNDING)


def objective(problem: Problem, mechanism: Array) -> Array:
    """Return IAS (1) of mechanisms, (starts, |Y|, |U|)."""
    return measures.objective(mechanism, problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)


def finished(problem: Problem, state: Values) -> Array:
    """Return each start's mechanism to report, (starts, |Y|, |U|): the last one, or the kept one if it is better."""
    last, kept = objective(problem, state["mechanism"]), objective(problem, state["kept"])
    return np.where((last >= kept - SAME)[:, None, None], state["mechanism"], state["kept"])
