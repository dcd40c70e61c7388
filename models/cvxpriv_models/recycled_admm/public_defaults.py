"""Placed rows as a `RecycledADMM`, with what is used where nothing is asked for.

Every default follows from public numbers: the rows of each node, the graph, and the options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import sparse

from cvxpriv.numerics.arrays import Array

from .model import RecycledADMM
from .node_rows import Placement
from .problem import Problem

__all__ = ["GAUSSIAN", "PLAIN", "PURE", "Privacy", "Usual", "posed", "usual_eta", "with_ones"]


@dataclass(frozen=True)
class Usual:
    """What is used where nothing is asked for; of a problem whose rows have norms of about 1.

    Attributes
    ----------
    reg : float
        reg over C N: the weight of (1/2)||f||^2 beside the mean loss of a row.
    eta : float
        A node's penalties together, over C and the largest curvature of the loss.
    rounds : int
    """

    reg: float
    eta: float
    rounds: int


#: Without privacy: reg about as in RADMM section VIII (.22 at C = 1750 and N = 5); a small eta converges fast where the
#: shards are alike, as those dealt at random are.
PLAIN = Usual(reg=2.5e-5, eta=2e-3, rounds=300)
#: With noise: each round costs privacy, and a larger eta keeps its noise from carrying a node away.
PURE = Usual(reg=1e-3, eta=0.02, rounds=3)
#: With a delta the noise of a round grows with the square root of their number alone.
GAUSSIAN = Usual(reg=1e-3, eta=0.04, rounds=10)

#: Shards of so many rows, dealt at random, are alike enough for the small eta of `Usual`.
ALIKE = 1000.0


@dataclass(frozen=True)
class Privacy:
    """What is asked for; the names are those of `private.solve_private`."""

    epsilon: float | None = None
    delta: float | None = None
    alpha: float | None = None
    perturbation: str | None = None

    @property
    def private(self) -> bool:
        """Whether a guarantee is asked for."""
        return self.epsilon is not None or self.alpha is not None

    @property
    def where(self) -> str:
        """Where the noise goes: into the minimisers where a delta is given, as Gaussian noise is the smaller one."""
        return self.perturbation or ("objective" if self.delta is None else "output")

    @property
    def usual(self) -> Usual:
        """The defaults that suit it."""
        if not self.private:
            return PLAIN
        return PURE if self.delta is None or self.where == "objective" else GAUSSIAN


def posed(
    placement: Placement,
    rows: Any,
    labels: Array,
    *,
    loss: str = "logistic",
    reg: float | None = None,
    C: float | None = None,
    intercept: bool = True,
    usual: Usual = PLAIN,
) -> RecycledADMM:
    """Return the model of placed rows.

    Parameters
    ----------
    placement : Placement
    rows : array or sparse by rows, (n, d)
    labels : ndarray, (n,)
    loss : str
    reg, C : float, optional
        None: C is the rows of the smallest node, so that no row weighs more than 1; reg is `Usual.reg` of it.
    intercept : bool
        A last column of ones, whose coefficient R takes for one like any other.
    usual : Usual

    Raises
    ------
    DataError, ModelError
        From the model.
    """
    design = with_ones(rows) if intercept else rows
    weight = float(min(part.size for part in placement.parts)) if C is None else C
    if reg is None:
        reg = usual.reg * weight * len(placement.parts)
    shards = [(design[part], labels[part]) for part in placement.parts]
    return RecycledADMM(placement.graph, shards, loss, reg, weight)


def usual_eta(problem: Problem, usual: Usual) -> float:
    """Return one eta for all nodes, for their mean number of neighbours; small nodes differ more, and get a larger."""
    unlike = max(1.0, float(np.sqrt(ALIKE / problem.rows.counts.min())))
    return usual.eta * unlike * problem.C * problem.loss.smoothness / float(problem.network.degrees.mean())


def with_ones(rows: Any) -> Any:
    """Return the rows with a last column of ones."""
    ones = np.ones((rows.shape[0], 1))
    if sparse.issparse(rows):
        return sparse.csr_array(sparse.hstack([cast(Any, rows), sparse.csr_array(ones)]))
    return np.hstack([rows, ones])
