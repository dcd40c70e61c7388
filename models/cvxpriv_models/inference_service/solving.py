"""The way from starts to final states: one schedule, or the default's sequence of them."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cvxpriv.blocks.declaration import Known
from cvxpriv.blocks.engines import Engine
from cvxpriv.constraints.gate import NO_MASS, brought_inside
from cvxpriv.divergences.sides import slopes_of
from cvxpriv.errors import SolverFailure
from cvxpriv.numerics.arrays import Array, Values, put, take
from cvxpriv.runs.constraint_facts import violations_of
from cvxpriv.runs.shared_options import Watch
from cvxpriv.schedules.history import Context, History
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Loop

from . import algorithm, closed_form, kkt
from .algorithm import AUTO
from .measured import Constraints, Options
from .problem import LARGEST_BETA, Problem
from .starts import INWARD, RARE, grid_start, initial_state, without_rare

#: Mechanisms to start from, (starts, |Y|, |U|), and where each comes from.
Piece = tuple[Array, Sequence[str]]
#: The origin of the start that one joint problem over a grid of posteriors made.
GRID = "grid"
#: Single passes of the default with exact updates: from every start, and from the best ones that have not converged.
FIRST_PASSES, LAST_PASSES = 200, 2000
#: Largest number of the last ones for each joint step that is allowed: a small `max_iter` ends them early too.
PASSES_A_STEP = 20
#: The first where f has kinks: joint steps soon end at a vertex, from wherever they begin.
KINKED_PASSES = 50
#: The first with a solver, which takes milliseconds for each row; it could not give the last digits.
SOLVER_PASSES = 20
#: Values of F closer than this are one.
SAME = 1e-12
#: Rounding of a row, by which it may miss a constraint.
ULPS = 1e-15
#: Outputs whose P(Y|u) differ by no more repeat each other; and the likeliest inputs at which one of them begins again.
REPEATED, TRIED = 1e-3, 12
#: The least rise of F by it that is no solver's rounding.
FREED = 1e-6
#: Number of times the best start continues from pooled posteriors, and the least rise of F that counts.
POOLINGS, RISE = 4, 1e-9


def solve_starts(
    problem: Problem,
    constraints: Constraints,
    name: str,
    options: Options,
    engine: Engine,
    callback: Watch | None,
    piece: Piece,
) -> tuple[Values, Context]:
    """Run an algorithm from mechanisms; return the final state, settled on what to report, and its context.

    `name`: The algorithm, or "" where the mechanisms are the answer as they are.
    """
    if constraints and problem.beta > LARGEST_BETA:  # a solver would only add rounding
        tame = replace(problem, beta=LARGEST_BETA)
        found, context = solve_starts(tame, constraints, name, options, engine, callback, piece)
        return settled(problem, silenced(problem, constraints, found), constraints), context
    mechanisms, origins = piece
    context = Context(engine, History(), callback, starts=np.arange(len(mechanisms)))
    state: Values = initial_state(problem, mechanisms)
    if constraints:
        state = _inside(problem, constraints, state, context)
    if name == AUTO:
        state = _default(problem, constraints, options, state, np.flatnonzero(np.array(origins) == GRID), context)
    elif name:
        state = run(algorithm.schedule(problem, name, options, constraints), state, context)
        if name == "joint" and constraints:
            state = freed(problem, constraints, options, state, context)
        if name == "joint":
            ends = state["mechanism"] if constraints else _stayed(problem, mechanisms, state["mechanism"])
            state = {**state, "mechanism": ends, "kept": ends}
    return settled(problem, state, constraints), context


def silenced(problem: Problem, constraints: Constraints, state: Values) -> Values:
    """Return the state with one row for everybody where that misses constraints by no more, and is worth as much.

    Such a row tells nothing; leakage is not negative, whatever rounding makes of it.
    """
    known, found = Known.of_table(problem.table), state["mechanism"].copy()
    for start, before in enumerate(state["mechanism"]):
        allowed = violations_of(before, constraints, known)
        worth = problem.accuracy(before) - problem.beta * max(problem.leakage(before), 0.0)
        for light, row in itertools.product(NO_MASS, (problem.p_y @ before, *before)):
            kept = np.where(row > light, row, 0.0)
            silent = np.tile(kept / kept.sum(), (len(before), 1))
            after = violations_of(silent, constraints, known)
            if worth <= SAME and all(after[name] <= max(allowed[name], ULPS) for name in after):
                found[start] = silent
                break
    return {**state, "mechanism": found, "kept": found}


def _stayed(problem: Problem, before: Array, after: Array) -> Array:
    """The ends of joint steps; the starts where these were better stationary points, worth as much: a step rounds."""
    residual = [kkt.residuals(problem, one).largest for one in (before, after)]
    stay = (residual[0] < residual[1]) & (problem.objective(before) >= problem.objective(after) - SAME)
    return np.where(stay[:, None, None], before, after)


def polished(
    problem: Problem, options: Options, state: Values, starts: npt.NDArray[np.intp], context: Context
) -> Values:
    """Take the default's best starts to the bottom of their valleys: joint steps, then passes for the open ones.

    One pass for each update of P(S|U) often ends in a better valley than exact steps; exact steps then reach its
    bottom, except where symbols die slowly: those that F does not miss are dropped.
    """
    context.starts = starts
    climbed = run(algorithm.joint_steps(problem, options), state, context)
    state = settled(problem, {**climbed, "kept": climbed["mechanism"]})
    if not problem.divergence.smooth or not _exact(context) or context.ended:
        return state
    left = _open(problem, options, state)
    if left.size and problem.floor == 0.0:
        context.starts = starts[left]
        dropped = initial_state(problem, without_rare(problem, state["mechanism"][left]))
        climbed = run(algorithm.joint_steps(problem, options), dropped, context)
        state = put(state, left, settled(problem, {**climbed, "kept": climbed["mechanism"]}))
    left = _promising(problem, state, _open(problem, options, state))
    if left.size and not context.ended:
        context.starts = starts[left]
        limit = min(LAST_PASSES, PASSES_A_STEP * options.max_iter)
        swept = run(_single_passes(problem, options, limit), take(state, left), context)
        state = put(state, left, settled(problem, swept))
    return state


def _open(problem: Problem, options: Options, state: Values) -> npt.NDArray[np.intp]:
    """Return the starts that have not converged."""
    return np.flatnonzero(kkt.residuals(problem, state["mechanism"]).largest > options.tol)


def _promising(problem: Problem, state: Values, left: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Those of the open starts whose F is above that of every start that has converged."""
    worth = problem.objective(state["mechanism"])
    converged = np.setdiff1d(np.arange(len(worth)), left)
    return np.asarray(left[worth[left] > worth[converged].max(initial=-np.inf) + RISE])


