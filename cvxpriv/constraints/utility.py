"""Constraints on what a mechanism keeps."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints.ready import ReadyConstraint, finite_matrix, number, prior_of, require_shape
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

__all__ = ["expected_distortion"]


def expected_distortion(distortion: ArrayLike, bound: float) -> ReadyConstraint:
    """Return the constraint sum_y p(y) sum_u p(u|y) d(y, u) <= bound. Its violation is in the unit of d.

    Parameters
    ----------
    distortion : array, (|inputs|, |outputs|)
        d(y, u), finite.
    bound : float

    Raises
    ------
    DataError
        `distortion` is no matrix of finite numbers.
    ModelError
        `bound` is no finite number; when applied, the shapes differ, the prior is not known, or no mechanism has so
        little distortion.

    Examples
    --------
    >>> hamming = 1.0 - np.eye(2)
    >>> expected_distortion(hamming, 0.1)
    expected_distortion(2 x 2 matrix, bound=0.1)
    """
    matrix = finite_matrix("distortion", distortion, "a distortion matrix")
    limit = number("bound", bound, -np.inf, np.inf, "the largest distortion on average, in the unit of the matrix")
    name = f"expected_distortion({matrix.shape[0]} x {matrix.shape[1]} matrix, bound={limit:g})"
    return ReadyConstraint(name, partial(_mean_form, matrix, limit), partial(_mean_excess, matrix, limit))


def _mean_form(distortion: Array, bound: float, mechanism: cp.Expression, known: Known | None) -> list[cp.Constraint]:
    require_shape("distortion", distortion.shape, mechanism)
    prior = prior_of(known, "expected_distortion", mechanism.shape[0])
    least = float(prior @ distortion.min(axis=1))
    if bound < least - 1e-12 * max(1.0, abs(least)):  # the rounding of a sum
        raise ModelError(f"bound={bound:g}: every mechanism has a distortion of at least {least:.6g}; raise the bound")
    return [cp.sum(cp.multiply(prior[:, None] * distortion, mechanism)) <= bound]


def _mean_excess(distortion: Array, bound: float, mechanism: Array, known: Known | None) -> float:
    return float(prior_of(known, "expected_distortion", len(mechanism)) @ (distortion * mechanism).sum(axis=1)) - bound
