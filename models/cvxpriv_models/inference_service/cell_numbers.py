"""The numbers of each constraint in a cell of a certificate: from them the checker derives the price of a column.

On a cell KL(s || P_S) lies below a plane, so that a column's price is a concave problem in x alone. Its Lagrangian in
the constraints' costs says how much less than c.x a column is worth at least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cvxpriv.bounds.any_conjugate import conjugate_of
from cvxpriv.bounds.column_costs import INWARD, STEEPEST
from cvxpriv.bounds.lines import Lines
from cvxpriv.constraints.ready import ratio
from cvxpriv.divergences import divergence
from cvxpriv.numerics.arrays import Array

from .line_costs import weights_under
from .priced_constraints import BOXES, PricedConstraints
from .pricing import LIMIT, SUM
from .problem import Problem
from .summed_costs import levelled
from .summed_pricing import SummedPricing

#: Largest exponent of a ratio that the checker takes.
LARGEST = 40.0


class At(NamedTuple):
    """The inner problem at rows of c, solved: what the Lagrangian takes from c, cost by cost.

    `c`, `rest`, (B, |Y|): What is paid for a column at first, and in the end. `n`: (B,).
    `x`, (B, |Y|): Columns at which costs that bend are replaced by their tangents.
    `lines`: For each of the lines, what they take, (B, |Y|), and their weights, (B, J).
    `peak`, `away`, `beyond`, (B, |Y|): What the peak, the distance from 1 and the limits of ratios take.
    """

    c: Array
    rest: Array
    n: Array
    x: Array
    lines: list[tuple[Array, Array]]
    peak: Array
    away: Array
    beyond: Array

    @classmethod
    def of(cls, pricing: SummedPricing, sort: int, duals: Array, c: Array) -> tuple[At, Array]:
        """Return it for columns of one sort of outputs, and bounds of the inner problem, (B,)."""
        asked, (costs, _, prices) = pricing.asked, pricing.costs_of_class(sort, duals)
        plain, some, lines, rest, x = costs.plain, costs.allowed, [], c, c
        straight = sum(len(line.ends) for line in asked.lines)
        if asked.bent:
            x = pricing.of_class(sort, duals)[0].solve(c, LIMIT, SUM, None).x
            ends = np.cumsum([straight, *(len(one.ends) for one in asked.bent)])
            for one, first, last in zip(asked.bent, ends, ends[1:], strict=False):
                rest = rest - np.einsum("k,kyn->ny", prices[first:last], one.tangents(x))
        inner, weights = weights_under(costs.solver(), asked.lines, prices[:straight], rest)
        for line in asked.lines:
            both = np.hstack([line.lines, -line.lines]) if line.sort == "away" else line.lines
            own, weights = weights[:, : both.shape[1]], weights[:, both.shape[1] :]
            lines.append((own @ both.T, own))
            rest = rest - lines[-1][0]
        peak = np.zeros_like(c)
        if costs.peak > 0.0:
            beside = plain.beta * costs.away[some]
            peak[:, some] = rest[:, some] - levelled(rest[:, some], plain.p_y[some], costs.peak, beside)
        left = rest - peak - inner.n[:, None]
        away = np.clip(left, -plain.beta * costs.away, plain.beta * costs.away)
        slope = (left - away) / plain.beta
        beyond = np.zeros_like(c)
        if costs.limits is not None:
            low, high = costs.bare.slope(np.array(costs.limits))
            high = high if costs.limits[1] * plain.p_y.min() < 1.0 - 1e-12 else np.inf
            beyond = plain.beta * (slope - np.clip(slope, low, high))
        elif asked.epsilon is not None:  # what keeps a ratio from where it would be alone
            ratio = np.maximum(inner.x / plain.p_y, np.exp(-LARGEST))
            beyond = plain.beta * (slope - costs.bare.slope(ratio))
        return cls(c, rest - peak - away - beyond, inner.n, x, lines, peak, away, beyond), inner.value


@dataclass(frozen=True, eq=False)
class Part:
    """One constraint of a certificate: how it is stated, its multipliers, and its numbers in cells, (B, size)."""

    said: dict[str, Any]
    mu: list[float]
    numbers: Callable[[At], Array] | None = None


def parts_of(problem: Problem, pricing: SummedPricing, mu: Array, every: Sequence[dict[str, Any]]) -> list[Part]:
    """Return the constraints of a certificate, `every` as it states them; of two that ask the same, what asks more."""
    asked, p_y, held, found = pricing.asked, problem.p_y, mu.tolist(), list[Part]()

    def take(count: int) -> list[float]:
        return [held.pop(0) for _ in range(count)]

    distortions = [take(1) for _ in asked.distortions]
    peak, mean = take(int(asked.peak < np.inf)), take(int(asked.moved_on_average < np.inf))
    each, by_line = take(len(p_y) if asked.moved < np.inf else 0), [take(len(line.ends)) for line in asked.lines]
    by_bent = [take(len(one.ends)) for one in asked.bent]
    straight = iter(range(len(asked.lines)))
    for said in every:
        kind = said["kind"]
        if kind == "expected_distortion":
            found.append(Part(said, distortions.pop(0)))
        elif kind == "forbidden":
            found.append(Part(said, []))
        elif kind == "maximal_leakage":
            if np.exp(min(said["bound"], np.log(len(p_y)))) == asked.peak and peak:
                found.append(Part(said, peak, lambda at: p_y * at.peak))
                peak = []
        elif kind == "total_variation_to_prior":
            average = bool(said.get("average"))
            if said["bound"] == (asked.moved_on_average if average else asked.moved) and (mean if average else each):
                prices = mean if average else each
                limit = 0.5 * (prices[0] * p_y if average else np.array(prices))
                found.append(Part(said, prices, _share(limit, mean, each, p_y)))
        elif kind in BOXES and said.get("of") == "input":
            found.append(Part(said, [], _in_box(kind, said, asked, p_y)))
        elif kind == "local_differential_privacy" and asked.epsilon is not None and not said["delta"]:
            if said["epsilon"] == asked.epsilon:
                found.append(Part(said, [], lambda at: p_y * at.beyond))
        elif kind in ("f_information", "renyi_differential_privacy"):
            make = _of_information if kind == "f_information" else _of_renyi
            found.append(Part(said, by_bent.pop(0), make(problem, said)))
        else:
            k = next(straight)
            found.append(Part(said, by_line[k], _of_lines(problem, said, asked.lines[k], k)))
    return found


def _share(limit: Array, mean: list[float], each: list[float], p_y: Array) -> Callable[[At], Array]:
    """The part of one of two constraints on total variation: what they take together, in proportion."""
    total = np.asarray(0.5 * ((mean[0] * p_y if mean else 0.0) + (np.array(each) if each else 0.0)))
    part = p_y * np.divide(limit, total, out=np.zeros_like(limit), where=total > 0.0)
    return lambda at: part * at.away


def _in_box(kind: str, said: dict[str, Any], asked: PricedConstraints, p_y: Array) -> Callable[[At], Array]:
    high = float(ratio(said["epsilon"]))
    above, below = high == asked.high, kind == "local_information_privacy" and 1.0 / high == asked.low
    return lambda at: p_y * (np.maximum(at.beyond, 0.0) * above + np.minimum(at.beyond, 0.0) * below)


def _of_lines(problem: Problem, said: dict[str, Any], line: Lines, k: int) -> Callable[[At], Array]:
    kind, p_y = said["kind"], problem.p_y
    if kind == "local_differential_privacy" and not said["delta"]:
        return lambda at: p_y * at.lines[k][0]
    if kind == "metric_differential_privacy":  # a line is scaled: its larger coefficient is 1
        first = [y for y in range(len(p_y)) for z in range(len(p_y)) if y != z]
        scale = line.lines[first, np.arange(len(first))] * p_y[first]
        return lambda at: at.lines[k][1] * scale
    if kind in BOXES:
        high, half = float(ratio(said["epsilon"])), int((problem.p_s > 0.0).sum())
        sign = np.concatenate([np.full(half, 1.0 / high), np.full(line.lines.shape[1] - half, -1.0)])
        return lambda at: (at.lines[k][1] * sign).reshape(len(at.n), -1, half).sum(axis=1)
    if kind == "group_fairness":
        half = line.lines.shape[1]
        return lambda at: at.lines[k][1][:, :half] - at.lines[k][1][:, half:]
    return lambda at: at.lines[k][1] if at.lines[k][1].any() else np.ones_like(at.lines[k][1])


def _of_information(problem: Problem, said: dict[str, Any]) -> Callable[[At], Array]:
    """Slopes of H at the columns."""
    of_input, used = said["of"] == "input", problem.p_s > 0.0
    told = np.eye(len(problem.p_y)) if of_input else problem.p_s_given_y[used]
    prior = told @ problem.p_y
    conjugate = conjugate_of(divergence(said["f"]), 1.0 / float(prior.min()))
    return lambda at: conjugate.slope(((1.0 - INWARD) * at.x + INWARD * problem.p_y) @ told.T / prior)


def _of_renyi(problem: Problem, said: dict[str, Any]) -> Callable[[At], Array]:
    """Logarithms of the ratios at the columns."""
    size, steep = len(problem.p_y), max(float(said["order"]), 1.0)
    first, second = np.nonzero(~np.eye(size, dtype=bool))

    def numbers(at: At) -> Array:
        ratio = np.log(np.maximum(at.x / problem.p_y, 1e-100))
        least = -np.log(STEEPEST) if steep == 1.0 else -LARGEST / steep
        return np.asarray(np.clip(ratio[:, first] - ratio[:, second], least, np.log(STEEPEST) / steep))

    return numbers
