"""Distributions of X that fit the drawn outputs: the most likely one, and those that are extreme in a statistic.

The most likely one is found by expectation maximisation with a certified end.

With r the share of each output among the rows and q = p M its chance, the likelihood per row, ``r . log q``, is concave
in p. A pass multiplies p by ``g = M (r/q)``, which never lowers it. At any p no distribution is better by more than
``log max g`` (by concavity, with the slope g): this is the gap at which the work stops.

Passes are slow near a boundary, where thousands may be needed. After `MOST_PASSES` Newton's method takes over, on the
same problem with the sum of p set free: the least of ``sum p - r . log q`` over p >= 0 sums to 1 by itself, since the
rows of M do. It walks through the interior, with a barrier that shrinks, and ends at the same gap.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.errors import DataError, NotConverged, SolverFailure
from cvxpriv.numerics.arrays import Array

TOLERANCE = 1e-10
"""Gap in the likelihood per row, in nats, at which the passes stop."""
MOST_PASSES = 200
MOST_STEPS = 300
"""Number of passes before Newton's method, and of its steps."""

SHRINK, LEAST = 0.1, 1e-8
"""Share of the barrier that a step keeps, and the least entry of the point that it begins from."""


@dataclass(frozen=True, eq=False)
class MostLikely:
    """A most likely distribution.

    `p`, (|X|,): Sums to 1.
    `gap`: No distribution has a likelihood per row that is larger by more than this, in nats.
    `passes`: Number of passes, and of Newton's steps after them.
    """

    p: Array
    gap: float
    passes: int


def most_likely(matrix: Array, counts: ArrayLike) -> MostLikely:
    """Return the distribution of X under which the outputs are most likely.

    Where several are equally likely, it is one of them.

    `matrix`, ``(|X|, |Y|)``: P(Y|X).
    `counts`, ``(|Y|,)``: Number of rows of each output.
    Raises DataError: No rows, or an output that no symbol leads to. NotConverged: The gap is above the tolerance at the
    end.

    >>> found = most_likely(np.array([[0.9, 0.1], [0.2, 0.8]]), [55, 45])
    >>> found.p.round(4)
    array([0.5, 0.5])
    """
    rows = np.asarray(counts, dtype=np.float64)
    if not rows.sum() > 0:
        raise DataError("counts are all zero: there are no rows to learn from")
    if ((matrix.sum(axis=0) <= 0) & (rows > 0)).any():
        raise DataError("some rows hold an output that the mechanism never draws: they belong to another mechanism")
    drawn = rows > 0
    used, shares = matrix[:, drawn], rows[drawn] / rows.sum()
    p = np.full(len(matrix), 1.0 / len(matrix))
    for taken in range(MOST_PASSES):
        slope = used @ (shares / (p @ used))
        if (gap := _gap(slope)) <= TOLERANCE:
            return MostLikely(p, gap, taken)
        p = p * slope / (p @ slope)
    return _by_newton(used, shares, np.maximum(p, LEAST))


def _gap(slope: Array) -> float:
    return float(np.log(max(slope.max(), 1.0)))


def _by_newton(used: Array, shares: Array, p: Array) -> MostLikely:
    """Return the most likely distribution by a primal-dual interior method from a point without zeros."""
    slack, gap = np.full(len(p), 0.1), np.inf
    for taken in range(MOST_STEPS):
        chances = p @ used
        slope = used @ (shares / chances)
        whole = p / p.sum()
        gap = _gap(slope * p.sum())  # the slope at the point that sums to 1
        if gap <= TOLERANCE:
            return MostLikely(whole, gap, MOST_PASSES + taken)
        barrier = SHRINK * float(p @ slack) / len(p)
        scaled = used * (np.sqrt(shares) / chances)
        down = slope - 1.0 + barrier / p
        step = np.asarray(np.linalg.solve(scaled @ scaled.T + np.diag(slack / p), down), dtype=np.float64)
        dual: Array = barrier / p - slack - slack / p * step
        length = _inside(p, step)
        before = _merit(used, shares, p, barrier)
        while _merit(used, shares, p + length * step, barrier) > before - 1e-4 * length * float(down @ step) + 1e-14:
            length /= 2.0
            if length < 1e-12:
                break
        p, slack = p + length * step, slack + _inside(slack, dual) * dual
    raise NotConverged(f"the most likely distribution is off by {gap:.1e} nats a row after {MOST_STEPS} steps")


def _inside(point: Array, step: Array) -> float:
    """Return the longest step, at most 1, that keeps a point positive."""
    falling = step < 0
    return min(1.0, float(0.995 * np.min(-point[falling] / step[falling]))) if falling.any() else 1.0


def _merit(used: Array, shares: Array, p: Array, barrier: float) -> float:
    return float(p.sum() - shares @ np.log(p @ used) - barrier * np.log(p).sum())


def extreme(matrix: Array, statistic: Array, box: Array, sign: float) -> float:
    """Return the least (sign 1) or the largest (sign -1) value of ``statistic . p`` over distributions in a box.

    `box`: Ends of ``p @ matrix``, ``(2, columns)``. Raises SolverFailure: The linear program was not solved.
    """
    from scipy.optimize import linprog

    rows = np.concatenate([matrix.T, -matrix.T])
    ends = np.concatenate([box[1], -box[0]])
    answer = linprog(sign * statistic, rows, ends, np.ones((1, len(statistic))), [1.0], bounds=(0.0, 1.0))
    if answer.status != 0 or answer.fun is None:
        raise SolverFailure(f"the range of a statistic was not found ({answer.message}): report this as a fault")
    return float(np.clip(sign * answer.fun, 0.0, 1.0))
