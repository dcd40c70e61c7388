"""The exact update of every block of PF Algorithm 1 (alternating expectation minimisation), batched over starts.

After them stand the measures of a state: leakage, utility, the relaxed objective, and the descent identity.

Every array of the state carries a leading axis of ``B`` starts:

========  ===========  =====================================================================
key       shape        meaning
========  ===========  =====================================================================
log_u     (B, M, N)    log P(x, y)
phi       (B, M, N)    the q block, ``sum_k s_ki (log q_ijk - log s_ki)``; q itself is never formed
log_r     (B, N)       log P(y)
log_w     (B, M, N)    log P(x | y)
lam       (B,)         the multiplier of ``I(X;Y) >= R``
========  ===========  =====================================================================

Constants: ``p`` (M,) = P(x) > 0; ``s`` (K, M) = P(s | x), columns sum to 1; ``target`` = R + sum p log p (the
paper's R^). Everything is in nats. Log-masses stop at ``FLOOR``: left alone they fall geometrically to -inf,
and the next difference of two of them is NaN.
"""

from typing import NamedTuple

import numpy as np

from cvxpriv.numerics.arrays import Array, IntArray
from cvxpriv.tables.information import mutual_information

from .multiplier import FLOOR as FLOOR, rows_at_root

State = dict[str, Array]

_TINY = float(np.finfo(np.float64).tiny)
#: A power of two above which no product of masses is a subnormal number: those are ten times as slow.
_RAISED = 2.0**200
_LOW_MASS = FLOOR + 40.0
#: Cells below this log-mass do not move lam; they are left out of its search where less than a share of many is above.
_LIGHT, _FEW, _WORTHWHILE = -60.0, 0.25, 2**12


def log_joint(p: Array, mechanisms: Array) -> Array:
    """log P(X, Y) of mechanisms P(Y|X), (..., |X|, |Y|); empty cells are at the floor."""
    joint = p[:, None] * mechanisms
    empty = ~(joint > 0.0)
    np.log(joint, out=joint, where=~empty)
    joint[empty] = FLOOR
    return np.asarray(np.maximum(joint, FLOOR, out=joint))


def rows_of(log_u: Array) -> Array:
    """P(Y|X), (|X|, |Y|), of one start's log P(X, Y); a cell at the floor is empty."""
    joint: Array = np.exp(log_u)
    joint[log_u <= FLOOR] = 0.0
    joint /= joint.sum(axis=1, keepdims=True)
    return joint


def expectation(log_u: Array, s: Array) -> Array:
    """q block, PF Algorithm 1: ``phi = log u - S' log(S u)``.

    `log_u`: (B, M, N).
    `s`: P(s | x), (K, M).
    Returns: phi, (B, M, N): what the u block needs of ``q_ijk = s_ki u_ij / sum_i' s_ki' u_i'j``.
    """
    # Each column is scaled by its largest cell: q does not change, and a dead column does not underflow.
    phi: Array = log_u - log_u.max(axis=-2, keepdims=True)
    phi -= s.T @ np.log(np.maximum(s @ np.exp(phi), _TINY))
    return phi


def mechanism(
    phi: Array, log_r: Array, log_w: Array, p: Array, target: float, start: Array | None = None
) -> tuple[Array, Array]:
    """u block, PF Algorithm 1: ``u_ij = p_i softmax_j(phi + log r + lam log w)``, ``lam >= 0`` from G(lam) = 0.

    The box in the paper drops r from the denominator (docs/errata.md). The constraint holds at the returned u with
    log w as given, so I(X;Y) >= R holds too.

    `phi`, `log_r`, `log_w`: The q, r and w blocks.
    `p`, `target`: P(x) and R^.
    `start`: A first guess of the multiplier per start, (B,); None is 0.
    Returns: log u (B, M, N), not below ``FLOOR``, and lam (B,). Where G has no root (see ``multiplier.py``) lam is the
    largest multiplier tried.
    """
    rows = rows_at_root(phi + log_r[:, None, :], log_w, p, target, start)
    return rows.logits, rows.lam


def marginal(log_u: Array) -> Array:
    """r block, PF Algorithm 1: ``r_j = sum_i u_ij``; returns log r, (B, N)."""
    return np.asarray(np.log(np.exp(log_u).sum(axis=-2)))


