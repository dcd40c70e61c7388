"""The measures of a privacy funnel's state: leakage, utility, the relaxed objective, and the descent identity.

Shapes and names are those of :mod:`cvxpriv_models.privacy_funnel.closed_form`; everything is in nats.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .closed_form import Array, State

_TINY = float(np.finfo(np.float64).tiny)


class Descent(NamedTuple):
    """Both sides of PF (10) in its general form, per start, (B,)."""

    drop: Array
    """The relaxed objective before minus after."""
    explained: Array
    """The sum of the four divergences and the multiplier's term."""


def leakage(log_u: Array, s: Array) -> Array:
    """I(S;Y) of each start, (B,): zero cells count as 0."""
    joint = s @ np.exp(log_u)
    return _information(joint)


def utility(log_u: Array) -> Array:
    """I(X;Y) of each start, (B,)."""
    return _information(np.exp(log_u))


def conditional_entropy(log_u: Array, s: Array) -> Array:
    """H(S|Y) of each start, (B,); the paper's objective at the optimal q is its negative (docs/errata.md)."""
    joint = s @ np.exp(log_u)
    share = joint / np.maximum(joint.sum(axis=-2, keepdims=True), _TINY)
    value: Array = -np.sum(joint * np.log(np.maximum(share, _TINY)), axis=(-2, -1))
    return value


def relaxed_objective(log_u: Array, log_r: Array, phi: Array) -> Array:
    """PF (3), ``f~(u, r, q) = sum_ij u_ij (log u_ij - log r_j - phi_ij)``, with q and r as old as they may be, (B,).

    At the optimal q and r it is -H(S|Y); add H(S) for I(S;Y).
    """
    terms = np.exp(log_u) * (log_u - log_r[:, None, :] - phi)
    value: Array = terms.sum(axis=(-2, -1))
    return value


def descent(before: State, after: State, target: float) -> Descent:
    """PF (10) for one pass u, r, w, q, in the form that needs no tight constraint (docs/errata.md).

    ``f~(before) - f~(after) = KL(u || u+) + lam+ (sum u log w - R^) + KL(r+ || r) + KL(q)``, where the last term
    is ``sum_ij u+_ij (phi+ - phi)_ij``, u, r, w, phi are the earlier blocks and + marks the later ones.

    `before`, `after`: States one pass of the algorithm apart. `target`: R^.
    Returns: Both sides; they agree to rounding.
    """
    u, u_next = np.exp(before["log_u"]), np.exp(after["log_u"])
    drop = relaxed_objective(before["log_u"], before["log_r"], before["phi"]) - relaxed_objective(
        after["log_u"], after["log_r"], after["phi"]
    )
    by_q = np.sum(u_next * (after["phi"] - before["phi"]), axis=(-2, -1))
    by_u = np.sum(u * (before["log_u"] - after["log_u"]), axis=(-2, -1))
    by_r = np.sum(u_next.sum(axis=-2) * (after["log_r"] - before["log_r"]), axis=-1)
    slack = np.sum(u * before["log_w"], axis=(-2, -1)) - target
    return Descent(drop, by_q + by_u + by_r + after["lam"] * slack)


def _information(joint: Array) -> Array:
    """Mutual information of the last two axes."""
    rows, columns = joint.sum(axis=-1, keepdims=True), joint.sum(axis=-2, keepdims=True)
    ratio = np.maximum(joint, _TINY) / np.maximum(rows, _TINY) / np.maximum(columns, _TINY)
    value: Array = np.where(joint > 0.0, joint * np.log(ratio), 0.0).sum(axis=(-2, -1))
    return value
