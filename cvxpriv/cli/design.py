"""The design of a mechanism for a command: the run, what was asked for beside it, and the facts of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from cvxpriv.blocks.engines import engine_named
from cvxpriv.certify.check import CrossCheck
from cvxpriv.cli.model_command import proved
from cvxpriv.cli.terminal import Interrupt, Terminal, certified, watched, watching
from cvxpriv.mechanisms.disclosure import Disclosure, disclosure
from cvxpriv.numerics.arguments import require_workers
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.sizes import Size, of_resampling, require_feasible
from cvxpriv.reports.facts import Facts
from cvxpriv.runs.mechanism_model import MechanismModel
from cvxpriv.runs.mechanism_run import Beside, MechanismRun
from cvxpriv.runs.options import options_of
from cvxpriv.solvers.place import solvers_silent
from cvxpriv.solvers.registry import DEFAULT_CHAIN, solver_spec
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.small_counts import judged

CROSSCHECKED = 2_000
"""Number of cells of a mechanism above which it is cross-checked only on demand: SCS needs minutes for 160 x 161."""
REPLICATES = 200

Model: TypeAlias = MechanismModel[MechanismRun[Any, Any]]
Kind: TypeAlias = type[Model]


@dataclass(frozen=True)
class Asked:
    """The requested results of a model, beside its mechanism.

    `solving`: The options of the model's `solve`.
    `curve`: Number of points, or the points; None for no curve.
    `crosscheck`: Whether to cross-check. None does for up to `CROSSCHECKED` cells of the mechanism.
    `solvers`: Solvers that cross-check.
    `bootstrap`: Number of replicates for intervals; 0 for none.
    `certify`: Whether the bound's certificate is derived again, and a mechanism without a proof is not what was asked
    for.
    `costs`: Epsilons of noise in the table whose cost is computed.
    `again`: Maps a table to the model with the same options; needed for `costs`.
    """

    solving: Mapping[str, Any]
    curve: int | tuple[float, ...] | None = None
    crosscheck: bool | None = None
    solvers: tuple[str, ...] = DEFAULT_CHAIN
    bootstrap: int = REPLICATES
    certify: bool = False
    costs: tuple[float, ...] = ()
    again: Callable[[JointTable], Model] | None = None


def design(terminal: Terminal, model: Model, source: str, asked: Asked) -> Facts:
    """Design the mechanism, then compute the requested extras in this order: curve, cross-check, disclosure.

    A keyboard interrupt ends the work and keeps the results so far.

    Raises ModelError, SolverFailure, Disagreement: The model raised it.
    Raises KeyboardInterrupt: The interrupt came before there was any mechanism.
    """
    solvers = tuple(solver_spec(name).name for name in asked.solvers)
    size = _require_feasible(model, asked)
    curve: pd.DataFrame | None = None
    mechanisms: Sequence[Array] = ()
    check: CrossCheck | None = None
    found: Disclosure | None = None
    costs: pd.DataFrame | None = None
    table = model.problem.table
    _check_options(model, asked.solving)
    _say_sizes(terminal, model, size)
    with watched() as interrupt:
        with watching(terminal, "solving", asked.solving, interrupt) as watch:
            run = model.solve(**asked.solving, **watch)
        several = run.mechanism.size <= CROSSCHECKED if asked.crosscheck is None else asked.crosscheck
        try:
            if asked.curve is not None and not interrupt.pressed:
                curve, mechanisms = _curve(terminal, model, asked, interrupt)
            if several and not interrupt.pressed:
                check = certified(terminal, run, solvers)
            if not interrupt.pressed:
                with terminal.phase("resampling the records"):
                    replicates = asked.bootstrap if table.counts is not None else 0
                    seed, oversize = asked.solving["seed"], bool(asked.solving.get("oversize", False))
                    found = disclosure(table, run.mechanism, replicates, seed, oversize=oversize)
            if asked.costs and not interrupt.pressed:
                costs = _costs(terminal, model, asked)
        except KeyboardInterrupt:
            pass
        facts = run.described(Beside(source, curve, check, found, interrupt.pressed, mechanisms, costs))
        return proved(terminal, run, facts) if asked.certify and not interrupt.pressed else facts


def _check_options(model: Model, solving: Mapping[str, Any]) -> None:
    """Check the options of a solve by their declarations, before anything is said."""
    parameters = {parameter.name: parameter for parameter in options_of(type(model).solve)}
    for name, value in solving.items():
        if name in parameters:
            parameters[name].check(value)
    named = {name: solving[name] for name in ("solver", "time_limit", "isolate") if name in solving}
    engine_named(solving.get("engine", "closed_form"), **named)
    require_workers(solving.get("n_jobs", 1))


def _say_sizes(terminal: Terminal, model: Model, size: Size) -> None:
    judgement = judged(model.problem.table)
    if judgement is not None:
        terminal.say(f"{judgement.sizes}; {size.limit}")
        if judgement.warning:
            terminal.warn(judgement.warning)


def _require_feasible(model: Model, asked: Asked) -> Size:
    """Return the size of the work. Refuse, before anything is solved, work that cannot finish.

    Raises ModelError.
    """
    oversize = bool(asked.solving.get("oversize", False))
    one, curve = model.size(**asked.solving), asked.curve
    if curve is not None:
        points = curve if isinstance(curve, int) else len(curve)
        one = one.repeated(1 + points, f"{points:,} points of a curve")
    require_feasible(one, oversize)
    table = model.problem.table
    if table.counts is not None:
        private, inputs = table.counts.shape
        require_feasible(of_resampling(private, inputs, inputs, asked.bootstrap), oversize)
    return one


def _curve(
    terminal: Terminal, model: Model, asked: Asked, interrupt: Interrupt
) -> tuple[pd.DataFrame | None, Sequence[Array]]:
    """Return the curve with its mechanisms; after an interrupt, only its finished points."""
    assert asked.curve is not None, "a curve is computed where it is asked for"
    watching: dict[str, Any] = {"progress": terminal.progress}
    if asked.solving["n_jobs"] == 1:
        watching["callback"] = lambda *_: interrupt.pressed
    with solvers_silent():
        curve, mechanisms = model.traced(asked.curve, **asked.solving, **watching)
    return (curve, mechanisms) if len(curve) else (None, ())


def _costs(terminal: Terminal, model: Model, asked: Asked) -> pd.DataFrame:
    from cvxpriv.runs.noise_costs import noise_costs

    again = asked.again
    assert again is not None, "costs come with the model's maker"

    def designed(noisy: JointTable) -> Array:
        return again(noisy).solve(**asked.solving).mechanism

    with terminal.phase("designing on noisy counts"), solvers_silent():
        return noise_costs(model.problem.table, designed, asked.costs, seed=int(asked.solving["seed"] or 0))
