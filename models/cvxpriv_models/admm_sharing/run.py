"""What a solve of ADMM sharing returns: `SharingRun`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse

from cvxpriv.blocks.block import Block
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.certify.check import CrossCheck, crosscheck
from cvxpriv.errors import DataError, ModelError
from cvxpriv.learning.labels import class_probabilities, predicted
from cvxpriv.numerics.arguments import require_counts, require_seed
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.runs.codec import UNSAVED
from cvxpriv.runs.learning_run import LearningRun
from cvxpriv.schedules.history import History
from cvxpriv.solvers.registry import DEFAULT_CHAIN

from . import algorithm
from .algorithm import Constraints
from .blocks import centre
from .factor import Factor
from .kkt import SharingResiduals
from .problem import Problem, checked_part
from .schemes import scheme_named

__all__ = ["ROWS", "Fitted", "Settings", "SharingRun", "sampled"]

#: Samples of the z block that a cross-check takes unless told otherwise: a cone solver does these in about a second.
ROWS = 2000


@dataclass(frozen=True)
class Settings:
    """The options of `ADMMSharing.solve` that decide its result."""

    method: str
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
        One row a start: objective, kkt, iterations, converged, best.
    """

    model: ClassVar[str] = "ADMMSharing"
    open: ClassVar[str] = "What the parties share in each pass, and every coefficient,"

    settings: Settings
    converged: bool
    iterations: int
    objective: float
    kkt: SharingResiduals
    gap: float
    seconds: float
    interrupted: bool = False
    overdue: bool = False
    starts: pd.DataFrame | None = None
    state: Values = field(default_factory=dict, repr=False, metadata=UNSAVED)
    problem: Problem | None = field(default=None, repr=False, metadata=UNSAVED)
    log: History = field(default_factory=History, repr=False, metadata=UNSAVED)
    constraints: Constraints = field(default=(), repr=False, metadata=UNSAVED)

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
        return algorithm.blocks(self._problem(), scheme_named(self.settings.method), self.factors, self.constraints)

    def certify(
        self,
        solvers: Sequence[str] | None = DEFAULT_CHAIN,
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
        return crosscheck(self.cases(rows, seed), solvers, **options)

    def cases(self, rows: int | None = ROWS, seed: int = 0) -> list[Case]:
        """See `certify`."""
        require_counts(rows=rows)
        require_seed(seed)
        problem, blocks = self._problem(), self.blocks()
        view = self.state
        cases = [case_of_block(block, view) for name, block in blocks.items() if name != "z"]
        if problem.loss.expression is not None:
            problem, view = sampled(problem, view, rows, seed)
            cases.append(case_of_block(centre(problem, scheme_named(self.settings.method)), view))
        return cases

    def document(self) -> dict[str, Any]:
        """See `Run`: coefficients and figures; the parties' columns, and what each shared, are not in it."""
        return {**super().document(), "constraints": [name for _, name, _ in self.constraints]}

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
