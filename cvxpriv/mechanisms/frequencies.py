"""Linear statistics of X estimated from drawn outputs, with intervals.

The chances of the outputs are q = p M. A statistic ``a . p`` is *identifiable* where ``a = M w`` for some weights w:
then ``a . p = w . q``, whatever p is, and the shares of the outputs estimate it without bias. Among such weights those
of least variance, ``w = diag(1/q) M' (M diag(1/q) M')^+ a``, give the error of the most likely estimate (delta method,
away from the boundary), and with a continuity correction the interval.

Any other statistic is not determined by q, however many rows there are. Its interval then holds every value that some
distribution takes whose q lies in simultaneous (Bonferroni) Clopper-Pearson intervals of the outputs' chances: two
linear programs. It covers at least at its level, and stays wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri

from cvxpriv.errors import SolverFailure
from cvxpriv.mechanisms.likelihood import most_likely
from cvxpriv.numerics.arrays import Array, Flags

__all__ = ["Estimates", "clopper_pearson", "estimates", "extreme", "half_widths", "identifiable", "spread"]

RANK = 1e-6
"""Singular values below this part of the largest count as zero."""
PRIOR = 0.5
"""Rows added to each output where variances are computed: no output has none."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of several statistics, each ``(statistics,)``.

    Attributes
    ----------
    likely : array
        Estimates by maximum likelihood. Where a statistic is not identifiable it is one of many equally likely values.
    unbiased : array
        Estimates by inversion; one may lie outside [0, 1]. NaN where the statistic is not identifiable.
    low, high : array
        Ends of the interval, within [0, 1].
    known : array of bool
        Whether the statistic is identifiable.
    """

    likely: Array
    unbiased: Array
    low: Array
    high: Array
    known: Flags


def identifiable(matrix: Array, statistics: Array) -> Flags:
    """Return which statistics the chances of the outputs determine.

    `matrix`: ``(|X|, |Y|)``. `statistics`: ``(statistics, |X|)``.

    Examples
    --------
    >>> merged = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> identifiable(merged, np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])).tolist()
    [False, True]
    """
    weights = np.linalg.pinv(matrix, rcond=RANK)
    return np.asarray(np.abs(statistics @ (matrix @ weights).T - statistics).max(axis=1) <= RANK * 10)


def estimates(matrix: Array, counts: Array, statistics: Array, level: float = 0.95) -> Estimates:
    """Estimate statistics ``a . p`` with entries of a in [0, 1] from the rows of each output.

    `matrix`: ``(|X|, |Y|)``. `counts`: ``(|Y|,)``. `statistics`: ``(statistics, |X|)``.
    Raises DataError, NotConverged: As for `most_likely`.
    """
    rows, found = float(counts.sum()), most_likely(matrix, counts).p
    shares, known = counts / rows, identifiable(matrix, statistics)
    likely = np.clip(statistics @ found, 0.0, 1.0)
    unbiased = np.where(known, statistics @ np.linalg.pinv(matrix, rcond=RANK).T @ shares, np.nan)
    filled = (counts + PRIOR) / (rows + PRIOR * len(counts))
    weights, variance = spread(matrix, filled, statistics)
    middle, variance = weights @ shares, variance / rows
    lattice = np.ptp(weights, axis=1) / (2 * rows)  # the continuity correction: without it 94% held at 100 to 300 rows
    reach = ndtri((1 + level) / 2) * np.sqrt(variance) + lattice
    low, high = np.clip(middle - reach, 0.0, likely), np.clip(middle + reach, likely, 1.0)
    if not known.all():
        box = _boxes(counts, found @ matrix, level)
        for place in np.flatnonzero(~known):
            low[place], high[place] = (extreme(matrix, statistics[place], box, sign) for sign in (1.0, -1.0))
    return Estimates(likely, unbiased, low, high, known)


def spread(matrix: Array, chances: Array, statistics: Array) -> tuple[Array, Array]:
    """Return the weights of the best unbiased estimates, ``(statistics, |Y|)``, and their variances from one row.

    `chances`: Of the outputs, ``(|Y|,)``, all above 0.
    """
    weighed = matrix / chances
    weights = statistics @ (np.linalg.pinv(weighed @ matrix.T, rcond=RANK**2, hermitian=True) @ weighed)
    return weights, np.maximum(weights**2 @ chances - (weights @ chances) ** 2, 0.0)


def half_widths(matrix: Array, prior: Array, statistics: Array, rows: float, level: float = 0.95) -> Array:
    """Return half the widths that intervals from the outputs have about, ``(statistics,)``; .5 where unidentifiable.

    `prior`: Of X, ``(|X|,)``.
    """
    variance = spread(matrix, np.maximum(prior @ matrix, 1e-300), statistics)[1] / rows
    found = np.minimum(0.5, ndtri((1.0 + level) / 2) * np.sqrt(variance))
    return np.where(identifiable(matrix, statistics), found, 0.5)


def clopper_pearson(counts: Array, rows: float, miss: float) -> Array:
    """Return the ends of intervals of chances, ``(2, len(counts))``; each end misses with chance `miss` at most."""
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), rows - counts + 1, miss), 0.0)
    high = np.where(counts < rows, betaincinv(counts + 1, np.maximum(rows - counts, 1), 1 - miss), 1.0)
    return np.stack([low, high])


def _boxes(counts: Array, chances: Array, level: float) -> Array:
    """Return simultaneous intervals of the outputs' chances, ``(2, |Y|)``, which hold some given ones."""
    low, high = clopper_pearson(counts, float(counts.sum()), (1.0 - level) / (2 * len(counts)))
    return np.stack([np.minimum(low, chances - 1e-9), np.maximum(high, chances + 1e-9)])


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
