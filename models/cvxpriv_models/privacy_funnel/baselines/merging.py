"""Greedy merging of pairs, and of neighbours in a line.

Makhdoumi, Salamatian, Fawaz and Medard 2014, "From the Information Bottleneck to the Privacy Funnel".

Start from ``Y = X``. Of all pairs of released symbols whose merging keeps ``I(X;Y) >= R``, merge the one that lowers
``I(S;Y)`` most; end when no pair may be merged.

`quickly_merged` is for large alphabets: each pair is priced once, and after a merger those of the new cluster, which
takes a second at 1000 symbols and a table of |X|^2 numbers.
"""

import numpy as np
from scipy.special import entr

from cvxpriv.numerics.arrays import Array
from cvxpriv_models.privacy_funnel.baselines.clustering import Clusters, pair_drops
from cvxpriv_models.privacy_funnel.baselines.outcome import (
    RATE_SLACK,
    Baseline,
    indicator,
    measured,
    require_attainable,
)


def greedy(p_sx: Array, rate: float) -> Baseline:
    """Merge the pair that lowers ``I(S;Y)`` most, as long as ``I(X;Y)`` stays at the rate, in nats, or above.

    The mechanism is deterministic; its ``iterations`` count the merges.

    Raises ModelError: The rate exceeds ``H(X)``.

    Examples
    --------
    >>> p_sx = np.array([[0.2, 0.2, 0.0, 0.1], [0.0, 0.1, 0.3, 0.1]])
    >>> found = greedy(p_sx, rate=0.6)
    >>> found.mechanism.shape, round(found.utility, 4), round(found.leakage, 4)
    ((4, 2), 0.6931, 0.0201)
    """
    require_attainable(rate, p_sx)
    clusters = Clusters(p_sx)
    merges = 0
    while (allowed := clusters.admissible(rate)).any():
        best = np.argmax(np.where(allowed, clusters.leakage_drop, -np.inf))
        clusters.merge(np.array(np.unravel_index(best, allowed.shape)))
        merges += 1
    return measured("greedy", p_sx, indicator(clusters.labels), merges)


def quickly_merged(joint: Array, rate: float) -> Array:
    """Merge the pair that loses most leakage for each nat of utility, as long as I(X;Y) >= rate.

    `joint`, ``(|S|, |X|)``: P(S, X), every column with mass. `rate`: Nats, at most H(X).
    Returns ``(|X|, n)``: A deterministic mechanism P(Y|X).

    Examples
    --------
    >>> quickly_merged(np.array([[0.3, 0.1, 0.1], [0.0, 0.25, 0.25]]), rate=0.6).shape
    (3, 2)
    """
    columns, size = np.array(joint), joint.shape[1]
    labels, alive = np.arange(size), np.ones(size, dtype=bool)
    utility = float(entr(columns.sum(axis=0)).sum())
    worth = np.full((size, size), -np.inf)  # of pairs, above the diagonal
    for one in range(size - 1):
        worth[one, one + 1 :] = _worth(columns[:, one + 1 :], columns[:, [one]])[0]
    best, partner = worth.max(axis=1), worth.argmax(axis=1)
    while best.max() > -np.inf:
        one = int(best.argmax())
        other = int(partner[one])
        _, loss = _worth(columns, columns[:, [one]])
        if utility - loss[other] < rate - RATE_SLACK:  # as will be all of its pairs that lose so much
            worth[one, utility - loss < rate - RATE_SLACK] = -np.inf
            best[one], partner[one] = worth[one].max(), worth[one].argmax()
            continue
        utility -= float(loss[other])
        columns[:, one] += columns[:, other]
        labels[labels == other], alive[other] = one, False
        fresh, _ = _worth(columns, columns[:, [one]])
        fresh[~alive] = -np.inf
        worth[other], worth[:, other], best[other] = -np.inf, -np.inf, -np.inf
        worth[:one, one], worth[one, one + 1 :] = fresh[:one], fresh[one + 1 :]
        stale = np.flatnonzero(alive & ((partner == one) | (partner == other) | (worth[:, one] > best)))
        stale = np.append(stale, one)
        best[stale], partner[stale] = worth[stale].max(axis=1), worth[stale].argmax(axis=1)
    return indicator(labels)


def _worth(columns: Array, one: Array) -> tuple[Array, Array]:
    """Return what merging a column with each of others is worth, and the loss of I(X;Y), nats, (n,) each."""
    leakage, utility = pair_drops(columns, one)
    return leakage / np.maximum(utility, RATE_SLACK), utility
