"""Conflicts of a user's constraints: those that cannot hold, and by how much each would have to give way.

A problem that is infeasible with a user's constraints is solved again with them relaxed: each becomes one slack wider,
and the slacks' sum is minimised. Constraints are then left out one by one until those that remain contradict each
other, or the block itself, and no fewer of them do.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.blocks.declaration import Declaration
from cvxpriv.errors import SolverFailure
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.reports.formatting import format_number
from cvxpriv.solvers.chain import Solved, solve, try_solver
from cvxpriv.solvers.registry import DEFAULT_CHAIN

#: Smallest sum of slacks, relative to the constraints' coefficients, that counts: solvers miss constraints by 1e-8.
NOTICEABLE = 1e-6


@dataclass(frozen=True)
class Conflict:
    """Constraints that cannot hold together, while any fewer of them can.

    `alone`: Least amount by which each constraint would have to be relaxed if the others stay, in the units of its
    inequality; inf where relaxing it does not help.
    """

    alone: Mapping[str, float]

    def __str__(self) -> str:
        names = [repr(name) for name in self.alone]
        ways = [f"{name!r} by {format_number(amount)}" for name, amount in self.alone.items() if np.isfinite(amount)]
        if len(names) == 1:
            what = f"constraint {names[0]} cannot hold"
            return f"{what}: it would have to be relaxed by {ways[0].split(' by ')[-1]}" if ways else what
        what = f"constraints {', '.join(names[:-1])} and {names[-1]} cannot hold together"
        return f"{what}: relax {', or '.join(ways)}" if ways else f"{what}, nor with one of them relaxed"


@dataclass(frozen=True)
class Infeasibility:
    """The reason why a block with constraints has no solution.

    `conflicts`: The conflicts, disjoint; at least one.
    `together`: The constraints that give way when the sum of all slacks is smallest, with their amounts: relaxed by
    these, and only by these, all constraints hold at once.
    """

    conflicts: tuple[Conflict, ...]
    together: Mapping[str, float]

    def __str__(self) -> str:
        text = "; ".join(map(str, self.conflicts))
        if len(self.conflicts) > 1:
            amounts = ", ".join(f"{name!r} by {format_number(amount)}" for name, amount in self.together.items())
            text += f"; all hold together with {amounts}"
        single = len(self.conflicts) == 1 and len(self.conflicts[0].alone) == 1
        unit = "its inequality" if single else "each inequality"
        return f"{text} (in the units of {unit}); loosen {'it, or drop it' if single else 'or drop one of them'}"


def explain(declaration: Declaration, solvers: Sequence[str] = DEFAULT_CHAIN) -> Infeasibility | None:
    """Return the constraints of a declaration that cannot hold; None where they can, or the block fails without them.

    `declaration`: The declaration with constraints (`with_constraint`), whose Parameters have their values.
    `solvers`: The chain to solve the relaxed problems with.
    """
    search = _Search(declaration, solvers)
    everything = tuple(declaration.added)
    together = search.least(everything)
    if together is None or not _noticed(together):
        return None
    found: list[Conflict] = []
    pool = list(everything)
    while search.contradict(pool):
        core = list(pool)
        for name in pool:
            rest = [other for other in core if other != name]
            if search.contradict(rest):
                core = rest
        found.append(Conflict({name: search.alone(name, core) for name in core}))
        pool = [name for name in pool if name not in core]
    amounts = {
        name: search.amount(name, together) for name in everything if _noticed(together, declaration.added[name])
    }
    return Infeasibility(tuple(found), amounts) if found else None


def _noticed(slacks: Mapping[str, float], labels: Collection[str] | None = None) -> bool:
    return sum(slack for label, slack in slacks.items() if labels is None or label in labels) > NOTICEABLE


@dataclass
class _Search:
    """Relaxed problems of one declaration. A slack counts in multiples of its constraint's largest coefficient."""

    declaration: Declaration
    solvers: Sequence[str]
    scales: dict[str, float] = field(default_factory=dict)

    def scale(self, label: str) -> float:
        """Return the largest coefficient of a constraint's cone form; 1 if it has none."""
        if label not in self.scales:
            problem = cp.Problem(cp.Minimize(0), [self.declaration.constraints[label]])
            largest = 0.0
            if problem.variables():
                coefficients: sp.csc_array = ConeProgram.from_problem(problem, "CLARABEL").A
                largest = float(np.abs(coefficients.data).max(initial=0.0))
            self.scales[label] = largest or 1.0
        return self.scales[label]

    def amount(self, name: str, slacks: Mapping[str, float]) -> float:
        """Return the amount by which a user's constraint gives way, in its own units."""
        return max(self.scale(label) * slacks[label] for label in self.declaration.added[name] if label in slacks)

    def contradict(self, names: Sequence[str]) -> bool:
        """Return whether constraints, without the others, cannot hold."""
        slacks = self.least(names) if names else {}
        return slacks is not None and _noticed(slacks)

    def alone(self, name: str, core: Sequence[str]) -> float:
        """Return the amount by which a constraint has to give way when the others stay; inf if none is enough."""
        slacks = self.least((name,), held=[other for other in core if other != name])
        return np.inf if slacks is None else self.amount(name, slacks)

    def least(self, names: Sequence[str], held: Sequence[str] = ()) -> dict[str, float] | None:
        """Return the slacks of smallest sum, by constraint, with which constraints hold; None if there are none.

        The constraints in `held` and the block's own are not relaxed; the other ones are left out. The
        objective gives only its domain.
        """
        declaration, added = self.declaration, self.declaration.added
        every = {label for labels in added.values() for label in labels}
        kept = [part for label, part in declaration.constraints.items() if label not in every]
        kept += [declaration.constraints[label] for name in held for label in added[name]]
        kept += declaration.objective.args[0].domain
        slacks: dict[str, cp.Variable] = {}
        for label in (label for name in names for label in added[name]):
            slack = cp.Variable(nonneg=True, name=f"slack of {label}")
            widened = relaxed(declaration.constraints[label], self.scale(label) * slack)
            if widened is None:
                kept.append(declaration.constraints[label])
            else:
                slacks[label] = slack
                kept.extend(widened)
        total = cp.sum(cp.hstack(list(slacks.values()))) if slacks else cp.Constant(0.0)
        problem = cp.Problem(cp.Minimize(total), kept)

        def read(solver: str) -> Solved:
            return {label: slack.value for label, slack in slacks.items()}, {}, float(problem.value)

        try:
            solution = solve(lambda solver, options: try_solver(problem, solver, options), read, chain=self.solvers)
        except SolverFailure:
            return None
        return {label: max(0.0, float(value)) for label, value in solution.values.items()}


