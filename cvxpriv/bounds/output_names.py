"""Outputs with names: cells that constraints forbid, outputs of which they ask the same, and names that suit them."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from cvxpriv.blocks.declaration import Constraint, Known
from cvxpriv.constraints import ReadyConstraint
from cvxpriv.constraints.cells import cell_values
from cvxpriv.numerics.arrays import Array, IntArray

APART = 1e-2
"""Columns nearer than this, in the sum of differences, are one output."""

#: Least bound of a distortion of which shares are taken.
LEAST_BOUND = 1e-9


def forbidden_cells(constraint: ReadyConstraint, known: Known, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which cells of a mechanism, (|inputs|, |outputs|), a constraint of kind "forbidden" forbids.

    >>> from cvxpriv.constraints import forbidden
    >>> known = Known(np.array([0.5, 0.5]), np.ones(1), np.ones((1, 2)))
    >>> forbidden_cells(forbidden([(0, 1)]), known, (2, 2)).tolist()
    [[False, True], [False, False]]
    """
    found = np.zeros(shape, dtype=bool)
    found[tuple(np.array(list(cell_values(constraint, known))).T)] = True
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


def in_place(mechanism: Array, constraints: Sequence[tuple[str, Constraint]], known: Known) -> Array:
    """Return a mechanism, (|inputs|, |outputs|), with its outputs renamed so that it misses its constraints least.

    What a column would miss under each name is summed: probability for marginals, floors, fixed and forbidden cells,
    and shares of the bound for expected distortions. Outputs go in order of their inputs where a rule is monotone.

    >>> from cvxpriv.constraints import output_marginal
    >>> known = Known(np.array([0.5, 0.5]), np.ones(1), np.ones((1, 2)))
    >>> in_place(np.array([[0.2, 0.8], [0.4, 0.6]]), [("sent", output_marginal([0.7, 0.3]))], known)
    array([[0.8, 0.2],
           [0.6, 0.4]])
    """
    costs = [
        cost
        for _, one in constraints
        if isinstance(one, ReadyConstraint) and one.kind
        for cost in _costs(mechanism, one, known)
    ]
    if not costs:
        return mechanism
    outputs, names = linear_sum_assignment(np.sum(costs, axis=0))
    return np.asarray(mechanism[:, outputs[np.argsort(names)]])


def _costs(mechanism: Array, one: ReadyConstraint, known: Known) -> Iterator[Array]:
    """Yield what each output, a row, costs under each name, a column; nothing where a rule gives no names."""
    joint, given = known.prior[:, None] * mechanism, one.parameters
    size = mechanism.shape[1]
    if one.kind == "expected_distortion":
        yield joint.T @ np.asarray(given["distortion"]) / max(float(given["bound"]), LEAST_BOUND)
    elif one.kind == "output_marginal":
        yield np.abs(joint.sum(axis=0)[:, None] - np.asarray(given["marginal"]))
    elif one.kind == "floor" and np.ndim(given["value"]) == 2:
        short = np.asarray(given["value"])[:, None, :] - mechanism[:, :, None]
        yield np.tensordot(known.prior, np.maximum(short, 0.0), axes=1)
    elif one.kind in ("fixed", "forbidden"):
        cost = np.zeros((size, size))
        for (row, name), value in cell_values(one, known).items():
            cost[:, name] += known.prior[row] * np.abs(mechanism[row] - value)
        yield cost
    elif one.kind == "monotone":
        mean = np.arange(len(joint)) @ joint / np.maximum(joint.sum(axis=0), LEAST_BOUND)
        order = np.arange(size) / size
        yield np.outer(mean, -order if given.get("increasing", True) else order)
