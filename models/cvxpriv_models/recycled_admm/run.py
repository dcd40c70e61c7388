"""What a solve of recycled ADMM returns: `ConsensusRun`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
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
from cvxpriv.reports.facts import Fact
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.learning_run import LearningRun
from cvxpriv.runs.private_records import finite_or_none, none_as_infinite, read_fit
from cvxpriv.runs.saved import write_run
from cvxpriv.schedules.history import History

from . import algorithm
from .kkt import ConsensusResiduals
from .problem import Problem, checked_rows

if TYPE_CHECKING:
    from cvxpriv.certify.check import CrossCheck

__all__ = ["ConsensusRun", "Fitted", "Optimality", "Settings"]


@dataclass(frozen=True)
class Settings:
    """The options of `RecycledADMM.solve` that decide its result.

    Attributes
    ----------
    algorithm, variant, engine : str
    gamma : float
    rounds : int
    tol : float
    eta : tuple of float
        The penalties of the last pass that was planned, one a node.
    accelerate : bool
    """

    algorithm: str
    variant: str
    engine: str
    gamma: float
    rounds: int
    tol: float
    eta: tuple[float, ...]
    accelerate: bool


@dataclass(frozen=True)
class Optimality:
    """How far a consensus is from the centralised optimum f_c, found by exact Newton.

    Attributes
    ----------
    distance : float
        The largest ||f_i - f_c||.
    relative : float
        The same over ||f_c||.
    excess : float
        The objective (1) at the mean of the f_i, less its optimum.
    """

    distance: float
    relative: float
    excess: float


@dataclass(frozen=True, eq=False)
class Fitted:
    """Fitted nodes: what it takes to predict.

    Attributes
    ----------
    parameters : ndarray, (N, d)
        f_i(2k-1) of the last round, in the order of `labels`.
    loss_name : str
    classes : ndarray, (2,), optional
        The labels as the user gave them, of -1 and of 1; None for a residual loss.
    labels : tuple
        Of the nodes.
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

    def fitted_document(self) -> dict[str, Any]:
        """Return what predicts, as plain data.

        Raises
        ------
        ModelError
            A node's label is neither a text nor a whole number.
        """
        if strange := [label for label in self.labels if not isinstance(label, (str, int))]:
            raise ModelError(
                f"node {strange[0]!r} is no text or whole number and cannot be saved: relabel the graph, for example "
                "with networkx.convert_node_labels_to_integers"
            )
        return {
            "parameters": self.parameters.tolist(),
            "loss": self.loss_name,
            "classes": None if self.classes is None else self.classes.tolist(),
            "labels": list(self.labels),
        }

    @staticmethod
    def fitted_of(document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes that `fitted_document` described, by name."""
        classes = document["classes"]
        return {
            "parameters": np.array(document["parameters"]),
            "loss_name": document["loss"],
            "classes": None if classes is None else np.array(classes),
            "labels": tuple(document["labels"]),
        }


@dataclass(frozen=True, eq=False, repr=False)
class ConsensusRun(LearningRun, Fitted):
    """A solved consensus.

    Attributes
    ----------
    state : mapping of str to ndarray
        The final state, without a leading axis (`blocks`); `f` is the paper's f(2K).
    settings : Settings
    converged : bool
        Whether `kkt.largest` is at most the tolerance.
    iterations : int
        Passes.
    objective : float
        sum_i O_i(f_i).
    kkt : ConsensusResiduals
    gap : float
        The objective (1) at the mean of the f_i is above its optimum by at most this, by strong convexity; inf where
        R is no square or reg = 0.
    seconds : float
    problem : Problem, optional
        None in a run read from a file: the data are not in it.
    log : History
    interrupted : bool
        Whether the keyboard or a callback ended the solve.
    starts : DataFrame, optional
        One row a start: objective, kkt, iterations, converged, best. None in a run read from a file.
    """

    model: ClassVar[str] = "RecycledADMM"

    state: Values
    settings: Settings
    converged: bool
    iterations: int
    objective: float
    kkt: ConsensusResiduals
    gap: float
    seconds: float
    problem: Problem | None = None
    log: History = field(default_factory=History, repr=False)
    interrupted: bool = False
    starts: pd.DataFrame | None = field(default=None, repr=False)

    @property
    def history(self) -> pd.DataFrame:
        """Pass by pass: iteration, block, the figures of `algorithm.figures_of`, seconds, engine, solver, status."""
        return self.log.frame(0)

    def own_facts(self) -> tuple[Fact, ...]:
        """See `LearningRun`."""
        sentence = "Largest distance of a node's coefficients from their mean."
        return (Fact("consensus", self.consensus, "", sentence, digits=2, main=True),)

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

    def certify(
        self,
        solvers: Sequence[str] | None = ("CLARABEL", "ECOS", "SCS"),
        nodes: int | None = 3,
        seed: int = 0,
        **options: Any,
    ) -> CrossCheck:
        """Solve the odd step of some nodes again, from the final point, by every solver, and judge the answers.

        Parameters
        ----------
        solvers : sequence of str, optional
            None is every installed solver that takes the block's cones.
        nodes : int, optional
            How many, drawn without replacement: a cone solver takes a second for a node of some thousand rows. None is
            all.
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

        require_counts(nodes=nodes)
        require_seed(seed)
        several = list(self.blocks().values())
        if nodes is not None and nodes < len(several):
            chosen = np.sort(np.random.default_rng(seed).choice(len(several), nodes, replace=False))
            several = [several[index] for index in chosen]
        return crosscheck([case_of_block(block, self.state) for block in several], solvers, **options)

    def save(self, path: PathLike) -> Path:
        """Write the run to a JSON file, whole or not at all.

        The file holds parameters, multipliers and figures; the nodes' rows are not in it.
        """
        document = {
            **self.fitted_document(),
            "published": self.state["f"].tolist(),
            "dual": self.state["dual"].tolist(),
            "settings": asdict(self.settings),
            "converged": self.converged,
            "iterations": self.iterations,
            "objective": self.objective,
            "kkt": asdict(self.kkt),
            "gap": finite_or_none(self.gap),
            "seconds": self.seconds,
        }
        return write_run(path, "RecycledADMM", document)

    @classmethod
    def load(cls, path: PathLike) -> ConsensusRun:
        """Read what `save` wrote; it predicts, and its history and blocks are not in it.

        Raises
        ------
        DataError
            No such file, not a saved run of this model, or of another version.
        """
        document = read_fit(path, "RecycledADMM", private=False)
        found, settings, fitted = document["kkt"], document["settings"], cls.fitted_of(document)
        return cls(
            **fitted,
            state={
                "f": np.array(document["published"]),
                "odd": fitted["parameters"],
                "dual": np.array(document["dual"]),
            },
            settings=Settings(**{**settings, "eta": tuple(settings["eta"])}),
            converged=document["converged"],
            iterations=document["iterations"],
            objective=document["objective"],
            kkt=ConsensusResiduals(
                tuple(found["stationarity"]), found["consensus"], found["dual_sum"], tuple(found["scales"])
            ),
            gap=none_as_infinite(document["gap"]),
            seconds=document["seconds"],
        )

    def _problem(self) -> Problem:
        if self.problem is None:
            raise ModelError("this run was read from a file, and the nodes' rows are not in it: solve again")
        return self.problem
