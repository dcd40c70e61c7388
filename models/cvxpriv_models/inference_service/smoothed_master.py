"""The master problem of the columns: the alpha with the least alpha.P_Y + max over mu of J_alpha(mu).

The maximum over finitely many mu is smoothed to tau log sum exp(J/tau); Levenberg-Newton steps minimise over alpha
while tau falls, and local maxima of J join the points. At a minimum the weights exp(J/tau) mix the columns x(mu) to
P_Y: a mechanism. A linear master stalls where |Y| is large, since x(mu) moves with alpha.
"""

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.simplex import simplex_grid
from cvxpriv.numerics.sizes import now

from .pricing import Inner, Pricing, Surface, distinct, sharpened, solve_simplex

#: tau falls to this.
LAST_TAU = 1e-4
#: Newton steps at one tau; the fall, relative to tau, below which they stop; the longest move of a multiplier, in nats:
#: that of a symbol with hardly any mass has no curvature.
STEPS, STILL, LONGEST = 40, 1e-4, 1.0
#: Rounds of new points at one tau; how far above the smoothed level a new point must be, relative to tau.
ROUNDS, ABOVE = 4, 0.2
#: Steps of climbing to new points, then of Newton's method; points this near, in s, relative to the root of tau, are
#: one.
CLIMB, SHARPEN, NEAR = 5, 6, 0.3
#: Points that J leaves so many tau below its largest value weigh nothing.
BELOW = 25.0
#: Many inputs are merged to so many; how near their P(S|y) are, at first; lighter points
#: have no say in alpha.
FEW_INPUTS, ALIKE, LIGHT = 120, 1e-3, 1e-6


class Pace(NamedTuple):
    """The care with which a master goes.

    `points`: About how many points a grid of s has.
    `tau`, `factor`: The first tau, and what it falls by in a stage.
    """

    points: int
    tau: float
    factor: float


#: The pace that nearly always arrives, and the one for where that does not.
QUICK, SURE = Pace(40, 0.02, 0.1), Pace(200, 0.05, 0.3)


class Master(NamedTuple):
    """The result of the master problem.

    `alpha`: (|Y|,). `share`, (N, |S|): The points' s, none so low in J that it weighs nothing.
    """

    alpha: Array
    share: Array


class Columns(NamedTuple):
    """Columns of a mechanism and the multipliers that belong to them.

    `alpha`: (|Y|,).
    `mu`: (U, |S|).
    `weight`, (U,): q_u > 0.
    `x`, (U, |Y|): P(Y|u).
    `residual`: The largest violation of the conditions of optimality among these columns.
    """

    alpha: Array
    mu: Array
    weight: Array
    x: Array
    residual: float


def starting_shares(channel: Array, points: int = SURE.points) -> Array:
    """Return a grid of about so many s inside {s >= min over y of A}, and up to 40 columns of A, (N, |S|)."""
    symbols, cells = channel.shape
    least = channel.min(axis=1)
    fine = 1
    while fine < points and comb(fine + symbols, symbols - 1) <= points:
        fine += 1
    inside = least + (1.0 - least.sum()) * simplex_grid(symbols, fine).T
    columns = channel.T[np.unique(np.linspace(0, cells - 1, min(cells, 40)).astype(int))]
    return np.vstack([0.98 * inside + 0.02 * channel.mean(axis=1), columns])


def minima(pricing: Pricing, grid: Array, pace: Pace, deadline: float) -> Iterator[Master]:
    """Yield the minimum over alpha at every tau, while tau falls or until the deadline, a value of `time.monotonic`.

    `grid`, (N, |S|): Points s from which local maxima are looked for at every tau.
    """
    master, tau = Master(np.zeros(pricing.p_y.size), grid), pace.tau
    while True:
        master = settle(pricing, master, tau, grid, deadline)
        yield master
        if tau <= LAST_TAU or now() > deadline:
            return
        tau = max(pace.factor * tau, LAST_TAU)


def fewer(pricing: Pricing) -> Pricing:
    """The pricing of at most `FEW_INPUTS` inputs, each of those whose P(S|y) are alike."""
    kept, near = pricing.channel.T, ALIKE
    while len(kept) > FEW_INPUTS:
        kept, near = distinct(kept, near), 1.5 * near
    group = np.array([np.abs(kept - seen).sum(axis=1).argmin() for seen in pricing.channel.T])
    member = np.equal.outer(np.arange(len(kept)), group) * pricing.p_y
    member = member[member.any(axis=1)]
    p_y = member.sum(axis=1)
    return Pricing.of((pricing.channel @ member.T) / p_y, p_y, pricing.beta, pricing.conjugate)


