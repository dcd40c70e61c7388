"""The stacked form of MR-ADMM, RADMM (20)-(27): right side minus left side, (N, d), 0 along the node updates."""

from __future__ import annotations

import numpy as np
from cvxpriv_models.recycled_admm.conditions import Operators

from cvxpriv.numerics.arrays import Array

__all__ = ["even_gap", "odd_gap", "recursion_gaps"]


def odd_gap(now: Operators, gradient: Array, odd: Array, previous: Array, dual: Array) -> Array:
    """Return (22): of the gradients at f(2k-1), f(2k-1), f(2k-2), and Lambda(2k-2)."""
    spans = np.diag(now.signless)[:, None]
    return np.asarray(gradient + 2.0 * dual + 2.0 * spans * odd - now.signless @ previous)


def even_gap(now: Operators, gradient: Array, odd: Array, even: Array, dual: Array) -> Array:
    """Return (20): of the gradients at f(2k-1), f(2k-1), f(2k), and Lambda(2k-1)."""
    return np.asarray(odd - (gradient + 2.0 * dual + now.laplacian @ odd) / now.divisor[:, None] - even)


def recursion_gaps(
    now: Operators,
    before: Operators,
    gradients: tuple[Array, Array],
    odds: tuple[Array, Array],
    duals: tuple[Array, ...],
) -> tuple[Array, Array]:
    """Return (26) and (27), which are (24) and (25): what two odd iterations in a row have to do with each other.

    Parameters
    ----------
    now, before : Operators
        At t + 1 and t.
    gradients, odds, duals : (ndarray, ndarray)
        At t + 1 and t, (N, d) each.
    """
    back = now.signless
    recycled = gradients[1] + before.laplacian @ odds[1] + 2.0 * duals[1]
    first = gradients[0] + back @ (recycled / before.divisor[:, None]) + back @ (odds[0] - odds[1]) + 2.0 * duals[0]
    second = 2.0 * duals[1] + now.laplacian @ odds[0] - 2.0 * duals[0]
    return np.asarray(first), np.asarray(second)
