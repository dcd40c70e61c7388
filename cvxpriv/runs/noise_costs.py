"""Cost of noise in a table: the mechanism designed on noisy counts, measured on the counts as they are.

At each epsilon the counts get noise again and again. The model designs a mechanism on each noisy table, and what it
leaks and tells is measured on the table without that noise. Quantiles over these draws are the interval in which a
release at that epsilon will lie, noise included; the design without noise stands beside them.

The figures are computed from the table as it is. Without a protection of its own they are private, and help the house
to choose epsilon; on a protected table they are post-processing, and may be published.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cvxpriv.errors import DataError, shown
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.facts import Picture, Section, Table
from cvxpriv.reports.formatting import exact_zero
from cvxpriv.reports.pictures import COLOURS, GREY, PAGE, blank, styled
from cvxpriv.tables.information import measure
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.noisy_counts import nearest_shares, whole_counts
from cvxpriv.tables.protection import Protection

if TYPE_CHECKING:
    from matplotlib.figure import Figure


DRAWS = 20
EVEN = 0.5
"""Records added to each cell where a public symbol has kept none: a mechanism needs some of each."""
Design = Callable[[JointTable], Array]


def noise_costs(
    table: JointTable,
    design: Design,
    epsilons: Sequence[float],
    *,
    draws: int = DRAWS,
    level: float = 0.9,
    seed: int = 0,
) -> pd.DataFrame:
    """Return leakage and utility of mechanisms that are designed on noisy counts, by epsilon.

    >>> table = JointTable.from_counts([[40, 10], [10, 40]])
    >>> found = noise_costs(table, lambda noisy: np.eye(2), [1.0], draws=3)
    >>> found["leakage"].round(4).tolist()
    [0.1927, 0.1927]
    """
    counts = table.counts
    if counts is None:
        raise DataError("table holds probabilities without counts: make it with JointTable.from_counts or from_frame")
    if not len(epsilons) or not all(0.0 < float(one) < math.inf for one in epsilons):
        raise DataError(f"epsilons={shown(list(epsilons))}: expected numbers > 0, such as 0.5,1,4")
    if draws < 2 or not 0.0 < level < 1.0:
        raise DataError(f"draws={shown(draws)}, level={shown(level)}: expected draws >= 2 and a level between 0 and 1")
    truth, rng = counts / counts.sum(), np.random.default_rng(seed)
    rows = []
    for epsilon in sorted(map(float, epsilons)):
        protection = Protection(epsilon, 0.0, "replace-one", 2.0 / epsilon)
        found = [_measured(truth, design(_noisy(table, protection, rng))) for _ in range(draws)]
        rows.append(_row(epsilon, np.array(found), level))
    bare = replace(table, protection=None)
    rows.append(_row(math.inf, np.array([_measured(truth, design(bare))]), level))
    return pd.DataFrame(rows)


def _noisy(table: JointTable, protection: Protection, rng: np.random.Generator) -> JointTable:
    """Return the table with simulated noise, of the law that `private_table` draws."""
    counts = np.asarray(table.counts)
    total = int(counts.sum())
    noisy = counts + protection.simulated(rng, counts.shape)
    released = whole_counts(nearest_shares(noisy, float(total)), total)
    smoothing = 0.0 if released.any(axis=0).all() else EVEN
    return JointTable.from_counts(released, table.private, table.public, smoothing=smoothing)


def _measured(truth: Array, mechanism: Array) -> tuple[float, float]:
    found = measure(truth[None], mechanism)[0]
    return float(found[0]), float(found[1])


def _row(epsilon: float, found: Array, level: float) -> dict[str, float]:
    row = {"epsilon": epsilon}
    for place, name in enumerate(("leakage", "utility")):
        # Of few draws this rule, and not numpy's own, holds the next draw as often as it says.
        low, high = np.quantile(found[:, place], [(1 - level) / 2, (1 + level) / 2], method="weibull")
        row |= {name: float(found[:, place].mean()), f"{name}_low": float(low), f"{name}_high": float(high)}
    return row


def costs_section(costs: pd.DataFrame, protected: bool) -> Section:
    """Return the section of a page: a picture and the numbers."""
    text = (
        "At each epsilon the mechanism was designed on counts with noise, and measured on the table without it. Bars "
        "and columns low and high hold nine in ten draws of the noise."
    )
    whose = "the noisy table of this page, so they may be published" if protected else "the private table: keep them"
    shown = costs.assign(epsilon=[f"{one:g}" if np.isfinite(one) else "no noise" for one in costs["epsilon"]])
    numbers = shown.columns[1:]
    shown[numbers] = shown[numbers].map(exact_zero)
    alt = "Leakage and utility by epsilon, with bars for the noise, and lines for the design without noise."
    return Section(
        "What noise in the table costs",
        text,
        pictures=[Picture(partial(_figure, costs), alt, file="noise_costs.png")],
        tables=[Table(shown.rename(columns=lambda name: str(name).replace("_", " ")), "Nats.")],
        notes=[f"The numbers are of {whose}."],
    )


@styled
def _figure(costs: pd.DataFrame) -> Figure:
    noisy, bare = costs.iloc[:-1], costs.iloc[-1]
    figure = blank(PAGE, 2.9)
    for axes, name, colour in zip(figure.subplots(1, 2), ("leakage", "utility"), COLOURS, strict=False):
        middle = noisy[name]
        reach = np.maximum([middle - noisy[f"{name}_low"], noisy[f"{name}_high"] - middle], 0.0)
        axes.errorbar(noisy["epsilon"], middle, reach, fmt="o-", color=colour, capsize=3)
        axes.axhline(bare[name], linestyle=":", color=GREY)
        axes.set_xscale("log")
        axes.set_xticks(noisy["epsilon"], [f"{one:g}" for one in noisy["epsilon"]])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("epsilon of the table")
        axes.set_ylabel(f"{name} in nats")
        axes.set_ylim(bottom=0.0)
    return figure
