"""Mechanisms of the columns that a constrained bound ends with: on |Y| outputs, inside the constraints, at the rate."""

from collections.abc import Callable, Sequence

import numpy as np

from cvxpriv.blocks.declaration import Constraint, Known
from cvxpriv.bounds.columns import Generation
from cvxpriv.bounds.merged_symbols import merge, merged_table
from cvxpriv.bounds.output_names import matched, placed
from cvxpriv.constraints.gate import inside
from cvxpriv.errors import SolverFailure
from cvxpriv.numerics.arrays import Array

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
