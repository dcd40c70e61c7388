"""The guarantee of a sequence of releases together, by every rule in use, side by side.

The exact composition is the guarantee (`composition`). The other rules serve for comparison: each is a valid bound, and
none is below the exact one. Releases that are all of a pure epsilon have another guarantee besides, without a delta:
their sum. A paper's own formula may stand beside them, marked with whether it holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.later import pd
from cvxpriv.numerics.sizes import counted
from cvxpriv.privacy.composition import advanced_composition, optimal_epsilon, zcdp_epsilon
from cvxpriv.privacy.gaussian import composed, gaussian_epsilon

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
