"""A Newton step of the privacy funnel that keeps every cell positive and every point feasible.

At a mechanism u, with a = S' log(T/r) the slope of I(S;Y) and log w that of I(X;Y), the step d minimises

    a . d + (1/2) sum_j d_j' H_j d_j   s.t.  row sums of d = 0,  log w . d = R - I(X;Y)  (or no such row if lam < 0),

    H_j = diag(e_j / u_j) + S' (diag(1/T_j) - c_j 11'/r_j) S.

I(X;Y) is convex in u, so a step along its tangent that gives up exactly the slack stays feasible, whatever its length,
and the convex-concave model (c = 1, e = reduced cost + damping) makes I(S;Y) fall. The Newton model (c = 1 - lam,
e = reduced cost + damping - lam) has the curvature of I(X;Y) too: quadratic near a strict optimum, but no descent is
promised, so a failed step falls back to the other model. Cells die at the rate of their reduced cost over the damping.

H_j is diagonal plus rank K; eliminating it leaves one (M+1)-square system per start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .closed_form import FLOOR, Array

LIGHT = 1e-6
"""A column below this mass moves with almost no damping: what it does is not felt yet, and it may have to return."""

_TINY = float(np.finfo(np.float64).tiny)
_LEAST_CELL = float(np.exp(FLOOR))
_LEAST_CURVATURE = 1e-12
_UNFELT = 1e-120  # smaller cells change no sum, and their products are subnormal: each costs a hundred times as much


class Point(NamedTuple):
    """A batch of mechanisms and the slopes of both informations there."""

    u: Array
    """(B, M, N)."""
    share: Array
    """T / r, P(s | y), (B, K, N)."""
    mass: Array
    """r, (B, N)."""
    rise: Array
    """S' log(T/r), (B, M, N)."""
    log_w: Array
    """(B, M, N)."""


class Direction(NamedTuple):
    """A Newton step, with what the line search needs."""

    step: Array
    """d, (B, M, N)."""
    lift: Array
    """The cheapest way, by the model, to raise I(X;Y): (B, M, N)."""
    lam: Array
    """The model's multiplier, (B,)."""
    slope: Array
    """a . d, (B,): at most 0 for a direction of descent."""


def over_cells(left: Array, right: Array) -> Array:
    """``sum_ij left_ij right_ij`` per start, (B,): on small arrays a third of the time of product and sum."""
    total: Array = np.vecdot(left.reshape(len(left), -1), right.reshape(len(right), -1))
    return total


def point(u: Array, s: Array) -> Point:
    """Slopes at u; the ratios T/r and w are taken column by column, so light columns are exact too."""
    mass = u.sum(axis=-2)
    w = u / mass[:, None, :]
    share = s @ w
    return Point(u, share, mass, s.T @ np.log(np.maximum(share, _TINY)), np.log(w))


def row_prices(at: Point, lam: Array) -> Array:
    """alpha_i, the mass-weighted mean of the Lagrangian's slopes in row i, (B, M)."""
    slopes = at.rise - lam[:, None, None] * at.log_w
    prices: Array = np.vecdot(at.u, slopes) / at.u.sum(axis=-1)
    return prices


def stationarity(at: Point, lam: Array) -> Array:
    """``sum_ij u_ij (g_ij - min_j' g_ij')`` (see ``kkt.py``) over the columns that are not light, (B,).

    A light column's posterior is arbitrary, and so are its slopes: how near a start is to its end they do not say.
    """
    slopes = at.rise - lam[:, None, None] * at.log_w
    live = (at.mass >= LIGHT)[:, None, :]
    least = np.where(live, slopes, np.inf).min(axis=-1, keepdims=True)
    value: Array = np.where(live, at.u * (slopes - least), 0.0).sum(axis=(-2, -1))
    return value


