"""Tangents for a symbol that no row sends: which of them make the tightest bound on F.

There p and q are 0, and tangents of p f(q/p) at any ratio w = p/q serve, one for each row. For given nu_y, the bounds
of the other symbols, the least excess of s_yu over nu_y, the same for all rows with w > 0, is reached where
sum_y p(y) w_y = 1: the w are then what a first drop of the symbol would look like.
"""

from __future__ import annotations

import numpy as np

from cvxpriv.divergences.sides import TINY, slopes_of
from cvxpriv.numerics.arrays import Array

from . import closed_form
from .problem import Problem
from .row_roots import row_roots

__all__ = ["least_unused"]

#: Keeps w finite where f_x is bounded from above; the tangents at such a w hold all the same.
WEIGHT, LIMIT = 1e-9, 200


def least_unused(problem: Problem, s: Array, posterior: Array) -> Array:
    """Return s, (B, |Y|, |U|), with its NaN columns filled by the least slopes that bound F."""
    result = s.copy()
    start, symbol = np.nonzero(np.isnan(s).any(axis=-2))
    price = closed_form.cost(posterior, problem.p_s_given_y)[start, :, symbol]
    d = np.minimum(price, np.finfo(float).max)
    w = np.maximum(_first_drops(problem, np.nanmax(s, axis=-1)[start], d), TINY)
    slopes, one = slopes_of(problem.divergence), np.ones_like(w)
    with np.errstate(all="ignore"):
        in_x, in_q = slopes.in_x(w, one)[0], slopes.in_q(w, one)[0]
    result[start, :, symbol] = -problem.beta * (in_x + (in_q @ problem.p_y)[:, None]) - d
    return result


def _first_drops(problem: Problem, bar: Array, d: Array) -> Array:
    """The w = p/q of n symbols, (n, |Y|), from their D_y and the rows' bars, (n, |Y|) each: sum_y p(y) w_y = 1."""
    one = np.ones_like(d)
    with np.errstate(all="ignore"):
        flat = -(bar + d) - problem.beta * slopes_of(problem.divergence).in_x(one, one)[0]
        # w >= 1 everywhere, w <= 1 everywhere
        low, high = flat.min(axis=-1, keepdims=True) - 1.0, flat.max(axis=-1, keepdims=True) + 1.0
        for _ in range(LIMIT):
            middle = 0.5 * (low + high)
            w = row_roots(problem.divergence, -(bar + d) - middle, one, WEIGHT, problem.beta)
            above = (w @ problem.p_y)[:, None] > 1.0
            low, high = np.where(above, middle, low), np.where(above, high, middle)
            if (high - low <= 1e-15 * np.maximum(np.abs(low), np.abs(high))).all():
                break
    return w
