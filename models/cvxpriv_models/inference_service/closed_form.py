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
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvxpriv.numerics.arrays import Array, Values

from .marginal_roots import solve_marginal
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
