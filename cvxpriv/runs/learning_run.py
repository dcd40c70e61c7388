"""What the runs of models that learn have in common: facts said once, a short repr, a picture."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from cvxpriv.errors import DataError
from cvxpriv.privacy.accounting import Accounting
from cvxpriv.reports.facts import Fact, Facts
from cvxpriv.reports.formatting import format_number
from cvxpriv.reports.text import facts_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LearningRun", "PrivateLearningRun"]

NOT_PRIVATE = "Nothing about this run is private: coefficients tell of the rows."


class _Told:
    """A run that says its facts."""

    #: The model's name in `cvxpriv.models`.
    model: ClassVar[str]

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """What is known of the run."""

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.model}\n{facts_text(self.facts.main)}"


class LearningRun(_Told):
    """A run that is not private.

    A subclass is a dataclass with `converged`, `iterations`, `objective`, `kkt`, `gap`, `history`, `settings` and
    `seconds`.
    """

    converged: Any
    iterations: int
    objective: float
    kkt: Any
    gap: Any
    history: Any
    settings: Any
    seconds: float
    interrupted: bool

    def own_facts(self) -> Sequence[Fact]:
        """Return what this model's run says beside what every run does."""
        return ()

    @property
    def facts(self) -> Facts:
        """What is known of the run: numbers with a sentence each, the options, and what it promises."""
        state = "converged" if self.converged else "NOT converged"
        asked = f"{state}; {format_number(self.settings.tol, 1)} asked for"
        gap = (
            []
            if not np.isfinite(self.gap)
            else [Fact("gap", self.gap, "", "The objective is above its optimum by at most this.", digits=2, main=True)]
        )
        missed = f"the KKT residual is {self.kkt.largest:.1e} after {self.iterations} passes, above tol"
        return Facts(
            title=self.model,
            facts=[
                Fact("objective", self.objective, "", "What was minimised.", main=True),
                Fact(
                    "kkt",
                    self.kkt.largest,
                    "",
                    "Distance from the optimality conditions, which hold at 0.",
                    "KKT residual",
                    asked,
                    digits=2,
                    main=True,
                ),
                *gap,
                *self.own_facts(),
                Fact("iterations", self.iterations, "passes", "Sweeps of all blocks.", "passes", main=True),
                Fact("seconds", self.seconds, "s", "Wall time.", digits=3),
            ],
            settings=[Fact(name, value) for name, value in asdict(self.settings).items()],
            promises=[NOT_PRIVATE],
            converged=bool(self.converged),
            interrupted=self.interrupted,
            unmet="" if self.converged else f"{missed}={self.settings.tol:g}: raise max_iter, or allow a larger tol",
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the KKT residual by pass, on a logarithmic axis.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; None: a figure of its own.

        Raises
        ------
        DataError
            The run was read from a file: its history is not in it.
        ModelError
            matplotlib is missing.
        """
        history: pd.DataFrame = self.history
        if "kkt" not in history or not history["kkt"].notna().any():
            raise DataError("the history of a run is not in its file: solve again")
        from cvxpriv.reports.pictures import blank

        axes = blank(6.4, 3.4).add_subplot() if ax is None else ax
        passes = history[history["kkt"].notna()]
        axes.semilogy(passes["iteration"], passes["kkt"])
        axes.set_xlabel("pass")
        axes.set_ylabel("KKT residual")
        return axes


class PrivateLearningRun(_Told):
    """A private run: its facts are what it guarantees, and nothing that was not released.

    A subclass is a dataclass with `accounting`, `settings` and `interrupted`.
    """

    accounting: Accounting
    settings: Any
    interrupted: bool

    def own_promises(self) -> Sequence[str]:
        """Return what the guarantee does not cover."""
        return ()

    @property
    def facts(self) -> Facts:
        """What the run guarantees: the budget that was spent, the releases, the neighbour relation, the options."""
        found = self.accounting
        valid = any(claim.holds for claim in found.claims)
        sentence = "No event of what was released is more likely by more than a factor exp(epsilon), and delta."
        spent = [
            Fact("epsilon", found.epsilon if valid else None, "", sentence, main=True),
            Fact("delta", found.delta if valid else None, "", "The part that epsilon leaves open.", main=True),
        ]
        return Facts(
            title=self.model,
            facts=[
                *spent,
                Fact("releases", found.releases, "", "That touch the records of one neighbour's change.", main=True),
                Fact("neighbours", found.neighbours, "", "What two neighbouring data sets differ in.", main=True),
            ],
            settings=[Fact(name, value) for name, value in asdict(self.settings).items()],
            promises=self.own_promises(),
            interrupted=self.interrupted,
        )
