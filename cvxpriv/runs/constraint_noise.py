"""Constraints and the noise in a table: those of the matrix alone survive it, the others hold on the noisy table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.facts import Section
from cvxpriv.reports.formatting import format_number
from cvxpriv.runs.mechanism_run import MechanismRun
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.noisy_counts import nearest_shares

DRAWS, LEVEL = 200, 0.95


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
    for _ in range(DRAWS):
        joint = nearest_shares(counts + protection.simulated(rng, counts.shape), total) / total
        p_x, p_s = joint.sum(axis=0), joint.sum(axis=1)
        if (p_s <= 0.0).any():
            continue
        known = Known(p_x, p_s, joint / np.where(p_x > 0.0, p_x, 1.0), table.public.labels)
        found.append(max(0.0, float(constraint.excess(mechanism, known))))
    return float(np.quantile(found, LEVEL)) if found else None


def noise_section(run: MechanismRun[Any, Any]) -> list[Section]:
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