def lifted(pricing: Pricing, few: Pricing, master: Master, deadline: float) -> Master:
    """The master of fewer inputs with an alpha for all: that at which its weighted points mix each input's mass.

    sum_u w_u r((c_y - alpha_y - n_u)/beta) = 1 is the inner problem with the parts of inputs and points exchanged.
    """
    _, mu, weight, inner = _mixed(few, master, LAST_TAU, deadline)
    reach = mu @ pricing.channel - inner.n[:, None]
    return master._replace(alpha=solve_simplex(reach.T, weight, pricing.beta, pricing.conjugate).n)


def mixture(pricing: Pricing, master: Master, tau: float, deadline: float) -> Columns:
    """The columns that a master's points mix at its tau, with an alpha at which none of them has a price."""
    alpha, mu, weight, inner = _mixed(pricing, master, tau, deadline)
    top = pricing.surface(mu, alpha).value.max()
    return Columns(alpha + top, mu, weight, inner.x, np.inf)


def _mixed(pricing: Pricing, master: Master, tau: float, deadline: float) -> tuple[Array, Array, Array, Inner]:
    """The alpha that is best for the points, and the mu, weights and inner problems of those that weigh something."""
    mu = pricing.mu_of(master.share)
    alpha, surface, weight = _newton(pricing, mu, master.alpha, tau, deadline)
    used = weight > LIGHT
    return alpha, mu[used], weight[used], surface.inner.at(used)


def settle(pricing: Pricing, master: Master, tau: float, grid: Array, deadline: float) -> Master:
    """Minimise at one tau, until climbs from the grid and the points find nothing above its level."""
    alpha, share = master.alpha, master.share
    for _ in range(ROUNDS):
        alpha, surface, weight = _newton(pricing, pricing.mu_of(share), alpha, tau, deadline)
        level = float(surface.value.max())
        if now() > deadline:
            break
        risen = sharpened(pricing, np.vstack([share[weight > 1e-6], grid]), alpha, CLIMB, SHARPEN)
        pool = np.vstack([risen, share])
        value = np.append(pricing.surface(pricing.mu_of(risen), alpha).value, surface.value)
        worth = np.flatnonzero(value > level - BELOW * tau)
        worth = worth[np.argsort(-value[worth], kind="stable")]
        share = distinct(pool[worth], NEAR * tau**0.5)
        if value.max() <= level + ABOVE * tau:
            break
    return Master(alpha, share)


def _newton(pricing: Pricing, mu: Array, alpha: Array, tau: float, deadline: float) -> tuple[Array, Surface, Array]:
    """Levenberg-Newton on alpha.P_Y + tau log sum exp(J/tau)."""
    surface = pricing.surface(mu, alpha)
    level, weight = _smoothed(pricing, alpha, surface, tau)
    damping = 1e-6 / max(pricing.beta, 1e-3)
    for _ in range(STEPS):
        gradient = pricing.p_y - weight @ surface.inner.x
        curvature = _hessian(surface.inner, weight, tau)
        scale = np.maximum(np.diag(curvature), pricing.p_y)
        step = -np.linalg.solve(curvature + np.diag(damping * scale + 1e-14), gradient)
        step = step * min(1.0, LONGEST / float(np.abs(step).max(initial=LONGEST)))
        promised = -0.5 * float(gradient @ step)
        trial = alpha + step
        there = pricing.surface(mu, trial, surface.inner.n)
        found, mixed = _smoothed(pricing, trial, there, tau)
        if found <= level - 0.1 * promised:
            damping = max(damping / 10.0, 1e-12)
            alpha, surface, level, weight = trial, there, found, mixed
        else:
            damping = min(damping * 10.0, 1e6)
        if promised <= STILL * tau or now() > deadline:
            break
    return alpha, surface, weight


def _smoothed(pricing: Pricing, alpha: Array, surface: Surface, tau: float) -> tuple[float, Array]:
    top = surface.value.max()
    weight = np.exp((surface.value - top) / tau)
    total = float(weight.sum())
    return float(alpha @ pricing.p_y + top + tau * np.log(total)), weight / total


def _hessian(inner: Inner, weight: Array, tau: float) -> Array:
    """sum_u w_u M_u + the covariance of x over tau, M = D - D1 1'D / 1'D1."""
    used = weight > 1e-9
    w, x, spread = weight[used], inner.x[used], inner.spread[used]
    total = np.maximum(spread.sum(axis=1), 1e-300)
    centred = (x - w @ x / w.sum()) * np.sqrt(w / tau)[:, None]
    row = spread * np.sqrt(w / total)[:, None]
    return np.asarray(np.diag(w @ spread) - row.T @ row + centred.T @ centred)
