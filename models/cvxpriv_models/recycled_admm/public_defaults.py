"""Defaults of a private solve, from public numbers alone.

These are the rows of each node, the graph, C, and the options.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .problem import Problem


@dataclass(frozen=True)
class Usual:
    """Defaults of a private solve, for a problem whose rows have norms of about 1. `reg`: reg over C N: the weight of
    (1/2)||f||^2 beside the mean loss of a row. `eta`: A node's penalties together, over C and the largest curvature of
    the loss.
    """

    reg: float
    eta: float
    passes: int


#: Each pass costs privacy, and a larger eta keeps its noise from carrying a node away.
PURE = Usual(reg=1e-3, eta=0.02, passes=3)
#: With a delta the noise of a pass grows with the square root of their number alone.
GAUSSIAN = Usual(reg=1e-3, eta=0.04, passes=10)

#: Shards of so many rows, dealt at random, are alike enough for the small eta of `Usual`.
ALIKE = 1000.0


@dataclass(frozen=True)
class Privacy:
    """The requested privacy, by the names of `RecycledADMM.solve_private`."""

    epsilon: float | None = None
    delta: float | None = None
    alpha: ArrayLike | None = None
    perturbation: str | None = None

    @property
    def where(self) -> str:
        """The place of the noise: the minimisers where a delta is given, as Gaussian noise is the smaller one."""
        return self.perturbation or ("objective" if self.delta is None else "output")

    @property
    def usual(self) -> Usual:
        """The defaults that suit it."""
        return PURE if self.delta is None or self.where == "objective" else GAUSSIAN


def usual_eta(problem: Problem, usual: Usual) -> float:
    """Return one eta for all nodes, for their mean number of neighbours; small nodes differ more, and get a larger."""
    unlike = max(1.0, float(np.sqrt(ALIKE / problem.rows.counts.min())))
    return usual.eta * unlike * problem.C * problem.loss.smoothness / float(problem.network.degrees.mean())