def posterior(log_u: Array, log_r: Array) -> Array:
    """w block, PF Algorithm 1: ``w_ij = u_ij / r_j``; returns log w, (B, M, N)."""
    return np.asarray(log_u - log_r[:, None, :])


def complete(log_u: Array, s: Array, lam: Array | None = None) -> State:
    """A whole state from log u: its q, r and w blocks solved, lam as given (0 if None)."""
    log_u = np.ascontiguousarray(log_u)
    log_r = marginal(log_u)
    return {
        "log_u": log_u,
        "phi": expectation(log_u, s),
        "log_r": log_r,
        "log_w": posterior(log_u, log_r),
        "lam": np.zeros(len(log_u)) if lam is None else lam,
    }


def iteration(state: State, p: Array, s: Array, target: float) -> State:
    """One pass of PF Algorithm 1, (u, lam) then r then w then q, fused; other keys of the state pass through.

    Equal to :func:`mechanism`, :func:`marginal`, :func:`posterior`, :func:`expectation` in turn. r and q are taken from
    the weights of u's rows, so nothing but the evaluations of G is transcendental in M x N. The search for lam starts
    where it would be if it moved as in the last pass: "lam_before" is the one before that.
    """
    base, lam = np.empty_like(state["phi"]), state["lam"]
    np.copyto(base, state["log_r"][:, None, :])  # with a sum of two arrays faster than a sum that broadcasts
    base += state["phi"]
    ahead = np.minimum(np.maximum(2.0 * lam - state.get("lam_before", lam), 0.9 * lam), 1.1 * lam)
    rows = rows_at_root(base, state["log_w"], p, target, ahead, _heavy(state["log_u"]))
    joint = (s * (_RAISED * rows.share[:, None, :])) @ rows.weights
    joint /= _RAISED
    mass = np.maximum(joint.sum(axis=-2), _TINY)
    log_u, log_r, share = rows.logits, np.log(mass), joint / mass[:, None, :]
    log_w = rows.weights
    np.copyto(log_w, log_r[:, None, :])
    np.subtract(log_u, log_w, out=log_w)
    if log_r.min() < _LOW_MASS:  # there the floor on log u is felt
        start, column = np.nonzero(log_r < _LOW_MASS)
        cells = log_u[start, :, column]
        log_r[start, column] = np.log(np.exp(cells).sum(axis=-1))
        log_w[start, :, column] = cells - log_r[start, column, None]
        share[start, :, column] = np.exp(log_w[start, :, column]) @ s.T
    bound = np.matmul(s.T, np.log(np.maximum(share, _TINY)), out=base)
    return {
        **state,
        "log_u": log_u,
        "phi": np.subtract(log_w, bound, out=bound),
        "log_r": log_r,
        "log_w": log_w,
        "lam": rows.lam,
        "lam_before": np.where(lam > 0.0, lam, rows.lam),
    }


def _heavy(log_u: Array) -> list[IntArray] | None:
    """The cells of each start that weigh, by flat index, or none where they are not few; None: no start has few."""
    if log_u[0].size < _WORTHWHILE:
        return None
    found, most = [np.flatnonzero(one > _LIGHT) for one in log_u], _FEW * log_u[0].size
    few = [cells if len(cells) < most else cells[:0] for cells in found]
    return few if any(map(len, few)) else None


class Descent(NamedTuple):
    """Both sides of PF (10) in its general form, per start, (B,).

    `drop`: The relaxed objective before minus after. `explained`: The sum of the four divergences and the multiplier's
    term.
    """

    drop: Array
    explained: Array


def leakage(log_u: Array, s: Array) -> Array:
    """I(S;Y) of each start, (B,): zero cells count as 0."""
    return mutual_information(s @ np.exp(log_u), axis=(-2, -1))


def utility(log_u: Array) -> Array:
    """I(X;Y) of each start, (B,)."""
    return mutual_information(np.exp(log_u), axis=(-2, -1))


def relaxed_objective(log_u: Array, log_r: Array, phi: Array) -> Array:
    """PF (3), ``f~(u, r, q) = sum_ij u_ij (log u_ij - log r_j - phi_ij)``, with q and r as old as they may be, (B,).

    At the optimal q and r it is -H(S|Y); add H(S) for I(S;Y).
    """
    terms = np.exp(log_u) * (log_u - log_r[:, None, :] - phi)
    return np.asarray(terms.sum(axis=(-2, -1)))


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
