"""Small counts withheld from a table with totals, so that no subtraction gives them back.

A count of 1 to 5 is withheld, in the cells and in the totals alike. Who knows the other counts, the totals and this
rule can still bound a withheld one: all tables that agree with what is shown, and have at least 1 wherever something is
withheld, are possible to them. A small count is safe where one of these tables has more than 5 in its place. This is
the largest value of a linear program, whose corners are whole numbers, as the constraints are those of a network. Where
a small count is not safe, further counts are withheld: the least one in its row, its column, or their totals.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from cvxpriv.errors import SolverFailure
from cvxpriv.numerics.arrays import Array, Flags, IntArray

SMALL = 5
"""Largest count that is small."""


def with_totals(counts: IntArray) -> IntArray:
    """Return a table of counts with the total of each row and column, and of all.

    >>> with_totals(np.array([[1, 2], [3, 4]])).tolist()
    [[1, 2, 3], [3, 4, 7], [4, 6, 10]]
    """
    wide = np.column_stack([counts, counts.sum(axis=1)])
    return np.asarray(np.vstack([wide, wide.sum(axis=0)]), dtype=np.int64)


def withheld(counts: IntArray) -> Flags:
    """Return which counts of `with_totals` must be withheld, so that no count of 1 to 5 can be known for small.

    `counts`: ``(|S|, |X|)``.
    Returns ``(|S| + 1, |X| + 1)``.
    Raises SolverFailure: A linear program was not solved.

    >>> withheld(np.array([[2, 40, 60], [30, 50, 70]])).astype(int).tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    """
    whole = with_totals(counts)
    small = (whole >= 1) & (whole <= SMALL)
    hidden = small.copy()
    safe = ~small
    while not safe.all():
        place = tuple(np.argwhere(~safe)[0])
        possible = _largest(whole, hidden, place)
        safe |= possible > SMALL
        if not safe[place] and not _more(whole, hidden, place):
            break  # everything that is linked to it is withheld
    return hidden


def _more(whole: IntArray, hidden: Flags, place: tuple[int, ...]) -> bool:
    """Withhold one more count that is linked to a withheld one; returns whether there was one.

    A count in lines with a single withheld one comes first, since subtraction undoes those; then a cell before a total,
    one in the same line, and the least.
    """
    rows, columns = hidden.sum(axis=1), hidden.sum(axis=0)
    cells = np.argwhere(((rows > 0)[:, None] | (columns > 0)[None, :]) & ~hidden & (whole > 0))
    if not len(cells):
        return False
    row, column = cells.T
    alone = (rows[row] == 1).astype(int) + (columns[column] == 1)
    total = (row == len(rows) - 1) | (column == len(columns) - 1)
    beside = (row == place[0]) | (column == place[1])
    best = np.lexsort((whole[row, column], ~beside, total, -alone))[0]
    hidden[row[best], column[best]] = True
    return True


def _largest(whole: IntArray, hidden: Flags, place: tuple[int, ...]) -> Array:
    """Return the possible table in which a withheld count is largest; 0 where nothing is withheld."""
    index = np.full(whole.shape, -1)
    index[hidden] = np.arange(hidden.sum())
    lines = np.zeros((sum(whole.shape), int(hidden.sum())))
    ends: list[float] = []
    for sideways in (whole, whole.T):
        numbers, covered = (index, hidden) if sideways is whole else (index.T, hidden.T)
        for line, counts in enumerate(sideways):
            weights = np.append(np.ones(len(counts) - 1), -1.0)  # the cells less their total are 0
            here = np.flatnonzero(covered[line])
            lines[len(ends), numbers[line, here]] = weights[here]
            ends.append(-float(weights @ np.where(covered[line], 0, counts)))
    cost = np.zeros(int(hidden.sum()))
    cost[index[place]] = -1.0
    answer = linprog(cost, A_eq=lines, b_eq=ends, bounds=(1.0, float(whole.sum())))
    if answer.status != 0 or answer.x is None:
        raise SolverFailure(f"the range of a withheld count was not found ({answer.message}): report this as a fault")
    found = np.zeros(whole.shape)
    found[hidden] = np.rint(answer.x)
    return found
