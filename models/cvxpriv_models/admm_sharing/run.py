"""The results of ADMM sharing: `SharingRun`, and `SharingApartRun`, which the label holder of parties apart has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cvxpriv.blocks.block import Block
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.distributed.carriers import MessageLog
from cvxpriv.errors import DataError, ModelError
from cvxpriv.learning.labels import class_probabilities, predicted
from cvxpriv.numerics.arguments import require_counts, require_seed
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.sizes import counted
from cvxpriv.reports.facts import Fact
from cvxpriv.reports.formatting import residual
from cvxpriv.runs.learning_run import LearningRun
from cvxpriv.runs.saved import UNSAVED

from . import algorithm
from .algorithm import Constraints
from .blocks import centre, total_share
from .factor import Factor
from .kkt import SharingResiduals
from .problem import Problem, checked_part
from .schemes import Scheme, scheme_named

#: Default number of samples of the z block that a cross-check takes: a cone solver does these in about a second.
ROWS = 2000


@dataclass(frozen=True)
class Settings:
    """The options of `ADMMSharing.solve` that decide its result."""

    method: str
    engine: str
    rho: float
    accelerate: bool
    max_iter: int
    tol: float
    follow: bool = False
    joint: bool = False
    gap: float = 0.0


def scheme_of(method: str, engine: str, constraints: Constraints) -> Scheme:
    """Return the scheme of a run: with direct steps, unless a solver does them or must look at users' constraints."""
    return scheme_named(method, direct=engine != "dcp" and not constraints)


def has_converged(found: SharingResiduals, gap: float | None, objective: float, settings: Settings) -> bool:
    """Return whether the residual or the certified gap is as small as it was asked for."""
    return found.largest <= settings.tol or (gap is not None and bool(gap <= settings.gap * objective < np.inf))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted linear model over split columns, with all that predicting needs.

    Attributes
    ----------
    coefficients : list of ndarray
        The coefficients x_m, (d_m,), one array per party.
    loss_name : str
    classes : ndarray, (2,), optional
        The user's labels for -1 and 1; None for a residual loss.
    """

    coefficients: list[Array]
    loss_name: str
    classes: np.ndarray | None

    def decision_function(self, parts: Sequence[ArrayLike | sparse.sparray]) -> Array:
        """Return sum_m T_m x_m, (n,), on the parties' columns T_m of other rows.

        Raises
        ------
        DataError
            The number of parties or their columns differ from the training data, or the rows are unequal.
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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SharedFit(LearningRun):
    """A fit without privacy, wherever its parties are.

    The objective is that of (1), with the loss summed. In `history`, `rho` is the mean over the samples; `gap`, where
    the certified gap may stop the run, is a part of the objective, and empty (NaN) where it was not near. For a loss
    that is not convex it also has the augmented Lagrangian (5) and the paper's V^t.

    Attributes
    ----------
    converged : bool
        Whether `kkt.largest` is at most `settings.tol`, or `gap` at most `settings.gap` of the objective.
    kkt : SharingResiduals
    gap : float, optional
        Upper bound of objective - optimum, by duality. None where no dual is known in closed form: `no_gap`.
    state : mapping of str to ndarray
        The final state, without a leading axis: x/0.., v/0.., z, y, rho.
    problem : Problem, optional
        The problem; None in a run read from a file, which does not hold the parties' columns.
    """

    model: ClassVar[str] = "ADMMSharing"
    bounded: ClassVar[str] = "a convex loss, R = square with lam > 0, no constraint, and a point that is not far off"

    settings: Settings
    converged: bool
    kkt: SharingResiduals
    gap: float | None
    state: Values = field(default_factory=dict, metadata=UNSAVED)
    problem: Problem | None = field(default=None, metadata=UNSAVED)

    @property
    def reached(self) -> str:
        if self.converged and self.kkt.largest > self.settings.tol:
            return f"converged by the certified gap, at most {residual(self.settings.gap)} of the objective"
        return super().reached

    def _problem(self) -> Problem:
        if self.problem is None:
            raise ModelError("this run was read from a file, and the parties' columns are not in it: solve again")
        return self.problem


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SharingRun(SharedFit, Fitted):
    """A solved sharing problem: see `SharedFit` and `Fitted`.

    Attributes
    ----------
    joint : bool
        Whether Newton's method on all parties' columns together ended it, after slow passes or before them:
        `accelerate`.
    """

    open: ClassVar[str] = "What the parties share in each pass, and every coefficient,"

    joint: bool = False
    constraints: Constraints = field(default=(), metadata=UNSAVED)

    @property
    def reached(self) -> str:
        return f"{super().reached}{', by Newton steps on all columns together' if self.joint else ''}"

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """The parties' columns, ready for their steps."""
        return tuple(Factor(part) for part in self._problem().parts)

    def blocks(self) -> dict[str, Block]:
        """Return the model's blocks by name, in the scheme of this run."""
        scheme = scheme_of(self.settings.method, self.settings.engine, self.constraints)
        return algorithm.blocks(self._problem(), scheme, self.factors, self.constraints)

    def cases(self, rows: int | None = ROWS, seed: int = 0) -> list[Case]:
        """Return every block at the final point.

        Parameters
        ----------
        rows : int, optional
            Number of samples of the z block, drawn without replacement: its samples are separate problems, and a cone
            solver takes seconds for tens of thousands of them. None is all.
        seed : int
            Seed of that draw.

        Raises
        ------
        ModelError
            The run was read from a file.
        """
        last = centre_cases(self._problem(), self.state, self.settings.method, rows, seed)
        return [*(case_of_block(block, self.state) for name, block in self.blocks().items() if name != "z"), *last]

    def document(self) -> dict[str, Any]:
        """See `Run`. The file holds coefficients and figures, but neither the parties' columns nor their shares."""
        return {**super().document(), "constraints": [name for _, name, _ in self.constraints]}


def centre_cases(problem: Problem, view: Values, method: str, rows: int | None, seed: int) -> list[Case]:
    """Return the z block on some of the samples, drawn without replacement, if its loss has a DCP form; None is all."""
    require_counts(rows=rows)
    require_seed(seed)
    if problem.loss.expression is None:
        return []
    smaller, seen = (problem, view) if rows is None else _sampled(problem, view, rows, seed)
    return [case_of_block(centre(smaller, scheme_named(method)), seen)]


def _sampled(problem: Problem, view: Values, rows: int, seed: int) -> tuple[Problem, Values]:
    if rows >= problem.samples:
        return problem, view
    chosen = np.sort(np.random.default_rng(seed).choice(problem.samples, rows, replace=False))
    parts = tuple(part[chosen] for part in problem.parts)
    smaller = replace(problem, parts=parts, y=problem.y[chosen], weights=problem.weights[chosen])
    per_sample = {"z", "y", *(f"v/{m}" for m in range(problem.parties)), *(["rho"] if view["rho"].ndim else [])}
    return smaller, {name: value[chosen] if name in per_sample else value for name, value in view.items()}


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
