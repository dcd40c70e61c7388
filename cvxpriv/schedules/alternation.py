"""Passes for problems that are not convex: alternation over blocks, and the convex-concave procedure.

The convex-concave procedure replaces parts that are not convex by tangents at the last point, and lets the constraints
that were not convex be violated at a price, which grows while they are (penalty procedure of Lipp and Boyd, 2016). A
point is done where the exact residual of the whole problem is small; a point that no longer moves is given up, and the
run states the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.complex_parts import RealProblem
from cvxpriv.blocks.convexified import PRICE, SLACK, Convexified
from cvxpriv.blocks.engines import Engine, Outcome, Until
from cvxpriv.blocks.parts import Part, label, named
from cvxpriv.errors import DataError, SolverFailure
from cvxpriv.kkt import Residuals
from cvxpriv.numerics.arrays import Array, Values, single, starts_in
from cvxpriv.schedules.history import History
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Context, Loop, Measure, Sweep, Update


def placed(problem: cp.Problem, values: Values) -> None:
    """Set the values of a problem's variables, and of the complex ones that they stand for."""
    for variable in problem.variables():
        variable.save_value(np.array(values[variable.name()], dtype=float))
    if isinstance(problem, RealProblem):
        problem.give_back()


def violation(problem: cp.Problem) -> float:
    """Return the largest violation of a constraint at the variables' values; 0 where all hold."""
    return max((float(np.max(one.violation(), initial=0.0)) for one in problem.constraints), default=0.0)


def figures(parts: Sequence[Part], blocks: Sequence[Block], *, passing: bool = False) -> Measure:
    """Return the figures of each pass, per start: objective, largest violation, and residual of the whole problem.

    They are measured after a pass: the block that was solved last stands at its optimum, and is not asked again.
    """
    problem, shared = parts[0].problem, coupling(parts)

    def of_state(state: Values) -> dict[str, Array]:
        starts = [single(state, start) for start in range(starts_in(state))]
        values, missed = [], []
        for one in starts:
            placed(problem, one)
            values.append(float(problem.objective.value))
            missed.append(violation(problem))
        asked = slice(None, -1) if passing and len(parts) > 1 and not shared else slice(None)
        found = [stationarity(parts[asked], blocks[asked], one, shared) for one in starts]
        return {"objective": np.array(values), "violation": np.array(missed), "kkt": np.array(found)}

    return of_state


def coupling(parts: Sequence[Part]) -> frozenset[str]:
    """Return the labels of constraints that stand in more than one block."""
    held = [set(part.declaration().constraints) for part in parts]
    problem = parts[0].problem
    every = (label(one, place) for place, one in enumerate(problem.constraints))
    return frozenset(name for name in every if sum(name in names for names in held) > 1)


def stationarity(
    parts: Sequence[Part], blocks: Sequence[Block], at: Values, shared: frozenset[str] | None = None
) -> float:
    """Return the largest exact residual of the whole problem's optimality conditions at a point.

    A point is stationary for the whole problem where one set of multipliers makes it stationary in each block. A
    constraint of one block has the best multipliers there; one that couples blocks must have the same in all of them,
    those that are best for one of the blocks: the least of these is returned, which bounds the residual from above.
    Where what couples the blocks has kinks this says only that no block alone can move.

    `blocks`: The blocks of the parts.
    `at`: The values of every variable.
    `shared`: The result of `coupling` for the parts, where it is known.
    """
    alone = [block.residual(at, at) for block in blocks]
    shared = coupling(parts) if shared is None else shared
    if not shared:
        return max(found.largest for found in alone)
    return min(_with_multipliers_of(found, shared, blocks, alone, at) for found in alone)


def _with_multipliers_of(
    one: Residuals, shared: frozenset[str], blocks: Sequence[Block], alone: Sequence[Residuals], at: Values
) -> float:
    taken: Mapping[str, Any] = {name: value for name, value in one.multipliers.items() if name in shared}
    largest = 0.0
    for block, own in zip(blocks, alone, strict=True):
        named = block.declaration().constraints
        duals = {name: taken.get(name, own.multipliers[name]) for name in named}
        found = block.residual(at, at, duals)
        # A point that no multipliers but its own hold in place does not move: the gradient tells.
        largest = max(largest, found.largest, found.scaled["stationarity"])
    return largest


KIND = "convex-concave"
#: Relative move of every entry up to which a pass is the last, unless the price of slack grew.
STILL = 1e-9
#: Factor of the price where the convex problem has no answer.
STEEPER = 4.0
#: The usual first price, as a share of the objective's moves for each unit of the constraints' ones, and the usual
#: limit, as a multiple of the first price. Prices far above the multiplier make steps short.
SHARE, MOST = 0.1, 1e7
#: Moves by which the two are compared, relative to the largest entry, and their number.
NEARBY, LOOKS = 0.1, 12


@dataclass(frozen=True)
class Price:
    """The price of a unit of slack: its first value, its growth while constraints are violated, and its limit."""

    first: float
    growth: float
    most: float


@dataclass(frozen=True)
class AskedPrice:
    """Prices as a user asks for them. None: the first is in the units of the problem, and the limit follows from it."""

    first: float | None
    growth: float
    most: float | None

    def at(self, problem: cp.Problem, start: Values) -> Price:
        """Return the price of one start."""
        first = usual_price(problem, start) if self.first is None else self.first
        return Price(first, self.growth, max(first, MOST * first if self.most is None else self.most))


