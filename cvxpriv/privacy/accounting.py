"""What a sequence of releases guarantees together, by every rule in use, side by side.

For Gaussian releases the exact composition is the guarantee. The others are what people compare with: each is a valid
bound and none is below the exact one. For releases of a pure epsilon each, the least of the rules at the delta asked
for is the guarantee. A paper's own formula may stand beside them, marked with whether it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from cvxpriv.errors import PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy.gaussian import composed, gaussian_epsilon

__all__ = ["Accounting", "Claim", "account", "account_pure", "advanced_composition", "zcdp_epsilon"]

EXACT = "exact Gaussian composition"
ADDED = "adding up pure epsilons"
CONCENTRATED = "zero-concentrated (zCDP)"
ADVANCED = "advanced composition"


@dataclass(frozen=True)
class Claim:
    """What one rule says of all releases together.

    Attributes
    ----------
    rule : str
    epsilon, delta : float
    holds : bool
        Whether the rule is a proven bound for this mechanism.
    note : str
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
        The exact composition first, then looser rules, then what a paper prints.
    mu : float
        Of all Gaussian releases together; 0 when there was none.
    releases : int
    neighbours : str
        What one person's change may be: the neighbouring relation, in words.
    secure : bool
        Whether the noise came from the operating system's secure randomness. From a seed, the guarantee needs the
        seed to stay secret.
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
        """Of the guarantee."""
        return self.guarantee.epsilon

    @property
    def delta(self) -> float:
        """Of the guarantee."""
        return self.guarantee.delta

    @property
    def table(self) -> pd.DataFrame:
        """One row a rule: rule, epsilon, delta, holds, note."""
        return pd.DataFrame([vars(claim) for claim in self.claims])

    def __str__(self) -> str:
        lines = [f"{self.releases} releases; neighbours: {self.neighbours}"]
        guarantee = self.guarantee if any(claim.holds for claim in self.claims) else None
        for claim in self.claims:
            note = claim.note if claim.holds else f"no bound: {claim.note}"
            mark = "<- the guarantee" if claim is guarantee else note
            lines.append(f"  {claim.rule:<32} epsilon {claim.epsilon:10.4g}  delta {claim.delta:8.1e}  {mark}".rstrip())
        if not self.secure:
            lines.append("  noise from a seed: the guarantee holds only while the seed is secret")
        return "\n".join(lines)


def zcdp_epsilon(rho: float, delta: float) -> float:
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


def account(
    mus: ArrayLike,
    delta: float,
    *,
    neighbours: str,
    printed: Sequence[Claim] = (),
    secure: bool = True,
) -> Accounting:
    """Return what Gaussian releases guarantee together.

    Parameters
    ----------
    mus : array
        One sensitivity / standard deviation per release.
    delta : float
        At which every epsilon is stated.
    neighbours : str
        The neighbouring relation under which the sensitivities hold.
    printed : sequence of Claim
        What a paper states of the same releases.
    secure : bool
        See `Accounting`.

    Raises
    ------
    PrivacyError
        delta is not in (0, 1), or a mu is negative or not finite.

    Examples
    --------
    >>> print(account([0.2] * 20, 1e-5, neighbours="one row replaced"))
    20 releases; neighbours: one row replaced
      exact Gaussian composition       epsilon      3.849  delta  1.0e-05  <- the guarantee
      zero-concentrated (zCDP)         epsilon      4.162  delta  1.0e-05
      advanced composition             epsilon      45.59  delta  1.0e-05
      basic composition                epsilon      17.29  delta  1.0e-05
    """
    each = _finite("mus", mus, "sensitivity / scale")
    _require_delta(delta)
    together = composed(each)
    count = each.size
    alone = [gaussian_epsilon(delta / (2.0 * count), mu) for mu in each]
    shared = [gaussian_epsilon(delta / count, mu) for mu in each]
    claims = (
        Claim(EXACT, gaussian_epsilon(delta, together), delta),
        Claim(CONCENTRATED, zcdp_epsilon(together**2 / 2.0, delta), delta),
        Claim(ADVANCED, advanced_composition(alone, delta / 2.0), delta),
        Claim("basic composition", float(np.sum(shared)), delta),
        *printed,
    )
    return Accounting(claims, together, count, neighbours, secure)


def account_pure(
    epsilons: ArrayLike,
    delta: float | None = None,
    *,
    neighbours: str,
    printed: Sequence[Claim] = (),
    secure: bool = True,
) -> Accounting:
    """Return what adaptive releases of a pure epsilon each guarantee together.

    Parameters
    ----------
    epsilons : array
        One a release, each with delta = 0.
    delta : float, optional
        At which the rules that need one are stated; None leaves them out.
    neighbours, printed, secure
        As in `account`.

    Raises
    ------
    PrivacyError
        delta is not in (0, 1), or an epsilon is negative or not finite.

    Examples
    --------
    >>> print(account_pure([0.05] * 50, 1e-6, neighbours="one row replaced"))
    50 releases; neighbours: one row replaced
      adding up pure epsilons          epsilon        2.5  delta  0.0e+00
      zero-concentrated (zCDP)         epsilon       1.66  delta  1.0e-06  <- the guarantee
      advanced composition             epsilon      1.987  delta  1.0e-06
    """
    each = _finite("epsilons", epsilons, "privacy loss")
    claims = [Claim(ADDED, float(np.sum(each)), 0.0)]
    if delta is not None:
        _require_delta(delta)
        rho = float(np.sum(each**2)) / 2.0  # a pure epsilon is epsilon^2 / 2 of zCDP (Bun and Steinke 2016)
        claims.append(Claim(CONCENTRATED, zcdp_epsilon(rho, delta), delta))
        claims.append(Claim(ADVANCED, advanced_composition(each, delta), delta))
    return Accounting((*claims, *printed), 0.0, each.size, neighbours, secure)


def _finite(name: str, values: ArrayLike, kind: str) -> Array:
    each = np.atleast_1d(np.asarray(values, dtype=float))
    if not (np.isfinite(each) & (each >= 0.0)).all():
        worst = each[~(np.isfinite(each) & (each >= 0.0))][0]
        raise PrivacyError(f"{name} holds {worst!r}, no {kind}: pass finite numbers >= 0, one per release")
    return each


def _require_delta(delta: float) -> None:
    if not 0.0 < delta < 1.0:
        raise PrivacyError(f"delta={delta!r} is not in (0, 1): pass a number far below 1/n, for example 1e-6")
