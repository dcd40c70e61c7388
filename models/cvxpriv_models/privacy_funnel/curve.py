"""The privacy-utility trade-off curve as a table."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.later import pd

from .bound import FunnelBound
from .columns import utility
from .run import FunnelRun


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
