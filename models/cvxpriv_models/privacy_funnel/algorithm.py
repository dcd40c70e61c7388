"""PF Algorithm 1, alternating expectation minimisation (AEM), and its relatives, as schedules.

=========  ======================  ===================================================
method     blocks of one pass      what it is
=========  ======================  ===================================================
aem        u, r, w, q              the paper's Algorithm 1, from the q of the start
merged     q, (u, r), w            u and r solved for together
ccp        (q, u, r), w            the convex-concave procedure: one convex problem
=========  ======================  ===================================================
"""

from collections.abc import Callable, Mapping

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Constraint
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.sizes import late
from cvxpriv.schedules.history import Below
from cvxpriv.schedules.steps import Accelerator, Invariant, Loop, Measure, Sweep

from . import accelerated, closed_form, kkt, multiplier
from .active_set import newton_on_the_face
from .blocks import expectation, marginal, mechanism, posterior
from .larger_blocks import convex_concave, mechanism_and_marginal, most_telling
from .problem import Problem

#: Default of the largest number of passes per start.
MAX_ITER = 500
#: The name under which the loop stands in a run's history.
LOOP = "pass"
PHASE_ONE = "phase one"

#: Distance below the rate allowed for a start with constraints: a solver's accuracy.
REACHED = 1e-9

Constraints = tuple[tuple[str, Constraint], ...]


def alternating_expectation_minimisation(problem: Problem, constraints: Constraints = ()) -> Sweep:
    """One pass of PF Algorithm 1."""
    u = _constrained(mechanism, problem, constraints)  # and lambda, the root of G
    r = marginal(problem)
    w = posterior(problem)
    q = expectation(
        problem
    )  # the paper's first block: initial_state solves it at the start, so the sequence is the same

    def fused(state: Values) -> Values:
        return closed_form.iteration(dict(state), problem.p_x, problem.p_s_given_x, problem.target)

    return Sweep([u, r, w, q], fused=fused, invariants=invariants(problem))


def merged(problem: Problem, constraints: Constraints = ()) -> Sweep:
    """One pass with u and r in one block."""
    return Sweep([expectation(problem), _constrained(mechanism_and_marginal, problem, constraints), posterior(problem)])


def convex_concave_procedure(problem: Problem, constraints: Constraints = ()) -> Sweep:
    """One pass of the convex-concave procedure: only the rate constraint is replaced by its tangent."""
    return Sweep([_constrained(convex_concave, problem, constraints), posterior(problem)])


METHODS: Mapping[str, Callable[[Problem, Constraints], Sweep]] = {
    "aem": alternating_expectation_minimisation,
    "merged": merged,
    "ccp": convex_concave_procedure,
}


def schedule(
    problem: Problem, method: str, accelerate: str, tol: float, limit: int, constraints: Constraints = ()
) -> Loop:
    """Return the whole algorithm: passes until the KKT residual of PF (1) is at most `tol` nats."""
    return Loop(
        METHODS[method](problem, constraints),
        stop=Below("kkt", tol),
        limit=limit,
        measure=measure(problem, constraints),
        accelerate=_acceleration(problem, method, accelerate, constraints),
        name=LOOP,
    )


def phase_one(problem: Problem, constraints: Constraints, limit: int = 100) -> Loop:
    """Return the passes that lead a start into a user's constraints at the rate: I(X;Y) climbs until it is R."""
    climb = most_telling(problem).constrained(constraints)
    return Loop(
        Sweep([climb, posterior(problem)]),
        stop=Below("missing", REACHED),
        limit=limit,
        measure=lambda state: {"missing": problem.rate - closed_form.utility(state["log_u"])},
        name=PHASE_ONE,
    )


def blocks(problem: Problem, constraints: Constraints = ()) -> dict[str, Block]:
    """Return the model's blocks by name; those that design the mechanism carry the constraints."""
    u, u_r, q_u_r = (
        _constrained(make, problem, constraints) for make in (mechanism, mechanism_and_marginal, convex_concave)
    )
    every = (expectation(problem), u, marginal(problem), posterior(problem), u_r, q_u_r)
    return {block.name: block for block in every}


