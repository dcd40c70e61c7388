"""The result of a private solve: `PrivateSparseRun`, which holds only released numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.later import pd
from cvxpriv.penalties.proximal import proximal_block
from cvxpriv.privacy import Claim, Release, account_ledger
from cvxpriv.reports.facts import Fact
from cvxpriv.runs.learning_run import PrivateLearningRun

from .clipping import neighbours
from .problem import Problem
from .run import SparseFit, support_fact

#: Name of the loop in a run's history.
LOOP = "private step"
LEAK = "The algorithm as printed reads clean data in its step and its line search: it guarantees nothing."


@dataclass(frozen=True)
class PrivateSettings:
    """The choices behind a private run, public or released.

    `max_iter`: Number of noisy gradients.
    `noise_scale`: Standard deviation of each coordinate's noise; for objective perturbation, 1/rate.
    `step_limit`: The greatest step; 0 for a single release.
    `centre`: Whether rows were centred with released moments: then clip, noise and step follow from these.
    `support`: Number of columns that were chosen.
    """

    method: str
    max_iter: int
    clip: float
    step: str
    adjacency: str
    output: str
    noise_scale: float
    step_limit: float
    centre: str = "none"
    support: int | None = None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrivateSparseRun(PrivateLearningRun, SparseFit):
    """A private solve of ISTDP (2); the coefficients and their predictions are those of `SparseFit`.

    F, residuals and times are not here: they are facts about the data that were not released.

    `accounting`: Accounting of the ledger: the guarantee of the run, or that nothing holds for the algorithm as
    printed.
    `history`: One row per iteration: iteration, step, noisy_gradient (its norm), support. The algorithm as printed has
    `step`, the length that step 1.2 reads off clean data, `taken` and `support`.
    `center`: The centre theta - step xi of the last iteration, released as both are: with it `certify` poses the last
    proximal problem.
    `last_step`: Length of the last step.
    """

    model: ClassVar[str] = "ISTDP"
    covered: ClassVar[str] = "The coefficients, and all that follows from them, are"
    drawn: ClassVar[tuple[str, str]] = ("support", "coefficients that are not 0")

    settings: PrivateSettings
    center: Array | None = None
    last_step: float | None = None

    @classmethod
    def of(
        cls,
        problem: Problem,
        theta: Array,
        settings: PrivateSettings,
        ledger: Iterable[Release],
        divisor: int,
        *,
        delta: float | None = None,
        secure: bool,
        printed: Sequence[Claim] = (),
        **more: Any,
    ) -> PrivateSparseRun:
        """Return the run of coefficients that were released, with the accounting of its ledger."""
        entries, words = tuple(ledger), neighbours(settings.adjacency, divisor)
        return cls(
            theta=theta,
            loss=problem.loss,
            penalty=problem.penalty,
            classes=problem.classes,
            names=problem.names,
            accounting=account_ledger(entries, delta, neighbours=words, printed=printed, secure=secure),
            ledger=entries,
            settings=settings,
            **{"history": pd.DataFrame(), **more},
        )

    @property
    def posable(self) -> bool:
        return self.center is not None

    def own_facts(self) -> tuple[Fact, ...]:
        return (support_fact(self),)

    def own_promises(self) -> list[str]:
        return [
            *(() if any(claim.holds for claim in self.accounting.claims) else (LEAK,)),
            "The penalty and the other options count as public: to choose them by scores of these rows, or to fit "
            "again, costs more.",
        ]

    def cases(self) -> list[Case]:
        """See `Run`. The case is the last proximal problem, which reads no data.

        Raises
        ------
        ModelError
            The algorithm releases no proximal problem: it is the printed one, or has no proximal step.
        """
        if self.center is None or self.last_step is None:
            raise ModelError(
                f"method={self.settings.method!r} releases no proximal problem to certify: use method='istdp'"
            )
        view = {"center": self.center, "step": np.asarray(self.last_step)}
        return [case_of_block(proximal_block(self.penalty, len(self.names)), view)]
