"""The result of a private solve: `PrivateConsensusRun`, which holds only published values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from cvxpriv.certify.cases import Case
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.later import pd
from cvxpriv.reports.facts import Fact
from cvxpriv.runs.learning_run import PrivateLearningRun

from .private_settings import PrivateSettings
from .run import Fitted, consensus_fact


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrivateConsensusRun(PrivateLearningRun, Fitted):
    """A private consensus; parameters and predictions are those of `Fitted`, from the last release of every node.

    Losses, residuals and times are not here: they are facts about the data that were not published.

    `accounting`: Accounting of the ledger: by each rule that of the node that spent most, as a record is in one node.
    `privacy_loss`: One row a node: rows, alpha, `tight` and `printed` (RADMM (32); NaN for noise on minimisers), and
    `conventional`, the tight bound of conventional ADMM over as many iterations with the same noise. For Gaussian
    noise: rows, and the `mu` of all passes.
    `released`, (passes, N, d): Everything that the nodes published with noise.
    `history`: One row a pass, of published values: iteration, spread (distance of the nodes from their mean), dual_sum.
    """

    model: ClassVar[str] = "RecycledADMM"
    covered: ClassVar[str] = (
        "What the nodes publish in all passes, and all that follows from it, each node's coefficients too, is"
    )
    drawn: ClassVar[tuple[str, str]] = ("spread", "all nodes' distance from the mean")

    settings: PrivateSettings
    privacy_loss: pd.DataFrame
    released: Array

    @property
    def posable(self) -> bool:
        """See `LearningRun`: no block is posed by released values alone."""
        return False

    def own_facts(self) -> tuple[Fact, ...]:
        noisy = f"noise in the {self.noisy} of each node"
        return (Fact("iterations", len(self.released), "", "Passes that ran.", "passes", noisy), consensus_fact(self))

    def own_promises(self) -> list[str]:
        return [
            "A node sees its own rows; against all others, the other nodes together, its records are protected.",
            "A person with records at several nodes is protected by the sum of what these nodes guarantee.",
            "The options count as public: to choose them by scores of these rows, or to fit again, costs more.",
        ]

    @property
    def noisy(self) -> str:
        """The place of the noise, in words."""
        return "objective" if self.settings.perturbation == "objective" else "minimiser"

    def cases(self) -> list[Case]:
        """See `Run`.

        Raises
        ------
        ModelError
            Always: a node's convex step reads its rows, which are not released.
        """
        raise ModelError(
            "a private consensus has no block to certify: a node's step reads its rows. Certify a run without privacy"
        )

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> PrivateConsensusRun:
        run = super().of_document(document)
        return replace(run, privacy_loss=run.privacy_loss.astype(float))
