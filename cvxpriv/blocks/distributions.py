"""Blocks whose variables are distributions and entries of the state, as most of Blahut-Arimoto's kind."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array, Values

ROUGH = 0.01
"""Largest error of a sum that a repair corrects: no solver's answer is as far off."""


def distribution_block(
    name: str,
    declare: Callable[[], Declaration],
    reads: Iterable[str],
    parameters: Callable[[Values], Values],
    direct: Callable[[Values], Values] | None = None,
    axes: Mapping[str, int] | None = None,
) -> Block:
    """Return a block each of whose variables is the entry of the state that has its name.

    `axes`: The axis along which a variable sums to 1, where it is not the last one, -1: the columns of a decoder
    P(S|u), (|S|, |U|), do so along -2.

    >>> import cvxpy as cp
    >>> def nearest() -> Declaration:
    ...     r, target = cp.Variable(2), cp.Parameter(2)
    ...     objective = cp.Minimize(cp.sum_squares(r - target))
    ...     return Declaration(objective, {"sum": cp.sum(r) == 1}, {"r": r}, {"target": target})
    >>> block = distribution_block("nearest", nearest, {"aim"}, lambda state: {"target": state["aim"]})
    >>> values, _ = block.solve({"aim": np.array([0.25, 0.75])})
    >>> values["r"].round(6)
    array([0.25, 0.75])
    """
    writes = frozenset(declare().variables)
    along = {entry: (axes or {}).get(entry, -1) for entry in writes}
    return Block(
        name=name,
        reads=frozenset(reads),
        writes=writes,
        declare=lambda structure: declare(),
        parameters=parameters,
        embed=lambda after, before: {entry: after[entry] for entry in writes},
        repair=lambda values, view: {entry: _distributions(entry, values[entry], along[entry]) for entry in writes},
        write=lambda solution, view: {entry: solution.values[entry] for entry in writes},
        direct=direct,
    )


def _distributions(entry: str, values: Array, axis: int) -> Array:
    inside = np.maximum(values, 0.0)
    total = inside.sum(axis=axis, keepdims=True)
    if np.abs(total - 1.0).max() > ROUGH:
        raise ModelError(f"{entry} does not sum to 1 along axis {axis}: constrain it so, or name its axis in axes")
    return np.asarray(inside / total)
