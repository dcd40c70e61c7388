"""What a solve that is not private returns: `SparseRun`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.special import expit

from cvxpriv.errors import DataError, ModelError
from cvxpriv.files import PathLike
from cvxpriv.history import History
from cvxpriv.learning import LOSSES, Loss, loss_named
from cvxpriv.runs import read_run, write_run
from cvxpriv.state import Array, Values

from .blocks import proximal_block
from .kkt import SparseResiduals, residuals
from .penalties import Penalty
from .penalty_records import penalty_of, penalty_record

if TYPE_CHECKING:
    from cvxpriv.crosschecks.check import CrossCheck

__all__ = ["Settings", "SparseFit", "SparseRun"]


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
    classes : (float, float) or None
        The two labels; None for a residual loss.
    names : tuple of str
        Of the d features.
    """

    theta: Array
    loss: Loss
    penalty: Penalty
    classes: tuple[float, float] | None
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

    def predict(self, x: ArrayLike | pd.DataFrame | sp.sparray | sp.spmatrix) -> Array:
        """Return the labels, as y spelled them, or the predicted numbers for a residual loss."""
        z = self.decision_function(x)
        return z if self.classes is None else np.where(z > 0.0, self.classes[1], self.classes[0])

    def predict_proba(self, x: ArrayLike | pd.DataFrame | sp.sparray | sp.spmatrix) -> Array:
        """Return the probabilities of the two classes, (n, 2).

        Raises
        ------
        ModelError
            The loss is not the logistic one: no other here is a likelihood of two classes.
        """
        if self.loss.name != "logistic":
            raise ModelError(f"loss={self.loss.name!r} gives no probabilities: fit loss='logistic'")
        z = self.decision_function(x)
        return np.column_stack([expit(-z), expit(z)])


@dataclass(frozen=True, eq=False)
class SparseRun(SparseFit):
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
    """

    gradient: Array
    objective: float
    step: float
    iterations: int
    settings: Settings
    seconds: float
    log: History = field(default_factory=History, repr=False)
    interrupted: bool = False

    @cached_property
    def kkt(self) -> SparseResiduals:
        """The residuals at theta; `largest` is the figure that the run was stopped by."""
        return residuals(self.penalty, self.theta, self.gradient, len(self.names))

    @property
    def converged(self) -> bool:
        """Whether the KKT residual is within the tolerance asked for."""
        return self.kkt.largest <= self.settings.tol

    @property
    def history(self) -> pd.DataFrame:
        """Step by step: iteration, block, objective, kkt, support, step, far, newton, seconds, engine, solver, status.

        `far` says which piece of a proximal problem was taken (`cvxpriv_models.istdp.blocks.proximal_block`), `newton`
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
            Passed to `cvxpriv.crosschecks.check.crosscheck`.
        """
        from cvxpriv.crosschecks.check import case_of_block, crosscheck

        view: Values = {"center": self.theta - self.step * self.gradient, "step": np.asarray(self.step)}
        return crosscheck([case_of_block(proximal_block(self.penalty, len(self.names)), view)], solvers, **options)

    def save(self, path: PathLike) -> Path:
        """Write the run to a JSON file, whole or not at all; no row of the data is in it.

        Raises
        ------
        ModelError
            The penalty or the loss is a user's own: they are code.
        """
        if LOSSES.get(self.loss.name) is not self.loss:
            raise ModelError(f"loss={self.loss!r} is code and cannot be saved: save run.coefficients instead")
        document = {
            "theta": self.theta.tolist(),
            "loss": self.loss.name,
            "penalty": penalty_record(self.penalty),
            "classes": self.classes,
            "names": self.names,
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
        document = read_run(path)
        classes = document["classes"]
        return cls(
            theta=np.array(document["theta"]),
            loss=loss_named(document["loss"]),
            penalty=penalty_of(document["penalty"]),
            classes=None if classes is None else (float(classes[0]), float(classes[1])),
            names=tuple(document["names"]),
            gradient=np.array(document["gradient"]),
            objective=document["objective"],
            step=document["step"],
            iterations=document["iterations"],
            settings=Settings(**document["settings"]),
            seconds=document["seconds"],
        )
