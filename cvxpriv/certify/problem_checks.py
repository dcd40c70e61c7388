"""The requirements on a problem before any solver sees it."""

from collections.abc import Iterator, Sequence
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
                value = constant.value
            held: Any = value  # a name that keeps its type after the question whether it is sparse
            numbers = np.asarray(held.data if sp.issparse(value) else held, dtype=float)
            if not np.isfinite(numbers).all():
                wrong = "NaN" if np.isnan(numbers).any() else "an infinite number"
                raise ModelError(
                    f"{name} has {wrong} in {_called(constant)} of shape {constant.shape} in the {part}: "
                    + _remedy(wrong, part)
                )


def capable(problem: cp.Problem, names: Sequence[str] | None = None) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the solvers that take this problem's cones, and the reasons against the others.

    `names`: None is every installed one; for a mixed-integer problem, every one that cvxpy finds here.
    Raises NoSolverTakes: None of them does.
    """
    problem, sets = cp.Problem(problem.objective, problem.constraints), problem.constraints
    # cvxpy does not count finite sets, and hands the relaxation to whatever takes it.
    mixed = problem.is_mixed_integer() or any(isinstance(one, cp.FiniteSet) for one in sets)
    every = INSTALLED_MI_SOLVERS if mixed else installed()
    asked = every if names is None else names
    able = tuple(name for name in asked if _takes(problem, name))
    what = "takes no mixed-integer problem with these cones"
    unable = {
        name: what if mixed else f"takes only {', '.join(sorted(solver_spec(name).cones))}"
        for name in asked
        if name not in able
    }
    if not able:
        refusals = ", ".join(f"{name} ({why})" for name, why in unable.items())
        others = [name for name in every if name not in unable and _takes(problem, name)]
        others += ["pip install pyscipopt"] if mixed else []
        kind = "mixed-integer problem" if mixed else "problem's cones"
        remedy = (
            f"try {' or '.join(others) if mixed else ', '.join(others)}"
            if others
            else "rewrite the problem with other atoms"
        )
        raise NoSolverTakes(f"no solver takes the {kind}: {refusals}; {remedy}")
    return able, unable


def _takes(problem: cp.Problem, name: str) -> bool:
    try:
        problem._construct_chain(solver=name, ignore_dpp=True)  # refuses as a compilation would, in a millisecond
        if cp.perspective in problem.atoms():
            problem.get_problem_data(name)  # the problem inside a perspective refuses only when it is compiled
    except (cp.error.SolverError, cp.error.DCPError):
        return False
    return True


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


def _called(constant: Any) -> str:
    if isinstance(constant, cp.Parameter):
        return f"Parameter {constant.name()!r}"
    return "a constant" if isinstance(constant, cp.Constant) else f"the constant part {str(constant)[:SHOWN]}"


def _remedy(wrong: str, part: str) -> str:
    if wrong == "NaN" or part == "objective":
        return "correct the data"
    return "drop the rows that it makes hold always, and correct those that it makes impossible"
