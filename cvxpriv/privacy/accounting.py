"""The guarantee of a sequence of releases together, by every rule in use, side by side.

The exact composition is the guarantee (`composition`). The other rules serve for comparison: each is a valid bound, and
none is below the exact one. Releases that are all of a pure epsilon have another guarantee besides, without a delta:
their sum. A paper's own formula may stand beside them, marked with whether it holds.

A release of pure epsilon is dominated by randomised response of that epsilon: any statement about it and its
consequences follows from one biased coin, whose privacy loss is epsilon or -epsilon (Kairouz, Oh and Viswanath, "The
composition theorem for differential privacy", 2015). Gaussian releases together are one Gaussian release. So a ledger
of both kinds is dominated by coins and one Gaussian number, and the delta of these is a finite sum: no distribution of
losses has to be discretised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit

from cvxpriv.errors import PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import counted
from cvxpriv.privacy.gaussian import composed, gaussian_deltas, gaussian_epsilon, gaussian_mu

#: Largest number of steps of the grid on which unequal epsilons are rounded up: for coins alone, and beside a Gaussian
#: release.
CELLS, CELLS_BESIDE = 2**18, 2**14
#: Largest number of additions in composing them.
ADDITIONS = 2**27
#: Relative amount by which a requested delta is lowered: the sums are right to 1e-12.
MARGIN = 1e-10


def coin_losses(epsilons: Array, cells: int = CELLS) -> tuple[Array, Array]:
    """Return the losses of coins of these epsilons together, ascending, and their probabilities under the true data.

    Equal epsilons are exact. Others are rounded up to a grid of `cells` steps, or fewer where there are very many: each
    by less than one step, so that the bound stays a bound.
    """
    kept = epsilons[epsilons > 0.0]
    if kept.size == 0:
        return np.zeros(1), np.ones(1)
    step = float(kept[0])
    if not (kept == step).all():
        step = float(kept.sum()) / min(cells, max(ADDITIONS // kept.size, kept.size))
    counts = np.ceil(kept / step * (1.0 - 1e-13)).astype(int)
    chances: Array = np.ones(1)
    for count in counts:
        up = float(expit(count * step))
        longer = np.zeros(chances.size + count)
        longer[count:] = up * chances
        longer[: chances.size] += float(expit(-count * step)) * chances
        chances = longer
    return np.asarray(step * (2.0 * np.arange(chances.size) - (chances.size - 1))), chances


def optimal_delta(epsilon: float, epsilons: ArrayLike, mu: float = 0.0) -> float:
    """Return the least delta of releases of pure `epsilons` and a Gaussian one of `mu` together.

    It is the sum over the coins' losses l, of probability p, of p times the Gaussian delta at epsilon - l.

    Examples
    --------
    One coin, at no epsilon: the distance in total variation, (e - 1)/(e + 1).

    >>> round(optimal_delta(0.0, [1.0]), 6)
    0.462117
    """
    losses, chances = _coins(epsilons, mu)
    return _delta(epsilon, losses, chances, mu)


def optimal_epsilon(delta: float, epsilons: ArrayLike, mu: float = 0.0) -> float:
    """Return the least epsilon >= 0 of the same releases at `delta`.

    Examples
    --------
    >>> round(optimal_epsilon(1e-6, [0.05] * 50), 3)
    1.489
    """
    losses, chances = _coins(epsilons, mu)
    wanted = delta * (1.0 - MARGIN)
    if _delta(0.0, losses, chances, mu) <= wanted:
        return 0.0
    most = float(losses[-1]) + gaussian_epsilon(delta=wanted, mu=mu)
    if _delta(most, losses, chances, mu) >= wanted:  # nothing but the sum serves
        return most
    root = brentq(
        lambda epsilon: _delta(epsilon, losses, chances, mu) - wanted, 0.0, most, xtol=1e-300, rtol=1e-14, maxiter=2000
    )
    return min(float(root) * (1.0 + MARGIN), most)


def mu_beside(epsilon: float, delta: float, epsilons: ArrayLike) -> float:
    """Return the largest mu of a Gaussian release that is (epsilon, delta)-private together with pure `epsilons`.

    It is 0 where these leave nothing.

    Examples
    --------
    Beside a coin of 0.5 more is left of (1, 1e-5) than for a Gaussian release of (0.5, 1e-5), which adding up allows:

    >>> round(mu_beside(1.0, 1e-5, [0.5]) / gaussian_mu(0.5, 1e-5), 2)
    1.03
    """
    losses, chances = _coins(epsilons, 1.0)
    # So that `optimal_epsilon` of the answer, with its own margins, is at most epsilon.
    inside, wanted = epsilon * (1.0 - 2.0 * MARGIN), delta * (1.0 - 3.0 * MARGIN)
    most = gaussian_mu(epsilon, delta)
    least = gaussian_mu(max(inside - float(losses[-1]), 1e-9 * epsilon), wanted) / 2.0

    def excess(mu: float) -> float:
        return _delta(inside, losses, chances, mu) - wanted

    if excess(least) > 0.0:  # unequal epsilons that leave less than the grid on which they are rounded up
        return 0.0
    return float(brentq(excess, least, most, xtol=1e-300, rtol=1e-14)) if excess(most) > 0.0 else most


def zcdp_epsilon(*, rho: float, delta: float) -> float:
    """Return the epsilon of rho-zCDP at `delta`, by the best order of the Renyi bound (Canonne et al. 2020)."""
    if rho == 0.0:
        return 0.0

    def bound(log_excess: float) -> float:
        order = 1.0 + np.exp(log_excess)
        return float(rho * order + np.log(1.0 / (order * delta)) / (order - 1.0) + np.log1p(-1.0 / order))

    best = minimize_scalar(bound, bounds=(-20.0, 20.0), method="bounded", options={"xatol": 1e-10})
    return max(float(best.fun), 0.0)


def advanced_composition(epsilons: ArrayLike, slack: float) -> float:
    """Return the epsilon of adaptive releases together at an extra delta of `slack` (Dwork, Rothblum, Vadhan 2010).

    sqrt(2 log(1/slack) sum e_t^2) + sum e_t (exp(e_t) - 1).
    """
    each = np.asarray(epsilons, dtype=float)
    with np.errstate(over="ignore"):  # beyond e^709 the rule says inf
        return float(np.sqrt(2.0 * np.log(1.0 / slack) * np.sum(each**2)) + np.sum(each * np.expm1(each)))


def _coins(epsilons: ArrayLike, mu: float) -> tuple[Array, Array]:
    each = np.atleast_1d(np.asarray(epsilons, dtype=float))
    return coin_losses(each, CELLS if mu == 0.0 else CELLS_BESIDE)


def _delta(epsilon: float, losses: Array, chances: Array, mu: float) -> float:
    if mu == 0.0:
        above = losses > epsilon
        return float(np.sum(chances[above] * -np.expm1(epsilon - losses[above])))
    return float(np.sum(chances * gaussian_deltas(epsilon - losses, mu)))


EXACT = "exact Gaussian composition"
TOGETHER = "exact, Gaussian and pure"
OPTIMAL = "exact, pure at a delta"
ADDED = "adding up pure epsilons"
CONCENTRATED = "zero-concentrated (zCDP)"
ADVANCED = "advanced composition"
BASIC = "basic composition"


@dataclass(frozen=True)
class Claim:
    """The statement of one rule about all releases together.

    `holds`: Whether the rule is a proven bound for this mechanism.
    """

    rule: str
    epsilon: float
    delta: float
    holds: bool = True
    note: str = ""


@dataclass(frozen=True)
class Accounting:
    """The privacy of a run.

    Attributes
    ----------
    claims : tuple of Claim
        The exact composition first, then looser rules, then the paper's own formula.
    mu : float
        The mu of all Gaussian releases together; 0 when there was none.
    releases : int
    neighbours : str
        The neighbour relation in words: the change of one person's data that is covered.
    secure : bool
        Whether the noise came from the operating system's secure randomness. If it came from a seed, the guarantee
        needs the seed to stay secret.

    Notes
    -----
    Of a run that was ended early it is the guarantee of what was released up to there, if nothing that was released
    decided when to end; else that of the whole plan holds.
    """

    claims: tuple[Claim, ...]
    mu: float
    releases: int
    neighbours: str
    secure: bool = True

    @property
    def guarantee(self) -> Claim:
        """The least epsilon among the rules that hold."""
        valid = [claim for claim in self.claims if claim.holds]
        if not valid:
            raise PrivacyError("no rule holds for this mechanism: it gives no differential privacy at any delta < 1")
        return min(valid, key=lambda claim: claim.epsilon)

    @property
    def epsilon(self) -> float:
        """Epsilon of the guarantee."""
        return self.guarantee.epsilon

    @property
    def delta(self) -> float:
        """Delta of the guarantee."""
        return self.guarantee.delta

    @property
    def table(self) -> pd.DataFrame:
        """One row per rule: rule, epsilon, delta, holds, note."""
        return pd.DataFrame([vars(claim) for claim in self.claims])

    def __str__(self) -> str:
        lines = [f"{counted(self.releases, 'release')}; neighbours: {self.neighbours}"]
        guarantee = self.guarantee if any(claim.holds for claim in self.claims) else None
        for claim in self.claims:
            note = claim.note if claim.holds else f"no bound: {claim.note}"
            mark = "<- the guarantee" if claim is guarantee else note
            lines.append(f"  {claim.rule:<32} epsilon {claim.epsilon:10.4g}  delta {claim.delta:8.1e}  {mark}".rstrip())
        if not self.secure:
            lines.append("  noise from a seed: the guarantee holds only while the seed is secret")
        return "\n".join(lines)


LEAST_DELTA = 1e-290
"""Least delta: its parts are doubles."""


def composition_claims(mus: Array, epsilons: Array, delta: float | None) -> tuple[Claim, ...]:
    """Return the statement of each rule about Gaussian and pure releases together, the exact rule first.

    `mus`: One ratio of sensitivity to standard deviation per Gaussian release.
    `epsilons`: One epsilon per pure release.
    `delta`: The delta at which every epsilon is stated. None, without Gaussian releases, leaves out the rules that need
    one.
    Raises PrivacyError: delta is not in (0, 1), or missing where a release is Gaussian.
    """
    added = Claim(ADDED, float(np.sum(epsilons)), 0.0)
    if delta is None and mus.size == 0:
        return (added,)
    if delta is None:
        raise PrivacyError("delta is missing: a Gaussian release has no epsilon without one; pass, for example, 1e-6")
    if not 0.0 < delta < 1.0:
        raise PrivacyError(f"delta={delta!r} is not in (0, 1): pass a number far below 1/n, for example 1e-6")
    if delta < LEAST_DELTA:
        raise PrivacyError(f"delta={delta!r} is below {LEAST_DELTA:g}, where doubles end: pass, for example, 1e-6")
    together = composed(mus)
    # A pure epsilon is epsilon^2 / 2 of zCDP (Bun and Steinke 2016).
    concentrated = zcdp_epsilon(rho=(together**2 + float(np.sum(epsilons**2))) / 2.0, delta=delta)
    if mus.size == 0:
        return (
            added,
            Claim(OPTIMAL, optimal_epsilon(delta, epsilons), delta),
            Claim(CONCENTRATED, concentrated, delta),
            Claim(ADVANCED, advanced_composition(epsilons, delta), delta),
        )
    alone, shared = (_each_alone(mus, delta / (parts * mus.size)) for parts in (2.0, 1.0))
    pure = epsilons.size > 0
    exact = optimal_epsilon(delta, epsilons, together) if pure else gaussian_epsilon(delta=delta, mu=together)
    return (
        Claim(TOGETHER if pure else EXACT, exact, delta),
        Claim(CONCENTRATED, concentrated, delta),
        Claim(ADVANCED, advanced_composition(np.concatenate([alone, epsilons]), delta / 2.0), delta),
        Claim(BASIC, float(np.sum(shared) + np.sum(epsilons)), delta),
    )


def _each_alone(mus: Array, delta: float) -> Array:
    """Return the epsilon of every Gaussian release by itself; equal ones are computed once."""
    distinct, places = np.unique(mus, return_inverse=True)
    return np.array([gaussian_epsilon(delta=delta, mu=mu) for mu in distinct])[places]
