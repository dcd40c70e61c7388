"""What a private solve returns: `PrivateSparseRun`, which holds nothing but what was released."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from cvxpriv.history import History
from cvxpriv.privacy import Accounting

from .run import SparseFit

__all__ = ["LOOP", "PrivateSettings", "PrivateSparseRun", "released_history"]

#: The name under which the loop stands in a run's history.
LOOP = "private step"


@dataclass(frozen=True)
class PrivateSettings:
    """The public choices behind a private run.

    Attributes
    ----------
    algorithm : str
    iterations : int
    clip : float
    step, adjacency, output : str
    noise_scale : float
        Standard deviation of each coordinate's noise.
    step_limit : float
        The greatest step.
    """

    algorithm: str
    iterations: int
    clip: float
    step: str
    adjacency: str
    output: str
    noise_scale: float
    step_limit: float


@dataclass(frozen=True, eq=False)
class PrivateSparseRun(SparseFit):
    """A private solve of ISTDP (2); the coefficients and what they predict are those of `SparseFit`.

    F, residuals and times are not here: they are facts about the data that were not released.

    Attributes
    ----------
    accounting : Accounting
        What the run guarantees, or that nothing holds for the algorithm as printed.
    settings : PrivateSettings
    history : DataFrame
        One row an iteration: iteration, step, noisy_gradient (its norm), support. The algorithm as printed has `step`,
        the length that step 1.2 reads off clean data, `taken` and `support`.
    interrupted : bool
    """

    accounting: Accounting
    settings: PrivateSettings
    history: pd.DataFrame = field(repr=False)
    interrupted: bool = False


def released_history(log: History) -> pd.DataFrame:
    """Return what a loop measured, one row an iteration, without the times: they tell of the data."""
    if not log.records:
        return pd.DataFrame()
    table = log.frame(0)
    hidden = ["block", "seconds", "engine", "solver", "status"]
    return table[table["block"] == LOOP].drop(columns=hidden).reset_index(drop=True)
