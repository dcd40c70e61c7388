"""Merging of private symbols that keeps as much as possible of the leakage about them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.information import mutual_information

Labels: TypeAlias = NDArray[np.intp]


def merged_groups(joint: Array, count: int) -> Labels:
    """Merge rows of P(S, Y), (|S|, |Y|), two at a time, until `count` are left; the group of each row, (|S|,).

    Each merger is the one that costs the least mutual information.

    >>> merged_groups(np.array([[0.3, 0.0], [0.0, 0.3], [0.3, 0.1]]), 2)
    array([0, 1, 0])
    """
    groups = np.arange(len(joint))
    rows = dict(enumerate(joint))
    while len(rows) > count:
        names = sorted(rows)
        costs = {(i, j): _loss(rows[i], rows[j]) for at, i in enumerate(names) for j in names[at + 1 :]}
        i, j = min(costs, key=lambda pair: costs[pair])
        rows[i] = rows[i] + rows.pop(j)
        groups[groups == j] = i
    return np.searchsorted(sorted(rows), groups)


def _loss(first: Array, second: Array) -> float:
    """Return the loss of I(S;Y) by merging two rows: their masses times the divergence between them."""
    return mutual_information(np.stack([first, second]))
