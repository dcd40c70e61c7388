"""The Gaussian mechanism, exactly: what one number, mu = sensitivity / scale, says about (epsilon, delta).

T adaptive releases of sensitivity D_t with noise of standard deviation s_t compose to one mechanism of
mu = sqrt(sum (D_t / s_t)^2), with no loss (Dong, Roth and Su, "Gaussian differential privacy", 2022). Its delta at a
given epsilon is the formula of Balle and Wang ("Improving the Gaussian mechanism", 2018).

This holds for noise **added** to a quantity whose sensitivity is bounded. Gaussian noise inside an objective is not
such a release: at epsilon = 0.5 a one-dimensional case of mu = 0.05 has delta = 0.035 where the formula says 0.0027.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from cvxpriv.errors import PrivacyError

__all__ = ["composed", "gaussian_delta", "gaussian_epsilon", "gaussian_mu", "noise_scale", "require_budget"]

#: How much wider an answer found by bisection is made, so that rounding never flatters a guarantee.
MARGIN = 1e-10
#: Noise beyond which there is no privacy to speak of, and below which no utility: where roots are looked for.
LEAST_MU, MOST_MU = 1e-12, 1e6


def require_budget(epsilon: float, delta: float) -> None:
    """Refuse a budget that is no (epsilon, delta) pair.

    Raises
    ------
    PrivacyError
        epsilon is not positive and finite, or delta is not in (0, 1).
    """
    numbers = [isinstance(one, (int, float, np.number)) and not isinstance(one, bool) for one in (epsilon, delta)]
    if not (numbers[0] and np.isfinite(epsilon) and epsilon > 0.0):
        raise PrivacyError(f"epsilon={epsilon!r} is no privacy budget: pass a finite number > 0, for example 1.0")
    if not (numbers[1] and 0.0 < delta < 1.0):
        raise PrivacyError(f"delta={delta!r} is not in (0, 1): pass a number far below 1/n, for example 1e-6")


def composed(mus: ArrayLike) -> float:
    """Return the mu of adaptive releases together: the root of the sum of squares."""
    return float(np.linalg.norm(np.asarray(mus, dtype=float)))


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the least delta for which a Gaussian release of `mu` is (epsilon, delta)-private.

    delta = Phi(-epsilon/mu + mu/2) - exp(epsilon) Phi(-epsilon/mu - mu/2), in logarithms, so that large epsilon and
    small delta stay exact.

    >>> round(gaussian_delta(1.0, 0.5), 8)
    0.00682959
    """
    if mu == 0.0:
        return 0.0
    if epsilon == 0.0:
        return float(2.0 * ndtr(mu / 2.0) - 1.0)
    log_first = log_ndtr(-epsilon / mu + mu / 2.0)
    log_second = epsilon + log_ndtr(-epsilon / mu - mu / 2.0)
    return float(np.exp(log_first) * -np.expm1(min(log_second - log_first, 0.0)))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Return the least epsilon >= 0 for which a Gaussian release of `mu` is (epsilon, delta)-private.

    >>> round(gaussian_epsilon(1e-5, 0.5), 5)
    1.99309
    """
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    # The bound of zero-concentrated privacy lies above.
    most = mu**2 / 2.0 + mu * np.sqrt(2.0 * np.log(1.0 / delta)) + 1.0
    root = brentq(lambda epsilon: _log_delta(epsilon, mu) - np.log(delta), 0.0, most, xtol=1e-14, rtol=1e-14)
    return float(root * (1.0 + MARGIN))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu that is (epsilon, delta)-private.

    Raises
    ------
    PrivacyError
        See `require_budget`.
    """
    require_budget(epsilon, delta)
    root = brentq(
        lambda log_mu: _log_delta(epsilon, float(np.exp(log_mu))) - np.log(delta),
        np.log(LEAST_MU),
        np.log(MOST_MU),
        xtol=1e-14,
        rtol=1e-14,
    )
    return float(np.exp(root) * (1.0 - MARGIN))


def noise_scale(sensitivity: float, epsilon: float, delta: float, releases: int = 1) -> float:
    """Return the least standard deviation with which `releases` of one sensitivity are (epsilon, delta)-private.

    Parameters
    ----------
    sensitivity : float
        The most, in Euclidean norm, by which one neighbour moves one release.
    epsilon, delta : float
        For all releases together.
    releases : int

    Raises
    ------
    PrivacyError
        The budget is none, or the sensitivity is not finite and positive: noise cannot hide what is unbounded.

    Examples
    --------
    >>> round(noise_scale(1.0, epsilon=1.0, delta=1e-5), 4)
    3.7306
    """
    if not (np.isfinite(sensitivity) and sensitivity > 0.0):
        raise PrivacyError(
            f"sensitivity={sensitivity!r} is not a bound: clip what is released, or pass a finite public bound > 0"
        )
    if isinstance(releases, bool) or not isinstance(releases, (int, np.integer)) or releases < 1:
        raise PrivacyError(f"releases={releases!r} is not a count: pass a whole number >= 1")
    return float(sensitivity * np.sqrt(releases) / gaussian_mu(epsilon, delta))


def _log_delta(epsilon: float, mu: float) -> float:
    if epsilon == 0.0:
        return float(np.log(2.0 * ndtr(mu / 2.0) - 1.0))
    log_first = log_ndtr(-epsilon / mu + mu / 2.0)
    log_ratio = epsilon + log_ndtr(-epsilon / mu - mu / 2.0) - log_first
    with np.errstate(divide="ignore"):
        return float(log_first + np.log(-np.expm1(min(log_ratio, 0.0))))
