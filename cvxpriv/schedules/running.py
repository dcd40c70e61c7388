"""The runner of schedules: each kind of step, and loops that follow every start until its own stopping rule holds."""

import time
from collections.abc import Callable, Iterable

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.errors import Disagreement, ModelError, PrivacyError
from cvxpriv.numerics.arrays import Array, Values, put, starts_in, take
from cvxpriv.numerics.doors import door
from cvxpriv.schedules.history import Context, LoopReport
from cvxpriv.schedules.steps import AnyStep, Draw, Loop, Parallel, Public, Sweep, Update, released_by


@door
def run(step: AnyStep, state: Values, context: Context) -> dict[str, Array]:
    """Run a step and return the whole next state; the given state stays as it was.

    Raises
    ------
    SolverFailure, Disagreement
        The engine raised it.
    """
    match step:
        case Block():
            return _run_block(step, state, context)
        case Update():
            return {**state, **step.fn(_read(step.reads, state))}
        case Draw():
            return {**state, **_run_draw(step, state, context)}
        case Public():
            return {**state, **_run_public(step, state, context)}
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


def _read(names: Iterable[str], state: Values) -> dict[str, Array]:
    try:
        return {name: state[name] for name in names}
    except KeyError as error:
        raise ModelError(f"state lacks {error.args[0]!r}, which a step reads: give it at the start") from error


class _Released(dict[str, Array]):
    """The view of a public step, or of a loop around a draw: it refuses access to anything unreleased."""

    def __init__(self, known: Values, refusal: str) -> None:
        super().__init__(known)
        self.refusal = refusal

    def __missing__(self, name: str) -> Array:
        raise PrivacyError(self.refusal.format(name=name))


def _run_draw(draw: Draw, state: Values, context: Context) -> Values:
    view = _read(draw.reads, state)
    costs = draw.cost(view) if callable(draw.cost) else draw.cost
    written = draw.fn(view, context.noise)
    # Each start's output is a release of its own.
    context.ledger += [cost.at(draw.name, context.iteration) for _ in range(starts_in(state)) for cost in costs]
    context.published.append(written)
    return written


def _run_public(public: Public, state: Values, context: Context) -> Values:
    refusal = (
        f"step {public.name!r} reads {{name}}, which it does not declare: a public step sees only what was released"
    )
    known = _Released(_read(public.reads, state), refusal)
    if isinstance(public.step, Update):
        return public.step.fn(known)
    done = _run_block(public.step, known, context)
    return {name: done[name] for name in public.writes}


def _run_block(block: Block, state: Values, context: Context) -> dict[str, Array]:
    outcome = context.engine.solve(block, _read(block.reads, state))
    context.history.block(context.iteration, block.name, context.starts, outcome)
    return {**state, **outcome.values}


def _run_sweep(sweep: Sweep, state: Values, context: Context) -> dict[str, Array]:
    exact = context.engine.name == "closed_form"
    if exact and sweep.fused is not None and all(one.direct for one in sweep.steps if isinstance(one, Block)):
        return {**state, **sweep.fused(state)}  # a block with a user's constraint has no exact update
    after = dict(state)
    for step in sweep.steps:
        after = run(step, after, context)
    if context.engine.checks:
        _assert_invariants(sweep, state, after, context)
    return after


def _run_loop(loop: Loop, state: Values, context: Context) -> dict[str, Array]:
    outer_starts, outer_iteration = context.starts, context.iteration
    count = starts_in(state)
    if outer_starts.size != count:
        outer_starts = np.arange(count)
    iterations = np.zeros(count, dtype=np.intp)
    converged = np.zeros(count, dtype=bool)
    active = np.arange(count)
    current = dict(state)
    seen = _seen_by(loop)
    try:
        for iteration in range(1, loop.limit + 1):
            context.iteration, context.starts = iteration, outer_starts[active]
            begun = time.perf_counter()
            before = take(current, active)
            after = _one_iteration(loop, before, context, seen)
            measured = loop.measure(seen(after))
            current = put(current, active, after)
            iterations[active] = iteration
            seconds = time.perf_counter() - begun
            context.history.iteration(iteration, loop.name, context.starts, context.engine.name, measured, seconds)
            finished = loop.stop(iteration, seen(before), seen(after), measured)
            converged[active[finished]] = True
            active = active[~finished]
            if context.callback is not None and context.callback(loop.name, iteration, measured):
                context.interrupted = True
            if active.size == 0:
                break
            context.look_at_the_clock()
            if context.ended:
                break
    except KeyboardInterrupt:
        context.interrupted = True
    finally:
        context.iteration, context.starts = outer_iteration, outer_starts
    context.reports[loop.name] = LoopReport(iterations, converged)
    return current


def _seen_by(loop: Loop) -> Callable[[Values], Values]:
    """Return the state as the loop's own functions see it: all of it, or around a draw the released entries."""
    released = released_by(loop.body)
    if released is None:
        return lambda state: state
    refusal = (
        f"loop {loop.name!r} draws noise, and its stop, measure or accept reads {{name}}, which was not released: when "
        "it ends, or what it measures, would tell of the data; read released entries, or release this one by a Draw"
    )
    return lambda state: _Released({name: state[name] for name in released if name in state}, refusal)


def _one_iteration(
    loop: Loop, before: dict[str, Array], context: Context, seen: Callable[[Values], Values]
) -> dict[str, Array]:
    if loop.accelerate is None:
        after = run(loop.body, before, context)
    else:
        after = dict(loop.accelerate(lambda state: run(loop.body, state, context), before, context.iteration))
    if loop.accept is not None:
        taken = loop.accept(seen(before), seen(after))
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
