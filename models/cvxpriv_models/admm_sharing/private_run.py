"""The result of a private fit: `PrivateSharingRun`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cvxpriv.certify.cases import Case
from cvxpriv.errors import PrivacyError
from cvxpriv.numerics.arrays import Values
from cvxpriv.penalties import L2, loss_named
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.codec import UNSAVED, decoded, fields_of
from cvxpriv.runs.learning_run import PrivateLearningRun
from cvxpriv.runs.saved import write_run

from .labels import LABELS, flip_probability, unbiased
from .private_settings import FOR_LABELS, PrivateSettings
from .problem import Problem
from .run import ROWS, Fitted, centre_cases

AT_HOME = (
    "The guarantee is about what parties send each other while they fit; each party's coefficients are exact and stay "
    "with it: to publish them, or predictions, is a release of its own."
)
LEAK = (
    "With labels='shared' every party knows every label, and the broadcast dual shows them to whoever sees it; "
    "labels='held' protects them."
)
DEGENERATE = (
    "The noise 'printed' gives no differential privacy at any delta < 1: D_m xi lies in the range of D_m, which moves "
    "with the data, so that one release tells two candidates for D_m apart with certainty; use noise='gaussian'."
)


@dataclass(frozen=True, eq=False)
class NotPrivate(Fitted):
    """The results of a private fit that no guarantee covers: coefficients, predictions, times.

    Coefficients are the mean over the passes since the first release. Each party computes its own, and keeps them.

    `seconds`: Wall time; not in a file.
    """

    seconds: float = field(default=float("nan"), metadata=UNSAVED)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrivateSharingRun(PrivateLearningRun):
    """The result of a private fit: its releases, and behind `not_private` the rest.

    `classes`, (2,): The user's labels for -1 and 1; None for a residual loss.
    `columns`: Number of columns of each party.
    `accounting`: Accounting of the ledger: exact composition, the looser rules beside it, and Corollary 1 as printed.
    `released`: The public values at the end: `v/m` (N,), `z`, `y`, `noise/m`, `sensitivity/m`, `kept/m`, the `weights`,
    and the `labels` that the centre used: public ones, or flipped ones, which its dual shows.
    `warnings`: Quantities that the guarantee does not cover.
    `history`: One row per pass, public figures only: iteration, gap (||S - z||), and for each party noise, sensitivity
    and the part kept.
    `hidden`: See `not_private`.
    """

    model: ClassVar[str] = "ADMMSharing"
    covered: ClassVar[str] = "What the parties send each other is"
    drawn: ClassVar[tuple[str, str]] = ("gap", "||S - z||")

    loss_name: str
    classes: np.ndarray | None
    columns: tuple[int, ...]
    settings: PrivateSettings
    released: Values
    warnings: tuple[str, ...]
    hidden: NotPrivate | None = field(default=None, metadata=UNSAVED)

    def own_promises(self) -> tuple[str, ...]:
        return self.warnings

    @property
    def not_private(self) -> NotPrivate:
        """Coefficients and predictions, **which the guarantee does not cover** (see `warnings`).

        It is for a user who may see all parties' coefficients, as in a simulation.

        Raises
        ------
        PrivacyError
            The run was read from a file that was written without them.
        """
        if self.hidden is None:
            raise PrivacyError(
                "the file of this run holds what was released, and no coefficients: each party keeps its own; "
                "save(path, not_private=True) writes them"
            )
        return self.hidden

    def cases(self, rows: int | None = ROWS, seed: int = 0) -> list[Case]:
        """Return the step after the last release, which the centre takes from released values alone.

        Parameters
        ----------
        rows, seed
            See `SharingRun.cases`.

        Raises
        ------
        ModelError
            The loss is a user's own, and only its name is known.
        """
        view: Values = {**self.released, "rho": np.asarray(self.settings.rho)}
        return centre_cases(self._problem(), view, self.settings.method, rows, seed)

    def save(self, path: PathLike, *, not_private: bool = False) -> Path:
        """Write the released values of the run to a JSON file, whole or not at all.

        Parameters
        ----------
        path : path
        not_private : bool
            Write every party's coefficients too, **which the guarantee does not cover**.
        """
        return write_run(path, self.model, self.document_with_hidden() if not_private else self.document())

    def document_with_hidden(self) -> dict[str, Any]:
        """Return the content of the run's file, and all coefficients, **which the guarantee does not cover**."""
        return {**self.document(), "not_private": fields_of(self.not_private)}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> PrivateSharingRun:
        return replace(super().of_document(document), hidden=decoded(NotPrivate | None, document.get("not_private")))

    def _problem(self) -> Problem:
        """Return the problem as the centre knows it: everything but the parties' columns."""
        labels, loss = self.released[LABELS], loss_named(self.loss_name)
        if self.settings.labels == "held":
            loss = unbiased(loss, flip_probability(FOR_LABELS * self.settings.epsilon))
        unknown = tuple(np.zeros((labels.size, 0)) for _ in self.columns)
        none = (L2(0.0),) * len(unknown)
        return Problem(unknown, labels, loss, none, 0.0, self.released["weights"])
