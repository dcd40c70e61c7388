"""Few public symbols: Newton's method on all columns at once, from a small program over a grid of posteriors.

Where the posteriors fill a grid, the best of them are near the best of all. So a program in a few rows and Newton's
method usually end the search, and column generation with its solver need not begin.
"""

import numpy as np

from cvxpriv.numerics.arrays import Array, IntArray

from .columns import SMALL_X, Solved, joint_newton
from .pricing import LARGEST_S, FunnelPricing

#: Number of programs after which column generation takes over.
ROUNDS = 4
#: Least gain for which a column is taken up, in nats.
PAYS = 1e-10
MOST_PIVOTS, SMALLEST_PIVOT = 200, 1e-11


def solved_at_once(pricing: FunnelPricing) -> Solved | None:
    """Return columns and multipliers that solve the optimality conditions, and for which no first column pays.

    None where X or S has too many symbols, or two, or where that is not reached in a few rounds.
    """
    size_s, size_x = pricing.joint.shape
    if not (2 < size_x <= SMALL_X and 2 < size_s <= LARGEST_S):
        return None
    told = pricing.entropy_x - pricing.rate
    columns, (costs, rows) = pricing.first, pricing.rows(pricing.first)
    for _ in range(ROUNDS):
        begun = _program(costs, rows, np.append(pricing.p_x, told))
        if begun is None:
            return None
        used, weights, duals = begun
        active = columns[:, used]
        lam, nu = pricing.split(duals)
        solved = joint_newton(pricing.p_s_given_x, pricing.p_x, -told, active, lam, nu, weights)
        if solved is not None:
            if pricing.value(pricing.first, solved.duals).min() >= -PAYS:
                return solved
            active, duals = np.concatenate([active, solved.columns], axis=1), solved.duals
        found = pricing.local_search(duals, active, -PAYS).columns
        columns = np.concatenate([columns, active, found], axis=1)
        costs, rows = pricing.rows(columns)
    return None


def _program(costs: Array, rows: Array, right: Array) -> tuple[IntArray, Array, Array] | None:
    """Solve the program over some columns; return those in use, their weights, and the multipliers (|X| + 1,).

    A simplex method on a few rows: `Master` would take longer to be set up than this takes to end.

    `costs`, (n,), `rows`, (|X| + 1, n): Those of the columns; the first |X| are single symbols, of entropy 0.
    `right`, (|X| + 1,): P(X), and the most that the mean entropy of the columns may be.
    Returns: None where it does not end.
    """
    size = len(right)
    costs = np.append(costs, 0.0)
    matrix = np.concatenate([rows, np.eye(size)[:, -1:]], axis=1)  # the room that is left below the last row's end
    basis = np.append(np.arange(size - 1), len(costs) - 1)
    inverse, weights = np.eye(size), right.copy()
    for _ in range(MOST_PIVOTS):
        duals = costs[basis] @ inverse
        reduced = costs - duals @ matrix
        enters = int(reduced.argmin())
        if reduced[enters] >= -PAYS:
            used = (basis < len(costs) - 1) & (weights > 0.0)
            return basis[used], weights[used], duals
        column = inverse @ matrix[:, enters]
        falling = np.flatnonzero(column > SMALLEST_PIVOT)
        if not len(falling):
            return None
        leaves = int(falling[(weights[falling] / column[falling]).argmin()])
        inverse[leaves] /= column[leaves]
        weights[leaves] /= column[leaves]
        column[leaves] = 0.0
        inverse -= column[:, None] * inverse[leaves]
        weights = np.maximum(weights - column * weights[leaves], 0.0)
        basis[leaves] = enters
    return None
