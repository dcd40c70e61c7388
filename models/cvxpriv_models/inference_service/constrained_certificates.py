"""Certificates of bounds under constraints: cells of s = P(S|Y) x, and in each what the constraints' costs are worth.

The checker (`cvxpriv.bounds.check_constrained_service_certificate`) derives the price in a cell again from the few
numbers for each constraint that `cell_numbers` makes. On a cell KL(s || P_S) lies below a plane, so that a column's
price is a concave problem in x alone; its Lagrangian says how much less than c.x a column is worth at least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cvxpriv.blocks.declaration import Known
from cvxpriv.bounds.cell_numbers import BOXES, DECIMALS, LARGEST, in_order, of_information, of_lines, of_renyi, stated
from cvxpriv.bounds.check_costs import Cost, short
from cvxpriv.bounds.check_service_certificate import GRID
from cvxpriv.bounds.lines import Lines
from cvxpriv.bounds.merged_symbols import information_lost, merged_table
from cvxpriv.bounds.service_certificate import ConstrainedServiceCertificate, ServiceCertificate
from cvxpriv.constraints.ready import ratio
from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array, Flags
from cvxpriv.numerics.sizes import now

from .cells_of_s import bisected, kl_to_prior
from .certificates import certificate_of
from .measured import Constraints
from .priced_constraints import PricedConstraints, pricing_of
from .pricing import LIMIT, SUM
from .problem import Problem
from .summed_costs import levelled, weights_under
from .summed_pricing import SummedPricing

#: Distance beside a ratio, relative, at which the slopes on its two sides are read.
BESIDE = 1e-9


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
        left = np.where(some, rest - peak - inner.n[:, None], -np.inf)  # a forbidden cell has a ratio of 0
        away = np.clip(left, -plain.beta * costs.away, plain.beta * costs.away)
        slope = (left - away) / plain.beta
        beyond = np.zeros_like(c)
        if costs.limits is not None:
            low, high = costs.bare.slope(np.array(costs.limits))
            low = low if asked.low > 0.0 else -np.finfo(float).max
            high = high if costs.limits[1] * plain.p_y.min() < 1.0 - 1e-12 else np.inf
            beyond = np.where(some, plain.beta * (slope - np.clip(slope, low, high)), 0.0)
        elif asked.epsilon is not None:  # what keeps a ratio from where it would be alone
            ratio = np.maximum(inner.x / plain.p_y, np.exp(-LARGEST))
            least, most = (
                costs.bare.slope(ratio * (1.0 + side)) for side in (-BESIDE, BESIDE)
            )  # at a kink any between
            edges = [np.where(some, plain.beta * (slope - one), 0.0) for one in (most, least)]
            beyond = _balanced(edges[0], edges[1], inner.x, ratio)
        return cls(c, rest - peak - away - beyond, inner.n, x, lines, peak, away, beyond), inner.value


def _balanced(low: Array, high: Array, x: Array, ratio: Array) -> Array:
    """Return what keeps ratios from where they would be alone: the least that adds up to nothing.

    `low`, `high`: Its ends, which differ at kinks; it is >= 0 at the largest ratio and <= 0 at the least.
    """
    found = np.clip(0.0, low, high)
    largest = ratio >= ratio.max(axis=1, keepdims=True) * (1.0 - BESIDE)
    least = ratio <= ratio.min(axis=1, keepdims=True) * (1.0 + BESIDE)
    sums = (found * x).sum(axis=1, keepdims=True)
    other = np.where(sums > 0.0, np.where(least, low, found), np.where(largest, high, found))
    room = ((other - found) * x).sum(axis=1, keepdims=True)
    share = np.where(np.abs(room) > 0.0, np.clip(-sums / np.where(room == 0.0, 1.0, room), 0.0, 1.0), 0.0)
    return np.asarray(found + share * (other - found))


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
                found.append(Part(said, peak, partial(_of_peak, peak[0], p_y)))
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


def _of_peak(price: float, p_y: Array, at: At) -> Array:
    """Shares of the price of a peak, rounded up but for that of a heavy input: the checker divides by p(y).

    Their sum must not exceed the price: what it does is divided by the least p(y).
    """
    taken = p_y * at.peak
    shares, rows = np.ceil(taken * 10**DECIMALS) / 10**DECIMALS, np.arange(len(taken))
    heavy = np.where(taken > MUCH, p_y, 0.0).argmax(axis=1)
    left = price - RESERVE - shares.sum(axis=1) + shares[rows, heavy]
    shares[rows, heavy] = np.minimum(shares[rows, heavy], np.floor(left * 10**DECIMALS) / 10**DECIMALS)
    return np.asarray(np.where(taken.any(axis=1, keepdims=True), shares, 0.0))


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


#: Most numbers of a file, and seconds for their search; beyond, the claim is what was proved so far.
MOST_NUMBERS, SECONDS = 200_000, 20.0
#: Shares of a price above this are no rounding; what the checker's own rounding may add to a sum of them.
MUCH, RESERVE = 1e-9, 1e-12
NO_COLUMN = "an output can have no mass with it, which the checker does not derive"


def unstated(problem: Problem, asked: PricedConstraints) -> str:
    """Return why no certificate can be made under constraints, or ""."""
    reasons = [f"{name}: {why}" for name, why in _stated(problem, asked) if isinstance(why, str)]
    pricing = _summed(problem, problem.p_s_given_y * problem.p_y, asked)
    if len(pricing.usable) < len(pricing.first):
        reasons += [f"{name}: {NO_COLUMN}" for name, one in asked.counted if one.kind == "forbidden"]
    return "; ".join(reasons)


def _stated(problem: Problem, asked: PricedConstraints) -> list[tuple[str, dict[str, Any] | str]]:
    """Each counted constraint as a certificate states it, or why none can."""
    return [(name, stated(one, asked.forbidden, problem.size_u)) for name, one in asked.counted]


def _summed(problem: Problem, joint: Array, asked: PricedConstraints) -> SummedPricing:
    joint = joint[joint.sum(axis=1) > 0.0]
    return SummedPricing(pricing_of(problem, joint, asked), problem.divergence, asked, np.inf)


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
    # A certificate is made where all can be stated.
    parts = parts_of(problem, pricing, mu, [said for _, said in _stated(problem, asked) if isinstance(said, dict)])
    exact = [[Fraction(float(v)) for v in row] for row in table / table.sum()]
    p = [sum(column, Fraction(0)) for column in zip(*exact, strict=True)]
    costs = [Cost(part.said, exact, p, short(part.mu) if part.mu else []) for part in parts]
    trees, worst, end = [], -np.inf, now() + SECONDS
    width = 1 + sum(cost.size for cost in costs)
    for c in range(len(pricing.first)):
        most = MOST_NUMBERS // (width * len(pricing.first))
        tree, high = Tree(pricing, c, duals, parts, costs).grown(claim - base, most, end)
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
    known = _stated(problem, PricedConstraints.of(problem, constraints))
    if not all(one in [said for _, said in known] for one in certificate.constraints):
        raise DataError("the certificate does not prove a bound of this run: it is under other constraints")
    if certificate.divergence != problem.divergence.name or certificate.beta > problem.beta:
        raise DataError("the certificate does not prove a bound of this run: its f or beta is another one")
    certificate.verify(problem.p_s_given_y * problem.p_y)
    return tuple(name for name, said in known if said in certificate.constraints)


#: Nats by which rounding may move a price.
ROOM = 1e-10


@dataclass(frozen=True, eq=False)
class Tree:
    """Cells for outputs of one sort at given multipliers.

    `sort`: The sort. `duals`: Those of P(Y), negative, then of the sums. `parts`, `costs`: The constraints, alike.
    """

    pricing: SummedPricing
    sort: int
    duals: Array
    parts: list[Part]
    costs: list[Cost]

    def grown(self, threshold: float, most: int, end: float) -> tuple[list[Any], float]:
        """Return the tree of cells in order, its root first, and the largest price that its leaves leave."""
        own, alpha, _ = self.pricing.costs_of_class(self.sort, self.duals)
        plain = own.plain
        lows = np.maximum(np.floor(plain.channel.min(axis=1) * GRID) - 1.0, 0.0) / GRID
        cells, worst, made = (lows + (1.0 - lows.sum()) * np.eye(len(lows)))[None], -np.inf, 1
        nodes: list[Any] = [None]
        names = np.array([0])
        while True:
            c = np.linalg.solve(cells, kl_to_prior(cells, plain.p_s)[:, :, None])[:, :, 0] @ plain.channel - alpha
            at, values = At.of(self.pricing, self.sort, self.duals, c)
            done = (values <= threshold - ROOM) | (made > most) | (now() > end)
            worst = max(worst, values[done].max(initial=-np.inf))
            for name, entry in zip(names[done].tolist(), self._entries(at, done, own.allowed), strict=True):
                nodes[name] = entry
            kept = names[~done]
            if not len(kept):
                break
            cells, edges = bisected(cells[~done], plain.p_s)
            names = made + np.arange(2 * len(kept))
            for k, name in enumerate(kept.tolist()):
                nodes[name] = (int(edges[k]), int(names[k]), int(names[len(kept) + k]))
            nodes += [None] * len(names)
            made += len(names)
        return in_order(nodes), float(worst)

    def _entries(self, at: At, done: Flags, some: Flags) -> list[list[Any]]:
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
            shift = float(np.average((c - taken - rest)[some], weights=self.pricing.plain.p_y[some]))
            found.append([round(float(n) + shift, DECIMALS), *(one[k].tolist() for one in numbers)])
        return found
