"""The solve of a block in a process of its own, so that a solver that hangs or dies loses nothing else.

Each solver of the chain is asked there, one after the other. One that gives no answer in its time, or by which the
process ends, is named in the result like any other that failed, and the next one is asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import cvxpy as cp

from cvxpriv.blocks.block import Block
from cvxpriv.errors import CvxprivError, ModelError, SolverFailure, shown
from cvxpriv.numerics.arguments import finite_double
from cvxpriv.numerics.arrays import Values
from cvxpriv.solvers.chain import Attempt, Solution, Solved, solve
from cvxpriv.solvers.isolation import Worker
from cvxpriv.solvers.registry import fallback_chain

SHORTEST = 0.001
"""Least time for a call in seconds: within less nobody answers, and each try costs the start of a process."""


@dataclass(frozen=True)
class Elsewhere:
    """A process in which solvers run.

    `seconds`: Seconds for each call of a solver.
    """

    seconds: float
    worker: Worker = field(default_factory=Worker, compare=False)

    def __post_init__(self) -> None:
        if not finite_double(self.seconds) >= SHORTEST:
            raise ModelError(f"isolate={shown(self.seconds)} is not a finite number >= {SHORTEST}")

    def solve(
        self,
        block: Block,
        view: Values,
        *,
        solver: str | tuple[str, ...] | None = None,
        tolerance: float | None = None,
        fast: bool = True,
    ) -> tuple[Values, Solution]:
        """Return the same as `Block.solve`."""
        found: dict[str, tuple[Values, Solution]] = {}

        def attempt(name: str, _: Mapping[str, Any]) -> Attempt:
            ending = self.worker.call(partial(_by_one, block), view, name, tolerance, fast, time_limit=self.seconds)
            if ending.status != "returned":
                return Attempt(name, cp.SOLVER_ERROR, ending.seconds, message=ending.error)
            if isinstance(ending.value, SolverFailure):
                status = ending.value.statuses[0] if ending.value.statuses else cp.SOLVER_ERROR
                return Attempt(name, status, ending.seconds, message=str(ending.value))
            if isinstance(ending.value, CvxprivError):
                raise ending.value
            found[name] = ending.value
            return found[name][1].attempts[-1]

        def read(name: str) -> Solved:
            solution = found[name][1]
            return solution.values, solution.duals, solution.objective

        chosen = solve(attempt, read, chain=fallback_chain(solver), tolerance=tolerance)
        values, solution = found[chosen.solver]
        return values, replace(solution, attempts=chosen.attempts)


def _by_one(
    block: Block, view: Values, name: str, tolerance: float | None, fast: bool
) -> tuple[Values, Solution] | CvxprivError:
    """Solve a block by one solver in the process; return the answer, or the reason why there is none."""
    try:
        return block.solve(view, solver=(name,), tolerance=tolerance, fast=fast)
    except CvxprivError as error:
        return error
