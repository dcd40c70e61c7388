"""The ready constraints on a mechanism as costs of its columns x = P(Y|u), from lines.

With r_y = x(y)/p(y), p(u|y) = p(u) r_y; with s = P(S|Y) x, p(u|S) = p(u) s/P(S). So a sum over outputs of a convex
function of p(u|.) that is homogeneous is a sum over columns of their costs, each weighted by p(u).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints import ReadyConstraint
from cvxpriv.constraints.inference import by_group, f_information
from cvxpriv.constraints.ready import LARGEST_LOSS, ratio
from cvxpriv.divergences import divergence
from cvxpriv.numerics.arrays import Array

from .any_conjugate import conjugate_of
from .linear_pieces import Hinges
from .lines import Lines

#: The share of the prior in columns at which tangents are taken: at the ends of the simplex they may be vertical.
INWARD = 1e-6
#: A ratio below this counts as this where a cost is computed.
NEARLY_NONE = 1e-12
#: The largest ratio at which a tangent of a Renyi cost is taken.
STEEPEST = 1e6

NAMED = (
    "it speaks of outputs by name or number, and a bound by columns lets several columns share an output, which then "
    "asks nothing of each"
)
#: Why the bound leaves constraints of a kind out.
NOT_COUNTED = {
    "floor": "it asks a least mass of every output, and a column has no mass of its own",
    "fixed": NAMED,
    "output_marginal": NAMED,
    "symmetric": NAMED,
    "monotone": NAMED,
}


@dataclass(frozen=True, eq=False)
class Bent:
    """Costs of columns that bend.

    `values`: Columns, (n, |Y|), to each of k costs, (n, k).
    `tangents`: Columns to the tangents there of each cost, without what its kinks cost, (k, |Y|, n).
    `bends`: Columns and prices of the costs, (k,), to the second derivatives of the sum, (n, |Y|, |Y|).
    `ends`: The upper ends of the sums.
    `kinks`: Lines whose positive parts are further costs, and the share of each in the price of the only cost.
    """

    values: Callable[[Array], Array]
    tangents: Callable[[Array], Array]
    bends: Callable[[Array, Array], Array]
    ends: list[float]
    kinks: tuple[Lines, Array] | None = None

    def smooth(self, x: Array) -> Array:
        """Return the costs without those of kinks, (n, k)."""
        kinks = 0.0 if self.kinks is None else self.kinks[0].costs(x) @ self.kinks[1][:, None]
        return np.asarray(self.values(x) - kinks)


def costs_of(one: ReadyConstraint, known: Known) -> tuple[Lines, ...] | Bent | None:
    """Return a constraint as costs of columns; None for one of another kind."""
    make = _MAKERS.get(one.kind)
    return None if make is None else make(one, known)


def in_ratio(p_y: Array, factor: Array) -> Array:
    """Lines r_y - factor(y, y') r_y', (|Y|, pairs), for all pairs y, y' of a finite factor, (|Y|, |Y|)."""
    first, second = np.nonzero(~np.eye(len(p_y), dtype=bool) & np.isfinite(factor))
    at, found = np.arange(len(first)), np.zeros((len(p_y), len(first)))
    found[first, at] = 1.0 / p_y[first]
    found[second, at] = -factor[first, second] / p_y[second]
    return np.asarray(found / np.abs(found).max(axis=0, initial=1.0))


def within_ratios(ratios: Array, epsilon: float, both: bool) -> Array:
    """Lines that are at most 0 where e^-epsilon <= ratio <= e^epsilon, or only the second; ratios: (|Y|, W)."""
    high = ratio(epsilon)
    above = ratios / high - 1.0
    return np.hstack([above, 1.0 / high - ratios]) if both else above


def _exp(values: Array | float) -> Array:
    found = np.asarray(values, dtype=float)
    return np.asarray(np.where(found > LARGEST_LOSS, np.inf, ratio(found)))


def _ratios(one: ReadyConstraint, known: Known) -> Array:
    """p(u|w)/p(u) as a function of x, (|Y|, W)."""
    if one.parameters.get("of", "private") == "input":
        return np.diag(1.0 / known.prior)
    used = known.p_s > 0.0
    return (known.p_s_given_input[used] / known.p_s[used, None]).T


def _local(one: ReadyConstraint, known: Known) -> tuple[Lines, ...]:
    factor = np.full(2 * known.prior.shape, _exp(one.parameters["epsilon"]))
    delta = float(one.parameters.get("delta", 0.0))
    if delta == 0.0:
        return (Lines("never", in_ratio(known.prior, factor)),)
    lines = np.diag(1.0 / known.prior)
    first, second = np.nonzero(~np.eye(len(lines), dtype=bool))
    return (Lines("above", lines[:, first] - factor[0, 0] * lines[:, second], delta),) if factor[0, 0] < np.inf else ()


def _metric(one: ReadyConstraint, known: Known) -> tuple[Lines, ...]:
    distance = np.asarray(one.parameters["distance"], dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):  # beyond all numbers, or 0 times an infinite distance: no line
        loss = float(one.parameters["epsilon"]) * distance
    return (Lines("never", in_ratio(known.prior, _exp(loss))),)


def _ratio(one: ReadyConstraint, known: Known) -> tuple[Lines, ...]:
    both = one.kind == "local_information_privacy"
    return (Lines("never", within_ratios(_ratios(one, known), float(one.parameters["epsilon"]), both)),)


def _vulnerability(one: ReadyConstraint, known: Known) -> tuple[Lines, ...]:
    gain, of_input = one.parameters.get("gain"), one.parameters.get("of", "private") == "input"
    told = np.eye(len(known.prior)) if of_input else known.p_s_given_input.T
    lines = told if gain is None else told @ np.asarray(gain, dtype=float).T
    return (Lines("most", lines, float(one.parameters["bound"])),)


def _fairness(one: ReadyConstraint, known: Known) -> tuple[Lines, ...]:
    members = one.parameters.get("groups")
    groups = by_group(None if members is None else np.asarray(members), known, len(known.prior))
    first, second = np.triu_indices(len(groups), k=1)
    apart = 0.5 * (groups[first] - groups[second]) / known.prior
    return (Lines("away", apart.T, float(one.parameters["bound"])),)


def _peak(one: ReadyConstraint, known: Known) -> tuple[Lines, ...]:
    most = min(float(_exp(one.parameters["bound"])), float(len(known.prior)))
    return (Lines("most", np.diag(1.0 / known.prior), most),)


def _distance(one: ReadyConstraint, known: Known) -> tuple[Lines, ...] | Bent:
    bound = float(one.parameters["bound"])
    if one.parameters.get("average", False):
        return _information(f_information("total-variation", bound, "input"), known)
    return (Lines("away", 0.5 * (np.diag(1.0 / known.prior) - 1.0), bound),)


def _information(one: ReadyConstraint, known: Known) -> Bent:
    f, bound = divergence(one.parameters["f"]), float(one.parameters["bound"])
    of_input = one.parameters.get("of", "private") == "input"
    told = np.eye(len(known.prior)) if of_input else known.p_s_given_input[known.p_s > 0.0]
    prior = told @ known.prior
    conjugate, hinges = conjugate_of(f, 1.0 / float(prior.min())), Hinges(f)

    def ratios(x: Array, least: float) -> Array:
        return np.maximum(x @ told.T / prior, least)

    def tangents(x: Array) -> Array:
        inner = (1.0 - INWARD) * x + INWARD * known.prior
        intercept, slope = hinges.plane(prior / (inner @ told.T))
        return np.asarray((told.T @ (intercept + (slope @ prior)[:, None]).T)[None])

    def bends(x: Array, prices: Array) -> Array:
        turn = conjugate.response(conjugate.slope(ratios(x, INWARD)))[1]
        level = (0.0 if hinges.straight else prices[0]) / np.maximum(turn * prior, 1e-100)
        return np.asarray((told.T * level[:, None, :]) @ told)

    kinks = Lines("above", hinges.lines(told.T / prior)), np.outer(prior, hinges.rises).ravel()
    return Bent(
        lambda x: (conjugate.price(ratios(x, NEARLY_NONE)) @ prior)[:, None],
        tangents,
        bends,
        [bound],
        kinks if hinges.kinks.size else None,
    )


def _renyi(one: ReadyConstraint, known: Known) -> Bent:
    a, epsilon = float(one.parameters["order"]), float(one.parameters["epsilon"])
    size = len(known.prior)
    first, second = np.nonzero(~np.eye(size, dtype=bool))

    def slopes(theta: Array) -> Array:
        """Slopes of the cost of each pair, (k, |Y|, n), at ratios r_y / r_y', (k, n)."""
        theta = np.clip(theta, 1.0 / STEEPEST, STEEPEST) if a <= 1.0 else np.minimum(theta, STEEPEST ** (1.0 / a))
        found = np.zeros((len(first), size, theta.shape[1]))
        up, down = (np.log(theta) + 1.0, -theta) if a == 1.0 else (a * theta ** (a - 1.0), (1.0 - a) * theta**a)
        sign = -1.0 if a < 1.0 else 1.0
        found[np.arange(len(first)), first] = sign * up / known.prior[first, None]
        found[np.arange(len(first)), second] = sign * down / known.prior[second, None]
        return found

    def ratios(x: Array) -> tuple[Array, Array]:
        found = np.maximum(x / known.prior, 1e-100)
        return found[:, first], found[:, first] / found[:, second]

    def tangents(x: Array) -> Array:
        return slopes(ratios(x)[1].T)

    def values(x: Array) -> Array:
        with np.errstate(over="ignore"):
            r, theta = ratios(x)
            found = r * np.log(theta) if a == 1.0 else (-1.0 if a < 1.0 else 1.0) * r * theta ** (a - 1.0)
        never = (x[:, first] > 0.0) & (x[:, second] == 0.0)
        return np.asarray(np.where(never, np.inf, found) if a >= 1.0 else found)

    def bends(x: Array, prices: Array) -> Array:
        r, theta = ratios(x)
        theta = np.minimum(theta, STEEPEST)
        level = prices * (abs(a * (a - 1.0)) or 1.0) * theta ** (a - 1.0) / r
        found = np.zeros((len(x), size, size))
        for y, z, here, steep in zip(first, second, level.T, theta.T, strict=True):
            found[:, y, y] += here / known.prior[y] ** 2
            found[:, z, z] += here * steep**2 / known.prior[z] ** 2
            found[:, y, z] -= here * steep / (known.prior[y] * known.prior[z])
            found[:, z, y] -= here * steep / (known.prior[y] * known.prior[z])
        return found

    upper = epsilon if a == 1.0 else float((-1.0 if a < 1.0 else 1.0) * _exp((a - 1.0) * epsilon))
    return Bent(values, tangents, bends, len(first) * [upper])


_MAKERS: dict[str, Callable[[ReadyConstraint, Known], tuple[Lines, ...] | Bent]] = {
    "local_differential_privacy": _local,
    "metric_differential_privacy": _metric,
    "local_information_privacy": _ratio,
    "pointwise_leakage": _ratio,
    "maximal_leakage": _peak,
    "total_variation_to_prior": _distance,
    "bayes_vulnerability": _vulnerability,
    "group_fairness": _fairness,
    "f_information": _information,
    "renyi_differential_privacy": _renyi,
}
