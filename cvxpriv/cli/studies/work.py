"""The work of a study, which a keyboard interrupt ends without losing what there is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pandas as pd

from cvxpriv.cli.interrupts import Interrupt, watched
from cvxpriv.cli.studies.study import CERTIFIED, Extras, Study
from cvxpriv.cli.terminal import Terminal
from cvxpriv.mechanisms.disclosure import disclosure
from cvxpriv.reports.progress import track
from cvxpriv.runs.mechanism_run import MechanismRun
from cvxpriv.solvers.registry import solver_spec

__all__ = ["curve_points", "solve_watched", "studied"]

Kind = TypeVar("Kind", bound="Study[Any]")
Run = TypeVar("Run", bound=MechanismRun[Any, Any])


def studied(
    terminal: Terminal,
    extras: Extras,
    begin: Callable[[Interrupt], Kind],
    curve: Callable[[Interrupt], pd.DataFrame | None] | None = None,
) -> Kind:
    """Design the mechanism (`begin`), then what is asked for, in this order: curve, cross-check, disclosure.

    A keyboard interrupt ends the work and leaves what there is.

    Raises
    ------
    ModelError, SolverFailure, Disagreement
        From the model.
    KeyboardInterrupt
        Before there was any mechanism.
    """
    solvers = tuple(solver_spec(name).name for name in extras.solvers)
    with watched() as interrupt:
        found = begin(interrupt)
        certify = found.run.mechanism.size <= CERTIFIED if extras.certify is None else extras.certify
        try:
            if curve is not None and not interrupt.pressed:
                found.curve = curve(interrupt)
            if certify and not interrupt.pressed:
                with terminal.phase(f"cross-checking by {', '.join(solvers)}"):
                    found.check = found.run.certify(solvers)
            if not interrupt.pressed:
                with terminal.phase("resampling the records"):
                    bootstrap = extras.bootstrap if found.table.counts is not None else 0
                    seed = found.run.settings.seed
                    found.found = disclosure(found.table, found.run.mechanism, bootstrap=bootstrap, seed=seed)
        except KeyboardInterrupt:
            pass
        found.interrupted = interrupt.pressed
    return found


def solve_watched(
    terminal: Terminal, interrupt: Interrupt, jobs: int, limit: int | None, solve: Callable[..., Run]
) -> Run:
    """Return a model's run, with a bar; `solve` takes `n_jobs` and `progress`, or a `callback`."""
    if jobs != 1:
        return solve(n_jobs=jobs, progress=terminal.progress)
    with terminal.iterations("solving", limit, "kkt") as moved:

        def watch(loop: str, iteration: int, measured: Mapping[str, Any]) -> bool:
            moved(loop, iteration, measured)
            return interrupt.pressed

        return solve(callback=watch)


def curve_points(
    terminal: Terminal,
    interrupt: Interrupt,
    values: Sequence[float],
    description: str,
    point: Callable[..., pd.DataFrame],
) -> list[dict[str, Any]]:
    """Return the rows of a curve, a point at a time; after an interrupt only those that were finished.

    `point` takes a value and a `callback`, and returns a frame of one row.
    """
    points: list[dict[str, Any]] = []
    with contextlib.suppress(KeyboardInterrupt):
        for value in track(values, total=len(values), description=description, shown=terminal.progress):
            row = point(value, callback=lambda *_: interrupt.pressed).to_dict("records")[0]
            if interrupt.pressed:  # the solve swallowed it and returned its best so far: no point of the curve
                break
            points.append({str(name): cell for name, cell in row.items()})
    return points
