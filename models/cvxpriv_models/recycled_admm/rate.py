"""The speed of the iteration: its exact linear rate for quadratic O_i, and the eta that is fastest.

The exact rate is the spectral radius of a pass's matrix. The eta that a run begins with where its user names none
follows from less, the nodes' curvatures and the graph. Near the optimum an objective O_i is a quadratic. If all nodes
had the same one, of curvature h along some direction, and the same number V of neighbours, a pass would act on each
eigenvector of the normalised Laplacian, of eigenvalue v, by a matrix of two rows on (f, lambda)::

    odd     = (eta V (2 - v) f - 2 lambda) / (h + 2 eta V)
    lambda' = lambda + (eta V v / 2) odd
    f'      = odd, and with an even step + (2 eta V (1 - v) odd - eta V (2 - v) f) / (2 eta V + gamma)

That eta has the least spectral radius over the curvatures of the data and the graph's eigenvalues. Where passes are
combined (`accelerate`), a few slow directions cost little, and the bulk decides: along the consensus, v = 0, a pass
acts by the mean of the O_i, whose curvatures are seldom as small as a node's. Any eta > 0 converges without an even
step: this one decides how fast.
"""

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

from cvxpriv.errors import NotConverged
from cvxpriv.numerics.arrays import Array

from .graph import Network, dual_step, edge_weights, even_step, pull, reach
from .problem import Problem

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


#: The curvature of a loss at its optimum as a part of that at f = 0, where a logistic loss is steepest: about.
SETTLED = 0.5
#: Curvatures below this part of the largest are taken for it: no eta serves a wider range.
NARROW = 1e-4
#: A curvature up to this is none: parts of it are no doubles.
NONE = 1e-290
#: An entry of a Hessian beyond this is taken for it: sums of such entries are no doubles.
STEEP = 1e290
#: Curvatures between the least and the largest that are looked at; etas that are tried, and their range.
CURVATURES, ETAS, SPAN = 9, 121, 1e4
#: Eigenvalues of the graph up to this are 0: all nodes agree.
AGREED = 1e-9
#: Eigenvalues of a graph up to this are so few that a combination of passes takes them.
FEW = 0.2
#: Beyond this number of nodes the eigenvalues of the graph are bounded, not found.
LARGE = 2000


def default_eta(problem: Problem, gamma: float | None, accelerated: bool = False) -> float:
    """Return one eta for all edges.

    `gamma`: The gamma of the even step; None: without one. `accelerated`: Whether passes are combined.
    """
    hessians = _hessians(problem)
    mean = _ends(hessians.mean(axis=0)) if accelerated else None
    return fastest_eta(problem.network, *_ends(hessians), gamma, mean)


def fastest_eta(
    network: Network, least: float, largest: float, gamma: float | None, mean: tuple[float, float] | None = None
) -> float:
    """Return one eta for all edges, from the least and the largest curvature of the O_i; see `default_eta`.

    `mean`: Where passes are combined, the least and the largest curvature of the mean of the O_i: these count along the
    consensus, and a combination takes the few eigenvalues of the graph that are near 0.
    """
    if not largest > NONE:
        least = largest = 1.0
        mean = mean and (1.0, 1.0)
    h, together = (
        np.geomspace(max(ends[0], NARROW * ends[1]), ends[1], CURVATURES)
        for ends in ((least, largest), mean or (least, largest))
    )
    neighbours, eigenvalues = float(network.degrees.mean()), graph_eigenvalues(network)
    apart = eigenvalues[eigenvalues >= AGREED]
    if mean:
        apart = np.maximum(apart, FEW)
    etas = largest / (2.0 * neighbours) * np.geomspace(1.0 / SPAN, SPAN, ETAS)
    rates = [
        max(
            predicted_rate(eta, together, np.zeros(1), neighbours, gamma),
            predicted_rate(eta, h, apart, neighbours, gamma),
        )
        for eta in etas
    ]
    return float(etas[int(np.argmin(rates))])


def curvatures(problem: Problem) -> tuple[float, float]:
    """Return the least and the largest curvature of the O_i, as they are about at the optimum."""
    return _ends(_hessians(problem))


def _hessians(problem: Problem) -> Array:
    """The Hessians of the O_i as they are about at the optimum, (N, d, d)."""
    flat = np.zeros(problem.y.size)
    weights = problem.row_weights * np.maximum(problem.loss.curvature(flat, problem.y), 0.0)
    straight = np.repeat(problem.node_sums(weights) == 0.0, problem.rows.counts)  # a loss with straight pieces
    weights = np.where(straight, problem.row_weights * problem.loss.smoothness, weights)
    hessians: Array = SETTLED * problem.rows.grams(weights)
    hessians[:, np.arange(problem.features), np.arange(problem.features)] += problem.ridge or 0.0
    return hessians


def _ends(hessians: Array) -> tuple[float, float]:
    """The least and the largest eigenvalue."""
    values = np.linalg.eigvalsh(np.clip(hessians, -STEEP, STEEP))
    return float(values.min()), float(values.max())


def graph_eigenvalues(network: Network) -> Array:
    """Return the eigenvalues of the normalised Laplacian, in [0, 2]; of a large graph 0 and the ends of that range."""
    if network.nodes > LARGE:
        return np.array([0.0, 1.0 / network.nodes, 1.0, 2.0])
    roots = np.sqrt(network.degrees)
    return np.clip(np.linalg.eigvalsh(np.eye(network.nodes) - network.adjacency / np.outer(roots, roots)), 0.0, 2.0)


def predicted_rate(eta: float, h: Array, eigenvalues: Array, neighbours: float, gamma: float | None) -> float:
    """Return the largest factor by which a pass multiplies an error: see the module.

    `h`, (k,): Curvatures. `eigenvalues`, (m,): Eigenvalues of the normalised Laplacian. `neighbours`: V.
    """
    v, span = eigenvalues[None, :], eta * neighbours
    below = h[:, None] + 2.0 * span
    odd_of_f, odd_of_dual = span * (2.0 - v) / below, -2.0 / below * np.ones_like(v)
    dual_of_f, dual_of_dual = 0.5 * span * v * odd_of_f, 1.0 + 0.5 * span * v * odd_of_dual
    if gamma is None:
        f_of_f, f_of_dual = odd_of_f, odd_of_dual
    else:
        step = 1.0 / (2.0 * span + gamma)
        of_odd = 1.0 + step * 2.0 * span * (1.0 - v)
        f_of_f = of_odd * odd_of_f - step * span * (2.0 - v)
        f_of_dual = of_odd * odd_of_dual
    trace, determinant = f_of_f + dual_of_dual, f_of_f * dual_of_dual - f_of_dual * dual_of_f
    root = np.sqrt((trace * trace - 4.0 * determinant).astype(complex))
    radius = np.asarray(np.maximum(np.abs(trace + root), np.abs(trace - root)) / 2.0)
    agreed = np.broadcast_to(v < AGREED, radius.shape)  # lambda does not move along the consensus
    return float(np.where(agreed, np.abs(f_of_f), radius).max())