def pooled(
    problem: Problem, options: Options, state: Values, starts: npt.NDArray[np.intp], seed: int, context: Context
) -> Values:
    """Let the best of `starts` go on from one joint problem over the posteriors of all of them, while that pays.

    Symbols found by different starts then stand in one mechanism; plain steps cannot bring them together.
    """
    for _ in range(POOLINGS):
        worth = problem.objective(state["mechanism"])
        falling = starts[np.argsort(-worth[starts], kind="stable")]
        mechanism = grid_start(problem, context.engine, seed, state["mechanism"][falling])[None]
        if problem.objective(mechanism)[0] <= worth[falling[0]] + RISE:
            break
        chosen = falling[:1]
        state = put(state, chosen, polished(problem, options, initial_state(problem, mechanism), chosen, context))
        if context.ended:
            break
    return state


def freed(problem: Problem, constraints: Constraints, options: Options, state: Values, context: Context) -> Values:
    """Let an output that repeats another begin again at the P(S|y) of an input, under constraints, where F then rises.

    A joint step knows each output at its own posterior alone, so that two that are alike stay so.
    """
    inputs = np.argsort(-problem.p_y)[:TRIED]
    posteriors = (1.0 - INWARD) * problem.p_s_given_y[:, inputs].T + INWARD * problem.p_s
    climb = algorithm.joint_steps(problem, options, constraints)
    every, worth = context.starts, problem.objective(state["mechanism"])
    for start, _ in itertools.product(range(len(worth)), range(POOLINGS)):
        place = _repeated(problem, state["mechanism"][start])
        if place is None or context.ended:
            continue
        tried = {name: np.repeat(value[[start]], len(inputs), axis=0) for name, value in state.items()}
        tried["posterior"][:, :, place] = posteriors
        context.starts = np.repeat(every[start], len(inputs))
        try:
            tried = run(climb, tried, context)
        except SolverFailure:  # tries among others
            continue
        found = problem.objective(tried["mechanism"])
        if found.max() > worth[start] + FREED:
            state = put(state, np.array([start]), take(tried, np.array([found.argmax()])))
            worth[start] = found.max()
    context.starts = every
    return state


