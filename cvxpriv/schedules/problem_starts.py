"""The starts of a problem that is not convex."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import cvxpy as cp
import numpy as np
from cvxpy.constraints.nonpos import Inequality
from numpy.typing import ArrayLike

from cvxpriv.blocks.declaration import Declaration, require_usable
from cvxpriv.blocks.parts import named
from cvxpriv.errors import ModelError, SolverFailure
from cvxpriv.numerics.arguments import few, require_seed
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.chain import Solution, Solved, solve, try_solver
from cvxpriv.solvers.place import process
from cvxpriv.solvers.registry import fallback_chain

#: Distance of a random start from the end of an atom's domain, shared by its entries.
WITHIN = 1e-3
#: Values by variable's name, for one start or for several.
Init = Sequence[Mapping[str, ArrayLike]] | Mapping[str, ArrayLike]


def given_starts(init: Init | None) -> list[Mapping[str, ArrayLike]]:
    """Return the starts that are given, none where `init` is None."""
    several = [init] if isinstance(init, Mapping) else few("init", () if init is None else init)
    if init is not None and not several:
        raise ModelError("init=[] holds no start: give a value for each variable, or leave it out")
    return several


def starting_points(
    problem: cp.Problem, starts: int, seed: int, given: Sequence[Mapping[str, ArrayLike]]
) -> tuple[list[dict[str, Array]], list[str]]:
    """Return every start's values by name, and the origin of each: "init", "values" or "random"."""
    names = named(problem)
    if given:
        return [_given(names, one, place) for place, one in enumerate(given)], ["init"] * len(given)
    found, origins = [], []
    held = {name: one.value for name, one in names.items()}
    if all(value is not None for value in held.values()):
        found, origins = [{name: np.array(value, dtype=float) for name, value in held.items()}], ["values"]
    require_seed(seed)
    generator = np.random.default_rng(seed)
    while len(found) < starts:
        found.append(drawn(problem, generator))
        origins.append("random")
    return found, origins


def _given(names: Mapping[str, cp.Variable], values: Mapping[str, ArrayLike], place: int) -> dict[str, Array]:
    found = {}
    for name, variable in names.items():
        if name not in values:
            raise ModelError(f"init[{place}] has no value for {name!r}: give one for each variable")
        found[name] = np.array(values[name], dtype=float)
        if found[name].shape != variable.shape or not np.isfinite(found[name]).all():
            raise ModelError(f"init[{place}][{name!r}] must be finite numbers of shape {variable.shape}")
    if unknown := set(values) - set(names):
        raise ModelError(f"init[{place}] names {', '.join(sorted(unknown))}, no variable of the problem")
    return found


def drawn(problem: cp.Problem, generator: np.random.Generator) -> dict[str, Array]:
    """Return random values of a problem's variables, moved to where the convex constraints hold.

    Entries are normal, of their sign where one is declared, uniform between bounds; a semidefinite matrix is GG'/n. The
    domains of atoms, such as that of a logarithm, are constraints too: a start is within them by a little.
    """
    variables = sorted(problem.variables(), key=lambda one: one.id)  # in the order in which they were made
    values = {variable.name(): _entries(variable, generator) for variable in variables}
    parts = [problem.objective.args[0], *(part for one in problem.constraints for part in one.args)]
    inside = [one for part in parts for one in part.domain]
    inside = [
        one.expr <= -WITHIN / one.size
        if isinstance(one, Inequality) and not any(variable.domain for variable in one.variables())
        else one
        for one in inside
    ]
    convex = [one for one in (*problem.constraints, *inside) if one.is_dcp()]
    for variable in variables:
        own = [one for one in convex if {other.id for other in one.variables()} == {variable.id}]
        if own:
            try:
                values |= _nearest(_Nearest({variable.name(): variable}, own), values)
            except SolverFailure as failure:
                if not set(failure.statuses) <= {cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE}:
                    raise
                raise ModelError(
                    f"no value of {variable.name()!r} meets the constraints on it alone: {failure}"
                ) from failure
    if all(len(one.variables()) == 1 for one in convex):
        return values
    try:
        return _nearest(_Nearest(named(problem), convex), values)
    except SolverFailure:  # whether they hold together is for the blocks to say
        return values


def _entries(variable: cp.Variable, generator: np.random.Generator) -> Array:
    shape, marks = variable.shape, variable.attributes
    entries = np.asarray(generator.normal(size=shape))
    if marks["PSD"] or marks["NSD"]:
        return np.asarray((1.0 if marks["PSD"] else -1.0) * entries @ entries.T / shape[0])
    if marks["symmetric"]:
        return np.asarray((entries + entries.T) / 2.0)
    if marks["diag"]:
        return np.asarray(np.diag(np.diag(entries)))
    if marks["nonneg"] or marks["pos"]:
        return np.asarray(np.abs(entries))
    if marks["nonpos"] or marks["neg"]:
        return np.asarray(-np.abs(entries))
    if marks["bounds"] is not None and not any(isinstance(end, cp.Expression) for end in variable.bounds):
        low, high = (np.broadcast_to(end, shape) for end in variable.bounds)
        both = np.isfinite(low) & np.isfinite(high)
        middle = generator.uniform(np.where(both, low, 0.0), np.where(both, high, 1.0))
        return np.asarray(np.where(both, middle, np.clip(entries, low, high)), dtype=float)
    return entries


@dataclass(frozen=True)
class _Nearest:
    """The problem whose answer is the point within constraints that is nearest to given values."""

    variables: Mapping[str, cp.Variable]
    constraints: Sequence[cp.Constraint]

    def solve(
        self,
        view: Values,
        *,
        solver: str | tuple[str, ...] | None = None,
        tolerance: float | None = None,
        fast: bool = True,
    ) -> tuple[Values, Solution]:
        """See `Block.solve`."""
        distance = sum(cp.sum_squares(one - view[name]) for name, one in self.variables.items())
        limits = {str(place): one for place, one in enumerate(self.constraints)}
        asked = Declaration(cp.Minimize(distance), limits, self.variables)

        def read(_: str) -> Solved:
            require_usable(asked, {name: one.value for name, one in self.variables.items()})
            return asked.values(), {}, float(asked.objective.value)

        ask = partial(try_solver, asked.problem)
        found = solve(ask, read, chain=fallback_chain(solver), tolerance=tolerance)
        return {name: np.asarray(found.values[name]) for name in self.variables}, found


def _nearest(problem: _Nearest, values: Values) -> dict[str, Array]:
    there = process()
    return dict((problem.solve(values) if there is None else there.solve(problem, values))[0])
