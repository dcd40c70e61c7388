"""What `cvxpriv sharing` is asked for, and a fit with the rows it is of."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from cvxpriv.cli.fits.fit import Fit
from cvxpriv.privacy.gaussian import require_budget
from cvxpriv.reports.files import PathLike

from .private_run import PrivateSharingRun
from .run import SharingRun

__all__ = ["LAM", "PRIVATE_LAM", "Parties", "SharingFit", "SharingOptions"]

#: Weight of the penalty unless named: noise in the shares asks for more of it.
LAM, PRIVATE_LAM = 1.0, 30.0

Parties = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class SharingOptions:
    """What `ADMMSharing`, its `solve` and its `solve_private` are asked for; the names are theirs."""

    lam: float | None = None
    loss: str = "logistic"
    penalty: str = "l2"
    intercept: bool = True
    rho: float | None = None
    method: str = "averaged"
    max_iter: int | None = None
    tol: float = 1e-7
    epsilon: float | None = None
    delta: float = 1e-6
    adjacency: str = "replace-one"
    labels: str = "shared"
    clip: float | None = None
    clip_entries: float | None = None
    noise_seed: int | None = None
    not_private: bool = False

    @property
    def private(self) -> bool:
        """Whether a guarantee is asked for."""
        return self.epsilon is not None

    @property
    def weight(self) -> float:
        """lam, or its default."""
        if self.lam is not None:
            return self.lam
        return PRIVATE_LAM if self.private else LAM

    def check(self) -> None:
        """Refuse, before any row is read, a budget that is none.

        Raises
        ------
        PrivacyError
            epsilon or delta is out of range.
        """
        if self.epsilon is not None:
            require_budget(self.epsilon, self.delta)


@dataclass
class SharingFit(Fit):
    """A fit of ADMM sharing.

    Attributes
    ----------
    parties : tuple of tuple of str
        The columns of each.
    options : SharingOptions
    """

    run: SharingRun | PrivateSharingRun
    parties: Parties = ()
    options: SharingOptions = field(default_factory=SharingOptions)

    def figures(self) -> dict[str, object]:
        """See `Fit`."""
        found: dict[str, object] = {"parties": self.parties, "lam": self.options.weight}
        if isinstance(self.run, SharingRun):
            found |= {
                "objective": self.run.objective,
                "gap": self.run.gap,
                "kkt": self.run.kkt.largest,
                "converged": self.run.converged,
                "iterations": self.run.iterations,
                "seconds": self.run.seconds,
            }
        return found

    @property
    def shows_coefficients(self) -> bool:
        """See `Fit`: those of a private fit are not covered by its guarantee."""
        return not self.private or self.options.not_private

    def save(self, path: PathLike) -> Path:
        """See `Fit`."""
        if isinstance(self.run, SharingRun):
            return self.run.save(path)
        return self.run.save(path, not_private=self.options.not_private)

    @property
    def coefficients(self) -> pd.DataFrame:
        """One row an encoded column: feature, party, coefficient; the intercept last."""
        owner = {name: f"party {m + 1}" for m, names in enumerate(self.parties) for name in names}
        owners = [owner[column.name] for column in self.rows.encoding.columns for _ in column.features]
        table = super().coefficients
        table.insert(1, "party", [*owners, "party 1" if self.private else ""])
        return table
