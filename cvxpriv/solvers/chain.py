"""One solve along a chain of solvers, and a record of every attempt.

The next solver is asked whatever a solver does: it may raise any error (a panic of compiled code too), report `optimal`
with no numbers, or with a point that satisfies nothing. The result lists the attempts, and why each was left.
"""

import logging
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.errors import CvxprivError, SolverFailure
from cvxpriv.numerics.arrays import Values
from cvxpriv.solvers.registry import solver_spec

_LOG = logging.getLogger(__name__)
OUT_OF_MEMORY = "out of memory: merge symbols, or take an engine with exact updates, such as closed_form"
NOT_THE_SOLVER = (KeyboardInterrupt, SystemExit, GeneratorExit, CvxprivError, cp.error.DCPError, cp.error.DPPError)
"""Exceptions during a solve that are not the solver's fault."""
FARTHEST = 1e-3
"""Largest violation of a constraint, relative to its terms, of an answer that is considered."""
_SOLVED = (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)


class Unusable(SolverFailure):
    """An answer is unusable: it has no numbers, or a point far outside of the constraints."""


@dataclass(frozen=True)
class Attempt:
    """One attempt of a solver: its status, seconds, iterations, and errors."""

    solver: str
    status: str
    seconds: float
    iterations: int | None = None
    message: str = ""


#: Repaired values and multipliers by name, and the objective there.
Solved = tuple[Mapping[str, Any], Mapping[str, Any], float]


@dataclass(frozen=True)
class Solution:
    """A solver's solution, by the names of the declaration.

    `values`, `duals`: Repaired variables, and multipliers. L = objective + sum of dual * (lhs - rhs) for a
    minimisation, and a maximisation of -f has the multipliers of the minimisation of f.
    `objective`: Objective at `values`, which are repaired.
    `attempts`: Every solver tried; the last one answered.
    `rounds`: Number of solves of the problem; more than once only for a block with cuts (`cvxpriv.blocks.refinement`).
    `gap`, `bound`: For a block with cuts: the optimum lies between `bound`, the best value of the cut problems as their
    solvers claim it, and `objective`, which is `gap` away.
    `refined`: For a block with cuts: the view entries that hold the last ones. `crosscheck(block, at={**view,
    **refined})` certifies the bound.
    `reached`: Whether the gap is as small as requested.
    """

    values: Mapping[str, Any]
    duals: Mapping[str, Any]
    objective: float
    attempts: tuple[Attempt, ...]
    rounds: int = 1
    gap: float | None = None
    bound: float | None = None
    refined: Values = field(default_factory=dict)
    reached: bool = True

    @property
    def solver(self) -> str:
        """Name of the solver that answered."""
        return self.attempts[-1].solver

    @property
    def status(self) -> str:
        """Its status, with the fallback named when it was not the first choice, and a gap that stayed open."""
        status = self.attempts[-1].status
        if len(self.attempts) > 1:
            failed = ", ".join(f"{attempt.solver}: {attempt.status}" for attempt in self.attempts[:-1])
            status = f"{status} after {failed}"
        return status if self.reached else f"{status}, gap {self.gap:.1e} after {self.rounds} rounds"


def try_solver(problem: cp.Problem, name: str, options: Mapping[str, Any], *, symbolic: bool = True) -> Attempt:
    """Run one solver; return an Attempt whatever it does.

    `symbolic`: Whether Parameters stay symbols, so that the next solve need not compile (`Declaration.symbolic`).
    """
    begun = time.perf_counter()
    message = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cvxpy repeats the status as a warning; the Attempt carries it
        for variable in problem.variables():  # cvxpy compiles with their values: a lie would spoil the next solve
            held: Any = variable.value  # that of a diagonal variable is sparse
            if held is not None and not np.isfinite(held.data if hasattr(held, "toarray") else held).all():
                variable.save_value(None)
        try:
            problem.solve(solver=name, warm_start=False, ignore_dpp=not symbolic, **options)
            status = str(problem.status)
        except cp.error.SolverError as error:
            status, message = cp.SOLVER_ERROR, _told(error)
        except NOT_THE_SOLVER:
            raise
        except BaseException as error:  # a panic of compiled code is no Exception
            status, message = cp.SOLVER_ERROR, raised(error)
    stats = problem.solver_stats if status in _SOLVED else None
    return Attempt(name, status, time.perf_counter() - begun, stats.num_iters if stats else None, message)


