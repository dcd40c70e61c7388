"""The runner of schedules: each kind of step, and loops that follow every start until its own stopping rule holds.

`run_each` does many runs, in order or in parallel.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.errors import Disagreement, ModelError, PrivacyError
from cvxpriv.numerics.arguments import require_workers
from cvxpriv.numerics.arrays import Array, Values, put, starts_in, take
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.sizes import OutOfTime, in_time
from cvxpriv.reports.progress import track
from cvxpriv.schedules.history import Context, LoopReport
from cvxpriv.schedules.steps import AnyStep, Draw, Loop, Parallel, Public, Sweep, Update, parts_of
from cvxpriv.solvers.place import Elsewhere, apart, process


@door
def run(step: AnyStep, state: Values, context: Context) -> dict[str, Array]:
    """Run a step and return the whole next state; the given state stays as it was.

    From the first draw that claims privacy on, whatever can be seen of a run is a function of released entries:
    measurements, stops, costs, invariants, and the records of blocks.

    Raises
    ------
    PrivacyError
        One of these, or a public step, reads what was not released at that moment.
    SolverFailure, Disagreement
        The engine raised it.
    """
    parts = list(parts_of(step))
    if context.released is not None or any(isinstance(part, Draw) and not part.flawed for part in parts):
        known = (part.released for part in parts if isinstance(part, Public))
        context.released = (context.released or frozenset()).union(*known)
    try:
        return _run(step, state, context)
    except OutOfTime:
        context.look_at_the_clock()
        return dict(state)


def _run(step: AnyStep, state: Values, context: Context) -> dict[str, Array]:
    match step:
        case Block() | Update():
            done = _run_block(step, state, context) if isinstance(step, Block) else step.fn(_read(step.reads, state))
            if context.released is not None:
                context.released -= step.writes
            return {**state, **done}
        case Draw() | Public():
            written = _run_draw(step, state, context) if isinstance(step, Draw) else _run_public(step, state, context)
            if context.released is not None:
                context.released |= step.writes
            return {**state, **written}
        case Sweep():
            return _run_sweep(step, state, context)
        case Parallel():
            return _run_parallel(step, state, context)
        case Loop():
            return _run_loop(step, state, context)


def _run_parallel(parallel: Parallel, state: Values, context: Context) -> dict[str, Array]:
    after, before = dict(state), context.released
    released = before
    for part in parallel.steps:
        context.released = before
        done = _run(part, state, context)
        if part is not parallel.steps[-1]:
            _look_at_the_clock(context)
        after.update({name: done[name] for name in part.writes})
        if released is not None and context.released is not None:
            released = (released - part.writes) | (context.released & part.writes)
    context.released = released
    return after


def _look_at_the_clock(context: Context) -> None:
    """Raise OutOfTime where the deadline passes within a pass of solvers.

    A loop in the pass that it ended already gave a result: the pass then goes on. So does one of exact updates, and one
    with draws, whose releases are out.
    """
    if context.engine.name != "closed_form" and context.released is None and not context.overdue:
        context.look_at_the_clock()
        if context.overdue:
            raise OutOfTime


def _read(names: Iterable[str], state: Values) -> dict[str, Array]:
    try:
        return {name: state[name] for name in names}
    except KeyError as error:
        raise ModelError(f"state lacks {error.args[0]!r}, which a step reads: give it at the start") from error


class _Released(dict[str, Array]):
    """The released entries of a state: it refuses access to any other."""

    def __init__(self, known: Values, reader: str) -> None:
        super().__init__(known)
        self.reader = reader

    def __missing__(self, name: str) -> Array:
        raise PrivacyError(
            f"{self.reader} reads {name}, which it does not declare, or which was not released: what is seen of a "
            "private run would tell of the data; declare it, and release it by a Draw"
        )


def _seen(state: Values, context: Context, reader: str) -> Values:
    """Return the entries of a state that may be read where the result can be seen: all, if nothing claims privacy."""
    if context.released is None:
        return state
    return _Released({name: value for name, value in state.items() if name in context.released}, reader)


def _run_draw(draw: Draw, state: Values, context: Context) -> Values:
    view = _read(draw.reads, state)
    costs = draw.cost(_seen(view, context, f"the cost of {draw.name!r}")) if callable(draw.cost) else draw.cost
    written = draw.fn(view, context.noise)
    # Each start's output is a release of its own.
    context.ledger += [cost.at(draw.name, context.iteration) for _ in range(starts_in(state)) for cost in costs]
    context.published.append(written)
    return written


def _run_public(public: Public, state: Values, context: Context) -> Values:
    known = _Released(_seen(_read(public.reads, state), context, ""), f"the public step {public.name!r}")
    if isinstance(public.step, Update):
        return public.step.fn(known)
    done = _run_block(public.step, known, context, public=True)
    return {name: done[name] for name in public.writes}


def _run_block(block: Block, state: Values, context: Context, public: bool = False) -> dict[str, Array]:
    outcome = context.engine.solve(block, _read(block.reads, state))
    if public or context.released is None:
        context.history.block(context.iteration, block.name, context.starts, outcome)
    return {**state, **outcome.values}


def _run_sweep(sweep: Sweep, state: Values, context: Context) -> dict[str, Array]:
    exact = context.engine.name == "closed_form"
    if exact and sweep.fused is not None and all(one.direct for one in sweep.steps if isinstance(one, Block)):
        return {**state, **sweep.fused(state)}  # a block with a user's constraint has no exact update
    after = dict(state)
    for step in sweep.steps:
        after = _run(step, after, context)
        if step is not sweep.steps[-1]:
            _look_at_the_clock(context)
    if context.engine.checks:
        _assert_invariants(sweep, _seen(state, context, sweep.name), _seen(after, context, sweep.name), context)
    return after


def _run_loop(loop: Loop, state: Values, context: Context) -> dict[str, Array]:
    outer_starts, outer_iteration = context.starts, context.iteration
    count = starts_in(state)
    if outer_starts.size != count:
        outer_starts = np.arange(count)
    iterations = np.zeros(count, dtype=np.intp)
    converged = np.zeros(count, dtype=bool)
    figures: dict[str, Array] = {}
    active = np.arange(count)
    current = dict(state)
    reader = f"loop {loop.name!r} (its stop, measure or accept)"
    try:
        for iteration in range(1, loop.limit + 1):
            context.iteration, context.starts = iteration, outer_starts[active]
            begun = time.perf_counter()
            before = take(current, active)
            seen = _seen(before, context, reader)
            after = _one_iteration(loop, before, seen, context, reader)
            measured = loop.measure(_seen(after, context, reader))
            current = put(current, active, after)
            iterations[active] = iteration
            for name, values in measured.items():
                figures.setdefault(name, np.full(count, np.nan))[active] = values
            seconds = time.perf_counter() - begun
            context.history.iteration(iteration, loop.name, context.starts, context.engine.name, measured, seconds)
            answer = loop.stop(iteration, seen, _seen(after, context, reader), measured)
            finished = np.broadcast_to(answer, active.shape)
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
    except OutOfTime:
        context.look_at_the_clock()
    finally:
        context.iteration, context.starts = outer_iteration, outer_starts
    context.reports[loop.name] = LoopReport(iterations, converged, figures)
    return current


def _one_iteration(
    loop: Loop, before: dict[str, Array], seen: Values, context: Context, reader: str
) -> dict[str, Array]:
    known = context.released
    if loop.accelerate is None:
        after = _run(loop.body, before, context)
    else:
        after = dict(loop.accelerate(lambda state: _run(loop.body, state, context), before, context.iteration))
    if loop.accept is not None:
        taken = loop.accept(seen, _seen(after, context, reader))
        if not taken.all():
            after = put(before, np.flatnonzero(taken), take(after, np.flatnonzero(taken)))
            context.released = None if context.released is None or known is None else context.released & known
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


Item = TypeVar("Item")
Result = TypeVar("Result")


def run_each(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    n_jobs: int = 1,
    progress: bool = False,
    description: str = "runs",
    last: Callable[[Result], bool] | None = None,
) -> list[Result]:
    """Do the same work on every item, in the items' order; where it gets `late`, on those begun before.

    >>> run_each(abs, [-1, 2])
    [1, 2]
    """
    require_workers(n_jobs)
    if n_jobs == 1 or len(items) < 2:
        done = (work(item) for item in in_time(items))
    else:
        from joblib import Parallel, delayed

        there = process()
        done = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(_apart)(there, work, item) for item in items)
    results: list[Result] = []
    try:
        shown = track(done, total=len(items), description=description, shown=True) if progress else done
        for result in shown:
            results.append(result)
            if last is not None and last(result):
                break
    except KeyboardInterrupt:
        if last is None:
            raise
    return results


def _apart(there: Elsewhere | None, work: Callable[[Item], Result], item: Item) -> Result:
    with apart(there):
        return work(item)


def run_pieces(work: Callable[[Any], Result], starts: Any, *, n_jobs: int, progress: bool) -> list[Result]:
    """Do the same work on starts, an array or a list of them, cut into one piece per worker.

    >>> run_pieces(len, "thirty", n_jobs=1, progress=False)
    [6]
    """
    from joblib import effective_n_jobs

    require_workers(n_jobs)
    count = len(starts)
    parts = max(1, min(count, effective_n_jobs(n_jobs)))
    cut = [starts[count * part // parts : count * (part + 1) // parts] for part in range(parts)]
    return run_each(work, cut, n_jobs=n_jobs, progress=progress, description="starts")
