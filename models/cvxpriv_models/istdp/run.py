"""What a solve that is not private returns: `SparseRun`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike

from cvxpriv.errors import DataError, ModelError
from cvxpriv.learning.labels import class_probabilities, predicted
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.penalties import LOSSES, ElasticNet, Loss, Penalty, loss_named
from cvxpriv.penalties.named import penalty_of, penalty_record
from cvxpriv.penalties.proximal import proximal_block
from cvxpriv.reports.facts import Fact
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.learning_run import LearningRun
from cvxpriv.runs.private_records import read_fit
from cvxpriv.runs.saved import write_run
from cvxpriv.schedules.history import History

from .kkt import SparseResiduals, residuals

if TYPE_CHECKING:
    from cvxpriv.certify.check import CrossCheck

__all__ = ["Settings", "SparseFit", "SparseRun", "fit_of"]


@dataclass(frozen=True)
class Settings:
    """The options of `ISTDP.solve` that decide its result."""

    algorithm: str
    engine: str
    step: str
    accelerate: str
    max_iter: int
    tol: float


@dataclass(frozen=True, eq=False)
class SparseFit:
    """Fitted coefficients and what they predict; it holds no row of the data.

    Attributes
    ----------
    theta : ndarray, (d,) or (d + 1,)
        The coefficients, and an intercept last.
    loss : Loss
    penalty : Penalty
    classes : ndarray, (2,), optional
        The two labels; None for a residual loss.
    names : tuple of str
        Of the d features.
    """

    theta: Array
    loss: Loss
    penalty: Penalty
    classes: npt.NDArray[np.generic] | None
    names: tuple[str, ...]

    @property
    def coefficients(self) -> Array:
        """Without the intercept, (d,)."""
        return self.theta[: len(self.names)]

    @property
    def intercept(self) -> float:
        """0 in a model without one."""
        return float(self.theta[-1]) if self.theta.size > len(self.names) else 0.0

    @property
    def support(self) -> npt.NDArray[np.intp]:
        """Indices of the coefficients that are not 0."""
        return np.flatnonzero(self.coefficients)

    def decision_function(self, x: ArrayLike | pd.DataFrame | sp.sparray | sp.spmatrix) -> Array:
        """Return X theta plus the intercept, one number a row.

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

    def record(self) -> dict[str, Any]:
        """Return the fit as lists, strings and numbers, for a file; `fit_of` reads it.

        Raises
        ------
        ModelError
            The penalty or the loss is a user's own: they are code.
        """
        if LOSSES.get(self.loss.name) is not self.loss:
            raise ModelError(f"loss={self.loss!r} is code and cannot be saved: save run.coefficients instead")
        return {
            "theta": self.theta.tolist(),
            "loss": self.loss.name,
            "penalty": penalty_record(self.penalty),
            "classes": None if self.classes is None else self.classes.tolist(),
            "names": self.names,
        }


def fit_of(document: Mapping[str, Any]) -> SparseFit:
    """Return the fit whose `record` is in a document."""
    classes = document["classes"]
    return SparseFit(
        theta=np.array(document["theta"]),
        loss=loss_named(document["loss"]),
        penalty=penalty_of(document["penalty"]),
        classes=None if classes is None else np.array(classes),
        names=tuple(document["names"]),
    )


@dataclass(frozen=True, eq=False, repr=False)
class SparseRun(LearningRun, SparseFit):
    """A solve of ISTDP (2) that is not private.

    Attributes
    ----------
    gradient : ndarray, (d,) or (d + 1,)
        Of the average loss at theta.
    objective : float
        F(theta).
    step : float
        The last step's length: with it `certify` poses the proximal problem.
    iterations : int
    settings : Settings
    seconds : float
    log : History
    interrupted : bool
        Whether the keyboard or a callback ended the solve.
    starts : DataFrame, optional
        One row a start: objective, kkt, iterations, converged, best. None in a run read from a file.
    """

    model: ClassVar[str] = "ISTDP"

    gradient: Array
    objective: float
    step: float
    iterations: int
    settings: Settings
    seconds: float
    log: History = field(default_factory=History, repr=False)
    interrupted: bool = False
    starts: pd.DataFrame | None = field(default=None, repr=False)

    @cached_property
    def kkt(self) -> SparseResiduals:
        """The residuals at theta; `largest` is the figure that the run was stopped by."""
        return residuals(self.penalty, self.theta, self.gradient, len(self.names))

    @cached_property
    def gap(self) -> float:
        """F(theta) - inf F is at most this; inf where F is not strongly convex.

        With modulus lam (1 - ratio) of an elastic net or a square, F is at most |subgradient|^2 / (2 lam (1 - ratio))
        above its least, for every subgradient at theta. An intercept has no modulus.
        """
        penalty = self.penalty
        modulus = penalty.lam * (1.0 - penalty.ratio) if isinstance(penalty, ElasticNet) else 0.0
        if not (self.loss.convex and modulus > 0.0 and self.theta.size == len(self.names)):
            return float("inf")
        return float(self.kkt.stationarity @ self.kkt.stationarity) / (2.0 * modulus)

    def own_facts(self) -> tuple[Fact, ...]:
        """See `LearningRun`."""
        kept = f"of {len(self.names)} coefficients"
        return (Fact("support", self.support.size, "", "Coefficients that are not 0.", detail=kept, main=True),)

    @property
    def converged(self) -> bool:
        """Whether the KKT residual is within the tolerance asked for."""
        return self.kkt.largest <= self.settings.tol

    @property
    def history(self) -> pd.DataFrame:
        """Step by step: iteration, block, objective, kkt, support, step, far, newton, seconds, engine, solver, status.

        `far` says which piece of a proximal problem was taken (`cvxpriv.penalties.proximal`), `newton`
        how many Newton steps on the support followed a pass.
        """
        return self.log.frame(0)

    def certify(self, solvers: Sequence[str] | None = ("CLARABEL", "ECOS", "SCS"), **options: Any) -> CrossCheck:
        """Solve the proximal problem at theta again by every solver, and judge the answers.

        A stationary theta is its own proximal step where that problem is convex.

        Parameters
        ----------
        solvers : sequence of str, optional
            None is every installed solver that takes the block's cones.
        **options
            Passed to `cvxpriv.certify.check.crosscheck`.
        """
        from cvxpriv.certify.check import case_of_block, crosscheck

        view: Values = {"center": self.theta - self.step * self.gradient, "step": np.asarray(self.step)}
        return crosscheck([case_of_block(proximal_block(self.penalty, len(self.names)), view)], solvers, **options)

    def save(self, path: PathLike) -> Path:
        """Write the run to a JSON file, whole or not at all; no row of the data is in it.

        Raises
        ------
        ModelError
            The penalty or the loss is a user's own: they are code.
        """
        document = {
            **self.record(),
            "gradient": self.gradient.tolist(),
            "objective": self.objective,
            "step": self.step,
            "iterations": self.iterations,
            "settings": asdict(self.settings),
            "seconds": self.seconds,
        }
        return write_run(path, "ISTDP", document)

    @classmethod
    def load(cls, path: PathLike) -> SparseRun:
        """Read what `save` wrote; the history is not in it.

        Raises
        ------
        DataError
            No such file, not a saved run, or of another version.
        """
        document = read_fit(path, "ISTDP", private=False)
        return cls(
            **vars(fit_of(document)),
            gradient=np.array(document["gradient"]),
            objective=document["objective"],
            step=document["step"],
            iterations=document["iterations"],
            settings=Settings(**document["settings"]),
            seconds=document["seconds"],
        )
