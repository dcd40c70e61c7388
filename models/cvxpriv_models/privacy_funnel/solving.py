"""The solve of a funnel: starts, the passes from each, and the best of them.

With a user's constraints a first phase leads every start into them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.blocks.declaration import Known
from cvxpriv.blocks.engines import Engine
from cvxpriv.bounds.columns import INTERRUPTED, OUT_OF_TIME
from cvxpriv.constraints.gate import brought_inside, missed, plainest
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array, IntArray, Values, put, single, take
from cvxpriv.numerics.sizes import late
from cvxpriv.runs.shared_options import Watch
from cvxpriv.schedules.history import Context, History
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Loop
from cvxpriv.tables.arrays import given_mechanisms
from cvxpriv.tables.information import mutual_information

from . import algorithm, closed_form, optimum
from .baselines import agglomerative, quickly_merged
from .blocks import Constraints
from .bound import FunnelBound
from .columns import tilted_to_rate
from .constrained_pricing import most_told
from .kkt import final_residuals
from .problem import Problem
from .run import FunnelRun, Settings
from .starts import feasible_starts, softened

#: Distance below the rate allowed for a start: the rounding of a mechanism's rows in a file.
FEASIBLE = 1e-9
#: Shares of another mechanism that are mixed in until rounding leaves the constraints alone.
MIXED = (0.0, *(2.0**power for power in range(-50, -35, 3)))
#: Shares of a start that are left when it is mixed with P(Y), until it satisfies the constraints.
SHARES = tuple(2.0**-power for power in range(12))
#: Largest number of symbols of X for submodular clustering: a second of work.
MOST_CLUSTERED = 64
#: Two starts whose leakages differ by less are one answer: the converged one is kept.
SAME_LEAKAGE = 1e-9


def initial(
    problem: Problem, init: ArrayLike | None, starts: int, seed: int, *, clustered: bool
) -> tuple[Array, Sequence[str]]:
    """Return log P(X, Y) of every start, (starts, |X|, |Y|), and where each comes from.

    `init`, (|X|, |Y|) and (starts, |X|, |Y|): A user's mechanisms P(Y|X), in place of any others.
    `starts`, `seed`: Number of random starts, and their seed.
    `clustered`: Whether clusters of the symbols take the place of the first.
    """
    if init is not None:
        mechanisms = _required(problem, init)
        return closed_form.log_joint(problem.p_x, mechanisms), ["init"] * len(mechanisms)
    log_u = feasible_starts(problem.p_x, problem.rate, problem.size_y, starts, seed)
    origins = ["random"] * len(log_u)
    if clustered:
        joint, quick = problem.table.probabilities, len(problem.p_x) <= MOST_CLUSTERED
        sharp = agglomerative(joint, problem.rate).mechanism if quick else quickly_merged(joint, problem.rate)
        if (spare := problem.size_y - sharp.shape[1]) >= 0:
            padded = np.pad(sharp, ((0, 0), (0, spare)))
            even = np.full_like(padded, 1.0 / problem.size_y)
            log_u[0], origins[0] = softened(problem.p_x, problem.rate, padded, even), "clustering"
    return log_u, origins


@dataclass(frozen=True, eq=False)
class Passes:
    """The passes of a method from some starts, called with log P(X, Y), (starts, |X|, |Y|).

    The final state comes back, with its context.
    """

    problem: Problem
    constraints: Constraints
    method: str
    accelerate: str
    tol: float
    limit: int
    engine: Engine
    callback: Watch | None

    @cached_property
    def loop(self) -> Loop:
        """The schedule, made when a start needs it: the optimum of column generation rarely does."""
        return algorithm.schedule(self.problem, self.method, self.accelerate, self.tol, self.limit, self.constraints)

    def __call__(self, log_u: Array) -> tuple[Values, Context]:
        state, context = self._begun(log_u)
        return run(self.loop, state, context), context

    def below(self, least: float, log_u: Array) -> tuple[Values, Context] | None:
        """Run those starts to their end that a race sees leak less than `least`; None where none does."""
        state, context = self._begun(log_u)
        state = run(algorithm.race(self.problem, self.method, least, self.constraints), state, context)
        if context.ended:
            return state, context
        ahead = np.flatnonzero(closed_form.leakage(state["log_u"], self.problem.p_s_given_x) < least)
        context = Context(self.engine, History(), self.callback, starts=np.arange(ahead.size))
        return (run(self.loop, take(state, ahead), context), context) if ahead.size else None

    def _begun(self, log_u: Array) -> tuple[Values, Context]:
        context = Context(self.engine, History(), self.callback, starts=np.arange(len(log_u)))
        state: Values = closed_form.complete(log_u, self.problem.p_s_given_x)
        return _inside(self.problem, self.constraints, state, context) if self.constraints else state, context


def best_run(
    problem: Problem,
    constraints: Constraints,
    pieces: Sequence[tuple[Values, Context]],
    origins: Sequence[str],
    settings: Settings,
    seconds: float,
    bound: FunnelBound | None = None,
) -> FunnelRun:
    """Return the run of the best start among those of all pieces.

    The best is the one of least leakage; of several within `SAME_LEAKAGE` of it, a converged one of least residual.
    Under constraints the best one's residual is measured where the constraints are kept to the bit, once time is over
    too; the others' are of their last pass. Without constraints its residual includes what the best use of a free
    output would gain, and a certified gap of at most the tolerance is convergence too.
    """
    one = len(pieces) == 1  # a large mechanism is not copied
    log_u, lam = (
        pieces[0][0][name] if one else np.concatenate([piece[name] for piece, _ in pieces]) for name in ("log_u", "lam")
    )
    if constraints:
        log_u = _brought_inside(problem, constraints, log_u)
    else:
        tilted = [tilted_to_rate(joint, problem.p_x, problem.rate) for joint in log_u]
        log_u = log_u if one and np.shares_memory(tilted[0], log_u) else np.stack(tilted)

    def completed(some: IntArray) -> Values:
        return closed_form.complete(log_u[some], problem.p_s_given_x, lam[some])

    leakage = closed_form.leakage(log_u, problem.p_s_given_x)
    reports = [context.reports[algorithm.LOOP] for _, context in pieces]
    if constraints:
        residual = np.concatenate(
            [report.figures.get("kkt", np.full(len(report.iterations), np.inf)) for report in reports]
        )
    else:
        residual = final_residuals(problem, log_u, lam, settings.tol).largest
    near = np.flatnonzero(leakage <= leakage.min() + SAME_LEAKAGE)
    near = near[residual[near].argsort(kind="stable")]

    for start in near.tolist():  # the first converged one; a free output of one may pay where another has none
        if constraints:
            residual[start] = algorithm.residuals_under(problem, constraints)(completed(np.array([start])))[0]
        else:
            lower = None if bound is None else bound.lower
            free = optimum.free_symbol(problem, closed_form.rows_of(log_u[start]), lower)
            residual[start] = max(residual[start], free)
        if residual[start] <= settings.tol or late():
            break
    else:
        start = int(near[residual[near].argmin()])
    converged = residual <= settings.tol
    converged[start] |= bound is not None and leakage[start] - bound.lower <= settings.tol
    figures = {
        "origin": origins,
        "leakage": leakage,
        "utility": closed_form.utility(log_u),
        "kkt": residual,
        "iterations": np.concatenate([report.iterations for report in reports]),
        "converged": converged,
    }
    log = History.joined(
        (context.history, len(one.iterations)) for (_, context), one in zip(pieces, reports, strict=True)
    )
    interrupted = any(context.interrupted for _, context in pieces)
    interrupted |= bound is not None and INTERRUPTED in bound.reason
    overdue = any(context.overdue for _, context in pieces)
    overdue |= bound is not None and OUT_OF_TIME in bound.reason and not converged[start]
    return FunnelRun(
        problem,
        single(completed(np.array([start])), 0),
        figures,
        start,
        settings,
        seconds,
        log,
        constraints,
        interrupted,
        bound,
        overdue=overdue,
    )


def _brought_inside(problem: Problem, constraints: Constraints, log_u: Array) -> Array:
    """Return every start with ready constraints kept to the bit, unless that costs more than rounding of the rate."""
    known, result = Known.of_table(problem.table), log_u.copy()
    for start, joint in enumerate(log_u):
        mechanism = closed_form.rows_of(joint)
        moved, kept = brought_inside(mechanism, constraints, known), joint
        other = moved if moved is mechanism else plainest(moved, constraints, known)
        for share in MIXED:  # a logarithm rounds too: what is kept is looked at as it is read again
            if moved is mechanism or not missed(closed_form.rows_of(kept), constraints, known):
                break
            mixed = (1.0 - share) * moved + share * other
            kept = closed_form.log_joint(problem.p_x, mixed[None])[0]
        if problem.utility(closed_form.rows_of(kept)) >= problem.rate - FEASIBLE:
            result[start] = kept
    return result


def _required(problem: Problem, init: ArrayLike) -> Array:
    """Return a user's starts as (starts, |X|, |Y|), or raise."""
    given = given_mechanisms(init, (problem.p_x.size, problem.size_y))
    told = mutual_information(problem.p_x[:, None] * given, axis=(-2, -1))
    if (low := np.flatnonzero(told < problem.rate - FEASIBLE)).size:
        raise ModelError(
            f"init[{low[0]}] has I(X;Y)={told[low[0]]:.6g} nats, below rate={problem.rate:.6g}: "
            "start from a mechanism that carries the rate, or lower the rate"
        )
    return given


