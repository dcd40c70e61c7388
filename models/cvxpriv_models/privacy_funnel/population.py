"""The least leakage at a rate in the population that the records come from, and how far the table's own may be from it.

Two intervals. The *bootstrap* solves the funnel again on tables of records drawn anew, and corrects for bias as
`cvxpriv.tables.information` does for other measures of a design; it is approximate. The *finite-sample* interval holds
with at least its probability for every population on the same symbols: with t the total variation between the table and
the population, no entropy H(S), H(S|Y), H(X) or H(X|Y) of a mechanism changes by more than t log(k - 1) + h(t) on k
symbols (Alhejji and Smith 2020), so that with a = 2 (t log(|S| - 1) + h(t)) and b the same for X

    L(R - b) - a  <=  least leakage in the population at R  <=  L(R + b) + a,

L the certified bounds of the table. How large t can be is said by Weissman and others (2003). It is wide: for 64 cells
it begins to tell something at some ten thousand records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from cvxpriv.bounds.columns import Clock, Generation, Verified
from cvxpriv.errors import DataError, ModelError
from cvxpriv.numerics.arguments import is_whole, require_seed
from cvxpriv.numerics.arrays import Array, IntArray
from cvxpriv.numerics.sizes import of_resampling, require_feasible
from cvxpriv.tables.information import entropy, hull, mutual_information, resampled_tables
from cvxpriv.tables.joint import JointTable

from .bound import Prover
from .pricing import FunnelPricing

#: Nats to which the table and its replicates are solved: far below what records leave open.
GAP = 1e-5


@dataclass(frozen=True)
class Population:
    """Intervals for the least leakage that any mechanism reaches at a rate in the population.

    Attributes
    ----------
    rate : float
        R in nats; where a table's H(X) is less, its H(X) takes its place.
    value : float
        Value of the bare counts, in nats.
    bootstrap : (float, float)
        Approximate interval.
    finite : (float, float)
        Interval that holds for every population on these symbols with at least the probability `level`.
    level : float
    records, replicates : int
    """

    rate: float
    value: float
    bootstrap: tuple[float, float]
    finite: tuple[float, float]
    level: float
    records: int
    replicates: int


#: Work of a replicate, in plain resampled tables, since the optimum is found for each.
REFITTED = 1000
#: Seconds for each certified bound of the finite-sample interval.
TIME_LIMIT = 60.0


def population_interval(
    table: JointTable, rate: float, replicates: int = 100, level: float = 0.95, seed: int = 0
) -> Population:
    """Return intervals for the population's least leakage at a rate, from a table's counts.

    `table`: The table, with counts; their smoothing is left out.
    `rate`: Nats.
    `replicates`: Replicates of the bootstrap, >= 20.
    `level`: Between 0 and 1.
    Raises DataError: The table holds no counts. ModelError: An argument is out of range.

    Examples
    --------
    >>> table = JointTable.from_counts([[300, 100, 100], [50, 150, 300]])
    >>> found = population_interval(table, rate=0.5, replicates=20)
    >>> found.finite[0] <= found.bootstrap[0] <= found.value <= found.bootstrap[1] <= found.finite[1]
    True
    """
    if table.counts is None:
        raise DataError("table holds no counts: make it with JointTable.from_counts, from_frame or from_csv")
    if not is_whole(replicates, 20):
        raise ModelError(f"replicates={replicates!r}: expected a whole number >= 20; 100 serve")
    if not 0.0 < level < 1.0 or not rate >= 0.0:
        raise ModelError(f"level={level!r}, rate={rate!r}: expected a level between 0 and 1, and a rate >= 0 in nats")
    require_seed(seed)
    private, inputs = table.counts.shape
    require_feasible(of_resampling(private, inputs, inputs, REFITTED * replicates))
    counts = table.counts
    solve = _Solver(rate)

    def drawn(population: Array) -> Array:
        tables = (one for part in resampled_tables(counts, replicates, seed, population) for one in part)
        return np.array([[solve(one)] for one in tables])

    ends, value, _ = hull(counts, lambda one: np.array([solve(one)]), drawn, level, biased=True)
    low, high = np.clip(ends[:, 0], 0.0, np.log(private))
    return Population(
        rate,
        float(value[0]),
        (float(low), float(high)),
        _finite(counts, rate, level),
        level,
        int(counts.sum()),
        int(replicates),
    )


def total_variation(records: int, cells: int, level: float) -> float:
    """Return a bound of the total variation between a table of records and its population, at this probability.

    >>> round(total_variation(10_000, 64, 0.95), 3)
    0.049
    """
    likely = np.log(2.0) * cells + np.log(1.0 / (1.0 - level))
    return float(min(1.0, 0.5 * np.sqrt(2.0 * likely / records)))


def _finite(counts: IntArray, rate: float, level: float) -> tuple[float, float]:
    joint, records = counts / counts.sum(), int(counts.sum())
    (size_s, size_x), share = joint.shape, 0.5 * (1.0 + level)  # either total variation may fail with half the rest
    leaked = 2.0 * _change(total_variation(records, size_s * size_x, share), size_s)
    told = 2.0 * _change(total_variation(records, size_x, share), size_x)
    joint = joint[:, joint.sum(axis=0) > 0.0]
    prover, most = Prover(joint), entropy(joint.sum(axis=0))
    low, reached = 0.0, mutual_information(joint)
    if rate > told:  # at a rate of 0 nothing need leak
        low = prover.at(min(rate - told, most), GAP, TIME_LIMIT).lower
    if rate + told < most:
        reached = prover.at(rate + told, GAP, TIME_LIMIT).upper
    return max(low - leaked, 0.0), float(min(reached + leaked, np.log(size_s), np.log(size_x)))


def _change(t: float, size: int) -> float:
    """The most by which an entropy, conditional or not, on so many symbols changes with total variation t."""
    if size < 2:
        return 0.0
    if t >= 1.0 - 1.0 / size:
        return float(np.log(size))
    return float(t * np.log(size - 1.0) + entr(t) + entr(1.0 - t))


class _Solver:
    """The least leakage that local pricing finds at a rate, table after table; columns of the last serve the next."""

    def __init__(self, rate: float) -> None:
        self.rate, self.columns = rate, np.zeros((0, 0))

    def __call__(self, joint: Array) -> float:
        """Nats; symbols of X without mass are left out."""
        alive = joint.sum(axis=0) > 0.0
        pricing = _Local(joint[:, alive], self.rate)
        if self.rate >= pricing.entropy_x:
            return mutual_information(joint)
        if (solved := pricing.solved_at_once()) is not None:
            return mutual_information(pricing.p_s_given_x @ (solved.columns * solved.weights))
        columns = pricing.first
        if len(self.columns):
            known = self.columns[alive][:, self.columns[~alive].sum(axis=0) == 0.0]
            columns = np.concatenate([columns, known], axis=1)
        found = Generation(pricing, pricing.master(), columns).run(GAP, lambda: False, 0.0, pricing.entropy_s)
        self.columns = np.zeros((len(alive), found.columns.shape[1]))
        self.columns[alive] = found.columns
        return max(pricing.entropy_s + found.value, 0.0)


class _Local(FunnelPricing):
    """Pricing without proof: a replicate needs none."""

    def verify(self, duals: Array, level: float, out_of_time: Clock, known: Array | None = None) -> Verified:
        return Verified(-np.inf, self.local_search(duals, self.first[:, :1], level).columns, "not verified")
