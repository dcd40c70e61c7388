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
    groups, rows = [[index] for index in range(len(table))], list(table)
    lost = np.full((len(rows), len(rows)), np.inf)  # of pairs (j, i) with i < j
    for j in range(len(rows)):
        lost[j, :j] = [_lost(rows[i], rows[j]) for i in range(j)]
    while len(groups) > size:
        j, i = divmod(int(lost.argmin()), len(groups))
        groups[i] += groups.pop(j)
        rows[i] = table[groups[i]].sum(axis=0)
        del rows[j]
        lost = np.delete(np.delete(lost, j, axis=0), j, axis=1)
        lost[i, :i] = [_lost(rows[k], rows[i]) for k in range(i)]
        lost[i + 1 :, i] = [_lost(rows[i], row) for row in rows[i + 1 :]]
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
