"""The coefficients of many affine expressions at once, read off cvxpy's own matrix builder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.cvxcore.python import canonInterface
from cvxpy.lin_ops import lin_op as lo

from cvxpriv.numerics.arrays import Array


def affine_rows(expressions: Sequence[Any], variables: Sequence[cp.Variable]) -> tuple[sp.csr_array, Array]:
    """Return matrix and constant of affine expressions, stacked, each column-major.

    `expressions`: Affine expressions without Parameters.
    `variables`: The variables; their entries, column-major, are the columns, one variable after the other.
    Returns `matrix`: (rows, columns). `constant`: (rows,).
    """
    ends = np.cumsum([0, *(variable.size for variable in variables)])
    columns = {variable.id: int(start) for variable, start in zip(variables, ends[:-1], strict=True)}
    width, rows = int(ends[-1]), int(sum(expression.size for expression in expressions))
    if not rows:
        return sp.csr_array((0, width)), np.zeros(0)
    if any(isinstance(node, cp.cumsum) for expression in expressions for node in _nodes(expression)):
        return _by_values(expressions, variables, width)  # the one affine atom that cvxpy's builder does not know
    plain = all(_in_c(node) for expression in expressions for node in _nodes(expression))
    tensor = canonInterface.get_problem_matrix(
        [expression.canonical_form[0] for expression in expressions],
        width,
        columns,
        {lo.CONSTANT_ID: 1},
        {lo.CONSTANT_ID: 0},
        rows,
        "CPP" if plain else "SCIPY",
    )
    whole = sp.csc_array(sp.coo_array(tensor).reshape((rows, width + 1), order="F"))
    return sp.csr_array(whole[:, :width]), np.asarray(whole[:, [width]].toarray()).ravel()


def _by_values(expressions: Sequence[Any], variables: Sequence[cp.Variable], width: int) -> tuple[sp.csr_array, Array]:
    """Return the same, read off the values at 0 and at each unit vector."""
    held = [variable.value for variable in variables]

    def values(entry: int) -> Array:
        point = np.zeros(width)
        point[entry : entry + 1] = 1.0
        begin = 0
        for variable in variables:
            variable.save_value(np.reshape(point[begin : begin + variable.size], variable.shape, order="F"))
            begin += variable.size
        found = [np.asarray(expression.value, dtype=float).ravel(order="F") for expression in expressions]
        return np.concatenate(found)

    try:
        constant = values(width)
        columns = [values(entry) - constant for entry in range(width)]
    finally:
        for variable, value in zip(variables, held, strict=True):
            variable.save_value(value)
    return sp.csr_array(np.stack(columns, axis=1)), constant


def _nodes(expression: Any) -> Iterator[Any]:
    yield expression
    for arg in expression.args:
        yield from _nodes(arg)


def _in_c(node: Any) -> bool:
    """Return whether cvxpy's builder in C++ knows an expression's own operation."""
    return len(node.shape) <= 2 and (not node.args or bool(node._supports_cpp()))
