"""The orchestrator: steps over a state, in sweeps and loops.

An algorithm is written as the paper writes it::

    Loop(Sweep(q, u, r, w), stop=Below("kkt", 1e-7), limit=500)

Steps are pure: each gets the state, returns the entries it writes, and keeps nothing. A `Sweep` is Gauss-Seidel (each
step sees what the one before it wrote), a `Parallel` is Jacobi (all see one snapshot). A `Loop` follows every start
until its own stopping rule holds, and leaves finished starts alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cvxpriv.block import Block
from cvxpriv.engines import Engine
from cvxpriv.errors import Disagreement, ModelError
from cvxpriv.history import History
from cvxpriv.state import Array, Values, put, starts_in, take
from cvxpriv.stopping import Stop

__all__ = ["Context", "Invariant", "Loop", "LoopReport", "Parallel", "Sweep", "Update"]

Measure = Callable[[Values], Mapping[str, Array]]
Accelerator = Callable[[Callable[[Values], dict[str, Array]], dict[str, Array], int], Values]


@dataclass
class Context:
    """What one run shares among its steps.

    Attributes
    ----------
    engine : Engine
    history : History
    callback : callable, optional
        Called as `callback(loop, iteration, measured)` after each iteration of a loop that measures; returning True
        ends the run as a keyboard interrupt would.
    iteration : int
        Of the innermost loop that runs.
    starts : ndarray of int
        Which starts of the whole run the state at hand holds.
    interrupted : bool
        Set by a keyboard interrupt or by the callback; loops then return what they have.
    """

    engine: Engine
    history: History = field(default_factory=History)
    callback: Callable[[str, int, Mapping[str, Array]], bool | None] | None = None
    iteration: int = 0
    starts: npt.NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    interrupted: bool = False
    reports: dict[str, LoopReport] = field(default_factory=dict)


@dataclass(frozen=True)
class Update:
    """A step that is no optimisation: a dual step, a growing penalty.

    Attributes
    ----------
    name : str
    fn : callable
        The entries read (all starts) to the entries written.
    reads, writes : frozenset of str
    """

    name: str
    fn: Callable[[Values], Values]
    reads: frozenset[str]
    writes: frozenset[str]


@dataclass(frozen=True)
class Invariant:
    """A fact that must hold after every sweep; the `checked` engine asserts it.

    Attributes
    ----------
    name : str
    violation : callable
        (state before, state after) to one number per start: how far the fact is from holding.
    tolerance : float
    """

    name: str
    violation: Callable[[Values, Values], Array]
    tolerance: float


class _Several:
    """What several steps read and write together."""

    steps: Sequence[AnyStep]

    @property
    def reads(self) -> frozenset[str]:
        """State entries that any step reads."""
        return frozenset().union(*(step.reads for step in self.steps))

    @property
    def writes(self) -> frozenset[str]:
        """State entries that any step writes."""
        return frozenset().union(*(step.writes for step in self.steps))


@dataclass(frozen=True)
class Sweep(_Several):
    """Steps one after the other, each seeing what the earlier ones wrote (Gauss-Seidel).

    Attributes
    ----------
    steps : sequence of steps
    fused : callable, optional
        The whole sweep as one exact update, for engines that would run every step by its exact update anyway.
        A test of the model holds that it equals the steps.
    invariants : sequence of Invariant
        What the `checked` engine asserts after each sweep.
    name : str
    """

    steps: Sequence[AnyStep]
    fused: Callable[[Values], Values] | None = None
    invariants: Sequence[Invariant] = ()
    name: str = "sweep"


@dataclass(frozen=True)
class Parallel(_Several):
    """Steps that all see one snapshot (Jacobi); no two may write the same entry."""

    steps: Sequence[AnyStep]
    name: str = "parallel"

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for step in self.steps:
            if both := seen & step.writes:
                raise ModelError(f"parallel steps write {sorted(both)} twice: make them a Sweep, or let one write it")
            seen |= step.writes


@dataclass(frozen=True)
class LoopReport:
    """How a loop ended, per start: iterations done, and whether the stopping rule held."""

    iterations: npt.NDArray[np.intp]
    converged: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Loop:
    """Repeat a body until each start's stopping rule holds.

    Attributes
    ----------
    body : step
    stop : Stop
        Reads what `measure` measured.
    limit : int
        Most iterations.
    measure : callable
        State to named figures, one number per start, after each iteration.
    accept : callable, optional
        (state before, state after) to a mask of starts whose step is taken; the others keep their state.
    accelerate : callable, optional
        (body as a map of states, state, iteration) to the next state, in place of one plain run of the body.
    name : str
    """

    body: AnyStep
    stop: Stop
    limit: int
    measure: Measure
    accept: Callable[[Values, Values], npt.NDArray[np.bool_]] | None = None
    accelerate: Accelerator | None = None
    name: str = "loop"

    @property
    def reads(self) -> frozenset[str]:
        """State entries that the body reads."""
        return self.body.reads

    @property
    def writes(self) -> frozenset[str]:
        """State entries that the body writes."""
        return self.body.writes


AnyStep = Block | Update | Sweep | Parallel | Loop


def run(step: AnyStep, state: Values, context: Context) -> dict[str, Array]:
    """Run a step and return the whole next state; the given one stays as it was.

    Raises
    ------
    SolverFailure, Disagreement
        From the engine.
    """
    match step:
        case Block():
            return _run_block(step, state, context)
        case Update():
            return {**state, **step.fn({name: state[name] for name in step.reads})}
        case Sweep():
            return _run_sweep(step, state, context)
        case Parallel():
            after = dict(state)
            for part in step.steps:
                done = run(part, state, context)
                after.update({name: done[name] for name in part.writes})
            return after
        case Loop():
            return _run_loop(step, state, context)


def _run_block(block: Block, state: Values, context: Context) -> dict[str, Array]:
    outcome = context.engine.solve(block, {name: state[name] for name in block.reads})
    context.history.block(context.iteration, block.name, context.starts, outcome)
    return {**state, **outcome.values}


def _run_sweep(sweep: Sweep, state: Values, context: Context) -> dict[str, Array]:
    exact = context.engine.name == "closed_form"
    if exact and sweep.fused is not None and _all_exact(sweep):
        return {**state, **sweep.fused(state)}
    after = dict(state)
    for step in sweep.steps:
        after = run(step, after, context)
    if context.engine.checks:
        _assert_invariants(sweep, state, after, context)
    return after


def _all_exact(sweep: Sweep) -> bool:
    """Whether every block of a sweep has its exact update; one with a user's constraint has not."""
    return all(step.direct is not None for step in sweep.steps if isinstance(step, Block))


