"""The least leakage at a rate under constraints, bounded from below; and the most that they let Y tell of X."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from cvxpriv.blocks.declaration import Constraint, Known
from cvxpriv.bounds.certificate import Certificate
from cvxpriv.bounds.columns import Generated, Generation
from cvxpriv.bounds.constrained_certificate import ConstrainedCertificate
from cvxpriv.bounds.pricing import INTERRUPTED, now
from cvxpriv.constraints.gate import missed
from cvxpriv.errors import ModelError, SolverFailure
from cvxpriv.numerics.arrays import Array, IntArray

from .bound import CLAIM_SHARE, LEAST_CLAIM_ROOM, FunnelBound, bound
from .column_constraints import ColumnConstraints
from .columns import mechanism_of
from .constrained_pricing import ConstrainedPricing
from .fewer_outputs import on_few_outputs
from .pricing import FunnelPricing
from .problem import Problem

ROUNDING = 1e-8
"""Distance of a rate above the largest utility, by a linear program, that is rounding, in nats."""

PLAIN_SHARE = 0.3
"""Share of the time for the bound without constraints, where it is asked too."""

AFTER_INTERRUPT = 1.0
"""Seconds for that bound, at most, once the keyboard has ended the search with constraints."""

UNKNOWN = "outputs have names, and the mechanism of the bound is one without constraints"
"""Why the two ends do not meet where no mechanism on the named outputs is at hand."""

BARRED = 1e6
"""Cost of an output that a column may not be."""

SAME_DIGITS = 3
"""Posteriors that agree to so many digits are one output: what that loses, the polish finds again."""

ROOM = 1e-10
"""Distance above the rate at which the master is solved: the loss when a mechanism's rows are made to sum to 1."""


@dataclass(frozen=True)
class ConstrainedBound:
    """The bounds under the constraints that the bound can count.

    `lower`: Nats: no mechanism that satisfies the constraints and carries the rate leaks less.
    `mechanism`: P(Y|X) with the columns of the bound. Where outputs are alike it satisfies the constraints that are
    counted and carries the rate; where they have names, those of one name are merged, in their place, and it may not.
    `most`: Nats: no mechanism that satisfies the constraints tells more of X.
    `certificate`: The multipliers behind `lower`.
    `named`: Whether outputs have names; the bound then allows several outputs of each.
    `counted`, `ignored`: Names of the constraints that the bound takes into account, and of those that it leaves out.
    `reason`: "" if the wanted gap was proved, else why not.
    """

    lower: float
    mechanism: Array
    most: float
    certificate: ConstrainedCertificate
    named: bool
    counted: tuple[str, ...]
    ignored: tuple[str, ...]
    reason: str

    def fits(self, size_y: int) -> bool:
        """Whether the mechanism is one on |Y| outputs that satisfies all constraints."""
        return not self.named and not self.ignored and self.mechanism.shape[1] <= size_y


def bound_under(
    problem: Problem, constraints: Sequence[tuple[str, Constraint]], gap: float, time_limit: float
) -> tuple[FunnelBound, ConstrainedBound | None]:
    """Bound the least leakage, with the constraints that can be counted; beside it what these leave.

    `upper` and `mechanism` are those of the constrained bound where all outputs are alike, else those without
    constraints. Where the time or a keyboard interrupt ends the search before the constraints raise the bound, it is
    that without them.

    Raises ModelError: The constraints let no mechanism carry the rate; or as for `bound`.
    """
    begun = now()
    try:
        under = constrained_bound(problem, constraints, gap, (1.0 - PLAIN_SHARE) * time_limit)
        interrupted = under is not None and under.reason == INTERRUPTED
    except KeyboardInterrupt:
        under, interrupted = None, True
    if under is not None and not (under.named or under.reason):
        return _as_bound(problem, under, now() - begun), under
    left = PLAIN_SHARE * time_limit
    plain = bound(problem.table, problem.rate, gap, min(left, AFTER_INTERRUPT) if interrupted else left)
    if interrupted:
        plain = replace(plain, reason=INTERRUPTED)
    if under is None or under.lower < plain.lower - gap:
        return replace(plain, ignored=tuple(name for name, _ in constraints)), under
    found = _as_bound(problem, under, now() - begun)
    lower = max(plain.lower, found.lower)
    found = replace(found, lower=lower, upper=max(found.upper, lower))
    if not under.named or _satisfies(under.mechanism, problem, constraints):
        return found, under
    return replace(found, upper=max(plain.upper, lower), mechanism=plain.mechanism, reason=UNKNOWN), under


def _satisfies(mechanism: Array, problem: Problem, constraints: Sequence[tuple[str, Constraint]]) -> bool:
    told = problem.utility(mechanism) >= problem.rate - ROUNDING
    return told and not missed(mechanism, constraints, Known.of_table(problem.table))


