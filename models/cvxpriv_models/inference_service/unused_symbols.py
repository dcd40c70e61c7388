"""Tangents for a symbol that no row sends: which of them make the tightest bound on F.

There p and q are 0, and tangents of p f(q/p) at any ratio w = p/q serve, one for each row. For given nu_y, the bounds
of the other symbols, the least excess of s_yu over nu_y, the same for all rows with w > 0, is reached where
sum_y p(y) w_y = 1: the w are then what a first drop of the symbol would look like.
"""

from __future__ import annotations

import numpy as np

from cvxpriv.state import Array

from . import closed_form
from .problem import Problem
from .row_roots import row_roots
from .slopes import TINY, slopes_of

__all__ = ["least_unused"]

#: Keeps w finite where f_x is bounded from above; the tangents at such a w hold all the same.
WEIGHT, LIMIT = 1e-9, 200


def least_unused(problem: Problem, s: Array, posterior: Array) -> Array:
    """Return s, (B, |Y|, |U|), with its NaN columns filled by the least slopes that bound F."""
    result = s.copy()
    highest = np.nanmax(s, axis=-1)
    price = closed_form.cost(posterior, problem.p_s_given_y)
    for start, symbol in np.argwhere(np.isnan(s).any(axis=-2)):
        bar, d = highest[start], np.minimum(price[start, :, symbol], np.finfo(float).max)
        result[start, :, symbol] = _column(problem, bar, d)
    return result


def _column(problem: Problem, bar: Array, d: Array) -> Array:
    """s of one symbol, (|Y|,), from the w at which sum_y p(y) w_y = 1."""
    slopes, one = slopes_of(problem.divergence), np.ones_like(d)
    with np.errstate(all="ignore"):
        flat = -(bar + d) - problem.beta * slopes.in_x(one, one)[0]
        low, high = flat.min() - 1.0, flat.max() + 1.0  # w >= 1 everywhere, w <= 1 everywhere
        for _ in range(LIMIT):
            middle = 0.5 * (low + high)
            w = row_roots(problem.divergence, -(bar + d) - middle, one, WEIGHT, problem.beta)
            low, high = (middle, high) if problem.p_y @ w > 1.0 else (low, middle)
            if high - low <= 1e-15 * max(abs(low), abs(high)):
                break
        w = np.maximum(w, TINY)
        in_x, in_q = slopes.in_x(w, one)[0], slopes.in_q(w, one)[0]
    return np.asarray(-problem.beta * (in_x + problem.p_y @ in_q) - d)
