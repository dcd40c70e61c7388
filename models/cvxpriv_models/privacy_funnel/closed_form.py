"""The exact update of every block of PF Algorithm 1 (alternating expectation minimisation), batched over starts.

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

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
State = dict[str, Array]
Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

FLOOR = -700.0
ROOT_TOLERANCE = 1e-13
ROOT_LIMIT = 60
LARGEST_MULTIPLIER = 1e9
_TINY = float(np.finfo(np.float64).tiny)
_LOW_MASS = FLOOR + 40.0


class Tilt(NamedTuple):
    """The u block's rows at one multiplier, and what G needs of them."""

    logits: Array
    """base + lam log w, (B, M, N)."""
    weights: Array
    """exp of the logits, (B, M, N)."""
    totals: Array
    """Row sums of the weights, (B, M)."""
    means: Array
    """Row sums of weights times log w, (B, M)."""
    gap: Array
    """G(lam), (B,)."""


def expectation(log_u: Array, s: Array) -> Array:
    """q block, PF Algorithm 1: ``phi = log u - S' log(S u)``.

    Parameters
    ----------
    log_u
        (B, M, N).
    s
        P(s | x), (K, M).

    Returns
    -------
    Array
        phi, (B, M, N): what the u block needs of ``q_ijk = s_ki u_ij / sum_i' s_ki' u_i'j``.
    """
    # Each column is scaled by its largest cell: q does not change, and a dead column does not underflow.
    phi: Array = log_u - log_u.max(axis=-2, keepdims=True)
    phi -= s.T @ _safe_log(s @ np.exp(phi))
    return phi


def mapping(
    phi: Array, log_r: Array, log_w: Array, p: Array, target: float, start: Array | None = None
) -> tuple[Array, Array]:
    """u block, PF Algorithm 1: ``u_ij = p_i softmax_j(phi + log r + lam log w)``, ``lam >= 0`` from G(lam) = 0.

    The box in the paper drops r from the denominator (docs/errata.md). The constraint holds at the returned u with
    log w as given, so I(X;Y) >= R holds too.

    Parameters
    ----------
    phi, log_r, log_w
        The q, r and w blocks.
    p, target
        P(x) and R^.
    start
        A first guess of the multiplier per start, (B,); None is 0.

    Returns
    -------
    tuple
        log u (B, M, N), not below ``FLOOR``, and lam (B,). Where G has no root (see :func:`root_exists`) lam is the
        largest multiplier tried.
    """
    first = np.zeros(len(phi)) if start is None else np.array(start, dtype=np.float64)
    base = phi + log_r[:, None, :]
    lam, tilt = _search(base, log_w, p, target, first)
    return _log_rows(tilt, p), lam


def marginal(log_u: Array) -> Array:
    """r block, PF Algorithm 1: ``r_j = sum_i u_ij``; returns log r, (B, N)."""
    log_r: Array = np.log(np.exp(log_u).sum(axis=-2))
    return log_r


def posterior(log_u: Array, log_r: Array) -> Array:
    """w block, PF Algorithm 1: ``w_ij = u_ij / r_j``; returns log w, (B, M, N)."""
    log_w: Array = log_u - log_r[:, None, :]
    return log_w


def complete(log_u: Array, s: Array, lam: Array | None = None) -> State:
    """A whole state from log u: its q, r and w blocks solved, lam as given (0 if None)."""
    log_r = marginal(log_u)
    return {
        "log_u": log_u,
        "phi": expectation(log_u, s),
        "log_r": log_r,
        "log_w": posterior(log_u, log_r),
        "lam": np.zeros(len(log_u)) if lam is None else lam,
    }


