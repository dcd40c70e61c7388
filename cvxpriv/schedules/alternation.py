"""Alternation over the blocks of any multi-convex problem, and the convex-concave procedure: passes, and stationarity.

In the convex-concave procedure each pass replaces parts that are not convex by tangents at the last point, and lets the
constraints that were not convex be violated at a price, which grows while they are (penalty procedure of Lipp and Boyd,
2016). A point is done where the exact residual of the whole problem is small; a point that no longer moves is given up,
and the run states the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.convexified import SLACK, Convexified
from cvxpriv.blocks.engines import Engine, Outcome, Until
from cvxpriv.blocks.parts import PRICE, RealProblem, named
from cvxpriv.errors import DataError, SolverFailure
from cvxpriv.kkt import proximal_step
from cvxpriv.numerics.arrays import Array, Values, single, starts_in
from cvxpriv.schedules.history import Context, History
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Loop, Measure, Sweep, Update

#: Share of the gradient below which a natural residual is compared with the proximal step; and the residual below which
#: it is where derivatives decide nothing, at a kink.
HIDDEN, AT_KINK = 1e-3, 0.1


def placed(problem: cp.Problem, values: Values) -> None:
    """Set the values of a problem's variables, and of the complex ones that they stand for."""
    for variable in problem.variables():
        variable.save_value(np.array(values[variable.name()], dtype=float))
    if isinstance(problem, RealProblem):
        problem.give_back()


def violation(problem: cp.Problem) -> float:
    """Return the largest violation of a constraint at the variables' values; 0 where all hold."""
    return max((float(np.max(one.violation(), initial=0.0)) for one in problem.constraints), default=0.0)


def figures(problem: cp.Problem) -> Measure:
    """Return the figures of each pass, per start: objective, largest violation, and residual of the whole problem.

    The residual is that of a convex problem with the same directional derivatives at the point: one set of multipliers,
    and one slope of each kink, must hold all blocks in place together.
    """
    whole = Convexified(problem, bounding=False).block()

    def of_state(state: Values) -> dict[str, Array]:
        found = []
        for start in range(starts_in(state)):
            point = single(state, start)
            placed(problem, point)
            found.append((float(problem.objective.value), violation(problem), residual_of(whole, point)))
        return dict(zip(("objective", "violation", "kkt"), np.array(found).T, strict=True))

    return of_state


def residual_of(block: Block, point: Values) -> float:
    """Return the largest residual at a point of the problem made convex around it; inf where it has no tangents.

    Natural residuals move one entry at a time: where a gradient is left that they do not show, entries may hold each
    other at a kink, and the proximal step tells.
    """
    try:
        declaration = block.place(point, point)
        found = declaration.residuals()
    except DataError:
        return float("inf")
    if found.largest > (HIDDEN * found.scaled["stationarity"] if found.exact else AT_KINK):
        return found.largest
    step = proximal_step(declaration.problem)
    return max(found.largest, step.move) if step.measured else found.largest


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
    if not loose:
        return SHARE
    for look in range(LOOKS + 1):
        placed(
            problem,
            {
                name: value + (look > 0) * NEARBY * (1.0 + np.abs(value).max()) * random.normal(size=np.shape(value))
                for name, value in start.items()
            },
        )
        found = [problem.objective.args[0], *loose]
        with np.errstate(all="ignore"):  # a look may leave the domain of an atom
            moves.append(np.concatenate([np.ravel(np.nan if one.value is None else one.value) for one in found]))
    shapes = {one.size for one in moves}
    away = np.abs(np.array(moves[1:]) - moves[0]) if len(shapes) == 1 else np.full((1, 1), np.nan)
    away = away[np.isfinite(away).all(axis=1)]
    if not away.size:
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
