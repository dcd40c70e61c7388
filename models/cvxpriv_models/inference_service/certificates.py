"""Certificates of bounds: how one is made, and how a stored one is checked again in fractions of a second.

The exact check of `cvxpriv.bounds.check_service_certificate` takes seconds; here the same cells are looked at in
floating point, with rounding bounded, which suits a run that is loaded.
"""

from dataclasses import replace

import numpy as np

from cvxpriv.bounds.any_conjugate import conjugate_of
from cvxpriv.bounds.conjugates import Conjugate, closed_form
from cvxpriv.bounds.merged_symbols import information_lost, merged_table
from cvxpriv.bounds.service_certificate import KNOWN, ServiceCertificate
from cvxpriv.certify.cases import case_of_block
from cvxpriv.certify.problem_checks import capable
from cvxpriv.divergences import FDivergence
from cvxpriv.errors import DataError
from cvxpriv.kkt.conic.solving import solve_conic
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.sizes import now
from cvxpriv.solvers.registry import among_installed, solver_spec

from . import kkt, measures
from .bound_search import above
from .cells_of_s import verify
from .joint import CERTIFIED, exact_maximiser, joint
from .measured import Constraints
from .priced_constraints import PricedConstraints, pricing_of
from .problem import Problem

#: Share of the gap that chords between points of the conjugate may cost; the most points of a file.
CHORD_SHARE, MOST_POINTS = 0.1, 20_000
#: Room that the checker may need beyond floats: alpha is rounded to 2^-44, the first cell's corners to 2^-24; and for
#: each unit of beta, as it knows H* to 2^-51 or so.
ROOM, ROOM_OF_BETA = 1e-12, 4e-15
#: Share of the largest loss from which on an interval between points is halved.
WORST = 0.1
#: The first points of the conjugate are those at so many ratios r from this one up.
FIRST_POINTS, LEAST_RATIO = 80, 1e-9
#: Points nearer than this, in t, are one.
CLOSE = 1e-10
#: Seconds for the check of a stored certificate.
TIME_LIMIT = 60.0


def certificate_of(
    problem: Problem, alpha: Array, claim: float, mechanism: Array, groups: list[int] | None, gap: float
) -> ServiceCertificate:
    """Make the certificate of a claim.

    `alpha`: (|Y|,).
    `claim`: Nats; the claim of the certificate is higher by what the checker may lose.
    `mechanism`: (|Y|, |U|).
    `groups`: Group of each symbol of S, where some are merged.
    `gap`: Nats: what the claim may be above the optimum, of which chords of an f that the checker does not know take a
    part.
    """
    joint = problem.p_s_given_y * problem.p_y
    divergence, points = problem.divergence, None
    if divergence.name not in KNOWN or closed_form(divergence) is None:
        largest = 1.0 / float(problem.p_y.min())
        price = problem.beta * _weight_of(mechanism, problem)
        points, lost = conjugate_points(divergence, largest, 0.5 * CHORD_SHARE * gap / price)
        claim += lost * price
        if not alpha.any():  # I(S;Y), which no search found with these points
            claim += problem.beta * max(float(np.interp(0.0, points[:, 0], points[:, 1])), 0.0)
    return ServiceCertificate.of(
        joint,
        problem.beta,
        (divergence.name, divergence.formula),
        alpha,
        claim + ROOM + ROOM_OF_BETA * problem.beta,
        mechanism,
        None if groups is None else tuple(groups),
        points,
    )


def conjugate_points(divergence: FDivergence, largest: float, error: float) -> tuple[Array, float]:
    """Return points (t, h), (k, 2), t rising, with H*(t) <= h, and by what factor of `_weights` chords lie above H*.

    `largest`: The largest ratio r = p(y|u)/p(y).
    `error`: The factor to reach halfway between points; with `MOST_POINTS` points it may be larger.
    """
    conjugate = conjugate_of(divergence, largest)
    r = np.unique(np.concatenate([np.geomspace(LEAST_RATIO, largest, FIRST_POINTS), [1.0, largest]]))
    t = np.unique(_slopes(conjugate, r))
    h = conjugate.value(t)
    while True:
        middle = (t[1:] + t[:-1]) / 2.0
        value = conjugate.value(middle)
        loss = ((h[1:] + h[:-1]) / 2.0 - value) / _weights(conjugate.response(middle)[0], value)
        wide = (loss > max(error, WORST * float(loss.max()))) & (middle > t[:-1]) & (middle < t[1:])
        if not wide.any() or len(t) >= MOST_POINTS:
            break
        order = np.argsort(t := np.append(t, middle[wide]), kind="stable")
        t, h = t[order], np.append(h, value[wide])[order]
    kept = np.append(True, np.diff(t) > CLOSE)
    t, h = t[kept], h[kept]
    t, h = np.append(t, t[-1] + 1.0), np.append(h, h[-1] + largest)  # from the largest r on H* is straight
    # H* never falls; rounding may make its values fall. What a convex function loses is at most twice that halfway.
    return np.column_stack([t, np.maximum.accumulate(h)]), 2.0 * float(loss.max())


