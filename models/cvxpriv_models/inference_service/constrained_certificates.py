"""Certificates of bounds under constraints: cells of s = P(S|Y) x, and in each what the constraints' costs are worth.

The checker (`cvxpriv.bounds.check_constrained_service_certificate`) derives the price in a cell again from the few
numbers for each constraint that `cell_numbers` makes.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from cvxpriv.bounds.cell_numbers import DECIMALS, in_order, stated
from cvxpriv.bounds.check_costs import Cost, short
from cvxpriv.bounds.check_service_certificate import GRID
from cvxpriv.bounds.merged_symbols import information_lost, merged_table
from cvxpriv.bounds.service_certificate import ConstrainedServiceCertificate, ServiceCertificate
from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array, Flags
from cvxpriv.numerics.sizes import now

from .cell_numbers import At, Part, parts_of
from .cells_of_s import bisected, kl_to_prior
from .certificates import certificate_of
from .measured import Constraints
from .priced_constraints import PricedConstraints, pricing_of
from .problem import Problem
from .summed_pricing import SummedPricing

#: Most numbers of a file, and seconds for their search; beyond, the claim is what was proved so far.
MOST_NUMBERS, SECONDS = 200_000, 20.0
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
            shift = float((c - taken - rest)[some].mean())
            found.append([round(float(n) + shift, DECIMALS), *(one[k].tolist() for one in numbers)])
        return found
