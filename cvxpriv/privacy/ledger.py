"""The privacy ledger: every release of a run as plain data, and the one function that accounts for it.

An entry names the release, its cost, its source, and the records that it touches. A neighbour's change is in one group
of records, so that it is touched by the releases of that group and by those that touch everyone: the guarantee is that
of the group that is touched most, by each rule (parallel composition).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from cvxpriv.errors import DataError, PrivacyError, shown
from cvxpriv.numerics.arguments import is_number
from cvxpriv.privacy.accounting import Accounting, Claim, composition_claims
from cvxpriv.privacy.gaussian import composed

#: The group of all records: such a release touches every neighbour's change.
EVERYONE = "everyone"
LEAST, LARGEST = 1e-100, 1e100
"""Range of a release's cost that is not 0: squares, and sums of them, are doubles."""


@dataclass(frozen=True)
class Release:
    """One entry of the privacy ledger. It is Gaussian, with a `mu`, or pure, with an `epsilon`.

    Attributes
    ----------
    mu : float
        Ratio of sensitivity to standard deviation of a Gaussian release, including the rounding to the grid.
    epsilon : float
        Pure privacy loss of any other release.
    step : str
        Name of the `Draw` that released; filled in when it runs.
    iteration : int
        Iteration of the surrounding loop; filled in when the step runs.
    source : str
        The releasing party or node.
    touches : str
        The group of records that it reads, or everyone's.
    note : str
        A remark for readers, which stands beside the first rule of the accounting.
    flaw : str
        The reason why nothing is guaranteed, for a release as a paper prints it; empty for all others.

    Raises
    ------
    PrivacyError
        Both or neither of mu and epsilon are given, or one is not a finite number >= 0.
    """

    mu: float | None = None
    epsilon: float | None = None
    step: str = ""
    iteration: int = 0
    source: str = ""
    touches: str = EVERYONE
    note: str = ""
    flaw: str = ""

    def __post_init__(self) -> None:
        if (self.mu is None) == (self.epsilon is None):
            raise PrivacyError(f"mu={shown(self.mu)}, epsilon={shown(self.epsilon)}: a release has one of the two")
        cost = self.epsilon if self.mu is None else self.mu
        if not (is_number(cost) and (cost == 0.0 or LEAST <= cost <= LARGEST)):
            raise PrivacyError(
                f"{shown(cost)} is no privacy loss of a release: pass 0, or from {LEAST:g} to {LARGEST:g}"
            )

    def at(self, step: str, iteration: int) -> Release:
        """Return the entry with the step that released it and the iteration."""
        return replace(self, step=step, iteration=iteration)


def account_ledger(
    ledger: Iterable[Release],
    delta: float | None = None,
    *,
    neighbours: str,
    printed: Sequence[Claim] = (),
    secure: bool = True,
) -> Accounting:
    """Return the guarantee of all releases of a ledger together: the accounting of every private run.

    Parameters
    ----------
    ledger : iterable of Release
        Releases of any kinds, in any order.
    delta : float, optional
        The delta at which every epsilon is stated. None, where all releases are pure, states only their sum.
    neighbours : str
        The neighbour relation under which the costs hold, in words.
    printed : sequence of Claim
        Claims of a paper about the same releases.
    secure : bool
        See `Accounting`.

    Raises
    ------
    PrivacyError
        delta is not in (0, 1), or missing where a release is Gaussian.

    Examples
    --------
    Two nodes with records of their own, and labels that both of them see flipped:

    >>> ledger = [Release(epsilon=0.5), Release(mu=0.1, touches="a"), Release(mu=0.2, touches="b")]
    >>> print(account_ledger(ledger, 1e-6, neighbours="one record of one node replaced"))
    2 releases; neighbours: one record of one node replaced
      exact, Gaussian and pure         epsilon      1.313  delta  1.0e-06  <- the guarantee
      zero-concentrated (zCDP)         epsilon      2.624  delta  1.0e-06
      advanced composition             epsilon      6.892  delta  1.0e-06
      basic composition                epsilon      1.334  delta  1.0e-06
    """
    entries = tuple(ledger)
    gaussian = any(entry.mu is not None for entry in entries)
    together = [_accounted(group, delta, gaussian) for group in _groups(entries)]
    claims = [max(rule, key=lambda claim: claim.epsilon) for rule in zip(*(one[0] for one in together), strict=True)]
    notes = list(dict.fromkeys(entry.note for entry in entries if entry.note))
    flaws = list(dict.fromkeys(entry.flaw for entry in entries if entry.flaw))
    claims[0] = replace(claims[0], note="; ".join(notes))
    if flaws:
        claims = [replace(claim, holds=False, note="; ".join(flaws)) for claim in claims]
    return Accounting(
        (*claims, *printed),
        max(mu for _, mu, _ in together),
        max(count for _, _, count in together),
        neighbours,
        secure,
    )


def touching(ledger: Iterable[Release], group: str) -> tuple[Release, ...]:
    """Return the entries that touch the records of a group."""
    return tuple(entry for entry in ledger if entry.touches in (group, EVERYONE))


def ledger_document(ledger: Iterable[Release]) -> list[dict[str, Any]]:
    """Return a ledger as plain data, which JSON can hold.

    Examples
    --------
    >>> ledger = (Release(mu=0.1, touches="party 1"), Release(epsilon=0.5))
    >>> ledger_of(ledger_document(ledger)) == ledger
    True
    """
    return [asdict(entry) for entry in ledger]


def ledger_of(document: Sequence[Mapping[str, Any]]) -> tuple[Release, ...]:
    """Return the ledger that `ledger_document` described.

    Raises DataError: It describes none. PrivacyError: The cost of a release is none.
    """
    whole = {one.name: getattr(_EXAMPLE, one.name) for one in fields(Release)}
    for entry in document if isinstance(document, (list, tuple)) else (None,):
        right = isinstance(entry, Mapping) and set(entry) <= set(whole)
        if not right or any(type(entry[name]) is not type(whole[name]) for name in set(entry) - {"mu", "epsilon"}):
            raise DataError("the ledger holds what is no release: take the file that was written")
    return tuple(Release(**entry) for entry in document)


_EXAMPLE = Release(mu=0.0)


def _groups(entries: tuple[Release, ...]) -> list[tuple[Release, ...]]:
    names = sorted({entry.touches for entry in entries} - {EVERYONE}) or [EVERYONE]
    return [touching(entries, name) for name in names]


def _accounted(
    entries: tuple[Release, ...], delta: float | None, gaussian: bool
) -> tuple[tuple[Claim, ...], float, int]:
    """Return the claims of one group; `gaussian`, whether any group has a Gaussian release, fixes the rules."""
    mus = np.array([entry.mu for entry in entries if entry.mu is not None])
    epsilons = np.array([entry.epsilon for entry in entries if entry.epsilon is not None])
    if gaussian and mus.size == 0:
        mus = np.zeros(1)
    return composition_claims(mus, epsilons, delta), composed(mus), len(entries)
