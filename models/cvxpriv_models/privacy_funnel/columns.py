"""Columns, posteriors P(X|y): those that column generation begins with, and the mechanism that some of them make."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.simplex import simplex_grid
from cvxpriv.tables.information import mutual_information

from .pricing_search import on_all_symbols, pairs

HALVINGS = 60

SMALL_X = 6
"""Number of public symbols up to which posteriors on a grid are the first columns."""

GRID_POINTS = 600
"""Most points of the grid: the first program is then solved in less than a millisecond, near the optimum."""

FIRST_PAIRS = 3
"""Merged pairs to begin with, for each symbol of X; more of them only make the first programs larger."""


def utility(p_x: Array, mechanism: Array) -> float:
    """I(X;Y) in nats of P(Y|X), (|X|, |Y|)."""
    return mutual_information(p_x[:, None] * mechanism)


def mechanism_of(columns: Array, weights: Array, p_x: Array) -> Array:
    """P(Y|X), (|X|, |Y|), whose posteriors are the columns (|X|, k), as nearly as rows that sum to 1 allow.

    Equal columns become one symbol. A symbol of X that no column holds is released as it is.

    >>> mechanism_of(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    array([[1., 0.],
           [0., 1.]])
    """
    _, first, where = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    joint = (columns[:, first] * np.bincount(where.ravel(), weights, len(first)))[:, np.argsort(first)]
    lost = np.flatnonzero(joint.sum(axis=1) <= 0.0)
    alone = np.zeros((len(p_x), len(lost)))
    alone[lost, np.arange(len(lost))] = p_x[lost]
    joint = np.concatenate([joint, alone], axis=1)
    joint = joint[:, joint.sum(axis=0) > 0.0]
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def mixed_to_rate(mechanism: Array, p_x: Array, rate: float) -> Array:
    """The mechanism, mixed with the release of X itself by no more than I(X;Y) >= `rate` takes.

    With probability 1 - t the output is that of `mechanism`, with probability t it is X, under symbols of its own. At
    `rate` = H(X) it is the identity.
    """
    if utility(p_x, mechanism) >= rate:
        return mechanism
    identity, low, high = np.eye(len(p_x)), 0.0, 1.0
    for _ in range(HALVINGS):
        t = 0.5 * (low + high)
        enough = utility(p_x, np.concatenate([(1.0 - t) * mechanism, t * identity], axis=1)) >= rate
        low, high = (low, t) if enough else (t, high)
    if high == 1.0:
        return identity
    mixed: Array = np.concatenate([(1.0 - high) * mechanism, high * identity], axis=1)
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


def first_columns(p_x: Array, a: Array) -> Array:
    """Return singletons, P(X), pairs merged at their prior weights, and for a small X a grid of posteriors, (|X|, n).

    `p_x`: ``(|X|,)``. `a`, ``(|S|, |X|)``: P(S|X).
    """
    size_s, size_x = a.shape
    grid = [_grid(size_x)] if size_s > 2 and 2 < size_x <= SMALL_X else []
    return np.concatenate([np.eye(size_x), p_x[:, None], _merged_pairs(p_x, a), *grid], axis=1)


def _merged_pairs(p_x: Array, a: Array) -> Array:
    size = len(p_x)
    i, j = pairs(size)
    if len(i) > FIRST_PAIRS * size:  # those with the most alike P(S|x)
        far = np.zeros(len(i))
        for row in a:
            far += np.abs(row[i] - row[j])
        near = np.argsort(far)[: FIRST_PAIRS * size]
        i, j = i[near], j[near]
    weights = np.stack([p_x[i], p_x[j]], axis=1)
    return on_all_symbols(size, np.stack([i, j], axis=1), weights / weights.sum(axis=1, keepdims=True))


@cache
def _grid(size: int) -> Array:
    """The points of the simplex whose coordinates are multiples of 1/n, without its corners, (size, points)."""
    n = 2
    while math.comb(n + size, size - 1) <= GRID_POINTS:
        n += 1
    points = simplex_grid(size, n)
    grid: Array = points[:, points.max(axis=0) < 1.0]
    grid.flags.writeable = False
    return grid
