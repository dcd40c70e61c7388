"""The master program over given columns as a block: a linear program that every solver can check."""

from __future__ import annotations

from collections.abc import Mapping

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.bounds.master import Master
from cvxpriv.numerics.arrays import Array, Values, starts_in

#: The state entry that the block writes.
WEIGHTS = "weights"


def master_block(costs: Array, rows: Mapping[str, tuple[Array, Array, bool]], constant: float = 0.0) -> Block:
    """Return the block ``minimise constant + c . w`` over ``w >= 0`` and named rows; its exact update is `Master`.

    `costs`: (columns,).
    `rows`, (k, columns), (k,): Matrix, right side, and whether ``M w`` equals the right side or is at most that.

    >>> block = master_block(np.array([3.0, 2.0]), {"sum": (np.ones((1, 2)), np.ones(1), True)})
    >>> block.direct({})["weights"].tolist()
    [[0.0, 1.0]]
    """
    size = len(costs)

    def declare(_: object) -> Declaration:
        w = cp.Variable(size, name=WEIGHTS)
        written: dict[str, cp.Constraint] = {
            name: matrix @ w == right if equal else matrix @ w <= right for name, (matrix, right, equal) in rows.items()
        }
        return Declaration(
            objective=cp.Minimize(costs @ w + constant),
            constraints={**written, "weights": w >= 0},
            variables={WEIGHTS: w},
        )

    def direct(state: Values) -> Values:
        lower = [np.where(equal, right, -np.inf) for _, right, equal in rows.values()]
        master = Master(np.concatenate(lower), np.concatenate([right for _, right, _ in rows.values()]))
        master.add(costs, np.vstack([matrix for matrix, _, _ in rows.values()]))
        return {WEIGHTS: np.repeat(master.solve().weights[None], starts_in(state) if state else 1, axis=0)}

    return Block(
        name="columns",
        reads=frozenset(),
        writes=frozenset({WEIGHTS}),
        declare=declare,
        parameters=lambda view: {},
        embed=lambda point, at: {WEIGHTS: point[WEIGHTS]},
        repair=lambda values, view: {WEIGHTS: np.maximum(values[WEIGHTS], 0.0)},
        write=lambda solution, view: {WEIGHTS: solution.values[WEIGHTS]},
        direct=direct,
    )
