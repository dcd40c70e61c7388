"""The updates of RADMM that read no data, as functions of arrays.

f, dual and the like have one row a node, (N, d). `links` is the matrix of eta_ij, (N, N), 0 where there is no edge:
with eta_ij = eta for all edges every formula is the paper's.
"""

import numpy as np

from cvxpriv.numerics.arrays import Array

EDGE, PRINTED = "edge", "printed"
VARIANTS = (EDGE, PRINTED)


def edge_weights(eta: Array, adjacency: Array, variant: str = EDGE) -> Array:
    """Return eta_ij, (N, N).

    `eta`, (N,): Penalty of each node.
    `adjacency`: (N, N).
    `variant`, {"edge", "printed"}: "edge" is min(eta_i, eta_j), the same at both ends, which keeps sum_i lambda_i = 0.
    "printed" is eta_i in row i, RADMM (14)-(16): with unequal eta_i the limit is then argmin sum_i O_i / eta_i.
    """
    weights = np.minimum(eta[:, None], eta[None, :]) if variant == EDGE else eta[:, None]
    return np.asarray(weights * adjacency)


def reach(links: Array) -> Array:
    """Return sum_j eta_ij, (N,): the paper's eta_i V_i."""
    return np.asarray(links.sum(axis=1))


def pull(links: Array, previous: Array) -> Array:
    """Return sum_j eta_ij (f_i + f_j), (N, d): where the penalty of (14) draws each node, times 2 `reach`."""
    return np.asarray(reach(links)[:, None] * previous + links @ previous)


def dual_step(dual: Array, odd: Array, links: Array) -> Array:
    """Return lambda_i + sum_j (eta_ij / 2) (f_i - f_j), RADMM (9), (13), (15)."""
    return np.asarray(dual + 0.5 * (reach(links)[:, None] * odd - links @ odd))


def even_step(odd: Array, previous: Array, links: Array, gamma: float) -> Array:
    """Return f(2k) of RADMM (10), (16) and (19), from published values alone.

    With the gradient (and noise) that (18) leaves at f(2k-1), and the dual step, everything private cancels:
    f_i(2k) = f_i(2k-1) + sum_j eta_ij (2 f_j(2k-1) - f_i(2k-2) - f_j(2k-2)) / (2 sum_j eta_ij + gamma).

    `odd`, `previous`, (N, d): f(2k-1) and f(2k-2). `links`, (N, N): Weights of the pass. `gamma`: >= 0.
    """
    step = 1.0 / (2.0 * reach(links) + gamma)
    return np.asarray(odd + step[:, None] * (2.0 * (links @ odd) - pull(links, previous)))
