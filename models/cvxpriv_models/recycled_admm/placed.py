"""Placed rows as a `RecycledADMM`."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy import sparse

from cvxpriv.numerics.arrays import Array

from .model import RecycledADMM
from .node_rows import Placement

__all__ = ["posed", "with_ones"]


def posed(
    placement: Placement,
    rows: Any,
    labels: Array,
    *,
    loss: str = "logistic",
    reg: float | None = None,
    C: float | None = None,
    intercept: bool = True,
) -> RecycledADMM:
    """Return the model of placed rows.

    Parameters
    ----------
    placement : Placement
    rows : array or sparse by rows, (n, d)
    labels : ndarray, (n,)
    loss, reg, C
        See `RecycledADMM`.
    intercept : bool
        A last column of ones, whose coefficient R takes for one like any other.

    Raises
    ------
    DataError, ModelError
        From the model.
    """
    design = with_ones(rows) if intercept else rows
    shards = [(design[part], labels[part]) for part in placement.parts]
    return RecycledADMM(placement.graph, shards, loss=loss, reg=reg, C=C)


def with_ones(rows: Any) -> Any:
    """Return the rows with a last column of ones."""
    ones = np.ones((rows.shape[0], 1))
    if sparse.issparse(rows):
        return sparse.csr_array(sparse.hstack([cast(Any, rows), sparse.csr_array(ones)]))
    return np.hstack([rows, ones])
