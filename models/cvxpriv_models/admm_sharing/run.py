"""What a solve of ADMM sharing returns: `SharingRun`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse

from cvxpriv.blocks.block import Block
from cvxpriv.errors import DataError, ModelError
from cvxpriv.learning.labels import class_probabilities, predicted
from cvxpriv.numerics.arguments import require_counts, require_seed
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.learning_run import LearningRun
from cvxpriv.runs.private_records import read_fit
from cvxpriv.runs.saved import write_run
from cvxpriv.schedules.history import History

from . import algorithm
from .algorithm import Constraints
from .blocks import centre
from .factor import Factor
from .kkt import SharingResiduals
from .problem import Problem, checked_part
from .schemes import scheme_named

if TYPE_CHECKING:
    from cvxpriv.certify.check import CrossCheck

__all__ = ["ROWS", "Fitted", "Settings", "SharingRun", "sampled"]

#: Samples of the z block that a cross-check takes unless told otherwise: a cone solver does these in about a second.
ROWS = 2000


@dataclass(frozen=True)
class Settings:
    """The options of `ADMMSharing.solve` that decide its result."""

    scheme: str
    engine: str
    rho: float
    accelerate: bool
    adapt_rho: bool
    max_iter: int
    tol: float


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted linear model over split columns: what it takes to predict.

    Attributes
    ----------
    coefficients : list of ndarray
        x_m, (d_m,), one a party.
    loss_name : str
    classes : ndarray, (2,), optional
        The labels as the user gave them, of -1 and of 1; None for a residual loss.
    """

    coefficients: list[Array]
    loss_name: str
    classes: np.ndarray | None

    def decision_function(self, parts: Sequence[ArrayLike | sparse.sparray]) -> Array:
        """Return sum_m T_m x_m, (n,), on the parties' columns T_m of other rows.

        Raises
        ------
        DataError
            Not as many parties, or not the columns, of the training data; unequal rows.
        """
        widths = [x.size for x in self.coefficients]
        if len(parts) != len(widths):
            raise DataError(f"parts has {len(parts)} parties, the model was fitted on {len(widths)}: pass one a party")
        matrices = [checked_part(f"parts[{m}]", part) for m, part in enumerate(parts)]
        shapes = [matrix.shape for matrix in matrices]
        if [columns for _, columns in shapes] != widths or len({rows for rows, _ in shapes}) > 1:
            raise DataError(f"parts have shapes {shapes}, expected {widths} columns and equal rows")
        shares = [matrix @ x for matrix, x in zip(matrices, self.coefficients, strict=True)]
        return np.asarray(np.sum(shares, axis=0))

    def predict_proba(self, parts: Sequence[ArrayLike | sparse.sparray]) -> Array:
        """Return the probability of each class, (n, 2), in the order of `classes`.

        Raises
        ------
        ModelError
            The loss is not the logistic one: the others model no probability.
        """
        return class_probabilities(self.decision_function(parts), self.loss_name)

    def predict(self, parts: Sequence[ArrayLike | sparse.sparray]) -> np.ndarray:
        """Return the predicted class of each row, (n,); for a residual loss the predicted number."""
        return predicted(self.decision_function(parts), self.classes)


