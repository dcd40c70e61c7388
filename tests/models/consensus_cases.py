"""Problems for the tests of recycled ADMM."""

from __future__ import annotations

import networkx as nx
import numpy as np
from cvxpriv_models.recycled_admm import RecycledADMM

from cvxpriv.numerics.arrays import Array

#: Five nodes in a circle with one chord: connected, not bipartite.
HOUSE = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)])
UNEQUAL = (20, 25, 20, 30, 21)
#: Of nodes with the same number of rows, and of others: two ways through the products.
EQUAL = (20,) * 5

Shards = list[tuple[Array, Array]]


def shards(sizes: tuple[int, ...] = EQUAL, features: int = 4, loss: str = "logistic", seed: int = 0) -> Shards:
    """Rows of norm at most 1, and labels of a noisy linear model that are the same at no two nodes."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=features)
    dealt = []
    for size in sizes:
        x = rng.normal(size=(size, features))
        x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
        z = 2.0 * x @ truth + rng.logistic(size=size)
        dealt.append((x, np.where(z > 0.0, 1.0, -1.0) if loss in ("logistic", "smoothed-hinge") else z))
    return dealt


def model(
    loss: str = "logistic",
    sizes: tuple[int, ...] = EQUAL,
    graph: nx.Graph = HOUSE,
    reg: float = 1.0,
    C: float = 20.0,
    features: int = 4,
    seed: int = 0,
) -> RecycledADMM:
    """A small model; with reg = 1 its optimum is well-conditioned."""
    return RecycledADMM(graph, shards(sizes, features, loss, seed), loss=loss, reg=reg, C=C)
