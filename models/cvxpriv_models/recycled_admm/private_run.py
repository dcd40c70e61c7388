"""What a private solve returns: `PrivateConsensusRun`, which holds nothing but what was published."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import Accounting, Release, ledger_document, ledger_of
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.learning_run import PrivateLearningRun
from cvxpriv.runs.private_records import accounting_document, accounting_of, finite_or_none, read_fit
from cvxpriv.runs.saved import write_run

from .private_settings import PrivateSettings
from .run import Fitted

__all__ = ["PrivateConsensusRun"]


@dataclass(frozen=True, eq=False, repr=False)
class PrivateConsensusRun(PrivateLearningRun, Fitted):
    """A private consensus; parameters and predictions are those of `Fitted`, from the last release of every node.

    Losses, residuals and times are not here: they are facts about the data that were not published.

    Attributes
    ----------
    settings : PrivateSettings
    accounting : Accounting
        Of the ledger: by each rule that of the node that spent most, as a record is in one node.
    ledger : tuple of Release
        Every node's release of every round, and what it costs that node's records.
    privacy_loss : DataFrame
        One row a node: rows, alpha, `tight` and `printed` (RADMM (32); NaN for noise on minimisers), and
        `conventional`, the tight bound of conventional ADMM over as many iterations with the same noise. For Gaussian
        noise: rows, and the `mu` of all rounds.
    released : ndarray, (rounds, N, d)
        Everything that the nodes published with noise.
    history : DataFrame
        One row a round, of published values: iteration, spread (distance of the nodes from their mean), dual_sum.
    interrupted : bool
        Whether the keyboard or a callback ended the run; the accounting is then of what was published.
    """

    model: ClassVar[str] = "RecycledADMM"

    settings: PrivateSettings
    accounting: Accounting
    ledger: tuple[Release, ...] = field(repr=False)
    privacy_loss: pd.DataFrame = field(repr=False)
    released: Array = field(repr=False)
    history: pd.DataFrame = field(repr=False)
    interrupted: bool = False

    def save(self, path: PathLike) -> Path:
        """Write the run to a JSON file, whole or not at all; no record of any node is in it.

        Raises
        ------
        ModelError
            A node's label is neither a text nor a whole number.
        """
        document = {
            **self.fitted_document(),
            "private": True,
            "settings": asdict(self.settings),
            "accounting": accounting_document(self.accounting),
            "ledger": ledger_document(self.ledger),
            "privacy_loss": {
                name: [finite_or_none(value) for value in column] for name, column in self.privacy_loss.items()
            },
            "released": self.released.tolist(),
            "history": self.history.to_dict(orient="list"),
            "interrupted": self.interrupted,
        }
        return write_run(path, "RecycledADMM", document)

    @classmethod
    def load(cls, path: PathLike) -> PrivateConsensusRun:
        """Read what `save` wrote.

        Raises
        ------
        DataError
            No such file, not a private run of RecycledADMM, or of another version.
        """
        document = read_fit(path, "RecycledADMM", private=True)
        fitted = cls.fitted_of(document)
        return cls(
            **fitted,
            settings=PrivateSettings(**{**document["settings"], "eta": tuple(document["settings"]["eta"])}),
            accounting=accounting_of(document["accounting"]),
            ledger=ledger_of(document["ledger"]),
            privacy_loss=pd.DataFrame(
                document["privacy_loss"], index=pd.Index(fitted["labels"], name="node"), dtype=float
            ),
            released=np.array(document["released"]),
            history=pd.DataFrame(document["history"]),
            interrupted=document["interrupted"],
        )
