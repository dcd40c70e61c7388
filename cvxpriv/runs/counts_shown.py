"""The page's table of counts: exact for the house, rounded and without small ones for others."""

from __future__ import annotations

import numpy as np

from cvxpriv.numerics.later import pd
from cvxpriv.reports.facts import Section, Table
from cvxpriv.runs.sides import Sides
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.suppression import SMALL, with_totals, withheld

MOST_CELLS = 300
"""Number of cells of a table above which its counts are left out of the page."""
BASE = 5
"""Step to which counts are rounded for others."""
HOW = (
    f"Counts are rounded to {BASE}. A star stands for a count of 1 to {SMALL}, and for any other one that would give a "
    f"small one away: of all tables with the other counts and these totals some have more than {SMALL} in its place. "
    "A total that is withheld or rounded is no sum of what is shown."
)


def counts_section(table: JointTable, sides: Sides) -> list[Section]:
    """Return the counts by public symbol and private value, with totals; nothing for large tables and probabilities."""
    counts = table.counts
    if counts is None or counts.size > MOST_CELLS:
        return []
    whole, title = with_totals(counts), f"Counts of {sides.public.symbol} and {sides.private.symbol}"
    exact = [Table(_framed(table, whole.astype(object)), index=True)]
    if table.protection is not None:
        return [Section(title, f"Counts with {table.protection.noise}.", tables=exact)]
    hidden = withheld(counts)
    near = BASE * np.rint(whole / BASE).astype(int)
    shown = _framed(table, np.where(hidden, "*", near.astype(object)))
    shared = Section(title, HOW, tables=[Table(shown, index=True)])
    small = int(((counts >= 1) & (counts <= SMALL)).sum())
    note = f"{small} counts are from 1 to {SMALL}. A page for others, --page shareable, withholds them."
    return [Section(title, tables=exact, notes=[note] if small else [], shared=shared)]


def _framed(table: JointTable, cells: np.ndarray[tuple[int, ...], np.dtype[np.object_]]) -> pd.DataFrame:
    """Return counts with public symbols down, private values across, and totals."""
    names = [*table.public.labels, "all"]
    index = pd.Index(names, name=", ".join(table.public.columns))
    return pd.DataFrame(cells.T.tolist(), index=index, columns=[*table.private.labels, "all"])
