"""The best mechanism by column generation, as a run's start: only Newton's polish is left to do.

Column generation (`bound`) returns a mechanism within the wanted gap of the global optimum. As a start of the method
of alternating blocks it is polished until its KKT residual is small; where it is small already, no pass is made.

A mechanism has a price, how much a better one could gain at the mechanism's own multipliers. With joint table u and
posteriors w, g_ij = (A' log t_j)_i - lam log w_ij is the derivative of the Lagrangian by u_ij. Multipliers
nu_i = min_j g_ij make every column's phi(w_j) = sum_i w_ij (g_ij - nu_i) >= 0, and

    I(S;Y) - bound(nu, lam) = sum_j r_j phi(w_j) + lam (I(X;Y) - R) - min(0, min over all posteriors of phi).

All three terms vanish at the optimum. The first two are the usual residual. The third prices every posterior, not only
those that are in use: a mechanism with an empty symbol, or with fewer symbols than it may have, can pass the first two
and still be far from stationary.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from cvxpriv.blocks.engines import Engine
from cvxpriv.bounds.columns import Generation
from cvxpriv.errors import SolverFailure
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.schedules.history import Context, History, LoopReport
from cvxpriv.solvers.place import supervised
from cvxpriv.tables.joint import JointTable

from . import algorithm, closed_form
from .bound import Clock, FunnelBound
from .columns import mechanism_of, mixed_to_rate, utility
from .interior import feasible_rows
from .kkt import final_residuals
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


def settled(problem: Problem, engine: Engine, log_u: Array, lam: Array | None = None) -> End:
    """Return one start, (1, |X|, |Y|), as the end of a run without a pass."""
    context = Context(engine, History(), starts=np.arange(1))
    context.reports[algorithm.LOOP] = LoopReport(np.zeros(1, dtype=np.intp), np.ones(1, dtype=bool))
    return {"log_u": log_u, "lam": np.zeros(len(log_u)) if lam is None else lam}, context


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
        own = final_residuals(problem, log_u, np.array([found.certificate.lam]), wanted)
        stationary = own.largest[0] <= wanted
        state, context = settled(problem, engine, log_u, own.lam) if stationary else polish(log_u)
        done = large or context.reports[algorithm.LOOP].converged[0] or context.ended
        if not (done or found.upper <= tol or clock.over()):  # a leak below the tolerance needs no second attempt
            state, context = polish(_traced(problem, log_u))
        ends.append((state, context))
        if large or len(ends) == MOST_RUNS or context.ended or clock.over():
            break
        rows, left = closed_form.rows_of(state["log_u"][0]), clock.limit - clock.seconds
        try:
            log_u = supervised("the use of free outputs", _freed, problem, rows, found.lower, tol, left)
        except SolverFailure:  # the price of free outputs stays in the residual
            break
    return ends


def _traced(problem: Problem, log_u: Array) -> Array:
    """Return log P(X, Y), (1, |X|, |Y|), with a trace of mass in each cell: an empty one takes thousands of passes."""
    least = np.log(np.exp(log_u).sum(axis=1, keepdims=True)) + np.log(problem.p_x)[:, None] + np.log(TRACE)
    raised = np.maximum(log_u, least)
    raised += np.log(problem.p_x)[:, None] - np.log(np.exp(raised).sum(axis=-1, keepdims=True))
    return feasible_rows(raised, problem.p_x, problem.rate - problem.table.entropy_x)


def _freed(problem: Problem, mechanism: Array, lower: float, tol: float, seconds: float) -> Array | None:
    """Return log P(X, Y), (1, |X|, |Y|), with the free outputs put to better use; None where none of them pays."""
    if free_symbol(problem, mechanism, lower) <= tol:
        return None
    joint = problem.p_x[:, None] * mechanism[:, problem.p_x @ mechanism > EMPTY]
    columns = joint / joint.sum(axis=0)
    pricing = FunnelPricing(problem.table.probabilities, problem.rate)
    generation = Generation(pricing, pricing.master(), np.concatenate([columns, np.eye(len(columns))], axis=1))
    found = generation.run(tol, Clock(seconds).over, idle_below=tol)
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
    used = mechanism[:, (mass > EMPTY) | (mechanism > 0.5).any(axis=0)]  # a symbol that hardly occurs keeps its output
    return float(min(gap, price(problem.table, used, problem.rate).free))


#: Multipliers tried before the best is refined.
GRID = 257
#: Multipliers whose usual residual is this near to the least are priced too: deterministic mechanisms have many.
ALIKE = 1e-9
#: About how many of those.
CANDIDATES = 8
#: Passes of local pricing with new random starts.
PASSES = 2
#: A phi above minus this is not negative.
NONE = 1e-15


@dataclass(frozen=True)
class Price:
    """The parts of a mechanism's distance from a first-order point, in nats.

    `columns`: sum_j r_j phi(w_j): how far the columns in use are from being stationary.
    `complementarity`: lam (I(X;Y) - R).
    `free`: -min phi over all posteriors, as far as local pricing finds it: what a new column could gain; >= 0.
    `posterior`: Point where phi is least.
    `nu`: The multipliers.
    """

    columns: float
    complementarity: float
    free: float
    posterior: Array
    lam: float
    nu: Array

    @property
    def residual(self) -> float:
        """The sum of the three parts: zero only where no posterior pays."""
        return self.columns + self.complementarity + self.free


def price(joint: JointTable | ArrayLike, mechanism: Array, rate: float) -> Price:
    """Price a mechanism at its best multipliers.

    `joint`: P(S, X).
    `mechanism`: P(Y|X).
    `rate`: R in nats.

    Examples
    --------
    The identity tells more than it has to at half the rate.

    >>> joint = np.array([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
    >>> price(joint, np.eye(3), rate=0.5).residual > 0.01
    True
    """
    problem = Problem.of(joint, rate, "nats", None)
    pricing = FunnelPricing(problem.table.probabilities, problem.rate)
    slack = max(utility(problem.p_x, mechanism) - problem.rate, 0.0)
    u = problem.p_x[:, None] * mechanism
    u = u[:, u.sum(axis=0) > 0.0]
    w, some = u / u.sum(axis=0), u > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        log_w, t = np.log(w), pricing.p_s_given_x @ w
        rise = pricing.p_s_given_x.T @ np.where(t > 0.0, np.log(t), 0.0)

    def in_use(lam: float) -> tuple[float, Array]:
        """sum_j r_j phi(w_j), and nu."""
        g = np.where(some, rise - lam * np.where(some, log_w, 0.0), np.inf)
        nu = g.min(axis=1)
        return float(np.sum(u[some] * (g - nu[:, None])[some])), nu

    def at(lam: float) -> Price:
        columns, nu = in_use(lam)
        duals, pricing.rng = np.append(nu, -lam), np.random.default_rng(0)
        found = [np.eye(len(nu)), w, *(pricing.local_search(duals, w, -NONE).columns for _ in range(PASSES))]
        posteriors = np.concatenate(found, axis=1)
        values = pricing.value(posteriors, duals)
        return Price(columns, lam * slack, max(-float(values.min()), 0.0), posteriors[:, values.argmin()], lam, nu)

    grid = np.linspace(0.0, 1.0, GRID)
    values = np.array([in_use(one)[0] + one * slack for one in grid])
    best = int(values.argmin())
    ends = (grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)])
    found = minimize_scalar(
        lambda lam: in_use(lam)[0] + lam * slack, bounds=ends, method="bounded", options={"xatol": 1e-12}
    )
    alike = grid[values <= values.min() + ALIKE]
    candidates = [float(found.x), *alike[:: max(1, len(alike) // CANDIDATES)]]
    return min((at(float(one)) for one in candidates), key=lambda one: one.residual)
