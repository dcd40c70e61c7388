"""The beta from which on the trivial mechanism is optimal (docs/errata.md, "section IV-B").

With b_u = P(Y|u), IAS (1) is sum_u p(u) [KL(A b_u || P_S) - beta D_f(b_u)], A = P(S|Y), D_f(b) = sum_y b_y f(p_y/b_y),
and the b_u average to P_Y. So no mechanism is worth more than 0 once beta is at least

    sup over b of KL(A b || P_S) / D_f(b),

and below it one is: a symbol of small mass m at the best b gains m, and what it costs elsewhere is of the order of m^2
(unless f has a kink at 1: there the supremum is only an upper bound). Near b = P_Y the ratio is at most
(maximal correlation)^2 / f''(1), the local threshold. By data processing it is at most its own supremum for Y = S,
which P_S alone decides.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from cvxpriv.divergences import FDivergence
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.information import kl_divergence

from .problem import Problem

#: Below this D_f the ratio is rounding: there the local threshold tells.
NEAR = 1e-8
#: Number of candidates that an ascent starts from, and number of random ones among all.
ASCENTS, RANDOM = 8, 64
#: A value of f'' at 1 below this is 0.
FLAT = 1e-12
#: Candidates are moved this far to the prior before an ascent: a softmax has no zeros to start from.
INWARD = 1e-3
#: The weight of privacy where none is given: this share of the threshold from which on nothing is worth telling.
SHARE = 0.25
#: Largest number of symbols of Y for which the threshold is searched.
SEARCHED = 1000
#: The weight where there is no such threshold.
WITHOUT_THRESHOLD = 0.5
#: A threshold that is only rounding: S and Y are independent.
ROUNDING = 1e-9


@dataclass(frozen=True)
class CriticalBeta:
    """The beta from which on the trivial mechanism is optimal.

    Attributes
    ----------
    local : float
        (maximal correlation of S and Y)^2 / f''(1): below it even small departures from the trivial mechanism pay.
    searched : float
        The largest ratio KL(P_S|b || P_S) / D_f(b) found, at least `local`. A search: the supremum may be larger.
    ceiling : float
        The same for Y = S, which no P(Y|S) can exceed; searched on the simplex of S.
    posterior : ndarray, (|Y|,)
        The b where `searched` was found; P(Y) where it is `local`.
    sharp : bool
        Whether some mechanism is worth more than 0 below the supremum; False for f with a kink at 1.
    """

    local: float
    searched: float
    ceiling: float
    posterior: Array
    sharp: bool

    @property
    def exists(self) -> bool:
        """Whether there is a finite threshold that is not rounding."""
        return ROUNDING < self.searched < np.inf


def critical_beta(problem: Problem, seed: int = 0) -> CriticalBeta:
    """Return the local threshold of a problem and the searched ones; beta, |U| and the floor play no part."""
    f = problem.divergence
    local = local_threshold(maximal_correlation(problem.table.probabilities), f)
    found, posterior = largest_ratio(problem.p_s_given_y, problem.p_y, f, seed)
    if found <= local:
        found, posterior = local, problem.p_y
    # Y = S has maximal correlation 1.
    p_s = problem.p_s[problem.p_s > 0.0]
    ceiling = max(largest_ratio(np.eye(p_s.size), p_s, f, seed)[0], local_threshold(1.0, f), found)
    return CriticalBeta(local, found, ceiling, posterior, sharp=1.0 not in f.kinks)


def usual_beta(problem: Problem) -> float:
    """Return the weight of privacy where none is given: a share of the threshold, if there is one.

    For more than `SEARCHED` symbols of Y, where the search would take minutes, it is `WITHOUT_THRESHOLD`.
    """
    if problem.p_y.size > SEARCHED:
        return WITHOUT_THRESHOLD
    critical = critical_beta(problem)
    return SHARE * critical.searched if critical.exists else WITHOUT_THRESHOLD


def maximal_correlation(joint: Array) -> float:
    """The second singular value of P(s, y) / sqrt(P(s) P(y)), in [0, 1]; cells of empty symbols are left out."""
    p_s, p_y = joint.sum(axis=1), joint.sum(axis=0)
    alive = joint[np.ix_(p_s > 0.0, p_y > 0.0)]
    scaled = alive / np.sqrt(np.outer(p_s[p_s > 0.0], p_y[p_y > 0.0]))
    values = np.linalg.svd(scaled, compute_uv=False)
    return float(min(values[1], 1.0)) if values.size > 1 else 0.0


def local_threshold(correlation: float, divergence: FDivergence) -> float:
    """correlation^2 / f''(1): 0 where f has a kink at 1 (D_f is of first order there), inf where it is flat at 1."""
    if 1.0 in divergence.kinks or correlation == 0.0:
        return 0.0
    curvature = float(divergence.second_derivative(np.array([1.0]))[0])
    return correlation**2 / curvature if curvature > FLAT else np.inf


def ratio(b: Array, channel: Array, prior: Array, divergence: FDivergence) -> Array:
    """KL(channel b || channel prior) / D_f(b, prior) of each row of b, (n, |Y|); 0 where both are rounding.

    `b`: (n, |Y|), rows on the simplex. `channel`, `prior`: P(S|Y), (|S|, |Y|), and P(Y) > 0, (|Y|,).
    """
    gain = kl_divergence(b @ channel.T, channel @ prior, axis=1)
    price = np.asarray(divergence.between(b, np.broadcast_to(prior, b.shape), axis=1))
    flat = np.where(gain > NEAR, np.inf, 0.0)  # f = 0 around 1: the gain is free
    return np.asarray(np.divide(gain, price, out=flat, where=price > NEAR))


def largest_ratio(channel: Array, prior: Array, divergence: FDivergence, seed: int = 0) -> tuple[float, Array]:
    """Return the largest `ratio` that ascents from the best of many candidates find, and where."""
    channel = channel[channel @ prior > 0.0]
    rng = np.random.default_rng(seed)
    likelihood = channel * prior
    sharp = np.vstack([np.eye(prior.size), likelihood / likelihood.sum(axis=1, keepdims=True)])
    random = rng.dirichlet(np.full(prior.size, 0.5), size=RANDOM)
    candidates = np.vstack([sharp, 0.5 * (sharp + prior), random])
    values = ratio(candidates, channel, prior, divergence)
    best = int(values.argmax())
    top, where = float(values[best]), candidates[best]
    if np.isinf(top):
        return top, where
    for index in np.argsort(-values, kind="stable")[:ASCENTS]:
        value, b = _ascent(candidates[index], channel, prior, divergence)
        if value > top:
            top, where = value, b
    return top, where


def _ascent(start: Array, channel: Array, prior: Array, divergence: FDivergence) -> tuple[float, Array]:
    """Raise log KL - log D_f over b = softmax(z) by L-BFGS."""
    p_s = channel @ prior

    def fall(z: Array) -> tuple[float, Array]:
        b = np.maximum(softmax(z), np.finfo(float).tiny)
        share = channel @ b
        gain, price = float(kl_divergence(share, p_s)), float(divergence.between(b, prior))
        if not (gain > NEAR and NEAR < price < np.inf):
            return np.inf, np.zeros_like(z)
        slope = channel.T @ np.log(share / p_s) / gain - divergence.gradients(b, prior)[0] / price
        return float(np.log(price) - np.log(gain)), -b * (slope - b @ slope)

    z = np.log((1.0 - INWARD) * start + INWARD * prior)
    with np.errstate(all="ignore"):
        found = minimize(fall, z, jac=True, method="L-BFGS-B", bounds=[(-60.0, 60.0)] * z.size)
    b = softmax(found.x)
    return float(ratio(b[None], channel, prior, divergence)[0]), np.asarray(b)
