"""Steps of all blocks together, for passes of an alternation that come near slowly, or not at all.

A pass moves one block at a time: along a valley it takes short steps, and none where blocks share a constraint or a
kink. The step of all together solves the problem with each product replaced by its parts of first order at the point,
and the squared distance from the point added at a weight (prox-linear, and Levenberg's for least squares; Lewis and
Wright 2016; Drusvyatskiy and Paquette 2019). A pass follows, which meets again the constraints that bend. What they
end at is taken where it is no worse than the point: otherwise the weight grows. The last few steps are combined
(`cvxpriv.numerics.anderson`): what the parts of second order leave is slow in a few directions alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.convexified import WEIGHT, Convexified
from cvxpriv.blocks.parts import PRICE, named
from cvxpriv.errors import DataError, SolverFailure
from cvxpriv.numerics.anderson import Anderson
from cvxpriv.numerics.arrays import Array, Values, single, stack, starts_in, take
from cvxpriv.schedules.alternation import STEEPER, AskedPrice, placed
from cvxpriv.schedules.history import Context, Moved
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Measure

#: Passes before the first step of all together, and the share of a residual above which a pass was slow.
ALONE, SLOW = 2, 0.3
#: The weight at first, relative to objective and point, its factors after a step that was taken and one that was not,
#: the least one relative to the first, and how many weights are tried where a pass moves nothing.
FIRST, LIGHTER, HEAVIER, LEAST, TRIES = 1e-3, 0.1, 10.0, 1e-8, 8
#: Steps that are combined.
MEMORY = 8
#: Change of the objective that is noise of the solvers, relative, and the violation of constraints that is.
NOISE, FEASIBLE = 1e-9, 1e-6
#: Factor of the price of slack after a pass that violates constraints.
GROWTH = 4.0
#: The first price relative to the usual one of the convex-concave procedure, and the steps by which a start is moved
#: to where constraints hold: blocks that move first, one by one, leave products at 0, where nothing says how to go on.
DEAR, RESTORED = 100.0, 30
#: Passes in a row after which a violation that does not fall below this share of the last is one that stays.
MISSING, FALLS = 15, 0.9
MISSED = "missed"


class _Entries:
    """All entries of a state as one vector: see `Packing`."""

    def pack(self, state: Values) -> Array:
        return np.concatenate([np.ravel(state[name][0]) for name in sorted(state)])

    def unpack(self, packed: Array, state: Values) -> Values:
        ends = np.cumsum([state[name][0].size for name in sorted(state)])[:-1]
        parts = zip(sorted(state), np.split(packed, ends), strict=True)
        return {name: part.reshape(state[name].shape) for name, part in parts}

    def step(self, moved: Array, image: Values) -> Array:
        return moved


@dataclass
class _Start:
    """One start: the figures of its point, its weights, and its pace.

    `wait`: Passes to go until the next step. `pause`: How many follow the next refusal.
    `taken`: Steps taken at this weight. `hold`: How many are taken before a lighter one is tried; it doubles where that
    was refused, so that the steps that are combined are of one map.
    """

    price: float
    most: float
    figures: dict[str, float] = field(default_factory=dict)
    weight: float = 0.0
    least: float = 0.0
    wait: int = ALONE
    pause: int = 1
    taken: int = 0
    hold: int = 1
    missing: int = 0
    steps: Anderson = field(default_factory=lambda: Anderson(_Entries(), MEMORY))


@dataclass(eq=False)
class Together:
    """The accelerator of one run of an alternation, and its measure: what it has measured once is not measured again.

    `tol`: The requested residual. `still`: Move of all entries up to which a pass moved nothing.
    `eager`: Whether steps are taken where passes are slow, not only where they move nothing.
    `loose`: Whether constraints that are not convex may be violated, at a price that grows while they are.
    """

    problem: cp.Problem
    measure: Measure
    context: Context
    tol: float
    still: float
    eager: bool
    loose: bool
    _known: dict[int, _Start] = field(default_factory=dict)
    _block: Block = field(init=False)

    def __post_init__(self) -> None:
        self._block = Convexified(self.problem, self.loose, bounding=False, near=True).block()

    def __call__(self, body: Callable[[Values], dict[str, Array]], state: Values, iteration: int) -> Values:
        """Return the next state; each start goes its own way."""
        starts, done = self.context.starts, []
        try:
            for place in range(starts_in(state)):
                self.context.starts = starts[[place]]
                done.append(single(self._next(body, take(state, np.array([place])), int(starts[place])), 0))
        finally:
            self.context.starts = starts
        return stack(done)

    def figures(self, state: Values) -> dict[str, Array]:
        """Return the figures of the last pass."""
        last = [self._known[start].figures for start in self.context.starts.tolist()]
        return {name: np.array([one[name] for one in last]) for name in last[0] if name != MISSED}

    def stands(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        """Stop starts that nothing moves, unless their price still grows: see `Stop`."""
        known = [self._known[start] for start in self.context.starts.tolist()]
        stuck = np.array([one.missing > MISSING for one in known])
        still = Moved(None, self.still)(iteration, before, after, measured)
        return np.asarray(stuck | (still & ~np.array([*map(self._grows, known)])))

    def _grows(self, known: _Start) -> bool:
        """Whether the price may still become what keeps the start from its constraints."""
        return self.loose and known.figures["violation"] > self.tol and known.price < known.most

    def _next(self, body: Callable[[Values], dict[str, Array]], state: Values, start: int) -> Values:
        known = self._known.get(start)
        if known is None:
            price = AskedPrice(None, GROWTH, None).at(self.problem, single(state, 0))
            known = self._known[start] = _Start(DEAR * price.first, price.most)
            state = self._met(state, known) if self.loose else state
        elif self.eager:
            known.wait -= 1
            if known.wait <= 0 and (moved := self._moved(body, state, known)) is not None:
                return moved
        image, found = self._passed(body, state, known)
        if not known.figures:
            known.weight = FIRST * (1.0 + float(np.nan_to_num(abs(found["objective"]), posinf=0.0))) / _size(image) ** 2
            known.least = LEAST * known.weight
        elif found["kkt"] <= SLOW * known.figures["kkt"]:
            known.wait = max(known.wait, ALONE)
        self._keep(found, known)
        known.steps.restart()
        if all(np.abs(image[name] - state[name]).max(initial=0.0) <= self.still for name in image):
            weight = known.weight
            for _ in range(TRIES):
                self.context.look_at_the_clock()
                if found["kkt"] <= self.tol or self._grows(known) or self.context.ended:
                    break
                if (moved := self._moved(body, image, known)) is not None:
                    return moved
            known.weight = weight
        return image

    def _met(self, state: Values, known: _Start) -> Values:
        """Return a start moved by steps of all together to, or towards, where what is not convex holds."""
        weight, left = known.price / _size(state) ** 2, self._missed(state)
        for _ in range(RESTORED):
            self.context.look_at_the_clock()
            if left <= self.tol or self.context.ended:
                break
            try:
                moved = self._together(state, known.price, weight)
            except (SolverFailure, DataError):
                break
            found = self._missed(moved)
            weight *= LIGHTER if found < left else HEAVIER
            if found < left:
                state, left = moved, found
        return state

    def _passed(
        self, body: Callable[[Values], dict[str, Array]], state: Values, known: _Start
    ) -> tuple[dict[str, Array], dict[str, float]]:
        """Return the end of a pass and its figures; at a low price the objective may fall without bound."""
        while True:
            try:
                image = body({**state, PRICE: np.array([known.price])} if self.loose else state)
                break
            except SolverFailure:
                if not self.loose or known.price >= known.most:
                    raise
                known.price = min(STEEPER * known.price, known.most)
        image = {name: image[name] for name in state}
        return image, self._measured(image)

    def _keep(self, found: dict[str, float], known: _Start) -> None:
        far = self.loose and found["violation"] > max(self.tol, FALLS * known.figures.get("violation", np.inf))
        known.missing = known.missing + 1 if far else 0
        known.figures = found
        if found["violation"] > self.tol:
            known.price = min(GROWTH * known.price, known.most)

    def _moved(self, body: Callable[[Values], dict[str, Array]], state: Values, known: _Start) -> Values | None:
        """Return the end of a step of all together and a pass, and keep its figures; None where it is worse."""
        combined = known.steps.kept > 0

        def step(at: Values) -> dict[str, Array]:
            image = body({**self._together(at, known.price, known.weight), PRICE: np.array([known.price])})
            return {name: image[name] for name in state}

        try:
            image = known.steps(step, state, 0)
            found = self._measured(image)
        except (SolverFailure, DataError):
            found = {}
        if found and self._better(found, known):
            self._keep(found, known)
            known.wait, known.pause, known.taken = 0, 1, known.taken + 1
            if known.taken >= known.hold:
                known.weight, known.taken = max(known.least, LIGHTER * known.weight), 0
            return image
        known.steps.restart()
        if not combined:
            known.weight, known.wait, known.pause = HEAVIER * known.weight, known.pause + 1, 2 * known.pause
            known.hold, known.taken = 2 * known.hold, 0
        return None

    def _together(self, state: Values, price: float, weight: float) -> dict[str, Array]:
        """Return a step of all together; both ends keep the signs and bounds of the variables, as Parameters must."""
        at = {**self._within(state), PRICE: np.array([price]), WEIGHT: np.array([weight])}
        return self._within(run(self._block, at, self.context))

    def _within(self, state: Values) -> dict[str, Array]:
        return {name: np.asarray(one.project(state[name][0]))[None] for name, one in named(self.problem).items()}

    def _better(self, found: dict[str, float], known: _Start) -> bool:
        before = known.figures
        sign = 1.0 if isinstance(self.problem.objective, cp.Minimize) else -1.0
        fall = sign * (before["objective"] - found["objective"])
        if self.loose:
            fall += known.price * (before[MISSED] - found[MISSED])
        noise = NOISE * (1.0 + abs(before["objective"]))
        meets = self.loose or found["violation"] <= max(before["violation"], FEASIBLE)
        return meets and (fall > noise or (fall >= -noise and found["kkt"] < before["kkt"]))

    def _measured(self, state: Values) -> dict[str, float]:
        """Return the figures, and by how much the constraints that are not convex are missed in all."""
        found = {name: float(value[0]) for name, value in self.measure(state).items()}
        return {**found, MISSED: self._missed(state)}

    def _missed(self, state: Values) -> float:
        placed(self.problem, single({name: state[name] for name in named(self.problem)}, 0))
        return float(sum(np.sum(one.violation()) for one in self.problem.constraints if not one.is_dcp()))


def _size(state: Values) -> float:
    return 1.0 + max(float(np.abs(value).max(initial=0.0)) for value in state.values())
