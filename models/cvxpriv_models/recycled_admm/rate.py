"""The exact linear rate of the iteration for quadratic O_i: the spectral radius of its matrix."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

from cvxpriv.errors import NotConverged
from cvxpriv.numerics.arrays import Array

from .problem import Problem
from .updates import dual_step, edge_weights, even_step, pull, reach

#: Largest size of a matrix that is built, with all its eigenvalues.
DENSE = 2500


def linear_rate(problem: Problem, eta: Array, gamma: float | None, variant: str) -> float:
    """Return the spectral radius of a pass's map of errors (f(2k-2) - f_c, lambda - lambda*).

    Each O_i is replaced by its second-order form at the centralised optimum. lambda moves in the range of the weighted
    Laplacian only; what is outside it stays, and is no error.

    `eta`: (N,). `gamma`: None: without an even step. `variant`: {"edge", "printed"}.
    Raises NotConverged: The matrix is too large to be built, and its eigenvalues lie too close.
    """
    links = edge_weights(eta, problem.network.adjacency, variant)
    nodes, features = problem.nodes, problem.features
    basis = np.linalg.svd(np.diag(reach(links)) - links)[0][:, : nodes - 1]
    inverses = _inverse_hessians(problem, 2.0 * reach(links))

    def errors(values: Array) -> Array:
        f, reduced = np.split(values.reshape(2 * nodes - 1, features), [nodes])
        dual = basis @ reduced
        odd = np.matmul(inverses, (pull(links, f) - 2.0 * dual)[:, :, None])[:, :, 0]
        upcoming = odd if gamma is None else even_step(odd, f, links, gamma)
        return np.concatenate([upcoming, basis.T @ dual_step(dual, odd, links)]).ravel()

    size = (2 * nodes - 1) * features
    if size <= DENSE:
        matrix = np.stack([errors(column) for column in np.eye(size)], axis=1)
        return float(np.abs(np.linalg.eigvals(matrix)).max())
    start = np.random.default_rng(0).normal(size=size)  # ARPACK's own is random
    operator = LinearOperator((size, size), matvec=errors, dtype=np.float64)
    try:
        return float(np.abs(eigs(operator, k=3, which="LM", return_eigenvectors=False, v0=start)).max())
    except ArpackNoConvergence:
        raise NotConverged(
            f"the largest of {size} eigenvalues lie too close to be told apart: take fewer features or nodes, or read "
            "the rate off a run's history"
        ) from None


def _inverse_hessians(problem: Problem, bend: Array) -> Array:
    """The inverse Hessians of the odd steps at the centralised optimum, (N, d, d)."""
    best = np.broadcast_to(problem.optimum, (problem.nodes, problem.features))
    curvature = problem.loss.curvature(problem.rows.predictions(best), problem.y)
    hessians = problem.rows.grams(problem.row_weights * curvature)
    hessians += (bend + (problem.ridge or 0.0))[:, None, None] * np.eye(problem.features)
    return np.asarray(np.linalg.inv(hessians))
