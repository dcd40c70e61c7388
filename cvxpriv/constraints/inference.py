"""Constraints on inference from outputs about the input or about the private data: ratios, guesses, information.

Each takes `of`: "private" constrains P(U|S), and "input" the mechanism itself.
"""

from typing import Any, Literal

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints.documents import kept
from cvxpriv.constraints.ready import ReadyConstraint, channel_of, finite_matrix, number, option, ratio, ready
from cvxpriv.divergences import FDivergence, divergence
from cvxpriv.errors import DataError, ModelError, shown
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door

Of = Literal["input", "private"]
OF = ("input", "private")


@door
@kept
def local_information_privacy(epsilon: float, of: Of = "private") -> ReadyConstraint:
    """Return the constraint exp(-epsilon) p(u) <= p(u|w) <= exp(epsilon) p(u) for all u and w.

    Its violation is the largest excess of a probability p(u|w) over its bound.

    Parameters
    ----------
    epsilon : float
        Bound of the log ratio in nats, >= 0.
    of : {"private", "input"}
        Meaning of w: a private symbol, or an input of the mechanism.

    Raises
    ------
    ModelError
        An argument is none of this kind; when applied, the prior is not known.

    Examples
    --------
    >>> local_information_privacy(0.5)
    local_information_privacy(epsilon=0.5, of='private')
    """
    limit = number("epsilon", epsilon, 0.0, np.inf, "in nats, for example 0.5")
    name = f"local_information_privacy(epsilon={limit:g}, of={option('of', of, OF)!r})"
    return ready(name, _ratio_form, _ratio_excess, limit, of, True)


@door
@kept
def pointwise_leakage(epsilon: float, of: Of = "private") -> ReadyConstraint:
    """Return the constraint max_w p(u|w) <= exp(epsilon) p(u) for all u: pointwise maximal leakage, in nats.

    Source: Saeidian and others (2023). Its violation is the largest excess of a probability p(u|w) over its bound.

    Parameters
    ----------
    epsilon : float
        >= 0.
    of : {"private", "input"}
        Meaning of w: a private symbol, or an input of the mechanism.

    Raises
    ------
    ModelError
        As for `local_information_privacy`.

    Examples
    --------
    >>> pointwise_leakage(0.5, of="input")
    pointwise_leakage(epsilon=0.5, of='input')
    """
    limit = number("epsilon", epsilon, 0.0, np.inf, "in nats, for example 0.5")
    name = f"pointwise_leakage(epsilon={limit:g}, of={option('of', of, OF)!r})"
    return ready(name, _ratio_form, _ratio_excess, limit, of, False)


def _given(of: str, mechanism: Any, known: Known | None, name: str) -> tuple[Any, Array]:
    """Return P(u|w), (|W|, |U|), of a mechanism as an expression or an array, and P(w); P(u) = P(w) @ P(u|w)."""
    channel, weights = channel_of(of, known, name, mechanism.shape[0])
    return (mechanism if channel is None else channel @ mechanism), weights


def _ratio_form(
    epsilon: float, of: str, both: bool, mechanism: cp.Expression, known: Known | None
) -> list[cp.Constraint]:
    given, weights = _given(of, mechanism, known, "a bound on ratios to the prior")
    # Linear, entry by entry: a maximum has a kink at each tie, which a solver's answer meets only nearly.
    each = np.broadcast_to(weights, (weights.size, weights.size)) @ given
    least = 1.0 / ratio(epsilon)
    return [least * given <= each, least * each <= given] if both else [least * given <= each]


def _ratio_excess(epsilon: float, of: str, both: bool, mechanism: Array, known: Known | None) -> float:
    given, weights = _given(of, mechanism, known, "a bound on ratios to the prior")
    marginal = weights @ given
    most = ratio(epsilon)
    above = float((given - most * marginal).max())
    return max(above, float((marginal / most - given).max())) if both else above


@door
@kept
def bayes_vulnerability(bound: float, gain: ArrayLike | None = None, of: Of = "private") -> ReadyConstraint:
    """Return the constraint sum_u max_a sum_w p(w) p(u|w) gain(a, w) <= bound: the posterior g-vulnerability.

    It is the average gain of an adversary who sees u and takes the best action a. Without `gain` an action is a guess
    of w, and the bound is on the probability of a right guess. Source: Alvim and others (2020). Its violation is in the
    unit of `gain`.

    Parameters
    ----------
    bound : float
    gain : array, (actions, |W|), optional
        Gain of each action for each w. None is the identity.
    of : {"private", "input"}
        Meaning of w: a private symbol, or an input of the mechanism.

    Raises
    ------
    DataError, ModelError
        An argument is none of this kind; when applied, the shapes differ, or no mechanism has so little: even without
        an output the best action gains more.

    Examples
    --------
    >>> bayes_vulnerability(0.7)
    bayes_vulnerability(bound=0.7, of='private')
    """
    limit = number("bound", bound, -np.inf, np.inf, "what an adversary may gain on average, for example 0.7")
    matrix = None if gain is None else finite_matrix("gain", gain, "gains, one row an action")
    actions = "" if matrix is None else f", {matrix.shape[0]} actions"
    name = f"bayes_vulnerability(bound={limit:g}{actions}, of={option('of', of, OF)!r})"
    return ready(name, _gain_form, _gain_excess, limit, matrix, of)


def _gain_form(
    bound: float, gain: Array | None, of: str, mechanism: cp.Expression, known: Known | None
) -> list[cp.Constraint]:
    given, weights = _given(of, mechanism, known, "bayes_vulnerability")
    gains = _gains(gain, weights)
    least = float(gains.sum(axis=1).max())
    if bound < least - 1e-12 * max(1.0, abs(least)):
        raise ModelError(f"bound={bound:g}: without any output the best action gains {least:.6g}; raise the bound")
    return [cp.sum(cp.max(gains @ given, axis=0)) <= bound]


