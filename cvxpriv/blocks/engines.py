"""Engines, which do a block's work.

`dcp` hands the declaration to a solver, `closed_form` runs the exact update, `checked` does both at each step from the
same state and raises `Disagreement` when they differ.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import cvxpy as cp

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.errors import Disagreement, ModelError, shown, suggest
from cvxpriv.numerics.arrays import Values, single, stack, starts_in
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.sizes import OutOfTime, late, now, until
from cvxpriv.solvers.place import Elsewhere
from cvxpriv.solvers.registry import DEFAULT_CHAIN, fallback_chain, solver_spec

#: Largest violation of a constraint that an exact update may leave: the rounding of sums.
FEASIBLE = 1e-9


@dataclass(frozen=True)
class Outcome:
    """The outcome of an engine's work on a block.

    Attributes
    ----------
    values : mapping of str to ndarray
        The state entries written, with the leading axis of starts.
    engine : str
        Name of the engine that did the work: `closed_form` becomes `dcp` for a block without an exact update.
    solver, status : tuple of str
        One per start; the status names a fallback.
    objective : tuple of float
        The declared objective at each start's repaired solution; empty where no declaration was solved.
    seconds : float
        Seconds for all starts together.
    """

    values: Values
    engine: str
    solver: tuple[str, ...]
    status: tuple[str, ...]
    seconds: float
    objective: tuple[float, ...] = ()


class Engine(Protocol):
    """The contract between the schedule and an engine."""

    @property
    def name(self) -> str:
        """As a user writes it."""
        ...

    @property
    def checks(self) -> bool:
        """Whether invariants are asserted on the way."""
        ...

    def solve(self, block: Block, state: Values) -> Outcome:
        """Do one block's work at every start of the state."""
        ...


@door
@dataclass(frozen=True)
class DCP:
    """Solve each start's declaration along a chain of solvers; `fast` skips cvxpy's `solve` where it can.

    With an `elsewhere` each solver is called in a process of its own, and ended there if it is late.
    """

    solvers: tuple[str, ...] = DEFAULT_CHAIN
    tolerance: float | None = None
    fast: bool = True
    name: str = "dcp"
    checks: bool = False
    elsewhere: Elsewhere | None = None

    def solve(self, block: Block, state: Values) -> Outcome:
        """See `Engine.solve`; raises SolverFailure when no solver of the chain answers.

        It raises OutOfTime where the deadline passes between two starts.
        """
        begun, ahead = time.perf_counter(), not late()
        written, solutions = [], []
        for start in range(starts_in(state)):
            if start and ahead and late():
                raise OutOfTime
            solve = block.solve if self.elsewhere is None else partial(self.elsewhere.solve, block)
            values, solution = solve(
                single(state, start), solver=self.solvers, tolerance=self.tolerance, fast=self.fast
            )
            written.append(dict(values))
            solutions.append(solution)
        return Outcome(
            stack(written),
            "dcp",
            tuple(solution.solver for solution in solutions),
            tuple(solution.status for solution in solutions),
            time.perf_counter() - begun,
            tuple(solution.objective for solution in solutions),
        )


@door
@dataclass(frozen=True)
class ClosedForm:
    """Run the exact update; a block without one goes to `fallback`, and the outcome says so."""

    fallback: DCP = field(default_factory=DCP)
    name: str = "closed_form"
    checks: bool = False

    def solve(self, block: Block, state: Values) -> Outcome:
        """See `Engine.solve`."""
        if block.direct is None:
            return self.fallback.solve(block, state)
        begun = time.perf_counter()
        values = block.direct(state)
        starts = starts_in(state)
        return Outcome(
            values, "closed_form", ("closed form",) * starts, ("exact",) * starts, time.perf_counter() - begun
        )


