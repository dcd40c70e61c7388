"""Disclosure of a release, with intervals: information, and an adversary's best guess, from a table of records.

The measures are read off the joint table of (S, X) and the mechanism P(Y|X). A table of a few hundred records is
itself uncertain, and information computed from it is biased: chance differences between cells look like information,
so I(S;X) comes out too high, by about ``(|S| - 1)(|X| - 1) / 2n`` nats. A mechanism designed on the table pulls the
other way: on its own table it looks better than it is. `cvxpriv.tables.information` says how the intervals answer for
both, and how well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.errors import DataError, shown, suggest
from cvxpriv.numerics.arguments import is_whole
from cvxpriv.numerics.arrays import Array, IntArray
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import of_resampling, require_feasible
from cvxpriv.tables.arrays import stochastic_matrix
from cvxpriv.tables.information import (
    ACCURACIES,
    MEASURES,
    OF_Y,
    accepted_hull,
    hull,
    measure,
    milder_populations,
    ranges,
    resampled_tables,
    with_noise,
)
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.protection import Protection

OF_RELEASES = (
    "They bound what one release tells on average about S within the population that the table "
    "describes, to somebody who knows that table; they promise nothing about a single person, about other "
    "attributes, about two releases of the same rows, or about columns released beside Y."
)
STATEMENT = (
    "The mechanism, its figures and the privacy-utility curve are computed from private data and are not themselves "
    "differentially private: the mechanism and its exact figures stay at home. " + OF_RELEASES
)
"""The statement that accompanies every report of a mechanism."""

UNSEEN_SHARE = 0.01
"""Estimated share of the population in unseen cells from which the notes warn."""


@door
@dataclass(frozen=True, eq=False)
class Disclosure:
    """The measures that `disclosure` computes, with their intervals.

    Parameters
    ----------
    frame : DataFrame
        One row per measure (see `MEASURES`). ``value`` belongs to the table as it stands, smoothing included; ``low``
        and ``high`` to the population that the records come from; ``empirical`` to the bare counts; ``bias`` is the
        bootstrap's estimate of how far ``empirical`` lies above the truth. The last four are NaN without bootstrap.
    records : int or None
    bootstrap : int
    level : float
    same_records : bool
    seed : int
    notes : tuple of str
        Cautions that a reader needs to read the numbers right.
    """

    frame: pd.DataFrame
    records: int | None
    bootstrap: int
    level: float
    same_records: bool
    seed: int
    notes: tuple[str, ...]
    statement: str = STATEMENT

    def value(self, name: str) -> float:
        """Return the value of a measure of `MEASURES`.

        Raises
        ------
        DataError
            Unknown name.
        """
        return self._cell(name, "value")

    def interval(self, name: str) -> tuple[float, float] | None:
        """Return the interval of a measure of `MEASURES`; None without bootstrap.

        Raises
        ------
        DataError
            Unknown name.
        """
        low, high = self._cell(name, "low"), self._cell(name, "high")
        return (low, high) if self.bootstrap else None

    def _cell(self, name: str, column: str) -> float:
        if name not in MEASURES:
            raise DataError(f"name={shown(name)} is no measure: {suggest(name, MEASURES)}")
        return float(self.frame[column].to_numpy()[list(MEASURES).index(name)])


def statement_of(protection: Protection | None, of_releases: str = OF_RELEASES, statement: str = STATEMENT) -> str:
    """Return what is promised of a mechanism and of its releases, by the noise in the table that it is made from.

    `of_releases`: Sentences about releases, which hold either way.
    `statement`: The whole statement for a table without noise.
    """
    if protection is None:
        return statement
    return (
        "The mechanism, its figures and the privacy-utility curve are computed from counts with noise "
        f"({protection.noise}). They are {protection.sentence}. This guarantee does not cover what the mechanism draws "
        f"from rows: the figures do, and they are those of the noisy table. {of_releases}"
    )


@door
def disclosure(
    table: JointTable,
    mechanism: ArrayLike,
    bootstrap: int = 200,
    seed: int = 0,
    level: float = 0.95,
    same_records: bool = True,
    oversize: bool = False,
) -> Disclosure:
    """Measure how much a release of Y discloses of S and how much it keeps of X, each with an interval.

    Parameters
    ----------
    table : JointTable
        The table, with counts unless ``bootstrap=0``. For intervals that are free of the design's bias, count records
        that the mechanism was not designed on.
    mechanism : array, ``(|X|, |Y|)``
        P(Y|X), row-stochastic; it stays fixed.
    bootstrap : int
        Replicates: multinomial samples of as many records as the table has. 0 gives values only.
    seed : int
        Seed of the replicates; it decides nothing that is released.
    level : float
        The intended coverage of each interval by itself.
    same_records : bool
        Whether the mechanism was designed on the records of this table. If in doubt, say True: intervals are then
        wider.
    oversize : bool
        Go on where the replicates take more than `cvxpriv.numerics.sizes` allows.

    Returns
    -------
    Disclosure

    Raises
    ------
    DataError
        A table without counts, a mechanism that does not fit, or a wrong option.
    ModelError
        More replicates than can finish.

    Examples
    --------
    >>> table = JointTable.from_counts([[40, 10], [10, 40]])
    >>> found = disclosure(table, [[0.8, 0.2], [0.2, 0.8]])
    >>> round(found.value("leakage"), 4), round(found.value("accuracy_y"), 2)
    (0.0663, 0.68)
    >>> low, high = found.interval("leakage")
    >>> low < found.value("leakage") < high
    True
    """
    matrix = stochastic_matrix(mechanism, "mechanism")
    if len(matrix) != len(table.public):
        raise DataError(
            f"mechanism has {len(matrix)} rows, the table has {len(table.public)} public symbols:"
            " give the mechanism of this table's alphabet, in its order"
        )
    if not is_whole(bootstrap, 0) or bootstrap == 1:
        raise DataError(
            f"bootstrap={shown(bootstrap)}: expected a whole number >= 2 (200 serves), or 0 for values only"
        )
    if not is_whole(seed, 0):
        raise DataError(f"seed={shown(seed)}: expected a whole number >= 0")
    if not 0 < level < 1:
        raise DataError(f"level={shown(level)}: expected a number between 0 and 1, such as 0.95")
    replicates = bootstrap if table.protection is None else 9 * bootstrap  # of eight milder populations as well
    require_feasible(of_resampling(len(table.private), matrix.shape[0], matrix.shape[1], replicates), oversize)
    if bootstrap and table.counts is None:
        raise DataError(
            "table holds probabilities without counts, so its records cannot be resampled: make it with"
            " JointTable.from_counts, from_frame or from_csv, or give bootstrap=0 for values without intervals"
        )
    frame = pd.DataFrame(list(MEASURES.values()), index=pd.Index(MEASURES, name="name"), columns=["measure", "unit"])
    frame["value"] = measure(table.probabilities[None], matrix)[0]
    intervals = np.full((len(MEASURES), 4), np.nan)
    if bootstrap and table.counts is not None:
        intervals = _intervals(table, table.counts, matrix, bootstrap, seed, level, same_records).T
    frame[["low", "high", "empirical", "bias"]] = intervals
    notes = _notes(table, bootstrap, same_records)
    said = statement_of(table.protection)
    return Disclosure(frame, table.records, bootstrap, level, same_records, seed, notes, said)


def _intervals(
    table: JointTable, counts: IntArray, matrix: Array, bootstrap: int, seed: int, level: float, same_records: bool
) -> Array:
    """Return low, high, value and bias of each measure, ``(4, 6)``."""

    def replicates(population: Array) -> Array:
        drawn = resampled_tables(counts, bootstrap, seed, population)
        if table.protection is not None:
            drawn = with_noise(drawn, table.protection, int(counts.sum()), seed)
        return np.concatenate([measure(part, matrix) for part in drawn])

    noisy = table.protection is not None  # noise fills cells by itself
    if noisy:
        level = (1.0 + level) / 2  # the middle of noisy replicates alone held the truth in 85% to 93% of studies
    biased = np.isin(list(MEASURES), [*ACCURACIES, *(OF_Y if same_records else ())])
    ends, value, own = hull(
        counts, lambda one: measure(one[None], matrix)[0], replicates, level, biased, unseen=not noisy
    )
    if noisy:
        tried = np.stack(list(milder_populations(counts / counts.sum())))
        held = accepted_hull(value, measure(tried, matrix), np.stack([replicates(one) for one in tried]), level)
        ends = np.stack([np.minimum(ends[0], held[0]), np.maximum(ends[1], held[1])])
    return np.stack([*np.clip(ends, *ranges(*counts.shape)), value, own.mean(axis=0) - value])


def _notes(table: JointTable, bootstrap: int, same_records: bool) -> tuple[str, ...]:
    if not bootstrap or table.counts is None:
        return ("Values without intervals: the records were not resampled, so low and high are not known.",)
    notes = [
        "Values are those of the table; intervals are for the population that its records come from. Information "
        "computed from few records is biased, so an interval need not hold the value."
    ]
    if same_records:
        notes.append(
            "The mechanism was designed on these records, which makes it look better on them than it is: the intervals "
            "of what Y tells allow for that. Other records of the same population would tell more exactly."
        )
    if table.smoothing != "none":
        notes.append(f"Values are of the smoothed table ({table.smoothing}); intervals are of the bare counts.")
    if table.protection is not None:
        notes.append(
            f"The counts hold {table.protection.noise}: every replicate gets the same noise again, so the intervals "
            "allow for it. Few records in many cells make them wide."
        )
        return tuple(notes)
    # Good (1953): the cells seen once estimate the share of the population in cells never seen.
    unseen = float((table.counts == 1).sum() / table.counts.sum())
    if unseen >= UNSEEN_SHARE:
        notes.append(
            f"About {unseen:.1%} of the population lie in cells of (S, X) that show no record here (estimated from the "
            "cells seen once): the interval of I(S;X) allows for them and is wide; that of the accuracy from X may be "
            "too high."
        )
    return tuple(notes)
