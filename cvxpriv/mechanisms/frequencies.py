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

__all__ = ["Estimates", "estimates", "identifiable", "ranges"]

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
    weighed = matrix / filled
    best = np.linalg.pinv(weighed @ matrix.T, rcond=RANK**2, hermitian=True) @ weighed
    weights = statistics @ best
    middle = weights @ shares
    variance = np.maximum(weights**2 @ filled - (weights @ filled) ** 2, 0.0) / rows
    lattice = np.ptp(weights, axis=1) / (2 * rows)  # the continuity correction: without it 94% held at 100 to 300 rows
    reach = ndtri((1 + level) / 2) * np.sqrt(variance) + lattice
    low, high = np.clip(middle - reach, 0.0, likely), np.clip(middle + reach, likely, 1.0)
    box = _boxes(counts, found @ matrix, level) if not known.all() else None
    for place in np.flatnonzero(~known):
        low[place], high[place] = (_extreme(matrix, statistics[place], box, sign) for sign in (1.0, -1.0))
    return Estimates(likely, unbiased, low, high, known)


def _boxes(counts: Array, chances: Array, level: float) -> Array:
    """Return simultaneous intervals of the outputs' chances, ``(2, |Y|)``, which hold some given ones."""
    miss, rows = (1.0 - level) / (2 * len(counts)), counts.sum()
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), rows - counts + 1, miss), 0.0)
    high = np.where(counts < rows, betaincinv(counts + 1, np.maximum(rows - counts, 1), 1 - miss), 1.0)
    return np.stack([np.minimum(low, chances - 1e-9), np.maximum(high, chances + 1e-9)])


def _extreme(matrix: Array, statistic: Array, box: Array | None, sign: float) -> float:
    """Return the least (sign 1) or the largest (sign -1) value of a statistic over the distributions in a box."""
    from scipy.optimize import linprog

    assert box is not None, "the box is made wherever a statistic is not identifiable"
    rows = np.concatenate([matrix.T, -matrix.T])
    ends = np.concatenate([box[1], -box[0]])
    answer = linprog(sign * statistic, rows, ends, np.ones((1, len(statistic))), [1.0], bounds=(0.0, 1.0))
    if answer.status != 0 or answer.fun is None:
        raise SolverFailure(f"the range of a statistic was not found ({answer.message}): report this as a fault")
    return float(np.clip(sign * answer.fun, 0.0, 1.0))


def ranges(posterior: Array, step: float, counts: Array, statistics: Array, level: float = 0.95) -> Array:
    """Return the identified ranges of statistics for somebody who knows a rounded codebook in place of P(Y|X).

    With w(x) = p(x)/p0(x), the ratio of the population to the codebook's prior, the joint distribution is
    ``p(x) M(x, y) = w(x) q0(y) P0(x|y)``: linear in w, with P0 known to half a step and q0 = p0 M within the ends of
    `_prior_chances`. The ranges hold every value that some w, codebook and q0 allow, where the outputs' chances lie in
    their simultaneous intervals. They cover at least at the level. q0 itself is no part of a bundle: where the rows
    fit no distribution exactly, it is a point of the hull of P(Y|X), often a whole row of it.

    `posterior`: ``(|Y|, |X|)``, rounded to `step`. `counts`: ``(|Y|,)``, which the codebook was made with.
    `statistics`: entries 0 or 1, ``(statistics, |X|)``. Returns ``(2, statistics)``.
    Raises SolverFailure: A linear program was not solved.

    Examples
    --------
    >>> exact = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> low, high = ranges(exact, 0.05, np.array([5000, 5000]), np.array([[1.0, 0.0]]))
    >>> bool(low[0] < 0.55 < high[0]), bool(high[0] - low[0] < 0.3)
    (True, True)
    """
    miss = (1.0 - level) / 2  # half of it for q, half for q0
    box = _boxes(counts, counts / counts.sum(), 1.0 - miss)
    reach = step / 2 + 1e-9
    unknown = (counts == 0) & (posterior.sum(axis=1) == 0)  # P0 says nothing of an output that has no chance
    least, most = np.clip(posterior - reach, 0.0, 1.0), np.clip(posterior + reach, 0.0, 1.0)
    most[unknown] = 1.0
    ends = _prior_chances(posterior[~unknown], reach, counts, miss)
    least, most = least * ends[0][:, None], most * ends[1][:, None]
    return np.array([[_range(least, most, box, one, sign) for one in statistics] for sign in (1.0, -1.0)])


def _prior_chances(posterior: Array, reach: float, counts: Array, miss: float) -> Array:
    """Return ends of q0, the chances of the outputs under the codebook's prior, ``(2, |Y|)``; 1 for a q0 of zero.

    As p0 is most likely, ``(s - q0) P0 = 0`` with s the shares of the outputs: they are q0 where P0 has full row rank
    whatever the rounding did (its least singular value exceeds the Frobenius norm of the error). Elsewhere s is at
    least as near to q0 as to the true chances q in relative entropy, and ``n KL(s, q)`` is below c with chance
    ``1 - exp(-c) (e c / (k - 1))^(k - 1)`` at least (Agrawal 2020, Theorem I.2). So is ``n kl(s(y), q0(y))``.
    """
    rows, more = float(counts.sum()), max(len(counts) - 1, 1)
    shares = counts / rows
    if np.linalg.matrix_rank(posterior, tol=reach * np.sqrt(posterior.size)) == len(posterior):
        near = 1e-8  # the likelihood is maximised to a gap of 1e-10
        return np.stack([np.maximum(shares - near, 0.0), np.where(shares > 0, shares + near, 1.0)])
    c = more * _above_one(np.log(1 / miss) / more)
    spread = np.sqrt(2 * shares * c / rows)
    return np.stack([np.maximum(shares - spread, 0.0), np.minimum(shares + spread + 2 * c / rows, 1.0)])


def _above_one(excess: float) -> float:
    """Return the root t > 1 of ``t - 1 - log t = excess``, by Newton's method from above: the function is convex."""
    root = 2.0 * (1.0 + excess)
    for _ in range(60):
        root -= (root - 1.0 - np.log(root) - excess) / (1.0 - 1.0 / root)
    return float(root)


def _range(least: Array, most: Array, box: Array, statistic: Array, sign: float) -> float:
    """Return the least (sign 1) or the largest (sign -1) value of a statistic: see `ranges`.

    The variables are w, and for each output the chance of it together with a symbol inside, or outside, the statistic.
    """
    from scipy.optimize import linprog

    outputs, inputs = least.shape
    unit, none = np.eye(outputs), np.zeros((outputs, outputs))
    inside, outside = statistic, 1.0 - statistic
    rows = np.vstack(
        [
            np.hstack([least * inside, -unit, none]),
            np.hstack([-most * inside, unit, none]),
            np.hstack([least * outside, none, -unit]),
            np.hstack([-most * outside, none, unit]),
            np.hstack([np.zeros((outputs, inputs)), unit, unit]),
            np.hstack([np.zeros((outputs, inputs)), -unit, -unit]),
        ]
    )
    ends = np.concatenate([np.zeros(4 * outputs), box[1], -box[0]])
    whole = np.concatenate([np.zeros(inputs), np.ones(2 * outputs)])
    aim = np.concatenate([np.zeros(inputs), sign * np.ones(outputs), np.zeros(outputs)])
    answer = linprog(aim, rows, ends, whole[None], [1.0], bounds=(0.0, None))
    if answer.status != 0 or answer.fun is None:
        raise SolverFailure(f"the range of a statistic was not found ({answer.message}): report this as a fault")
    return float(np.clip(sign * answer.fun, 0.0, 1.0))
