"""The cost of a private run: the ledger's releases as one guarantee, and the paper's claims about them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cvxpriv.privacy import Accounting, Claim, Release, account_ledger


def parties_touched(adjacency: str, parties: int) -> int:
    """Return the number of parties that one neighbour's change touches: a person's row spans all of them."""
    return parties if adjacency == "replace-one" else 1


def corollary_1(mu: float, passes: int, delta: float) -> Claim:
    """Return SHARING Corollary 1: epsilon' = sqrt(2 T log(1/delta')) epsilon + T epsilon (exp(epsilon) - 1).

    Here epsilon is that of Theorem 1, sqrt(2 log(1.25/delta_0)) mu, which needs epsilon <= 1. The given delta is split
    in a way that the corollary leaves open: delta' = delta/2 and delta_0 = delta/(2 T).
    """
    each = float(np.sqrt(2.0 * np.log(2.5 * passes / delta)) * mu)
    with np.errstate(over="ignore"):
        total = float(np.sqrt(2.0 * passes * np.log(2.0 / delta)) * each + passes * each * np.expm1(each))
    note = "" if each <= 1.0 else f"Theorem 1 needs epsilon <= 1 a release, here {each:.3g}"
    return Claim("Corollary 1 as printed", total, delta, holds=each <= 1.0, note=note)


def spent(
    ledger: Sequence[Release], delta: float, adjacency: str, *, neighbours: str, secure: bool = True
) -> Accounting:
    """Return the guarantee of a ledger, and the paper's claims about the same releases. `neighbours`: The relation in
    words.
    """
    by_party = Counter(entry.source for entry in ledger if entry.mu is not None)
    printed = []
    if by_party:
        mu = max(entry.mu for entry in ledger if entry.mu is not None)
        printed = [corollary_1(mu, max(by_party.values()), delta)]
        flaws = [entry.flaw for entry in ledger if entry.flaw]
        if adjacency == "replace-one" and len(by_party) > 1:
            flaws.append(f"counts the releases of one party, not of {len(by_party)}")
        if flaws:
            printed = [replace(printed[0], holds=False, note=flaws[0])]
    return account_ledger(ledger, delta, neighbours=neighbours, printed=printed, secure=secure)
