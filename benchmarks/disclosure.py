"""How often intervals of disclosure hold the truth: studies drawn from populations that are known.

python -m benchmarks disclosure
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from cvxpriv_models.privacy_funnel.baselines import greedy

from cvxpriv import datasets
from cvxpriv.mechanisms.disclosure import disclosure
from cvxpriv.models import PrivacyFunnel
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.information import MEASURES, measure
from cvxpriv.tables.joint import JointTable

STUDIES = 100
DESIGNED = 30

#: Each population's name, its probabilities, and the numbers of records that a study draws.
POPULATIONS: dict[str, tuple[Callable[[], Array], tuple[int, ...]]] = {
    "2 x 2": (lambda: np.array([[0.4, 0.1], [0.2, 0.3]]), (100, 1000)),
    "heart failure, 4 x 16": (lambda: _counts("heart-failure", 0.5), (299, 1000)),
    "adult, 10 x 160, cells that cannot occur": (lambda: _counts("adult", 0.0), (500, 2000, 10000)),
    "adult, 10 x 160, every cell can occur": (lambda: _counts("adult", 0.02), (500, 2000, 10000)),
    "Dirichlet(.3), 10 x 160": (lambda: np.random.default_rng(1).dirichlet(np.full(1600, 0.3)), (500, 2000, 10000)),
}


def _counts(name: str, added: float) -> Array:
    counts = datasets.joint_table(name).counts
    assert counts is not None
    shares: Array = (counts + added) / (counts + added).sum()
    return shares


def fixed_mechanism() -> None:
    """Share of studies whose 95 % intervals hold the truth, for a map of X that does not depend on the records."""

    def few_symbols(table: JointTable) -> Array:
        size_x = table.p_x.size
        symbols = max(2, size_x // 8)
        matrix: Array = np.eye(symbols)[np.random.default_rng(5).integers(0, symbols, size_x)]
        return matrix

    _report(few_symbols, same_records=False, studies=STUDIES)


def designed_mechanism() -> None:
    """The same for a mechanism at .6 H(X) designed on the very records (the large ones by greedy merging)."""

    def design(table: JointTable) -> Array:
        if table.p_x.size > 16:
            merged: Array = greedy(table.probabilities, 0.6 * table.entropy_x).mechanism
            return merged
        found: Array = PrivacyFunnel(table, rate=0.6).solve(starts=5, max_iter=100).mechanism
        return found

    _report(design, same_records=True, studies=DESIGNED)


def _report(design: Callable[[JointTable], Array], same_records: bool, studies: int) -> None:
    rows = []
    for name, (make, sizes) in POPULATIONS.items():
        truth = make()
        truth = truth.reshape(10, -1) if truth.ndim == 1 else truth
        for records in sizes:
            held, empty = _coverage(truth, records, design, same_records, studies)
            rows.append([name, records, empty, *held])
    print(pd.DataFrame(rows, columns=["population", "records", "empty", *MEASURES]).to_string(
        index=False, float_format="{:.2f}".format
    ))  # fmt: skip


def _coverage(
    truth: Array, records: int, design: Callable[[JointTable], Array], same_records: bool, studies: int
) -> tuple[Array, float]:
    """Share of studies that hold each measure's truth, and the mean share of the population in empty cells."""
    rng = np.random.default_rng(0)
    held, empty = np.zeros(len(MEASURES)), 0.0
    for study in range(studies):
        counts = rng.multinomial(records, truth.ravel()).reshape(truth.shape)
        seen = counts.sum(axis=0) > 0  # the alphabet of X is that of the records, as `JointTable.from_frame` has it
        table = JointTable.from_counts(counts[:, seen], smoothing=1e-3)
        matrix = design(table)
        # A record of another X has no row in the mechanism: the measures are of the population that has one.
        reached = truth[:, seen] / truth[:, seen].sum()
        right = measure(reached[None], matrix)[0]
        frame = disclosure(table, matrix, seed=study, same_records=same_records).frame
        held += (frame["low"] <= right + 1e-12) & (right <= frame["high"] + 1e-12)  # rounding
        empty += truth[counts == 0].sum()
    return held / studies, empty / studies


def main() -> None:
    """Print every measurement."""
    for measurement in (fixed_mechanism, designed_mechanism):
        print(f"\n## {measurement.__doc__}")
        measurement()


if __name__ == "__main__":
    main()
