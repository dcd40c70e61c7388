"""Use of drawn outputs to a recipient: linear statistics of X estimated from them, with intervals, and guesses.

The chances of the outputs are q = p M. A statistic ``a . p`` is *identifiable* where ``a = M w`` for some weights w:
then ``a . p = w . q``, whatever p is, and the shares of the outputs estimate it without bias. Among such weights those
of least variance, ``w = diag(1/q) M' (M diag(1/q) M')^+ a``, give the error of the most likely estimate (delta method,
away from the boundary), and with a continuity correction the interval.

Any other statistic is not determined by q, however many rows there are. Its interval then holds every value that some
distribution takes whose q lies in simultaneous (Bonferroni) Clopper-Pearson intervals of the outputs' chances: two
linear programs. It covers at least at its level, and stays wide.

So rows of outputs have two uses to a recipient, column by column (`column_utility`):

- **A guess** of a row's value: the chance that the best guess is right, from nothing, from Y, and from X itself.
- **Frequencies** of the values: the variance of the best unbiased estimate from a row's Y, beside the variance from the
  value itself. Their quotient is the share of a row that a row of Y is worth: 1,000 rows of worth .2 estimate as well
  as 200 rows of the column. It is that of the column's worst value, and 0 where Y does not determine a frequency.
- **Within**: half the width of a recipient's 95% interval for the frequency of the column's worst value. A bundle of a
  private table states rounded frequencies (`cvxpriv.mechanisms.codebook`), so it does not depend on Y. One with noise
  in its table states noisy counts (`cvxpriv.mechanisms.noisy_frequencies`); where the rows' worth tells more, it
  follows from that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from cvxpriv.mechanisms.codebook import Stated, clopper_pearson, statistics_of
from cvxpriv.mechanisms.likelihood import extreme, most_likely
from cvxpriv.mechanisms.noisy_frequencies import NoisyCounts
from cvxpriv.numerics.arrays import Array, Flags
from cvxpriv.numerics.packages import pd
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.recipe import Recipe

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


def _boxes(counts: Array, chances: Array, level: float) -> Array:
    """Return simultaneous intervals of the outputs' chances, ``(2, |Y|)``, which hold some given ones."""
    low, high = clopper_pearson(counts, float(counts.sum()), (1.0 - level) / (2 * len(counts)))
    return np.stack([np.minimum(low, chances - 1e-9), np.maximum(high, chances + 1e-9)])


def column_utility(
    matrix: Array,
    inputs: Alphabet,
    prior: Array,
    recipe: Recipe | None = None,
    rows: int = 0,
    stated: Stated | NoisyCounts | None = None,
) -> pd.DataFrame:
    """Return what Y tells of each column of X.

    `matrix`: (|X|, |Y|).
    `prior`: (|X|,).
    `recipe`: Recipe that made the symbols: its columns are said to be coarsened.
    `rows`: Number of released rows; 0 if it is not known: `within` is then missing.
    `stated`: The frequencies that the bundle states.
    Returns: One row a column: column, role, values, guess_nothing, guess_y, guess_x, row_worth, within.

    >>> kept = column_utility(np.array([[0.9, 0.1], [0.1, 0.9]]), Alphabet.numbered("ill", 2), np.array([0.5, 0.5]))
    >>> kept[["guess_nothing", "guess_y", "row_worth"]].round(2).iloc[0].tolist()
    [0.5, 0.9, 0.64]
    """
    coarse = {step.column for step in recipe.steps} if recipe is not None else set()
    found = []
    for column in inputs.columns:
        values, sums = statistics_of(inputs, [column])
        joint, within = sums * prior, np.array(np.nan)
        if isinstance(stated, Stated):
            low, high = stated.intervals(sums) if rows else (within, within)
            within = (high - low) / 2
        elif rows:
            from_rows = half_widths(matrix, prior, sums, rows)
            within = from_rows if stated is None else np.minimum(from_rows, stated.half_widths(sums))
        found.append(
            {
                "column": column,
                "role": "coarsened" if column in coarse else "public",
                "values": len(values),
                "guess_nothing": float(joint.sum(axis=1).max()),
                "guess_y": float((joint @ matrix).max(axis=0).sum()),
                "guess_x": 1.0,
                "row_worth": worth(matrix, prior, sums),
                "within": float(within.max()),
            }
        )
    return pd.DataFrame(found)


def private_columns(table: JointTable, matrix: Array) -> pd.DataFrame:
    """Return what Y tells of each private column, in the form of `column_utility`.

    This is an adversary's guess before and after. A recipient is not meant to estimate frequencies: row_worth and
    within are missing.
    """
    rows = []
    for column in table.private.columns:
        values, sums = statistics_of(table.private, [column])
        joint = sums @ table.probabilities
        guesses = (joint.sum(axis=1, keepdims=True), joint @ matrix, joint)
        found = [float(one.max(axis=0).sum()) for one in guesses]
        about = {"column": column, "role": "private", "values": len(values)}
        rows.append({**about, **dict(zip(("guess_nothing", "guess_y", "guess_x"), found, strict=True))})
    return pd.DataFrame(rows).assign(row_worth=np.nan, within=np.nan)


def worth(matrix: Array, prior: Array, statistics: Array) -> float:
    """Return the share of a row that a row of Y is worth, for the worst of some frequencies.

    `matrix`: (|X|, |Y|).
    `prior`: (|X|,).
    `statistics`: (statistics, |X|).
    """
    if not identifiable(matrix, statistics).all():
        return 0.0
    from_y = spread(matrix, np.maximum(prior @ matrix, 1e-300), statistics)[1]
    from_x = statistics @ prior * (1.0 - statistics @ prior)
    open_ = from_x > 1e-12
    return float(np.clip((from_x[open_] / np.maximum(from_y[open_], 1e-300)).min(initial=1.0), 0.0, 1.0))
