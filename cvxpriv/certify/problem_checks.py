"""The requirements on a problem before any solver sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.reductions.solvers.defines import INSTALLED_MI_SOLVERS

from cvxpriv.blocks.declaration import why_not_dcp
from cvxpriv.errors import ModelError, NoSolverTakes
from cvxpriv.kkt.conic.bounds import not_convex
from cvxpriv.kkt.plain import remedy
from cvxpriv.solvers.registry import installed, solver_spec

ASSUMED = 1e-9
"""Relative size up to which a negative eigenvalue counts as the rounding of a semidefinite matrix."""
SHOWN = 60
"""Number of characters of a constraint's text that stand for its label."""


def label(constraint: cp.Constraint, index: int) -> str:
    """Return the name of a constraint in messages: its own label, otherwise its place and its text.

    >>> label(cp.Variable(name="x") >= 0, 2)
    '[2] 0.0 <= x'
    """
    own = getattr(constraint, "label", None)
    text = str(own) if own else f"[{index}] {constraint}"
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def solver_names(solvers: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return solvers as the table spells them, each once; None stays None.

    Raises ModelError: A solver is unknown (the message names the nearest one) or not installed, or none is named.
    """
    if solvers is None:
        return None
    asked = (solvers,) if isinstance(solvers, str) else tuple(solvers)
    if not asked:
        raise ModelError("solvers=() names no solver: name at least one, or pass None for every installed one")
    return tuple(dict.fromkeys(solver_spec(solver).name for solver in asked))


def require_checkable(name: str, problem: cp.Problem) -> None:
    """Refuse a problem that cannot be cross-checked.

    Raises ModelError: It is no problem, is not DCP (cvxpy's reason is given), or has Parameters without values (they
    are named).
    """
    if not isinstance(problem, cp.Problem):
        raise ModelError(
            f"{name} is a {type(problem).__name__}: expected a cvxpy Problem, or a function that returns one"
        )
    _require_dcp(name, problem)
    unset = [parameter.name() for parameter in problem.parameters() if parameter.value is None]
    if unset:
        raise ModelError(f"{name} has Parameters without values: set the value of {', '.join(unset)} first")


def require_sound(name: str, problem: cp.Problem) -> None:
    """Refuse data of a real, continuous problem that make no problem of it.

    Raises ModelError: NaN or infinite numbers in its data (where is said), or a quadratic form that is not convex.
    """
    require_finite(name, problem)
    _require_semidefinite(name, problem)


def require_finite(name: str, problem: cp.Problem) -> None:
    """Refuse NaN and infinite numbers in a problem's data.

    Solvers take an infinite number for a large one, each for another. Bounds that variables have as attributes may be
    infinite: cvxpy leaves such a bound out.

    Raises ModelError: A number is not finite; the message names it, and the constraint.
    """
    for part, expression in _parts(problem):
        for constant in _constants(expression):
            with np.errstate(all="ignore"):
                wrong = _not_finite(constant.value)
            if wrong:
                raise ModelError(
                    f"{name} has {wrong} in {_called(constant)} of shape {constant.shape} in the {part}: "
                    + _remedy(wrong, part)
                )


def capable(problem: cp.Problem, names: Sequence[str] | None = None) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the solvers (None: of all installed) that take this problem's cones, and the reasons against the others.

    Raises NoSolverTakes: None of them does.
    """

    def attempt(name: str) -> None:
        problem._construct_chain(solver=name, ignore_dpp=True)  # refuses as a compilation would, in a millisecond
        if cp.perspective in problem.atoms():
            problem.get_problem_data(name)  # the problem inside a perspective refuses only when it is compiled

    able, refused = _parted(attempt, installed() if names is None else names)
    unable = {name: f"takes only {', '.join(sorted(solver_spec(name).cones))}" for name in refused}
    if not able:
        every = ", ".join(f"{name} ({why})" for name, why in unable.items())
        others = [name for name in installed() if name not in unable]
        remedy = f"try {', '.join(others)}" if others else "rewrite the problem with other atoms"
        raise NoSolverTakes(f"no solver takes the problem's cones: {every}; {remedy}")
    return able, unable


def _parted(attempt: Callable[[str], object], names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the solvers that an attempt does not refuse, and the others."""
    refused = []
    for name in names:
        try:
            attempt(name)
        except (cp.error.SolverError, cp.error.DCPError):
            refused.append(name)
    return tuple(name for name in names if name not in refused), refused


def capable_of_integers(
    problem: cp.Problem, names: Sequence[str] | None = None
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The same for a mixed-integer problem; None is every solver that cvxpy finds here.

    Raises NoSolverTakes.
    """

    def attempt(name: str) -> None:
        cp.Problem(problem.objective, problem.constraints)._construct_chain(solver=name, ignore_dpp=True)

    able, refused = _parted(attempt, INSTALLED_MI_SOLVERS if names is None else names)
    unable = dict.fromkeys(refused, "takes no mixed-integer problem with these cones")
    if not able:
        every = ", ".join(f"{name} ({why})" for name, why in unable.items())
        others, _ = _parted(attempt, [name for name in INSTALLED_MI_SOLVERS if name not in refused])
        remedy = " or ".join([*others, "pip install pyscipopt"])
        raise NoSolverTakes(f"no solver takes the mixed-integer problem: {every}; try {remedy}")
    return able, unable


def _require_dcp(name: str, problem: cp.Problem) -> None:
    if problem.is_dcp():
        return
    wrong = ", ".join(part for part, expression in _parts(problem) if not expression.is_dcp())
    raise ModelError(f"{name} is not DCP in its {wrong}: {remedy(problem)}. cvxpy says: {why_not_dcp(problem)}")


def _require_semidefinite(name: str, problem: cp.Problem) -> None:
    """Refuse a quadratic form whose matrix is not as declared: psd_wrap and assume_PSD check nothing."""
    for part, expression in _parts(problem):
        for node in _quadratic_forms(expression):
            matrix = node.args[1].value
            sign = 1.0 if node.is_convex() else -1.0
            if reason := not_convex(sp.csc_array(sign * (matrix + matrix.T) / 2.0), ASSUMED):
                curved, why = "convex" if sign > 0 else "concave", reason.removeprefix("the quadratic form has ")
                raise ModelError(
                    f"{name} has a quadratic form in its {part} that is taken for {curved} and is not ({why}): "
                    "correct the matrix, or drop psd_wrap or assume_PSD"
                )


def _quadratic_forms(expression: Any) -> Iterator[Any]:
    """Return the quadratic forms with a constant matrix that is not zero."""
    for node in expression.args:
        if isinstance(node, cp.QuadForm) and node.args[1].is_constant():
            yield node
        elif not node.is_affine():
            yield from _quadratic_forms(node)


def _parts(problem: cp.Problem) -> list[tuple[str, Any]]:
    parts: list[tuple[str, Any]] = [("objective", problem.objective)]
    return parts + [(f"constraint {label(c, k)}", c) for k, c in enumerate(problem.constraints)]


def _constants(expression: Any) -> Iterator[Any]:
    """Return the largest parts of an expression without a variable."""
    for part in expression.args:
        if part.is_constant():
            yield part
        else:
            yield from _constants(part)


def _not_finite(value: Any) -> str:
    """Return the first kind of number that is not finite, or ``""``."""
    held = value  # a name that keeps its type Any after the question below
    dense = np.asarray(held.data if sp.issparse(value) else held, dtype=float)
    if np.isnan(dense).any():
        return "NaN"
    return "an infinite number" if np.isinf(dense).any() else ""


def _called(constant: Any) -> str:
    if isinstance(constant, cp.Parameter):
        return f"Parameter {constant.name()!r}"
    return "a constant" if isinstance(constant, cp.Constant) else f"the constant part {str(constant)[:SHOWN]}"


def _remedy(wrong: str, part: str) -> str:
    if wrong == "NaN" or part == "objective":
        return "correct the data"
    return "drop the rows that it makes hold always, and correct those that it makes impossible"
