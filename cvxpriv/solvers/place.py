"""The place where a solver is called, here or in a process of its own, and silence for what it prints all the same.

HiGHS prints its banner, OSQP a word on polishing. Their code is compiled and does not go through `sys.stdout`: the file
descriptor is what has to point elsewhere.
"""

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from cvxpriv.errors import SolverFailure
from cvxpriv.solvers.isolation import Ending, isolated

_LOCK = threading.Lock()
_HELD: list[int] = []
"""Copies of the descriptor of the standard output, one for each thread that currently wants silence."""


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
    import numpy as np  # here: the command line wants solvers to be silent, and to start at once

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
