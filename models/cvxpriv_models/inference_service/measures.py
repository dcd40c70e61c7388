"""The measures of a mechanism: accuracy, leakage, and F of IAS (14) at any posterior, over leading axes.

`mechanism` is P(U|Y), (..., |Y|, |U|); `p_y` is (|Y|,); `p_s_given_y` is (|S|, |Y|). All in nats.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from cvxpriv.divergences import FDivergence
from cvxpriv.divergences.sides import TINY
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.information import mutual_information

#: Difference of rows that count as equal.
SAME_ROWS = 1e-15


def cost(posterior: Array, p_s_given_y: Array) -> Array:
    """D_yu = KL(P_S|y || P_S|u), (..., |Y|, |U|); inf where S = s is possible at y and impossible at u."""
    price = -(p_s_given_y.T @ np.log(np.maximum(posterior, TINY)))
    price -= entr(p_s_given_y).sum(axis=0)[:, None]
    impossible = posterior == 0.0
    if impossible.any():
        price = np.where((p_s_given_y > 0.0).T.astype(float) @ impossible > 0.0, np.inf, price)
    return np.asarray(price)


def accuracy(mechanism: Array, p_y: Array, p_s_given_y: Array) -> Array:
    """I(S;U), (...); exactly 0 where all rows are one."""
    joint = (p_s_given_y * p_y) @ mechanism
    return np.where(_silent(mechanism), 0.0, mutual_information(joint, axis=(-2, -1)))


def information(p_y: Array, p_s_given_y: Array) -> float:
    """I(S;Y), the most that any mechanism lets through."""
    return mutual_information(p_s_given_y * p_y)


def leakage(mechanism: Array, p_y: Array, divergence: FDivergence, q: Array | None = None) -> Array:
    """E[f(q(u)/p(u|y))], (...); q, (..., |U|), is the mechanism's own p(u) unless given.

    Where all rows are one it is f(1) and nothing that rounding made: an enormous beta would multiply that.
    """
    marginal = p_y @ mechanism if q is None else q
    found = np.asarray(divergence.terms(mechanism, marginal[..., None, :]).sum(axis=-1) @ p_y)
    if q is None and (silent := _silent(mechanism)).any():
        found = np.where(silent, divergence.f(np.ones(1))[0], found)
    return np.asarray(found + 0.0)  # -log 1 is -0.0


def surrogate(
    mechanism: Array, posterior: Array, p_y: Array, p_s_given_y: Array, beta: float, divergence: FDivergence
) -> Array:
    """F of IAS (14) at a posterior P(S|U), (..., |S|, |U|), that need not be the mechanism's own, (...).

    It is at most IAS (1), with equality at the posterior of IAS (9): the convex-concave procedure climbs on it.
    """
    return np.asarray(
        information(p_y, p_s_given_y)
        - _expected_cost(mechanism, posterior, p_y, p_s_given_y)
        - beta * leakage(mechanism, p_y, divergence)
    )


def _silent(mechanism: Array) -> NDArray[np.bool_]:
    """Whether the rows of a mechanism are one, but for rounding, (...)."""
    return np.asarray(np.abs(mechanism - mechanism[..., :1, :]).max(axis=(-2, -1)) <= SAME_ROWS)


def _expected_cost(mechanism: Array, posterior: Array, p_y: Array, p_s_given_y: Array) -> Array:
    """sum_y p(y) sum_u p(u|y) KL(P_S|y || P_S|u), (...); where p(u|y) is 0 the cost does not count."""
    price = np.where(mechanism > 0.0, cost(posterior, p_s_given_y), 0.0)
    return np.asarray((mechanism * price).sum(axis=-1) @ p_y)
