"""Joint steps that look ahead: the posterior extrapolated from two steps, kept where F is larger."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.schedules.steps import Accelerator

from . import measures
from .problem import Problem

__all__ = ["squarem"]

#: The longest leap, in units of the first step.
LONGEST = 100.0
#: An extrapolated posterior stays above this share of the last one: it must not leave the simplex.
SHARE = 1e-12


def squarem(problem: Problem) -> Accelerator:
    """Two joint steps, then a third from P(S|U) extrapolated by the ratio of first to second differences, per start.

    A start takes the third where its F is larger, so F rises as under plain steps. Varadhan and Roland (2008), scheme
    S3. Where plain steps need thousands, tens of these reach a stationary point.
    """

    def accelerate(body: Callable[[Values], dict[str, Array]], state: dict[str, Array], iteration: int) -> Values:
        once = body(state)
        twice = body(once)
        ahead = body({**twice, "posterior": _leap(state["posterior"], once["posterior"], twice["posterior"])})
        better = _objective(problem, ahead) > _objective(problem, twice)
        return {name: np.where(_along(better, value), ahead[name], value) for name, value in twice.items()}

    return accelerate


def _leap(start: Array, once: Array, twice: Array) -> Array:
    """P(S|U) ahead of three in a row, (starts, |S|, |U|), columns sum to 1."""
    first = once - start
    second = twice - once - first
    norms = [np.sqrt(np.sum(change**2, axis=(-2, -1), keepdims=True)) for change in (first, second)]
    length = np.clip(norms[0] / np.maximum(norms[1], np.finfo(float).tiny), 1.0, LONGEST)
    leap = np.maximum(start + 2.0 * length * first + length**2 * second, SHARE * twice)
    return np.asarray(leap / leap.sum(axis=-2, keepdims=True))


def _objective(problem: Problem, state: Values) -> Array:
    return measures.objective(state["mechanism"], problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)


def _along(mask: np.ndarray[tuple[int], np.dtype[np.bool_]], value: Array) -> Array:
    """The mask with axes of length 1 after the first, to broadcast against a state entry."""
    return np.asarray(mask.reshape(-1, *(1,) * (value.ndim - 1)))
