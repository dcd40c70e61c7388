"""Intervals of biased measures, by resampling records.

A plain percentile interval of an information measure repeats the bias instead of removing it: at 299 records on 4 x 16
cells a 95% percentile interval held the true I(S;X) in none of 400 simulated studies.

**The interval.** With v the measure of the bare counts, b the replicates' mean minus v, and l, h their quantiles:

- *corrected* is the hull of the basic interval ``[2v - h, 2v - l]`` and the shifted one ``[l - 2b, h - 2b]``. Both lie
  around ``v - b``; they differ where the replicates are skewed, and near zero information the basic one alone fails.
- a mechanism **designed on the same records** breaks the argument: the design picks outputs that look harmless in this
  very table, so I(S;Y) comes out too *low* (0.0008 for a true 0.015 at 299 records). The population then differs from
  the table as the replicates do, which is what the percentile interval answers for. With ``same_records`` the interval
  of what Y tells is the hull of corrected and percentile.

**Measured**, 95% intervals. Populations like the heart failure table, 3x3 and 2x2 tables, 100 to 3000 records, and a
mechanism that does not depend on them: corrected intervals held the true I(S;Y) in 93-100% of 400 studies, I(X;Y) in
93-99%, I(S;X) in 92-100%, accuracies in 81-97%. Funnel mechanisms designed on the records: ``same_records=True`` held
I(S;Y) in 98-100% of 60 studies, I(X;Y) in 90-98%, the accuracy from Y in 95-100%; ``same_records=False`` held I(S;Y)
in 0-90%. Where much of the population lies in cells that show no record (10 x 160 cells), no resampling sees them: the
true I(S;X) was held in 12-22% of studies, I(S;Y) still in 93-98%; `cvxpriv.disclosure` says so in its notes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvxpriv.information import FloatArray
from cvxpriv.tables.arrays import IntArray

__all__ = ["corrected_interval", "percentile_interval", "resampled_tables"]

CHUNK = 4_000_000
"""How many cells of replicates are held at once (32 MB)."""


def resampled_tables(counts: IntArray, replicates: int, seed: int) -> Iterator[FloatArray]:
    """Empirical tables of records drawn again from a table of counts, as many records each.

    Parameters
    ----------
    counts : array of int, ``(|S|, |X|)``
    replicates : int
    seed : int

    Yields
    ------
    array, ``(some, |S|, |X|)``
        Some replicates at a time; how many at a time does not change the draw.
    """
    rng = np.random.default_rng(seed)
    records = int(counts.sum())
    cells = np.flatnonzero(counts)
    p = counts.ravel()[cells] / records
    for begin in range(0, replicates, step := max(1, CHUNK // counts.size)):
        tables = np.zeros((min(step, replicates - begin), counts.size))
        tables[:, cells] = rng.multinomial(records, p, size=len(tables)) / records
        yield tables.reshape(-1, *counts.shape)


def percentile_interval(replicates: FloatArray, level: float) -> FloatArray:
    """The middle share ``level`` of the replicates of each measure.

    Parameters
    ----------
    replicates : array, ``(replicates, measures)``
    level : float

    Returns
    -------
    array, ``(2, measures)``
    """
    return np.asarray(np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2], axis=0))


def corrected_interval(value: FloatArray, replicates: FloatArray, level: float) -> FloatArray:
    """The hull of the basic and of the shifted interval, both around the value less its bias.

    Parameters
    ----------
    value : array, ``(measures,)``
        Of the bare counts.
    replicates : array, ``(replicates, measures)``
    level : float

    Returns
    -------
    array, ``(2, measures)``
    """
    low, high = percentile_interval(replicates, level)
    bias = replicates.mean(axis=0) - value
    return np.stack(
        [np.minimum(2 * value - high, low - 2 * bias), np.maximum(2 * value - low, high - 2 * bias)],
    )
