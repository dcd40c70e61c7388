"""Columns as mechanisms: one that carries the rate exactly, and the best mixture of given ones as a block."""

from __future__ import annotations

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.bounds.master import master_block
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.information import mutual_information

from .pricing import FunnelPricing

HALVINGS = 60


def utility(p_x: Array, mechanism: Array) -> float:
    """I(X;Y) in nats of P(Y|X), (|X|, |Y|)."""
    return mutual_information(p_x[:, None] * mechanism)


def mechanism_of(columns: Array, weights: Array, p_x: Array) -> Array:
    """P(Y|X), (|X|, |Y|), whose posteriors are the columns (|X|, k), as nearly as rows that sum to 1 allow.

    Equal columns become one symbol. A symbol of X that no column holds is released as it is.

    >>> mechanism_of(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    array([[1., 0.],
           [0., 1.]])
    """
    _, first, where = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    joint = (columns[:, first] * np.bincount(where.ravel(), weights, len(first)))[:, np.argsort(first)]
    lost = np.flatnonzero(joint.sum(axis=1) <= 0.0)
    alone = np.zeros((len(p_x), len(lost)))
    alone[lost, np.arange(len(lost))] = p_x[lost]
    joint = np.concatenate([joint, alone], axis=1)
    joint = joint[:, joint.sum(axis=0) > 0.0]
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def mixed_to_rate(mechanism: Array, p_x: Array, rate: float) -> Array:
    """The mechanism, mixed with the release of X itself by no more than I(X;Y) >= `rate` takes.

    With probability 1 - t the output is that of `mechanism`, with probability t it is X, under symbols of its own. At
    `rate` = H(X) it is the identity.
    """
    if utility(p_x, mechanism) >= rate:
        return mechanism
    identity, low, high = np.eye(len(p_x)), 0.0, 1.0
    for _ in range(HALVINGS):
        t = 0.5 * (low + high)
        enough = utility(p_x, np.concatenate([(1.0 - t) * mechanism, t * identity], axis=1)) >= rate
        low, high = (low, t) if enough else (t, high)
    if high == 1.0:
        return identity
    mixed: Array = np.concatenate([(1.0 - high) * mechanism, high * identity], axis=1)
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


def columns_block(joint: Array, rate: float, columns: Array) -> Block:
    """Build the funnel over given posteriors: a linear program that any solver can check.

        minimise    H(S) - sum_k r_k H(A pi_k)
        subject to  sum_k r_k pi_k = P_X,   sum_k r_k H(pi_k) <= H(X) - R,   r >= 0.

    Its value is the leakage of the best mechanism with these posteriors, so it is never below the best of all.

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
