"""Average gradients that no row moves far: each row's own gradient is clipped first.

A row's gradient is l'(z_i, y_i) x_i, so its norm is |l'| ||x_i||, and clipping it bounds |l'| by clip / ||x_i||. The n
gradients of d numbers are never formed, and a sparse design stays sparse.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from cvxpriv.numerics.arrays import Array

from .problem import Design, Problem

__all__ = ["ADJACENCIES", "ClippedGradient", "clipped_rows", "clipped_slopes", "neighbours", "row_norms"]

#: Neighbouring relation to how many clipped gradients the sum of one neighbour has that the other's has not.
ADJACENCIES = {"replace-one": 2.0, "add-remove": 1.0}

#: Sums of squares below this may have lost some to underflow.
LEAST_SQUARE = 1e-280


def row_norms(design: Design) -> Array:
    """Return the Euclidean norm of each row, (n,); never too small, as a lost square would let a row through.

    Where squares leave the range of doubles it is a bound, sqrt(d) times the largest entry.
    """
    with np.errstate(over="ignore", under="ignore"):
        if isinstance(design, np.ndarray):
            squares = np.einsum("ij,ij->i", design, design)
        else:
            squares = np.asarray(design.multiply(design).sum(axis=1)).ravel()
    norms = np.asarray(np.sqrt(squares))
    odd = np.flatnonzero((squares < LEAST_SQUARE) | ~np.isfinite(squares))
    if odd.size:
        chosen = design[odd]
        most = chosen.max(axis=1), chosen.min(axis=1)
        largest = [np.abs(side if isinstance(side, np.ndarray) else side.toarray()).ravel() for side in most]
        with np.errstate(over="ignore"):
            norms[odd] = np.sqrt(design.shape[1]) * np.maximum(*largest)
    return norms


def clipped_slopes(slopes: Array, norms: Array, clip: float) -> Array:
    """Return the slopes l'(z_i), (n,), cut to where |l'| ||x_i|| is at most `clip`; one that is no number is 0."""
    with np.errstate(divide="ignore", over="ignore"):
        most = clip / norms
    return np.where(np.isnan(slopes), 0.0, np.clip(slopes, -most, most))


def clipped_rows(design: Design, bound: float) -> Design:
    """Return the rows, those longer than `bound` shortened to it."""
    share = bound / np.maximum(row_norms(design), bound)
    scaled = design * share[:, None] if isinstance(design, np.ndarray) else sp.diags_array(share) @ design
    return scaled if isinstance(scaled, np.ndarray) else sp.csr_array(scaled)


def neighbours(adjacency: str, divisor: int) -> str:
    """Return the neighbouring relation in words."""
    if adjacency == "replace-one":
        return f"one row replaced, n = {divisor} public"
    return f"one row added or removed, the divisor {divisor} public"


@dataclass(frozen=True, eq=False)
class ClippedGradient:
    """The average of the rows' clipped gradients.

    Attributes
    ----------
    problem : Problem
    clip : float
        > 0: the most, in Euclidean norm, that a row's gradient counts; that of an intercept is one coordinate of it.
    divisor : int
        What the sum is divided by: a public number, n unless the caller knows one that is.
    """

    problem: Problem
    clip: float
    divisor: int

    def at(self, theta: Array) -> Array:
        """Return the average at theta, (size,); it is the gradient of the average loss where no row is clipped."""
        problem = self.problem
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = problem.loss.gradient(problem.predictions(theta), problem.y)
        return np.asarray(problem.design.T @ (clipped_slopes(slopes, self._norms, self.clip) / self.divisor))

    def sensitivity(self, adjacency: str) -> float:
        """Return the most, in Euclidean norm, by which a neighbour moves the average at any theta.

        2 clip / n where a row is replaced, clip / n where one is added or removed and the divisor n stays: the paper
        has 2 clip for an average, n times too much (ERRATA ISTDP 7).
        """
        return ADJACENCIES[adjacency] * self.clip / self.divisor

    @cached_property
    def _norms(self) -> Array:
        return row_norms(self.problem.design)
