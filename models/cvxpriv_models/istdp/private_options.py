"""The options of a private solve, checked before anything reads the data, and the public bound of its step."""

from __future__ import annotations

import numpy as np

from cvxpriv.errors import PrivacyError

from .problem import Problem

SMALLEST, LARGEST = 1e-100, 1e100
"""Bounds of a row whose products and quotients with counts and steps are doubles: a sensitivity must not round to 0."""


def public_step_limit(problem: Problem, row_bound: float) -> float:
    """Return the greatest step, 1/L: up to it a step without noise lowers F, whatever the penalty.

    L = smoothness row_bound^2 bounds the Lipschitz constant of the average gradient; ||X||^2 would be smaller, but it
    is a fact about the data. Beyond 1/weak_convexity the proximal step is still the exact minimiser, but thresholds
    hard.

    Raises PrivacyError: The bound is so large or small that there is no such step.
    """
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        limit = float(1.0 / (problem.loss.smoothness * np.square(row_bound)))
    if not 0.0 < limit < np.inf:
        raise PrivacyError(
            f"row_bound={row_bound!r} gives a step of {limit:g}: scale the columns of X, so that its rows have norms "
            "near 1"
        )
    return limit


def require_bounds(problem: Problem, clip: float | None, row_bound: float | None) -> tuple[float, float]:
    """Return the clip and the row bound; either follows from the other by the loss's greatest slope.

    Raises PrivacyError: One is not a valid bound, or is missing where nothing implies it.
    """
    slope = problem.loss.slope
    if clip is None and (row_bound is None or not np.isfinite(slope)):
        raise PrivacyError(
            "clip is missing, and no noise hides an unbounded row: pass the most that its gradient counts"
            + (", or row_bound, a public bound of the rows' norms" if np.isfinite(slope) else "")
        )
    if row_bound is None and not np.isfinite(slope):
        raise PrivacyError(
            f"row_bound is missing: the step is 1/L, and the slope of loss={problem.loss.name!r} has no bound that L "
            "follows from; pass row_bound, a public bound of the rows' norms, for example that of scaled columns"
        )
    most = slope * row_bound if clip is None and row_bound is not None else clip
    assert most is not None
    if not SMALLEST <= most <= LARGEST:
        name = "row_bound" if clip is None else "clip"
        raise PrivacyError(
            f"{name}={row_bound if clip is None else clip!r} gives a step of no size, or noise of none: scale the "
            "columns of X, so that its rows have norms near 1"
        )
    return float(most), float(most / slope if row_bound is None else row_bound)


def column_bound(problem: Problem, row_bound: float | None) -> float | None:
    """Return the bound of the rows' norms without the 1 of an intercept; None where none was given."""
    if row_bound is None or not problem.intercept or not row_bound > 1.0:
        return row_bound
    return float(np.sqrt(row_bound**2 - 1.0))
