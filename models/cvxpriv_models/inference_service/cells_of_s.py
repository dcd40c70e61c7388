"""Verification by cells of s = A x: how large the price of a column can be at a given alpha, over all columns.

On a cell with vertices v_a every s is a mixture of them, and KL(s || P_S) is convex: with a mu such that
mu.v_a >= KL(v_a || P_S) at each vertex, no x with A x in the cell has g(x) - alpha.x above Phi(mu). The mu that meets
KL at the vertices is taken; what rounding leaves of max_a KL(v_a || P_S) - mu.v_a is added. A cell whose bound is too
high is cut in two. This holds for any |S|, asks for no stationarity, and trusts no solver.
"""

from typing import NamedTuple

import numpy as np

from cvxpriv.numerics.arrays import Array, IntArray
from cvxpriv.numerics.sizes import now

from .pricing import Inner, Pricing

#: Cells times |Y| in one batch; cells after which a verification ends.
BATCH, MOST = 1_500_000, 20_000_000
#: Fewer cells are bisected twice: a batch so small takes the time of its calls.
SMALL = 200
#: Cells that may wait at once: beyond that, memory would run out.
WAITING = 3_000_000
#: Newton steps for n, which need not be exact here: any n is valid.
LIMIT, PRECISION = 12, 1e-9
#: Points above the threshold that are handed back at most.
VIOLATORS = 50


class Verified(NamedTuple):
    """The result of a verification.

    `bound`: No column has a price above it.
    `cells`: Cells looked at.
    `complete`: Whether the bound is the threshold or below.
    `above`, (K, |S|): Points s at which J exceeds the threshold: the master lacks their columns.
    """

    bound: float
    cells: int
    complete: bool
    above: Array


def first_cell(channel: Array) -> Array:
    """Return the simplex of all s >= min over y of A, as its vertices, (1, |S|, |S|)."""
    least = np.maximum(channel.min(axis=1) * (1.0 - 1e-15), 0.0)
    return np.asarray((least + max(1.0 - least.sum(), 0.0) * np.eye(len(least)))[None])


def kl_to_prior(share: Array, p_s: Array) -> Array:
    """KL(s || P_S) along the last axis."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(share > 0.0, share * np.log(share / p_s), 0.0).sum(axis=-1))


def verify(pricing: Pricing, alpha: Array, threshold: float, deadline: float) -> Verified:
    """Show that no column has a price above the threshold, or say how far it may be.

    It ends when no cell is left, when J exceeds the threshold at a point, at the deadline, or after `MOST` cells.
    """
    nowhere = np.zeros((0, pricing.p_s.size))
    cells, bounds = first_cell(pricing.channel), np.array([np.inf])
    if np.abs(cells[0, 0] - cells[0, -1]).max() <= 1e-12:
        return Verified(0.0, 1, True, nowhere)
    looked, proved = 0, -np.inf
    size = max(BATCH // pricing.p_y.size, 1)
    while len(cells):
        above = nowhere
        for start in range(0, len(cells), size):
            if now() > deadline or looked > MOST or len(above):
                break
            batch = slice(start, start + size)
            bounds[batch] = np.minimum(cell_bounds(pricing, alpha, cells[batch]), bounds[batch])
            looked += len(bounds[batch])
            left = start + np.flatnonzero(bounds[batch] > threshold)
            centre, value, bound = centre_bounds(pricing, alpha, cells[left])
            bounds[left] = np.minimum(bound, bounds[left])
            above = centre[value > threshold]
        else:
            proved = max(proved, bounds[bounds <= threshold].max(initial=-np.inf))
            cells, bounds = cells[bounds > threshold], bounds[bounds > threshold]
            if not len(above) and len(cells) <= WAITING:
                for _ in range(2 if len(cells) < SMALL else 1):
                    cells, bounds = bisected(cells, pricing.p_s)[0], np.tile(bounds, 2)
                continue
        return Verified(max(proved, bounds.max(initial=-np.inf)), looked, not len(cells), above[:VIOLATORS])
    return Verified(proved, looked, True, nowhere)


def cell_bounds(pricing: Pricing, alpha: Array, cells: Array) -> Array:
    """No x with A x in cell c has a price above the number c of this array, (C,).

    `alpha`: (|Y|,). `cells`, (C, |S|, |S|): The vertices of each cell.
    """
    at_vertices = kl_to_prior(cells, pricing.p_s)
    try:
        mu = np.asarray(np.linalg.solve(cells, at_vertices[:, :, None])[:, :, 0], dtype=np.float64)
    except np.linalg.LinAlgError:  # in floats, the vertices of one lie in a plane through 0
        mu = pricing.mu_of(cells.mean(axis=1))
    return _raised(pricing, alpha, cells, mu, pricing.inner(mu, alpha, LIMIT, PRECISION))


def centre_bounds(pricing: Pricing, alpha: Array, cells: Array) -> tuple[Array, Array, Array]:
    """The centres of cells, J there, and the bounds that the tangents of KL there give.

    In a cell that touches s_l = 0, KL bends so sharply that the plane through its vertices stays as steep however small
    the cell is; a tangent's bound falls to J.
    """
    centre = cells.mean(axis=1)
    mu = pricing.mu_of(centre)
    surface = pricing.surface(mu, alpha)
    return centre, surface.value, _raised(pricing, alpha, cells, mu, surface.inner)


def _raised(pricing: Pricing, alpha: Array, cells: Array, mu: Array, inner: Inner) -> Array:
    """Phi at one mu for each cell, and what mu.v lacks of KL at its vertices, (C,)."""
    lack = (kl_to_prior(cells, pricing.p_s) - np.einsum("cas,cs->ca", cells, mu)).max(axis=1)
    found = np.asarray(inner.value + lack + pricing.rounding(mu, alpha, inner))
    return np.where(np.isnan(found), np.inf, found)  # what cannot be computed proves nothing


def bisected(cells: Array, p_s: Array) -> tuple[Array, IntArray]:
    """Both halves of each cell, first all first halves, then all second ones; and which edge of each was cut.

    The cut is at the middle of the edge on which KL lies farthest below its chord there, since the chord is all that
    the bound loses. (The longest edge would cut cells near s_l = 0, where KL bends most, a hundred times more often.)
    """
    first, second = np.triu_indices(cells.shape[1], 1)
    middle = (cells[:, first] + cells[:, second]) / 2.0
    value = kl_to_prior(cells, p_s)
    edge = (value[:, first] + value[:, second] - 2.0 * kl_to_prior(middle, p_s)).argmax(axis=1)
    rows = np.arange(len(cells))
    halves = np.concatenate([cells, cells])
    halves[rows, first[edge]] = halves[len(cells) + rows, second[edge]] = middle[rows, edge]
    return halves, edge
