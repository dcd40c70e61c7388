"""What a private fit returns: `PrivateSharingRun`."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from cvxpriv.history import History
from cvxpriv.privacy import Accounting
from cvxpriv.schedule import Release
from cvxpriv.state import Values

from .private_settings import PrivateSettings
from .run import Fitted

__all__ = ["AT_HOME", "DEGENERATE", "LEAK", "SEEDED", "PrivateSharingRun"]

AT_HOME = (
    "the guarantee is about what parties send each other while they fit; each party's coefficients are exact and stay "
    "with it: to publish them, or predictions, is a release of its own"
)
LEAK = (
    "labels='shared': every party knows every label, and the broadcast dual shows them to whoever sees it; "
    "labels='held' protects them"
)
DEGENERATE = (
    "noise='printed' gives no differential privacy at any delta < 1: D_m xi lies in the range of D_m, which moves with "
    "the data, so that one release tells two candidates for D_m apart with certainty; use noise='gaussian'"
)
SEEDED = "noise from a seed: the guarantee holds only while the seed is secret"


@dataclass(frozen=True, eq=False)
class PrivateSharingRun(Fitted):
    """What a private fit came to.

    `coefficients`, `predict_proba`, `predict` and `decision_function` are those of any fit. Coefficients are the mean
    over the passes since the first release; each party computes its own, and they are not covered by the guarantee
    (see `warnings`).

    Attributes
    ----------
    settings : PrivateSettings
    accounting : Accounting
        Exact Gaussian composition, the looser rules beside it, and Corollary 1 as printed.
    ledger : tuple of Release
        Every release: step, pass, mu.
    released : mapping of str to ndarray
        What everyone knows at the end: `v/m` (N,), `z`, `y`, `noise/m`, `sensitivity/m`, `kept/m`.
    warnings : tuple of str
        What the guarantee does not cover.
    seconds : float
    log : History
    interrupted : bool
        Whether the keyboard or a callback ended the run; the accounting is then of what was released.
    """

    settings: PrivateSettings
    accounting: Accounting
    ledger: tuple[Release, ...]
    released: Values
    warnings: tuple[str, ...]
    seconds: float
    log: History = field(default_factory=History, repr=False)
    interrupted: bool = False

    @property
    def history(self) -> pd.DataFrame:
        """Pass by pass, public figures only: ||S - z||, and of each party noise, sensitivity and the part kept."""
        return self.log.frame(0)
