"""Constraints on the utility of a mechanism, and on how often it gives each output."""

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints.documents import kept
from cvxpriv.constraints.ready import ReadyConstraint, finite_matrix, number, prior_of, ready, require_shape
from cvxpriv.errors import DataError, ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door


@door
@kept
def expected_distortion(distortion: ArrayLike, bound: float) -> ReadyConstraint:
    """Return the constraint sum_y p(y) sum_u p(u|y) d(y, u) <= bound. Its violation is in the unit of d.

    Parameters
    ----------
    distortion : array, (|inputs|, |outputs|)
        The distortion d(y, u), finite.
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
    return ready(name, _mean_form, _mean_excess, matrix, limit)


def _mean_form(distortion: Array, bound: float, mechanism: cp.Expression, known: Known | None) -> list[cp.Constraint]:
    require_shape("distortion", distortion.shape, mechanism)
    prior = prior_of(known, "expected_distortion", mechanism.shape[0])
    least = float(prior @ distortion.min(axis=1))
    if bound < least - 1e-12 * max(1.0, abs(least)):  # the rounding of a sum
        raise ModelError(f"bound={bound:g}: every mechanism has a distortion of at least {least:.6g}; raise the bound")
    return [cp.sum(cp.multiply(prior[:, None] * distortion, mechanism)) <= bound]


def _mean_excess(distortion: Array, bound: float, mechanism: Array, known: Known | None) -> float:
    return float(prior_of(known, "expected_distortion", len(mechanism)) @ (distortion * mechanism).sum(axis=1)) - bound


@door
@kept
def output_marginal(marginal: ArrayLike) -> ReadyConstraint:
    """Return the constraint sum_y p(y) p(u|y) = marginal[u] for all u. Its violation is in units of probability.

    Parameters
    ----------
    marginal : array, (|outputs|,)
        A distribution over the outputs.

    Raises
    ------
    DataError, ModelError
        `marginal` is no distribution; when applied, the lengths differ, or the prior is not known.

    Examples
    --------
    >>> output_marginal([0.5, 0.5])
    output_marginal(2 outputs)
    """
    wanted = finite_matrix("marginal", np.atleast_2d(np.asarray(marginal)), "a distribution over outputs")[0]
    if (wanted < 0.0).any() or abs(wanted.sum() - 1.0) > 1e-9:
        raise DataError(
            f"marginal sums to {wanted.sum():.9g}, its least entry is {wanted.min():g}: pass a distribution"
        )
    name = f"output_marginal({wanted.size} outputs)"
    return ready(name, _marginal_form, _marginal_excess, wanted)


def _marginal_form(wanted: Array, mechanism: cp.Expression, known: Known | None) -> list[cp.Constraint]:
    prior = prior_of(known, "output_marginal", mechanism.shape[0])
    if wanted.size != mechanism.shape[1]:
        raise ModelError(
            f"marginal has {wanted.size} entries, the mechanism {mechanism.shape[1]} outputs: give one each"
        )
    return [(prior @ mechanism)[:-1] == wanted[:-1]]  # the last follows: rows sum to 1


def _marginal_excess(wanted: Array, mechanism: Array, known: Known | None) -> float:
    return float(np.abs(prior_of(known, "output_marginal", len(mechanism)) @ mechanism - wanted).max())
