"""How close the best solver of a cross-check comes to its references."""

from __future__ import annotations

import pandas as pd

from cvxpriv.certify import CrossCheck
from cvxpriv.certify.check import CLOSED_FORM


def best_gap(report: CrossCheck) -> pd.Series:
    """Per case, the smallest gap to the reference among the solvers."""
    solvers = report.table[report.table["solver"] != CLOSED_FORM]
    return solvers.groupby("case", sort=False)["gap"].min()
