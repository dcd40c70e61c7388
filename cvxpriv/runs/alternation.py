"""Alternation for any multi-convex cvxpy problem: `alternate`, and the run that it returns."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import warn_not_dpp
from cvxpriv.blocks.engines import elsewhere_of, engine_named
from cvxpriv.blocks.parts import Part, in_real_parts, named, parts_of_problem, proposed, real_problem
from cvxpriv.errors import ModelError, suggest
from cvxpriv.numerics.arguments import require_counts
from cvxpriv.numerics.arrays import Array, Values, single, stack, starts_in
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import of_problem, require_feasible
from cvxpriv.runs.problem_run import ProblemRun, unfinished
from cvxpriv.runs.shared_options import Watch
from cvxpriv.schedules.alternation import figures
from cvxpriv.schedules.history import AnyOf, Below, Context, History
from cvxpriv.schedules.joint import Together
from cvxpriv.schedules.problem_starts import Init, given_starts, starting_points
from cvxpriv.schedules.running import run, run_pieces
from cvxpriv.schedules.steps import Loop, Sweep
from cvxpriv.solvers.place import apart

KIND = "alternation"
#: A pass that moves no entry by more than this share of the tolerance moves nothing.
STILL = 1e-3
HELD = (
    "blocks hold each other by a constraint or a kink that they share, and no step of all together is better: join "
    "them, or start elsewhere"
)
FAR = "infeasible: stands still where a constraint is violated by {:.1e}; start elsewhere"
#: A start is at the solver's floor where in so many passes the objective moved by at most the second number, relative,
#: and the residual did not fall below this share of what it was.
PATIENCE, STANDS, FALLS = 50, 1e-8, 0.9
FLOOR = (
    f"no progress in {PATIENCE} passes: the residual stays near {{:.1e}}, as near as these solves come; ask more of "
    "the solver (tolerance=), or less of the run (tol=)"
)

Groups = Sequence[Sequence[cp.Variable]]
#: Maps the values of the fixed variables to the values of a block's variables.
Exact = Callable[[Values], Mapping[str, ArrayLike]]


@dataclass(frozen=True, eq=False, repr=False)
class AlternationRun(ProblemRun):
    """The best of the starts of an alternation.

    Attributes
    ----------
    groups : tuple of tuples of cvxpy.Variable
        The blocks, in the order of a pass.
    """

    model = KIND
    groups: tuple[tuple[cp.Variable, ...], ...] = ()

    def blocks(self) -> dict[str, Block]:
        """Return the blocks by name."""
        return {part.name: part.block() for part in parts_of_problem(self.problem, self.groups)}

    def measured(self) -> float:
        return float(figures(self.problem)(stack([dict(self.values)]))["kkt"][0])

    def described(self) -> dict[str, str]:
        return {"blocks": "; ".join(", ".join(one.name() for one in group) for group in self.groups)}

    def saved(self) -> dict[str, Any]:
        return {"blocks": [[one.name() for one in group] for group in self.groups]}

    @classmethod
    def restored(cls, document: Mapping[str, Any], problem: cp.Problem) -> dict[str, Any]:
        names = named(problem)
        return {"groups": tuple(tuple(names[one] for one in group) for group in document["blocks"])}


@door
def alternate(
    problem: cp.Problem,
    blocks: Groups | None = None,
    *,
    starts: int = 1,
    seed: int = 0,
    init: Init | None = None,
    updates: Mapping[str, Exact] | None = None,
    engine: str = "closed_form",
    tol: float = 1e-5,
    max_iter: int = 500,
    solver: str | Sequence[str] | None = None,
    tolerance: float | None = None,
    n_jobs: int = 1,
    progress: bool = False,
    callback: Watch | None = None,
    time_limit: float | None = None,
    isolate: float | None = None,
    oversize: bool = False,
) -> AlternationRun:
    """Alternate over blocks in each of which a problem is convex while the others are fixed; return the best start.

    Each block is checked to be convex and compiled once; each expression of the other variables becomes one Parameter.
    Constraints that are not convex in all variables may be violated on the way, at a price that grows while they are;
    with `updates`, which know no such price, every block keeps them.
    Where passes are slow, or blocks hold each other, steps of all together are taken (`cvxpriv.schedules.joint`). A
    start has converged where the exact residual of the whole problem is within `tol`, not where the blocks no longer
    move: one that comes no nearer, or that a solver's accuracy keeps from it, ends there and says so.

    Parameters
    ----------
    problem : cvxpy.Problem
        The problem, which need not be DCP. Its variables receive the best values. A complex variable z stands for two
        real ones, `z.real` and `z.imag`: so they are called in values, `init` and `updates`.
    blocks : sequence of sequences of cvxpy.Variable, optional
        Blocks in the order of a pass; a variable may stand in several. None: each variable joins the first block that
        stays convex with it.
    starts : int
        Number of starts. Where all variables have values, these are the first start. The others are random, within the
        convex constraints.
    seed : int
    init : mapping of variable's name to array, or several, optional
        Starts that replace these. The first block's own values are not used.
    updates : mapping of block's name to callable, optional
        Exact updates of single blocks, called by their variables' names ("W", or "W, b"). Each maps the values of the
        fixed variables to the values of the block. The other blocks are solved.
    engine : {"closed_form", "dcp", "checked"}
        Whether exact updates are used, not used, or compared with a solver's answer at each step.
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
        A block is not convex (the message gives the reason), an argument is out of range, or a start cannot meet the
        convex constraints.
    SolverFailure
        No solver of the chain solves a block.
    Disagreement
        The engine "checked" found that an update is not the block's optimum.

    Examples
    --------
    >>> w, h = cp.Variable((3, 1), nonneg=True, name="w"), cp.Variable((1, 2), nonneg=True, name="h")
    >>> data = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    >>> found = alternate(cp.Problem(cp.Minimize(cp.sum_squares(data - w @ h))), [[w], [h]], seed=0)
    >>> found.converged, round(found.objective, 6)
    (True, 0.0)
    """
    begun = time.perf_counter()
    require_counts(starts=starts, max_iter=max_iter)
    problem = real_problem(problem)
    groups = tuple(in_real_parts(problem, one) for one in blocks or proposed(problem))
    parts = parts_of_problem(problem, groups)
    _require_updates(parts, updates or {})
    warn_not_dpp({part.name: part.declaration() for part in parts})
    ready = given_starts(init)
    entries, several = sum(one.size for one in problem.variables()), len(ready) or starts
    size = of_problem(entries, starts=several, passes=max_iter, blocks=len(groups))
    require_feasible(size.within(time_limit), oversize)
    who = engine_named(engine, solver=solver, tolerance=tolerance, time_limit=time_limit, isolate=isolate)
    with apart(elsewhere_of(who)):
        given, origins = starting_points(problem, starts, seed, ready)
    work = partial(_from_starts, problem.objective, tuple(problem.constraints), groups, dict(updates or {}))
    work = partial(work, tol, max_iter, who, callback)
    done = run_pieces(work, given, n_jobs=n_jobs, progress=progress)
    states = [single(state, start) for state, *_ in done for start in range(len(next(iter(state.values()))))]
    contexts = [context for _, context, _ in done]
    iterations = [context.reports[KIND].iterations for context in contexts]
    log = History.joined((context.history, len(one)) for context, one in zip(contexts, iterations, strict=True))
    measured = figures(problem)(stack([dict(one) for one in states]))
    converged = measured["kkt"] <= tol
    ends = [how for *_, several in done for how in several]
    missed = measured["violation"]
    ends = [FAR.format(far) if how == HELD and far > tol else how for how, far in zip(ends, missed, strict=True)]
    table = pd.DataFrame(
        {
            "origin": origins,
            **measured,
            "iterations": np.concatenate(iterations),
            "converged": converged,
            "ended": np.where(converged, "converged", ends),
        }
    ).rename_axis("start")
    return AlternationRun.of_starts(problem, states, table, tol, begun, log, contexts, groups=groups)


def _from_starts(
    objective: cp.Minimize | cp.Maximize,
    constraints: tuple[cp.Constraint, ...],
    groups: Groups,
    updates: Mapping[str, Exact],
    tol: float,
    max_iter: int,
    engine: Any,
    callback: Watch | None,
    starts: Sequence[Mapping[str, Array]],
) -> tuple[Values, Context, list[str]]:
    """Alternate from some starts, on a new copy of the problem: one that solvers have touched cannot be sent."""
    problem = cp.Problem(objective, list(constraints))
    loose = not updates and not all(one.is_dcp() for one in constraints)
    parts: list[Part] = parts_of_problem(problem, groups, slack=loose)
    blocks = [_with_update(part.block(), updates.get(part.name)) for part in parts]
    context = Context(engine, History(), callback, starts=np.arange(len(starts)))
    floor = _Floor(context)
    solved = engine.name != "closed_form" or any(one.direct is None for one in blocks)  # exact passes are cheaper
    together = Together(problem, figures(problem), context, tol, STILL * tol, solved, loose)
    stop = AnyOf((Below("kkt", tol), together.stands, floor))
    loop = Loop(Sweep(blocks), stop, max_iter, together.figures, accelerate=together, name=KIND)
    state = run(loop, stack([dict(one) for one in starts]), context)
    return state, context, _ends(context, floor.reached)


@dataclass(frozen=True)
class _Floor:
    """Stop starts that no longer get nearer: entries may drift for ever where a solver's accuracy is the limit.

    `seen`: Objective and residual of each pass, by start. `reached`: The residual of each start that was stopped.
    """

    context: Context
    seen: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    reached: dict[int, float] = field(default_factory=dict)

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        """See `Stop`."""
        stands = np.zeros(self.context.starts.size, dtype=bool)
        for place, start in enumerate(self.context.starts.tolist()):
            passes = self.seen.setdefault(start, [])
            passes.append((float(measured["objective"][place]), float(measured["kkt"][place])))
            if len(passes) > 2 * PATIENCE:
                objectives, residuals = np.array(passes).T
                last = objectives[-PATIENCE:]
                stands[place] = np.ptp(last) <= STANDS * (1.0 + np.abs(last[-1])) and (
                    residuals[-PATIENCE:].min() >= FALLS * residuals[:-PATIENCE].min()
                )
            if stands[place]:
                self.reached[start] = passes[-1][1]
        return stands


def _ends(context: Context, reached: Mapping[int, float]) -> list[str]:
    """Return why each start ended, where it did not converge."""
    return [
        FLOOR.format(reached[start]) if start in reached else HELD if stopped else unfinished(context)
        for start, stopped in enumerate(context.reports[KIND].converged.tolist())
    ]


def _require_updates(parts: Sequence[Part], updates: Mapping[str, Exact]) -> None:
    names = [part.name for part in parts]
    if unknown := [name for name in updates if name not in names]:
        raise ModelError(f"updates: {unknown[0]!r} is no block: {suggest(unknown[0], names)}")


def _with_update(block: Block, update: Exact | None) -> Block:
    """Return a block with a user's exact update, which sees one start at a time."""
    if update is None:
        return block

    def direct(state: Values) -> Values:
        found = []
        for start in range(starts_in(state)):
            made = {name: np.array(value, dtype=float) for name, value in update(single(state, start)).items()}
            if set(made) != block.writes or not all(np.isfinite(one).all() for one in made.values()):
                raise ModelError(
                    f"the update of block {block.name!r} returned {', '.join(made)}: it must return finite values of "
                    f"{', '.join(sorted(block.writes))}"
                )
            found.append(made)
        return stack(found)

    return replace(block, direct=direct)