def _as_bound(problem: Problem, under: ConstrainedBound, seconds: float) -> FunnelBound:
    upper = max(problem.leakage(under.mechanism), under.lower)
    return FunnelBound(
        under.lower,
        upper,
        under.mechanism,
        under.certificate,
        problem.rate,
        seconds,
        under.reason,
        under.counted,
        under.ignored,
    )


def constrained_bound(
    problem: Problem, constraints: Sequence[tuple[str, Constraint]], gap: float, time_limit: float
) -> ConstrainedBound | None:
    """Bound the least leakage under constraints; None where none of them can be counted.

    Raises ModelError: The constraints let no mechanism carry the rate.
    """
    end = now() + time_limit
    asked = ColumnConstraints.of(problem, constraints)
    pricing = ConstrainedPricing(FunnelPricing(problem.table.probabilities, problem.rate), asked)
    if not asked.counted or not pricing.certifiable:
        return None
    most = _most(pricing)
    if most is None:  # no columns at all: what is wrong is said by the constraints themselves
        return None
    if problem.rate > most + ROUNDING:
        raise ModelError(
            f"constraints {', '.join(asked.counted)}: no mechanism that satisfies them tells rate={problem.rate:.6g} "
            f"nats of X: I(X;Y) is at most {most:.6g}; lower rate, or relax a constraint"
        )
    pricing.plain.rate = min(problem.rate + ROOM, most)
    generation = Generation(pricing, pricing.master(), pricing.first_columns())
    try:
        found = generation.run(gap, lambda: now() > end, 0.0, pricing.plain.entropy_s)
    except SolverFailure:  # at the most that can be told, rounding decides whether there is a point
        return None
    lam, nu, mu = pricing.split(found.duals)
    lower = max(found.bound - lam * max(pricing.plain.rate - problem.rate, 0.0), 0.0)
    pricing.plain.rate = problem.rate
    claim = min(lower, pricing.bound(found.duals, 0.0) - max(CLAIM_SHARE * gap, LEAST_CLAIM_ROOM))
    mechanism = _mechanism(problem, pricing, found)
    if not asked.outputs:
        mechanism = on_few_outputs(problem, pricing, generation, mechanism)
    plain = Certificate.of(problem.table.probabilities, problem.rate, nu, lam, max(claim, 0.0), mechanism)
    return ConstrainedBound(
        lower,
        mechanism,
        most,
        ConstrainedCertificate.under(plain, mu, asked.stated),
        bool(asked.outputs),
        asked.counted,
        asked.ignored,
        found.reason,
    )


def _most(pricing: ConstrainedPricing) -> float | None:
    """The most that can be told of X: H(X) less the least average of H over generators, since H is concave."""
    columns, size = pricing.first_columns(), len(pricing.plain.p_x)
    master = pricing.master()
    _, rows = pricing.rows(columns)
    master.set_row(size, -np.inf, np.inf)
    master.add(rows[size], rows)
    try:
        return float(pricing.plain.entropy_x - master.solve().value)
    except SolverFailure:
        return None


def _mechanism(problem: Problem, pricing: ConstrainedPricing, found: Generated) -> Array:
    posteriors = pricing.posteriors(found.columns)
    outputs = pricing.asked.outputs
    if not outputs:
        return mechanism_of(posteriors, found.weights, problem.p_x)
    named = np.array(outputs)[found.columns[0].astype(int)]
    if len(outputs) == problem.size_y and pricing.asked.rows.shape[1] == 1:
        named = _each_its_own(pricing, found, named)
    joint = np.zeros((len(problem.p_x), problem.size_y))
    np.add.at(joint.T, named, (posteriors * found.weights).T)
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def _each_its_own(pricing: ConstrainedPricing, found: Generated, named: IntArray) -> IntArray:
    """An output of its own for each posterior, at the least distortion; `named` as it is where that is too much."""
    _, where = np.unique(np.round(found.columns[1:], SAME_DIGITS), axis=1, return_inverse=True)
    one = np.zeros((len(named), where.max() + 1))
    one[np.arange(len(named)), where.ravel()] = found.weights
    if one.shape[1] > len(pricing.asked.outputs):
        return named
    weights = found.columns[1:] @ one
    cost = (pricing.asked.rows[:, 0] @ weights).T
    cost += BARRED * ((~pricing.asked.allowed).astype(float) @ weights).T
    columns, output = linear_sum_assignment(cost)
    enough = cost[columns, output].sum() <= pricing.asked.upper[0] + ROUNDING
    return np.asarray(output[where.ravel()]) if enough else named