def raised(error: BaseException) -> str:
    """Return a solver's error in words."""
    return OUT_OF_MEMORY if isinstance(error, MemoryError) else f"{type(error).__name__}: {error}".splitlines()[0]


def _told(error: cp.error.SolverError) -> str:
    """Return cvxpy's message without the parts that repeat the status: the failure, and ``verbose=True``."""
    text = str(error).splitlines()[0]
    return "" if "failed. Try another solver" in text else text


def _supervised(
    attempt_by: Callable[[str, Mapping[str, Any]], Attempt],
    read: Callable[[str], Solved],
    name: str,
    options: Mapping[str, Any],
) -> tuple[Attempt, Solved | None]:
    """Run one solver and read its answer; None where there is none, whatever came in its place."""
    begun = time.perf_counter()
    attempt = Attempt(name, cp.SOLVER_ERROR, 0.0)
    try:
        attempt = attempt_by(name, options)
        return attempt, read(name) if attempt.status in _SOLVED else None
    except Unusable as error:
        return replace(attempt, status=cp.SOLVER_ERROR, message=f"{attempt.status}, but {error}"), None
    except NOT_THE_SOLVER:
        raise
    except BaseException as error:
        seconds = time.perf_counter() - begun
        return replace(attempt, status=cp.SOLVER_ERROR, seconds=seconds, message=raised(error)), None


def solve(
    attempt_by: Callable[[str, Mapping[str, Any]], Attempt],
    read: Callable[[str], Solved],
    *,
    chain: Sequence[str],
    tolerance: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Solution:
    """Solve along a chain of solvers and return the first answer that is `optimal`, else the first inaccurate one.

    `attempt_by`: Maps (solver name, full option set) to an Attempt, for example by `try_solver`. Keep one problem per
    solver: alternating solvers on one problem compiles it again each time.
    `read`: Maps a solver name to (values, duals, objective) of that problem, by name: the values repaired, the
    objective there. A solver's own value is not used: CLARABEL calls `optimal` a point slightly outside the domain,
    where the objective is infinite.
    `tolerance`: Requested feasibility and gap; None is each solver's own from the table.
    `options`: Options of the first solver of the chain, which override its tolerance set.
    """
    attempts: list[Attempt] = []
    second_best: Solution | None = None
    for position, name in enumerate(chain):
        own = options or {} if position == 0 else {}
        asked = solver_spec(name).full_options(tolerance, own)
        attempt, answer = _supervised(attempt_by, read, name, asked)
        _LOG.debug("%s %s: %s in %.3g s %s", name, asked, attempt.status, attempt.seconds, attempt.message)
        if answer is not None:
            values, duals, objective = answer
            if not np.isfinite(objective):
                attempt = replace(attempt, message=f"objective {objective} at its own point")
            elif attempt.status == cp.OPTIMAL:
                return Solution(values, duals, objective, (*attempts, attempt))
            elif second_best is None:
                second_best = Solution(values, duals, objective, (attempt,))
        attempts.append(attempt)
    if second_best is not None:
        rest = [attempt for attempt in attempts if attempt is not second_best.attempts[0]]
        return replace(second_best, attempts=(*rest, *second_best.attempts))
    tried = "; ".join(
        f"{attempt.solver}: {attempt.status}" + (f" ({attempt.message})" if attempt.message else "")
        for attempt in attempts
    )
    failure = SolverFailure(f"no solver of the chain answered: {tried}; {_remedy(attempts)}")
    failure.statuses = tuple(attempt.status for attempt in attempts)
    raise failure


def _remedy(attempts: Sequence[Attempt]) -> str:
    said = {attempt.status.removesuffix("_inaccurate") for attempt in attempts} - {cp.SOLVER_ERROR}
    if said == {cp.INFEASIBLE}:
        return (
            "no point meets the constraints: loosen one, or start elsewhere where they depend on values that are held"
        )
    if said == {cp.UNBOUNDED}:
        return (
            "to these solvers the objective improves without end: add constraints that bound it, or scale numbers that "
            "are far from 1"
        )
    return "loosen the tolerance or pass other solvers"
