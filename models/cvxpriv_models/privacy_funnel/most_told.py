"""The largest I(X;Y) under constraints on each posterior P(X|y), by a linear program over the generators of these.

I(X;Y) = H(X) - sum_y P(y) H(P(X|y)), and H is concave: where posteriors are kept in a polytope, its corners do best.
"""

from collections.abc import Sequence

import numpy as np

from cvxpriv.blocks.declaration import Constraint
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.divergences import divergence
from cvxpriv.errors import SolverFailure
from cvxpriv.numerics.arrays import Array

from .column_constraints import ColumnConstraints
from .columns import mechanism_of
from .constrained_pricing import ConstrainedPricing
from .pricing import FunnelPricing
from .problem import Problem

#: Constraints with a limit on log p(y|x) / p(y), or on its average: I(X;Y) is not above it.
LIMITED = ("local_differential_privacy", "local_information_privacy", "pointwise_leakage", "maximal_leakage")


def most_told(problem: Problem, constraints: Sequence[tuple[str, Constraint]]) -> tuple[float, Array | None]:
    """Return a bound of I(X;Y) under constraints, in nats, and the mechanism that tells most under those it counts.

    The mechanism may have more than |Y| outputs, and other constraints may not hold. None where none is counted, or
    where outputs have names.
    """
    ready = [one for _, one in constraints if isinstance(one, ReadyConstraint)]
    most = min([problem.table.entropy_x, float(np.log(problem.size_y)), *map(_limit, ready)])
    asked = ColumnConstraints.of(problem, constraints)
    found = most_telling(ConstrainedPricing(FunnelPricing(problem.table.probabilities, problem.rate), asked))
    if found is None or not asked.counted:
        return most, None
    return min(most, found[0]), None if asked.outputs else found[1]


def most_telling(pricing: ConstrainedPricing) -> tuple[float, Array] | None:
    """Return the most that can be told of X, in nats, and its mechanism; None where no columns make P(X)."""
    columns, size = pricing.first_columns(), len(pricing.plain.p_x)
    master = pricing.master()
    _, rows = pricing.rows(columns)
    master.set_row(size, -np.inf, np.inf)
    master.add(rows[size], rows)
    try:
        best = master.solve()
    except SolverFailure:
        return None
    used = best.weights > 0.0
    mechanism = mechanism_of(pricing.posteriors(columns[:, used]), best.weights[used], pricing.plain.p_x)
    return float(pricing.plain.entropy_x - best.value), mechanism


def _limit(one: ReadyConstraint) -> float:
    """Return the bound that a constraint alone puts on I(X;Y), in nats; inf where it is none of the known ones."""
    given = one.parameters
    of_input = one.kind in ("local_differential_privacy", "maximal_leakage") or given.get("of") == "input"
    if one.kind in LIMITED and of_input and not given.get("delta", 0.0):
        return float(given.get("epsilon", given.get("bound", np.inf)))
    if one.kind == "renyi_differential_privacy" and given["order"] >= 1.0:  # the average is a divergence between rows
        return float(given["epsilon"])
    told = one.kind == "f_information" and of_input and divergence(given["f"]).name == "mutual-information"
    return float(given["bound"]) if told else np.inf
