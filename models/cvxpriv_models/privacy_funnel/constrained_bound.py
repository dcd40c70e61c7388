"""The least leakage at a rate under constraints, bounded from below; and the most that they let Y tell of X."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cvxpriv.blocks.declaration import Constraint, Known
from cvxpriv.bounds.certificate import Certificate, ConstrainedCertificate, CostedCertificate
from cvxpriv.bounds.check_certificate import SHORT
from cvxpriv.bounds.columns import INTERRUPTED, Generation
from cvxpriv.constraints.gate import brought_inside, missed
from cvxpriv.errors import ModelError, SolverFailure
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.sizes import now

from .algorithm import most_telling as most_telling_block
from .bound import CLAIM_SHARE, LEAST_CLAIM_ROOM, Clock, FunnelBound, bound
from .column_constraints import ColumnConstraints
from .constrained_mechanism import ROOM, ROUNDING, carrying, climbed, of_columns, of_costed_columns, repaired
from .constrained_pricing import ConstrainedPricing, most_telling, most_told
from .costed_certificates import NO_ROOM, costed_certificate, stated_by
from .costed_pricing import LARGEST_X, CostedPricing, Costs
from .pricing import FunnelPricing
from .problem import Problem

#: The same of a mechanism's own utility below the rate, by the order in which it is added up.
SHORT_OF = 1e-13
#: Share of the time for the bound without constraints, where it is asked too.
PLAIN_SHARE = 0.3
#: Seconds for that bound, at most, once the keyboard has ended the search with constraints.
AFTER_INTERRUPT = 1.0
#: Why the two ends do not meet where no mechanism is at hand.
UNKNOWN = "no mechanism was found that satisfies the constraints and carries the rate"
#: The same where one was found by local search, which may leave more than the gap.
LOCAL = "its mechanism was found by local search, and a better one may be missing"
#: Mass below which a symbol's part in a column is lost to rounding: its row is P(Y), inside what keeps the other rows.
RARE = 1e-9
#: Share of the time for the bound that has a certificate, where further constraints are costs of columns.
CERTIFIED_SHARE = 0.3
#: Gaps of the first searches, which look for a mechanism that satisfies the constraints, and the mass that may lack.
FIRST_GAPS, FILLED = (1e-2, 1e-4), 1e-9
#: Nats by which one more proof has to lower the most that can be told, to be followed by another.
MOST_TOLD = 1e-6
#: Cost of what lacks, and gap of a search, where the most that can be told is sought: both in nats, of which a rate's
#: unit costs so many.
HIGH_FILL, HIGH_GAP = 1e3, 0.02


@dataclass(frozen=True)
class ConstrainedBound:
    """The bounds under the constraints that the bound can count.

    `found`: The bounds, with the columns of the lower one as mechanism. Where outputs are alike it satisfies the
    constraints that are counted and carries the rate; where they have names, those of one name are merged, in their
    place, and it may not.
    `most`: Nats: no mechanism that satisfies the constraints tells more of X.
    `named`: Whether outputs have names, of each of which the bound then allows several; or the mechanism misses a
    constraint.
    """

    found: FunnelBound
    most: float
    named: bool

    def fits(self, size_y: int) -> bool:
        """Whether the mechanism is one on |Y| outputs that satisfies all constraints."""
        return not self.named and not self.found.ignored and self.found.mechanism.shape[1] <= size_y


def bound_under(
    problem: Problem, constraints: Sequence[tuple[str, Constraint]], gap: float, time_limit: float
) -> tuple[FunnelBound, ConstrainedBound | None]:
    """Bound the least leakage, with the constraints that can be counted; beside it what these leave.

    `upper` and `mechanism` are those of the constrained bound where all outputs are alike, else those without
    constraints. Where the time or a keyboard interrupt ends the search before the constraints raise the bound, it is
    that without them.

    Raises ModelError: The constraints let no mechanism carry the rate; or as for `bound`.
    """
    found, under = _bound_under(problem, constraints, gap, time_limit)
    mechanism = climbed(problem, constraints, found.mechanism) if found.reason == UNKNOWN else None
    if mechanism is None or not _satisfies(mechanism, problem, constraints):
        return found, under
    upper = max(problem.leakage(mechanism), found.lower)
    certificate = None if found.certificate is None else replace(found.certificate, mechanism=mechanism)
    reason = LOCAL if upper - found.lower > gap else ""
    return replace(found, mechanism=mechanism, upper=upper, reason=reason, certificate=certificate), under


def _bound_under(
    problem: Problem, constraints: Sequence[tuple[str, Constraint]], gap: float, time_limit: float
) -> tuple[FunnelBound, ConstrainedBound | None]:
    begun, counted = now(), set(ColumnConstraints.of(problem, constraints).counted)
    asked = Costs.of(problem, constraints)
    more = len(problem.p_x) <= LARGEST_X and not counted >= set(asked.counted)
    found, under = _by_generators(problem, constraints, gap, CERTIFIED_SHARE * time_limit if more else time_limit)
    if found.reason == INTERRUPTED:
        return found, under
    left = begun + time_limit - now()
    searched = _costed(problem, constraints, asked, found, gap, left) if more else None
    if searched is None:
        counted |= set(asked.counted if more else ())
        return _with_a_mechanism(problem, constraints, counted, found), under
    costed, mechanism, prove = searched
    those = [(name, one) for name, one in constraints if name in asked.counted]
    moved = None if mechanism is None else brought_inside(mechanism, those, Known.of_table(problem.table))
    known = moved is not None and _satisfies(moved, problem, those)
    if moved is not None and known:
        costed = replace(costed, mechanism=moved, upper=max(problem.leakage(moved), costed.lower))
    else:
        _require_satisfiable(problem, constraints)
        costed = replace(costed, upper=problem.table.information, mechanism=found.mechanism, reason=UNKNOWN)
    costed = _certified(problem, asked, costed, prove, gap)
    most = np.inf if under is None else under.most
    return replace(costed, seconds=now() - begun), ConstrainedBound(costed, most, not known)


def _with_a_mechanism(
    problem: Problem, constraints: Sequence[tuple[str, Constraint]], countable: set[str], found: FunnelBound
) -> FunnelBound:
    """The bound; where its mechanism misses what could be counted, it is said that none is known that does not.

    Raises ModelError: No mechanism satisfies the constraints.
    """
    if not found.ignored and found.reason != UNKNOWN:
        return found
    _require_satisfiable(problem, constraints)
    left = [(name, one) for name, one in constraints if name in countable and name in found.ignored]
    if not left or (found.mechanism.shape[1] == problem.size_y and _satisfies(found.mechanism, problem, left)):
        return found
    return replace(found, upper=max(problem.table.information, found.lower), reason=UNKNOWN)


def _require_satisfiable(problem: Problem, constraints: Sequence[tuple[str, Constraint]]) -> None:
    """Raise ModelError where the constraints cannot hold together, with their amounts."""
    silent = np.tile(problem.p_x[:, None], (1, problem.size_y))  # all P(x|y) are P(x)
    with suppress(SolverFailure):
        most_telling_block(problem).constrained(constraints).solve({"log_w": np.log(silent)})


def _costed(
    problem: Problem,
    constraints: Sequence[tuple[str, Constraint]],
    asked: Costs,
    found: FunnelBound,
    gap: float,
    time_limit: float,
) -> tuple[FunnelBound, Array | None, Callable[[Array], CostedCertificate]] | None:
    """A bound with all constraints that are costs of columns, with the certificate of another one; None for no search.

    Beside it its mechanism, None where columns did not suffice for one, and what makes its own certificate, with a
    mechanism.

    Raises ModelError: They let no mechanism carry the rate.
    """
    clock, known = Clock(time_limit), most_told(problem, constraints)[0]
    if problem.rate > known + ROUNDING:
        raise _refused(asked.counted, problem, known)
    pricing = CostedPricing(FunnelPricing(problem.table.probabilities, problem.rate + ROOM), asked)
    generation, shown, lacking = Generation(pricing, pricing.master(), pricing.first_columns()), None, True
    try:
        for first in FIRST_GAPS:
            shown = generation.run(first, clock.over, -np.inf, pricing.plain.entropy_s)
            lacking = bool(shown.weights[shown.columns[0] < 0.0].sum() > FILLED)
            if not lacking or shown.bound > pricing.plain.entropy_s:
                break
        if not lacking:
            generation.drop(generation.pool.taken(slice(None))[0] < 0.0)
            shown = generation.run(gap, clock.over, -np.inf, pricing.plain.entropy_s)
    except SolverFailure:
        if shown is None:
            return None
    if lacking and 0.0 <= (most := min(_most(pricing, clock), known)) < problem.rate - ROUNDING:
        raise _refused(asked.counted, problem, most)
    assert shown is not None  # without a first run there was a failure
    proved = shown.bound - pricing.plain.split_all(shown.duals)[0] * ROOM
    pricing.plain.rate = problem.rate

    def prove(mechanism: Array) -> CostedCertificate:
        over = Clock(max(time_limit - clock.seconds, CERTIFIED_SHARE * time_limit)).over
        level = proved - pricing.bound(shown.duals, 0.0)
        return costed_certificate(problem, pricing, shown.duals, level, mechanism, over)

    costed = replace(
        found,
        lower=max(min(proved, pricing.plain.entropy_s), found.lower),
        reason=shown.reason,
        counted=asked.counted,
        ignored=asked.ignored,
        uncertified={name: NO_ROOM for name in asked.counted if name not in found.counted},
    )
    if lacking:
        return costed, None, prove
    made = partial(of_costed_columns, problem, pricing)
    return costed, carrying(problem, pricing, generation, made, made(shown.columns, shown.weights)), prove


def _certified(
    problem: Problem, asked: Costs, found: FunnelBound, prove: Callable[[Array], CostedCertificate], gap: float
) -> FunnelBound:
    """The bound with its own certificate; where that cannot be made, or proves less, with the reason."""
    reasons = {name: why for name, why in stated_by(problem, asked).items() if isinstance(why, str)}
    if reasons:
        beside = "it is counted together with " + "; ".join(f"{name}: {why}" for name, why in reasons.items())
        return replace(found, uncertified={name: reasons.get(name, beside) for name in found.uncertified})
    try:
        made = prove(found.mechanism) if found.reason != INTERRUPTED else None
    except KeyboardInterrupt:
        return replace(found, reason=INTERRUPTED)
    except ValueError as refusal:  # a number is beyond what the checker takes
        return replace(found, uncertified=dict.fromkeys(found.uncertified, f"the checker refuses it: {refusal}"))
    if made is None or made.bound < found.certificate.bound - gap:
        return found
    lower, loose = max(found.lower, made.bound), made.bound < found.lower - gap
    if found.upper - made.bound <= gap:  # the certificate's own bound is near enough
        lower = made.bound
    uncertified = dict.fromkeys(asked.counted, NO_ROOM) if loose else {}
    return replace(found, lower=lower, upper=max(found.upper, lower), certificate=made, uncertified=uncertified)


def _most(pricing: CostedPricing, clock: Clock) -> float:
    """The most that can be told of X, in nats, from proofs that higher rates cannot; negative where none can.

    The bound is a line in the rate, with slope lam, and no mechanism leaks more than H(S): the rate where the line is
    there is not exceeded, and is tried next.
    """
    pricing = replace(pricing, fill=HIGH_FILL)
    generation, plain = Generation(pricing, pricing.master(), pricing.first_columns()), pricing.plain
    while True:
        try:
            shown = generation.run(HIGH_GAP, clock.over, -np.inf, plain.entropy_s)
        except (SolverFailure, np.linalg.LinAlgError):  # of a step that a high cost leaves without curvature
            return plain.rate
        lam, excess = pricing.plain.split_all(shown.duals)[0], shown.bound - plain.entropy_s
        plain.rate -= max(excess, 0.0) / lam if lam > 0.0 else np.inf
        if plain.rate < 0.0 or excess <= MOST_TOLD * lam or clock.over():
            return plain.rate
        generation.master.set_row(len(plain.p_x), -np.inf, plain.entropy_x - plain.rate)


def _refused(names: Sequence[str], problem: Problem, most: float) -> ModelError:
    return ModelError(
        f"constraints {', '.join(names)}: no mechanism that satisfies them tells rate={problem.rate:.6g} nats of X: "
        f"I(X;Y) is at most {max(most, 0.0):.6g}; lower rate, or relax a constraint"
    )


def _by_generators(
    problem: Problem, constraints: Sequence[tuple[str, Constraint]], gap: float, time_limit: float
) -> tuple[FunnelBound, ConstrainedBound | None]:
    """The bound with the constraints that have generators, which a certificate can state."""
    begun = now()
    try:
        under = constrained_bound(problem, constraints, gap, (1.0 - PLAIN_SHARE) * time_limit)
        interrupted = under is not None and under.found.reason == INTERRUPTED
    except KeyboardInterrupt:
        under, interrupted = None, True
    if under is not None and not (under.named or under.found.reason):
        return under.found, under
    left = PLAIN_SHARE * time_limit
    plain = bound(problem.table, problem.rate, gap, min(left, AFTER_INTERRUPT) if interrupted else left)
    if interrupted:
        plain = replace(plain, reason=INTERRUPTED)
    every = tuple(name for name, _ in constraints)
    if under is None or interrupted:
        return replace(plain, ignored=every), under
    lower, found = max(plain.lower, under.found.lower), replace(under.found, seconds=now() - begun)
    if under.found.lower < plain.lower - gap:
        found = replace(found, certificate=plain.certificate, counted=(), ignored=every)
    if under.named and not _satisfies(under.found.mechanism, problem, constraints):
        found = replace(found, upper=problem.table.information, mechanism=plain.mechanism, reason=UNKNOWN)
    return replace(found, lower=lower, upper=max(found.upper, lower)), under


def _satisfies(mechanism: Array, problem: Problem, constraints: Sequence[tuple[str, Constraint]]) -> bool:
    told = problem.utility(mechanism) >= problem.rate - SHORT_OF
    return told and not missed(mechanism, constraints, Known.of_table(problem.table))


def constrained_bound(
    problem: Problem, constraints: Sequence[tuple[str, Constraint]], gap: float, time_limit: float
) -> ConstrainedBound | None:
    """Bound the least leakage under constraints; None where none of them can be counted.

    Raises ModelError: The constraints let no mechanism carry the rate.
    """
    clock = Clock(time_limit)
    asked = ColumnConstraints.of(problem, constraints)
    pricing = ConstrainedPricing(FunnelPricing(problem.table.probabilities, problem.rate), asked)
    if not asked.counted or not pricing.certifiable:
        return None
    if (telling := most_telling(pricing)) is None:  # what is wrong is said by the constraints themselves
        return None
    most = telling[0]
    if problem.rate > most + ROUNDING:
        raise _refused(asked.counted, problem, most)
    pricing.plain.rate = min(problem.rate + ROOM, most)
    generation = Generation(pricing, pricing.master(), pricing.first_columns())
    try:
        found = generation.run(gap, clock.over, 0.0, pricing.plain.entropy_s)
    except SolverFailure:  # at the most that can be told, rounding decides whether there is a point
        return None
    lam, nu, mu = pricing.plain.split_all(found.duals)
    lower = max(found.bound - lam * max(pricing.plain.rate - problem.rate, 0.0), 0.0)
    pricing.plain.rate = problem.rate
    claim = min(lower, pricing.bound(found.duals, 0.0) - max(CLAIM_SHARE * gap, LEAST_CLAIM_ROOM))
    made = partial(of_columns, problem, pricing)
    mechanism = carrying(problem, pricing, generation, made, made(found.columns, found.weights))
    if not asked.outputs:
        mechanism = np.where(problem.p_x[:, None] < RARE, problem.p_x @ mechanism, mechanism)
    those = [(name, one) for name, one in constraints if name in asked.counted]
    if asked.outputs:
        mechanism = brought_inside(mechanism, those, Known.of_table(problem.table))
    else:
        mechanism = repaired(mechanism, telling[1], problem, those)
    kept = bool(asked.outputs) or _satisfies(mechanism, problem, those)
    plain = Certificate.of(problem.table.probabilities, problem.rate, nu, lam, max(claim, 0.0), mechanism)
    proof = ConstrainedCertificate.under(plain, mu=np.round(mu * SHORT) / SHORT, constraints=asked.stated)
    upper = max(problem.leakage(mechanism) if kept else problem.table.information, lower)
    ends = FunnelBound(lower, upper, mechanism, proof, problem.rate, clock.seconds, found.reason if kept else UNKNOWN)
    ends = replace(ends, counted=asked.counted, ignored=asked.ignored)
    return ConstrainedBound(ends, most, bool(asked.outputs) or not kept)