@dataclass(frozen=True, eq=False, repr=False)
class SharingRun(LearningRun, Fitted):
    """A solved sharing problem.

    Attributes
    ----------
    state : mapping of str to ndarray
        The final state, without a leading axis: x/0.., v/0.., z, y, rho.
    settings : Settings
    converged : bool
        Whether `kkt.largest` is at most the tolerance.
    iterations : int
        Passes.
    objective : float
        Of (1), the loss summed.
    kkt : SharingResiduals
    gap : float
        objective - optimum is at most this, by duality; inf where no dual is known in closed form.
    seconds : float
    problem : Problem, optional
        None in a run read from a file: the parties' columns are not in it.
    log : History
    constraints : tuple
    interrupted : bool
        Whether the keyboard or a callback ended the solve.
    starts : DataFrame, optional
        One row a start: objective, kkt, iterations, converged, best. None in a run read from a file.
    """

    model: ClassVar[str] = "ADMMSharing"

    state: Values
    settings: Settings
    converged: bool
    iterations: int
    objective: float
    kkt: SharingResiduals
    gap: float
    seconds: float
    problem: Problem | None = None
    log: History = field(default_factory=History, repr=False)
    constraints: Constraints = ()
    interrupted: bool = False
    starts: pd.DataFrame | None = field(default=None, repr=False)

    @property
    def history(self) -> pd.DataFrame:
        """Pass by pass: iteration, block, objective, primal, stationarity, kkt, rho, seconds, engine, solver, status.

        For a loss that is not convex also the augmented Lagrangian (5) and the paper's V^t.
        """
        return self.log.frame(0)

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """The parties' columns, ready for their steps."""
        return tuple(Factor(part) for part in self._problem().parts)

    def blocks(self) -> dict[str, Block]:
        """Return the model's blocks by name, as the scheme of this run has them."""
        return algorithm.blocks(self._problem(), scheme_named(self.settings.scheme), self.factors, self.constraints)

    def certify(
        self,
        solvers: Sequence[str] | None = ("CLARABEL", "ECOS", "SCS"),
        rows: int | None = ROWS,
        seed: int = 0,
        **options: Any,
    ) -> CrossCheck:
        """Solve every block again at the final point by every solver, and judge the answers.

        Parameters
        ----------
        solvers : sequence of str, optional
            None is every installed solver that takes the block's cones.
        rows : int, optional
            Samples of the z block, drawn without replacement: its samples are separate problems, and a cone solver
            takes seconds for tens of thousands of them. None is all.
        seed : int
            Of that draw.
        **options
            Passed to `cvxpriv.certify.check.crosscheck`.

        Raises
        ------
        ModelError
            The run was read from a file.
        """
        from cvxpriv.certify.check import case_of_block, crosscheck

        require_counts(rows=rows)
        require_seed(seed)
        problem, blocks = self._problem(), self.blocks()
        view = self.state
        cases = [case_of_block(block, view) for name, block in blocks.items() if name != "z"]
        if problem.loss.expression is not None:
            problem, view = sampled(problem, view, rows, seed)
            cases.append(case_of_block(centre(problem, scheme_named(self.settings.scheme)), view))
        return crosscheck(cases, solvers, **options)

    def save(self, path: PathLike) -> Path:
        """Write the run to a JSON file, whole or not at all.

        The file holds coefficients and figures. The parties' columns, and what each shared, are not in it.
        """
        document = {
            "coefficients": [x.tolist() for x in self.coefficients],
            "loss": self.loss_name,
            "classes": None if self.classes is None else self.classes.tolist(),
            "settings": asdict(self.settings),
            "converged": self.converged,
            "iterations": self.iterations,
            "objective": self.objective,
            "kkt": asdict(self.kkt),
            "gap": self.gap if np.isfinite(self.gap) else None,
            "seconds": self.seconds,
            "constraints": [name for _, name, _ in self.constraints],
        }
        return write_run(path, "ADMMSharing", document)

    @classmethod
    def load(cls, path: PathLike) -> SharingRun:
        """Read what `save` wrote; it predicts, and its history and blocks are not in it.

        Raises
        ------
        DataError
            No such file, not a saved run of sharing, or of another version.
        """
        document = read_fit(path, "ADMMSharing", private=False)
        found = document["kkt"]
        classes = document["classes"]
        return cls(
            coefficients=[np.array(x) for x in document["coefficients"]],
            loss_name=document["loss"],
            classes=None if classes is None else np.array(classes),
            state={},
            settings=Settings(**document["settings"]),
            converged=document["converged"],
            iterations=document["iterations"],
            objective=document["objective"],
            kkt=SharingResiduals(found["primal"], tuple(found["stationarity"]), found["fit"], tuple(found["scales"])),
            gap=float("inf") if document["gap"] is None else document["gap"],
            seconds=document["seconds"],
        )

    def _problem(self) -> Problem:
        if self.problem is None:
            raise ModelError("this run was read from a file, and the parties' columns are not in it: solve again")
        return self.problem


def sampled(problem: Problem, view: Values, rows: int | None, seed: int) -> tuple[Problem, Values]:
    """Return the problem and the state on some of the samples, drawn without replacement; None is all."""
    if rows is None or rows >= problem.samples:
        return problem, view
    chosen = np.sort(np.random.default_rng(seed).choice(problem.samples, rows, replace=False))
    parts = tuple(part[chosen] for part in problem.parts)
    smaller = replace(problem, parts=parts, y=problem.y[chosen], weights=problem.weights[chosen])
    per_sample = {"z", "y", *(f"v/{m}" for m in range(problem.parties))}
    return smaller, {name: value[chosen] if name in per_sample else value for name, value in view.items()}
