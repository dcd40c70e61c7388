"""The vector that decides the next pass, f(2k-2) and lambda, for Anderson acceleration.

ADMM contracts in sum_i eta_i V_i ||f_i||^2 + ||2 lambda_i||^2 / (eta_i V_i), with eta_i V_i the sum of eta_ij over the
neighbours. To find the weights of a combination a node adds one number for each pair of passes remembered, which is
summed over the network; nodes then combine their own f and lambda.
"""

from __future__ import annotations

import numpy as np

from cvxpriv.numerics.arrays import Array, Values

from .problem import Problem
from .updates import edge_weights, reach

__all__ = ["MEMORY", "PublishedAndDual"]

#: Passes remembered.
MEMORY = 10


class PublishedAndDual:
    """The packing of f and lambda at fixed penalties.

    Parameters
    ----------
    problem : Problem
    eta : ndarray, (N,)
    variant : str
    """

    def __init__(self, problem: Problem, eta: Array, variant: str) -> None:
        self.shape = (problem.nodes, problem.features)
        roots = np.sqrt(reach(edge_weights(eta, problem.network.adjacency, variant)))[:, None]
        each = np.ones(self.shape)
        self.weights = np.concatenate([(roots * each).ravel(), (2.0 / roots * each).ravel()])

    def pack(self, state: Values) -> Array:
        """See `Packing`."""
        return np.concatenate([state["f"].ravel(), state["dual"].ravel()])

    def unpack(self, packed: Array, state: Values) -> Values:
        """See `Packing`."""
        f, dual = packed.reshape(2, 1, *self.shape)
        return {**state, "f": f, "dual": dual}

    def step(self, moved: Array, image: Values) -> Array:
        """See `Packing`."""
        return np.asarray(self.weights * moved)
