"""The network of RADMM, who is whose neighbour, and the updates that read no data, as functions of arrays.

In the updates f, dual and the like have one row a node, (N, d). `links` is the matrix of eta_ij, (N, N), 0 where there
is no edge: with eta_ij = eta for all edges every formula is the paper's.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import networkx as nx
import numpy as np
from scipy import sparse

from cvxpriv.errors import DataError, ModelError, shown
from cvxpriv.numerics.arguments import real_numbers
from cvxpriv.numerics.arrays import Array

#: Nodes named in a message.
SHOWN = 5


@dataclass(frozen=True, eq=False)
class Network:
    """A connected undirected graph without loops.

    `labels`: Labels of the nodes, in the order of every array with one row per node.
    `adjacency`, (N, N): The paper's A: 1 between neighbours, 0 elsewhere.
    """

    labels: tuple[Hashable, ...]
    adjacency: Array

    def __repr__(self) -> str:
        return f"Network({len(self.labels)} nodes, {self.edges} edges{', bipartite' if self.bipartite else ''})"

    @classmethod
    def of(cls, graph: Any) -> Network:
        """Validate a graph.

        `graph`, (N, N): Edges have no weights: a matrix holds 0 and 1, and is symmetric with a diagonal of 0.
        """
        known = graph if isinstance(graph, nx.Graph) else _of_matrix(graph)
        if known.is_directed():
            raise ModelError("graph is directed, and neighbours exchange both ways: pass graph.to_undirected()")
        if loops := list(nx.nodes_with_selfloops(known)):
            raise ModelError(f"graph has a loop at {loops[0]!r}, and no node is its own neighbour: remove the loops")
        if known.number_of_nodes() < 2:
            raise ModelError(f"graph has {known.number_of_nodes()} node(s): a consensus needs two or more")
        if not nx.is_connected(known):
            parts = sorted(nx.connected_components(known), key=len)
            lost = ", ".join(map(repr, list(parts[0])[:SHOWN])) + (", ..." if len(parts[0]) > SHOWN else "")
            raise ModelError(
                f"graph is not connected: it has {len(parts)} parts, one of them {lost}, which can never agree; "
                "add edges between them, or fit each part by itself"
            )
        labels = tuple(known.nodes)
        return cls(labels, np.asarray(nx.to_numpy_array(nx.Graph(known), nodelist=labels, weight=None)))

    @property
    def nodes(self) -> int:
        """N."""
        return len(self.labels)

    @cached_property
    def degrees(self) -> Array:
        """V_i, (N,)."""
        return np.asarray(self.adjacency.sum(axis=1))

    @property
    def edges(self) -> int:
        """E."""
        return int(self.degrees.sum()) // 2

    @cached_property
    def bipartite(self) -> bool:
        """Whether the nodes fall into two sides with edges only between them: D + A is then singular."""
        return bool(nx.is_bipartite(nx.from_numpy_array(self.adjacency)))


def _of_matrix(matrix: Any) -> nx.Graph:
    try:
        dense = real_numbers(cast(Any, matrix).toarray() if sparse.issparse(matrix) else matrix, "graph", copy=False)
    except DataError as error:
        raise DataError(
            f"graph={shown(matrix)} is no graph ({error}): pass a networkx graph or an adjacency matrix"
        ) from None
    if dense.ndim != 2 or dense.shape[0] != dense.shape[1]:
        raise DataError(f"graph has shape {dense.shape}, expected (N, N): pass a networkx graph or an adjacency matrix")
    if not np.isin(dense, (0.0, 1.0)).all() or not np.array_equal(dense, dense.T):
        raise DataError("graph is no adjacency matrix: its entries must be 0 and 1, and the same both ways")
    return nx.from_numpy_array(dense)


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
