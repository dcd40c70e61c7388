"""Outputs with names: cells that constraints forbid, and outputs of which constraints ask the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints import ReadyConstraint
from cvxpriv.numerics.arrays import Array, IntArray

APART = 1e-2
"""Columns nearer than this, in the sum of differences, are one output."""


def forbidden_cells(constraint: ReadyConstraint, known: Known, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which cells of a mechanism, (|inputs|, |outputs|), a constraint of kind "forbidden" forbids.

    >>> from cvxpriv.constraints import forbidden
    >>> known = Known(np.array([0.5, 0.5]), np.ones(1), np.ones((1, 2)))
    >>> forbidden_cells(forbidden([(0, 1)]), known, (2, 2)).tolist()
    [[False, True], [False, False]]
    """
    found, one = np.zeros(shape, dtype=bool), np.zeros(shape)
    for cell in np.ndindex(*shape):
        one[cell] = 1.0
        found[cell] = constraint.excess(one, known) > 0.0
        one[cell] = 0.0
    return found


def alike(asked: Array) -> tuple[IntArray, IntArray]:
    """Return one output of each class, in order, and the class of every output.

    `asked`, (|outputs|, k): Conditions on each output.

    >>> [one.tolist() for one in alike(np.array([[1.0], [0.0], [1.0]]))]
    [[0, 1], [0, 1, 0]]
    """
    _, first, where = np.unique(asked, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[where.ravel()]


def placed(columns: Array, weights: Array, classes: IntArray, outputs: Sequence[int] | IntArray) -> Array:
    """Return the joint table, (|inputs|, |outputs|), of columns placed in outputs of their classes.

    The heaviest columns of a class get an output each; what is left joins the one that it is nearest to.

    `columns`: (n, |inputs|).
    `weights`: (n,).
    `classes`, (n,): The class of each column.
    `outputs`, (|outputs|,): The class of each output.

    >>> placed(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.5, 0.5]), np.array([0, 0]), [0]).tolist()
    [[0.5], [0.5]]
    """
    outputs = np.asarray(outputs)
    joint = np.zeros((columns.shape[1], len(outputs)))
    for one in np.unique(classes):
        mine, room = np.flatnonzero(classes == one), np.flatnonzero(outputs == one)
        mine = mine[np.argsort(-weights[mine], kind="stable")]
        taken = columns[mine[: len(room)]]
        apart = np.abs(columns[mine][:, None, :] - taken[None]).sum(axis=2)
        np.add.at(joint.T, room[apart.argmin(axis=1)], columns[mine] * weights[mine, None])
    return joint


def matched(columns: Array, weights: Array, price: Array) -> Array:
    """Return the joint table, (|inputs|, |outputs|), of columns in outputs of their own, whatever their class.

    Columns that are nearly the same share an output, and so do the lightest ones where outputs are too few. The
    assignment is the cheapest one.

    `columns`: (n, |inputs|). `weights`: (n,). `price`, (|inputs|, |outputs|): Cost of a unit of mass in each cell.

    >>> matched(np.eye(2), np.array([0.5, 0.5]), np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    order = np.argsort(-weights, kind="stable")
    kept: list[int] = []
    for one in order.tolist():
        away = all(np.abs(columns[one] - columns[other]).sum() > APART for other in kept)
        if away and len(kept) < price.shape[1]:
            kept.append(one)
    nearest = np.abs(columns[:, None, :] - columns[kept][None]).sum(axis=2).argmin(axis=1)
    groups = np.zeros((len(kept), columns.shape[1]))
    np.add.at(groups, nearest, columns * weights[:, None])
    row, output = linear_sum_assignment(groups @ price)
    joint = np.zeros(price.shape)
    joint[:, output] = groups[row].T
    return joint
