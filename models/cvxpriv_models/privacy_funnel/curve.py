"""The privacy-utility trade-off curve as a table."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd

from .run import FunnelRun

__all__ = ["curve_row", "lower_envelope"]


def curve_row(fraction: float, solved: FunnelRun) -> dict[str, Any]:
    """Return one point of the curve."""
    return {
        "fraction": fraction,
        "rate": solved.problem.rate,
        "utility": solved.utility,
        "leakage": solved.leakage,
        "kkt": solved.starts.at[solved.start, "kkt"],
        "converged": solved.converged,
        "iterations": solved.iterations,
        "found_at": fraction,
        "seconds": solved.seconds,
    }


def lower_envelope(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Let each rate use the best mechanism found at it or at a higher one."""
    rows = sorted(rows, key=lambda row: float(row["fraction"]))
    for here, above in reversed(list(itertools.pairwise(rows))):
        if above["leakage"] < here["leakage"]:
            carried = ("utility", "leakage", "kkt", "converged", "iterations", "found_at")
            here.update({name: above[name] for name in carried})
    return pd.DataFrame(rows)
