"""The most that Y may tell of X under constraints on each posterior P(X|y), by a linear program over vertices.

I(X;Y) = H(X) - sum_y P(y) H(P(X|y)), and H is concave: where posteriors are kept in a polytope, its vertices do best.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from cvxpriv.blocks.declaration import Constraint
from cvxpriv.bounds.master import Master
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.divergences import divergence
from cvxpriv.errors import SolverFailure
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.information import entropy

from .columns import mechanism_of
from .problem import Problem

MOST_BASES = 60_000
"""Largest number of sets of inequalities that are tried as a vertex: a second of work."""

OUTSIDE = 1e-9
"""Distance outside an inequality, relative to its largest coefficient, that is rounding: kept, for the bound."""

FLAT = 1e-12
"""Determinant below which inequalities that are rows of length 1 meet in no point."""

LIMITED = ("local_differential_privacy", "local_information_privacy", "pointwise_leakage", "maximal_leakage")
"""Constraints with a limit on log p(y|x) / p(y), or on its average: I(X;Y) is not above it."""


def most_told(problem: Problem, constraints: Sequence[tuple[str, Constraint]]) -> tuple[float, Array | None]:
    """Return a bound of I(X;Y) under constraints, in nats, and a mechanism that reaches it; None where none is known.

    Those that are not on each posterior are left out, or only counted in the bound. The mechanism may have up to |X|
    outputs, whatever |Y| is.
    """
    ready = [one for _, one in constraints if isinstance(one, ReadyConstraint)]
    most = min([problem.table.entropy_x, float(np.log(problem.size_y)), *map(_limit, ready)])
    size, rows = len(problem.p_x), np.vstack([_inequalities(problem, one) for one in ready] or [np.zeros((0, 1))])
    if not len(rows) or math.comb(len(rows) + size, size - 1) > MOST_BASES:
        return most, None
    corners = _vertices(np.vstack([rows, -np.eye(size)]))
    program = Master(problem.p_x, problem.p_x)
    program.add(entropy(corners, axis=0), corners)
    try:
        best = program.solve()
    except SolverFailure:
        return most, None
    reached = float(problem.table.entropy_x - best.value)
    used = best.weights > 0.0
    return min(most, reached), mechanism_of(corners[:, used], best.weights[used], problem.p_x)


def _limit(one: ReadyConstraint) -> float:
    """Return the bound that a constraint alone puts on I(X;Y), in nats; inf where it is none of the known ones."""
    given = one.parameters
    of_input = one.kind in ("local_differential_privacy", "maximal_leakage") or given.get("of") == "input"
    if one.kind in LIMITED and of_input and not given.get("delta", 0.0):
        return float(given.get("epsilon", given.get("bound", np.inf)))
    told = one.kind == "f_information" and of_input and divergence(given["f"]).name == "mutual-information"
    return float(given["bound"]) if told else np.inf


def _inequalities(problem: Problem, one: ReadyConstraint) -> Array:
    """Rows g with g.pi <= 0 for each posterior pi that a constraint allows, (k, |X|)."""
    p, given, none = problem.p_x, one.parameters, np.zeros((0, len(problem.p_x)))
    if one.kind == "local_differential_privacy" and not given.get("delta", 0.0):
        ratio, first, second = np.eye(len(p)) / p[:, None], *np.nonzero(~np.eye(len(p), dtype=bool))
        return np.asarray(np.exp(-given["epsilon"]) * ratio[first] - ratio[second])
    if one.kind not in ("local_information_privacy", "pointwise_leakage"):
        return none
    told = np.eye(len(p)) if given["of"] == "input" else problem.p_s_given_x
    ratio = told[(told @ p) > 0.0] / (told @ p)[(told @ p) > 0.0, None]
    above = np.exp(-given["epsilon"]) * ratio - 1.0
    return np.vstack([above, np.exp(-given["epsilon"]) - ratio]) if one.kind == "local_information_privacy" else above


def _vertices(rows: Array) -> Array:
    """The vertices of {pi : rows pi <= 0, sum pi = 1}, (|X|, n)."""
    rows = rows / np.maximum(np.abs(rows).max(axis=1, keepdims=True), OUTSIDE)
    size = rows.shape[1]
    bases = np.array(list(itertools.combinations(range(len(rows)), size - 1)), dtype=np.intp)
    square = np.concatenate([rows[bases], np.ones((len(bases), 1, size))], axis=1)
    square = square[np.abs(np.linalg.det(square)) > FLAT]
    right = np.zeros((len(square), size, 1))
    right[:, -1] = 1.0
    points = np.linalg.solve(square, right)[:, :, 0].T
    points = np.maximum(points[:, (rows @ points <= OUTSIDE).all(axis=0)], 0.0)
    return np.asarray(np.unique(np.round(points / points.sum(axis=0), 14), axis=1))
