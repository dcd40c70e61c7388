"""Blocks whose variables are distributions and entries of the state, as most of Blahut-Arimoto's kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.numerics.arrays import Array, Values


def distribution_block(
    name: str,
    declare: Callable[[], Declaration],
    reads: Iterable[str],
    parameters: Callable[[Values], Values],
    direct: Callable[[Values], Values] | None = None,
) -> Block:
    """Return a block each of whose variables is the entry of the state that has its name.

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
    return Block(
        name=name,
        reads=frozenset(reads),
        writes=writes,
        declare=lambda structure: declare(),
        parameters=parameters,
        embed=lambda after, before: {entry: after[entry] for entry in writes},
        repair=lambda values, view: {entry: _distributions(values[entry]) for entry in writes},
        write=lambda solution, view: {entry: solution.values[entry] for entry in writes},
        direct=direct,
    )


def _distributions(values: Array) -> Array:
    inside = np.maximum(values, 0.0)
    total = inside.sum(axis=-1, keepdims=True)
    uniform = np.full_like(inside, 1.0 / inside.shape[-1])
    return np.asarray(np.divide(inside, total, out=uniform, where=total > 0.0))
