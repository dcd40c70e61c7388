"""Results that a command computes beside a mechanism: its curve, the cost of noise, the proof of its bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from cvxpriv.cli.terminal import Interrupt, Terminal
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.facts import Facts
from cvxpriv.runs.mechanism_model import MechanismModel
from cvxpriv.runs.mechanism_run import MechanismRun
from cvxpriv.runs.noise_costs import noise_costs
from cvxpriv.tables.joint import JointTable

Model = MechanismModel[MechanismRun[Any, Any]]


def curve_of(
    terminal: Terminal, model: Model, points: int | Iterable[float], solving: Mapping[str, Any], interrupt: Interrupt
) -> tuple[pd.DataFrame | None, Sequence[Array]]:
    """Return the curve with its mechanisms; after an interrupt, only its finished points."""
    from cvxpriv.solvers.place import solvers_silent

    watching: dict[str, Any] = {"progress": terminal.progress}
    if solving["n_jobs"] == 1:
        watching["callback"] = lambda *_: interrupt.pressed
    with solvers_silent():
        curve, mechanisms = model.traced(points, **solving, **watching)
    return (curve, mechanisms) if len(curve) else (None, ())


def costs_of(
    terminal: Terminal,
    table: JointTable,
    again: Callable[[JointTable], Model],
    epsilons: Sequence[float],
    solving: Mapping[str, Any],
) -> pd.DataFrame:
    """Return the cost of noise in a table, by epsilon; `again` poses the model on another table."""
    from cvxpriv.solvers.place import solvers_silent

    def designed(noisy: JointTable) -> Array:
        return again(noisy).solve(**solving).mechanism

    with terminal.phase("designing on noisy counts"), solvers_silent():
        return noise_costs(table, designed, epsilons, seed=int(solving["seed"] or 0))


def proved(terminal: Terminal, run: MechanismRun[Any, Any], facts: Facts) -> Facts:
    """Return the facts of a run with what the check of its certificate found.

    Raises DataError: The certificate does not prove what it claims.
    """
    bound: Any = getattr(run, "bound", None)
    certificate = getattr(bound, "certificate", None)
    if certificate is None:
        missing = "nothing is proved of this mechanism: leave method, engine and starts as they are, or --certify out"
        if bound is not None:
            missing = f"no certificate of the bound can be made ({bound.no_certificate})"
    else:
        with terminal.phase("deriving the certificate again in exact arithmetic"):
            certificate.verify()
        missing = f"the gap is not proved: {bound.reason}; raise --time-limit or --gap" if bound.reason else ""
        if bound.ignored:
            missing = f"the certificate leaves out {', '.join(bound.ignored)}: no proof with that is known"
        elif left := getattr(bound, "uncertified", {}):
            said = "; ".join(f"{name} ({why})" for name, why in left.items())
            missing = f"the certificate does not prove all of the bound under {said}"
    if missing:
        return replace(facts, unmet=facts.unmet or missing, messages=[*facts.messages, f"Not certified: {missing}."])
    return replace(facts, messages=[*facts.messages, "The certificate was derived again in exact arithmetic."])
