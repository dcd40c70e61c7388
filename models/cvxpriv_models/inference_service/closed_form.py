"""The exact update of every block of IAS Algorithm 1, batched over starts and vectorised over u.

=========  =====================  ====================================================
key        shape                  meaning
=========  =====================  ====================================================
mechanism  (B, |Y|, |U|)          P(U|Y), rows sum to 1
q          (B, |U|)               ADMM's p(u), which equals P_Y' P(U|Y) in the limit
lam        (B, |U|)               multiplier of q = P_Y' P(U|Y)
posterior  (B, |S|, |U|)          P(S|U)
=========  =====================  ====================================================

One sign convention: L = F + lam . delta - (rho/2) |delta|^2 with delta = q - P_Y' P(U|Y), and lam <- lam - rho delta.
The paper's (19) adds rho delta, which climbs and diverges (docs/errata.md).

The P_U block (21) falls apart by symbols: beta sum_y p(y) f_q(p(u|y), q) + rho q = lam + rho m, clipped at q = 0. It
is solved by Newton's method from the last q, bracketed where that does not settle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvxpriv.bounds import linear_pieces
from cvxpriv.divergences import FDivergence
from cvxpriv.divergences.sides import TINY, Slopes, slopes_of
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.roots import Rows, increasing_root

from .measures import cost as cost
from .simplex_rows import solve_rows

if TYPE_CHECKING:
    from .problem import Problem


def posterior(mechanism: Array, p_y: Array, p_s_given_y: Array) -> Array:
    """P(S|U) of IAS (9), (..., |S|, |U|): normalised by the mechanism's own p(u), not by ADMM's.

    A symbol that is never sent says nothing: its column is P(S).
    """
    joint = (p_s_given_y * p_y) @ mechanism
    total = joint.sum(axis=-2, keepdims=True)
    if total.min() > 0.0:
        joint /= total
        return np.asarray(joint)
    prior = (p_s_given_y @ p_y)[:, None]
    return np.asarray(np.where(total > 0.0, joint / np.where(total > 0.0, total, 1.0), prior))


def row(problem: Problem, index: int, state: Values, rho: float) -> Array:
    """P(U|y_i) of IAS (20), (B, |U|): the maximiser of L over row i, everything else as it stands."""
    p_y = problem.p_y
    others = p_y @ state["mechanism"] - p_y[index] * state["mechanism"][:, index]
    price = cost(state["posterior"], problem.p_s_given_y[:, index : index + 1])[:, 0]
    kappa = rho * (state["q"] - others) - state["lam"] - price
    start, weight = state["mechanism"][:, index], rho * float(p_y[index])
    return solve_rows(problem.divergence, start, kappa, state["q"], problem.beta, weight, problem.floor)


def marginal(problem: Problem, state: Values, rho: float) -> Array:
    """q of IAS (21), (B, |U|): the maximiser of L over q >= 0, everything else as it stands."""
    level = state["lam"] + rho * (problem.p_y @ state["mechanism"])
    return solve_marginal(problem.divergence, state["q"], state["mechanism"], level, problem.p_y, problem.beta, rho)


def multiplier(problem: Problem, state: Values, rho: float) -> Array:
    """lam - rho delta, (B, |U|): IAS (19) with the sign that descends."""
    return np.asarray(state["lam"] - rho * (state["q"] - problem.p_y @ state["mechanism"]))


def one_pass(problem: Problem, state: Values, rho: float) -> dict[str, Array]:
    """Rows 0 to |Y| - 1, then q, then lam, each seeing the ones before it; fused.

    Returns: The new mechanism, q and lam; what :func:`row`, :func:`marginal` and :func:`multiplier` give in turn.
    """
    p_y, q, lam = problem.p_y, state["q"], state["lam"]
    mechanism = state["mechanism"].copy()
    price = cost(state["posterior"], problem.p_s_given_y)
    m = p_y @ mechanism
    tension = rho * q - lam
    for index, weight in enumerate(p_y.tolist()):
        old = mechanism[:, index]
        m -= weight * old
        kappa = tension - rho * m
        kappa -= price[:, index]
        new = solve_rows(problem.divergence, old, kappa, q, problem.beta, rho * weight, problem.floor)
        mechanism[:, index] = new
        m += weight * new
    m = p_y @ mechanism
    q = solve_marginal(problem.divergence, q, mechanism, lam + rho * m, p_y, problem.beta, rho)
    return {"mechanism": mechanism, "q": q, "lam": lam - rho * (q - m)}


QUICK_LIMIT = 25
SMALL_STEP = 1e-8
#: A smaller q is 0: the p(u|y) of a row that follows it would underflow, where p f(q/p) may be infinite.
LEAST = 1e10 * TINY
#: The largest slope of L at a root, as a part of its terms.
NEAR = 1e-6
KINK_TOLERANCE = 1e-12


def solve_marginal(
    divergence: FDivergence, start: Array, mechanism: Array, level: Array, p_y: Array, beta: float, rho: float
) -> Array:
    """Solve the P_U block.

    `start`, (B, |U|): First point of Newton's method, usually the last q.
    `mechanism`: (B, |Y|, |U|).
    `level`, (B, |U|): lam + rho m.
    `p_y`: (|Y|,).
    Returns: q >= 0, (B, |U|); its sum is left to the multiplier, as in the paper.
    """
    slopes = slopes_of(divergence)
    with np.errstate(all="ignore"):
        pieces = linear_pieces.pieces_of(divergence)
        if pieces is not None:
            return linear_pieces.marginal_roots(pieces, mechanism, level, p_y, beta, rho)
        settled = False
        if divergence.smooth:
            q, settled = _quick(slopes, start, mechanism, level, p_y, beta, rho)
        if not settled:
            q = _bracketed(divergence, mechanism, level, p_y, beta, rho)
    q = np.where(q > LEAST, q, 0.0)
    if np.isinf(divergence.limit_slope):  # p f(q/p) is then infinite at p = 0 for any q > 0
        q = np.where((mechanism == 0.0).any(axis=-2), 0.0, q)
    return q


def _quick(
    slopes: Slopes, q: Array, mechanism: Array, level: Array, p_y: Array, beta: float, rho: float
) -> tuple[Array, bool]:
    """Newton from the last q, in log(q + shift): shift 0 where f_q is steep at 0, else p(u)."""
    shift = 0.0 if slopes.steep_q else np.maximum(p_y @ mechanism, TINY)
    bottom = TINY if slopes.steep_q else 0.0
    mechanism = np.maximum(mechanism, TINY)
    weights = beta * p_y
    q = np.maximum(q, TINY)
    for _ in range(QUICK_LIMIT):
        slope, curvature = slopes.in_q(mechanism, q[..., None, :])
        excess = weights @ slope
        excess += rho * q
        excess -= level
        base = q + shift
        step = excess / ((weights @ curvature + rho) * base)
        after = np.maximum(base * np.exp(-np.clip(step, -5.0, 20.0)) - shift, bottom)
        moved = np.abs(after - q)
        moved /= base
        q = after
        if moved.max() <= SMALL_STEP:
            # At p(u|y) = 0 the curvature is without bound near q = 0: a step is then short, far from the root.
            terms = weights @ np.abs(slope) + rho * q + np.abs(level)
            near = (np.abs(excess) <= NEAR * terms) | ((q <= TINY) & (excess >= 0.0))
            return q, bool(near.all())
    return q, False


def _bracketed(divergence: FDivergence, mechanism: Array, level: Array, p_y: Array, beta: float, rho: float) -> Array:
    """The root in log q, at most TINY is 0; a kink is met exactly."""
    in_q = slopes_of(divergence).in_q
    columns = np.maximum(np.moveaxis(mechanism, -2, 0).reshape(p_y.size, -1), TINY)
    level_of = level.ravel()
    flat = float(divergence.derivative(np.ones(1))[0])
    high = np.maximum(columns.max(axis=0), (level_of - beta * flat) / rho) * (1.0 + 1e-9)
    positive = beta * (p_y @ in_q(columns, np.full_like(columns, TINY))[0]) + rho * TINY < level_of
    columns, level_of, high = columns[:, positive], level_of[positive], np.maximum(high[positive], TINY)

    def excess(log_q: Array, rows: Rows) -> tuple[Array, Array]:
        q = np.exp(log_q)
        slope, curvature = in_q(columns[:, rows], q[None, :])
        return beta * (p_y @ slope) + rho * q - level_of[rows], (beta * (p_y @ curvature) + rho) * q

    q = np.zeros(level.size)
    least = np.full(high.shape, np.log(TINY))
    q[positive] = np.exp(increasing_root(excess, least, np.log(high), np.log(p_y @ columns)))
    return _at_kinks(divergence, q.reshape(level.shape), mechanism)


def _at_kinks(divergence: FDivergence, q: Array, mechanism: Array) -> Array:
    """Move a q that is a kink up to rounding onto it, q = kink * p(u|y)."""
    for kink in divergence.kinks:
        at = kink * mechanism
        nearest = np.abs(at - q[..., None, :]).argmin(axis=-2)
        value = np.take_along_axis(at, nearest[..., None, :], axis=-2)[..., 0, :]
        q = np.where(np.abs(value - q) <= KINK_TOLERANCE * q, value, q)
    return q
