"""The master problem as a linear program over columns, where x(mu) jumps: f with kinks, local differential privacy.

maximise sum_u q_u g(x_u) subject to sum_u q_u x_u = P_Y, q >= 0; its multipliers are alpha. Columns whose price is
positive join until none is found. It suits tables of some tens of columns: with many the multipliers wander.
"""

import numpy as np

from cvxpriv.bounds.master import Master
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.sizes import now

from .pricing import Pricing, distinct
from .smoothed_master import Columns

#: Columns that join in one round; steps of each climb; columns nearer than this are one.
JOINING, CLIMB, NEAR = 60, 12, 1e-7
#: Into how many parts the starts of local search fall.
PARTS = 4
#: Weights below this are dropped.
LIGHT = 1e-12


def generate_columns(pricing: Pricing, shares: Array, tolerance: float, deadline: float) -> Columns:
    """Return columns and alpha at which local search finds no price above the tolerance, or what the deadline left.

    `shares`, (N, |S|): Points where local search starts.
    `tolerance`: A price, in nats.
    `deadline`: A value of `time.monotonic`.
    Raises SolverFailure: HiGHS refuses a program that has a solution: P_Y alone is one.
    """
    program, columns = Master(pricing.p_y, pricing.p_y), np.zeros((0, pricing.p_y.size))
    new = np.vstack([pricing.p_y, _columns(pricing, shares, np.zeros(pricing.p_y.size))])
    turn = 0
    while True:
        program.add(-pricing.gain(new), new.T)
        columns = np.vstack([columns, new])
        point = program.solve()
        used, alpha = point.weights > LIGHT, -point.duals
        support = columns[used] @ pricing.channel.T
        # A part of the starts finds something in most rounds; all of them have to find nothing in the last.
        for starts in (shares[turn % PARTS :: PARTS], shares):
            found = _columns(pricing, pricing.climb(np.vstack([support, starts]), alpha, CLIMB), alpha)
            price = pricing.gain(found) - found @ alpha
            order = np.argsort(-price, kind="stable")
            new = distinct(found[order[price[order] > tolerance]], NEAR)[:JOINING]
            if len(new):
                break
        if not len(new) or now() > deadline:
            residual = max(float(price.max()), 0.0)
            return Columns(alpha, pricing.mu_of(support), point.weights[used], columns[used], residual)
        turn += 1


def _columns(pricing: Pricing, shares: Array, alpha: Array) -> Array:
    """The maximisers x(mu), made to sum to 1."""
    x = pricing.inner(pricing.mu_of(shares), alpha).x
    return np.asarray(x / x.sum(axis=1, keepdims=True))
