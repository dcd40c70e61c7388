"""The mechanism of a constrained bound as a start of its own, further starts, and the refusal where none is found."""

from collections.abc import Callable, Sequence

import numpy as np

from cvxpriv.blocks.declaration import Known
from cvxpriv.bounds.output_names import in_place
from cvxpriv.constraints.gate import brought_inside, missed
from cvxpriv.errors import ModelError, SolverFailure
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.sizes import late, now
from cvxpriv.schedules.history import Context

from . import closed_form
from .blocks import Constraints
from .bound import FunnelBound
from .constrained_bound import LOCAL, UNKNOWN, ConstrainedBound
from .constrained_mechanism import fitted
from .constrained_pricing import most_told
from .problem import Problem
from .solving import FEASIBLE

#: Further starts: the number of rounds, and of starts in each; and the processor seconds after which no round begins.
ROUNDS, A_ROUND, FURTHER_SECONDS = 3, 4, 10.0
#: The Dirichlet parameter of their rows, and their least cell. Where X is told little, a first phase leads to other
#: corners of the constraints than from a mechanism that carries the rate.
SOFT, LEAST_CELL = 2.0, 1e-9


def constrained_start(
    problem: Problem,
    constraints: Constraints,
    under: ConstrainedBound | None,
    work: Callable[[Array], tuple[Values, Context]],
    settled: Callable[[Array], tuple[Values, Context]],
    tol: float,
) -> list[tuple[Values, Context]]:
    """Run the algorithm from the mechanism of a constrained bound; nothing where that fails.

    Where that mechanism satisfies the constraints and leaks at most `tol` more than the bound, no pass is made:
    `settled` makes it the end. Where passes only raise its leakage, it is the end too.
    """
    if under is None:
        return []
    found = under.found
    known = Known.of_table(problem.table)
    begin = in_place(fitted(problem, found.mechanism), constraints, known)
    moved = brought_inside(begin, constraints, known)
    if best(problem, constraints, found, moved, tol):
        return [settled(closed_form.log_joint(problem.p_x, moved[None]))]
    log_u = closed_form.log_joint(problem.p_x, begin[None])
    try:
        state, context = work(log_u)
    except (ModelError, SolverFailure):  # a start among others: they say what is wrong
        return []
    inside = not found.ignored and not missed(moved, constraints, known)
    lower = problem.leakage(begin) < problem.leakage(closed_form.rows_of(state["log_u"][0]))
    if inside and lower and problem.utility(begin) >= problem.rate - FEASIBLE:
        state = {**state, "log_u": log_u}
    return [(state, context)]


def further_starts(
    problem: Problem,
    found: FunnelBound,
    done: Sequence[tuple[Values, Context]],
    below: Callable[[float, Array], tuple[Values, Context] | None],
    seed: int,
    tol: float,
) -> list[tuple[Values, Context]]:
    """Run the algorithm from random mechanisms, while the least leakage is more than `tol` above its bound.

    Nothing follows a bound whose search was ended: it stays below any mechanism.

    `below`: Runs those starts to their end that are seen to leak less than a number; None where none does.
    """
    more: list[tuple[Values, Context]] = []
    if found.reason not in ("", LOCAL, UNKNOWN):
        return more
    random, begun = np.random.default_rng([seed, 1]), now()
    for _ in range(ROUNDS):
        least = min(closed_form.leakage(state["log_u"], problem.p_s_given_x).min() for state, _ in (*done, *more))
        if least <= found.lower + tol or now() - begun > FURTHER_SECONDS or late():
            break
        rows = random.dirichlet(np.full(problem.size_y, SOFT), size=(A_ROUND, problem.p_x.size))
        try:
            lower = below(least - tol, closed_form.log_joint(problem.p_x, np.maximum(rows, LEAST_CELL)))
        except (ModelError, SolverFailure):  # starts among others: they say what is wrong
            break
        more += [] if lower is None else [lower]
        if lower is not None and lower[1].ended:
            break
    return more


def best(problem: Problem, constraints: Constraints, found: FunnelBound, mechanism: Array, tol: float) -> bool:
    """Whether a mechanism, once inside, satisfies all constraints and leaks at most `tol` more than their bound."""
    known = Known.of_table(problem.table)
    moved = brought_inside(mechanism, constraints, known)
    if found.ignored or missed(moved, constraints, known):
        return False
    return problem.utility(moved) >= problem.rate - FEASIBLE and problem.leakage(moved) <= found.lower + tol


def refused(
    failure: ModelError, problem: Problem, constraints: Constraints, under: ConstrainedBound | None
) -> ModelError:
    """Return a refusal that states the known bound of the utility under the constraints."""
    most = min(most_told(problem, constraints)[0], np.inf if under is None else under.most)
    return ModelError(f"{failure}. What is known: I(X;Y) is at most {most:.6g} nats")
