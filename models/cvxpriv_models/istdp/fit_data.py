"""What `cvxpriv sparse` is asked for, and a fit with the rows it is of."""

from __future__ import annotations

from dataclasses import dataclass, field

from cvxpriv.cli.fits.fit import Fit
from cvxpriv.penalties import penalty_named
from cvxpriv.privacy.gaussian import require_budget

from .private_run import PrivateSparseRun
from .run import SparseRun

__all__ = ["COUNTED", "PENALTY", "SparseFitted", "SparseOptions"]

#: The part of a row's largest gradient that counts, unless `clip` is named: few gradients of a fitted model are longer.
COUNTED = 0.5
#: Of a fit without privacy, on rows of norm at most 1.
PENALTY = "mcp:0.001:50"


@dataclass(frozen=True)
class SparseOptions:
    """What `ISTDP`, its `solve` and its `solve_private` are asked for; the names are theirs."""

    penalty: str | None = None
    loss: str = "logistic"
    intercept: bool = True
    max_iter: int | None = None
    tol: float = 1e-7
    epsilon: float | None = None
    delta: float = 1e-6
    clip: float | None = None
    step: str = "lipschitz"
    adjacency: str = "replace-one"
    public_rows: int | None = None
    output: str = "last"
    noise_seed: int | None = None

    @property
    def private(self) -> bool:
        """Whether a guarantee is asked for."""
        return self.epsilon is not None

    @property
    def chosen(self) -> str:
        """The penalty, or its default: a private one follows from public numbers, once the rows are there."""
        return self.penalty or ("auto" if self.private else PENALTY)

    def check(self) -> None:
        """Refuse, before any row is read, a budget or a penalty that is none.

        Raises
        ------
        PrivacyError
            epsilon or delta is out of range.
        ModelError
            There is no such penalty.
        """
        if self.penalty is not None:
            penalty_named(self.penalty)
        if self.epsilon is not None:
            require_budget(self.epsilon, self.delta)


@dataclass
class SparseFitted(Fit):
    """A fit of ISTDP; the coefficients of a private one are released.

    Attributes
    ----------
    options : SparseOptions
    """

    run: SparseRun | PrivateSparseRun
    options: SparseOptions = field(default_factory=SparseOptions)

    def figures(self) -> dict[str, object]:
        """See `Fit`."""
        features = self.rows.encoding.features
        found: dict[str, object] = {
            "penalty": self.named_penalty,
            "support": [features[place] for place in self.run.support],
        }
        if isinstance(self.run, SparseRun):
            found |= {
                "objective": self.run.objective,
                "kkt": self.run.kkt.largest,
                "converged": self.run.converged,
                "iterations": self.run.iterations,
                "seconds": self.run.seconds,
            }
        return found

    @property
    def named_penalty(self) -> str:
        """The penalty as it was asked for, or what was chosen from public numbers."""
        return self.options.penalty or (self.run.penalty.name if self.private else PENALTY)
