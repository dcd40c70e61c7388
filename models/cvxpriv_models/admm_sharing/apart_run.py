"""The result of an exact fit across parties, as the label holder has it: `SharingApartRun`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from cvxpriv.certify.cases import Case
from cvxpriv.distributed.carriers import MessageLog
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.sizes import counted
from cvxpriv.reports.facts import Fact
from cvxpriv.runs.codec import UNSAVED

from .blocks import total_share
from .run import ROWS, SharedFit, centre_cases


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SharingApartRun(SharedFit):
    """A fit of parties that are apart: what the label holder knows of it. Each party has its coefficients.

    Its state has no coefficients, and the parts of its problem have no columns; see `SharedFit`.

    Attributes
    ----------
    names : tuple of str
        The parties.
    columns : tuple of int
        Number of columns of each.
    messages : MessageLog
        Every message with its size.
    """

    open: ClassVar[str] = "The shares that the parties sent, exact, and their figures"

    names: tuple[str, ...]
    columns: tuple[int, ...]
    messages: MessageLog = field(default_factory=MessageLog, metadata=UNSAVED)

    @property
    def predictions(self) -> Array:
        """S = sum_m D_m x_m, (N,), at the rows of the fit."""
        return total_share(self.state, len(self.names))

    def own_facts(self) -> Sequence[Fact]:
        taken = [entry for entry in self.messages.entries if not entry.refused]
        size = sum(entry.bytes for entry in taken)
        problem = self._problem()
        right = float(np.mean(np.where(self.predictions > 0.0, 1.0, -1.0) == problem.y))
        scored = [Fact("accuracy", right, "", "Rows of the fit that are predicted right.", digits=4)]
        return [
            Fact("parties", self.names, detail=", ".join(counted(count, "column") for count in self.columns)),
            Fact("messages", len(taken), "", "Messages between the label holder and the parties."),
            Fact("bytes", size, "bytes", "Their vectors together."),
            *(scored if problem.loss.margin else []),
        ]

    def cases(self, rows: int | None = ROWS, seed: int = 0) -> list[Case]:
        """Return the label holder's block at the end; the parties' blocks are with them."""
        return centre_cases(self._problem(), self.state, self.settings.method, rows, seed)

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """See `Run`.

        Raises
        ------
        ModelError
            Always: a file of the label holder's has no model, which the parties hold.
        """
        raise ModelError("a run across parties is not read from a file: each party's coefficients are with it")
