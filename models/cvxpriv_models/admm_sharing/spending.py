"""What a private run spent: the ledger's releases as one guarantee, and what the paper states of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cvxpriv.privacy import Accounting, Claim, account
from cvxpriv.schedules.steps import Release

from .labels import LABELS

__all__ = ["corollary_1", "parties_touched", "spent"]


def parties_touched(adjacency: str, parties: int) -> int:
    """Return in how many parties one neighbour's change stands: a person's row spans all of them."""
    return parties if adjacency == "row" else 1


def corollary_1(mu: float, epochs: int, delta: float) -> Claim:
    """Return SHARING Corollary 1: epsilon' = sqrt(2 T log(1/delta')) epsilon + T epsilon (exp(epsilon) - 1).

    epsilon is that of Theorem 1, sqrt(2 log(1.25/delta_0)) mu, which needs epsilon <= 1. The delta in hand is split,
    as the corollary leaves open: delta' = delta/2 and delta_0 = delta/(2 T).
    """
    each = float(np.sqrt(2.0 * np.log(2.5 * epochs / delta)) * mu)
    with np.errstate(over="ignore"):
        total = float(np.sqrt(2.0 * epochs * np.log(2.0 / delta)) * each + epochs * each * np.expm1(each))
    note = "" if each <= 1.0 else f"Theorem 1 needs epsilon <= 1 a release, here {each:.3g}"
    return Claim("Corollary 1 as printed", total, delta, holds=each <= 1.0, note=note)


def spent(
    ledger: Sequence[Release],
    delta: float,
    adjacency: str,
    *,
    neighbours: str,
    labels_epsilon: float = 0.0,
    degenerate: bool = False,
    secure: bool = True,
) -> Accounting:
    """Return the guarantee of a ledger.

    A person's row stands in every party, so that every release counts. Any other change is within one party, and the
    releases of one party count. Flipped labels add their epsilon, by basic composition.

    Parameters
    ----------
    ledger : sequence of Release
    delta : float
    adjacency : str
    neighbours : str
        In words.
    labels_epsilon : float
        Of the randomised labels; 0 when they are shared.
    degenerate : bool
        The noise lies in the range of the data: no rule holds.
    secure : bool
    """
    by_party: dict[str, list[float]] = {}
    for entry in ledger:
        if entry.step != LABELS:
            by_party.setdefault(entry.step, []).append(entry.mu)
    longest = max(by_party.values(), key=len, default=[])
    mus = [mu for one in by_party.values() for mu in one] if adjacency == "row" else longest
    printed = [corollary_1(longest[0], len(longest), delta)] if longest else []
    if printed and adjacency == "row" and len(by_party) > 1:
        printed = [replace(printed[0], holds=False, note=f"counts the releases of one party, not of {len(by_party)}")]
    found = account(mus or [0.0], delta, neighbours=neighbours, printed=printed, secure=secure)
    claims = found.claims
    if labels_epsilon > 0.0:
        note = f"{labels_epsilon:g} of it for the randomised labels"
        claims = tuple(replace(one, epsilon=one.epsilon + labels_epsilon, note=one.note or note) for one in claims)
    if degenerate:
        why = "the noise lies in the range of the data, which differs between neighbours"
        claims = tuple(replace(one, holds=False, note=why) for one in claims)
    return replace(found, claims=claims, releases=len(mus))
