"""The solver table, the tolerances it stands for, and the fallback chain.

A solver keeps options from one solve of a problem to the next (CLARABEL does), so every solve here passes its full
tolerance set. A solver that reports `optimal` with a value that is no number has failed. What was tried, and why it
was left, stands in the result.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.errors import ModelError, SolverFailure, suggest

_SOLVED = (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)

__all__ = [
    "DEFAULT_CHAIN",
    "SOLVERS",
    "Attempt",
    "Solution",
    "SolverSpec",
    "fallback_chain",
    "installed",
    "solve",
    "solver_spec",
    "try_solver",
]


@dataclass(frozen=True)
class SolverSpec:
    """One row of the solver table.

    Attributes
    ----------
    name : str
        As cvxpy spells it.
    cones : frozenset of str
        Among zero, nonneg, soc, exp, power, psd; `quadratic` when it takes a quadratic objective.
    tolerance : float
        Feasibility and gap asked for when the caller says nothing: what the solver reaches on well-scaled entropy
        blocks. Asking for more than it can do costs its full iteration limit and an `optimal_inaccurate`.
    options : callable
        Tolerance to the full set of options; passed at every solve.
    licence : str
        Of the solver itself.
    note : str
        What a user should know before trusting it.
    main_option : str
        The option that says how accurate a solution has to be.
    """

    name: str
    cones: frozenset[str]
    tolerance: float
    options: Callable[[float], dict[str, Any]]
    licence: str
    note: str
    main_option: str

    def full_options(self, tolerance: float | None, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole option set: for a tolerance (None is the table's), with a caller's own on top."""
        return {**self.options(self.tolerance if tolerance is None else tolerance), **own}


def _clarabel(tolerance: float) -> dict[str, Any]:
    return {
        "tol_gap_abs": tolerance,
        "tol_gap_rel": tolerance,
        "tol_feas": tolerance,
        "tol_infeas_abs": tolerance,
        "tol_infeas_rel": tolerance,
        "tol_ktratio": min(1e-6, 100 * tolerance),
        "max_iter": 200,
    }


def _ecos(tolerance: float) -> dict[str, Any]:
    return {"abstol": tolerance, "reltol": tolerance, "feastol": tolerance, "max_iters": 200}


def _scs(tolerance: float) -> dict[str, Any]:
    return {"eps_abs": tolerance, "eps_rel": tolerance, "eps_infeas": min(1e-7, tolerance), "max_iters": 10_000}


def _osqp(tolerance: float) -> dict[str, Any]:
    return {
        "eps_abs": tolerance,
        "eps_rel": tolerance,
        "eps_prim_inf": tolerance,
        "eps_dual_inf": tolerance,
        "max_iter": 200_000,
        "polishing": True,
    }


def _highs(tolerance: float) -> dict[str, Any]:
    bounded = max(tolerance, 1e-10)  # HiGHS refuses anything tighter
    return {"primal_feasibility_tolerance": bounded, "dual_feasibility_tolerance": bounded}


SOLVERS: Mapping[str, SolverSpec] = {
    spec.name: spec
    for spec in (
        SolverSpec(
            "CLARABEL",
            frozenset({"zero", "nonneg", "soc", "exp", "power", "psd", "quadratic"}),
            1e-10,
            _clarabel,
            "Apache-2.0",
            "interior point; minimisers are only as good as the square root of its gap",
            "tol_gap_rel",
        ),
        SolverSpec(
            "ECOS",
            frozenset({"zero", "nonneg", "soc", "exp"}),
            1e-9,
            _ecos,
            "GPL-3.0",
            "interior point; the most accurate of the three on small entropy problems",
            "reltol",
        ),
        SolverSpec(
            "SCS",
            frozenset({"zero", "nonneg", "soc", "exp", "power", "psd", "quadratic"}),
            1e-7,
            _scs,
            "MIT",
            "first order; can report a false optimum with exponential cones: read its dual cone distance",
            "eps_rel",
        ),
        SolverSpec(
            "OSQP",
            frozenset({"zero", "nonneg", "quadratic"}),
            1e-8,
            _osqp,
            "Apache-2.0",
            "first order with a polishing step; linear and quadratic problems",
            "eps_rel",
        ),
        SolverSpec(
            "HIGHS",
            frozenset({"zero", "nonneg", "quadratic"}),
            1e-9,
            _highs,
            "MIT",
            "simplex, interior point and active set; linear and quadratic problems",
            "dual_feasibility_tolerance",
        ),
    )
}

#: The order in which solvers are tried when one fails.
DEFAULT_CHAIN = ("CLARABEL", "ECOS", "SCS")


@cache
def installed() -> tuple[str, ...]:
    """Return the solvers of the table that this machine has, in the table's order."""
    present = set(cp.installed_solvers())
    return tuple(name for name in SOLVERS if name in present)


