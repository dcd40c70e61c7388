"""The privacy-utility trade-off curve: as a table, and between certified bounds from one parametric program."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.bounds.columns import INTERRUPTED
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.tables.joint import JointTable

from .bound import FunnelBound, Prover
from .columns import utility
from .problem import Problem
from .run import FunnelRun

#: Share of the time limit that each rate gets at least.
LEAST_SHARE = 1e-3


def band(
    joint: JointTable | ArrayLike,
    rates: Sequence[float] | Array,
    gap: float = 1e-6,
    time_limit: float = 60.0,
) -> dict[int, FunnelBound]:
    """Bound the least leakage at many rates, by their places; columns found at one rate serve at the next.

    They are found at the highest rate first. A keyboard interrupt ends the band at the rate that it cuts, whose bounds
    hold too.

    `joint`: P(S, X).
    `rates`: Nats, each 0 <= R <= H(X).
    `gap`: Wanted upper - lower, nats.
    `time_limit`: Seconds for the whole band: each rate may take an even share of what is left.
    Raises DataError: The table is no joint distribution.
    Raises ModelError: There is no rate, or a rate, the gap or the time limit is out of range.

    Examples
    --------
    >>> found = band([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]], rates=[0.2, 0.5, 0.8])
    >>> all(one.gap <= 1e-6 for one in found.values()), found[0].upper <= found[1].upper <= found[2].upper
    (True, True)
    """
    problems = [Problem.of(joint, float(rate), "nats", None) for rate in rates]
    if not problems:
        raise ModelError("rates is empty: pass at least one rate in nats")
    prover, left, found = Prover(problems[0].table.probabilities), time_limit, {}
    order = sorted(range(len(problems)), key=lambda k: -problems[k].rate)
    for waiting, k in zip(range(len(order), 0, -1), order, strict=True):
        found[k] = prover.at(problems[k].rate, gap, max(left / waiting, LEAST_SHARE * time_limit))
        left -= found[k].seconds
        if prover.interrupted:
            found[k] = replace(found[k], reason=INTERRUPTED)
            break
    return dict(sorted(found.items()))


def curve_row(fraction: float, solved: FunnelRun) -> dict[str, Any]:
    """Return one point of the curve."""
    return {
        "fraction": fraction,
        "rate": solved.problem.rate,
        "utility": solved.utility,
        "leakage": solved.leakage,
        "lower": np.nan if solved.bound is None else solved.bound.lower,
        "kkt": solved.starts.at[solved.start, "kkt"],
        "converged": solved.converged,
        "iterations": solved.iterations,
        "found_at": fraction,
        "seconds": solved.seconds,
    }


def certified_row(fraction: float, found: FunnelBound, p_x: Array) -> dict[str, Any]:
    """Return one point of a certified band."""
    return {
        "fraction": fraction,
        "rate": found.rate,
        "utility": utility(p_x, found.mechanism),
        "leakage": found.upper,
        "lower": found.lower,
        "converged": found.reason == "",
        "reason": found.reason,
        "found_at": fraction,
        "seconds": found.seconds,
    }


def lower_envelope(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Let each rate use the best mechanism found at it or at a higher one."""
    rows = sorted(rows, key=lambda row: float(row["fraction"]))
    for here, above in reversed(list(itertools.pairwise(rows))):
        if above["leakage"] < here["leakage"]:
            carried = ("utility", "leakage", "kkt", "converged", "iterations", "found_at")
            here.update({name: above[name] for name in carried})
    return pd.DataFrame(rows)