def relaxed(constraint: cp.Constraint, slack: cp.Expression) -> list[cp.Constraint] | None:
    """Return a constraint made wider by a nonnegative scalar; None for a kind that cannot be.

    An inequality moves by the slack in every entry, an equality to either side. A cone's point is moved along a
    direction inside the cone, so that some slack is always enough: ||x|| <= t + s; A + s I psd;
    y exp(x/y) <= z with y + s/2 and z + s; x^a y^(1-a) >= |z| with x + s and y + s.
    """
    for kind, widen in _WIDER.items():
        if isinstance(constraint, kind):
            return [widen(constraint, slack)]
    return None


def _semidefinite(constraint: Any, slack: cp.Expression) -> cp.Constraint:
    matrix = constraint.args[0]
    return matrix + slack * np.eye(matrix.shape[0]) >> 0


def _exponential(constraint: Any, slack: cp.Expression) -> cp.Constraint:
    x, y, z = constraint.args
    return cp.ExpCone(x, y + 0.5 * slack, z + slack)


def _power(constraint: Any, slack: cp.Expression) -> cp.Constraint:
    x, y, z = constraint.args
    return cp.PowCone3D(x + slack, y + slack, z, constraint.alpha)


_WIDER: Mapping[type, Callable[[Any, cp.Expression], cp.Constraint]] = {
    cp.constraints.Inequality: lambda given, slack: given.expr <= slack,
    cp.constraints.NonPos: lambda given, slack: given.args[0] <= slack,
    cp.constraints.NonNeg: lambda given, slack: given.args[0] >= -slack,
    cp.constraints.Equality: lambda given, slack: cp.abs(given.expr) <= slack,
    cp.constraints.Zero: lambda given, slack: cp.abs(given.args[0]) <= slack,
    cp.SOC: lambda given, slack: cp.SOC(given.args[0] + slack, given.args[1], axis=given.axis),
    cp.PSD: _semidefinite,
    cp.ExpCone: _exponential,
    cp.PowCone3D: _power,
    cp.PowConeND: lambda given, slack: cp.PowConeND(given.args[0] + slack, given.args[1], given.alpha, given.axis),
}


def give_values(declaration: Declaration) -> None:
    """Set the values of the variables that constraints add, while all other variables of a declaration stay.

    An epigraph t >= f(P), t <= bound has a t at every mechanism, but none is written there. The chosen t misses the
    constraints by the least, and is feasible if any is.
    """
    for name, own in declaration.brought.items():
        parts = [declaration.constraints[label] for label in declaration.added[name]]
        ours = {declaration.variables[label].id for label in own}
        others = {one.id: one for part in parts for one in part.variables() if one.id not in ours}
        held = {key: one.value for key, one in others.items()}
        slack = cp.Variable(nonneg=True)
        wider = [one for part in parts for one in (relaxed(part, slack) or [part])]
        pinned = [one == held[key] for key, one in others.items()]
        problem = cp.Problem(cp.Minimize(slack), [*wider, *pinned])

        def read(_: str, problem: cp.Problem = problem) -> Solved:
            return {}, {}, float(problem.value)

        try:
            solve(lambda solver, options, one=problem: try_solver(one, solver, options), read, chain=DEFAULT_CHAIN)  # type: ignore[misc]
        except SolverFailure as failure:
            raise SolverFailure(
                f"constraint {name!r} brings variables of its own, and no solver finds their values at a given "
                f"mechanism: {failure}"
            ) from failure
        finally:
            for key, value in held.items():
                others[key].value = value