def _repeated(problem: Problem, mechanism: Array) -> int | None:
    """Return the place of an output that is rare, or whose P(Y|u) is that of one before it; None for none."""
    q = problem.p_y @ mechanism
    if (rare := np.flatnonzero(q <= RARE)).size:
        return int(rare[0])
    inputs = problem.p_y[:, None] * mechanism / q
    apart = np.abs(inputs[:, :, None] - inputs[:, None, :]).max(axis=0)
    alike = np.flatnonzero((np.triu(apart <= REPEATED, 1)).any(axis=0))
    return int(alike[0]) if alike.size else None


def settled(problem: Problem, state: Values, constraints: Constraints = ()) -> dict[str, Array]:
    """Return the state at the mechanisms to report, the last ones or better kept ones, with all else their own."""
    last = problem.objective(state["mechanism"]) >= problem.objective(state["kept"]) - SAME
    mechanism = np.where(last[:, None, None], state["mechanism"], state["kept"])
    if constraints:
        known = Known.of_table(problem.table)
        mechanism = np.stack([brought_inside(one, constraints, known) for one in mechanism])
    q = problem.p_y @ mechanism
    return {
        **state,
        "mechanism": mechanism,
        "kept": mechanism,
        "q": q,
        "lam": _multiplier(problem, mechanism),
        "posterior": closed_form.posterior(mechanism, problem.p_y, problem.p_s_given_y),
    }


def _default(
    problem: Problem,
    constraints: Constraints,
    options: Options,
    state: Values,
    grid: npt.NDArray[np.intp],
    context: Context,
) -> Values:
    """Joint steps from the grid start, then single passes of ADMM from every start; constrained: joint steps only."""
    climb = algorithm.joint_steps(problem, options, constraints)
    if constraints:
        climbed = freed(problem, constraints, options, run(climb, state, context), context)
        return {**climbed, "kept": climbed["mechanism"]}
    every = context.starts
    if grid.size:
        context.starts = every[grid]
        climbed = run(climb, take(state, grid), context)
        state = put(state, grid, {**climbed, "kept": climbed["mechanism"]})
        context.starts = every
    if context.ended:
        return state
    passes = (FIRST_PASSES if problem.divergence.smooth else KINKED_PASSES) if _exact(context) else SOLVER_PASSES
    return run(_single_passes(problem, options, passes), state, context)


def _exact(context: Context) -> bool:
    return context.engine.name == "closed_form"


def _single_passes(problem: Problem, options: Options, limit: int) -> Loop:
    return algorithm.alternating_direction(problem, replace(options, inner=1, max_iter=limit))


def _inside(problem: Problem, constraints: Constraints, state: Values, context: Context) -> Values:
    """Bring every start into the constraints by one joint step, whatever it does to F."""
    after = run(algorithm.joint_step(problem, constraints), state, context)
    return {**after, "kept": after["mechanism"]}


def _multiplier(problem: Problem, mechanism: Array) -> Array:
    """The lambda at which the P_U block stays at the mechanism's own p(u): beta sum_y p(y) f_q, (starts, |U|)."""
    m = np.broadcast_to((problem.p_y @ mechanism)[..., None, :], mechanism.shape)
    with np.errstate(all="ignore"):
        in_q, _ = slopes_of(problem.divergence).in_q(mechanism, m)
    return np.asarray(problem.beta * (problem.p_y @ np.where(m > 0.0, np.nan_to_num(in_q), 0.0)))
