"""The funnel over a given set of posteriors, as a DCP problem: a linear program that any solver can check.

    minimise    H(S) - sum_k r_k H(A pi_k)
    subject to  sum_k r_k pi_k = P_X,   sum_k r_k H(pi_k) <= H(X) - R,   r >= 0.

Its value is the leakage of the best mechanism with these posteriors, so it is never below the best of all.
"""

from __future__ import annotations

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.bounds.master_block import master_block
from cvxpriv.numerics.arrays import Array

from .pricing import FunnelPricing


def columns_block(joint: Array, rate: float, columns: Array) -> Block:
    """Build the block of the linear program over columns.

    `joint`, ``(|S|, |X|)``: P(S, X), every column with mass.
    `rate`: R in nats.
    `columns`, ``(|X|, k)``: Posteriors P(X|y).
    Returns: Its constraints are "posteriors average to P(X)", "rate" and "weights"; the dual of "rate" is lam, and the
    negative dual of the first is nu.

    Examples
    --------
    >>> block = columns_block(np.diag([0.5, 0.5]), np.log(2.0), np.eye(2))
    >>> round(float(block.declaration().problem.solve(solver="CLARABEL")), 6)
    0.693147
    """
    pricing = FunnelPricing(joint, rate)
    costs, rows = pricing.rows(columns)
    named = {
        "posteriors average to P(X)": (rows[:-1], pricing.p_x, True),
        "rate": (rows[-1:], np.array([pricing.entropy_x - rate]), False),
    }
    return master_block(costs, named, pricing.entropy_s)
