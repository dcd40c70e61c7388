"""The exact updates of SHARING, as functions of arrays; shapes are (N,) for a value per sample, (d,) for coefficients.

S = sum_m D_m x_m; r is the penalty of the constraint S = z (rho, or rho/M where the parties average).
"""

import numpy as np

from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import Loss, Penalty
from cvxpriv.penalties.loss_steps import in_pieces

from .factor import Factor


def party(
    factor: Factor, target: Array, y: Array, rho: float | Array, ridge: float, tau: float = 0.0, x: Array | None = None
) -> Array:
    """Return x_m of (6) for R_m = (ridge/2)||x||^2: one linear system. Here and below rho may be one a sample, (N,).

    It is the minimiser of (ridge/2)||x||^2 + y'D x + (rho/2)||D x - target||^2 + (tau/2)||x - x_m||^2.

    `target`, (N,): Target of the party's share, which depends on the scheme.
    """
    aim = in_pieces(lambda target, y, rho: rho * target - y)(target, y, rho)
    return factor.minimiser(aim, rho, ridge, tau, x)


def party_linearised(
    factor: Factor, penalty: Penalty, aim: Array, y: Array, rho: float | Array, lam: float, tau: float, x: Array
) -> Array:
    """Return x_m of (6) with the square replaced by its tangent at x, and held by tau: one proximal step.

    It is (6) with the proximal term (1/2)||. - x||^2 in tau I - rho D'D, and exact for every penalty.

    `aim`, (N,): The target minus D_m x.
    """
    return penalty.prox(x + factor.pull(rho * aim - y) / tau, lam / tau)


def consensus(
    loss: Loss, total: Array, y: Array, labels: Array, weights: Array, r: float | Array, start: Array
) -> Array:
    """Return z of (7): the minimiser of sum_i weight_i l(z_i) - y'z + (r/2)||S - z||^2, one sample at a time.

    `total`, (N,): The total S. `start`, (N,): First guess: the last z.
    """
    return loss.prox(total + y / r, labels, weights, r, start)


def dual(y: Array, total: Array, z: Array, r: float | Array) -> Array:
    """Return y of (8): y + r (S - z)."""
    return np.asarray(y + r * (total - z))