def iteration(state: State, p: Array, s: Array, target: float) -> State:
    """One pass of PF Algorithm 1, q then (u, lam) then r then w, fused; other keys of the state pass through.

    Equal to :func:`expectation`, :func:`mapping`, :func:`marginal`, :func:`posterior` in turn, on a state whose r
    and w are those of its u. It takes one exp of an M x N array for q (from w, whose columns are already scaled)
    and one for each evaluation of G; nothing else is transcendental in M x N.
    """
    log_w = state["log_w"]
    phi = np.exp(log_w)
    bound = np.matmul(s.T, _safe_log(s @ phi))
    np.subtract(log_w, bound, out=phi)
    base = np.subtract(state["log_u"], bound, out=bound)
    lam, tilt = _search(base, log_w, p, target, np.array(state["lam"], dtype=np.float64))
    mass = np.matmul((p / tilt.totals)[:, None, :], tilt.weights)[:, 0, :]
    log_u = _log_rows(tilt, p)
    log_r = _safe_log(mass)
    if log_r.min() < _LOW_MASS:
        low = log_r < _LOW_MASS  # there the floor on log u is felt
        log_r[low] = np.log(np.exp(np.swapaxes(log_u, 1, 2)[low]).sum(axis=-1))
    log_w = np.subtract(log_u, log_r[:, None, :], out=tilt.weights)
    return {**state, "log_u": log_u, "phi": phi, "log_r": log_r, "log_w": log_w, "lam": lam}


def root_exists(log_w: Array, p: Array, target: float) -> Flags:
    """Whether G has a root or is nowhere negative, per start: ``sum_i p_i max_j log w_ij >= R^``.

    It holds at every step after a feasible one: a row's largest log w is at least its mean, and the mean
    is I(X;Y) - H(X).
    """
    reach: Flags = log_w.max(axis=-1) @ p >= target - ROOT_TOLERANCE
    return reach


def constraint_gap(base: Array, log_w: Array, lam: Array, p: Array, target: float) -> tuple[Array, Array]:
    """G and its slope at ``lam``: ``sum_i p_i E_i[log w] - R^`` and ``sum_i p_i Var_i(log w)`` (docs/errata.md).

    Row i's weights are ``exp(base + lam log w)``, base = phi + log r, (B, M, N). Both returned arrays are (B,).
    """
    tilt = _tilt(_shifted(base, log_w, lam), log_w, lam, p, target)
    return tilt.gap, _slope(tilt, log_w, p)


def solve_multiplier(base: Array, log_w: Array, p: Array, target: float, start: Array | None = None) -> Array:
    """The root of G over ``lam >= 0``, or 0 where ``G(0) >= 0``: safeguarded Newton, each start on its own.

    Parameters and the return are those of :func:`mapping`, with base = phi + log r, (B, M, N).
    """
    lam = np.zeros(len(base)) if start is None else np.array(start, dtype=np.float64)
    return _search(np.array(base), log_w, p, target, lam)[0]


def _tilt(base: Array, log_w: Array, lam: Array, p: Array, target: float, into: Tilt | None = None) -> Tilt:
    """Evaluate G at ``lam`` with one exp of an M x N array per start, in the buffers of ``into`` if given."""
    logits: Array = np.multiply(log_w, lam[:, None, None], out=None if into is None else into.logits)
    logits += base
    if logits.min() < FLOOR:
        np.maximum(logits, FLOOR, out=logits)  # an exp that underflows is six times as slow
    with np.errstate(over="ignore", invalid="ignore"):  # see _settle_rows
        weights: Array = np.exp(logits, out=None if into is None else into.weights)
        totals = np.maximum(weights @ np.ones(weights.shape[-1]), _TINY)
        means = np.vecdot(weights, log_w)
        return Tilt(logits, weights, totals, means, np.vecdot(p / totals, means) - target)


def _slope(tilt: Tilt, log_w: Array, p: Array) -> Array:
    """G' = sum_i p_i Var_i(log w), from the same exp."""
    spread = np.vecdot(tilt.weights * log_w, log_w)
    slope: Array = np.vecdot(p / tilt.totals, spread - tilt.means * (tilt.means / tilt.totals))
    return slope


def _shifted(base: Array, log_w: Array, lam: Array) -> Array:
    """Lower each row by its largest exponent at ``lam``, so that no row underflows to zero there."""
    top = np.multiply(log_w, lam[:, None, None])
    top += base
    shifted: Array = base - top.max(axis=-1, keepdims=True)
    return shifted