def measure(problem: Problem, constraints: Constraints = ()) -> Measure:
    """Return the figures of a state: objective I(S;Y), utility I(X;Y), and the KKT residual, in nats, per start.

    Under constraints a residual can take a second: once time is over it is inf, not measured.
    """
    own = residuals_under(problem, constraints) if constraints else None

    def figures(state: Values) -> dict[str, Array]:
        if own is None:
            residual = residuals_of(problem, state["log_u"], state["lam"]).largest
        else:
            residual = np.full(len(state["log_u"]), np.inf) if late() else own(state)
        return {
            "objective": closed_form.leakage(state["log_u"], problem.p_s_given_x),
            "utility": closed_form.utility(state["log_u"]),
            "kkt": residual,
        }

    return figures


def residuals_under(problem: Problem, constraints: Constraints) -> Callable[[Values], Array]:
    """Return what gives the KKT residual of each start under constraints."""
    return _constrained(convex_concave, problem, constraints).own_residuals


def residuals_of(problem: Problem, log_u: Array, lam: Array | None = None) -> kkt.FunnelResiduals:
    """Return the residuals of mechanisms, (starts, |X|, |Y|), at the multipliers that make them least if not given."""
    return kkt.residuals(log_u, problem.p_x, problem.p_s_given_x, problem.target, lam)


def final_residuals(problem: Problem, log_u: Array, lam: Array, tol: float) -> kkt.FunnelResiduals:
    """Return each start's residuals at its own multiplier, or at the best one where its own leaves more than `tol`."""
    own = residuals_of(problem, log_u, lam)
    return own if (met := own.largest <= tol).all() else residuals_of(problem, log_u, np.where(met, own.lam, np.nan))


def invariants(problem: Problem) -> tuple[Invariant, ...]:
    """Return what holds at every pass of Algorithm 1 from a feasible point; `checked` asserts it."""

    def rise(before: Values, after: Values) -> Array:
        return -closed_form.descent(dict(before), dict(after), problem.target).drop

    def imbalance(before: Values, after: Values) -> Array:
        both = closed_form.descent(dict(before), dict(after), problem.target)
        return np.abs(both.drop - both.explained)

    def fall_of_g(before: Values, after: Values) -> Array:
        base = before["phi"] + before["log_r"][:, None, :]
        gaps = [
            multiplier.constraint_gap(base, before["log_w"], factor * after["lam"], problem.p_x, problem.target)[0]
            for factor in (0.0, 0.5, 1.0, 2.0)
        ]
        return np.asarray(-np.diff(gaps, axis=0).min(axis=0))

    def violation(before: Values, after: Values) -> Array:
        u = np.exp(after["log_u"])
        rows = np.abs(u.sum(axis=2) - problem.p_x).max(axis=1)
        missing = problem.target - (u * before["log_w"]).sum(axis=(1, 2))
        return np.asarray(np.maximum(rows, missing))

    return (
        Invariant("the objective (3) does not rise", rise, 1e-12),
        Invariant("the descent identity (10)", imbalance, 1e-10),
        Invariant("G is monotone", fall_of_g, 1e-12),
        Invariant("the constraints (5b), (5d)", violation, 1e-10),
    )


def initial_state(problem: Problem, log_u: Array) -> dict[str, Array]:
    """Return the state at mechanisms given as log P(X, Y), (starts, |X|, |Y|), every other block solved for."""
    return closed_form.complete(log_u, problem.p_s_given_x)


def _acceleration(problem: Problem, method: str, accelerate: str, constraints: Constraints) -> Accelerator | None:
    if accelerate == "none":
        return None
    if constraints and accelerate == "auto":
        block = _constrained(convex_concave, problem, constraints)
        return newton_on_the_face(problem, constraints, lambda view: block.residual(view, view).largest)
    if method != "aem":
        return None
    return accelerated.interior_newton(problem.p_x, problem.p_s_given_x, problem.target)


def _constrained(make: Callable[[Problem, bool], Block], problem: Problem, constraints: Constraints) -> Block:
    block = make(problem, bool(constraints))
    return block.constrained(constraints) if constraints else block
