"""The usual number of outputs: as many as the best mechanism can need."""

from __future__ import annotations

from collections.abc import Sequence

from cvxpriv.blocks.declaration import Constraint
from cvxpriv.constraints import ReadyConstraint

ON_COLUMNS = ("local_differential_privacy", "pointwise_leakage", "maximal_leakage", "total_variation_to_prior")
"""Kinds of constraints that treat all outputs alike, and allow any number of them."""


def usual_size(size_x: int, constraints: Sequence[tuple[str, Constraint]]) -> int:
    """Return |X| + 1, and one more for each constraint on one sum over all outputs.

    A vertex of the linear program over posteriors uses as many of them as it has rows: P(X), the rate, and the sums.
    Where any constraint names outputs, or is of a kind that is not known, it is |X| + 1: the constraint may have been
    written for so many. The bound on the total variation of each symbol of X is |X| sums, and is not counted either.
    """
    ready = [constraint for _, constraint in constraints if isinstance(constraint, ReadyConstraint)]
    if len(ready) < len(constraints) or any(one.kind not in ON_COLUMNS for one in ready):
        return size_x + 1
    return size_x + 1 + sum(_is_one_sum(one) for one in ready)


def _is_one_sum(constraint: ReadyConstraint) -> bool:
    return constraint.kind == "maximal_leakage" or bool(constraint.parameters.get("average", False))
