"""The value of a DCP form at given p and q: the smallest that its auxiliary variables allow."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import cvxpy as cp
import numpy as np

from cvxpriv.divergences.definition import FDivergence
from cvxpriv.numerics.arrays import Array
from cvxpriv.solvers.registry import fallback_chain, solver_spec

Leaf = Literal["parameter", "variable"]
#: Accuracies that are requested: at p = 0 or q = 0 a cone has no interior, and a solver may reach less.
ACCURACIES = (1e-10, 1e-7)


@dataclass(frozen=True)
class FormAt:
    """A DCP form over a vector of cells, which is evaluated at numbers.

    `size`: Number of cells.
    `leaf`, {"parameter", "variable"}: Whether p and q enter as Parameters, or as variables that equality constraints
    fix.
    """

    f: FDivergence
    size: int
    leaf: Leaf = "parameter"

    @cached_property
    def _problem(self) -> tuple[cp.Problem, cp.Parameter, cp.Parameter]:
        p, q = (cp.Parameter(self.size, nonneg=True, name=name) for name in "pq")
        if self.leaf == "parameter":
            expression, constraints = self.f.form(p, q)
            return cp.Problem(cp.Minimize(expression), constraints), p, q
        at_p, at_q = cp.Variable(self.size), cp.Variable(self.size)
        expression, constraints = self.f.form(at_p, at_q)
        return cp.Problem(cp.Minimize(expression), [*constraints, at_p == p, at_q == q]), p, q

    @cached_property
    def constraints(self) -> int:
        """Number of side constraints of the form."""
        return len(self._problem[0].constraints) - 2 * (self.leaf == "variable")

    def value(self, p: Array, q: Array, expected: float | None = None, tolerance: float = 0.0) -> float:
        """Return the form's value: inf if the side constraints exclude (p, q), NaN if no solver has an answer.

        Where a solver's answer is not within a tolerance of the expected value the others are asked too: one of them
        may be off, and none of them comes near by chance.
        """
        problem, at_p, at_q = self._problem
        at_p.value, at_q.value = p, q
        if not problem.variables() and not problem.constraints:
            with np.errstate(all="ignore"):
                return float(np.squeeze(problem.objective.args[0].value))
        return _least(problem, expected, tolerance)


def joint_form(f: FDivergence, shape: tuple[int, ...]) -> cp.Problem:
    """Return the form as a problem in variables P and Q without further constraints."""
    expression, constraints = f.form(cp.Variable(shape, name="P"), cp.Variable(shape, name="Q"))
    return cp.Problem(cp.Minimize(expression), constraints)


def why_not_dcp(problem: cp.Problem) -> str:
    """Return the part of a form that is not DCP; empty if all are."""
    parts = [("the expression", problem.objective.args[0])]
    parts += [(f"side constraint [{index}]", one) for index, one in enumerate(problem.constraints)]
    wrong = [
        f"{name} {' '.join(str(part).split())[:120]}"
        for index, (name, part) in enumerate(parts)
        if not (part.is_convex() if index == 0 else part.is_dcp())
    ]
    return "; ".join(wrong)


def is_dpp(f: FDivergence, shape: tuple[int, ...], fixed: Literal["p", "q"]) -> bool:
    """Return whether the form with one of P, Q a Parameter is compiled once for all its values."""
    given, free = cp.Parameter(shape, nonneg=True), cp.Variable(shape)
    expression, constraints = f.form(*((given, free) if fixed == "p" else (free, given)))
    return bool(cp.Problem(cp.Minimize(expression), constraints).is_dcp(dpp=True))


def _least(problem: cp.Problem, expected: float | None, tolerance: float) -> float:
    """Return the smallest value by the first solver that claims one, or a proof that there is none."""
    claimed: list[float] = []
    rough: list[float] = []
    for name in fallback_chain(None):
        for accuracy in ACCURACIES:
            status = _solve(problem, name, accuracy)
            if status in (cp.OPTIMAL, cp.INFEASIBLE, cp.UNBOUNDED):
                ends = {cp.INFEASIBLE: np.inf, cp.UNBOUNDED: -np.inf}
                claimed.append(float(ends.get(status, problem.value)))
                break
            if status == cp.OPTIMAL_INACCURATE:
                rough.append(float(problem.value))
        if claimed and (expected is None or abs(claimed[-1] - expected) <= tolerance or claimed[-1] == expected):
            return claimed[-1]
    return [*claimed, *rough, float("nan")][0]


def _solve(problem: cp.Problem, solver: str, accuracy: float) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # inaccurate, or not DPP: the status and a check of its own tell
        try:
            problem.solve(solver=solver, warm_start=False, **solver_spec(solver).options(accuracy))
        except cp.error.SolverError as error:
            return f"failed: {error}"
    return str(problem.status)
