"""Certificates of bounds under convex costs of a column: cells of the simplex, and each constraint's numbers in them.

The checker (`cvxpriv.bounds.check_costed_certificate`) derives the claim; it is asked for it here too, so that a
certificate claims what it proves and no less.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cvxpriv.blocks.declaration import Known
from cvxpriv.bounds.cell_numbers import DECIMALS, in_order, of_information, of_lines, of_renyi, stated
from cvxpriv.bounds.certificate import Certificate, CostedCertificate
from cvxpriv.bounds.check_certificate import read
from cvxpriv.bounds.check_costed_certificate import proved
from cvxpriv.bounds.column_costs import Bent
from cvxpriv.bounds.columns import Clock
from cvxpriv.bounds.lines import Lines
from cvxpriv.numerics.arrays import Array

from .costed_cells import tree_of
from .costed_pricing import CostedPricing, Costs
from .problem import Problem

#: Most numbers of a file, and the price of a unit by which a column breaks what each has to obey.
MOST_NUMBERS, NEVER = 200_000, 1e3
#: Nats by which rounding may lower the bound of a cell, the least share of a private symbol, and room for its rounding.
ROOM, LEAST, SHORTER = 1e-11, 1e-18, 1.0 - 1e-14
NO_ROOM = f"its cells take more than {MOST_NUMBERS:,} numbers, or more time than was left"

Numbers = Callable[[Array], Array]


def stated_by(problem: Problem, asked: Costs) -> dict[str, dict[str, Any] | str]:
    """Return each counted constraint by its name, as a certificate states it, or why none can."""
    said = [stated(one, asked.forbidden, problem.size_y) for one in asked.ready]
    return dict(zip(asked.counted, said, strict=True))


def costed_certificate(
    problem: Problem, pricing: CostedPricing, duals: Array, level: float, mechanism: Array, out_of_time: Clock
) -> CostedCertificate:
    """Make the certificate of the claim that phi >= `level` proves, or of as much of it as a file may hold."""
    lam, nu, mu = pricing.plain.split_all(duals)
    table, asked = problem.table.probabilities, pricing.asked
    parts = list(_parts(problem, asked, mu))
    width, cells = len(table) + sum(numbers(problem.p_x[None]).shape[1] for *_, numbers in parts), []
    most = 2 * MOST_NUMBERS // ((width + 3) * len(pricing.first))  # a cut has 3, and half of the nodes are cuts
    for c in range(len(pricing.first)):
        order = []
        if pricing.allowed(c).any():
            phi = pricing.phi(c, duals)
            phi = replace(phi, lines=[_passed(line, own) for line, own in phi.lines])
            nodes, found = tree_of(phi, level - ROOM, most, out_of_time)
            points = np.array(found)
            t = np.maximum(points @ (table / problem.p_x).T, LEAST)
            t = np.round(t / t.sum(axis=1, keepdims=True), DECIMALS)
            t = np.maximum(t, LEAST) / np.maximum(t.sum(axis=1, keepdims=True), 1.0) * SHORTER
            leaves = [t, *(np.trunc(numbers(points) * 10.0**DECIMALS) / 10.0**DECIMALS for *_, numbers in parts)]
            rows = [list(one) for one in zip(*(leaf.tolist() for leaf in leaves), strict=True)]
            order = [rows[one] if isinstance(one, int) else one for one in in_order(nodes)]
        cells.append(order)
    made = CostedCertificate.under(
        Certificate.of(table, problem.rate, nu, lam, 0.0, mechanism),
        constraints=tuple(said for said, *_ in parts),
        mu=tuple(own for _, own, _ in parts),
        cells=tuple(cells),
    )
    joint, p_x, _, exact, (price, rate, _) = read(made.document(), None, list(made.header))
    claim = float(proved(made.document(), joint, p_x, exact, price, rate))
    return replace(made, bound=max(float(np.nextafter(claim, -np.inf)), 0.0))


def _passed(line: Lines, own: Array) -> tuple[Lines, Array]:
    """A cost with its prices; what a column has to obey as one at a finite price."""
    if line.sort != "never":
        return line, own
    return Lines("above", line.lines), NEVER / np.maximum(np.ptp(line.lines, axis=0), LEAST)


def _parts(problem: Problem, asked: Costs, mu: Array) -> Iterator[tuple[dict[str, Any], list[float], Numbers]]:
    """Each constraint as a certificate states it, its multipliers, and its numbers at points of cells."""
    held, costs, known = mu.tolist(), iter(asked.costs), Known.of_table(problem.table)
    by_name = [held.pop(0) for _ in asked.distortions]
    for said in stated_by(problem, asked).values():
        assert isinstance(said, dict), "a certificate is made where all can be stated"
        if said["kind"] in ("expected_distortion", "forbidden"):
            yield said, [by_name.pop(0)] if said["kind"] == "expected_distortion" else [], lambda x: x[:, :0]
            continue
        cost = next(costs)
        own = [held.pop(0) for _ in cost.ends]
        yield said, own, _numbers(said, cost, np.array(own), known)


def _numbers(said: dict[str, Any], cost: Lines | Bent, own: Array, known: Known) -> Numbers:
    if isinstance(cost, Lines):
        passed, prices = _passed(cost, own)
        return lambda x: of_lines(said, cost, known, passed.active(x, prices))
    if said["kind"] == "total_variation_to_prior":
        return lambda x: np.asarray(0.5 * own * known.prior * np.sign(x - known.prior))
    return of_information(said, known) if said["kind"] == "f_information" else of_renyi(known)
