"""The results of ISTDP: `SparseRun`, and `PrivateSparseRun`, which holds only released numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from numpy.typing import ArrayLike

from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import DataError, ModelError
from cvxpriv.learning.labels import class_probabilities, predicted
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.packages import pd
from cvxpriv.penalties import ElasticNet, Loss, Penalty
from cvxpriv.penalties.proximal import proximal_block
from cvxpriv.privacy import Claim, Release, account_ledger
from cvxpriv.reports.facts import Fact
from cvxpriv.runs.learning_run import LearningRun, PrivateLearningRun

from .clipping import neighbours
from .kkt import SparseResiduals, residuals
from .problem import Problem


@dataclass(frozen=True)
class Settings:
    """The options of `ISTDP.solve` that decide its result."""

    method: str
    engine: str
    step: str
    accelerate: str
    max_iter: int
    tol: float


@dataclass(frozen=True, eq=False)
class SparseFit:
    """Fitted coefficients with their predictions; it holds no row of the data.

    Attributes
    ----------
    theta : ndarray, (d,) or (d + 1,)
        The coefficients, and an intercept last.
    loss : Loss
    penalty : Penalty
    classes : ndarray, (2,), optional
        The two labels; None for a residual loss.
    names : tuple of str
        Names of the d features.
    """

    theta: Array
    loss: Loss
    penalty: Penalty
    classes: npt.NDArray[np.generic] | None
    names: tuple[str, ...]

    @property
    def coefficients(self) -> Array:
        """Coefficients without the intercept, (d,)."""
        return self.theta[: len(self.names)]

    @property
    def intercept(self) -> float:
        """The intercept; 0 in a model without one."""
        return float(self.theta[-1]) if self.theta.size > len(self.names) else 0.0

    @property
    def support(self) -> npt.NDArray[np.intp]:
        """Indices of the coefficients that are not 0."""
        return np.flatnonzero(self.coefficients)

    def decision_function(self, x: ArrayLike | pd.DataFrame | sp.sparray | sp.spmatrix) -> Array:
        """Return X theta plus the intercept, one number per row.

        Raises
        ------
        DataError
            X has another number of columns.
        """
        rows = sp.csr_array(x) if sp.issparse(x) else np.asarray(x, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != self.coefficients.size:
            raise DataError(
                f"X has shape {rows.shape}, expected (n, {self.coefficients.size}): the features of the fit"
            )
        return np.asarray(rows @ self.coefficients + self.intercept)

    def predict(self, x: ArrayLike | pd.DataFrame | sp.sparray | sp.spmatrix) -> npt.NDArray[np.generic]:
        """Return the labels, as y spelled them, or the predicted numbers for a residual loss."""
        return predicted(self.decision_function(x), self.classes)

    def predict_proba(self, x: ArrayLike | pd.DataFrame | sp.sparray | sp.spmatrix) -> Array:
        """Return the probabilities of the two classes, (n, 2).

        Raises
        ------
        ModelError
            The loss is not the logistic one: no other here is a likelihood of two classes.
        """
        return class_probabilities(self.decision_function(x), self.loss.name)


def support_fact(fit: SparseFit) -> Fact:
    """Return the number of coefficients that are not 0, as a fact."""
    kept, sentence = f"of {len(fit.names)}; penalty {fit.penalty.name}", "Coefficients that are not 0."
    return Fact("support", fit.support.size, "", sentence, "Coefficients that are not 0", kept, main=True)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SparseRun(LearningRun, SparseFit):
    """A solve of ISTDP (2) that is not private. The objective is F(theta).

    The column `far` of `history` names the piece of a proximal problem that was taken (`cvxpriv.penalties.proximal`),
    and `newton` the number of Newton steps on the support that ended a pass. `gradient`, (d,): Gradient of the
    average loss at theta. `step`: Length of the last step: with it `certify` poses the proximal problem.
    """

    model: ClassVar[str] = "ISTDP"
    open: ClassVar[str] = "Coefficients, and which of them are 0,"
    bounded: ClassVar[str] = "a convex loss with an elastic net or a square, lam > 0, and no intercept"

    gradient: Array
    step: float
    settings: Settings

    @cached_property
    def kkt(self) -> SparseResiduals:
        """The residuals at theta; the run stopped by `largest`."""
        return residuals(self.penalty, self.theta, self.gradient, len(self.names))

    @cached_property
    def gap(self) -> float | None:
        """Upper bound of F(theta) - inf F; None where F is not strongly convex: `no_gap`.

        With modulus lam (1 - ratio) of an elastic net or a square, F is at most |subgradient|^2 / (2 lam (1 - ratio))
        above its least, for every subgradient at theta. An intercept has no modulus.
        """
        penalty = self.penalty
        modulus = penalty.lam * (1.0 - penalty.ratio) if isinstance(penalty, ElasticNet) else 0.0
        if not (self.loss.convex and modulus > 0.0 and self.theta.size == len(self.names)):
            return None
        return float(self.kkt.stationarity @ self.kkt.stationarity) / (2.0 * modulus)

    def own_facts(self) -> tuple[Fact, ...]:
        return (support_fact(self),)

    @property
    def converged(self) -> bool:
        """Whether the KKT residual is within the requested tolerance."""
        return self.kkt.largest <= self.settings.tol

    def cases(self) -> list[Case]:
        """See `Run`. The case is the proximal problem at theta, whose own step it is where that problem is convex."""
        view: Values = {"center": self.theta - self.step * self.gradient, "step": np.asarray(self.step)}
        return [case_of_block(proximal_block(self.penalty, len(self.names)), view)]


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
