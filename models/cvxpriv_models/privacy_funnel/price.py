"""The price of a mechanism: how much a better one could gain, at the mechanism's own multipliers.

At a mechanism with joint table u and posteriors w, g_ij = (A' log t_j)_i - lam log w_ij is the derivative of the
Lagrangian by u_ij. Multipliers nu_i = min_j g_ij make every column's phi(w_j) = sum_i w_ij (g_ij - nu_i) >= 0, and

    I(S;Y) - bound(nu, lam) = sum_j r_j phi(w_j) + lam (I(X;Y) - R) - min(0, min over all posteriors of phi).

All three terms vanish at the optimum. The first two are the usual residual. The third prices every posterior, not only
those that are in use: a mechanism with an empty symbol, or with fewer symbols than it may have, can pass the first two
and still be far from stationary.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

from .columns import utility
from .pricing import FunnelPricing
from .problem import Problem

#: Multipliers tried before the best is refined.
GRID = 257
#: Multipliers whose usual residual is this near to the least are priced too: deterministic mechanisms have many.
ALIKE = 1e-9
#: About how many of those.
CANDIDATES = 8
#: Passes of local pricing with new random starts.
PASSES = 2
#: A phi above minus this is not negative.
NONE = 1e-15


@dataclass(frozen=True)
class Price:
    """The parts of a mechanism's distance from a first-order point, in nats.

    `columns`: sum_j r_j phi(w_j): how far the columns in use are from being stationary.
    `complementarity`: lam (I(X;Y) - R).
    `free`: -min phi over all posteriors, as far as local pricing finds it: what a new column could gain; >= 0.
    `posterior`: Point where phi is least.
    `nu`: The multipliers.
    """

    columns: float
    complementarity: float
    free: float
    posterior: Array
    lam: float
    nu: Array

    @property
    def residual(self) -> float:
        """The sum of the three parts: zero only where no posterior pays."""
        return self.columns + self.complementarity + self.free


def price(joint: ArrayLike, mechanism: ArrayLike, rate: float, lam: float | None = None, seed: int = 0) -> Price:
    """Price a mechanism at its best multipliers.

    `joint`: P(S, X).
    `mechanism`: P(Y|X).
    `rate`: R in nats.
    `lam`: The multiplier of the rate; None takes the one with the smallest residual.
    `seed`: Seed of local pricing.
    Raises DataError: The table is no joint distribution.
    Raises ModelError: The mechanism has another number of rows than X has symbols.

    Examples
    --------
    The identity tells more than it has to at half the rate.

    >>> joint = np.array([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
    >>> price(joint, np.eye(3), rate=0.5).residual > 0.01
    True
    """
    problem = Problem.of(np.asarray(joint, dtype=np.float64), rate, "nats", None)
    held = np.asarray(mechanism, dtype=np.float64)
    if held.ndim != 2 or held.shape[0] != len(problem.p_x):
        raise ModelError(f"mechanism has shape {held.shape}: pass P(Y|X) with {len(problem.p_x)} rows")
    pricing = FunnelPricing(problem.table.probabilities, problem.rate, seed)
    slack = max(utility(problem.p_x, held) - problem.rate, 0.0)
    u = problem.p_x[:, None] * held
    u = u[:, u.sum(axis=0) > 0.0]
    w, some = u / u.sum(axis=0), u > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        log_w, t = np.log(w), pricing.p_s_given_x @ w
        rise = pricing.p_s_given_x.T @ np.where(t > 0.0, np.log(t), 0.0)

    def in_use(lam: float) -> tuple[float, Array]:
        """sum_j r_j phi(w_j), and nu."""
        g = np.where(some, rise - lam * np.where(some, log_w, 0.0), np.inf)
        nu = g.min(axis=1)
        return float(np.sum(u[some] * (g - nu[:, None])[some])), nu

    def usual(lam: float) -> float:
        return in_use(lam)[0] + lam * slack

    def at(lam: float) -> Price:
        columns, nu = in_use(lam)
        duals, pricing.rng = np.append(nu, -lam), np.random.default_rng(seed)
        found = [np.eye(len(nu)), w, *(pricing.local_search(duals, w, -NONE).columns for _ in range(PASSES))]
        posteriors = np.concatenate(found, axis=1)
        values = pricing.value(posteriors, duals)
        return Price(columns, lam * slack, max(-float(values.min()), 0.0), posteriors[:, values.argmin()], lam, nu)

    if lam is not None:
        return at(lam)
    grid = np.linspace(0.0, 1.0, GRID)
    values = np.array([usual(one) for one in grid])
    best = int(values.argmin())
    ends = (grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)])
    refined = float(minimize_scalar(usual, bounds=ends, method="bounded", options={"xatol": 1e-12}).x)
    alike = grid[values <= values.min() + ALIKE]
    candidates = [refined, *alike[:: max(1, len(alike) // CANDIDATES)]]
    return min((at(float(one)) for one in candidates), key=lambda one: one.residual)
