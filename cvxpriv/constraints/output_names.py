"""The outputs of a mechanism get the names that its constraints ask for, as far as one assignment can tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from cvxpriv.blocks.declaration import Constraint, Known
from cvxpriv.constraints.cells import cell_values
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.numerics.arrays import Array

#: Least bound of a distortion of which shares are taken.
LEAST_BOUND = 1e-9


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
