"""The price of a column of the mechanism: the largest g(x) - alpha.x over posteriors x = P(Y|u), in |S| variables.

With g(x) = KL(A x || P_S) - beta sum_y p(y) H(x(y)/p(y)), A = P(S|Y), and KL(s || P_S) = max over mu of mu.s - L(mu),
L(mu) = log sum_s P_S(s) exp(mu_s), the price is max over mu of J(mu) = Phi(mu) - L(mu). Phi is a concave problem over
the simplex: Phi(mu) <= n + beta sum_y p(y) H*((c_y - n)/beta) for any number n, c = A'mu - alpha, so that a wrong n
only loosens the bound. Local maxima of J are found for all starts at once: by climbing, then Newton's method with its
curvature made positive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cvxpriv.bounds.conjugates import Conjugate
from cvxpriv.numerics.arrays import Array, Flags

#: A log(s/P_S) below this stands for s = 0.
FAR = 40.0
#: A ratio x/p(y) below this counts as 0.
LEAST = 1e-300
#: Steps of Newton's method for n, and how near 1 the sum of x must come: the value is then off by the square of that,
#: and so is x after what is missing has been shared out.
LIMIT, SUM = 80, 1e-8
#: Units in the last place that a sum of a few products may be off, each relative to its largest part.
ULPS = 16.0 * float(np.finfo(float).eps)


class Inner(NamedTuple):
    """The inner problem at rows of c: `value` bounds its maximum from above, x is its maximiser.

    `value`: (B,).
    `x`: (B, |Y|).
    `spread`, (B, |Y|): D = dx/dc at a fixed n.
    `n`: (B,).
    `lead`, (B, |Y|), or None: v, where the derivative of x at a fixed n is diag(D) + v v'.
    """

    value: Array
    x: Array
    spread: Array
    n: Array
    lead: Array | None = None

    def at(self, rows: Flags | slice) -> Inner:
        """Return some of the rows."""
        lead = None if self.lead is None else self.lead[rows]
        return Inner(self.value[rows], self.x[rows], self.spread[rows], self.n[rows], lead)

    def where(self, mine: Flags, other: Inner) -> Inner:
        """Return the rows that a mask marks, (B,), and those of another elsewhere."""
        column = mine[:, None]
        return Inner(
            np.where(mine, self.value, other.value),
            np.where(column, self.x, other.x),
            np.where(column, self.spread, other.spread),
            np.where(mine, self.n, other.n),
            None if self.lead is None or other.lead is None else np.where(column, self.lead, other.lead),
        )


class Surface(NamedTuple):
    """J at rows of mu, with what its derivatives need.

    `value`: (B,). `share`, (B, |S|): s = P_S exp(mu) / sum: the slope of L.
    """

    value: Array
    inner: Inner
    share: Array


def solve_simplex(
    c: Array,
    p_y: Array,
    beta: float,
    conjugate: Conjugate,
    limit: int = LIMIT,
    precision: float = SUM,
    near: Array | None = None,
) -> Inner:
    """Maximise c.x - beta sum_y p(y) H(x(y)/p(y)) over the simplex, for each row of c.

    The sum of x falls in n: it is at least 1 where one cell alone reaches 1, at most 1 where none exceeds p(y).
    Newton's method on the logarithm of the sum runs inside that bracket, from `near`, (B,), where it is given.
    """
    flat, steep = (0.0, conjugate.slope(1.0 / p_y)) if conjugate.ends is None else conjugate.ends
    low = c.min(axis=1) - beta * steep if conjugate.boxed else (c - beta * steep).max(axis=1)
    high = np.maximum(c.max(axis=1) - beta * flat, low)
    if near is None:  # exact for f = -log t
        most = c.max(axis=1)
        near = most + beta * np.log(np.exp((c - most[:, None]) / beta) @ p_y)
    n = np.clip(near, low, high)
    work, rows = np.arange(len(c)), c
    for _ in range(limit):
        here = n[work]
        r, turn = conjugate.response((rows - here[:, None]) / beta)
        total, rate = r @ p_y, turn @ p_y
        low[work] = np.where(total >= 1.0, here, low[work])
        high[work] = np.where(total <= 1.0, here, high[work])
        with np.errstate(divide="ignore", invalid="ignore"):
            step = here + beta * total * np.log(total) / rate
        inside = (step >= low[work]) & (step <= high[work])
        off = np.abs(total - 1.0) > precision
        n[work] = np.where(inside, step, np.where(off, (low[work] + high[work]) / 2.0, here))
        going = off & (n[work] != here)
        if not going.all():
            work, rows = work[going], rows[going]
        if not work.size:
            break
    t = (c - n[:, None]) / beta
    r, turn = conjugate.response(t)
    # What is missing from the sum goes to the cells that move: with straight pieces of f, one moves by leaps.
    share = turn * p_y / np.maximum(turn @ p_y, LEAST)[:, None]
    x = np.maximum(r * p_y + (1.0 - r @ p_y)[:, None] * share, 0.0)
    return Inner(n + beta * (conjugate.value(t) @ p_y), x, turn * p_y / beta, n)


@dataclass(frozen=True, eq=False)
class Pricing:
    """Everything that prices columns of one problem.

    `channel`, (|S|, |Y|): A = P(S|Y), columns sum to 1.
    `p_y`, (|Y|,): Positive.
    `solve`: Rows c, a limit of steps, a precision, and numbers near n or None, to `Inner`: the inner problem, over the
    simplex or over a cone in it.
    `smooth`: Whether x(mu) moves without jumps, as Newton's method on alpha needs.
    """

    channel: Array
    p_y: Array
    beta: float
    conjugate: Conjugate
    solve: Callable[[Array, int, float, Array | None], Inner]
    smooth: bool
    p_s: Array = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "p_s", self.channel @ self.p_y)

    @classmethod
    def of(cls, channel: Array, p_y: Array, beta: float, conjugate: Conjugate) -> Pricing:
        """Price over the whole simplex."""

        def solve(c: Array, limit: int, precision: float, near: Array | None) -> Inner:
            return solve_simplex(c, p_y, beta, conjugate, limit, precision, near)

        return cls(channel, p_y, beta, conjugate, solve, not conjugate.jumps)

    def inner(
        self, mu: Array, alpha: Array, limit: int = LIMIT, precision: float = SUM, near: Array | None = None
    ) -> Inner:
        """Return Phi and its maximiser at rows of mu, (B, |S|), for alpha, (|Y|,); `near` are numbers near n."""
        return self.solve(mu @ self.channel - alpha, limit, precision, near)

    def surface(self, mu: Array, alpha: Array, near: Array | None = None) -> Surface:
        """Return J at rows of mu, (B, |S|)."""
        inner = self.inner(mu, alpha, near=near)
        top = mu.max(axis=1)
        weight = self.p_s * np.exp(mu - top[:, None])
        total = weight.sum(axis=1)
        return Surface(inner.value - top - np.log(total), inner, weight / total[:, None])

    def rounding(self, mu: Array, alpha: Array, inner: Inner) -> Array:
        """Return how far the computed bound Phi may be below the bound in exact arithmetic, (B,).

        c is a sum of |S| + 1 products, of which the bound is a sum weighted by x; its |Y| terms and n add their own.
        """
        largest = np.abs(mu).max(axis=1) + np.abs(alpha).max() + np.abs(inner.n)
        terms = self.beta * (self.conjugate.price(np.maximum(inner.x / self.p_y, LEAST)) @ self.p_y)
        weight = np.maximum(inner.x.sum(axis=1), 1.0)
        size = (self.channel.shape[0] + np.log2(self.p_y.size) + 4.0) * largest * weight
        return np.asarray(ULPS * (size + np.log2(self.p_y.size + 2) * np.abs(terms)))

    def mu_of(self, share: Array) -> Array:
        """Return the mu at which KL(s || P_S) = mu.s - L(mu) for rows s, (B, |S|); at s = 0 it is -`FAR`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.maximum(np.log(share) - np.log(self.p_s), -FAR))

    def climb(self, share: Array, alpha: Array, steps: int) -> Array:
        """Raise J from rows s, (B, |S|): s <- A x(log s/P_S), which never falls."""
        near = None
        for _ in range(steps):
            inner = self.inner(self.mu_of(share), alpha, 12, 1e-9, near)
            near, share = inner.n, np.maximum(inner.x @ self.channel.T, 0.0)
            share = share / share.sum(axis=1, keepdims=True)
        return share

    def gain(self, x: Array) -> Array:
        """Return g at rows x of the simplex, (B, |Y|)."""
        s = x @ self.channel.T
        with np.errstate(divide="ignore", invalid="ignore"):
            kl = np.where(s > 0.0, s * np.log(s / self.p_s), 0.0).sum(axis=1)
            cost = self.conjugate.price(np.maximum(x / self.p_y, LEAST)) @ self.p_y
        return np.asarray(kl - self.beta * cost)


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


def curvature(channel: Array, surface: Surface, damping: float = 0.0) -> Array:
    """Return -J'' at each mu, (B, |S|, |S|), made regular along the shift of all mu and at shares that are 0.

    `damping`: Multiple of L'' that is added, which shortens a step in mu.

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
    return np.asarray((1.0 + damping) * first - second + 1.0 / symbols)
