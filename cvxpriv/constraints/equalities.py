"""The nearest mechanism on the linear equalities of ready constraints: a solver's answer is off by its tolerance."""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from cvxpriv.blocks.declaration import Constraint, Known
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.numerics.arrays import Array

__all__ = ["on_equalities"]

#: Relative accuracy of the projection; what is left is taken by a second one.
ROUNDING = 1e-16


def on_equalities(mechanism: Array, constraints: Sequence[tuple[str, Constraint]], known: Known) -> Array:
    """Return the nearest mechanism on the equalities of its constraints; cells that have a value get it exactly.

    Parameters
    ----------
    mechanism : array, (|inputs|, |outputs|)
        Rows sum to 1.
    constraints : sequence of (str, Constraint)
        Equalities with variables of their own are passed over.
    known : Known

    Examples
    --------
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
        step = lsqr(matrix[:, free], matrix @ point - against, atol=ROUNDING, btol=ROUNDING)[0]
        point[free] = np.maximum(point[free] - step, 0.0)
    return np.asarray(point.reshape(mechanism.shape, order="F"))
