"""A bound for many symbols of S from one for few: merging symbols, and adding what the merging loses.

A release tells no more of merged symbols than of S. For inference, let T = m(S) be S with some symbols merged, and U
made from Y alone. By the chain rule I(S;U) = I(T;U) + I(S;U|T), and given T = t the chain S - Y - U is still Markov, so
that I(S;U|T) <= I(S;Y|T) = I(S;Y) - I(T;Y). Hence

    max over U of I(S;U) - beta E[f]  <=  max over U of [I(T;U) - beta E[f]]  +  I(S;Y) - I(T;Y).

The optimum of the merged problem alone is *below* that of the problem, since I(T;U) <= I(S;U): without the added
information it bounds nothing from above.
"""

import numpy as np
from numpy.typing import NDArray

from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.information import mutual_information


def merge(table: Array, size: int) -> NDArray[np.intp]:
    """Return the group of each symbol of S, (|S|,): pairs are merged that lose least of I(S;Y), one after the other.

    `table`, (|S|, |Y|): P(S, Y). `size`: Number of groups that are left.

    Examples
    --------
    >>> merge(np.array([[0.2, 0.1], [0.1, 0.3], [0.2, 0.1]]), 2)
    array([0, 1, 0])
    """
    groups = [[index] for index in range(len(table))]
    while len(groups) > size:
        rows = np.array([table[group].sum(axis=0) for group in groups])
        pairs = [(i, j) for j in range(len(groups)) for i in range(j)]
        i, j = min(pairs, key=lambda pair: _lost(rows[pair[0]], rows[pair[1]]))
        groups[i] += groups.pop(j)
    labels = np.zeros(len(table), dtype=np.intp)
    for label, group in enumerate(groups):
        labels[group] = label
    return labels


def merged_table(table: Array, groups: NDArray[np.intp]) -> Array:
    """P(T, Y), (groups, |Y|)."""
    return np.array([table[groups == label].sum(axis=0) for label in range(int(groups.max()) + 1)])


def information_lost(table: Array, groups: NDArray[np.intp]) -> float:
    """I(S;Y) - I(T;Y) >= 0 in nats."""
    return max(mutual_information(table) - mutual_information(merged_table(table, groups)), 0.0)


def _lost(first: Array, second: Array) -> float:
    """Return the loss of I(S;Y) when two rows of P(S, Y) are merged: their mass times the information between them."""
    total = float(first.sum() + second.sum())
    return total * mutual_information(np.stack([first, second]) / total) if total > 0.0 else 0.0
