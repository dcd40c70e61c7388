"""Inner problems and logic written out: indicators of constraints, optimal values, and boolean functions.

``indicator(C)`` is zero where the constraints C hold, so that they hold at every solution; a `partial_optimize` is the
best value of an inner problem, whose variables are then variables of the whole. ``And``, ``Or`` and ``Xor`` are boolean
variables with linear constraints. Written out, each is the same problem, and every function in it can be evaluated.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
from cvxpy.atoms.elementwise import logic
from cvxpy.transforms.indicator import indicator
from cvxpy.transforms.partial_optimize import PartialProblem

LOGIC = (logic.And, logic.Or, logic.Xor, logic.Not)


def lifted(problem: cp.Problem) -> cp.Problem:
    """Return the same problem without indicators and inner problems; itself where it has none.

    >>> x = cp.Variable(name="x")
    >>> len(lifted(cp.Problem(cp.Minimize(x + cp.transforms.indicator([x >= 1])))).constraints)
    1
    """
    walk = _Walk()
    objective = walk.rebuilt(problem.objective.args[0])
    constraints = [walk.constraint(constraint) for constraint in problem.constraints]
    if not walk.found:
        return problem
    constraints += walk.constraints
    return cp.Problem(type(problem.objective)(objective), constraints)


class _Walk:
    """One walk over a problem, with the constraints that it finds."""

    def __init__(self) -> None:
        self.found = False
        self.constraints: list[Any] = []
        self.seen: dict[int, Any] = {}

    def constraint(self, constraint: Any) -> Any:
        """Return a constraint, written out."""
        args = [self.rebuilt(arg) for arg in constraint.args]
        same = all(new is old for new, old in zip(args, constraint.args, strict=True))
        return constraint if same else constraint.copy(args)

    def rebuilt(self, node: Any) -> Any:
        """Return an expression, written out."""
        if id(node) not in self.seen:
            self.seen[id(node)] = self._rebuilt(node)
        return self.seen[id(node)]

    def _rebuilt(self, node: Any) -> Any:
        if isinstance(node, indicator):
            self.found = True
            self.constraints += [self.constraint(one) for one in node.args]
            return cp.Constant(0.0)
        if isinstance(node, PartialProblem):
            self.found = True
            inner = node.args[0]
            self.constraints += [self.constraint(one) for one in inner.constraints]
            return self.rebuilt(inner.objective.args[0])
        if not node.args:
            return node
        args = [self.rebuilt(arg) for arg in node.args]
        if isinstance(node, LOGIC):
            self.found = True
            return self._in_numbers(node, args)
        same = all(new is old for new, old in zip(args, node.args, strict=True))
        return node if same else node.copy(args)

    def _in_numbers(self, node: Any, args: list[Any]) -> Any:
        """Return a boolean function as a number, with constraints that make it 0 or 1 where its arguments are."""
        if isinstance(node, logic.Not):
            return 1 - args[0]
        value = cp.Variable(node.shape, boolean=True)
        total = sum(args[1:], args[0])
        if isinstance(node, logic.And):
            self.constraints += [*(value <= arg for arg in args), value >= total - (len(args) - 1)]
        elif isinstance(node, logic.Or):
            self.constraints += [*(value >= arg for arg in args), value <= total]
        else:
            pairs = cp.Variable(node.shape, integer=True)
            self.constraints += [total == 2 * pairs + value, pairs >= 0, pairs <= len(args) // 2]
        return value
