"""Inputs of hardly any mass: left out of the search, and paid for in the bound.

A column that gives a mass m to light inputs is worth at most m (KL of one of them + beta H'(largest ratio)) more than
the rest of it, so that an alpha as large keeps them out of every column, and costs alpha times their mass. Beside
others, inputs with masses of 1e-12 make the search for the best alpha stand still.
"""

import numpy as np

from cvxpriv.numerics.arrays import Array

from .bound_search import FLOOR, LEAST_SHARE, MARGIN, Found, above, search, value_of
from .cells_of_s import Verified, kl_to_prior, verify
from .priced_constraints import PricedConstraints, pricing_of
from .problem import Problem

#: Inputs up to this mass are light.
LIGHT = 1e-6
#: Part of the gap for the search without them; what their alpha has to spare, in nats.
SEARCHED, SPARE = 0.5, 0.1


def searched(problem: Problem, joint: Array, asked: PricedConstraints, gap: float, deadline: float) -> Found:
    """Bound the optimum of a joint table (|S|, |Y|): without its light inputs where that reaches the gap."""
    pricing = pricing_of(problem, joint, asked)
    light = pricing.p_y <= LIGHT
    if not light.any() or light.all():
        return search(pricing, gap, deadline)
    heavy = joint[:, ~light]
    few = pricing_of(problem, heavy[heavy.sum(axis=1) > 0.0] / heavy.sum(), asked)
    found = search(few, SEARCHED * gap, deadline)
    told = kl_to_prior(pricing.channel[:, light].T, pricing.p_s)
    steepest = problem.beta * float(few.conjugate.slope(1.0 / few.p_y).max())
    alpha, mechanism = np.zeros(len(light)), np.empty((len(light), found.mechanism.shape[1]))
    alpha[~light], alpha[light] = found.alpha, told + max(steepest, 0.0) + SPARE
    mechanism[~light], mechanism[light] = found.mechanism, few.p_y @ found.mechanism
    value = value_of(mechanism, pricing)
    tolerance, price = gap * max(value, FLOOR), found.upper - float(found.alpha @ few.p_y)
    threshold = max(tolerance - float(alpha @ pricing.p_y) + value, LEAST_SHARE * tolerance, MARGIN * price)
    try:
        shown = verify(pricing, alpha, threshold, deadline)
    except KeyboardInterrupt:
        shown, found = Verified(np.inf, 0, False, told[:0, None]), found._replace(interrupted=True)
    found = found._replace(
        upper=above(pricing, alpha, shown),
        alpha=alpha,
        mechanism=mechanism,
        value=value,
        cells=found.cells + shown.cells,
    )
    if found.interrupted or found.upper - value <= tolerance:
        return found
    whole = search(pricing, gap, deadline)
    better = max(found, whole, key=lambda one: one.value)
    nearer = min(found, whole, key=lambda one: one.upper)
    return whole._replace(
        upper=nearer.upper,
        alpha=nearer.alpha,
        mechanism=better.mechanism,
        value=better.value,
        cells=found.cells + whole.cells,
    )