def _gain_excess(bound: float, gain: Array | None, of: str, mechanism: Array, known: Known | None) -> float:
    given, weights = _given(of, mechanism, known, "bayes_vulnerability")
    return float((_gains(gain, weights) @ given).max(axis=0).sum()) - bound


def _gains(gain: Array | None, weights: Array) -> Array:
    if gain is not None and gain.shape[1] != weights.size:
        raise ModelError(f"gain has {gain.shape[1]} columns, there are {weights.size} symbols: give one column each")
    return np.diag(weights) if gain is None else gain * weights


@door
@kept
def f_information(f: FDivergence | str, bound: float, of: Of = "private") -> ReadyConstraint:
    """Return the constraint sum_wu p(w) p(u|w) f(p(u) / p(u|w)) <= bound: the f-information between W and U.

    With -log t it is the mutual information in nats. It is written with the DCP form of f, whose variables the
    constraint brings along. Its violation is in the unit of f.

    Parameters
    ----------
    f : FDivergence or str
        A name, a line of text in t, or an object; it needs a DCP form.
    bound : float
        The bound, >= 0.
    of : {"private", "input"}
        Meaning of w: a private symbol, or an input of the mechanism.

    Raises
    ------
    ModelError
        An argument is none of this kind, or f has no DCP form; when applied, the prior is not known.

    Examples
    --------
    >>> f_information("mutual-information", 0.1)
    f_information(mutual-information, bound=0.1, of='private')
    """
    found = divergence(f)
    if found.expression is None:
        raise ModelError(f"f={found.name!r} has no DCP form, and a constraint cannot take tangents: choose another f")
    limit = number("bound", bound, 0.0, np.inf, "in the unit of f, for example 0.1")
    name = f"f_information({found.name}, bound={limit:g}, of={option('of', of, OF)!r})"
    return ready(name, _information_form, _information_excess, found, limit, of)


def _information_form(
    f: FDivergence, bound: float, of: str, mechanism: cp.Expression, known: Known | None
) -> list[cp.Constraint]:
    given, weights = _given(of, mechanism, known, "f_information")
    marginal = cp.reshape(weights @ given, (1, mechanism.shape[1]), order="C")
    total, own = f.form(cp.multiply(weights[:, None], given), weights[:, None] @ marginal)
    return [*own, total <= bound]


def _information_excess(f: FDivergence, bound: float, of: str, mechanism: Array, known: Known | None) -> float:
    given, weights = _given(of, mechanism, known, "f_information")
    each = weights[:, None] * given
    return float(f.terms(each, weights[:, None] * each.sum(axis=0)).sum()) - bound


@door
@kept
def group_fairness(bound: float, groups: ArrayLike | None = None) -> ReadyConstraint:
    """Return the constraint that outputs of any two groups differ by at most `bound` in total variation.

    1/2 sum_u |p(u|g) - p(u|g')| <= bound, with p(u|g) = sum_y p(y|g) p(u|y): demographic parity up to the bound. Its
    violation is in units of probability.

    Parameters
    ----------
    bound : float
        Largest total variation between two groups, from 0 to 1.
    groups : array of int, (|inputs|,), optional
        The group of each input, from 0. None: the groups are the private symbols.

    Raises
    ------
    DataError, ModelError
        An argument is none of this kind; when applied, the lengths differ, the prior is not known, or there are not
        two groups with mass.

    Examples
    --------
    >>> group_fairness(0.05, [0, 0, 1])
    group_fairness(bound=0.05, 2 groups)
    """
    limit = number("bound", bound, 0.0, 1.0, "a difference of probabilities, for example 0.05")
    members = None if groups is None else np.asarray(groups)
    if members is not None and (members.ndim != 1 or members.dtype.kind not in "iu" or (members < 0).any()):
        raise DataError(f"groups={shown(groups)}: expected the number of the group of each input, from 0")
    of_whom = "private groups" if members is None else f"{np.unique(members).size} groups"
    name = f"group_fairness(bound={limit:g}, {of_whom})"
    return ready(name, _fair_form, _fair_excess, limit, members)


def by_group(members: Array | None, known: Known | None, inputs: int) -> Array:
    """Return P(y|g), (groups, |inputs|)."""
    if members is None:
        channel, _ = channel_of("private", known, "group_fairness", inputs)
        assert channel is not None
        return channel
    _, prior = channel_of("input", known, "group_fairness", inputs)
    if members.size != inputs:
        raise ModelError(f"groups has {members.size} entries, the mechanism {inputs} inputs: give one each")
    weights = np.stack([prior * (members == one) for one in np.unique(members)])
    weights = weights[weights.sum(axis=1) > 0.0]
    if len(weights) < 2:
        raise ModelError("group_fairness: there are not two groups with mass; leave it out")
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _fair_form(
    bound: float, members: Array | None, mechanism: cp.Expression, known: Known | None
) -> list[cp.Constraint]:
    groups = by_group(members, known, mechanism.shape[0])
    one, other = np.triu_indices(len(groups), k=1)
    return [0.5 * cp.sum(cp.abs((groups[one] - groups[other]) @ mechanism), axis=1) <= bound]


def _fair_excess(bound: float, members: Array | None, mechanism: Array, known: Known | None) -> float:
    given = by_group(members, known, len(mechanism)) @ mechanism
    return float(0.5 * np.abs(given[:, None] - given[None]).sum(axis=2).max()) - bound
