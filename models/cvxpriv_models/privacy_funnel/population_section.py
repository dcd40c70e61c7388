"""The page's section on the best possible mechanism in the population."""

from __future__ import annotations

import pandas as pd

from cvxpriv.mechanisms.disclosure import Disclosure
from cvxpriv.reports.facts import Section, Table
from cvxpriv.reports.formatting import format_number

from .population import population_interval
from .problem import Problem

__all__ = ["population_section"]

POPULATION_CELLS, POPULATION_REPLICATES = 40, 60
"""Largest number of cells of a table whose page resamples it, and the replicates; Python has no such limit."""


def population_section(problem: Problem, disclosure: Disclosure | None) -> list[Section]:
    """Return what the records say of the population's least leakage; nothing for tables whose replicates take long."""
    table = problem.table
    if disclosure is None or not disclosure.bootstrap or table.counts is None or table.counts.size > POPULATION_CELLS:
        return []
    if table.protection is not None:  # both intervals are of records, and noisy counts are none
        return []
    found = population_interval(table, problem.rate, POPULATION_REPLICATES, disclosure.level, disclosure.seed)
    low, high = zip(found.bootstrap, found.finite, strict=True)
    how = (f"bootstrap, {found.replicates} resamples: approximate", "finite sample: holds for every population")
    rows = pd.DataFrame({"interval": how, f"{found.level:.0%} low": low, f"{found.level:.0%} high": high})
    text = (
        "The least leakage that any mechanism reaches at this rate, had it been designed on everybody and not on "
        f"{found.records:,} records. On the records themselves, without smoothing, it is {format_number(found.value)} "
        "nats."
    )
    return [Section("The best possible in the population", text, tables=[Table(rows, "Nats.")])]
