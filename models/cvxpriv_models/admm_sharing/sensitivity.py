"""Bounds of how far one neighbour can move a party's share, SHARING Lemma 1 corrected, and what a run's releases cost.

With a ridge, R_m = (c/2)||x||^2, the share of a party is v = D x = H a, where H = D (D'D + kappa I)^-1 D' and
kappa = lam c / rho. The target a is (share - gap) - y/rho: where the scheme wants the share, less the dual. A private
run makes it from released values alone, so a is **public**, and each bound below is a public number for this a:
the noise can follow it from pass to pass.

Write M = D D' + kappa I, so H = I - kappa M^-1, with 0 <= H <= I. Three facts are used throughout:

- ||D' M^-1|| and ||M^-1 D|| are at most 1/(2 sqrt(kappa)), since s/(s^2 + kappa) is; so ||x|| <= ||a||/(2 sqrt(kappa));
- H and H' are positive semidefinite, so ||H - H'|| is at most the larger of their norms;
- H - H' = kappa M'^-1 (E D' + D' E') M^-1 with E = D - D' (the second D' is the neighbour's columns), so
  ||H - H'|| <= ||E||/sqrt(kappa).

Lemma 1 of the paper takes 1/d_m for ||(D'D)^-1||, which nothing bounds.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cvxpriv.learning.matrices import length
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.rounding import sum_rounding
from cvxpriv.privacy import Accounting, Claim, Release, account_ledger

#: Largest distance of a computed share from H a, as a part of ||a||; the sensitivity includes it.
INEXACT = 2.0**-22


def resolved(adjacency: str, bound: float, kappa: float, samples: int, columns: int) -> bool:
    """Return whether doubles hold the ridge step of any data within the bound to `INEXACT`.

    It follows from public numbers, so that no refusal tells of a row. With s the rounding of a sum and t = ||D||_F /
    sqrt(kappa), a residual is known to within 2.5 s t ||a||, and each refinement leaves some tens of s t^2 of it.
    """
    if not (kappa > 0.0 and np.isfinite(bound)):
        return False
    count = {"column": columns, "cell": samples * columns}.get(adjacency, samples)
    steep = float(bound / np.sqrt(kappa) * np.sqrt(count))
    return sum_rounding(samples + columns + 4) * max(steep * 2.0**12, 1.0 + steep * steep) <= 2.0**-12


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
    """Return the guarantee of a ledger, and the paper's claims about the same releases.

    `neighbours`: The relation in words.
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


def shrinkage(norm: float, kappa: float) -> float:
    """Return B^2/(B^2 + kappa): the norm of H for columns of spectral norm B."""
    return float((norm / np.hypot(norm, np.sqrt(kappa))) ** 2)  # B^2 itself may overflow


def row(target: Array, kappa: float, bound: float, clip: float = np.inf) -> float:
    """Return a bound for one row of norm at most `bound` replaced by another, entries clipped to [-clip, clip].

    Let x_0 be the fit without row i, G = D_0'D_0 + kappa I, h = d'G^-1 d, r = a_i - d'x_0. Then
    v_i = (d'x_0 + h a_i)/(1 + h), between d'x_0 and a_i, so that the row's own entry moves by at most
    2 max(|a_i|, |d'x_0|), or 2 clip. The others are D_0 x_0 + D_0 G^-1 d r/(1 + h), and
    ||D_0 G^-1 d||/(1 + h) <= min(bound/(2 sqrt(kappa)), sqrt(h)/(1 + h)), the latter at most 1/2. Clipping moves no
    two numbers apart. A row of zeros is among the rows, so this covers a person who is taken out.

    `target`: (N,). `kappa`: > 0. `bound`: Bound of the norm of this party's part of any row.
    """
    size, largest = length(target), float(np.abs(target).max())
    reach = bound * size / (2.0 * np.sqrt(kappa))
    own = 2.0 * min(clip, max(largest, reach))
    others = (largest + reach) * min(bound / np.sqrt(kappa), 1.0)
    return float(min(np.hypot(own, others), size * shrinkage(bound * np.sqrt(target.size), kappa)))


def column(target: Array, kappa: float, bound: float) -> float:
    """Return a bound for one column of norm at most `bound` replaced by another: ||a|| C^2/(C^2 + kappa).

    A column c more adds to H the matrix kappa M^-1 c c' M^-1/(1 + c'M^-1 c), of norm at most h/(1 + h) with
    h = c'M^-1 c <= C^2/kappa. Two such additions to the same H differ by at most the larger one.
    """
    return length(target) * shrinkage(bound, kappa)


def cell(target: Array, kappa: float, bound: float, columns: int, clip: float = np.inf) -> float:
    """Return a bound for one entry of absolute value at most `bound` replaced by another.

    With E = eta e_i e_j', |eta| <= 2 bound: H a - H'a = eta (kappa M'^-1 e_i x_j + M'^-1 D' e_j (a - v)_i), of norm at
    most |eta| (|x_j| + |a_i - v_i|/(2 sqrt(kappa))). A cell stands in a row of norm at most bound sqrt(columns) and in
    a column of norm at most bound sqrt(N), so their bounds hold too.

    `target`: (N,). `kappa`, `bound`: The number kappa, > 0. `columns`: Number of columns d_m.
    """
    size, root = length(target), np.sqrt(kappa)
    width = bound * np.sqrt(columns)
    off = min(size, float(np.abs(target).max()) + width * size / (2.0 * root))
    alone = 2.0 * bound * (size + off) / (2.0 * root)
    within = column(target, kappa, bound * np.sqrt(target.size))
    return float(min(alone, row(target, kappa, width, clip), within))
