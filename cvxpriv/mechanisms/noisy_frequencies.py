"""Frequencies of X from a table's noisy counts, and intervals for the population that the records come from.

A table with noise may be published, and so may the sums over S of its noisy counts, before anything is cut at zero: an
unbiased count of each symbol of X, with noise of a known law. The count of some symbols is K + T with K from
Binomial(n, p) and T the sum of the noise of their cells, independent of K. The interval holds every p that its observed
value does not exclude at half the miss on either side (Clopper and Pearson's way). So it covers at least at its level,
for the noise and for the sampling of the records together.

Where the number of records is public, the cells of all other symbols tell the count too: the fewer are taken. Where it
is private, an interval of it comes first, at a tenth of the miss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtrc, ndtr, ndtri

from cvxpriv.errors import DataError
from cvxpriv.mechanisms.codebook import by_column
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.joint import JointTable

WIDE = 12.0
"""Noise beyond so many standard deviations is left out of the sums: less than 1e-6 of the miss, for one Laplace too."""
FINE, COARSE = 2**18, 1024
"""Largest number of places of the noise's law, and of those that it is summed up in; each is moved outwards whole."""
SHARE = 0.1
"""Share of the miss that goes to the number of records where it is private."""


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """The public counts of the symbols of X.

    `counts`, (|X|,): Sums of noisy cells; one can be below 0.
    `prior`, (|X|,): P(X) of the table that the mechanism was designed on: the noisy cells cut at zero.
    `cells`: Number of cells that each count is the sum of, |S|.
    `scale`: Scale of the Laplace noise of a cell, or the standard deviation of Gaussian noise.
    `records`: Number of records; None where it is private.
    """

    inputs: Alphabet
    counts: Array
    prior: Array
    cells: int
    scale: float
    gaussian: bool
    records: int | None

    @classmethod
    def of(cls, table: JointTable) -> NoisyCounts | None:
        """Return the counts of a table with noise; None of one without, or of an older file that lacks them."""
        protection = table.protection
        if protection is None or not protection.noisy_counts:
            return None
        known = table.records if protection.adjacency == "replace-one" else None
        counts = np.array(protection.noisy_counts, dtype=np.float64)
        gaussian = protection.delta > 0.0
        return cls(table.public, counts, table.p_x, len(table.private), protection.scale, gaussian, known)

    @property
    def likely(self) -> Array:
        """Distribution of X, ``(|X|,)``."""
        return self.prior

    def intervals(self, statistics: Array, level: float = 0.95) -> Array:
        """Return intervals of frequencies in the population, ``(2, statistics)``; each covers at least at the level.

        `statistics`: entries 0 or 1, ``(statistics, |X|)``.

        >>> told = NoisyCounts(Alphabet.numbered("ill", 2), np.array([352.0, 646.0]), np.array([0.35, 0.65]), 2, 2.0,
        ...     False, 1000)
        >>> told.intervals(np.array([[1.0, 0.0]])).round(2).ravel()
        array([0.32, 0.38])
        """
        miss, total = 1.0 - level, float(self.counts.sum())
        fewest = most = self.records
        if self.records is None:
            places, chances = self._noise(len(self.counts))
            reach = places[np.searchsorted(np.cumsum(chances), 1.0 - SHARE * miss / 2)]
            miss *= 1.0 - SHARE
            fewest, most = max(int(np.floor(total - reach)), 1), max(int(np.ceil(total + reach)), 1)
        assert fewest is not None
        assert most is not None
        found = []
        for one in np.asarray(statistics, dtype=np.float64):
            symbols = int(one.sum())
            seen = round(float(one @ self.counts))
            if self.records is not None and 2 * symbols > len(one):
                seen, symbols = round(self.records - float((1.0 - one) @ self.counts)), len(one) - symbols
            found.append(self._interval(seen, symbols, fewest, most, miss / 2))
        return np.array(found).T

    def half_widths(self, statistics: Array, level: float = 0.95) -> Array:
        """Return half the widths that such intervals have about, ``(statistics,)``, by `prior` alone."""
        symbols, many = statistics.sum(axis=1), self.records or max(float(self.counts.sum()), 1.0)
        fewer = symbols if self.records is None else np.minimum(symbols, len(self.counts) - symbols)
        shares = statistics @ self.prior
        variance = shares * (1.0 - shares) / many + fewer * self.cells * self._variance / many**2
        return np.asarray(np.minimum(0.5, ndtri((1.0 + level) / 2) * np.sqrt(variance)))

    def document(self) -> dict[str, Any]:
        """Return the counts as a mechanism's file and a bundle hold them."""
        return {
            "noisy_counts": self.counts.tolist(),
            "prior": self.prior.tolist(),
            "cells": self.cells,
            "scale": self.scale,
            "gaussian": self.gaussian,
            "records": self.records,
            "columns": by_column(self.inputs, self.prior),
        }

    @cached_property
    def _variance(self) -> float:
        """Variance of a cell's noise; that of the rounding is at most 1/4."""
        return (self.scale**2 if self.gaussian else 2.0 * self.scale**2) + 0.25

    def _interval(self, seen: int, symbols: int, fewest: int, most: int, miss: float) -> tuple[float, float]:
        """Return the least and the largest p that a count does not exclude."""
        places, chances = self._noise(symbols)
        step = (places[1] - places[0]) / 2 if len(places) > 1 else 0.0

        def above(p: float) -> float:  # chance of a count of at least what was seen, rounded up
            return float(chances @ _at_least(np.ceil(seen - places - step), most, p)) - miss

        def below(p: float) -> float:
            return float(chances @ (1.0 - _at_least(np.floor(seen - places + step) + 1.0, fewest, p))) - miss

        low = 0.0 if above(0.0) >= 0.0 else 1.0 if above(1.0) < 0.0 else float(brentq(above, 0.0, 1.0, xtol=1e-7))
        high = 1.0 if below(1.0) >= 0.0 else 0.0 if below(0.0) < 0.0 else float(brentq(below, 0.0, 1.0, xtol=1e-7))
        return max(low - 1e-7, 0.0), min(high + 1e-7, 1.0)

    def _noise(self, symbols: int) -> tuple[Array, Array]:
        """Return places of the noise in the count of some symbols, evenly apart, and their chances."""
        terms = symbols * self.cells
        if not terms:
            return np.zeros(1), np.ones(1)
        reach = WIDE * np.sqrt(terms * self._variance) + 40.0 * self.scale * (not self.gaussian)
        unit = max(1.0, float(np.ceil(2.0 * reach / FINE)))  # beyond 1, the steps are still far below the noise
        half = int(np.ceil(reach / unit))
        ends = (np.arange(-half, half + 2) - 0.5) * unit / self.scale
        law = np.diff(
            ndtr(ends)
            if self.gaussian
            else np.where(ends < 0, np.exp(-np.abs(ends)) / 2, 1 - np.exp(-np.abs(ends)) / 2)
        )
        turned = np.fft.rfft(np.fft.ifftshift(law)) ** terms
        found = np.fft.fftshift(np.maximum(np.fft.irfft(turned, len(law)), 0.0))
        group = -(-len(found) // COARSE)
        pad = -len(found) % group
        summed = np.pad(found, (0, pad)).reshape(-1, group).sum(axis=1)
        middle = (np.arange(len(summed)) * group + (group - 1) / 2 - half) * unit
        return np.asarray(middle), np.asarray(summed / summed.sum())


def counts_in(document: Mapping[str, Any], inputs: Alphabet) -> NoisyCounts:
    """Return the counts that a file holds.

    Raises DataError: It holds other ones. KeyError, TypeError, ValueError: Values of another kind.
    """
    counts, prior = (np.asarray(document[name], dtype=np.float64) for name in ("noisy_counts", "prior"))
    cells, scale, records = document["cells"], float(document["scale"]), document["records"]
    whole = [one for one in (cells, records) if one is not None]
    fits = counts.shape == prior.shape == (len(inputs),) and np.isfinite(counts).all() and (prior >= 0).all()
    if not (fits and all(isinstance(one, int) and one > 0 for one in whole) and 0 < scale < np.inf):
        raise DataError("its noisy counts are no counts of its symbols: design the mechanism again")
    if not isinstance(document["gaussian"], bool) or abs(prior.sum() - 1.0) > 1e-6:
        raise DataError("its noisy counts have no distribution: design the mechanism again")
    return NoisyCounts(inputs, counts, prior, cells, scale, document["gaussian"], records)


def _at_least(counts: Array, records: int, p: float) -> Array:
    """Return the chance that a binomial count is at least each of some numbers."""
    inside = np.clip(counts - 1.0, 0.0, records)
    found = np.where(counts > records, 0.0, bdtrc(inside, records, p))
    return np.asarray(np.where(counts <= 0.0, 1.0, found))
