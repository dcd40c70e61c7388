"""The funnel over a given set of posteriors, as a DCP problem: a linear program that any solver can check.

    minimise    H(S) - sum_k r_k H(A pi_k)
    subject to  sum_k r_k pi_k = P_X,   sum_k r_k H(pi_k) <= H(X) - R,   r >= 0.

Its value is the leakage of the best mechanism with these posteriors, so it is never below the best of all.
"""

from __future__ import annotations

import cvxpy as cp

from cvxpriv.numerics.arrays import Array
from cvxpriv_models.privacy_funnel.pricing import FunnelPricing

__all__ = ["dcp_relaxation"]


def dcp_relaxation(joint: Array, rate: float, columns: Array) -> cp.Problem:
    """Build the linear program over columns.

    Parameters
    ----------
    joint : array, ``(|S|, |X|)``
        P(S, X), every column with mass.
    rate : float
        R in nats.
    columns : array, ``(|X|, k)``
        Posteriors P(X|y).

    Returns
    -------
    cvxpy.Problem
        Its constraints are labelled "posteriors average to P(X)", "rate" and "weights"; the dual of "rate" is lam, and
        the negative dual of the first is nu.

    Examples
    --------
    >>> import numpy as np
    >>> problem = dcp_relaxation(np.diag([0.5, 0.5]), np.log(2.0), np.eye(2))
    >>> round(float(problem.solve(solver="CLARABEL")), 6)
    0.693147
    """
    pricing = FunnelPricing(joint, rate)
    costs, rows = pricing.rows(columns)
    r = cp.Variable(columns.shape[1], name="r")
    constraints = {
        "posteriors average to P(X)": rows[:-1] @ r == pricing.p_x,
        "rate": rows[-1] @ r <= pricing.entropy_x - rate,
        "weights": r >= 0,
    }
    for label, constraint in constraints.items():
        constraint.set_label(label)
    return cp.Problem(cp.Minimize(pricing.entropy_s + costs @ r), list(constraints.values()))
