"""The result of an exact fit across parties, as the label holder has it: `SharingApartRun`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.distributed.log import MessageLog
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arguments import require_counts, require_seed
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.reports.facts import Fact
from cvxpriv.runs.codec import UNSAVED
from cvxpriv.runs.learning_run import LearningRun
from cvxpriv.schedules.history import History

from .blocks import centre, total_share
from .kkt import SharingResiduals
from .problem import Problem
from .run import ROWS, Settings, sampled
from .schemes import scheme_named

__all__ = ["SharingApartRun"]


@dataclass(frozen=True, eq=False, repr=False)
class SharingApartRun(LearningRun):
    """A fit of parties that are apart: what the label holder knows of it. Each party has its coefficients.

    Attributes
    ----------
    names : tuple of str
        The parties.
    columns : tuple of int
        Number of columns of each.
    settings : Settings
    converged, iterations, objective, kkt, gap, seconds, interrupted
        See `SharingRun`.
    state : mapping of str to ndarray
        The final state: v/0.., z, y, rho.
    problem : Problem
        The labels and the loss; its parts have no columns.
    log : History
    messages : MessageLog
        Every message with its size.
    """

    model: ClassVar[str] = "ADMMSharing"
    open: ClassVar[str] = "The shares that the parties sent, exact, and their figures"

    names: tuple[str, ...]
    columns: tuple[int, ...]
    settings: Settings
    converged: bool
    iterations: int
    objective: float
    kkt: SharingResiduals
    gap: float
    seconds: float
    interrupted: bool = False
    overdue: bool = False
    state: Values = field(default_factory=dict, repr=False, metadata=UNSAVED)
    problem: Problem | None = field(default=None, repr=False, metadata=UNSAVED)
    log: History = field(default_factory=History, repr=False, metadata=UNSAVED)
    messages: MessageLog = field(default_factory=MessageLog, repr=False, metadata=UNSAVED)

    @property
    def history(self) -> pd.DataFrame:
        """See `SharingRun`."""
        return self.log.frame(0)

    @property
    def predictions(self) -> Array:
        """S = sum_m D_m x_m, (N,), at the rows of the fit."""
        return total_share(self.state, len(self.names))

    def own_facts(self) -> Sequence[Fact]:
        """See `LearningRun`."""
        taken = [entry for entry in self.messages.entries if not entry.refused]
        size = sum(entry.bytes for entry in taken)
        right = float(np.mean(np.where(self.predictions > 0.0, 1.0, -1.0) == self._problem().y))
        scored = [Fact("accuracy", right, "", "Rows of the fit that are predicted right.", digits=4)]
        return [
            Fact("parties", self.names, detail=", ".join(f"{count} columns" for count in self.columns)),
            Fact("messages", len(taken), "", "Messages between the label holder and the parties."),
            Fact("bytes", size, "bytes", "Their vectors together."),
            *(scored if self._two else []),
        ]

    @property
    def _two(self) -> bool:
        return self.problem is not None and self.problem.loss.margin

    def cases(self, rows: int | None = ROWS, seed: int = 0) -> list[Case]:
        """Return the label holder's block at the end; the parties' blocks are with them."""
        require_counts(rows=rows)
        require_seed(seed)
        problem, view = sampled(self._problem(), self.state, rows, seed)
        return [case_of_block(centre(problem, scheme_named(self.settings.method)), view)]

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """See `Run`.

        Raises
        ------
        ModelError
            Always: a file of the label holder's has no model, which the parties hold.
        """
        raise ModelError("a run across parties is not read from a file: each party's coefficients are with it")

    def _problem(self) -> Problem:
        if self.problem is None:
            raise ModelError("this run has no labels: solve again")
        return self.problem
