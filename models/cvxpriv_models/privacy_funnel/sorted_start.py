"""A start for large alphabets: symbols of X in a line, neighbours merged.

Submodular clustering prices every pair of symbols, again and again: a minute of work at 400 symbols. Here the symbols
stand in the order of the first principal component of P(S|x), and only neighbours are merged: hundredths of a second at
1000 symbols.
"""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from cvxpriv.numerics.arrays import Array, IntArray

ROUNDING = 1e-12


def sorted_merging(joint: Array, rate: float) -> Array:
    """Merge neighbours that cost most leakage for each nat of utility, as long as I(X;Y) >= rate.

    `joint`, ``(|S|, |X|)``: P(S, X), every column with mass. `rate`: Nats, at most H(X).
    Returns ``(|X|, n)``: A deterministic mechanism P(Y|X).

    Examples
    --------
    >>> sorted_merging(np.array([[0.3, 0.1, 0.1], [0.0, 0.25, 0.25]]), rate=0.6).shape
    (3, 2)
    """
    order = _line(joint)
    columns = joint[:, order]
    groups = np.arange(len(order))
    utility = float(entr(columns.sum(axis=0)).sum())
    leakage_drop, utility_drop = _drops(columns[:, :-1], columns[:, 1:])
    while columns.shape[1] > 1:
        worth = leakage_drop / np.maximum(utility_drop, ROUNDING)
        worth[utility - utility_drop < rate - ROUNDING] = -np.inf
        at = int(worth.argmax())
        if worth[at] == -np.inf:
            break
        utility -= float(utility_drop[at])
        columns[:, at] += columns[:, at + 1]
        columns = np.delete(columns, at + 1, axis=1)
        groups = groups - (groups > at)
        leakage_drop, utility_drop = np.delete(leakage_drop, at), np.delete(utility_drop, at)
        beside = slice(max(at - 1, 0), min(at + 1, columns.shape[1] - 1))
        leakage_drop[beside], utility_drop[beside] = _drops(
            columns[:, beside], columns[:, beside.start + 1 : beside.stop + 1]
        )
    mechanism = np.zeros((len(order), columns.shape[1]))
    mechanism[order, groups] = 1.0
    return np.asarray(mechanism[:, np.argsort(mechanism.argmax(axis=0), kind="stable")])


def _line(joint: Array) -> IntArray:
    """The symbols of X in the order of the first principal component of P(S|x)."""
    p = joint.sum(axis=0)
    centred = joint / p - joint.sum(axis=1, keepdims=True)
    _, axes = np.linalg.eigh((centred * p) @ centred.T)
    return np.asarray(np.argsort(axes[:, -1] @ centred, kind="stable"))


def _drops(first: Array, second: Array) -> tuple[Array, Array]:
    """Return the losses of I(S;Y) and I(X;Y) when columns are merged, (n,) each."""
    mass, other = first.sum(axis=0), second.sum(axis=0)
    utility = entr(mass) + entr(other) - entr(mass + other)
    return utility - (entr(first) + entr(second) - entr(first + second)).sum(axis=0), utility
