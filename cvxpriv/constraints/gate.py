"""The gate of a result: each ready constraint holds at the mechanism in doubles, or the excess is reported.

A solver's answer is feasible to its tolerance. A promise about every cell is not: 1e-12 beside 0 is an infinite ratio.
An answer that misses a constraint is moved on to the linear equalities; then outputs of nearly no mass are merged into
another, and what still misses is mixed with a mechanism that tells nothing, by as little as does it. These two keep
what is said of any constraint that processing cannot break. Where rows that are all alike miss a constraint, such as a
distortion, it is mixed with the mechanism that has most room.
"""

from collections.abc import Sequence
from contextlib import suppress

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from cvxpriv.blocks.declaration import Constraint, Known
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.numerics.arrays import Array

#: Relative accuracy of the projection; what is left is taken by a second one.
PROJECTED = 1e-16


def on_equalities(mechanism: Array, constraints: Sequence[tuple[str, Constraint]], known: Known) -> Array:
    """Return the nearest mechanism on the equalities of its constraints; cells that have a value get it exactly.

    >>> from cvxpriv.constraints import forbidden
    >>> known = Known(np.array([0.5, 0.5]), np.ones(1), np.ones((1, 2)))
    >>> on_equalities(np.array([[1e-9, 1 - 1e-9], [0.5, 0.5]]), [("none", forbidden([(0, 0)]))], known)
    array([[0. , 1. ],
           [0.5, 0.5]])
    """
    variable = cp.Variable(mechanism.shape, value=mechanism)
    ready = [one for _, one in constraints if isinstance(one, ReadyConstraint)]
    parts = [part for one in ready for part in one(variable, known)]
    equal = [one.expr for one in parts if isinstance(one, cp.constraints.Equality) and one.variables() == [variable]]
    if not equal:
        return mechanism
    rows = [cp.sum(variable, axis=1) - 1.0, *equal]
    matrix = sp.csr_array(sp.vstack([sp.csr_array(one.grad[variable]).T for one in rows]))
    point = mechanism.ravel(order="F")
    off = np.concatenate([np.ravel(one.value, order="F") for one in rows])
    against = matrix @ point - off
    single = np.flatnonzero(np.diff(matrix.indptr) == 1)
    cells = matrix.indices[matrix.indptr[single]]
    point[cells] = against[single] / matrix.data[matrix.indptr[single]]
    free = np.setdiff1d(np.arange(point.size), cells)
    for _ in range(2):
        step = lsqr(matrix[:, free], matrix @ point - against, atol=PROJECTED, btol=PROJECTED)[0]
        point[free] = np.maximum(point[free] - step, 0.0)
    return np.asarray(point.reshape(mechanism.shape, order="F"))


NO_MASS = (0.0, 1e-15, 1e-6, 1e-5, 1e-4)
"""Largest cell of an output that is merged into another; the choice that moves the mechanism least is taken."""
ROUNDING = {"fixed": 1e-15, "output_marginal": 1e-15, "symmetric": 1e-15, "forbidden": 1e-300}
"""Deviation that sums of doubles leave in an equality, and logarithms of cells in a forbidden one."""
BISECTIONS = 50
"""Steps of the search for the least share of the trivial mechanism."""
LEAST, MOST = 2.0**-52, 2.0**-5
"""Least and largest share of the uninformative mechanism that is mixed in."""


def missed(mechanism: Array, constraints: Sequence[tuple[str, Constraint]], known: Known) -> dict[str, float]:
    """Return the excess of each ready constraint that a mechanism, (|inputs|, |outputs|), misses.

    >>> from cvxpriv.constraints import local_differential_privacy
    >>> known = Known(np.array([0.5, 0.5]), np.ones(1), np.ones((1, 2)))
    >>> missed(np.array([[1.0, 0.0], [0.75, 0.25]]), [("ldp", local_differential_privacy(1.0))], known)
    {'ldp': 0.25}
    """
    found = {name: excess(one, mechanism, known) for name, one in constraints if isinstance(one, ReadyConstraint)}
    return {name: amount for name, amount in found.items() if amount != 0.0}


def excess(constraint: ReadyConstraint, mechanism: Array, known: Known | None) -> float:
    """Return by how much a mechanism misses a constraint; 0 where it holds, to the rounding of an equality."""
    amount = float(constraint.excess(mechanism, known))
    return 0.0 if amount <= ROUNDING.get(constraint.kind, 0.0) else amount


def brought_inside(mechanism: Array, constraints: Sequence[tuple[str, Constraint]], known: Known) -> Array:
    """Return the mechanism, moved as little as makes every ready constraint hold in doubles.

    >>> from cvxpriv.constraints import expected_distortion
    >>> known = Known(np.array([0.5, 0.5]), np.ones(1), np.ones((1, 2)))
    >>> near = expected_distortion(1.0 - np.eye(2), 0.3)
    >>> found = brought_inside(np.array([[0.7, 0.3], [0.3 + 1e-15, 0.7 - 1e-15]]), [("near", near)], known)
    >>> missed(found, [("near", near)], known), bool(abs(found[1, 0] - 0.3) < 1e-14)
    ({}, True)
    """
    if (found := _moved(mechanism, constraints, known)) is not None:
        return found
    found = _mixed(mechanism, roomiest(mechanism.shape, constraints, known), constraints, known)
    return mechanism if found is None else found


