"""Mixed-integer problems, taken apart: the continuous relaxation, and the restrictions to whole numbers or sets.

With the restricted entries fixed at allowed values, a convex problem is left, which is judged like any other. The
relaxation, and its branches, bound the optimum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.kkt.coordinates import dense
from cvxpriv.numerics.arrays import Array

KINDS = ("boolean", "integer")


@dataclass(frozen=True, eq=False)
class Restriction:
    """A flat expression of the relaxation whose entries are whole numbers, or belong to a set.

    `expression`: (k,). `allowed`: Allowed values in increasing order. None is every whole number.
    """

    expression: Any
    allowed: Array | None
    name: str

    @property
    def value(self) -> Array:
        """Return the current values of its entries."""
        return dense(self.expression.value).ravel(order="F")

    @property
    def off(self) -> float:
        """Return the largest distance of its entries from allowed values, relative."""
        at = self.value
        return float((np.abs(at - self.nearest(at)) / np.maximum(1.0, np.abs(at))).max(initial=0.0))

    def nearest(self, at: Array) -> Array:
        """Return the nearest allowed value of each entry."""
        if self.allowed is None:
            return np.round(at)
        distances = np.abs(at[:, None] - self.allowed[None])
        return np.asarray(self.allowed[distances.argmin(axis=1)], dtype=float)

    def around(self, at: float) -> tuple[float, float]:
        """Return the allowed values on both sides of a number; infinite where there is none."""
        if self.allowed is None:
            return float(np.floor(at)), float(np.floor(at)) + 1.0
        below, above = self.allowed[self.allowed <= at], self.allowed[self.allowed > at]
        return float(below.max(initial=-np.inf)), float(above.min(initial=np.inf))


@dataclass(frozen=True, eq=False)
class MixedInteger:
    """A mixed-integer problem.

    `problem`: The problem as its user wrote it.
    `relaxed`: The problem without restrictions, in twins of the restricted variables.
    `twins`: Each variable of the problem, and its twin; itself where it is not restricted.
    """

    problem: cp.Problem
    relaxed: cp.Problem
    restrictions: tuple[Restriction, ...]
    twins: tuple[tuple[cp.Variable, cp.Variable], ...]

    def off(self) -> tuple[float, str]:
        """Return the distance of the twins' values from allowed ones, relative, and the place of the largest."""
        worst = max(self.restrictions, key=lambda one: one.off)
        return worst.off, worst.name

    def round(self) -> None:
        """Make the twins' whole numbers exact."""
        for variable, twin in self.twins:
            if variable is not twin:
                flat = dense(twin.value).ravel(order="F")
                whole = np.concatenate([_entries(variable, kind) for kind in KINDS])
                flat[whole] = np.round(flat[whole])
                twin.save_value(flat.reshape(twin.shape, order="F"))

    def fixed(self) -> cp.Problem:
        """Return the convex problem with the restricted entries fixed at the nearest allowed values."""
        held = [one.expression == one.nearest(one.value) for one in self.restrictions]
        return cp.Problem(self.relaxed.objective, [*self.relaxed.constraints, *held])

    def within(self, boxes: Sequence[tuple[Array, Array]]) -> cp.Problem:
        """Return the relaxation with each restricted entry between two numbers."""
        limits = []
        for one, (low, high) in zip(self.restrictions, boxes, strict=True):
            for side, sign in ((low, 1.0), (high, -1.0)):
                finite = np.flatnonzero(np.isfinite(side))
                if finite.size:
                    limits.append(sign * one.expression[finite] >= sign * side[finite])
        return cp.Problem(self.relaxed.objective, [*self.relaxed.constraints, *limits])