def usual_price(problem: cp.Problem, start: Values) -> float:
    """Return `SHARE` of how far the objective moves, around a start, for each unit by which what may be violated does.

    So the first price follows the scale of both. `SHARE` itself where one of them does not move, or is not finite.
    """
    random, moves = np.random.default_rng(0), []
    loose = [one.expr for one in problem.constraints if not one.is_dcp() and hasattr(one, "expr")]
    for look in range(LOOKS + 1):
        placed(
            problem,
            {
                name: value + (look > 0) * NEARBY * (1.0 + np.abs(value).max()) * random.normal(size=np.shape(value))
                for name, value in start.items()
            },
        )
        found = [problem.objective.args[0], *loose]
        moves.append(np.concatenate([np.ravel(np.nan if one.value is None else one.value) for one in found]))
    shapes = {one.size for one in moves}
    away = np.abs(np.array(moves[1:]) - moves[0]) if len(shapes) == 1 else np.full((1, 1), np.nan)
    away = away[np.isfinite(away).all(axis=1)]
    if not loose or not away.size:
        return SHARE
    objective, constraints = float(np.median(away[:, 0])), float(np.median(away[:, 1:]))
    return SHARE * objective / constraints if objective > 0.0 and constraints > 0.0 else SHARE


@dataclass
class Patient:
    """An engine that raises the price where no solver has an answer, and in the end keeps the point.

    At a low price the convex problem can fall without bound although the whole one does not.
    """

    engine: Engine
    price: Price
    reason: str = ""
    name: str = "dcp"
    checks: bool = False

    def solve(self, block: Block, state: Values) -> Outcome:
        """See `Engine.solve`; it takes one start."""
        at = dict(state)
        while True:
            try:
                outcome = self.engine.solve(block, at)
            except (SolverFailure, DataError) as failure:
                if PRICE in at and isinstance(failure, SolverFailure) and at[PRICE][0] < self.price.most:
                    at[PRICE] = np.minimum(STEEPER * at[PRICE], self.price.most)
                    continue
                self.reason = str(failure)
                values = {name: state.get(name, np.zeros(starts_in(state))) for name in block.writes}
                return Outcome(values, "dcp", ("",), (self.reason,), 0.0)
            return replace(outcome, values={**outcome.values, PRICE: at[PRICE]})


@dataclass(eq=False)
class Passes:
    """One start after the other, on blocks that are compiled once.

    `limit`: Largest number of passes of a start.
    """

    problem: cp.Problem
    price: AskedPrice
    tol: float
    limit: int
    engine: Engine
    _exact: Block = field(init=False)
    _priced: Block = field(init=False)

    def __post_init__(self) -> None:
        self._exact = Convexified(self.problem).block()
        self._priced = Convexified(self.problem, slack=True).block()

    def run(self, start: Values, callback: Any = None) -> tuple[dict[str, Array], Context, str]:
        """Return the last point of one start, its history, and the reason of its end: "" where the limit came first."""
        price = self.price.at(self.problem, start)
        patient = Patient(self.engine, price)
        engine: Engine = Until(patient, self.engine.moment) if isinstance(self.engine, Until) else patient
        stop = _Ended(self, patient)

        def dearer(entries: Values) -> Values:
            grown = np.minimum(entries[PRICE] * price.growth, price.most)
            return {PRICE: np.where(entries[SLACK] > self.tol, grown, entries[PRICE])}

        raised = Update("price", dearer, frozenset({PRICE, SLACK}), frozenset({PRICE}))
        loop = Loop(Sweep([self._priced, raised]), stop, self.limit, self._measured, name=KIND)
        context = Context(engine, History(), callback, starts=np.arange(1))
        state = {name: np.asarray(value, dtype=float)[None] for name, value in start.items()}
        state |= {PRICE: np.array([price.first]), SLACK: np.array([np.inf])}
        return single(run(loop, state, context), 0), context, stop.why

    def figures(self, point: Values) -> dict[str, float]:
        """Return the objective at a point, its violation of constraints, and the residual; inf for none."""
        placed(self.problem, point)
        value = self.problem.objective.value
        known = value is not None and np.isfinite(value)
        sign = 1.0 if isinstance(self.problem.objective, cp.Minimize) else -1.0
        missed = violation(self.problem)
        return {
            "objective": float(value) if known else sign * np.inf,
            "violation": missed if np.isfinite(missed) else np.inf,
            "kkt": residual_of(self._exact, point),
        }

    def _measured(self, state: Values) -> dict[str, Array]:
        found = self.figures(single(state, 0))
        return {**{name: np.array([value]) for name, value in found.items()}, PRICE: np.asarray(state[PRICE])}


@dataclass
class _Ended:
    """Stop where the residual is small, where nothing moves any more, and where no solver has an answer."""

    passes: Passes
    engine: Patient
    why: str = ""

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        """See `Stop`."""
        if measured["kkt"][0] <= self.passes.tol:
            self.why = "converged"
        elif self.engine.reason:
            self.why = self.engine.reason
        elif before[PRICE][0] == after[PRICE][0] and self._still(before, after):
            found = float(measured["violation"][0])
            self.why = (
                f"infeasible: stands still where a constraint is violated by {found:.1e}"
                if found > self.passes.tol
                else "no progress: stands still short of the tolerance"
            )
        return np.array([bool(self.why)])

    def _still(self, before: Values, after: Values) -> bool:
        names = named(self.passes.problem)
        return all(np.abs(after[one] - before[one]).max() <= STILL * (1.0 + np.abs(after[one]).max()) for one in names)


def residual_of(block: Block, point: Values) -> float:
    """Return the largest residual at a point of the problem made convex around it; inf where it has no tangents."""
    try:
        return float(block.residual(point, point).largest)
    except DataError:
        return float("inf")
