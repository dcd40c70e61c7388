"""The numbers of each constraint in a cell of a certificate: from them the checker derives the price of a column.

On a cell KL(s || P_S) lies below a plane, so that a column's price is a concave problem in x alone. Its Lagrangian in
the constraints' costs says how much less than c.x a column is worth at least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cvxpriv.blocks.declaration import Known
from cvxpriv.bounds.cell_numbers import BOXES, LARGEST, of_information, of_lines, of_renyi
from cvxpriv.bounds.lines import Lines
from cvxpriv.constraints.ready import ratio
from cvxpriv.numerics.arrays import Array

from .priced_constraints import PricedConstraints
from .pricing import LIMIT, SUM
from .problem import Problem
from .summed_costs import levelled, weights_under
from .summed_pricing import SummedPricing


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
            both = line.sides
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
    known = Known.of_table(problem.table)

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
            found.append(Part(said, by_bent.pop(0), _at_column(said, known)))
        else:
            k = next(straight)
            found.append(Part(said, by_line[k], _of_weights(said, asked.lines[k], known, k)))
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


def _at_column(said: dict[str, Any], known: Known) -> Callable[[At], Array]:
    of = of_information(said, known) if said["kind"] == "f_information" else of_renyi(known)
    return lambda at: of(at.x)


def _of_weights(said: dict[str, Any], line: Lines, known: Known, k: int) -> Callable[[At], Array]:
    return lambda at: of_lines(said, line, known, at.lines[k][1])
