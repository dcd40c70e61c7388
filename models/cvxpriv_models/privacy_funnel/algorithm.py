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

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration, Known
from cvxpriv.numerics.arrays import Array, Flags, Values
from cvxpriv.numerics.sizes import late
from cvxpriv.schedules.history import Below
from cvxpriv.schedules.steps import Accelerator, Invariant, Loop, Measure, Sweep
from cvxpriv.solvers.chain import Solution

from . import accelerated, closed_form, kkt, multiplier
from .active_set import newton_on_the_face
from .blocks import (
    ROWS,
    Constraints,
    constrained,
    convex_concave,
    expectation,
    marginal,
    mechanism,
    mechanism_and_marginal,
    posterior,
    rate_parameters,
)
from .problem import Cells, Problem

#: Default of the largest number of passes per start.
MAX_ITER = 500
#: The name under which the loop stands in a run's history.
LOOP = "pass"
PHASE_ONE = "phase one"

#: A race leaves a start that so many more falls like its last would not take below what is to be beaten.
FALLS = 20
#: The most passes of a race.
RACE = 100

#: Distance below the rate allowed for a start with constraints: a solver's accuracy.
REACHED = 1e-9


def alternating_expectation_minimisation(problem: Problem, constraints: Constraints = ()) -> Sweep:
    """One pass of PF Algorithm 1."""
    u = constrained(mechanism, problem, constraints)  # and lambda, the root of G
    r = marginal(problem)
    w = posterior(problem)
    q = expectation(problem)  # the paper's first block: each start is complete, so the sequence is the same

    def fused(state: Values) -> Values:
        return closed_form.iteration(dict(state), problem.p_x, problem.p_s_given_x, problem.target)

    return Sweep([u, r, w, q], fused=fused, invariants=invariants(problem))


def merged(problem: Problem, constraints: Constraints = ()) -> Sweep:
    """One pass with u and r in one block."""
    return Sweep([expectation(problem), constrained(mechanism_and_marginal, problem, constraints), posterior(problem)])


def convex_concave_procedure(problem: Problem, constraints: Constraints = ()) -> Sweep:
    """One pass of the convex-concave procedure: only the rate constraint is replaced by its tangent."""
    return Sweep([constrained(convex_concave, problem, constraints), posterior(problem)])


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


def race(problem: Problem, method: str, least: float, constraints: Constraints) -> Loop:
    """Return passes without residuals, until a start leaks less than `least`, or is seen to end above it."""

    def leaked(state: Values) -> Array:
        return closed_form.leakage(state["log_u"], problem.p_s_given_x)

    def decided(iteration: int, before: Values, after: Values, measured: Mapping[str, Array]) -> Flags:
        here = measured["objective"]
        return np.asarray((here < least) | (here - FALLS * (leaked(before) - here) >= least))

    return Loop(
        METHODS[method](problem, constraints),
        stop=decided,
        limit=RACE,
        measure=lambda state: {"objective": leaked(state), "kkt": np.full(len(state["log_u"]), np.inf)},
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


def most_telling(problem: Problem) -> Block:
    """Phase one of a constrained funnel: maximise sum u log w, the tangent of I(X;Y) at the last w, over u.

    I(X;Y) is convex in u, so that no step lowers it: alternated with the w block it climbs towards the rate.
    """

    def declare(alive: Cells) -> Declaration:
        log_w = cp.Parameter(alive.count, name="log w")
        u = cp.Variable(alive.count, name="u")
        return Declaration(
            objective=cp.Maximize(log_w @ u),
            constraints={ROWS: alive.sums(1) @ u == problem.p_x, "u_ij >= 0": u >= 0},
            variables={"u": u},
            parameters={"log w": log_w},
            mechanism=alive.expression(u, scale=1.0 / problem.p_x),
            known=Known.of_table(problem.table),
        )

    def cells(view: Values) -> Cells:
        return Cells(np.ones(view["log_w"].shape, dtype=bool))

    def write(solution: Solution, view: Values) -> Values:
        log_u = cells(view).log_spread(solution.values["u"])
        return {"log_u": log_u, "log_r": closed_form.marginal(log_u[None])[0]}

    return Block(
        name="phase one",
        reads=frozenset({"log_w"}),
        writes=frozenset({"log_u", "log_r"}),
        declare=declare,
        parameters=lambda view: {"log w": rate_parameters(problem, view, cells(view))["log w"]},
        embed=lambda point, at: {"u": np.exp(point["log_u"])[cells(at).mask]},
        repair=lambda values, at: {"u": cells(at).normalised(values["u"], axis=1, to=problem.p_x)},
        write=write,
        structure=cells,
    )


def measure(problem: Problem, constraints: Constraints = ()) -> Measure:
    """Return the figures of a state: objective I(S;Y), utility I(X;Y), and the KKT residual, in nats, per start.

    Under constraints a residual can take a second: once time is over it is inf, not measured.
    """
    own = residuals_under(problem, constraints) if constraints else None
    facts = problem.p_x, problem.p_s_given_x, problem.target

    def figures(state: Values) -> dict[str, Array]:
        if own is None:
            residual = kkt.residuals(state["log_u"], *facts, state["lam"]).largest
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
    return constrained(convex_concave, problem, constraints).own_residuals


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


def _acceleration(problem: Problem, method: str, accelerate: str, constraints: Constraints) -> Accelerator | None:
    if accelerate == "none":
        return None
    if constraints and accelerate == "auto":
        block = constrained(convex_concave, problem, constraints)
        return newton_on_the_face(problem, constraints, lambda view: block.residual(view, view).largest)
    if method != "aem":
        return None
    facts = problem.p_x, problem.p_s_given_x, problem.target
    return lambda body, state, _: accelerated.advance(dict(body(state)), *facts)  # a Newton step after each pass
