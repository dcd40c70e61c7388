"""Use of Y to a recipient, column by column: what is learnt, and what can no longer be learnt.

Two uses of rows, column by column:

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

import numpy as np

from cvxpriv.mechanisms.codebook import Stated, statistics_of
from cvxpriv.mechanisms.frequencies import half_widths, identifiable, spread
from cvxpriv.mechanisms.noisy_frequencies import NoisyCounts
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.later import pd
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.recipe import Recipe


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
        joint = sums * prior
        found.append(
            {
                "column": column,
                "role": "coarsened" if column in coarse else "public",
                "values": len(values),
                "guess_nothing": float(joint.sum(axis=1).max()),
                "guess_y": float((joint @ matrix).max(axis=0).sum()),
                "guess_x": 1.0,
                "row_worth": worth(matrix, prior, sums),
                "within": _half_width(stated, matrix, prior, sums, rows),
            }
        )
    return pd.DataFrame(found)


def _half_width(
    stated: Stated | NoisyCounts | None, matrix: Array, prior: Array, statistics: Array, rows: int
) -> float:
    if not rows:
        return float("nan")
    if isinstance(stated, Stated):
        low, high = stated.intervals(statistics)
        return float((high - low).max()) / 2
    from_rows = half_widths(matrix, prior, statistics, rows)
    return float((from_rows if stated is None else np.minimum(from_rows, stated.half_widths(statistics))).max())


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
