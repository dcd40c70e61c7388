"""Mechanisms of the columns that a constrained bound ends with: on |Y| outputs, inside the constraints, at the rate."""

from collections.abc import Callable, Sequence

import numpy as np

from cvxpriv.blocks.declaration import Constraint, Known
from cvxpriv.bounds.columns import Generation
from cvxpriv.bounds.merged_symbols import merge, merged_table
from cvxpriv.bounds.output_names import matched, placed
from cvxpriv.constraints.gate import brought_inside, inside, missed
from cvxpriv.errors import ModelError, SolverFailure
from cvxpriv.numerics.arrays import Array

from . import closed_form
from .algorithm import most_telling
from .columns import mechanism_of
from .constrained_pricing import ConstrainedPricing
from .costed_pricing import CostedPricing
from .problem import Problem

#: Cost of an output that a column may not be.
BARRED = 1e6
#: Attempts to merge outputs, and the most, in nats, by which the rate is raised for it.
MERGINGS, MOST_RAISED = 5, 1e-6
#: Distance of a rate above the largest utility, by a linear program, that is rounding, in nats.
ROUNDING = 1e-8
#: Distance above the rate at which the master is solved: the loss when a mechanism's rows are made to sum to 1.
ROOM = 1e-10
#: Steps of a climb to the rate, and the least rise of one; random mechanisms where climbs begin too; the share of an
#: even mechanism that keeps each cell in it; bisections of a step that passes the rate.
CLIMB, RISE, BEGINNINGS, EVEN, BISECTIONS = 30, 1e-7, 4, 1e-3, 50


def of_columns(problem: Problem, pricing: ConstrainedPricing, columns: Array, weights: Array) -> Array:
    """The mechanism of columns under constraints with generators: those of one name merged, in their place."""
    asked = pricing.asked
    if not asked.outputs:
        return mechanism_of(pricing.posteriors(columns), weights, problem.p_x)
    classes, w = columns[0].astype(int), columns[1:].T
    joint = np.zeros((w.shape[1], problem.size_y))
    np.add.at(joint.T, np.array(asked.outputs)[classes], w * weights[:, None])
    if len(asked.outputs) == problem.size_y and asked.rows.shape[1] == 1:  # a distortion: one output for each posterior
        price = (asked.rows[:, 0] + BARRED * ~asked.allowed).T
        apart = matched(w, weights, price)
        joint = apart if (apart * price).sum() <= asked.upper[0] + ROUNDING else joint
    joint = pricing.spread @ joint
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def of_costed_columns(problem: Problem, pricing: CostedPricing, columns: Array, weights: Array) -> Array:
    """The mechanism of columns under constraints that are costs of columns; names as above."""
    if not pricing.named:
        return mechanism_of(pricing.posteriors(columns), weights, problem.p_x)
    joint = placed(columns[1:].T, weights, columns[0].astype(int), pricing.classes)
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def fitted(problem: Problem, mechanism: Array) -> Array:
    """P(Y|X) on |Y| outputs, (|X|, |Y|): pairs that cost the least I(X;Y) are merged, or empty outputs added.

    Merging keeps what columns and sums over columns satisfy.
    """
    joint = problem.p_x[:, None] * mechanism
    if joint.shape[1] > problem.size_y:
        joint = merged_table(joint.T, merge(joint.T, problem.size_y)).T
    joint = np.pad(joint, ((0, 0), (0, problem.size_y - joint.shape[1])))
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def carrying(
    problem: Problem,
    pricing: ConstrainedPricing | CostedPricing,
    generation: Generation,
    made: Callable[[Array, Array], Array],
    mechanism: Array,
) -> Array:
    """The mechanism on |Y| outputs, like ones merged, designed for the rate and what merging loses.

    A posterior is often in use several times, as several mixtures of generators, or under one name. Where merging loses
    too much, the mechanism as it is.

    `made`: The mechanism of columns and their weights.
    """
    trial, raised, row = mechanism, 0.0, len(problem.p_x)
    for _ in range(MERGINGS):
        merged = fitted(problem, trial)
        short = problem.rate - problem.utility(merged)
        if short <= 0.0:
            return merged
        raised += 1.5 * short + ROOM
        if raised > MOST_RAISED:
            break
        generation.master.set_row(row, -np.inf, pricing.plain.entropy_x - problem.rate - raised)
        try:
            point = generation.master.solve()
        except SolverFailure:  # so much cannot be told
            break
        used = point.weights > 0.0
        trial = made(generation.pool.taken(used), point.weights[used])
    return mechanism


def repaired(
    mechanism: Array, telling: Array, problem: Problem, constraints: Sequence[tuple[str, Constraint]]
) -> Array:
    """The mechanism, moved until it satisfies the constraints, which treat all outputs alike, and carries the rate.

    With a chance the output is that of the mechanism that tells most, under symbols of its own: constraints on columns,
    and on sums of them, hold for such mixtures, and I(X;Y) is that of both in proportion.
    """
    known = Known.of_table(problem.table)
    found, other = (inside(one, constraints, known) for one in (mechanism, telling))
    short, more = (problem.utility(one) - problem.rate for one in (found, other))
    if short >= 0.0 or more <= 0.0:
        return found
    share = min(1.0, (ROOM - short) / (more - short))
    return inside(np.hstack([(1.0 - share) * found, share * other]), constraints, known)


def climbed(problem: Problem, constraints: Sequence[tuple[str, Constraint]], mechanism: Array) -> Array | None:
    """A mechanism on |Y| outputs that satisfies the constraints and carries the rate, by local search; or None.

    I(X;Y) is convex, so that the best mechanism on its tangent tells more at each step. Of climbs from the mechanism
    and from random ones, the end that leaks least is taken.
    """
    even = np.full((len(problem.p_x), problem.size_y), 1.0 / problem.size_y)
    random = np.random.default_rng(0).dirichlet(np.ones(problem.size_y), (BEGINNINGS, len(problem.p_x)))
    ends = [_climbed(problem, constraints, one, even) for one in (fitted(problem, mechanism), *random)]
    return min((one for one in ends if one is not None), key=problem.leakage, default=None)


def _climbed(
    problem: Problem, constraints: Sequence[tuple[str, Constraint]], begin: Array, even: Array
) -> Array | None:
    known, wanted = Known.of_table(problem.table), problem.rate + ROOM
    block, here, told = most_telling(problem).constrained(constraints), inside(begin, constraints, known), -np.inf
    for _ in range(CLIMB):
        joint = problem.p_x[:, None] * ((1.0 - EVEN) * here + EVEN * even)
        try:
            log_u = block.solve({"log_w": np.log(joint / joint.sum(axis=0))})[0]["log_u"]
        except (ModelError, SolverFailure):
            return None
        there = brought_inside(closed_form.rows_of(log_u), constraints, known)
        before, told = told, problem.utility(there)
        if missed(there, constraints, known) or told <= before + RISE:
            return None
        if told >= wanted:
            return there if missed(here, constraints, known) else _at_rate(problem, here, there, wanted)
        here = there
    return None


def _at_rate(problem: Problem, short: Array, telling: Array, wanted: float) -> Array:
    """The first mechanism that carries the rate, on the way from one that may not to one that does."""
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        share = (low + high) / 2.0
        carries = problem.utility((1.0 - share) * short + share * telling) >= wanted
        low, high = (low, share) if carries else (share, high)
    return np.asarray((1.0 - high) * short + high * telling)
