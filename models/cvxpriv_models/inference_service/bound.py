"""A certified upper bound of the optimum of inference as a service, and a mechanism that comes near it.

The mechanism is a mixture of columns x_u = P(Y|u) with sum_u q_u x_u = P_Y, worth sum_u q_u g(x_u). For any alpha no
mechanism is worth more than alpha.P_Y + the largest price g(x) - alpha.x of a column. A master problem proposes alpha,
verification by cells of s = P(S|Y) x bounds the price. A floor under p(u|y) or a limit on |U| only lowers the optimum:
the bound is that without them, and holds with them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.blocks.declaration import Known
from cvxpriv.bounds.column_costs import NOT_COUNTED
from cvxpriv.bounds.merged_symbols import information_lost, merge, merged_table
from cvxpriv.bounds.service_certificate import ServiceCertificate
from cvxpriv.constraints.gate import inside, missed, roomiest
from cvxpriv.divergences import FDivergence
from cvxpriv.errors import Disagreement, ModelError, SolverFailure
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.sizes import now
from cvxpriv.tables.information import mutual_information
from cvxpriv.tables.joint import JointTable

from .bound_search import FLOOR, Found
from .certificates import certificate_of, proved
from .constrained_certificates import constrained_certificate, held_under, unstated
from .light_inputs import searched
from .measured import Constraints
from .priced_constraints import PricedConstraints
from .problem import LARGEST_BETA, Problem
from .summed_search import search_summed

#: A bound, its alpha, the groups of S that it merges, and what it is under.
Claim = tuple[float, Array, list[int] | None, Found | None]

#: Largest |S| for which all the time is for cells; beyond it a part is kept for a bound by merged symbols.
CERTIFIED = 4
#: A value up to this is rounding: the trivial mechanism is worth exactly 0.
NOTHING = 1e-14
#: An achieved value may be so far above a bound by rounding.
ROUNDING = 1e-11
#: That part.
MERGED_TIME = 0.4
#: Share of the time for the bound without sums over columns, and its relative gap: where the time is too short for one
#: under sums, that without them is the lower one.
WITHOUT_SUMS_TIME, WITHOUT_SUMS_GAP = 0.3, 1e-3
#: Why sums are left out where the keyboard ended the search.
CUT = "the keyboard ended the search before it was counted"
#: The reason for a gap where no mechanism satisfies the constraints.
UNKNOWN = (
    "not known: no mechanism was found that satisfies the constraints, so that the best one is not known to be worth "
    "anything; the upper bound holds"
)
INTERRUPTED = "not certified to this gap: the keyboard ended the search; the bound holds"


@dataclass(frozen=True, eq=False)
class ServiceBound:
    """The certified bounds of the optimum, from both sides.

    Attributes
    ----------
    lower : float
        The value I(S;U) - beta E[f] of `mechanism`, computed from it, nats; -inf where no mechanism is known that
        satisfies the constraints.
    upper : float
        No mechanism is worth more, nats.
    mechanism : array, (|Y|, |U|)
        P(U|Y), rows sum to 1; it misses constraints where `lower` is -inf.
    reason : str
        Empty where the gap asked for is reached, else why it is not. The bounds hold in any case.
    proof : ServiceCertificate, callable or None
        The certificate, or what makes it.
    no_certificate : str
        Reason why there is no certificate, where there is none: the checker does not know a constraint of the bound.
    cells : int
        Cells that the verification looked at.
    left_out : mapping of str to str
        Constraints that the bound leaves out, the model's floor and a `size_u` that `mechanism` exceeds among them, and
        why: the bound is that without them, holds with them, and `mechanism` may violate them. `ignored` has their
        names.
    interrupted : bool
        Whether the keyboard ended the search. The bounds hold all the same.
    """

    lower: float
    upper: float
    mechanism: Array
    reason: str
    proof: ServiceCertificate | Callable[[], ServiceCertificate] | None
    cells: int
    left_out: Mapping[str, str] = field(default_factory=dict)
    interrupted: bool = False
    no_certificate: str = ""

    @cached_property
    def certificate(self) -> ServiceCertificate | None:
        """The table, the multipliers and the claim: the bound can be derived from it again without a solver.

        With constraints it holds cells too, which are looked for when it is first asked for; where they would be too
        many for a file, its claim is looser than `upper`. None where `no_certificate` says why.
        """
        return self.proof if self.proof is None or isinstance(self.proof, ServiceCertificate) else self.proof()

    @property
    def ignored(self) -> tuple[str, ...]:
        """The names of constraints that the bound leaves out."""
        return tuple(self.left_out)

    @property
    def gap(self) -> float:
        """Largest distance of `mechanism` below the optimum, in nats."""
        return self.upper - self.lower

    @property
    def certified(self) -> bool:
        """Whether the gap asked for is reached."""
        return not self.reason

    def __repr__(self) -> str:
        state = "certified" if self.certified else self.reason
        return f"ServiceBound(lower={self.lower:.9g}, upper={self.upper:.9g}, {state})"


def bound(
    table: Problem | JointTable | ArrayLike,
    beta: float | None = None,
    divergence: str | FDivergence = "jensen-shannon",
    *,
    gap: float = 1e-6,
    time_limit: float = 60.0,
    constraints: Constraints = (),
) -> ServiceBound:
    """Bound the optimum of IAS (1), max I(S;U) - beta E[f(p(u)/p(u|y))], from both sides.

    `table`: P(S, Y), (|S|, |Y|), the product of P(S|Y) and P(Y); or a problem, which brings beta and the divergence.
    `beta`: The weight of privacy, > 0.
    `gap`: Relative: the bound is divided further while upper - lower exceeds gap * max(lower, 1e-3 nats).
    `time_limit`: Seconds. When they are over, the bound that holds so far is returned.
    `constraints`: Those that are costs of columns (`PricedConstraints`) are part of both bounds; the others are in
    `ServiceBound.left_out`.
    Raises DataError: The table is no joint distribution.
    Raises ModelError: No mechanism satisfies the constraints, or another argument is out of range.

    A keyboard interrupt ends it with the best mechanism so far, and a bound that is looser and holds.

    Examples
    --------
    >>> found = bound([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]], beta=0.2)
    >>> found.certified, round(found.lower, 6), round(found.upper, 6)
    (True, 0.071427, 0.071427)
    """
    if isinstance(table, Problem):
        problem = table
    elif beta is None:
        raise ModelError("beta is missing: pass the weight of privacy, for example beta=0.5")
    else:
        problem = Problem.of(table, beta, divergence)
    for name, number, example in (("gap", gap, 1e-6), ("time_limit", time_limit, 60.0)):
        if not 0.0 < float(number) < np.inf:
            raise ModelError(f"{name}={number!r} is out of range: pass a number > 0, for example {example:g}")
    if problem.beta > LARGEST_BETA:  # leakage is not negative: what is worth nothing at a smaller beta is none at this
        below = bound(replace(problem, beta=LARGEST_BETA), gap=gap, time_limit=time_limit, constraints=constraints)
        if below.certified and below.lower == 0.0:
            return below
    asked = PricedConstraints.of(problem, constraints)
    start = now()
    joint = problem.p_s_given_y * problem.p_y
    joint = joint[joint.sum(axis=1) > 0.0]
    end = start + time_limit
    many = len(joint) > CERTIFIED
    found, asked = _searched(problem, joint, asked, gap, end - MERGED_TIME * time_limit if many else end)
    # I(S;Y) bounds everything: the merging of all symbols of S into one loses that, and leaves the optimum 0.
    whole = (mutual_information(joint), np.zeros(joint.shape[1]), [0] * len(joint), None)
    claims: list[Claim] = [(found.upper, found.alpha, None, found), whole]
    if many and not found.interrupted and found.upper - found.value > gap * max(found.value, FLOOR):
        groups = merge(joint, CERTIFIED)
        few, _ = _searched(problem, merged_table(joint, groups), asked, gap, end)
        claims.append((few.upper + information_lost(joint, groups), few.alpha, groups.tolist(), few))
    best = min(claims, key=lambda claim: claim[0])
    bounded = _answer(problem, found, best, gap, asked, now() - start >= time_limit)
    return replace(bounded, interrupted=True, reason=INTERRUPTED) if found.interrupted else bounded


def unsearched(problem: Problem) -> ServiceBound:
    """Return the bound of a search that the keyboard ended before anything was found."""
    silent = np.ones((problem.p_y.size, 1))
    information = mutual_information(problem.p_s_given_y * problem.p_y)
    return ServiceBound(0.0, information, silent, INTERRUPTED, None, 0, interrupted=True, no_certificate=INTERRUPTED)


def bound_of(certificate: ServiceCertificate, problem: Problem, constraints: Constraints = ()) -> ServiceBound:
    """Return what a stored certificate says of a problem, after a check in floating point with rounding bounded.

    `constraints`: Those of the problem; a certificate states those that it counts.

    Raises DataError: The certificate does not prove its claim, or states a constraint that is none of these.
    """
    counted = held_under(certificate, problem, constraints)
    if not counted:
        proved(certificate, problem)
    lower = float(problem.objective(certificate.mechanism))
    without = tuple((name, NO_CONSTRAINTS) for name, _ in constraints if name not in counted)
    left = _left_out(problem, without, certificate.mechanism)
    return ServiceBound(lower, max(certificate.bound, lower), certificate.mechanism, "", certificate, 0, left)


#: Why a stored certificate leaves constraints out.
NO_CONSTRAINTS = "the certificate that the run keeps is that without it"


def _left_out(problem: Problem, ignored: tuple[tuple[str, str], ...], mechanism: Array) -> dict[str, str]:
    """The constraints that a bound leaves out, with the floor of the problem, and a |U| that it exceeds; and why."""
    left, outputs = dict(ignored), mechanism.shape[1]
    if problem.floor > 0.0:
        left["floor"] = NOT_COUNTED["floor"]
    if problem.size_u < min(outputs, len(problem.p_y)):  # as many outputs as inputs lose nothing
        left["size_u"] = f"its mechanism has {outputs} outputs where {problem.size_u} are allowed"
    return left


def _searched(
    problem: Problem, joint: Array, asked: PricedConstraints, gap: float, deadline: float
) -> tuple[Found, PricedConstraints]:
    """Return the search that fits the request; where none under sums over columns ends, that without them.

    Its mechanism satisfies all that is asked; where none is known that does, its value is -inf.

    Raises ModelError: No mechanism satisfies the constraints.
    """
    if not asked.summed:
        return _kept(problem, searched(problem, joint, asked, gap, deadline), asked), asked
    apart, begun = asked.without_sums(problem), now()
    soon = begun + WITHOUT_SUMS_TIME * max(deadline - begun, 0.0)
    free = _kept(problem, searched(problem, joint, apart, max(gap, WITHOUT_SUMS_GAP), soon), apart)
    try:
        if free.interrupted:
            raise KeyboardInterrupt
        summed = _under(problem, search_summed(problem, joint, asked, gap, deadline), asked)
    except KeyboardInterrupt:
        return _under(problem, free._replace(interrupted=True), asked), asked.without_sums(problem, CUT)
    except SolverFailure as failure:
        apart = asked.without_sums(problem, f"the search with it failed: {failure}")
        return _under(problem, _kept(problem, searched(problem, joint, apart, gap, deadline), apart), asked), apart
    if free.upper < summed.upper:
        summed = summed._replace(upper=free.upper, alpha=free.alpha, asked=apart, mu=np.zeros(0))
    return summed, asked


def _under(problem: Problem, found: Found, asked: PricedConstraints) -> Found:
    """Return a search with a mechanism that satisfies all that is asked; where none is known, with the value -inf."""
    known, mechanism, shape = Known.of_table(problem.table), found.mechanism, (len(problem.p_y), problem.size_u)
    if asked.named and mechanism.shape != shape:
        mechanism = roomiest(shape, asked.counted, known)
    mechanism = inside(mechanism, asked.counted, known)
    if missed(mechanism, asked.counted, known):
        if asked.named:
            return found._replace(mechanism=mechanism, value=-np.inf)
        mechanism = np.ones((len(problem.p_y), 1))  # it says nothing, and misses rules by rounding alone
    return found._replace(mechanism=mechanism, value=float(problem.objective(mechanism)))


def _kept(problem: Problem, found: Found, asked: PricedConstraints) -> Found:
    """Return a search whose mechanism satisfies what is counted, of columns that are all alike."""
    mechanism = found.mechanism
    if asked.counted:
        mechanism = inside(mechanism, asked.counted, Known.of_table(problem.table))
    return found._replace(mechanism=mechanism, value=float(problem.objective(mechanism)), asked=asked)


def _answer(
    problem: Problem, found: Found, claim: Claim, gap: float, asked: PricedConstraints, late: bool
) -> ServiceBound:
    upper, alpha, groups, under = claim
    kept, mechanism = bool(np.isfinite(found.value)), found.mechanism
    lower = float(problem.objective(mechanism)) if kept else -np.inf
    if lower <= NOTHING + np.finfo(float).eps * problem.beta and kept and not asked.named:
        lower, mechanism = 0.0, np.ones((problem.p_y.size, 1))
    if upper < lower - ROUNDING * (1.0 + abs(lower)) - np.finfo(float).eps * problem.beta:
        raise Disagreement(
            f"a mechanism is worth {lower!r} nats, above the bound {upper!r}: f of divergence "
            f"{problem.divergence.name!r} is not convex, or its derivative is not that of f"
        )
    upper, allowed = max(upper, lower), gap * max(lower, FLOOR)
    reason = "" if upper - lower <= allowed else _reason(len(problem.p_s), late, groups, asked) if kept else UNKNOWN
    proof: ServiceCertificate | Callable[[], ServiceCertificate] | None = None
    missing, claimed = "", max(upper, lower + allowed)  # the gap asked for and no less leaves its checker room
    if under is None or under.asked is None or under.asked.none:
        proof = certificate_of(problem, alpha, claimed, mechanism, _rows(problem, groups), allowed)
    elif not (missing := unstated(problem, under.asked)):
        held = (problem, under.asked, alpha, under.mu, claimed, mechanism, _rows(problem, groups), allowed)
        proof = partial(constrained_certificate, *held)
    left = _left_out(problem, asked.ignored, mechanism)
    return ServiceBound(lower, upper, mechanism, reason, proof, found.cells, left, no_certificate=missing)


def _rows(problem: Problem, groups: list[int] | None) -> list[int] | None:
    """The group of every symbol of S; those without mass, which were left out, join the first one."""
    if groups is None:
        return None
    left = iter(groups)
    return [next(left) if mass else 0 for mass in problem.p_s.tolist()]


def _reason(symbols: int, late: bool, groups: list[int] | None, asked: PricedConstraints) -> str:
    """Return the reason why the requested gap is not reached."""
    if symbols > CERTIFIED and groups is not None and max(groups) > 0:
        return (
            f"not certified to this gap: S has {symbols} symbols, for which the time was too short; the bound is that "
            f"of {CERTIFIED} merged symbols plus the information that the merging loses"
        )
    if groups is not None:
        ended = "in this time" if late else "before the search ended"
        return f"not certified: {ended} nothing better than I(S;Y) was proved; raise time_limit or gap"
    if late:
        return "not certified to this gap: the time is over; the bound holds; raise time_limit or gap"
    if asked.named:
        return (
            "not certified to this gap: outputs have names, and the bound, which holds, is that of a relaxation in "
            "which each may be several outputs; the gap may be that relaxation's, which no time closes"
        )
    return "not certified to this gap: the search for better multipliers ended; the bound holds; raise gap"
