"""The place where a solver is called, here or in a process of its own, and silence for what it prints all the same.

In a process of its own a solver that hangs or dies loses nothing else. `apart` names the process for all that is asked
within: blocks go there by themselves, other calls by `supervised`.

HiGHS prints its banner, OSQP a word on polishing. Their code is compiled and does not go through `sys.stdout`: the file
descriptor is what has to point elsewhere.
"""

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import cvxpy as cp
import numpy as np

from cvxpriv.errors import CvxprivError, ModelError, SolverFailure, shown
from cvxpriv.numerics.arguments import finite_double
from cvxpriv.numerics.arrays import Values
from cvxpriv.solvers.chain import Attempt, Solution, Solved, solve
from cvxpriv.solvers.isolation import Ending, Worker, answered_apart, isolated
from cvxpriv.solvers.registry import fallback_chain


@dataclass(frozen=True)
class Place:
    """The place where a solver is called: this process, or a new one for each call.

    `time_limit`: Seconds for each call in its process. None is `TIME_LIMIT`.
    """

    isolate: bool = False
    time_limit: float | None = None

    def call(self, function: Callable[..., Any], *arguments: Any) -> Ending:
        """Call a function at the place; in this process its errors are raised."""
        if self.isolate:
            return isolated(function, *arguments, time_limit=self.time_limit)
        begun = time.perf_counter()
        value = function(*arguments)
        return Ending("returned", value, seconds=time.perf_counter() - begun)


HERE = Place()


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


_LOCK = threading.Lock()
_HELD: list[int] = []
"""Copies of the descriptor of the standard output, one for each thread that currently wants silence."""


@contextmanager
def solvers_silent() -> Iterator[None]:
    """Send output that bypasses `sys.stdout` to nowhere; several threads may ask for it at once.

    >>> with solvers_silent():
    ...     _ = os.write(1, b"a banner")
    """
    with _LOCK:
        with suppress(OSError, ValueError, AttributeError):  # a stream of another kind, or none
            sys.stdout.flush()
        _HELD.append(os.dup(1))
        if len(_HELD) == 1:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.close(nowhere)
    try:
        yield
    finally:
        with _LOCK:
            if len(_HELD) == 1:
                os.dup2(_HELD[0], 1)
            os.close(_HELD.pop())  # the first one, which is the real one, is closed last


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings of points outside a domain, of bounds that are no numbers, of solvers: all that is measured."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def quiet_highs() -> Any:
    """Return an object of HiGHS that prints nothing: the constructor of `highspy.Highs` itself prints a banner.

    Raises SolverFailure: HiGHS is not installed.
    """
    try:
        import highspy
    except ImportError as error:
        raise SolverFailure("this needs HiGHS, which is not installed: pip install highspy") from error
    solver = highspy.Highs.__bases__[0]()
    solver.setOptionValue("output_flag", False)
    return solver
