"""The exact odd step of one node where R is no square: proximal gradient with momentum.

The penalty term makes it strongly convex, with a condition number of 1 + M_i / (2 sum_j eta_ij): often below ten.
"""

from __future__ import annotations

import numpy as np

from cvxpriv.errors import NotConverged
from cvxpriv.numerics.arrays import Array

from .problem import Problem

__all__ = ["proximal_move", "proximal_odd_step"]

LIMIT = 20_000
#: Rounding of a move, as a part of the terms that cancel.
PRECISION = 1e-14


def proximal_move(own: Problem, f: Array, slope: Array, span: float) -> Array:
    """Return one proximal gradient step from f, (d,), on O(f) + slope'f + span ||f||^2.

    It lowers the objective, and puts coordinates that belong on a kink of R exactly there.

    Parameters
    ----------
    own : Problem
        The problem of one node.
    f, slope : ndarray, (d,)
    span : float
        sum_j eta_ij.
    """
    length = 1.0 / (float(own.smoothness[0]) + 2.0 * span)
    gradient = own.loss_gradients(f[None])[0] + slope + 2.0 * span * f
    return own.penalty.prox(f - length * gradient, length * own.reg)


def proximal_odd_step(own: Problem, slope: Array, span: float, start: Array) -> Array:
    """Return the least of O(f) + slope'f + span ||f||^2, (d,); see `proximal_move`.

    Raises
    ------
    NotConverged
        Steps beyond rounding remain after `LIMIT` of them.
    """
    condition = 1.0 + float(own.smoothness[0]) / (2.0 * span)
    momentum = (np.sqrt(condition) - 1.0) / (np.sqrt(condition) + 1.0)
    scale = 1.0 + float(np.linalg.norm(slope)) / (2.0 * span)
    f = ahead = start
    for _ in range(LIMIT):
        upcoming = proximal_move(own, ahead, slope, span)
        if np.linalg.norm(upcoming - ahead) <= PRECISION * (scale + np.linalg.norm(upcoming)):
            return upcoming
        f, ahead = upcoming, upcoming + momentum * (upcoming - f)
    raise NotConverged(
        f"the proximal step still moves after {LIMIT} steps, at a condition number of {condition:.1g}: raise eta"
    )
