"""The block of the convex-concave procedure: a problem of differences of convex functions, made convex around a point.

Every part that is not convex is replaced by a convex one that is nowhere below it and meets it at the point
(`cvxpriv.blocks.differences`): what satisfies the constraints of the block satisfies those of the problem, and the
block's objective is no better than the problem's. The block's conditions of optimality at the point itself are those of
the problem. With slack, each constraint that is not convex may be violated at a price (Lipp and Boyd 2016).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.blocks.differences import Tangents
from cvxpriv.blocks.parts import PRICE, label, loosened, named, priced
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array, Values

#: The state's entries for the slack of all constraints together, and for the weight of the distance from the point.
SLACK, WEIGHT = "slack", "weight of distance"


@dataclass(eq=False)
class Convexified:
    """A problem made convex around the values of its variables.

    `slack`: Whether constraints that are not convex may be violated at a price.
    `bounding`: Whether it is nowhere better than the problem; otherwise a product is its two parts of first order.
    `near`: Whether the squared distance from the point is added, at a weight.
    `tangents`: Those of the latest declaration.
    `split`: Number of tangents that the objective and each constraint took; 0 is a convex one, which stays as it is.
    `slacks`: The tangents of the latest declaration.
    """

    problem: cp.Problem
    slack: bool = False
    bounding: bool = True
    near: bool = False
    tangents: Tangents = field(default_factory=Tangents)
    split: dict[str, int] = field(default_factory=dict)
    slacks: dict[str, cp.Variable] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of its block."""
        return "all together" if self.near else "convexified"

    def declaration(self) -> Declaration:
        """Return the convex problem around the point that the Parameters hold."""
        names = named(self.problem)
        self.tangents, self.split, self.slacks = Tangents(self.bounding), {}, {}
        objective = self.problem.objective
        bound = self.tangents.above if isinstance(objective, cp.Minimize) else self.tangents.below
        value = self._taken("objective", lambda: bound(objective.args[0]))
        constraints: dict[str, cp.Constraint] = {}
        for place, one in enumerate(self.problem.constraints):
            name = label(one, place)
            constraints |= self._taken(name, lambda one=one, name=name: dict(self._convex(one, name)))
        constraints |= {f"domain[{k}]": one for k, one in enumerate(self.tangents.domains)}
        parameters = dict(self.tangents.parameters)
        if self.near:
            root = parameters[WEIGHT] = cp.Parameter(name=WEIGHT, nonneg=True)
            centres = {_centre(name): cp.Parameter(one.shape, name=_centre(name)) for name, one in names.items()}
            parameters |= centres
            away = sum(cp.sum_squares(root * one - centres[_centre(name)]) for name, one in names.items())
            value = value + away if isinstance(objective, cp.Minimize) else value - away
        final = type(objective)(value)
        if self.slacks:
            final, parameters[PRICE] = priced(final, self.slacks)
        return Declaration(final, constraints, {**names, **self.slacks}, parameters, generated=True)

    def values(self, view: Values) -> dict[str, Array]:
        """Return the Parameters' values: the tangents at a view, and the price of slack."""
        for name, variable in named(self.problem).items():
            variable.save_value(np.asarray(view[name], dtype=float))
        found = self.tangents.values()
        if self.near:
            root = np.sqrt(np.asarray(view[WEIGHT], dtype=float))
            found |= {_centre(name): root * view[name] for name in named(self.problem)} | {WEIGHT: root}
        return {**found, PRICE: np.asarray(view[PRICE], dtype=float)} if self.slacks else found

    def block(self) -> Block:
        """Return the block: it reads the point, and writes the next one."""
        self.declaration()
        kept, loose = list(named(self.problem)), list(self.slacks)

        def write(solution: Any, view: Values) -> Values:
            found = {name: np.asarray(solution.values[name], dtype=float) for name in kept}
            total = sum(float(np.maximum(solution.values[name], 0.0).sum()) for name in loose)
            return {**found, SLACK: np.asarray(total, dtype=float)} if self.slack else found

        return Block(
            name=self.name,
            reads=frozenset([*kept, *([PRICE] if self.slack else []), *([WEIGHT] if self.near else [])]),
            writes=frozenset([*kept, SLACK] if self.slack else kept),
            declare=lambda _: self.declaration(),
            parameters=self.values,
            embed=lambda point, at: {name: point[name] for name in kept},
            repair=lambda values, view: {name: values[name] for name in [*kept, *loose]},
            write=write,
        )

    def _taken(self, name: str, make: Any) -> Any:
        """Return the bound of a part, with its tangents counted; an error names the part."""
        before = len(self.tangents.tangents)
        try:
            made = make()
        except ModelError as error:
            raise ModelError(f"{name}: {error}") from error
        self.split[name] = len(self.tangents.tangents) - before
        return made

    def _convex(self, one: cp.Constraint, name: str) -> Iterator[tuple[str, cp.Constraint]]:
        """Yield the convex constraints that replace a constraint."""
        if one.is_dcp():
            yield name, one
            return
        loose = loosened(one, name, self.tangents.above, self.slacks if self.slack else None)
        if loose is not None and not (self.bounding and isinstance(one, cp.constraints.PSD)):
            yield from loose.items()
        elif not self.bounding:
            yield name, one.copy([self.tangents.above(part) for part in one.args])
        else:
            raise ModelError(f"{str(one)[:100]} is not DCP, and no inequality or equality that tangents can replace")


def _centre(name: str) -> str:
    return f"centre of {name}"