def _moved(mechanism: Array, constraints: Sequence[tuple[str, Constraint]], known: Known) -> Array | None:
    """Return the mechanism on its equalities, with outputs merged and mixed with one that tells nothing; or None."""
    if not missed(mechanism, constraints, known):
        return mechanism
    mechanism = on_equalities(mechanism, constraints, known)
    own, even = known.prior @ mechanism, np.full(mechanism.shape[1], 1.0 / mechanism.shape[1])
    everybody = mechanism.min(axis=0) > 0.0  # elsewhere some input may be forbidden to draw the output
    choices = [own, even] if everybody.all() or not everybody.any() else [own, even, own * everybody, 1.0 * everybody]
    found = [
        one
        for mass in NO_MASS
        for outputs in choices
        if (one := _mixed(_merged(mechanism, mass), outputs / outputs.sum(), constraints, known)) is not None
    ]
    return min(found, key=lambda one: float(np.abs(one - mechanism).max()), default=None)


def inside(mechanism: Array, constraints: Sequence[tuple[str, Constraint]], known: Known) -> Array:
    """Return `brought_inside`; where that is not enough, with the least share of another mechanism that is.

    Rules that treat all outputs alike hold at the trivial one, whose rows are all P(output). With other rules it is the
    one that has most room in all of them. Where that misses one too, it is returned.

    >>> from cvxpriv.constraints import local_differential_privacy
    >>> known = Known(np.array([0.5, 0.5]), np.ones(1), np.ones((1, 2)))
    >>> found = inside(np.eye(2), [("ldp", local_differential_privacy(1.0))], known)
    >>> np.round(found, 3).tolist()
    [[0.731, 0.269], [0.269, 0.731]]
    """
    found = brought_inside(mechanism, constraints, known)
    if not missed(found, constraints, known):
        return found
    low, high, other = 0.0, 1.0, plainest(mechanism, constraints, known)
    for _ in range(BISECTIONS):
        share = (low + high) / 2.0
        mixed = (1.0 - share) * mechanism + share * other
        low, high = (share, high) if missed(mixed, constraints, known) else (low, share)
    return np.asarray((1.0 - high) * mechanism + high * other)


def plainest(mechanism: Array, constraints: Sequence[tuple[str, Constraint]], known: Known) -> Array:
    """Return the mechanism whose rows are all P(output); where that misses a constraint, the roomiest one."""
    rows = np.tile(known.prior @ mechanism, (len(mechanism), 1))
    return roomiest(mechanism.shape, constraints, known) if missed(rows, constraints, known) else rows


def roomiest(shape: tuple[int, ...], constraints: Sequence[tuple[str, Constraint]], known: Known) -> Array:
    """Return the mechanism whose least room in the inequalities of its constraints is largest, to a solver's accuracy.

    >>> from cvxpriv.constraints import expected_distortion
    >>> known = Known(np.array([0.5, 0.5]), np.ones(1), np.ones((1, 2)))
    >>> np.round(roomiest((2, 2), [("near", expected_distortion(1.0 - np.eye(2), 0.3))], known), 6).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    variable, room = cp.Variable(shape, nonneg=True), cp.Variable()
    ready = [one for _, one in constraints if isinstance(one, ReadyConstraint)]
    parts = [part for one in ready for part in one(variable, known)]
    asked = [part.expr <= -room if isinstance(part, cp.constraints.Inequality) else part for part in parts]
    asked += [cp.sum(variable, axis=1) == 1.0, room <= 1.0]
    with suppress(cp.SolverError):
        cp.Problem(cp.Maximize(room), asked).solve(solver="CLARABEL")
    found = np.ones(shape) if variable.value is None else np.maximum(variable.value, 0.0)
    found = np.asarray(found / found.sum(axis=1, keepdims=True))
    moved = _moved(found, constraints, known)
    return found if moved is None else moved


def _mixed(
    mechanism: Array, outputs: Array, constraints: Sequence[tuple[str, Constraint]], known: Known
) -> Array | None:
    """Return the mechanism with the least share of another, None beyond `MOST`.

    `outputs`: The other's rows, or the one row that draws an output whatever the input.
    """
    share = 0.0
    while share <= MOST:
        moved = (1.0 - share) * mechanism + share * outputs
        moved = np.asarray(moved / moved.sum(axis=1, keepdims=True))
        if not missed(moved, constraints, known):
            return moved
        share = max(2.0 * share, LEAST)
    return None


def _merged(mechanism: Array, mass: float) -> Array:
    """Return the mechanism with outputs of nearly no mass merged into the output of most mass."""
    rare, most = mechanism.max(axis=0) <= mass, int(np.argmax(mechanism.min(axis=0)))
    rare[most] = False
    result = np.where(rare, 0.0, mechanism)
    result[:, most] += mechanism[:, rare].sum(axis=1)
    return result
