"""Facts about the user's constraints on a run: by how much each is missed, its price, and whether it survives noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.declaration import Constraint, Declaration, Known, with_constraint
from cvxpriv.blocks.infeasibility import give_values
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.errors import ModelError, SolverFailure
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.facts import Section, Table
from cvxpriv.reports.formatting import format_number
from cvxpriv.runs.mechanism_run import MechanismRun
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.noisy_counts import nearest_shares

Run = MechanismRun[Any, Any]
Constraints = Sequence[tuple[str, Constraint]]


def violations(run: Run) -> dict[str, float]:
    """Return the amount by which a run's mechanism misses each of the user's constraints; 0 where it holds."""
    return violations_of(run.mechanism, run.constraints, Known.of_table(run.problem.table))


def violations_of(mechanism: Array, constraints: Constraints, known: Known) -> dict[str, float]:
    """Return the same of any mechanism, (|inputs|, |outputs|).

    A ready constraint has its own measure. Any other one is measured by the largest violation of its cvxpy constraints,
    where variables of its own have the values that miss it by the least.
    """
    found = {}
    for name, constraint in constraints:
        measure: Callable[[Array, Known], float] | None = getattr(constraint, "violation", None)
        if measure is not None:
            found[name] = measure(mechanism, known)
        else:
            bare = Declaration(cp.Minimize(0.0), {}, {}, mechanism=cp.Constant(mechanism), known=known)
            placed = with_constraint(bare, "mechanism", name, constraint)
            give_values(placed)
            found[name] = max(float(np.max(one.violation())) for one in placed.constraints.values())
    return found


def constraint_facts(run: Run) -> tuple[list[Section], dict[str, pd.DataFrame]]:
    """Return the violation and price of each of the user's constraints, for readers and as tables."""
    missed, notes = violations(run), []
    try:
        priced = run.shadow_prices
    except SolverFailure as failure:  # no solver has multipliers
        priced, notes = pd.DataFrame(columns=["constraint", "per", "price"]), [f"No prices: {failure}"]
    whole = pd.DataFrame({"constraint": list(missed), "missed_by": list(missed.values())})
    frame = whole.rename(columns={"missed_by": "missed by"})
    prices = Table(
        priced.rename(columns={"price": "price in nats"}),
        "What a unit of each costs: by how much the objective would get better for each unit by which that grows.",
        digits={"price in nats": 3},
    )
    short = Section("Constraints", tables=[Table(frame, digits={"missed by": 1}), prices], notes=notes)
    called = frame.copy()
    called.insert(1, "is", [getattr(constraint, "name", "") for _, constraint in run.constraints])
    text = "Each was looked at in the mechanism itself, not in what a solver says of it."
    return [replace(short, text=text, tables=[Table(called), prices], brief=short)], {
        "constraints": whole,
        "shadow_prices": priced,
    }


REPEATS, LEVEL = 200, 0.95


def likely_excess(constraint: ReadyConstraint, mechanism: Array, table: JointTable) -> float | None:
    """Return by how much a mechanism may miss a constraint on the table behind a noisy one, at `LEVEL`."""
    try:
        constraint.excess(mechanism, None)
    except ModelError:
        pass
    else:
        return None
    counts, protection = table.counts, table.protection
    assert counts is not None, "a protected table is one of counts"
    assert protection is not None, "the table is a noisy one"
    rng, total, found = np.random.default_rng(0), float(counts.sum()), []
    for _ in range(REPEATS):
        joint = nearest_shares(counts + protection.simulated(rng, counts.shape), total) / total
        p_x, p_s = joint.sum(axis=0), joint.sum(axis=1)
        if (p_s <= 0.0).any():
            continue
        known = Known(p_x, p_s, joint / np.where(p_x > 0.0, p_x, 1.0), table.public.labels)
        found.append(max(0.0, float(constraint.excess(mechanism, known))))
    return float(np.quantile(found, LEVEL)) if found else None


def noise_section(run: Run) -> list[Section]:
    """Return which constraints of a run hold on the table behind the noise; nothing without noise or constraints."""
    table = run.problem.table
    ready = [(name, one) for name, one in run.constraints if isinstance(one, ReadyConstraint)]
    if table.protection is None or table.counts is None or not ready:
        return []
    notes = []
    for name, one in ready:
        excess = likely_excess(one, run.mechanism, table)
        if excess is None:
            notes.append(f"{name} speaks of the matrix alone: it holds whatever the table of the records is.")
        elif excess <= 1e-9:
            notes.append(f"{name} holds on the noisy table, and on {LEVEL:.0%} of tables with such noise again.")
        else:
            notes.append(
                f"{name} is NOT robust to the noise: it holds on the noisy table, and the table of the records may "
                f"miss it by {format_number(excess, 2)} ({LEVEL:.0%} of tables with such noise miss it by no more)."
            )
    whole = Section("Constraints behind the noise", notes=notes)
    return [replace(whole, brief=whole)]
