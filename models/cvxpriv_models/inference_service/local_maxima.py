"""Local maxima of J, all starts at once: climbing, then Newton's method with its curvature made positive."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cvxpriv.numerics.arrays import Array

from .pricing import FAR, Inner, Pricing, Surface

#: Steps of climbing, then of Newton's method; the slope of J at which it stops, and the longest step in mu.
CLIMB, STEPS, FLAT, LONGEST = 30, 20, 1e-9, 1.0
#: A share below this is 0: its mu does not move.
NOTHING = 1e-12


def sharpened(pricing: Pricing, share: Array, alpha: Array, climb: int = CLIMB, steps: int = STEPS) -> Array:
    """Return local maxima of J near rows s, (B, |S|); J never falls."""
    share = pricing.climb(share, alpha, climb)
    mu, found = pricing.mu_of(share), share.copy()
    surface, reach, work = pricing.surface(mu, alpha), np.full((len(mu), 1), LONGEST), np.arange(len(mu))
    for _ in range(steps):
        slope = surface.inner.x @ pricing.channel.T - surface.share
        moving = np.abs(slope).max(axis=1, initial=0.0) > FLAT
        found[work] = surface.share
        if not moving.any():
            break
        if not moving.all():
            work, mu, reach, slope, surface = (
                work[moving],
                mu[moving],
                reach[moving],
                slope[moving],
                _kept(moving, surface),
            )
        size, axes = np.linalg.eigh(curvature(pricing.channel, surface))
        along = np.einsum("bst,bs->bt", axes, slope) / np.maximum(np.abs(size), 1e-9)
        step = np.einsum("bst,bt->bs", axes, along)
        step *= np.minimum(1.0, reach / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
        trial = np.maximum(mu + step, -FAR)
        there = pricing.surface(trial, alpha, surface.inner.n)
        better = there.value > surface.value
        mu = np.where(better[:, None], trial, mu)
        reach = np.where(better[:, None], np.minimum(2.0 * reach, LONGEST), reach / 4.0)
        surface = _chosen(better, there, surface)
    found[work] = surface.share
    return found


def _kept(rows: NDArray[np.bool_], surface: Surface) -> Surface:
    """The rows of a surface that a mask marks."""
    inner = Inner(*(None if one is None else one[rows] for one in surface.inner))  # type: ignore[arg-type]
    return Surface(surface.value[rows], inner, surface.share[rows])


def _chosen(first: NDArray[np.bool_], yes: Surface, no: Surface) -> Surface:
    """The rows of one surface where a mask says so, else those of the other."""

    def rows(one: Array | None, other: Array | None) -> Array | None:
        if one is None or other is None:
            return None
        return np.where(first if one.ndim == 1 else first[:, None], one, other)

    inner = Inner(*(rows(one, other) for one, other in zip(yes.inner, no.inner, strict=True)))  # type: ignore[arg-type]
    return Surface(np.where(first, yes.value, no.value), inner, np.where(first[:, None], yes.share, no.share))


def distinct(share: Array, near: float) -> Array:
    """Return the rows of `share` that are not within `near`, in the sum of differences, of one kept before them."""
    kept = np.zeros((0, share.shape[1]))
    while len(share):
        kept = np.vstack([kept, share[:1]])
        share = share[np.abs(share - share[0]).sum(axis=1) > near]
    return kept


def curvature(channel: Array, surface: Surface) -> Array:
    """Return -J'' at each mu, (B, |S|, |S|), made regular along the shift of all mu and at shares that are 0.

    J'' = A M A' - (diag(s) - s s') with M = W - W1 1'W / 1'W1 and W = diag(D) + v v'.
    """
    share, inner, symbols = surface.share, surface.inner, len(channel)
    pairs = (channel[:, None, :] * channel[None, :, :]).reshape(symbols * symbols, -1)
    within = (inner.spread @ pairs.T).reshape(-1, symbols, symbols)
    row = inner.spread
    if inner.lead is not None:
        along = inner.lead @ channel.T
        within = within + along[:, :, None] * along[:, None, :]
        row = row + inner.lead * inner.lead.sum(axis=1, keepdims=True)
    across = row @ channel.T
    total = np.maximum(row.sum(axis=1), 1e-300)
    second = within - across[:, :, None] * (across / total[:, None])[:, None, :]
    gone = np.where(share < NOTHING, 1e6, 0.0)
    first = (share + gone)[:, :, None] * np.eye(symbols) - share[:, :, None] * share[:, None, :]
    return np.asarray(first - second + 1.0 / symbols)
