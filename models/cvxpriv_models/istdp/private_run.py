"""What a private solve returns: `PrivateSparseRun`, which holds nothing but what was released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties.proximal import proximal_block
from cvxpriv.privacy import Accounting, Release, ledger_document, ledger_of
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.learning_run import PrivateLearningRun
from cvxpriv.runs.private_records import accounting_document, accounting_of, read_fit
from cvxpriv.runs.saved import write_run

from .run import SparseFit, fit_of

if TYPE_CHECKING:
    from cvxpriv.certify.check import CrossCheck

__all__ = ["LOOP", "PrivateSettings", "PrivateSparseRun"]

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
        Standard deviation of each coordinate's noise; of objective perturbation 1/rate.
    step_limit : float
        The greatest step; 0 for a single release.
    """

    algorithm: str
    iterations: int
    clip: float
    step: str
    adjacency: str
    output: str
    noise_scale: float
    step_limit: float


@dataclass(frozen=True, eq=False, repr=False)
class PrivateSparseRun(PrivateLearningRun, SparseFit):
    """A private solve of ISTDP (2); the coefficients and what they predict are those of `SparseFit`.

    F, residuals and times are not here: they are facts about the data that were not released.

    Attributes
    ----------
    accounting : Accounting
        Of the ledger: what the run guarantees, or that nothing holds for the algorithm as printed.
    ledger : tuple of Release
        Every release, and what it costs.
    settings : PrivateSettings
    history : DataFrame
        One row an iteration: iteration, step, noisy_gradient (its norm), support. The algorithm as printed has `step`,
        the length that step 1.2 reads off clean data, `taken` and `support`.
    interrupted : bool
    center : ndarray, optional
        theta - step xi of the last iteration, released as both are: with it `certify` poses the last proximal problem.
    last_step : float, optional
        The length of the last step.
    """

    model: ClassVar[str] = "ISTDP"

    accounting: Accounting
    ledger: tuple[Release, ...] = field(repr=False)
    settings: PrivateSettings
    history: pd.DataFrame = field(repr=False)
    interrupted: bool = False
    center: Array | None = field(default=None, repr=False)
    last_step: float | None = None

    def certify(self, solvers: Sequence[str] | None = ("CLARABEL", "ECOS", "SCS"), **options: Any) -> CrossCheck:
        """Solve the last proximal problem again by every solver, and judge the answers; it reads no data.

        Parameters
        ----------
        solvers : sequence of str, optional
            None is every installed solver that takes the block's cones.
        **options
            Passed to `cvxpriv.certify.check.crosscheck`.

        Raises
        ------
        ModelError
            The algorithm releases no proximal problem: the printed one, or no proximal one at all.
        """
        from cvxpriv.certify.check import case_of_block, crosscheck

        if self.center is None or self.last_step is None:
            raise ModelError(
                f"method={self.settings.algorithm!r} releases no proximal problem to certify: use method='istdp'"
            )
        view = {"center": self.center, "step": np.asarray(self.last_step)}
        return crosscheck([case_of_block(proximal_block(self.penalty, len(self.names)), view)], solvers, **options)

    def save(self, path: PathLike) -> Path:
        """Write the run to a JSON file, whole or not at all; nothing that was not released is in it.

        Raises
        ------
        ModelError
            The penalty or the loss is a user's own: they are code.
        """
        document = {
            **self.record(),
            "private": True,
            "accounting": accounting_document(self.accounting),
            "ledger": ledger_document(self.ledger),
            "settings": asdict(self.settings),
            "history": self.history.to_dict(orient="list"),
            "interrupted": self.interrupted,
            "center": None if self.center is None else self.center.tolist(),
            "last_step": self.last_step,
        }
        return write_run(path, "ISTDP", document)

    @classmethod
    def load(cls, path: PathLike) -> PrivateSparseRun:
        """Read what `save` wrote.

        Raises
        ------
        DataError
            No such file, not a saved run, or of another version.
        """
        document = read_fit(path, "ISTDP", private=True)
        center = document["center"]
        return cls(
            **vars(fit_of(document)),
            accounting=accounting_of(document["accounting"]),
            ledger=ledger_of(document["ledger"]),
            settings=PrivateSettings(**document["settings"]),
            history=pd.DataFrame(document["history"]),
            interrupted=document["interrupted"],
            center=None if center is None else np.array(center),
            last_step=document["last_step"],
        )