def _inside(problem: Problem, constraints: Constraints, state: Values, context: Context) -> Values:
    """Lead every start into the constraints, at the rate.

    One that gets stuck begins again elsewhere (`_begun_again`), and then from the first that did get there.
    """
    climb = algorithm.phase_one(problem, constraints)
    reached = run(climb, state, context)
    stuck = np.flatnonzero(~context.reports[climb.name].converged)
    told = float(closed_form.utility(reached["log_u"]).max())
    for log_u in _begun_again(problem, constraints, state["log_u"]):
        if not stuck.size:
            break
        again = run(
            climb,
            closed_form.complete(np.repeat(log_u, stuck.size, axis=0)[: stuck.size], problem.p_s_given_x),
            context,
        )
        told = max(told, float(closed_form.utility(again["log_u"]).max()))
        reached = put(reached, stuck, again)
        stuck = stuck[~context.reports[climb.name].converged]
        if stuck.size < len(reached["log_u"]):
            break
    inside = np.setdiff1d(np.arange(len(reached["log_u"])), stuck)
    if not inside.size:
        raise ModelError(
            f"constraints {', '.join(name for name, _ in constraints)}: no mechanism that satisfies them and tells "
            f"rate={problem.rate:.6g} nats was found; the best one found tells {told:.6g}: lower rate, relax a "
            "constraint, or raise size_y"
        )
    log_u = np.asarray(reached["log_u"]).copy()
    log_u[stuck] = log_u[inside[0]]
    return {**state, **closed_form.complete(log_u, problem.p_s_given_x)}


def _begun_again(problem: Problem, constraints: Constraints, log_u: Array) -> Iterator[Array]:
    """Yield where stuck starts begin again: one start for all of them, or one for each.

    An injective map; the mechanism that tells most, as far as it is known; and deterministic maps. These two are mixed
    with P(Y) until they satisfy the constraints: under some the tangent of I(X;Y) at a map with zeros leads to none
    told.
    """
    if problem.size_y >= problem.p_x.size:
        yield feasible_starts(problem.p_x, problem.table.entropy_x, problem.size_y, len(log_u))
    known = Known.of_table(problem.table)

    def shrunk(one: Array) -> Array:
        mixtures = (one + (1.0 - share) * (problem.p_x @ one - one) for share in SHARES)
        return next((mixed for mixed in mixtures if not missed(mixed, constraints, known)), one)

    _, telling = most_told(problem, constraints)
    if telling is not None and telling.shape[1] <= problem.size_y:
        begin = np.pad(telling, ((0, 0), (0, problem.size_y - telling.shape[1])))
        yield closed_form.log_joint(problem.p_x, shrunk(begin)[None])
    yield closed_form.log_joint(problem.p_x, np.stack([shrunk(one) for one in map(closed_form.rows_of, log_u)]))