def _search(base: Array, log_w: Array, p: Array, target: float, lam: Array) -> tuple[Array, Tilt]:
    """Newton inside a bracket, on the starts still at work only.

    Rows of ``base`` may be shifted and ``lam`` is moved in place; returns lam and the rows at lam.
    """
    everyone = np.arange(lam.size)
    tilt = _settle_rows(_tilt(base, log_w, lam, p, target), base, log_w, lam, p, target)
    low, high = np.full_like(lam, -1.0), np.full_like(lam, np.inf)  # low < 0: nothing known yet
    work = everyone[_unsettled(lam, tilt.gap)]
    for _ in range(ROOT_LIMIT):
        if not work.size:
            break
        some = slice(None) if work.size == lam.size else work  # a slice of all copies nothing
        part = Tilt(*(field[some] for field in tilt))
        at, gap = lam[work], part.gap
        low[some] = np.where(gap < 0.0, at, low[some])
        high[some] = np.where(gap < 0.0, high[some], at)
        lam[some] = _newton(at, gap, _slope(part, log_w[some], p), low[some], high[some])
        tilt = _settle_rows(_refresh(tilt, base, log_w, lam, p, target, work), base, log_w, lam, p, target)
        moved = np.abs(lam[some] - at) > 1e-15 * at
        work = work[moved & _unsettled(lam[some], tilt.gap[some])]
    return lam, tilt


def _refresh(tilt: Tilt, base: Array, log_w: Array, lam: Array, p: Array, target: float, work: Indices) -> Tilt:
    """The rows of the starts in ``work`` at their new multiplier."""
    if work.size == lam.size:
        return _tilt(base, log_w, lam, p, target, into=tilt)
    for whole, part in zip(tilt, _tilt(base[work], log_w[work], lam[work], p, target), strict=True):
        whole[work] = part
    return tilt


def _settle_rows(tilt: Tilt, base: Array, log_w: Array, lam: Array, p: Array, target: float) -> Tilt:
    """Shift the starts that have a row near underflow or overflow, and evaluate them again."""
    totals = tilt.totals
    if totals.min() >= 1e-200 and totals.max() < 1e200:
        return tilt
    lost = np.flatnonzero((totals.min(axis=-1) < 1e-200) | ~(totals.max(axis=-1) < 1e200))
    base[lost] = _shifted(base[lost], log_w[lost], lam[lost])
    return _refresh(tilt, base, log_w, lam, p, target, lost)


def _newton(lam: Array, gap: Array, slope: Array, low: Array, high: Array) -> Array:
    """One safeguarded step: Newton where it stays inside (low, high) and above 0, else bisection, else doubling."""
    with np.errstate(over="ignore"):  # a flat G sends the step to infinity, which is outside
        step: Array = np.maximum(lam - gap / np.maximum(slope, _TINY), 0.0)
    inside = (step > low) & (step < np.minimum(high, 4.0 * lam + 1.0))
    if inside.all():
        return step
    middle = np.where(
        high < np.inf, 0.5 * (np.maximum(low, 0.0) + np.minimum(high, LARGEST_MULTIPLIER)), 2.0 * lam + 1.0
    )
    return np.where(inside, step, middle)


def _unsettled(lam: Array, gap: Array) -> Flags:
    at_zero = (lam == 0.0) & (gap >= -ROOT_TOLERANCE)
    unsettled: Flags = (np.abs(gap) > ROOT_TOLERANCE) & ~at_zero & (lam < LARGEST_MULTIPLIER)
    return unsettled


def _log_rows(tilt: Tilt, p: Array) -> Array:
    """log u = log p + logits - log of the row total, not below ``FLOOR``, in the logits' place."""
    log_u = tilt.logits
    log_u += np.log(p / tilt.totals)[..., None]
    if log_u.min() < FLOOR:
        np.maximum(log_u, FLOOR, out=log_u)
    return log_u


def _safe_log(mass: Array) -> Array:
    log: Array = np.log(np.maximum(mass, _TINY))
    return log