def direction(at: Point, lam: Array, damping: Array, newton: Array, p: Array, s: Array, target: float) -> Direction:
    """The step of the module's model.

    `at`: The point.
    `lam`: The current multipliers, (B,), for reduced costs and for the Newton model.
    `damping`: Per start, (B,): curvature of a relative-entropy proximal term.
    `newton`: Per start, (B,), 1 for the Newton model and 0 for the convex-concave one.
    `p`, `s`, `target`: The problem.
    Returns: May hold non-finite entries where the model is singular; the line search then keeps the point.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return _direction(at, lam, damping, newton, p, s, target)


def _direction(at: Point, lam: Array, damping: Array, newton: Array, p: Array, s: Array, target: float) -> Direction:
    inverse = _ColumnInverse(at, lam, damping, newton, s)
    by_rise, by_rate = inverse(at.rise), inverse(at.log_w)
    rows = np.stack([by_rise.sum(axis=-1) + p - at.u.sum(axis=-1), by_rate.sum(axis=-1)], axis=-1)
    free, bound = np.moveaxis(_solve_scaled(inverse.schur(), rows), -1, 0)
    lift = by_rate - inverse(np.broadcast_to(bound[..., None], at.u.shape))
    flat = inverse(np.broadcast_to(free[..., None], at.u.shape)) - by_rise
    slack = over_cells(at.u, at.log_w) - target
    multiplier = (-slack - over_cells(at.log_w, flat)) / over_cells(at.log_w, lift)
    multiplier = np.where(np.isfinite(multiplier) & (multiplier > 0.0), multiplier, 0.0)
    step = flat + multiplier[:, None, None] * lift
    return Direction(step, lift, multiplier, over_cells(at.rise, step))


class _ColumnInverse:
    """H_j^{-1} for all columns: ``D - D S' (I + Q G)^{-1} Q S D``, D = u/e, G = S D S', Q = diag(1/T) - c 11'/r."""

    def __init__(self, at: Point, lam: Array, damping: Array, newton: Array, s: Array) -> None:
        light = (at.mass < LIGHT)[:, None, :]
        shift = np.where(light, np.minimum(damping, LIGHT)[:, None, None], (damping - newton * lam)[:, None, None])
        reduced = at.rise - lam[:, None, None] * at.log_w - row_prices(at, lam)[..., None]
        curvature = np.maximum(reduced, 0.0) + shift
        curvature = np.where(np.abs(curvature) < _LEAST_CURVATURE, _LEAST_CURVATURE, curvature)
        share = np.where(light[:, 0], 1.0, 1.0 - (newton * lam)[:, None])
        self._s = s
        self._diagonal = at.u / curvature
        self._felt = np.where(at.u < _UNFELT, 0.0, self._diagonal)
        count, symbols = len(at.u), len(s)
        # Per column, T and the Gram matrix are taken relative to r: light columns are as well scaled as heavy ones.
        pairs = (s[:, None, :] * s[None, :, :]).reshape(symbols * symbols, -1)
        gram = np.swapaxes(pairs @ (self._felt / at.mass[:, None, :]), 1, 2).reshape(count, -1, symbols, symbols)
        kernel = np.zeros_like(gram)
        kernel[..., np.arange(symbols), np.arange(symbols)] = 1.0 / np.maximum(np.swapaxes(at.share, 1, 2), _TINY)
        kernel -= share[..., None, None]
        core = _solve_each(np.eye(symbols) + kernel @ gram, kernel)
        self._core = core / at.mass[..., None, None]

    def __call__(self, cells: Array) -> Array:
        scaled = self._diagonal * cells
        seen = np.swapaxes(self._s @ scaled, 1, 2)[..., None]
        pulled = np.swapaxes((self._core @ seen)[..., 0], 1, 2)
        result: Array = scaled - self._diagonal * (self._s.T @ pulled)
        return result

    def schur(self) -> Array:
        """sum_j H_j^{-1}, (B, M, M)."""
        rows = np.arange(self._diagonal.shape[1])
        total = np.zeros((len(self._diagonal), rows.size, rows.size))
        for symbol, likely in enumerate(self._s):
            seen = self._s.T @ np.swapaxes(self._core[:, :, symbol], 1, 2)
            total -= likely[:, None] * (self._felt @ np.swapaxes(self._felt * seen, 1, 2))
        total[:, rows, rows] += self._diagonal.sum(axis=-1)
        return total


def _solve_scaled(matrix: Array, right: Array) -> Array:
    """Solve per start, scaled to a unit diagonal and regularised at the level of rounding."""
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.einsum("bii->bi", matrix)), _TINY))
    scaled = matrix * scale[:, :, None] * scale[:, None, :] + 1e-14 * np.eye(matrix.shape[-1])
    solution: Array = _solve_each(scaled, right * scale[..., None]) * scale[..., None]
    return solution


def _solve_each(matrix: Array, right: Array) -> Array:
    """Solve a stack of systems; by pseudo-inverse where one of them is exactly singular."""
    matrix, right = np.nan_to_num(matrix), np.nan_to_num(right)
    try:
        solution = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        solution = np.linalg.pinv(matrix) @ right
    return np.asarray(solution)


def mechanism_of(cells: Array, p: Array) -> Array:
    """Cells made positive and rows made to sum to p."""
    cells = cells * (p / cells.sum(axis=-1))[..., None]
    positive: Array = np.maximum(cells, _LEAST_CELL)
    return positive
