"""Mechanisms of column generation on few outputs: like ones are merged, which keeps what columns and sums satisfy."""

from __future__ import annotations

import numpy as np

from cvxpriv.bounds.columns import Generation
from cvxpriv.errors import SolverFailure
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.information import mutual_information

from .columns import mechanism_of
from .constrained_pricing import ConstrainedPricing
from .problem import Problem

MERGINGS, MOST_RAISED = 5, 1e-6
"""Attempts to merge outputs, and the most, in nats, by which the rate is raised for it."""

ROOM = 1e-10
"""Distance above the rate at which the mechanism is designed, beside the loss from merging, in nats."""


def fitted(problem: Problem, mechanism: Array) -> Array:
    """P(Y|X) on |Y| outputs, (|X|, |Y|): pairs that cost the least I(X;Y) are merged, or empty outputs added.

    Merging keeps what columns and sums over columns satisfy.
    """
    joint = problem.p_x[:, None] * mechanism
    while joint.shape[1] > problem.size_y:
        first, second = np.triu_indices(joint.shape[1], 1)
        mass = (joint[:, first] + joint[:, second]).sum(axis=0)
        pairs = zip(first, second, mass, strict=True)
        apart = [whole * mutual_information(joint[:, [i, j]] / whole) for i, j, whole in pairs]
        i, j = first[int(np.argmin(apart))], second[int(np.argmin(apart))]
        joint[:, i] += joint[:, j]
        joint = np.delete(joint, j, axis=1)
    joint = np.pad(joint, ((0, 0), (0, problem.size_y - joint.shape[1])))
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def on_few_outputs(problem: Problem, pricing: ConstrainedPricing, generation: Generation, mechanism: Array) -> Array:
    """The mechanism with like outputs merged until it has |Y| of them, designed for the rate and what merging loses.

    A posterior is often in use several times, as several mixtures of generators. Where merging loses too much, the
    mechanism as it is.
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
        trial = mechanism_of(pricing.posteriors(generation.columns[:, used]), point.weights[used], problem.p_x)
    return mechanism