def mixed_integer(problem: cp.Problem) -> MixedInteger | None:
    """Return a problem with boolean or integer variables or finite sets, taken apart; None where there are none.

    >>> x = cp.Variable(integer=True, name="x")
    >>> apart = mixed_integer(cp.Problem(cp.Minimize(x), [x >= 0.5]))
    >>> [one.name for one in apart.restrictions]
    ['x']
    """
    sets = [constraint for constraint in problem.constraints if isinstance(constraint, cp.FiniteSet)]
    variables = problem.variables()
    if not sets and not any(variable.attributes[kind] for variable in variables for kind in KINDS):
        return None
    twins = {variable.id: _twin(variable) for variable in variables}
    walk = _Walk(twins)
    objective = type(problem.objective)(walk.rebuilt(problem.objective.args[0]))
    constraints = [
        constraint.copy([walk.rebuilt(arg) for arg in constraint.args])
        for constraint in problem.constraints
        if not isinstance(constraint, cp.FiniteSet)
    ]
    restrictions: list[Restriction] = []
    for variable in variables:
        flat = cp.vec(twins[variable.id], order="F")
        for kind, entries in (("boolean", _entries(variable, "boolean")), ("integer", _entries(variable, "integer"))):
            if not entries.size:
                continue
            allowed = np.array([0.0, 1.0]) if kind == "boolean" else None
            restrictions.append(Restriction(flat[entries], allowed, variable.name()))
    restrictions += [_of_set(constraint, walk) for constraint in sets]
    constraints += list(_limits(restrictions))
    pairs = tuple((variable, twins[variable.id]) for variable in variables)
    return MixedInteger(problem, cp.Problem(objective, constraints), tuple(restrictions), pairs)


def _twin(variable: cp.Variable) -> cp.Variable:
    """Return a continuous variable with all other attributes; the variable itself where it is continuous."""
    if not any(variable.attributes[kind] for kind in KINDS):
        return variable
    kept = {name: value for name, value in variable.attributes.items() if name not in KINDS and value is not None}
    return cp.Variable(
        variable.shape, name=variable.name(), **{name: one for name, one in kept.items() if one is not False}
    )


def _entries(variable: cp.Variable, kind: str) -> np.ndarray:
    """Return the entries of a variable, column-major, that are boolean or integer."""
    if not variable.attributes[kind]:
        return np.zeros(0, dtype=int)
    places = np.arange(variable.size).reshape(variable.shape, order="F")
    if variable.attributes[kind] is True:
        return np.sort(places.ravel())
    index = variable.boolean_idx if kind == "boolean" else variable.integer_idx
    # cvxpy reads the list as numpy does: all first coordinates, then all second ones.
    return np.sort(np.ravel([places[tuple(np.asarray(one, dtype=int) for one in index)]]))


def _of_set(constraint: cp.FiniteSet, walk: _Walk) -> Restriction:
    expression, values = constraint.args[0], constraint.vec.value
    return Restriction(
        cp.vec(walk.rebuilt(expression), order="F"), np.unique(dense(values).ravel()), str(constraint)[:40]
    )


def _limits(restrictions: Sequence[Restriction]) -> Iterator[Any]:
    """Return the constraints that finite sets imply for the relaxation."""
    for one in restrictions:
        if one.allowed is not None:
            yield one.expression >= float(one.allowed[0])
            yield one.expression <= float(one.allowed[-1])


class _Walk:
    """A walk over expressions that puts twins in the places of variables."""

    def __init__(self, twins: dict[int, cp.Variable]) -> None:
        self.twins = twins
        self.seen: dict[int, Any] = {}

    def rebuilt(self, node: Any) -> Any:
        """Return the same expression of the twins."""
        if id(node) not in self.seen:
            self.seen[id(node)] = self._rebuilt(node)
        return self.seen[id(node)]

    def _rebuilt(self, node: Any) -> Any:
        if isinstance(node, cp.Variable):
            return self.twins[node.id]
        if not node.args:
            return node
        args = [self.rebuilt(arg) for arg in node.args]
        same = all(new is old for new, old in zip(args, node.args, strict=True))
        return node if same else node.copy(args)
