"""The starts of a solve: a user's own mechanisms, or random ones, the first of them from submodular clustering."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.errors import ModelError
from cvxpriv.mechanisms.mechanism import stochastic_matrix
from cvxpriv.numerics.arguments import numbers
from cvxpriv.numerics.arrays import Array

from .algorithm import log_joint
from .baselines import agglomerative
from .problem import Problem
from .starts import feasible_starts, softened

__all__ = ["initial"]

#: How far below the rate a start may lie: what the rows of a mechanism read from a file lose to rounding.
FEASIBLE = 1e-9


def initial(
    problem: Problem, init: ArrayLike | None, starts: int, seed: int, *, clustered: bool
) -> tuple[Array, Sequence[str]]:
    """Return log P(X, Y) of every start, (starts, |X|, |Y|), and where each comes from.

    Parameters
    ----------
    problem : Problem
    init : array, (|X|, |Y|) or (starts, |X|, |Y|), optional
        A user's mechanisms P(Y|X), in place of any others.
    starts, seed : int
        How many random ones, and their seed.
    clustered : bool
        Whether clusters of the symbols take the place of the first.

    Raises
    ------
    ModelError
        `init` is no such mechanism, or does not carry the rate.
    """
    if init is not None:
        mechanisms = _required(problem, numbers("init", init))
        return log_joint(problem, mechanisms), ["init"] * len(mechanisms)
    log_u = feasible_starts(problem.p_x, problem.rate, problem.size_y, starts, seed)
    origins = ["random"] * starts
    sharp = agglomerative(problem.table.probabilities, problem.rate).mechanism if clustered else None
    if sharp is not None and sharp.shape[1] <= problem.size_y:
        padded = np.pad(sharp, ((0, 0), (0, problem.size_y - sharp.shape[1])))
        log_u[0], origins[0] = softened(problem.p_x, problem.rate, padded), "clustering"
    return log_u, origins


def _required(problem: Problem, init: Array) -> Array:
    """Return a user's starts as (starts, |X|, |Y|), or raise."""
    given = init[None] if init.ndim == 2 else init
    shape = (problem.p_x.size, problem.size_y)
    if given.ndim != 3 or given.shape[1:] != shape:
        raise ModelError(f"init has shape {given.shape}, expected {shape} or (starts, {shape[0]}, {shape[1]})")
    for position, mechanism in enumerate(given):
        stochastic_matrix(mechanism, f"init[{position}]")
        if (utility := problem.utility(mechanism)) < problem.rate - FEASIBLE:
            raise ModelError(
                f"init[{position}] has I(X;Y)={utility:.6g} nats, below rate={problem.rate:.6g}: "
                "start from a mechanism that carries the rate, or lower the rate"
            )
    return given
