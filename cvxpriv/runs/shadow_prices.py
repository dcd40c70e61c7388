"""Shadow prices: the cost of a unit of each constraint at an optimum.

At an optimum the objective's derivative by any number in the problem is that of the Lagrangian, taken at the solution x
and its multipliers z: of ``1/2 x'Px + c'x + z'(Ax - b)`` of the cone program. So one solve gives the price of every
constraint. A ready constraint is priced by its own parameter (a nat of epsilon), a hand-written one by the cvxpy
Parameters that stand in it, and one without any by a slack in all its inequalities. An equality can have many right
multipliers, as a forbidden cell has beside p >= 0: it is opened by a little slack and solved again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.blocks.infeasibility import relaxed
from cvxpriv.certify.cases import declared
from cvxpriv.certify.problem_checks import capable
from cvxpriv.constraints.documents import from_document
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.errors import CvxprivError, SolverFailure
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.kkt.conic.solving import ConicSolution, solve_conic
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.packages import pd
from cvxpriv.solvers.registry import DEFAULT_CHAIN, solver_spec

#: The quantity that prices a constraint without a parameter of its own.
SLACK = "slack"
#: Names of the parameters that are bounds.
BOUNDS = ("epsilon", "delta", "bound", "value")
#: Step of the difference by which coefficients are differentiated. They are smooth, so its error is of this size.
STEP = 1e-6
#: Slack by which an equality is opened, once and twice, and the price for a size of 1 that solvers' accuracy makes.
OPENED, UNSEEN = 1e-4, 1e-4


def shadow_prices(block: Block, state: Values) -> pd.DataFrame:
    """Return the price of each of a block's constraints at a state where the block would stay.

    `block`: The block with its constraints. `state`: The state of one start.
    Returns: Columns constraint, per (the parameter, or ``"slack"``) and price: the number of nats by which the
    objective improves for each unit by which that grows. The price is negative for a constraint that tightens as it
    grows, such as a floor, and NaN for cones that cannot be relaxed. Where several multipliers are right the objective
    has a kink, and the price lies between those of a little more and of a little less.
    Raises SolverFailure: No solver solves the block.
    """
    optimum = _optimum(block, state)
    rows = [
        {"constraint": label, "per": per, "price": price}
        for name, _ in block.constraints
        for label, per, price in optimum.prices(name)
    ]
    return pd.DataFrame(rows, columns=["constraint", "per", "price"])


def _optimum(block: Block, state: Values) -> _Optimum:
    view = state if block.refinement is None else {**state, **block.solve(state)[1].refined}
    declaration = declared(block, view)
    reasons = []
    for name in capable(declaration.problem, DEFAULT_CHAIN)[0]:
        solution = solve_conic(declaration.problem, name, solver_spec(name).full_options(None, {}))
        if solution.status == cp.OPTIMAL and solution.x is not None and solution.z is not None:
            return _Optimum(block, view, declaration, name, solution, solution.x, solution.z)
        reasons.append(f"{name}: {solution.status}")
    raise SolverFailure(f"block {block.name!r} has no multipliers: {', '.join(reasons)}")


@dataclass(frozen=True, eq=False)
class _Optimum:
    """The solution of a block's cone program: x and its multipliers z."""

    block: Block
    view: Values
    declaration: Declaration
    solver: str
    solution: ConicSolution
    x: Array
    z: Array

    def prices(self, name: str) -> Iterator[tuple[str, str, float]]:
        """Yield what is priced, the quantity that prices it, and the price.

        A constraint with variables of its own is priced part by part: slack in what defines them is no cost.
        """
        own = [(name, parameter, self.by_bound(name, parameter)) for parameter in BOUNDS]
        own += [(name, parameter.name(), self.by_parameter(parameter)) for parameter in self.parameters(name)]
        found = [(label, parameter, price) for label, parameter, price in own if price is not None]
        parts = [(label, SLACK, self.by_slack(label)) for label in self.declaration.added[name]]
        whole = [(name, SLACK, sum(price for *_, price in parts))]
        yield from found or (parts if name in self.declaration.brought else whole)

    def by_slack(self, label: str) -> float:
        part = self.declaration.constraints[label]
        if isinstance(part, (cp.constraints.Equality, cp.constraints.Zero)):
            return self._opened(label, part)
        return _by_slack(part, part.dual_value)

    def _opened(self, label: str, equality: cp.Constraint) -> float:
        """Return the improvement for each unit of slack to both sides of an equality, by two differences."""

        def least(slack: float) -> float:
            wider = relaxed(equality, cp.Constant(slack))
            parts = {**self.declaration.constraints, label: wider[0] if wider else equality}
            problem = cp.Problem(self.declaration.objective, list(parts.values()))
            found = solve_conic(problem, self.solver, solver_spec(self.solver).full_options(None, {}))
            return float("nan") if found.x is None else found.program.value(found.x)

        at = self.solution.program.value(self.x)
        price = (3.0 * at - 4.0 * least(OPENED) + least(2.0 * OPENED)) / (2.0 * OPENED)
        return 0.0 if abs(price) <= UNSEEN * (1.0 + abs(at)) else price

    def by_bound(self, name: str, bound: str) -> float | None:
        """Return the price by a number that made a ready constraint; None where there is none."""
        ready = dict(self.block.constraints)[name]
        if not isinstance(ready, ReadyConstraint):
            return None
        kind, parameters = ready.kind, dict(ready.parameters)
        value = parameters.get(bound)
        if not isinstance(value, Real) or isinstance(value, bool):
            return None

        def moved(to: float) -> float | None:
            made = from_document({"constraint": kind, "parameters": {**parameters, bound: to}})
            constraints = tuple((own, made if own == name and made else one) for own, one in self.block.constraints)
            return self._with(replace(self.block, constraints=constraints))

        return self._slope(moved, float(value))

    def parameters(self, name: str) -> list[cp.Parameter]:
        """Return the user's own Parameters in a constraint that are one number."""
        parts = [self.declaration.constraints[label] for label in self.declaration.added[name]]
        found = {one.id: one for part in parts for one in part.parameters() if one.size == 1}
        ours = {one.id for one in self.declaration.parameters.values()}
        return [one for key, one in sorted(found.items()) if key not in ours]

    def by_parameter(self, parameter: cp.Parameter) -> float | None:
        """Return the price by a Parameter, in all the constraints in which it stands."""
        value = parameter.value

        def moved(to: float) -> float | None:
            try:
                parameter.value = np.full(parameter.shape, to)
                return self._with(self.block)
            finally:
                parameter.value = value

        return self._slope(moved, float(np.ravel(value)[0]))

    def _slope(self, moved: Callable[[float], float | None], value: float) -> float | None:
        """Return the derivative of the objective's improvement; None where the program next to it has another shape."""
        step = STEP * max(1.0, abs(value))
        for signed in (step, -step):  # one of them may leave the range that is allowed
            try:
                found = moved(value + signed)
            except (CvxprivError, ValueError):
                continue
            return None if found is None else (self._lagrangian(self.solution.program) - found) / signed
        return None

    def _with(self, block: Block) -> float | None:
        """Return the Lagrangian of a block whose numbers were moved; None where its program has another shape."""
        problem = declared(block, self.view).problem
        program = ConeProgram.from_problem(problem, self.solver, solver_spec(self.solver).full_options(None, {}))
        same = program.A.shape == self.solution.program.A.shape and program.layout == self.solution.program.layout
        return self._lagrangian(program) if same else None

    def _lagrangian(self, program: ConeProgram) -> float:
        return program.value(self.x) - float(self.z @ program.slack(self.x))


def _by_slack(part: cp.Constraint, dual: Any) -> float:
    """Return the improvement of the objective for each unit of slack in all entries of a constraint."""
    if isinstance(part, (cp.constraints.Inequality, cp.constraints.NonNeg, cp.constraints.NonPos)):
        return float(np.sum(dual))
    slack = cp.Variable(value=0.0)
    wider = relaxed(part, slack)
    if wider is None:
        return float("nan")
    before = [np.asarray(argument.value) for argument in wider[0].args]
    slack.value = 1.0
    after = [np.asarray(argument.value) for argument in wider[0].args]
    each = dual if isinstance(dual, list) else [dual]
    return float(sum(np.sum(one * (new - old)) for one, old, new in zip(each, before, after, strict=True)))