def _run_loop(loop: Loop, state: Values, context: Context) -> dict[str, Array]:
    outer_starts, outer_iteration = context.starts, context.iteration
    count = starts_in(state)
    if outer_starts.size != count:
        outer_starts = np.arange(count)
    iterations = np.zeros(count, dtype=np.intp)
    converged = np.zeros(count, dtype=bool)
    active = np.arange(count)
    current = dict(state)
    try:
        for iteration in range(1, loop.limit + 1):
            context.iteration, context.starts = iteration, outer_starts[active]
            begun = time.perf_counter()
            before = take(current, active)
            after = _one_iteration(loop, before, context)
            measured = loop.measure(after)
            current = put(current, active, after)
            iterations[active] = iteration
            context.history.iteration(loop.name, context, measured, time.perf_counter() - begun)
            finished = loop.stop(iteration, before, after, measured)
            converged[active[finished]] = True
            active = active[~finished]
            if context.callback is not None and context.callback(loop.name, iteration, measured):
                context.interrupted = True
            if active.size == 0 or context.interrupted:
                break
    except KeyboardInterrupt:
        context.interrupted = True
    finally:
        context.iteration, context.starts = outer_iteration, outer_starts
    context.reports[loop.name] = LoopReport(iterations, converged)
    return current


def _one_iteration(loop: Loop, before: dict[str, Array], context: Context) -> dict[str, Array]:
    if loop.accelerate is None:
        after = run(loop.body, before, context)
    else:
        after = dict(loop.accelerate(lambda state: run(loop.body, state, context), before, context.iteration))
    if loop.accept is not None:
        taken = loop.accept(before, after)
        if not taken.all():
            after = put(before, np.flatnonzero(taken), take(after, np.flatnonzero(taken)))
    return after


def _assert_invariants(sweep: Sweep, before: Values, after: Values, context: Context) -> None:
    for invariant in sweep.invariants:
        violation = invariant.violation(before, after)
        worst = int(np.argmax(violation))
        if not violation[worst] <= invariant.tolerance:
            raise Disagreement(
                f"{sweep.name!r}, iteration {context.iteration}, start {context.starts[worst]}: {invariant.name} is "
                f"violated by {violation[worst]:.2e} > {invariant.tolerance:g}"
            )