def _weights(r: Array, h: Array) -> Array:
    """Return what chords may lose for each unit of error where H* is h and its slope r: no good column has a large h.

    Weighted by p(y), the first part is 1 for a column.
    """
    return np.asarray((1.0 + r) / 2.0 + h**2)


def _weight_of(mechanism: Array, problem: Problem) -> float:
    """The largest such weight of a mechanism's columns."""
    conjugate = conjugate_of(problem.divergence, 1.0 / float(problem.p_y.min()))
    joint = problem.p_y[:, None] * mechanism
    used = joint[:, joint.sum(axis=0) > 0.0]
    r = np.maximum(used / used.sum(axis=0) / problem.p_y[:, None], LEAST_RATIO)
    return float((problem.p_y @ _weights(r, r * conjugate.slope(r) - conjugate.price(r))).max())


def _slopes(conjugate: Conjugate, r: Array) -> Array:
    """H' at ratios r, and both ends where straight pieces begin and end."""
    found = conjugate.slope(r)
    return found if conjugate.ends is None else np.append(found, conjugate.ends)


def proved(certificate: ServiceCertificate, problem: Problem) -> None:
    """Check a stored certificate in floating point, with rounding bounded.

    Raises DataError: It does not prove its claim for this problem.
    """
    joint = problem.p_s_given_y * problem.p_y
    pairs = (("beta", certificate.beta, problem.beta), ("f", certificate.divergence, problem.divergence.name))
    for name, held, expected in pairs:
        if held != expected and not (
            name == "beta" and certificate.beta < problem.beta
        ):  # a bound at less holds at more
            raise DataError(f"the certificate does not prove a bound of this run: its {name} is {held}, not {expected}")
    lost = 0.0
    if certificate.groups is not None:
        groups = np.unique(certificate.groups, return_inverse=True)[1]
        if groups.shape != (len(joint),):
            raise DataError(f"the certificate does not prove its bound: groups has {groups.size} entries")
        lost, joint = information_lost(joint, groups), merged_table(joint, groups)
    joint = joint[joint.sum(axis=1) > 0.0]
    if certificate.alpha.shape != problem.p_y.shape:
        raise DataError(f"the certificate does not prove its bound: alpha has shape {certificate.alpha.shape}")
    pricing = pricing_of(replace(problem, beta=certificate.beta), joint, PricedConstraints())
    room = certificate.bound - lost - float(certificate.alpha @ problem.p_y)
    shown = verify(pricing, certificate.alpha, room - ROOM / 2.0, now() + TIME_LIMIT)
    if above(pricing, certificate.alpha, shown) + lost > certificate.bound:
        raise DataError(
            f"the certificate does not prove its bound of {certificate.bound:.9g}: columns may be worth "
            f"{shown.bound:.3g} nats more than alpha says, and the bound leaves {room:.3g}"
        )


#: Whose duals are asked for a bound, in this order: at exponential cones those of ECOS can be repaired most often.
ASKED = among_installed("ECOS", "CLARABEL", "SCS")


def local_gap(problem: Problem, state: Values, constraints: Constraints = ()) -> float:
    """Return an upper bound of F* - F of (10) at a state's mechanism and posterior.

    Without constraints the bound comes from tangents of F (`kkt.joint_gap`), or, where that is loose because a solver's
    point has inaccurate derivatives, from the certified maximum of F. With constraints it is the best bound that a
    solver's dual, made exactly feasible, certifies; where no solver's dual can be, that without constraints, which
    holds and is loose.

    `state`: The state of one start.
    """
    tangents = float(kkt.joint_gap(problem, state["mechanism"][None], state["posterior"][None])[0])
    if not constraints:
        return tangents if tangents <= CERTIFIED else min(tangents, _to_maximum(problem, state))
    case = case_of_block(joint(problem).constrained(constraints), state)
    stated = case.declare().problem
    least = tangents
    for name in capable(stated, ASKED)[0]:  # the dual of a solver that fails may be feasible, and far from the best
        solution = solve_conic(stated, name, solver_spec(name).full_options(None, {}))
        bound = solution.lower_bound.value
        if bound is not None:
            least = min(least, float(solution.program.user_value(bound) - problem.objective(state["mechanism"])))
        if least <= CERTIFIED:
            break
    return least


def _to_maximum(problem: Problem, state: Values) -> float:
    """Return how far F of (10) is below its maximum, by the exact update; infinite where there is none."""
    maximise = exact_maximiser(problem)
    if maximise is None:
        return float("inf")
    best, gap = maximise(state["posterior"][None])
    values = [
        measures.surrogate(one, state["posterior"], problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)
        for one in (best[0], state["mechanism"])
    ]
    return float(values[0] + gap[0] - values[1])
