"""The matrices of the stacked form of MR-ADMM, RADMM (20)-(27), of the convergence theorem.

W(D - A) and W(D + A) are `Operators` here, so that the same formulas hold with one eta_ij an edge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.numerics.arrays import Array

from .updates import edge_weights, reach

__all__ = ["Operators"]


@dataclass(frozen=True, eq=False)
class Operators:
    """The matrices of a pass.

    Attributes
    ----------
    laplacian, signless : ndarray, (N, N)
        W(D - A) and W(D + A).
    divisor : ndarray, (N,)
        The diagonal of D~, 2 eta_i V_i + gamma.
    """

    laplacian: Array
    signless: Array
    divisor: Array

    @classmethod
    def of(cls, eta: Array, adjacency: Array, gamma: float, variant: str) -> Operators:
        """Return the matrices at the penalties of a pass, (N,); see `updates.edge_weights`."""
        links = edge_weights(eta, adjacency, variant)
        spans = reach(links)
        return cls(np.diag(spans) - links, np.diag(spans) + links, 2.0 * spans + gamma)
