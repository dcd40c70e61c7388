"""Quadratic forms written as sums of squares, with the small eigenvalues that cvxpy leaves out.

cvxpy leaves out eigenvalues below about 1e-10 of the largest when it compiles ``quad_form(x, P)``, so that a thin
ellipsoid becomes a strip without ends. For bounds, what rounding makes unsure is taken off each eigenvalue: then the
form is never above the true one, the feasible set never smaller, and each bound is also one of the problem as written.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.kkt.coordinates import dense
from cvxpriv.numerics.arrays import Array

Rebuild = Callable[[Any], Any]


def rebuilder(change: Callable[[Any, Rebuild], Any]) -> Rebuild:
    """Return a function that rebuilds expressions and constraints; those without a changed part stay themselves.

    `change`: Returns what takes the place of a node, given this function for the node's own parts, or None where only
    its arguments may change. It is asked once for each node.
    """
    seen: dict[int, tuple[Any, Any]] = {}  # with the nodes themselves, so that none is freed and its number reused

    def rebuilt(node: Any) -> Any:
        if id(node) not in seen:
            changed = change(node, rebuilt)
            seen[id(node)] = node, _with_parts(node, rebuilt) if changed is None else changed
        return seen[id(node)][1]

    return rebuilt


def _with_parts(node: Any, rebuilt: Rebuild) -> Any:
    args = [rebuilt(arg) for arg in node.args]
    same = all(new is old for new, old in zip(args, node.args, strict=True))
    return node if same else node.copy(args)


UNSURE = 16.0 * float(np.finfo(float).eps)
"""Rounding of an eigenvalue, for each row of its matrix and relative to the largest."""
THIN = 1e-8
"""Ratio of eigenvalues from which on a form is written out."""


def with_every_eigenvalue(problem: cp.Problem, *, below: bool = False) -> cp.Problem:
    """Return the problem with its ill-conditioned quadratic forms written out; itself where it has none.

    `below`: Take off what rounding makes unsure, so that the optimum bounds that of `problem`.

    >>> x = cp.Variable(2, name="x")
    >>> thin = cp.Problem(cp.Maximize(x[0]), [cp.quad_form(x, np.diag([1e-3, 1e8])) <= 1])
    >>> round(float(with_every_eigenvalue(thin).solve(solver="CLARABEL")), 3)
    31.623
    """
    parts = [problem.objective.args[0], *problem.constraints]
    rewritten = list(map(rebuilder(partial(_written_out, below)), parts))
    if all(new is old for new, old in zip(rewritten, parts, strict=True)):
        return problem
    return cp.Problem(type(problem.objective)(rewritten[0]), rewritten[1:])


def _written_out(below: bool, node: Any, rebuilt: Rebuild) -> Any:
    """Return an ill-conditioned form written out, and constants as they are."""
    if isinstance(node, cp.Expression) and node.is_constant():
        return node
    if isinstance(node, cp.QuadForm) and node.args[1].is_constant():
        matrix = dense(node.args[1].value)
        sign = 1.0 if node.is_convex() else -1.0
        values, vectors = _decomposed(sign * (matrix + matrix.T) / 2.0, below)
        if values.size and values[0] < THIN * values[-1]:
            return sign * cp.sum_squares((np.sqrt(values)[:, None] * vectors.T) @ rebuilt(node.args[0]))
    return None


def _decomposed(half: Array, below: bool) -> tuple[Array, Array]:
    """Return the positive eigenvalues of a symmetric matrix, rising, and their vectors."""
    if np.array_equal(half, np.diag(np.diag(half))):
        order = np.argsort(np.diag(half))
        values, vectors = np.diag(half)[order], np.eye(half.shape[0])[:, order]
    else:
        values, vectors = np.linalg.eigh(half)
        unsure = UNSURE * half.shape[0] * np.abs(values).max(initial=0.0)
        values = np.where(values > unsure, values - unsure if below else values, 0.0)
    kept = values > 0.0
    return values[kept], vectors[:, kept]
