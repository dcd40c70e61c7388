"""Constraints on the worst-case leakage of a mechanism."""

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints.documents import kept
from cvxpriv.constraints.ready import ReadyConstraint, number, pairs, prior_of, ratio, ready
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door


@door
@kept
def local_differential_privacy(epsilon: float, delta: float = 0.0) -> ReadyConstraint:
    """Return the constraint sum_u (p(u|y) - exp(epsilon) p(u|y'))_+ <= delta for all inputs y, y'.

    With delta = 0 it is p(u|y) <= exp(epsilon) p(u|y'), written as exp(-epsilon) max_y p(u|y) <= min_y p(u|y), which
    takes 2 |inputs| |outputs| rows instead of the square of |inputs|. Its violation is the amount by which delta is too
    small.

    Parameters
    ----------
    epsilon : float
        Privacy loss in nats, >= 0. At 0 the output reveals nothing except with probability delta.
    delta : float
        From 0 to 1.

    Raises
    ------
    ModelError
        `epsilon` is not a number >= 0, `delta` none from 0 to 1.

    Examples
    --------
    >>> constraint = local_differential_privacy(1.0)
    >>> constraint, local_differential_privacy(1.0, 0.01)
    (local_differential_privacy(epsilon=1), local_differential_privacy(epsilon=1, delta=0.01))
    >>> randomised_response = np.array([[np.e, 1.0], [1.0, np.e]]) / (1.0 + np.e)
    >>> round(constraint.violation(randomised_response), 12)
    0.0
    >>> constraint.violation([[1.0, 0.0], [0.0, 1.0]])
    1.0
    """
    limit = number("epsilon", epsilon, 0.0, np.inf, "a privacy loss in nats, for example 1.0")
    share = number("delta", delta, 0.0, 1.0, "a probability, for example 1e-5")
    name = f"local_differential_privacy(epsilon={limit:g}{f', delta={share:g}' if share else ''})"
    return ready(name, _ratio_form, _ratio_excess, limit, share)


def _ratio_form(epsilon: float, delta: float, mechanism: cp.Expression, known: Known | None) -> list[cp.Constraint]:
    least = 1.0 / ratio(epsilon)
    if delta == 0.0:
        return [least * cp.max(mechanism, axis=0) <= cp.min(mechanism, axis=0)]
    one, other = pairs(mechanism.shape[0])
    above = cp.pos(least * mechanism[one] - mechanism[other])  # of one size, whatever epsilon is
    return [cp.sum(above, axis=1) <= least * delta]


def _ratio_excess(epsilon: float, delta: float, mechanism: Array, known: Known | None) -> float:
    # Row by row: the cube of all pairs of rows need not fit.
    scaled = ratio(epsilon) * mechanism
    return max(float(np.maximum(row - scaled, 0.0).sum(axis=1).max()) for row in mechanism) - delta


@door
@kept
def total_variation_to_prior(bound: float, average: bool = False) -> ReadyConstraint:
    """Return the constraint TV(P(U|y), P(U)) <= bound for every input y, with P(U) = prior @ mechanism.

    TV is half the sum of absolute differences: the largest difference of the probabilities of any event. With
    `average` the constraint is sum_y p(y) TV(P(U|y), P(U)) <= bound, which is also sum_u p(u) TV(P(Y|u), P(Y)): how far
    an output moves the belief about the input from the prior, on average. Its violation is in units of probability.

    Parameters
    ----------
    bound : float
        A probability, from 0 to 1.
    average : bool
        Bound the average over inputs instead of the largest.

    Raises
    ------
    ModelError
        `bound` is not a number from 0 to 1; when applied, the prior is not known.

    Examples
    --------
    >>> total_variation_to_prior(0.1)
    total_variation_to_prior(bound=0.1)
    >>> total_variation_to_prior(0.1, average=True)
    total_variation_to_prior(bound=0.1, average=True)
    """
    limit = number("bound", bound, 0.0, 1.0, "total variation is a difference of probabilities, for example 0.1")
    name = f"total_variation_to_prior(bound={limit:g}{', average=True' if average else ''})"
    return ready(name, _distance_form, _distance_excess, limit, average)


def _distance_form(bound: float, average: bool, mechanism: cp.Expression, known: Known | None) -> list[cp.Constraint]:
    prior = prior_of(known, "total_variation_to_prior", mechanism.shape[0])
    # The last row of the running sums is prior @ mechanism. cvxpy gives running sums variables of their own, where a
    # product would be written out in each cell: 4e5 coefficients instead of 1.6e7 at 200 x 200.
    marginal = cp.cumsum(cp.multiply(prior[:, None], mechanism), axis=0)[-1:]
    distance = 0.5 * cp.sum(cp.abs(mechanism - np.ones((prior.size, 1)) @ marginal), axis=1)
    return [prior @ distance <= bound if average else distance <= bound]


def _distance_excess(bound: float, average: bool, mechanism: Array, known: Known | None) -> float:
    prior = prior_of(known, "total_variation_to_prior", len(mechanism))
    distance = 0.5 * np.abs(mechanism - prior @ mechanism).sum(axis=1)
    return float(prior @ distance if average else distance.max()) - bound


@door
@kept
def maximal_leakage(bound: float) -> ReadyConstraint:
    """Return the constraint log sum_u max_y p(u|y) <= bound, maximal leakage in nats (Issa, Wagner, Kamath 2020).

    Written as sum_u max_y p(u|y) <= exp(bound). Its violation is in nats.

    Parameters
    ----------
    bound : float
        Bound in nats, >= 0. At 0 the output reveals nothing; from log |inputs| on, every mechanism satisfies it.

    Raises
    ------
    ModelError
        `bound` is not a number >= 0.

    Examples
    --------
    >>> constraint = maximal_leakage(0.5)
    >>> constraint, round(constraint.violation([[1.0, 0.0], [0.0, 1.0]]), 6)  # log 2 - 0.5
    (maximal_leakage(bound=0.5), 0.193147)
    """
    limit = number("bound", bound, 0.0, np.inf, "a leakage in nats, for example 0.5")
    return ready(f"maximal_leakage(bound={limit:g})", _peak_form, _peak_excess, limit)


def _peak_form(bound: float, mechanism: cp.Expression, known: Known | None) -> list[cp.Constraint]:
    # Above log |inputs| the constraint holds of every mechanism; exp would overflow far above.
    most = min(bound, float(np.log(mechanism.shape[0])))
    return [cp.sum(cp.max(mechanism, axis=0)) <= np.exp(most)]


def _peak_excess(bound: float, mechanism: Array, known: Known | None) -> float:
    return float(np.log(mechanism.max(axis=0).sum())) - bound
