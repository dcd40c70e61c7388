"""Mixed-integer problems, taken apart: the continuous relaxation, and the restrictions to whole numbers or sets.

With the restricted entries fixed at allowed values, a convex problem is left, which is judged like any other. The
relaxation, and its branches, bound the optimum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.kkt.coordinates import dense
from cvxpriv.kkt.quadratic_forms import rebuilder
from cvxpriv.numerics.arrays import Array, Flags

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

    def fixed(self) -> cp.Problem:
        """Return the convex problem with the restricted entries fixed at the nearest allowed values.

        Whole numbers are made exact, and are constants in it: in ``x <= 1e6*b`` a b of 1e-6 must not hide an x of 1.
        """
        held, exact = [one.expression == one.nearest(one.value) for one in self.restrictions], {}
        for variable, twin in self.twins:
            if variable is not twin:
                whole, value = _mask(variable, *KINDS), dense(twin.value)
                twin.save_value(np.where(whole, np.round(value), value))
                fixed = np.where(whole, twin.value, 0.0)
                rest = cp.multiply(np.where(whole, 0.0, 1.0), twin)
                exact[twin.id] = cp.Constant(fixed) if whole.all() else rest + fixed
        rebuilt = rebuilder(lambda node, _: exact.get(node.id) if isinstance(node, cp.Variable) else None)
        objective = type(self.relaxed.objective)(rebuilt(self.relaxed.objective.args[0]))
        return cp.Problem(objective, [*map(rebuilt, self.relaxed.constraints), *held])

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
    rebuilt = rebuilder(lambda node, _: twins[node.id] if isinstance(node, cp.Variable) else None)
    objective = type(problem.objective)(rebuilt(problem.objective.args[0]))
    constraints = [
        constraint.copy([rebuilt(arg) for arg in constraint.args])
        for constraint in problem.constraints
        if not isinstance(constraint, cp.FiniteSet)
    ]
    restrictions = []
    for variable in variables:
        flat = cp.vec(twins[variable.id], order="F")
        for kind, allowed in zip(KINDS, (np.array([0.0, 1.0]), None), strict=True):
            if (entries := np.flatnonzero(_mask(variable, kind).ravel(order="F"))).size:
                restrictions.append(Restriction(flat[entries], allowed, variable.name()))
    for one in sets:
        values = np.unique(dense(one.vec.value).ravel())
        restrictions.append(Restriction(cp.vec(rebuilt(one.args[0]), order="F"), values, str(one)[:40]))
    for one in restrictions:
        if one.allowed is not None:  # what finite sets imply for the relaxation
            constraints += [one.expression >= float(one.allowed[0]), one.expression <= float(one.allowed[-1])]
    pairs = tuple((variable, twins[variable.id]) for variable in variables)
    return MixedInteger(problem, cp.Problem(objective, constraints), tuple(restrictions), pairs)


def _twin(variable: cp.Variable) -> cp.Variable:
    """Return a continuous variable with all other attributes; the variable itself where it is continuous."""
    if not any(variable.attributes[kind] for kind in KINDS):
        return variable
    kept = {
        name: value
        for name, value in variable.attributes.items()
        if name not in KINDS and value is not None and value is not False
    }
    return cp.Variable(variable.shape, name=variable.name(), **kept)


def _mask(variable: cp.Variable, *kinds: str) -> Flags:
    """Return which entries of a variable are boolean or integer."""
    found = np.zeros(variable.shape, dtype=bool)
    for kind in kinds:
        if variable.attributes[kind] is True:
            found[...] = True
        elif variable.attributes[kind]:
            index = variable.boolean_idx if kind == "boolean" else variable.integer_idx
            # cvxpy reads the list as numpy does: all first coordinates, then all second ones.
            found[tuple(np.asarray(one, dtype=int) for one in index)] = True
    return found