def solver_spec(name: str) -> SolverSpec:
    """Return the table's row for a solver.

    Raises
    ------
    ModelError
        If the table has no such solver, or it is not installed.

    Examples
    --------
    >>> solver_spec("clarabel").licence
    'Apache-2.0'
    """
    spec = SOLVERS.get(str(name).upper())
    if spec is None:
        raise ModelError(f"solver={name!r} is not in cvxpriv's table: {suggest(str(name).upper(), SOLVERS)}")
    if spec.name not in installed():
        raise ModelError(f"solver={name!r} is not installed: pip install {spec.name.lower()}")
    return spec


def fallback_chain(solver: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the solvers to try, in order: the one asked for, then the rest of the default chain.

    A sequence is taken as it is: nothing is added to it.

    >>> fallback_chain("ECOS")
    ('ECOS', 'CLARABEL', 'SCS')
    """
    if solver is None:
        return DEFAULT_CHAIN
    if isinstance(solver, str):
        first = solver_spec(solver).name
        return (first, *(name for name in DEFAULT_CHAIN if name != first))
    chain = tuple(solver_spec(name).name for name in solver)
    if not chain:
        raise ModelError("solver=() names no solver: pass at least one of " + ", ".join(SOLVERS))
    return chain


@dataclass(frozen=True)
class Attempt:
    """One solver's try: its status, seconds, iterations, and what went wrong."""

    solver: str
    status: str
    seconds: float
    iterations: int | None = None
    message: str = ""


#: Repaired values and multipliers by name, and the objective there.
Solved = tuple[Mapping[str, Any], Mapping[str, Any], float]


@dataclass(frozen=True)
class Solution:
    """What a solver found, by the names of the declaration.

    Attributes
    ----------
    values, duals : dict of str to ndarray
        Repaired variables, and multipliers. L = objective + sum of dual * (lhs - rhs) for a minimisation, and a
        maximisation of -f has the multipliers of the minimisation of f.
    objective : float
        At `values`, which are repaired.
    attempts : tuple of Attempt
        Every solver tried; the last one is the one that answered.
    """

    values: Mapping[str, Any]
    duals: Mapping[str, Any]
    objective: float
    attempts: tuple[Attempt, ...]

    @property
    def solver(self) -> str:
        """The solver that answered."""
        return self.attempts[-1].solver

    @property
    def status(self) -> str:
        """Its status, with the fallback named when it was not the first choice."""
        last = self.attempts[-1]
        if len(self.attempts) == 1:
            return last.status
        failed = ", ".join(f"{attempt.solver}: {attempt.status}" for attempt in self.attempts[:-1])
        return f"{last.status} after {failed}"


def try_solver(problem: cp.Problem, name: str, options: Mapping[str, Any]) -> Attempt:
    """Run one solver; whatever it does, an Attempt comes back."""
    begun = time.perf_counter()
    message = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cvxpy repeats the status as a warning; the Attempt carries it
        try:
            problem.solve(solver=name, warm_start=False, **options)
            status = str(problem.status)
        except cp.error.SolverError as error:
            status, message = "solver_error", str(error).splitlines()[0]
    stats = problem.solver_stats if status in _SOLVED else None
    return Attempt(name, status, time.perf_counter() - begun, stats.num_iters if stats else None, message)


def solve(
    attempt_by: Callable[[str, Mapping[str, Any]], Attempt],
    read: Callable[[str], Solved],
    *,
    chain: Sequence[str],
    tolerance: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Solution:
    """Solve along a chain of solvers and return the first answer that is `optimal`, else the first inaccurate one.

    Parameters
    ----------
    attempt_by : callable
        (solver name, full option set) to an Attempt, for example by `try_solver`. Keep one problem a solver:
        alternating solvers on one problem compiles it again each time.
    read : callable
        Solver name to (values, duals, objective) of that problem, by name: the values repaired, the objective at the
        repaired values. A solver's own value is not asked: CLARABEL calls `optimal` a point a hair outside the domain,
        where the objective is infinite.
    chain : sequence of str
        Solvers in the order to try.
    tolerance : float, optional
        Feasibility and gap asked for; None is each solver's own from the table.
    options : mapping, optional
        Passed to the first solver of the chain on top of its tolerance set.

    Raises
    ------
    SolverFailure
        If no solver of the chain has an answer; the message lists every attempt.
    """
    attempts: list[Attempt] = []
    second_best: Solution | None = None
    for position, name in enumerate(chain):
        own = options or {} if position == 0 else {}
        attempt = attempt_by(name, solver_spec(name).full_options(tolerance, own))
        if attempt.status in _SOLVED:
            values, duals, objective = read(name)
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
    raise SolverFailure(f"no solver of the chain answered: {tried}; loosen the tolerance or pass other solvers")
