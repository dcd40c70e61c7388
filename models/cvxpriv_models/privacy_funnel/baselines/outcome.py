"""The result of a baseline, and the choice of the best of several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.tables.information import entropy, mutual_information

#: Distance below the rate that a utility may have by rounding, in nats.
RATE_SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class Baseline:
    """A mechanism that a baseline found.

    `name`: ``greedy``, ``agglomerative`` or ``drs``.
    `mechanism`, ``(|X|, |Y|)``: P(Y|X), row-stochastic.
    `leakage`, `utility`: I(S;Y) and I(X;Y) of this mechanism, in nats.
    `iterations`: Merges, or iterations of the splitting.
    `converged`: Whether the method ended by its own rule, not by a limit on its iterations.
    `multiplier`: The price of utility for which the method ran, if it works with one.
    `gap`: Largest violation of P(Y|S) = P(X|S) P(Y|X) at the end; 0 for the merging methods.
    """

    name: str
    mechanism: Array
    leakage: float
    utility: float
    iterations: int
    converged: bool = True
    multiplier: float | None = None
    gap: float = 0.0


def measured(
    name: str,
    p_sx: Array,
    mechanism: Array,
    iterations: int,
    *,
    converged: bool = True,
    multiplier: float | None = None,
    gap: float = 0.0,
) -> Baseline:
    """Return a mechanism with its leakage and utility; the other arguments are those of `Baseline`."""
    leakage = mutual_information(p_sx @ mechanism)
    utility = mutual_information(p_sx.sum(axis=0)[:, None] * mechanism)
    return Baseline(name, mechanism, leakage, utility, iterations, converged, multiplier, gap)


def require_attainable(rate: float, p_sx: Array) -> None:
    """Refuse a rate that is not a number, or exceeds ``H(X)`` by more than rounding."""
    highest = entropy(p_sx.sum(axis=0))
    if not rate <= highest + RATE_SLACK:
        raise ModelError(f"rate={rate:.6g} is not at most H(X)={highest:.6g} nats: choose rate <= {highest:.6g}")


def least_leaking(candidates: Iterable[Baseline], rate: float) -> Baseline:
    """The candidate that leaks least among those with ``I(X;Y) >= rate``; of equals, the more useful one."""
    feasible = [candidate for candidate in candidates if candidate.utility >= rate - RATE_SLACK]
    return min(feasible, key=lambda candidate: (candidate.leakage, -candidate.utility))


def indicator(labels: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Array:
    """The deterministic mechanism that releases the cluster of each symbol, under any numbering.

    >>> indicator(np.array([2, 0, 2]))
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """
    _, column = np.unique(labels, return_inverse=True)
    return np.eye(int(column.max()) + 1)[column]


def as_frame(found: Iterable[Baseline]) -> pd.DataFrame:
    """The trade-off curve of several results: utility and leakage in nats, one row per result, by rising utility.

    A result is left out if another one tells as much and leaks less.
    """
    points = pd.DataFrame([(result.utility, result.leakage) for result in found], columns=["utility", "leakage"])
    points = points.sort_values(["utility", "leakage"], ascending=[True, False], ignore_index=True)
    least_from_here_on = points["leakage"][::-1].cummin()[::-1]
    return points[points["leakage"] <= least_from_here_on].reset_index(drop=True)
