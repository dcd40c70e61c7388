"""Certificates of bounds under constraints: cells of s = P(S|Y) x, and in each what the constraints' costs are worth.

On a cell KL(s || P_S) lies below a plane, so that a column's price is a concave problem in x alone. Its Lagrangian in
the constraints' costs says how much less than c.x a column is worth at least; the checker derives that again from the
few numbers for each constraint that are made here (`cvxpriv.bounds.check_constrained_service_certificate`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from cvxpriv.bounds.check_constrained_service_certificate import Cost, short
from cvxpriv.bounds.check_service_certificate import GRID
from cvxpriv.bounds.service_certificate import KNOWN, ConstrainedServiceCertificate, ServiceCertificate
from cvxpriv.constraints import ReadyConstraint
from cvxpriv.divergences import divergence
from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array, Flags

from .any_conjugate import conjugate_of
from .cells_of_s import bisected, kl_to_prior
from .certificates import certificate_of
from .column_costs import INWARD, STEEPEST
from .conjugates import closed_form
from .line_costs import Lines, weights_under
from .measured import Constraints
from .merged_symbols import information_lost, merged_table
from .priced_constraints import BOXES, PricedConstraints, pricing_of
from .pricing import LIMIT, SUM
from .problem import Problem
from .summed_costs import levelled
from .summed_pricing import SummedPricing

#: Most numbers of a file, decimals of each, and seconds for their search; beyond, the claim is what was proved so far.
MOST_NUMBERS, DECIMALS, SECONDS = 200_000, 11, 20.0
#: Nats by which rounding may move a price.
ROOM = 1e-10
#: Largest exponent of a ratio that the checker takes.
LARGEST = 40.0
NO_F = "the checker knows no f but those built in without kinks"
NO_RATIO = "the checker takes no ratio above e^40"
NO_COLUMN = "an output can have no mass with it, which the checker does not derive"


def stated(one: ReadyConstraint, problem: Problem, asked: PricedConstraints) -> dict[str, Any] | str:
    """Return a constraint as a certificate states it, or why none can."""
    given = dict(one.parameters)
    if one.kind == "forbidden":
        assert asked.forbidden is not None, "it is one of those that are counted"
        return {"kind": one.kind, "cells": np.argwhere(asked.forbidden).tolist(), "outputs": problem.size_u}
    if one.kind == "f_information" and given["of"] == "input" and given["f"] == "total-variation":
        return {"kind": "total_variation_to_prior", "bound": given["bound"], "average": True}
    if one.kind == "f_information":
        f = divergence(given["f"])
        if f.name not in KNOWN or closed_form(f) is None:
            return NO_F
        given["f"] = f.name
    steep = max(float(np.max(given.get("distance", 1.0))), abs(float(given.get("order", 1.0)) - 1.0))
    return NO_RATIO if float(given.get("epsilon", 0.0)) * steep > LARGEST else {"kind": one.kind, **given}


def unstated(problem: Problem, asked: PricedConstraints) -> str:
    """Return why no certificate can be made under constraints, or ""."""
    said = [(name, stated(one, problem, asked)) for name, one in asked.counted if isinstance(one, ReadyConstraint)]
    reasons = [f"{name}: {why}" for name, why in said if isinstance(why, str)]
    pricing = _summed(problem, problem.p_s_given_y * problem.p_y, asked)
    if len(pricing.usable) < len(pricing.first):
        reasons += [f"{name}: {NO_COLUMN}" for name, one in asked.counted if getattr(one, "kind", "") == "forbidden"]
    return "; ".join(reasons)


def _summed(problem: Problem, joint: Array, asked: PricedConstraints) -> SummedPricing:
    joint = joint[joint.sum(axis=1) > 0.0]
    bare = conjugate_of(problem.divergence, 1.0 / float(problem.p_y.min()))
    return SummedPricing(pricing_of(problem, joint, asked), bare, asked, np.inf)


class _At(NamedTuple):
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
    def of(cls, pricing: SummedPricing, sort: int, duals: Array, c: Array) -> tuple[_At, Array]:
        """Return it for columns of one sort of outputs, and bounds of the inner problem, (B,)."""
        asked, (costs, _, prices) = pricing.asked, pricing.costs_of_class(sort, duals)
        plain, some, lines, rest, x = costs.plain, costs.allowed, [], c, c
        straight = sum(len(line.ends) for line in asked.lines)
        if asked.bent:
            x = pricing.of_class(sort, duals)[0].solve(c, LIMIT, SUM, None).x
            ends = np.cumsum([straight, *(len(one.lines) for one in asked.bent)])
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
class _Part:
    """One constraint of a certificate: how it is stated, its multipliers, and its numbers in cells, (B, size)."""

    said: dict[str, Any]
    mu: list[float]
    numbers: Callable[[_At], Array] | None = None


def _parts(problem: Problem, pricing: SummedPricing, mu: Array) -> list[_Part]:
    """Return the constraints of a certificate; of two that ask the same, the one that asks more."""
    asked, p_y, held, found = pricing.asked, problem.p_y, mu.tolist(), list[_Part]()

    def take(count: int) -> list[float]:
        return [held.pop(0) for _ in range(count)]

    distortions = [take(1) for _ in asked.distortions]
    peak, mean = take(int(asked.peak < np.inf)), take(int(asked.moved_on_average < np.inf))
    each, by_line = take(len(p_y) if asked.moved < np.inf else 0), [take(len(line.ends)) for line in asked.lines]
    by_bent = [take(1) for one in asked.bent for _ in one.lines]
    straight, bent = iter(range(len(asked.lines))), iter(asked.bent)
    for _, one in asked.counted:
        assert isinstance(one, ReadyConstraint), "others are not counted"
        said = stated(one, problem, asked)
        assert isinstance(said, dict), "a certificate is made where all can be stated"
        kind = said["kind"]
        if kind == "expected_distortion":
            found.append(_Part(said, distortions.pop(0)))
        elif kind == "forbidden":
            found.append(_Part(said, []))
        elif kind == "maximal_leakage":
            if np.exp(min(said["bound"], np.log(len(p_y)))) == asked.peak and peak:
                found.append(_Part(said, peak, lambda at: p_y * at.peak))
                peak = []
        elif kind == "total_variation_to_prior":
            average = bool(said.get("average"))
            if said["bound"] == (asked.moved_on_average if average else asked.moved) and (mean if average else each):
                prices = mean if average else each
                limit = 0.5 * (prices[0] * p_y if average else np.array(prices))
                found.append(_Part(said, prices, _share(limit, mean, each, p_y)))
        elif kind in BOXES and said.get("of") == "input":
            found.append(_Part(said, [], _in_box(kind, said, asked, p_y)))
        elif kind == "local_differential_privacy" and asked.epsilon is not None and not said["delta"]:
            if said["epsilon"] == asked.epsilon:
                found.append(_Part(said, [], lambda at: p_y * at.beyond))
        elif kind in ("f_information", "renyi_differential_privacy"):
            make = _of_information if kind == "f_information" else _of_renyi
            prices = [price for _ in range(len(next(bent).lines)) for price in by_bent.pop(0)]
            found.append(_Part(said, prices, make(problem, said)))
        else:
            k = next(straight)
            found.append(_Part(said, by_line[k], _of_lines(problem, said, asked.lines[k], k)))
    return found


def _share(limit: Array, mean: list[float], each: list[float], p_y: Array) -> Callable[[_At], Array]:
    """The part of one of two constraints on total variation: what they take together, in proportion."""
    total = np.asarray(0.5 * ((mean[0] * p_y if mean else 0.0) + (np.array(each) if each else 0.0)))
    part = p_y * np.divide(limit, total, out=np.zeros_like(limit), where=total > 0.0)
    return lambda at: part * at.away


def _in_box(kind: str, said: dict[str, Any], asked: PricedConstraints, p_y: Array) -> Callable[[_At], Array]:
    high = float(np.exp(min(said["epsilon"], 700.0)))
    above, below = high == asked.high, kind == "local_information_privacy" and 1.0 / high == asked.low
    return lambda at: p_y * (np.maximum(at.beyond, 0.0) * above + np.minimum(at.beyond, 0.0) * below)


def _of_lines(problem: Problem, said: dict[str, Any], line: Lines, k: int) -> Callable[[_At], Array]:
    kind, p_y = said["kind"], problem.p_y
    if kind == "local_differential_privacy" and not said["delta"]:
        return lambda at: p_y * at.lines[k][0]
    if kind == "metric_differential_privacy":  # a line is scaled: its larger coefficient is 1
        first = [y for y in range(len(p_y)) for z in range(len(p_y)) if y != z]
        scale = line.lines[first, np.arange(len(first))] * p_y[first]
        return lambda at: at.lines[k][1] * scale
    if kind in BOXES:
        high, half = np.exp(said["epsilon"]), int((problem.p_s > 0.0).sum())
        sign = np.concatenate([np.full(half, 1.0 / high), np.full(line.lines.shape[1] - half, -1.0)])
        return lambda at: (at.lines[k][1] * sign).reshape(len(at.n), -1, half).sum(axis=1)
    if kind == "group_fairness":
        half = line.lines.shape[1]
        return lambda at: at.lines[k][1][:, :half] - at.lines[k][1][:, half:]
    return lambda at: at.lines[k][1] if at.lines[k][1].any() else np.ones_like(at.lines[k][1])


def _of_information(problem: Problem, said: dict[str, Any]) -> Callable[[_At], Array]:
    """Slopes of H at the columns."""
    of_input, used = said["of"] == "input", problem.p_s > 0.0
    told = np.eye(len(problem.p_y)) if of_input else problem.p_s_given_y[used]
    prior = told @ problem.p_y
    conjugate = conjugate_of(divergence(said["f"]), 1.0 / float(prior.min()))
    return lambda at: conjugate.slope(((1.0 - INWARD) * at.x + INWARD * problem.p_y) @ told.T / prior)


def _of_renyi(problem: Problem, said: dict[str, Any]) -> Callable[[_At], Array]:
    """Logarithms of the ratios at the columns."""
    size, steep = len(problem.p_y), max(float(said["order"]), 1.0)
    first, second = np.nonzero(~np.eye(size, dtype=bool))

    def numbers(at: _At) -> Array:
        ratio = np.log(np.maximum(at.x / problem.p_y, 1e-100))
        least = -np.log(STEEPEST) if steep == 1.0 else -LARGEST / steep
        return np.asarray(np.clip(ratio[:, first] - ratio[:, second], least, np.log(STEEPEST) / steep))

    return numbers


def constrained_certificate(
    problem: Problem,
    asked: PricedConstraints,
    alpha: Array,
    mu: Array,
    claim: float,
    mechanism: Array,
    groups: list[int] | None,
    gap: float,
) -> ConstrainedServiceCertificate:
    """Make the certificate of a claim under constraints, or of as much of it as a file may hold.

    `alpha`, (|Y|,), `mu`, (k,): The multipliers of P(Y), and of the sums over columns.
    The others: see `certificate_of`.
    """
    table = problem.p_s_given_y * problem.p_y
    merged, lost = table, 0.0
    if groups is not None:
        apart = np.array(groups, dtype=np.intp)
        merged, lost = merged_table(table, apart), information_lost(table, apart)
    pricing, mu = _summed(problem, merged, asked), np.maximum(mu, 0.0)
    plain = certificate_of(problem, alpha, claim, mechanism, groups, gap)
    duals, base = np.concatenate([-alpha, -mu]), float(alpha @ problem.p_y + mu @ pricing.upper) + lost
    parts = _parts(problem, pricing, mu)
    exact = [[Fraction(float(v)) for v in row] for row in table / table.sum()]
    p = [sum(column, Fraction(0)) for column in zip(*exact, strict=True)]
    costs = [Cost(part.said, exact, p, short(part.mu) if part.mu else []) for part in parts]
    trees, worst, end = [], -np.inf, time.monotonic() + SECONDS
    width = 1 + sum(cost.size for cost in costs)
    for c in range(len(pricing.first)):
        most = MOST_NUMBERS // (width * len(pricing.first))
        tree, high = _Tree(pricing, c, duals, parts, costs).grown(claim - base, most, end)
        trees.append(tree)
        worst = max(worst, high)
    return ConstrainedServiceCertificate.under(
        replace(plain, bound=max(claim, base + worst) + plain.bound - claim + ROOM),
        constraints=tuple(part.said for part in parts),
        mu=tuple(part.mu for part in parts),
        cells=tuple(trees),
    )


def held_under(certificate: ServiceCertificate, problem: Problem, constraints: Constraints) -> tuple[str, ...]:
    """Return the names of a problem's constraints that a stored certificate counts, once it is proved; () for none.

    Raises DataError: It does not prove its claim for this problem, or states a constraint that is none of these.
    """
    if not isinstance(certificate, ConstrainedServiceCertificate):
        return ()
    ready = tuple((name, one) for name, one in constraints if isinstance(one, ReadyConstraint) and one.kind)
    asked = PricedConstraints.of(problem, ready)
    known = [(name, stated(one, problem, asked)) for name, one in asked.counted if isinstance(one, ReadyConstraint)]
    if not all(one in [said for _, said in known] for one in certificate.constraints):
        raise DataError("the certificate does not prove a bound of this run: it is under other constraints")
    if certificate.divergence != problem.divergence.name or certificate.beta > problem.beta:
        raise DataError("the certificate does not prove a bound of this run: its f or beta is another one")
    certificate.verify(problem.p_s_given_y * problem.p_y)
    return tuple(name for name, said in known if said in certificate.constraints)


@dataclass(frozen=True, eq=False)
class _Tree:
    pricing: SummedPricing
    sort: int
    duals: Array
    parts: list[_Part]
    costs: list[Cost]

    def grown(self, threshold: float, most: int, end: float) -> tuple[list[Any], float]:
        """Return the tree of cells in order, its root first, and the largest price that its leaves leave."""
        own, alpha, _ = self.pricing.costs_of_class(self.sort, self.duals)
        plain = own.plain
        lows = np.maximum(np.floor(plain.channel.min(axis=1) * GRID) - 1.0, 0.0) / GRID
        cells, worst, made = (lows + (1.0 - lows.sum()) * np.eye(len(lows)))[None], -np.inf, 1
        nodes: list[Any] = [None]
        names = np.array([0])
        while len(cells):
            heights = kl_to_prior(cells, plain.p_s)
            c = np.linalg.solve(cells, heights[:, :, None])[:, :, 0] @ plain.channel - alpha
            at, values = _At.of(self.pricing, self.sort, self.duals, c)
            done = (values <= threshold - ROOM) | (made > most) | (time.monotonic() > end)
            worst = max(worst, values[done].max(initial=-np.inf))
            for name, entry in zip(names[done].tolist(), self._entries(at, done, own.allowed), strict=True):
                nodes[name] = entry
            cells, heights, kept = cells[~done], heights[~done], names[~done]
            first, second = np.triu_indices(cells.shape[1], 1)
            middle = kl_to_prior((cells[:, first] + cells[:, second]) / 2.0, plain.p_s)
            edges = (heights[:, first] + heights[:, second] - 2.0 * middle).argmax(axis=1) if len(cells) else kept
            names = made + np.arange(2 * len(kept))
            for k, name in enumerate(kept.tolist()):
                nodes[name] = (int(edges[k]), int(names[k]), int(names[len(kept) + k]))
            nodes += [None] * len(names)
            cells, made = bisected(cells, plain.p_s) if len(cells) else cells, made + len(names)
        order, stack = list[Any](), [0]
        while stack:
            node = nodes[stack.pop()]
            order.append(node[0] if isinstance(node, tuple) else node)
            stack += list(node[1:]) if isinstance(node, tuple) else []
        return order, float(worst)

    def _entries(self, at: _At, done: Flags, some: Flags) -> list[list[Any]]:
        """Return n and each constraint's numbers for some cells, with n for what the checker makes of them."""
        numbers = [part.numbers(at)[done] if part.numbers else np.zeros((int(done.sum()), 0)) for part in self.parts]
        numbers = [np.round(one, DECIMALS) for one in numbers]
        found = []
        for k, (c, rest, n) in enumerate(zip(at.c[done], at.rest[done], at.n[done], strict=True)):
            taken = np.zeros_like(c)
            for one, cost in zip(numbers, self.costs, strict=True):
                u = cost.weaken(short(one[k].tolist()))[0] if cost.size else []
                for w, row in zip(u, cost.ratios, strict=False):
                    for y, t in row if w else []:
                        taken[y] += float(w * t)
            shift = float((c - taken - rest)[some].mean())
            found.append([round(float(n) + shift, DECIMALS), *(one[k].tolist() for one in numbers)])
        return found
