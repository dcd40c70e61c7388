"""The exact Gaussian mechanism: one number, mu = sensitivity / scale, determines every (epsilon, delta).

T adaptive releases of sensitivity D_t with noise of standard deviation s_t compose to one mechanism of
mu = sqrt(sum (D_t / s_t)^2), with no loss (Dong, Roth and Su, "Gaussian differential privacy", 2022). Its delta at a
given epsilon is the formula of Balle and Wang ("Improving the Gaussian mechanism", 2018).

This holds for noise **added** to a quantity whose sensitivity is bounded. Gaussian noise inside an objective is not
such a release: at epsilon = 0.5 a one-dimensional case of mu = 0.05 has delta = 0.035 where the formula says 0.0027.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr

from cvxpriv.errors import PrivacyError
from cvxpriv.numerics.arguments import is_number
from cvxpriv.numerics.arrays import Array

#: Roots are found for a delta smaller by this part, times 1 + mu, so that rounding never flatters a guarantee:
#: `gaussian_delta` is right to 1e-11 of itself, but for large mu, where epsilon/mu and mu/2 cancel.
MARGIN = 1e-10
#: The range of mu in which roots are searched: beyond it there is no utility, or no privacy worth the name.
LEAST_MU, MOST_MU = 1e-15, 1e6
#: Largest mu for which delta is computed as a short integral: as a difference of two tails it would be mostly rounding.
NARROW = 1.0
#: Distance in standard deviations at which a tail is 1 up to 1e-270.
FAR = 35.0
#: Replacement for the rounding of a tail's integrand at 1e8 standard deviations, where delta is 0 in doubles.
LEAST = 1e-300
#: Nodes and weights of [-1, 1]: sixteen integrate a tail over a width of 1 to rounding.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def require_budget(epsilon: float, delta: float | None, pure: bool = False) -> None:
    """Refuse a budget that is not a valid (epsilon, delta) pair; with `pure` a delta of None is one as well.

    Raises PrivacyError: epsilon is not positive and finite, or delta is not in (0, 1).
    """
    if not (is_number(epsilon) and np.isfinite(epsilon) and epsilon > 0.0):
        raise PrivacyError(f"epsilon={epsilon!r} is no privacy budget: pass a finite number > 0, for example 1.0")
    if not (pure and delta is None) and not (is_number(delta) and 0.0 < delta < 1.0):
        raise PrivacyError(f"delta={delta!r} is not in (0, 1): pass a number far below 1/n, for example 1e-6")


def composed(mus: ArrayLike) -> float:
    """Return the mu of adaptive releases together: the root of the sum of squares."""
    return math.hypot(*np.asarray(mus, dtype=float).tolist())


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the least delta for which a Gaussian release of `mu` is (epsilon, delta)-private.

    delta = Phi(-epsilon/mu + mu/2) - exp(epsilon) Phi(-epsilon/mu - mu/2), without the cancellation and the overflow
    of that formula: see `gaussian_deltas`.

    >>> round(gaussian_delta(1.0, 0.5), 8)
    0.00682959
    """
    return float(gaussian_deltas(np.array([epsilon]), mu)[0])


def gaussian_deltas(epsilons: Array, mu: float) -> Array:
    """Return `gaussian_delta` of several epsilons, (k,), which may be negative: the delta of a loss above epsilon.

    Let a, b = epsilon/mu -+ mu/2, phi the normal density, and R(x) = Phi(-x)/phi(x). As exp(epsilon) phi(b) = phi(a),
    delta = phi(a) (R(a) - R(b)), which is phi(a) times the integral of 1 - x R(x) from a to b.
    """
    if mu == 0.0:
        return np.maximum(-np.expm1(np.minimum(epsilons, 0.0)), 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.exp(_log_deltas(epsilons / mu, mu)))


def gaussian_epsilon(*, delta: float, mu: float) -> float:
    """Return the least epsilon >= 0 for which a Gaussian release of `mu` is (epsilon, delta)-private.

    >>> round(gaussian_epsilon(delta=1e-5, mu=0.5), 5)
    1.99309
    """
    return _root_epsilon(float(delta), float(mu))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu of a Gaussian release that is (epsilon, delta)-private.

    Raises PrivacyError: See `require_budget`.
    """
    require_budget(epsilon, delta)
    return _root_mu(float(epsilon), float(delta))


@lru_cache(maxsize=4096)
def _root_epsilon(delta: float, mu: float) -> float:
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    wanted = np.log(delta) - MARGIN * (1.0 + mu)
    most = mu / 2.0 + np.sqrt(-2.0 * wanted)  # in units of mu; zero-concentrated privacy says so much
    root = _root(lambda ratio: _log_delta(ratio, mu) - wanted, most, 1e-15, f"mu={mu:g}, delta={delta:g}", 0.0)
    return float(root * mu)


@lru_cache(maxsize=4096)
def _root_mu(epsilon: float, delta: float) -> float:
    wanted = np.log(delta) - MARGIN * (1.0 + np.sqrt(epsilon))

    def excess(log_mu: float) -> float:
        mu = float(np.exp(log_mu))
        return float(max(_log_delta(epsilon / mu, mu), -1e6) - wanted)  # -inf far below

    asked = f"epsilon={epsilon:g}, delta={delta:g}"
    return float(np.exp(_root(excess, float(np.log(MOST_MU)), 1e-14, asked, float(np.log(LEAST_MU)))))


def _root(excess: Callable[[float], float], high: float, tolerance: float, asked: str, low: float) -> float:
    """Return where a function of a budget is 0.

    Raises PrivacyError: The budget is so large or so small that doubles do not hold what it comes to.
    """
    with np.errstate(all="ignore"):
        ends = excess(low), excess(high)
        if np.isfinite([low, high, *ends]).all() and min(ends) <= 0.0 <= max(ends):
            try:
                return float(brentq(excess, low, high, xtol=tolerance, rtol=tolerance))
            except ValueError:  # not a number on the way
                pass
    raise PrivacyError(f"{asked} is beyond what doubles hold: pass a budget such as epsilon=1, delta=1e-6")


def _log_delta(ratio: float, mu: float) -> float:
    with np.errstate(divide="ignore"):
        return float(_log_deltas(np.array([ratio]), mu)[0])


def _log_deltas(ratios: Array, mu: float) -> Array:
    near, far = ratios - mu / 2.0, ratios + mu / 2.0
    log_first = log_ndtr(-near)
    narrow = (mu <= NARROW) & (near > -FAR)
    with np.errstate(over="ignore", invalid="ignore"):
        log_ratio = np.minimum(ratios * mu + log_ndtr(-far) - log_first, 0.0)
        found = np.asarray(log_first + np.log(-np.expm1(log_ratio)))
        x = ratios[narrow, None] + 0.5 * mu * NODES
        mills = np.sqrt(np.pi / 2.0) * erfcx(x / np.sqrt(2.0))
        rest = np.fmax(1.0 - x * mills, LEAST)
    inside = 0.5 * mu * rest @ WEIGHTS
    found[narrow] = -0.5 * near[narrow] ** 2 - 0.5 * np.log(2.0 * np.pi) + np.log(inside)
    return found
