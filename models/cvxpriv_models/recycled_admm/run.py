"""The results of recycled ADMM: `ConsensusRun`, and `PrivateConsensusRun`, which holds only published values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cvxpriv.blocks.block import Block
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import DataError, ModelError
from cvxpriv.learning.labels import class_probabilities, predicted
from cvxpriv.numerics.arguments import require_counts, require_seed
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.facts import Fact
from cvxpriv.runs.learning_run import LearningRun, PrivateLearningRun
from cvxpriv.runs.saved import UNSAVED
from cvxpriv.schedules.history import Context

from . import algorithm
from .kkt import ConsensusResiduals
from .private_settings import PrivateSettings
from .problem import Problem, checked_rows


@dataclass(frozen=True)
class Settings:
    """The options of `RecycledADMM.solve` that decide its result.

    `eta`: The penalties of the last pass that was planned, one a node.
    """

    method: str
    variant: str
    engine: str
    gamma: float
    max_iter: int
    tol: float
    eta: tuple[float, ...]
    accelerate: bool
    joint: bool = False


@dataclass(frozen=True)
class Optimality:
    """The distance of a consensus from the centralised optimum f_c, found by exact Newton.

    `distance`: The largest ||f_i - f_c||.
    `relative`: The same over ||f_c||.
    `excess`: The objective (1) at the mean of the f_i, less its optimum.
    """

    distance: float
    relative: float
    excess: float


@dataclass(frozen=True, eq=False)
class Fitted:
    """Fitted nodes, with all that predicting needs.

    `parameters`, (N, d): f_i(2k-1) of the last pass, in the order of `labels`.
    `classes`, (2,): The labels as the user gave them, of -1 and of 1; None for a residual loss.
    `labels`: Labels of the nodes.
    """

    parameters: Array
    loss_name: str
    classes: np.ndarray | None
    labels: tuple[Hashable, ...]

    @property
    def mean(self) -> Array:
        """The average over nodes, (d,): the classifier that RADMM section VIII measures."""
        return np.asarray(self.parameters.mean(axis=0))

    @property
    def consensus(self) -> float:
        """The largest distance of a node's parameters to their mean."""
        return float(np.linalg.norm(self.parameters - self.mean, axis=1).max())

    def decision_function(self, X: ArrayLike | sparse.sparray, node: Hashable | None = None) -> Array:
        """Return x'f for every row, (n,): of the mean parameters, or of one node's.

        Raises
        ------
        DataError
            X has not the columns of the training data.
        ModelError
            There is no such node.
        """
        rows = checked_rows("X", X)
        if rows.shape[1] != self.parameters.shape[1]:
            raise DataError(f"X has {rows.shape[1]} columns, the model was fitted on {self.parameters.shape[1]}")
        if node is None:
            return np.asarray(rows @ self.mean)
        if node not in self.labels:
            raise ModelError(f"node={node!r} is none of the graph: Known: {', '.join(map(repr, self.labels))}")
        return np.asarray(rows @ self.parameters[self.labels.index(node)])

    def predict_proba(self, X: ArrayLike | sparse.sparray, node: Hashable | None = None) -> Array:
        """Return the probability of each class, (n, 2), in the order of `classes`.

        Raises
        ------
        ModelError
            The loss is not the logistic one: the others model no probability.
        """
        return class_probabilities(self.decision_function(X, node), self.loss_name)

    def predict(self, X: ArrayLike | sparse.sparray, node: Hashable | None = None) -> np.ndarray:
        """Return the predicted class of each row, (n,); for a residual loss the predicted number."""
        return predicted(self.decision_function(X, node), self.classes)


def consensus_fact(fit: Fitted) -> Fact:
    """Return how far the nodes are from one another."""
    sentence = "Largest distance of a node's coefficients from their mean."
    return Fact(
        "consensus", fit.consensus, "", sentence, "", "largest distance of a node from the mean", digits=2, main=True
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ConsensusRun(LearningRun, Fitted):
    """A solved consensus. The objective is sum_i O_i(f_i), and `history` has the figures of `algorithm.figures_of`.

    `state`: The final state, without a leading axis (`blocks`); `f` is the paper's f(2K).
    `converged`: Whether `kkt.largest` is at most the tolerance.
    `gap`: The objective (1) at the mean of the f_i is above its optimum by at most this, by strong convexity. None
    where R is no square or reg = 0: `no_gap`.
    `joint`: Whether Newton's method on all rows together ended it, after slow passes: `accelerate`.
    `problem`: None in a run read from a file, or of nodes that are apart: the data are not in it.
    """

    model: ClassVar[str] = "RecycledADMM"
    open: ClassVar[str] = "What the nodes send each other in each pass, and every coefficient,"
    bounded: ClassVar[str] = "R with a square part and reg > 0"
    remedies: ClassVar[str] = "raise --max-iter, try another --eta, or allow a larger --tol"

    state: Values
    settings: Settings
    converged: bool
    kkt: ConsensusResiduals
    gap: float | None
    joint: bool = False
    problem: Problem | None = field(default=None, metadata=UNSAVED)

    @property
    def reached(self) -> str:
        return f"{super().reached}{', by Newton steps on all rows together' if self.joint else ''}"

    def own_facts(self) -> tuple[Fact, ...]:
        return (consensus_fact(self),)

    @cached_property
    def optimality(self) -> Optimality:
        """The distance to the centralised optimum.

        Raises
        ------
        ModelError
            The run was read from a file.
        NotConverged
            There is no unique optimum.
        """
        problem = self._problem()
        best = problem.optimum
        distance = float(np.linalg.norm(self.parameters - best, axis=1).max())
        excess = problem.objective(self.mean) - problem.objective(best)
        return Optimality(distance, distance / max(float(np.linalg.norm(best)), np.finfo(float).tiny), excess)

    def blocks(self) -> dict[str, Block]:
        """Return the odd step of each node, by name: `f/0`, `f/1` ..."""
        return algorithm.blocks(self._problem(), self.settings.variant)

    def cases(self, nodes: int | None = 3, seed: int = 0) -> list[Case]:
        """Return the odd step of some nodes from the final point.

        Parameters
        ----------
        nodes : int, optional
            Number of nodes, drawn without replacement: a cone solver takes a second for a node of some thousand rows.
            None is all.
        seed : int
            Seed of that draw.

        Raises
        ------
        ModelError
            The run was read from a file.
        """
        require_counts(nodes=nodes)
        require_seed(seed)
        several = list(self.blocks().values())
        if nodes is not None and nodes < len(several):
            chosen = np.sort(np.random.default_rng(seed).choice(len(several), nodes, replace=False))
            several = [several[index] for index in chosen]
        return [case_of_block(block, self.state) for block in several]

    def _problem(self) -> Problem:
        if self.problem is None:
            raise ModelError(
                "the nodes' rows are not in this run, which was read from a file or has its nodes apart: solve again"
            )
        return self.problem


def finished_run(
    problem: Problem,
    state: Values,
    settings: Settings,
    context: Context,
    found: ConsensusResiduals,
    objective: float,
    gap: float | None,
    seconds: float,
) -> ConsensusRun:
    """Return the run that ended at a state of one start, with its residuals, its objective and a gap."""
    return ConsensusRun(
        *(state["odd"], problem.loss.name, problem.classes, problem.network.labels),
        state=state,
        settings=settings,
        converged=found.largest <= settings.tol,
        iterations=int(context.reports[algorithm.LOOP].iterations[0]),
        objective=objective,
        kkt=found,
        gap=gap,
        joint=algorithm.JOINT in state,
        seconds=seconds,
        log=context.history,
        interrupted=context.interrupted,
    )


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
