"""First-order residuals of RADMM (1), from the data alone: Lemma IV.1, (30)-(31), and what it takes for granted.

A pair (f, lambda) is optimal iff grad O_i(f_i) + 2 lambda_i = 0 at every node, (D - A) f = 0, and 2 lambda lies in the
range of D - A: sum_i lambda_i = 0. The printed penalties keep the first two and lose the third.
"""

from dataclasses import dataclass

import numpy as np

from cvxpriv.numerics.arrays import Array, relative_residual, worst
from cvxpriv.penalties.contract import distance

from .problem import Problem


@dataclass(frozen=True)
class ConsensusResiduals:
    """Distances of a point from optimality.

    `stationarity`: ||grad O_i(f_i) + 2 lambda_i||, one a node; where R is no square the distance of -2 lambda_i to the
    subgradients of O_i.
    `consensus`: ||(D - A) f||.
    `dual_sum`: ||sum_i lambda_i||.
    `scales`: The largest ||2 lambda_i||, ||f||, and the sum of the ||lambda_i||: what the three are compared with, each
    at least 1.
    """

    stationarity: tuple[float, ...]
    consensus: float
    dual_sum: float
    scales: tuple[float, float, float]

    @property
    def largest(self) -> float:
        """The largest of the three, each relative to its scale; `tol` bounds it."""
        figures = (worst(self.stationarity), self.consensus, self.dual_sum)
        return relative_residual(figures, self.scales)


def residuals(problem: Problem, f: Array, dual: Array, gradient: Array | None = None) -> ConsensusResiduals:
    """Return the residuals at f and lambda.

    `f`, `dual`: (N, d).
    `gradient`, (N, d): Gradients of the O_i at f, without R where R is not a square. None: from the data.
    """
    return residuals_of_parts(problem, f, dual, stationarity_of(problem, f, dual, gradient))


def residuals_of_parts(problem: Problem, f: Array, dual: Array, stationarity: tuple[float, ...]) -> ConsensusResiduals:
    """Return the residuals at f and lambda, (N, d), from every node's own: no row is read."""
    sizes = np.linalg.norm(dual, axis=1)
    apart = problem.network.degrees[:, None] * f - problem.network.adjacency @ f
    return ConsensusResiduals(
        stationarity=stationarity,
        consensus=float(np.linalg.norm(apart)),
        dual_sum=float(np.linalg.norm(dual.sum(axis=0))),
        scales=(2.0 * float(sizes.max()), float(np.linalg.norm(f)), float(sizes.sum())),
    )


def optimality_gap(problem: Problem, f: Array) -> float | None:
    """Return an upper bound on objective(f) - optimum of RADMM (1) at one f, (d,); None where none is known.

    With R = (c/2)||f||^2 the objective is strongly convex with modulus reg c, hence at most |gradient|^2 / (2 reg c)
    above its least.
    """
    modulus = problem.nodes * (problem.ridge or 0.0)
    if not modulus > 0.0:
        return None
    gradient = problem.gradients(np.broadcast_to(f, (problem.nodes, problem.features))).sum(axis=0)
    return float(gradient @ gradient) / (2.0 * modulus)


def stationarity_of(problem: Problem, f: Array, dual: Array, gradient: Array | None = None) -> tuple[float, ...]:
    """Return every node's distance from stationarity; see `residuals`."""
    if problem.ridge is not None:
        slopes = problem.gradients(f) if gradient is None else gradient
        return tuple(np.linalg.norm(slopes + 2.0 * dual, axis=1).tolist())
    slopes = (problem.loss_gradients(f) if gradient is None else gradient) + 2.0 * dual
    weight = problem.reg / problem.nodes
    return tuple(distance(problem.penalty, own, slope, weight) for own, slope in zip(f, slopes, strict=True))


def gap_of_parts(problem: Problem, f: Array, found: ConsensusResiduals, smoothness: Array) -> float | None:
    """Return an upper bound on objective(mean) - optimum of RADMM (1), from a number of each node, or None.

    The gradient of sum_i O_i at the mean is at most sum_i (||grad O_i(f_i) + 2 lambda_i|| + M_i ||mean - f_i||) +
    2 ||sum_i lambda_i||.

    `f`: (N, d).
    `found`: The residuals at f.
    `smoothness`, (N,): M_i of `Problem.smoothness`.
    """
    modulus = problem.nodes * (problem.ridge or 0.0)
    if not modulus > 0.0:
        return None
    away = np.linalg.norm(f - f.mean(axis=0), axis=1)
    slope = sum(found.stationarity) + float(smoothness @ away) + 2.0 * found.dual_sum
    return slope * slope / (2.0 * modulus)