@door
@dataclass(frozen=True)
class Checked:
    """Do the work twice from the same state, compare, and continue with the exact update's answer.

    Two answers agree when the declared objectives at both repaired points differ by at most `tolerance` relative to
    max(1, |objective|). Objectives and not minimisers: a minimiser is only known to about the square root of the gap.
    An exact update that is feasible and better than the solver's answer is no disagreement: the solver stopped short
    of the optimum, and the status says by how much.
    """

    dcp: DCP = field(default_factory=DCP)
    tolerance: float = 1e-7
    name: str = "checked"
    checks: bool = True

    def solve(self, block: Block, state: Values) -> Outcome:
        """See `Engine.solve`; raises Disagreement naming the block, the start and the gap."""
        solved = self.dcp.solve(block, state)
        if block.direct is None:
            return solved
        exact = ClosedForm(self.dcp).solve(block, state)
        status = list(solved.status)
        for start in range(starts_in(state)):
            view = single(state, start)
            placed = block.place({**view, **single(exact.values, start)}, view)
            mine, theirs = float(placed.objective.value), solved.objective[start]
            gap = abs(mine - theirs) / max(1.0, abs(mine))
            if gap <= self.tolerance or late():  # what the deadline ended need not agree
                continue
            better = mine > theirs if isinstance(placed.objective, cp.Maximize) else mine < theirs
            if not (better and _feasible(placed)):
                raise Disagreement(
                    f"block {shown(block.name)}, start {start}: the closed form reaches {mine:.12g}, "
                    f"{solved.solver[start]} ({solved.status[start]}) {theirs:.12g}; "
                    f"relative gap {gap:.2e} > {self.tolerance:g}"
                )
            status[start] += f", {gap:.1e} short of the closed form"
        seconds = exact.seconds + solved.seconds
        return Outcome(exact.values, "checked", solved.solver, tuple(status), seconds, solved.objective)


@dataclass(frozen=True)
class Until:
    """An engine with a deadline, by `sizes.now`, after which loops and long steps end with their results so far."""

    engine: Engine
    moment: float

    @property
    def name(self) -> str:
        """Name of the engine, in a user's spelling."""
        return self.engine.name

    @property
    def checks(self) -> bool:
        """Whether invariants are asserted on the way."""
        return self.engine.checks

    def solve(self, block: Block, state: Values) -> Outcome:
        """See `Engine.solve`; an exact update that goes on for long ends at the deadline."""
        with until(self.moment):
            return self.engine.solve(block, state)

    @property
    def over(self) -> bool:
        """Return whether the deadline has passed."""
        return now() >= self.moment


def _feasible(placed: Declaration) -> bool:
    """Return whether the variables of a declaration satisfy its constraints to rounding."""
    from cvxpriv.kkt.written import violations

    return max(violations(placed.problem, placed.constraints).values(), default=0.0) <= FEASIBLE


#: Least gap that solvers are asked for.
CLOSEST = 1e-12
#: Engine names as users write them.
ENGINES = ("closed_form", "dcp", "checked")


def elsewhere_of(engine: Engine) -> Elsewhere | None:
    """Return the process of an engine's solvers; None where they run here."""
    inner: Any = engine.engine if isinstance(engine, Until) else engine
    dcp = {ClosedForm: "fallback", Checked: "dcp"}.get(type(inner))
    return getattr(getattr(inner, dcp) if dcp else inner, "elsewhere", None)


def engine_named(
    name: str | Engine,
    *,
    solver: str | Sequence[str] | None = None,
    tolerance: float | None = None,
    time_limit: float | None = None,
    isolate: float | None = None,
    residual: float | None = None,
) -> Engine:
    """Return the engine that a user names; an engine object passes through.

    `residual`: The KKT residual that the passes have to reach. A minimiser is only as good as the root of its gap: the
    usual solvers are asked for a gap of its square where that is less than their own.
    """
    chain = DEFAULT_CHAIN if solver is None else fallback_chain(solver)
    if residual is not None and solver is None and residual < math.sqrt(solver_spec(chain[0]).tolerance):
        tolerance = max(residual**2, CLOSEST)
    dcp = DCP(chain, tolerance, elsewhere=None if isolate is None else Elsewhere(isolate))
    known: dict[str, Engine] = {"closed_form": ClosedForm(dcp), "dcp": dcp, "checked": Checked(dcp)}
    if not isinstance(name, str):
        if not hasattr(name, "solve"):
            raise ModelError(f"engine={shown(name)} is not an engine: pass one of {', '.join(ENGINES)}, or an Engine")
        if isolate is not None:
            raise ModelError(f"isolate={shown(isolate)} goes with engines by name: pass one of {', '.join(ENGINES)}")
        engine = name
    elif name in known:
        engine = known[name]
    else:
        raise ModelError(f"engine={shown(name)} is not an engine: {suggest(name, ENGINES)}")
    return engine if time_limit is None else Until(engine, now() + time_limit)
