"""A second route to the minimiser of a submodular set function, beside `concave_subset`.

`minimum_norm_subset` takes any submodular function: Fujishige's theorem reads a minimiser off the point of least norm
in the base polytope, and Wolfe's algorithm finds that point.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from cvxpriv_models.privacy_funnel.baselines.clustering import best_prefix
from scipy.special import entr

from cvxpriv.errors import ModelError, NotConverged
from cvxpriv.numerics.arrays import Array, IntArray

#: The values of a set function on the growing prefixes of an order: entry k belongs to the first k + 1 elements.
Prefixes = Callable[[IntArray], Array]

#: The gap, relative to the largest entry of a base, below which a point that no longer moves is taken as it is.
ROUNDING = 1e-9


def minimum_norm_subset(prefixes: Prefixes, size: int, tolerance: float = 1e-12) -> tuple[IntArray, float]:
    """Minimise a submodular function by Wolfe's algorithm on its base polytope (Fujishige 1984).

    Parameters
    ----------
    prefixes : callable
        Values of the function, 0 on the empty set, along an order of all elements.
    size : int
        Number of elements.
    tolerance : float
        Gap between the value and its lower bound at which the subset counts as a minimiser, relative to the largest
        entry of the bases visited.

    Returns
    -------
    subset : int array
        Elements of a minimiser in increasing order, possibly none.
    value : float
        The least value. For every x in the base polytope ``sum(min(x, 0))`` is a lower bound of it.

    Raises
    ------
    ModelError
        The function is seen not to be submodular.
    NotConverged
        No minimiser was found in ``50 * size + 100`` steps.

    Examples
    --------
    >>> cut = np.array([[0.0, 2.0, 0.1], [2.0, 0.0, 0.1], [0.1, 0.1, 0.0]])
    >>> pull = np.array([-1.0, -0.5, 0.4])
    >>> def prefixes(order):
    ...     inside = np.tri(3)[:, np.argsort(order)]
    ...     return np.einsum("ki,ij,kj->k", inside, cut, 1 - inside) + inside @ pull
    >>> minimum_norm_subset(prefixes, 3)[0]
    array([0, 1])
    """
    bases = _greedy_base(prefixes, np.arange(size))[None, :]
    weights = np.ones(1)
    for _ in range(50 * size + 100):
        point = weights @ bases
        order = np.argsort(point, kind="stable")
        subset, value = best_prefix(order, prefixes(order))
        scale = float(np.abs(bases).max())
        gap = value - np.minimum(point, 0.0).sum()
        if gap < -1e-9 * scale:
            raise ModelError(
                f"prefixes: a subset has the value {value:.6g}, {-gap:.3g} below the bound that holds for every"
                " submodular function: expected one; use brute force for others"
            )
        if gap <= tolerance * scale:
            return subset, value
        base = _greedy_base(prefixes, order)
        # Rounding alone brings a vertex of the corral back: the point cannot improve any more.
        if (np.abs(bases - base).max(axis=1) <= tolerance * scale).any():
            return subset, value
        norm = float(point @ point)
        bases, weights = _least_norm(np.vstack([bases, base]), np.append(weights, 0.0))
        nearer = weights @ bases
        if nearer @ nearer >= norm * (1.0 - tolerance) and gap <= ROUNDING * scale:
            return subset, value  # the point has stopped moving before the gap closed: rounding has the last word
    raise NotConverged(
        f"no minimiser over {size} elements was found in {50 * size + 100} steps:"
        f" expected a gap of {tolerance:g}; raise tolerance"
    )


def by_minimum_norm(weight: float, masses: Array, modular: Array) -> tuple[IntArray, float]:
    """Minimise ``weight * h(masses(W)) + modular(W)`` over subsets W by `minimum_norm_subset`."""
    return minimum_norm_subset(
        lambda order: weight * entr(np.cumsum(masses[order])) + np.cumsum(modular[order]), masses.size
    )


def _greedy_base(prefixes: Prefixes, order: IntArray) -> Array:
    """The vertex of the base polytope that an order generates (Edmonds)."""
    base = np.empty(order.size)
    base[order] = np.diff(prefixes(order), prepend=0.0)
    return base


def _least_norm(bases: Array, weights: Array) -> tuple[Array, Array]:
    """Wolfe's minor cycle: move to the least norm over the affine hull, dropping bases that would weigh less than 0."""
    while True:
        # Differences, not Gram products, which would square the condition number.
        shares = np.linalg.lstsq((bases[1:] - bases[0]).T, -bases[0], rcond=None)[0]
        affine = np.append(1.0 - shares.sum(), shares)
        if affine.min() > -1e-12:
            kept = affine > 1e-12
            return bases[kept], affine[kept] / affine[kept].sum()
        negative = affine <= -1e-12
        step = float((weights[negative] / (weights - affine)[negative]).min())
        weights = weights + step * (affine - weights)
        kept = weights > 1e-12
        if kept.all():
            kept[np.argmin(weights)] = False
        bases, weights = bases[kept], weights[kept] / weights[kept].sum()
