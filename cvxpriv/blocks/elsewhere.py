"""Solvers in a process of their own, one after the other: one that hangs or dies loses nothing else.

`apart` names the process for all that is asked within: blocks go there by themselves, other calls by `supervised`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import cvxpy as cp

from cvxpriv.errors import CvxprivError, ModelError, SolverFailure, shown
from cvxpriv.numerics.arguments import finite_double
from cvxpriv.numerics.arrays import Values
from cvxpriv.solvers.chain import Attempt, Solution, Solved, solve
from cvxpriv.solvers.isolation import Worker, answered_apart
from cvxpriv.solvers.registry import fallback_chain

Result = TypeVar("Result")

SHORTEST = 0.001
"""Least time for a call in seconds: within less nobody answers, and each try costs the start of a process."""

SHARE = 0.8
"""Share of such a time for a search that ends by itself."""


class Solvable(Protocol):
    """A block, or a problem that is asked as one."""

    def solve(
        self,
        view: Values,
        *,
        solver: str | tuple[str, ...] | None = None,
        tolerance: float | None = None,
        fast: bool = True,
    ) -> tuple[Values, Solution]:
        """See `Block.solve`."""
        ...


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

    def answer(self, what: str, function: Callable[..., Result], *arguments: Any) -> Result:
        """Return what a function returns there, or raise its typed error: see `answered_apart`."""
        return answered_apart(what, function, *arguments, seconds=self.seconds, worker=self.worker)

    def solve(
        self,
        block: Solvable,
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
    block: Solvable, view: Values, name: str, tolerance: float | None, fast: bool
) -> tuple[Values, Solution] | CvxprivError:
    """Solve a block by one solver in the process; return the answer, or the reason why there is none."""
    try:
        with apart(None):
            return block.solve(view, solver=(name,), tolerance=tolerance, fast=fast)
    except CvxprivError as error:
        return error


_WITHIN: ContextVar[Elsewhere | None] = ContextVar("within", default=None)


@contextmanager
def apart(elsewhere: Elsewhere | None) -> Iterator[None]:
    """Let solvers that are asked within run in a process; None: here."""
    before = _WITHIN.set(elsewhere)
    try:
        yield
    finally:
        _WITHIN.reset(before)


def process() -> Elsewhere | None:
    """Return the process of `apart`; None outside of it."""
    return _WITHIN.get()


def within(seconds: float) -> float:
    """Return the seconds that a search may take, `seconds` at most, to end before its process is ended."""
    there = process()
    return seconds if there is None else min(seconds, SHARE * there.seconds)


def supervised(what: str, function: Callable[..., Result], *arguments: Any) -> Result:
    """Return what a function returns, called here, or in the process of `apart`: see `answered_apart`.

    >>> supervised("the sum", sum, (1, 2))
    3
    """
    there = process()
    return function(*arguments) if there is None else there.answer(what, function, *arguments)
