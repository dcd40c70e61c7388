"""The convex-concave procedure on any difference of convex functions: `convex_concave`, and the run that it returns."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.convexified import Convexified
from cvxpriv.blocks.declaration import warn_not_dpp
from cvxpriv.blocks.engines import Engine, elsewhere_of, engine_named
from cvxpriv.blocks.parts import named, real_problem
from cvxpriv.errors import ModelError, SolverFailure
from cvxpriv.numerics.arguments import require_counts
from cvxpriv.numerics.arrays import Values
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import of_problem, require_feasible
from cvxpriv.runs.problem_run import ProblemRun, unfinished
from cvxpriv.runs.shared_options import Watch
from cvxpriv.schedules.alternation import KIND, AskedPrice, Passes, residual_of
from cvxpriv.schedules.history import Context, History
from cvxpriv.schedules.problem_starts import Init, given_starts, starting_points
from cvxpriv.schedules.running import run_pieces
from cvxpriv.solvers.place import apart

#: A row of the table of starts, the last point, and its history.
_End = tuple[dict[str, Any], Values, Context]


@dataclass(frozen=True, eq=False, repr=False)
class ConvexConcaveRun(ProblemRun):
    """The best of the starts of the convex-concave procedure; the column `ended` of `starts` says how each ended."""

    model = KIND

    @property
    def split(self) -> dict[str, int]:
        """Number of concave parts of the objective and of each constraint that became tangents; 0: convex."""
        made = Convexified(self.problem)
        made.declaration()
        return made.split

    def blocks(self) -> dict[str, Block]:
        """Return the problem made convex around a point, without slack."""
        block = Convexified(self.problem).block()
        return {block.name: block}

    def measured(self) -> float:
        return residual_of(Convexified(self.problem).block(), self.values)

    def saved(self) -> dict[str, Any]:
        return {}

    @classmethod
    def restored(cls, document: Mapping[str, Any], problem: cp.Problem) -> dict[str, Any]:
        return {}


@door
def convex_concave(
    problem: cp.Problem | cp.Minimize | cp.Maximize,
    *,
    starts: int = 1,
    seed: int = 0,
    init: Init | None = None,
    price: float | None = None,
    growth: float = 1.5,
    most: float | None = None,
    tol: float = 1e-5,
    max_iter: int = 200,
    solver: str | Sequence[str] | None = None,
    tolerance: float | None = None,
    n_jobs: int = 1,
    progress: bool = False,
    callback: Watch | None = None,
    time_limit: float | None = None,
    isolate: float | None = None,
    oversize: bool = False,
) -> ConvexConcaveRun:
    """Find stationary points of a problem of differences of convex functions; return the best start.

    The differences are found: each part that cvxpy does not know to be convex is taken apart, and its concave parts
    become tangents at the last point. A start has converged where the exact residual of the whole problem is within
    `tol`, not where a pass is feasible or no longer moves. Where a concave part has a kink, the residual is that of
    one of its slopes there.

    Parameters
    ----------
    problem : cvxpy.Problem, or its objective alone
        It need not be DCP: objective, inequalities and equalities may hold differences of convex functions, products
        of two affine expressions, and indefinite quadratic forms. Its variables receive the best values. A complex
        variable z stands for two real ones, `z.real` and `z.imag`.
    starts : int
        Number of starts. Where all variables have values, these are the first start; the others are random, and moved
        to where the convex constraints hold.
    seed : int
    init : mapping of variable's name to array, or several, optional
        Starts in place of these. They need not be feasible.
    price, growth, most : float, optional
        Cost of a unit of violation of the constraints that are not convex: its first value, its factor after a pass
        that violates them, and its largest value. By default it begins at a tenth of how far the objective moves for
        each unit by which these constraints do, around each start, and ends at 1e7 times that.
    tol : float
        The requested residual, in the units of the variables.
    max_iter : int
        Largest number of passes of a start.
    solver, tolerance
        See `cvxpriv.solvers.chain.solve`.
    n_jobs : int
        Worker processes; -1 is one per core.
    progress, callback, time_limit, isolate, oversize
        As in the models' `solve`.

    Raises
    ------
    ModelError
        A part is no difference of convex functions (it is named), or an argument is out of range.
    SolverFailure
        No start came through its first pass.

    References
    ----------
    T. Lipp and S. Boyd, Variations and extension of the convex-concave procedure, Optimization and Engineering 17
    (2016). X. Shen, S. Diamond, Y. Gu and S. Boyd, Disciplined convex-concave programming, CDC 2016.

    Examples
    --------
    >>> x = cp.Variable(2, name="x")
    >>> found = convex_concave(cp.Problem(cp.Minimize(cp.sum(x)), [cp.norm(x) >= 1, cp.max(cp.abs(x)) <= 2]), seed=1)
    >>> found.converged, round(found.objective, 6)
    (True, -4.0)
    """
    begun = time.perf_counter()
    whole = real_problem(problem if isinstance(problem, cp.Problem) else cp.Problem(problem))
    require_counts(starts=starts, max_iter=max_iter)
    _require_prices(price, growth, most, tol)
    ready = given_starts(init)
    entries, several = sum(one.size for one in whole.variables()), len(ready) or starts
    require_feasible(of_problem(entries, starts=several, passes=max_iter).within(time_limit), oversize)
    made = Convexified(whole)
    warn_not_dpp({made.block().name: made.declaration()})  # what is no difference is said before anything is drawn
    engine = engine_named("dcp", solver=solver, tolerance=tolerance, time_limit=time_limit, isolate=isolate)
    with apart(elsewhere_of(engine)):
        given, origins = starting_points(whole, starts, seed, ready)
    work = partial(_from_starts, whole.objective, tuple(whole.constraints), AskedPrice(price, growth, most))
    work = partial(work, tol, max_iter, engine, callback)
    done = run_pieces(work, list(zip(origins, given, strict=True)), n_jobs=n_jobs, progress=progress)
    ends = [one for piece in done for one in piece]
    _require_one_answer(ends)
    rows, states, contexts = zip(*ends, strict=True)
    log = History.joined((one.history, 1) for one in contexts)
    table = pd.DataFrame(rows).rename_axis("start")
    return ConvexConcaveRun.of_starts(whole, states, table, tol, begun, log, contexts)


def _from_starts(
    objective: cp.Minimize | cp.Maximize,
    constraints: tuple[cp.Constraint, ...],
    price: AskedPrice,
    tol: float,
    max_iter: int,
    engine: Engine,
    callback: Watch | None,
    starts: Sequence[tuple[str, Values]],
) -> list[_End]:
    """Run some starts; the problem is made anew, since one that solvers have touched cannot be sent."""
    problem = cp.Problem(objective, list(constraints))
    passes = Passes(problem, price, tol, max_iter, engine)
    ends: list[_End] = []
    for origin, start in starts:
        state, context, why = passes.run(start, callback)
        values = {name: state[name] for name in named(problem)}
        iterations, figures = int(context.reports[KIND].iterations[0]), passes.figures(values)
        converged = figures["kkt"] <= tol
        ended = "converged" if converged else why or unfinished(context)
        row = {"origin": origin, **figures, "iterations": iterations, "converged": converged, "ended": ended}
        context.look_at_the_clock()
        ends.append((row, values, context))
        if context.ended:
            break
    return ends


def _require_one_answer(ends: Sequence[_End]) -> None:
    failed = [
        row
        for row, _, of in ends
        if row["iterations"] == 1 and not row["converged"] and of.history.frame()["solver"].eq("").all()
    ]
    if len(failed) == len(ends) and not any(of.interrupted or of.overdue for *_, of in ends):
        raise SolverFailure(
            f"no start came through its first pass: {failed[0]['ended']}. The constraints that are convex may exclude "
            "each other, or the objective may fall without bound"
        )


def _require_prices(price: float | None, growth: float, most: float | None, tol: float) -> None:
    given = [one for one in (price, growth, most, tol) if one is not None]
    ordered = price is None or most is None or price <= most
    if not (np.isfinite(given).all() and min(given) > 0.0 and ordered and growth > 1.0):
        raise ModelError(
            f"price={price!r}, growth={growth!r}, most={most!r}, tol={tol!r}: all are finite, 0 < price <= most, "
            "growth > 1 and tol > 0"
        )
