"""The best mechanism by column generation, as a run's start: only Newton's polish is left to do.

Column generation (`bound`) returns a mechanism within the wanted gap of the global optimum. As a start of the method
of alternating blocks it is polished until its KKT residual is small; where it is small already, no pass is made.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from cvxpriv.blocks.engines import Engine
from cvxpriv.bounds.columns import Generation
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.schedules.history import Context, History, LoopReport

from . import algorithm, closed_form
from .bound import Clock, FunnelBound
from .columns import mechanism_of, mixed_to_rate
from .interior import feasible_rows
from .price import price
from .pricing import FunnelPricing
from .problem import Problem

#: An output of less mass is free: it may become any other.
EMPTY = 1e-12

#: Height of the logarithms of an empty output's symbols above those that its posterior lacks.
ABOVE = 40.0

#: Part of an output's mass times P(x) that a cell without mass gets where Newton's method did not end.
TRACE = 1e-9

#: A certified gap up to this, in nats, says more of free outputs than their price.
PROVED = 1e-7

#: Largest number of cells of a mechanism that is polished: a pass of Newton's method then takes seconds and memory.
MOST_CELLS = 200_000

#: Number of passes for a mechanism that is proved to leak at most the tolerance: most need ten, and where no multiplier
#: makes it stationary no number of them suffices.
FEW_PASSES = 100

#: Largest number of runs from a bound's mechanism.
MOST_RUNS = 12

End: TypeAlias = tuple[Values, Context]


def _start_of(problem: Problem, found: FunnelBound) -> Array | None:
    """Return log P(X, Y) of the mechanism of a bound, (1, |X|, |Y|); None where it has more than |Y| symbols."""
    spare = problem.size_y - found.mechanism.shape[1]
    if spare < 0:
        return None
    log_u = closed_form.log_joint(problem.p_x, np.pad(found.mechanism, ((0, 0), (0, spare)))[None])
    if spare:  # empty outputs stand at the posterior of the heaviest one: at any other they would count as a residual
        heaviest = log_u[0, :, int((problem.p_x @ found.mechanism).argmax())]
        held = heaviest > closed_form.FLOOR
        empty = np.where(held, closed_form.FLOOR + ABOVE + heaviest - heaviest[held].min(), closed_form.FLOOR)
        log_u[0, :, -spare:] = empty[:, None]
    return log_u


def _already_stationary(problem: Problem, log_u: Array, tol: float, engine: Engine, lam: float) -> End | None:
    """Return one start as the end of a run without a pass, if its residual is at most `tol`, at `lam` or the best."""
    residuals = algorithm.final_residuals(problem, log_u, np.array([lam]), tol)
    if residuals.largest[0] > tol:
        return None
    return settled(problem, engine, log_u, residuals.lam)


def settled(problem: Problem, engine: Engine, log_u: Array, lam: Array | None = None) -> End:
    """Return one start, (1, |X|, |Y|), as the end of a run without a pass."""
    context = Context(engine, History(), starts=np.arange(1))
    context.reports[algorithm.LOOP] = LoopReport(np.zeros(1, dtype=np.intp), np.ones(1, dtype=bool))
    return closed_form.complete(log_u, problem.p_s_given_x, lam), context


def polished(
    problem: Problem, found: FunnelBound, tol: float, engine: Engine, polish: Callable[[Array], End], seconds: float
) -> list[End]:
    """Run the method of alternating blocks from a bound's mechanism, again as long as a free output pays.

    `polish`: Maps log P(X, Y), (1, |X|, |Y|), to the end of a run. `seconds`: After them no other run begins.
    Returns (state, context): Each run begins where the one before it ended, with its free outputs put to use. Empty if
    the mechanism has more symbols than Y.
    """
    log_u, ends, clock = _start_of(problem, found), list[End](), Clock(seconds)
    while log_u is not None:
        large = log_u.size > MOST_CELLS
        wanted = np.inf if large else tol
        state, context = _already_stationary(problem, log_u, wanted, engine, found.certificate.lam) or polish(log_u)
        done = large or context.reports[algorithm.LOOP].converged[0] or context.ended
        if not (done or found.upper <= tol or clock.over()):  # a leak below the tolerance needs no second attempt
            state, context = polish(_traced(problem, log_u))
        ends.append((state, context))
        if large or len(ends) == MOST_RUNS or context.ended or clock.over():
            break
        log_u = _freed(problem, closed_form.rows_of(state["log_u"][0]), found.lower, tol, clock)
    return ends


def _traced(problem: Problem, log_u: Array) -> Array:
    """Return log P(X, Y), (1, |X|, |Y|), with a trace of mass in each cell: an empty one takes thousands of passes."""
    least = np.log(np.exp(log_u).sum(axis=1, keepdims=True)) + np.log(problem.p_x)[:, None] + np.log(TRACE)
    raised = np.maximum(log_u, least)
    raised += np.log(problem.p_x)[:, None] - np.log(np.exp(raised).sum(axis=-1, keepdims=True))
    return feasible_rows(raised, problem.p_x, problem.rate - problem.table.entropy_x)


def _freed(problem: Problem, mechanism: Array, lower: float, tol: float, clock: Clock) -> Array | None:
    """Return log P(X, Y), (1, |X|, |Y|), with the free outputs put to better use; None where none of them pays."""
    if free_symbol(problem, mechanism, lower) <= tol:
        return None
    joint = problem.p_x[:, None] * mechanism[:, problem.p_x @ mechanism > EMPTY]
    columns = joint / joint.sum(axis=0)
    pricing = FunnelPricing(problem.table.probabilities, problem.rate)
    generation = Generation(pricing, pricing.master(), np.concatenate([columns, np.eye(len(columns))], axis=1))
    found = generation.run(tol, clock.over, idle_below=tol)
    better = mixed_to_rate(mechanism_of(found.columns, found.weights, problem.p_x), problem.p_x, problem.rate)
    spare = problem.size_y - better.shape[1]
    return None if spare < 0 else closed_form.log_joint(problem.p_x, np.pad(better, ((0, 0), (0, spare)))[None])


def free_symbol(problem: Problem, mechanism: Array, lower: float | None = None) -> float:
    """Return what the best use of a free output would gain, in nats: 0 where no output is free.

    An empty output is priced by the ordinary residual at the one posterior that is stored for it, which says nothing.
    No use of it gains more than the distance from `lower`, where a lower bound is known.
    """
    mass = problem.p_x @ mechanism
    if (mass > EMPTY).all():
        return 0.0
    gap = np.inf if lower is None else max(problem.leakage(mechanism) - lower, 0.0)
    if gap <= PROVED or (mechanism.size > MOST_CELLS and lower is not None):  # a price would take minutes
        return float(gap)
    return float(min(gap, price(problem.table.probabilities, mechanism[:, mass > EMPTY], problem.rate).free))
