"""Average gradients of bounded sensitivity: each row's own gradient is clipped first.

A row's gradient is l'(z_i, y_i) x_i, so its norm is |l'| ||x_i||, and clipping it bounds |l'| by clip / ||x_i||. The n
gradients of d numbers are never formed, and a sparse design stays sparse.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from cvxpriv.learning.matrices import row_norms
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.rounding import sum_rounding

from .problem import Design, Problem

#: Number of clipped per-row gradients by which the sums of two neighbours can differ, by neighbour relation.
ADJACENCIES = {"replace-one": 2.0, "add-remove": 1.0}

#: Number of rows that are summed at once: the rounding of a sum grows with the terms of its longest part.
BLOCK = 1024
#: Largest ratio of rows to the public divisor that the rounding bound covers, where the number of rows is private.
MOST_ROWS = 4


def clipped_slopes(slopes: Array, norms: Array, clip: float) -> Array:
    """Return the slopes l'(z_i), (n,), clipped where |l'| ||x_i|| exceeds `clip`; NaN becomes 0."""
    with np.errstate(divide="ignore", over="ignore"):
        most = clip / norms
    return np.where(np.isnan(slopes), 0.0, np.clip(slopes, -most, most))


def neighbours(adjacency: str, divisor: int) -> str:
    """Return the neighbour relation in words."""
    if adjacency == "replace-one":
        return f"one row replaced, n = {divisor} public"
    return f"one row added or removed, the divisor {divisor} public"


def row_blocks(design: Design) -> tuple[Array | sp.csc_array, ...]:
    """Return the rows in blocks of at most `BLOCK`, transposed."""
    return tuple(design[start : start + BLOCK].T for start in range(0, max(design.shape[0], 1), BLOCK))


def summed(blocks: tuple[Array | sp.csc_array, ...], weights: Array) -> Array:
    """Return the sum of the rows times their weights, (d,), block by block; `sum_error` bounds its rounding."""
    parts = [block @ weights[place * BLOCK : (place + 1) * BLOCK] for place, block in enumerate(blocks)]
    return np.asarray(np.sum(parts, axis=0))


def sum_error(rows: int, features: int) -> float:
    """Return the error bound of `summed` and of the weights' own clipping, as a part of the sum of the rows' sizes."""
    return sum_rounding(min(rows, BLOCK) + rows // BLOCK + features + 16)


@dataclass(frozen=True, eq=False)
class ClippedGradient:
    """The average of the rows' clipped gradients.

    `clip`: Clipping bound, > 0: each row's gradient is scaled to at most this Euclidean norm. The intercept is one of
    its coordinates.
    `divisor`: Divisor of the sum, a public number: n, unless the caller gives another one.
    `weights`, (n,): Weights of the rows' losses, >= 0. A row's weighted gradient is clipped, so that no weight adds to
    the sensitivity: a row of weight 3 is no three rows.
    """

    problem: Problem
    clip: float
    divisor: int
    weights: Array | None = None

    def at(self, theta: Array) -> Array:
        """Return the average at theta, (size,): the gradient of the average loss where no row is clipped."""
        problem = self.problem
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = problem.loss.gradient(problem.predictions(theta), problem.y)
            if self.weights is not None:
                slopes = self.weights * slopes
        return summed(self._blocks, clipped_slopes(slopes, self._norms, self.clip) / self.divisor)

    def sensitivity(self, adjacency: str) -> float:
        """Return the largest Euclidean norm by which a neighbour moves the average at any theta, as it is computed.

        It is 2 clip / n where a row is replaced, and clip / n where one is added or removed and the divisor n stays:
        the paper has 2 clip for an average, n times too much (ERRATA ISTDP 7). A bound of the rounding of both sums is
        added; where the number of rows is private, it covers at most `MOST_ROWS` times the divisor.
        """
        rows = self.divisor * (MOST_ROWS if adjacency == "add-remove" else 1)
        rounding = 2.0 * sum_error(rows, self.problem.size) * rows * self.clip / self.divisor
        return ADJACENCIES[adjacency] * self.clip / self.divisor + rounding

    @cached_property
    def _norms(self) -> Array:
        return row_norms(self.problem.design)

    @cached_property
    def _blocks(self) -> tuple[Array | sp.csc_array, ...]:
        return row_blocks(self.problem.design)
