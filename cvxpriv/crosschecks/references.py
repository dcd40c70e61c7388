"""The reference of a cross-check: what the answers are compared with, and why.

============  =======================================================================================================
best          the answer with the smallest exact residual
closed form   the case's exact update
accurate      the best of several re-solves at tight tolerances, also with a scaled objective
values        the caller's own
============  =======================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import cvxpy as cp
import numpy as np

from cvxpriv.crosschecks.answers import Answer
from cvxpriv.crosschecks.asking import claimed_answer, solver_answer
from cvxpriv.crosschecks.cases import Case
from cvxpriv.crosschecks.problem_checks import capable
from cvxpriv.declaration import Declaration
from cvxpriv.errors import ModelError, suggest
from cvxpriv.solvers import SOLVERS
from cvxpriv.state import Values

__all__ = ["CLOSED_FORM", "KINDS", "TOLERANCES", "Reference", "ReferenceLike", "accurate_answer", "reference_of"]

CLOSED_FORM = "closed form"
"""The name under which an exact update stands in the table."""
KINDS = ("best", CLOSED_FORM, "accurate")
TOLERANCES = (1e-10, 1e-12, 1e-14)
"""What an accurate reference asks for. More than a solver can do costs iterations, and the best answer is kept."""
STEEP = 10.0
"""From this size of the gradient on the objective is also solved scaled down."""
PRECISE = ("CLARABEL", "ECOS", "HIGHS", "OSQP")
"""SCS, a first-order method, is asked only where these take none of the problem's cones."""

ReferenceLike: TypeAlias = "str | Mapping[Any, Any] | None"


@dataclass(frozen=True)
class Reference:
    """What answers are compared with.

    Attributes
    ----------
    objective : float
        In the sense of the problem; NaN if there is none.
    values : mapping of str to ndarray
        Empty if there is none.
    why : str
        What was taken, and why.
    """

    objective: float
    values: Values
    why: str


def reference_of(case: Case, answers: Sequence[Answer], wanted: ReferenceLike) -> Reference:
    """Choose the reference of a case; None is the closed form if there is one, else the best answer.

    Raises
    ------
    ModelError
        No such kind, no closed form, or values that do not fit the case's variables.
    """
    if isinstance(wanted, Mapping):
        return _of(claimed_answer(case, "reference", wanted), "the caller's own values")
    if wanted is not None and wanted not in KINDS:
        raise ModelError(f"reference={wanted!r} is not known: {suggest(str(wanted), KINDS)}, or values by variable")
    if wanted == CLOSED_FORM and case.exact is None:
        raise ModelError(f"reference='closed form': {case.name} has none; take 'best' or 'accurate'")
    if wanted == "accurate":
        return _accurate(case)
    exact = [answer for answer in answers if answer.solver == CLOSED_FORM]
    if exact and wanted != "best":
        return _of(exact[0], "closed form: exact")
    usable = [answer for answer in answers if np.isfinite(answer.quality)]
    if not usable:
        return Reference(float("nan"), {}, "none: nobody returned a solution")
    # A solution from elsewhere is judged, and judges nobody, while a solver has one.
    best = min([answer for answer in usable if answer.solver in SOLVERS] or usable, key=lambda answer: answer.quality)
    return _of(best, f"{best.solver}: smallest exact residual of {len(answers)} answers")


def accurate_answer(
    case: Case, solvers: Sequence[str] = PRECISE, solve: Callable[..., Answer] = solver_answer
) -> tuple[Answer, int]:
    """Re-solve at tight tolerances, by several solvers, also with the objective scaled; the best answer, of how many.

    Interior-point and simplex methods take no warm start; each attempt starts cold, so that none inherits an error.
    """
    names, _ = capable(case.declare().problem)
    precise = [name for name in names if name in solvers] or list(names)
    attempts = [solve(case, name, tolerance, {}) for name in precise for tolerance in TOLERANCES]
    steepness = min((answer.steepness for answer in attempts if np.isfinite(answer.quality)), default=1.0)
    if steepness > STEEP:
        scaled = replace(case, declare=_Scaled(case.declare, 1.0 / steepness), exact=None)
        for name in precise:
            for tolerance in TOLERANCES:
                answer = solve(scaled, name, tolerance, {})
                attempts.append(replace(answer, objective=answer.objective * steepness, bound=answer.bound * steepness))
    return min(attempts, key=lambda answer: answer.quality), len(attempts)


@dataclass(frozen=True)
class _Scaled:
    """A declaration whose objective is multiplied by a factor."""

    declare: Callable[[], Declaration]
    factor: float

    def __call__(self) -> Declaration:
        declaration = self.declare()
        sense = cp.Maximize if isinstance(declaration.objective, cp.Maximize) else cp.Minimize
        return replace(declaration, objective=sense(self.factor * declaration.objective.args[0]))


def _accurate(case: Case) -> Reference:
    best, count = accurate_answer(case)
    if not np.isfinite(best.quality):
        return Reference(float("nan"), {}, f"none: {count} re-solves at tight tolerances returned no solution")
    return _of(best, f"accurate: {best.solver} at {best.asked:.0e}, the best of {count} re-solves at tight tolerances")


def _of(answer: Answer, why: str) -> Reference:
    exact = f"exact residual {answer.quality:.1e}"
    if np.isfinite(answer.natural):
        exact += f", {answer.natural:.1e} from stationary"
    return Reference(answer.objective, answer.values or {}, f"{why} ({exact})")
