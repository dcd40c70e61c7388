"""Local maxima of J, all starts at once: climbing, then Newton's method with its curvature made positive."""

from __future__ import annotations

import numpy as np

from cvxpriv.numerics.arrays import Array

from .pricing import FAR, Pricing, Surface

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
            work, mu, reach, slope = work[moving], mu[moving], reach[moving], slope[moving]
            surface = Surface(surface.value[moving], surface.inner.at(moving), surface.share[moving])
        size, axes = np.linalg.eigh(curvature(pricing.channel, surface))
        along = np.einsum("bst,bs->bt", axes, slope) / np.maximum(np.abs(size), 1e-9)
        step = np.einsum("bst,bt->bs", axes, along)
        step *= np.minimum(1.0, reach / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
        trial = np.maximum(mu + step, -FAR)
        there = pricing.surface(trial, alpha, surface.inner.n)
        better = there.value > surface.value
        mu = np.where(better[:, None], trial, mu)
        reach = np.where(better[:, None], np.minimum(2.0 * reach, LONGEST), reach / 4.0)
        surface = Surface(
            np.where(better, there.value, surface.value),
            there.inner.where(better, surface.inner),
            np.where(better[:, None], there.share, surface.share),
        )
    found[work] = surface.share
    return found


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
