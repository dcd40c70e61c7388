"""A Newton step of the privacy funnel that keeps every cell positive and every point feasible.

At a mechanism u, with a = S' log(T/r) the slope of I(S;Y) and log w that of I(X;Y), the step d minimises

    a . d + (1/2) sum_j d_j' H_j d_j   s.t.  row sums of d = 0,  log w . d = R - I(X;Y)  (or no such row if lam < 0),

    H_j = diag(e_j / u_j) + S' (diag(1/T_j) - c_j 11'/r_j) S.

I(X;Y) is convex in u, so a step along its tangent that gives up exactly the slack stays feasible, whatever its length,
and the convex-concave model (c = 1, e = reduced cost + damping) makes I(S;Y) fall. The Newton model (c = 1 - lam,
e = reduced cost + damping - lam) has the curvature of I(X;Y) too: quadratic near a strict optimum, but no descent is
promised, so a failed step falls back to the other model. Cells die at the rate of their reduced cost over the damping.

H_j is diagonal plus rank K; eliminating it leaves one (M+1)-square system per start. A `LineSearch`
finds the length of the step.
"""

from typing import NamedTuple

import numpy as np

from cvxpriv.numerics.arrays import Array, Flags, IntArray

from . import closed_form
from .closed_form import FLOOR

#: A column below this mass moves with almost no damping: what it does is not felt yet, and it may have to return.
LIGHT = 1e-6
_TINY = float(np.finfo(np.float64).tiny)
_LEAST_CELL = float(np.exp(FLOOR))
_LEAST_CURVATURE = 1e-12
_UNFELT = 1e-120  # smaller cells change no sum, and their products are subnormal: each costs a hundred times as much


class Point(NamedTuple):
    """A batch of mechanisms and the slopes of both informations there.

    `u`: (B, M, N). `share`: T / r, P(s | y), (B, K, N). `mass`: r, (B, N). `rise`: S' log(T/r), (B, M, N). `log_w`: (B,
    M, N).
    """

    u: Array
    share: Array
    mass: Array
    rise: Array
    log_w: Array


class Direction(NamedTuple):
    """A Newton step, with what the line search needs.

    `step`: d, (B, M, N). `lift`: The cheapest way, by the model, to raise I(X;Y), (B, M, N). `lam`: The model's
    multiplier, (B,). `slope`: a . d, (B,): at most 0 for a direction of descent.
    """

    step: Array
    lift: Array
    lam: Array
    slope: Array


def over_cells(left: Array, right: Array) -> Array:
    """``sum_ij left_ij right_ij`` per start, (B,): on small arrays a third of the time of product and sum."""
    return np.asarray(np.vecdot(left.reshape(len(left), -1), right.reshape(len(right), -1)))


def point(u: Array, s: Array) -> Point:
    """Slopes at u; the ratios T/r and w are taken column by column, so light columns are exact too."""
    mass = u.sum(axis=-2)
    w = u / mass[:, None, :]
    share = s @ w
    return Point(u, share, mass, s.T @ np.log(np.maximum(share, _TINY)), np.log(w))


def reduced_costs(at: Point, lam: Array) -> Array:
    """g_ij - alpha_i, (B, M, N): the Lagrangian's slopes without alpha_i, their mass-weighted mean in row i."""
    slopes = at.rise - lam[:, None, None] * at.log_w
    return np.asarray(slopes - (np.vecdot(at.u, slopes) / at.u.sum(axis=-1))[..., None])


def stationarity(at: Point, lam: Array) -> Array:
    """``sum_ij u_ij (g_ij - min_j' g_ij')`` (see ``kkt.py``) over the columns that are not light, (B,).

    A light column's posterior is arbitrary, and so are its slopes: how near a start is to its end they do not say.
    """
    slopes = at.rise - lam[:, None, None] * at.log_w
    live = (at.mass >= LIGHT)[:, None, :]
    least = np.where(live, slopes, np.inf).min(axis=-1, keepdims=True)
    return np.asarray(np.where(live, at.u * (slopes - least), 0.0).sum(axis=(-2, -1)))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def direction(at: Point, lam: Array, damping: Array, newton: Array, p: Array, s: Array, target: float) -> Direction:
    """The step of the module's model.

    `at`: The point.
    `lam`: The current multipliers, (B,), for reduced costs and for the Newton model.
    `damping`: Per start, (B,): curvature of a relative-entropy proximal term.
    `newton`: Per start, (B,), 1 for the Newton model and 0 for the convex-concave one.
    `p`, `s`, `target`: The problem.
    Returns: May hold non-finite entries where the model is singular; the line search then keeps the point.
    """
    inverse = _ColumnInverse(at, lam, damping, newton, s)
    by_rise, by_rate = inverse(at.rise), inverse(at.log_w)
    rows = np.stack([by_rise.sum(axis=-1) + p - at.u.sum(axis=-1), by_rate.sum(axis=-1)], axis=-1)
    matrix = inverse.schur()  # solved at a unit diagonal, regularised at the level of rounding
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.einsum("bii->bi", matrix)), _TINY))
    scaled = matrix * scale[:, :, None] * scale[:, None, :] + 1e-14 * np.eye(matrix.shape[-1])
    free, bound = np.moveaxis(_solve_each(scaled, rows * scale[..., None]) * scale[..., None], -1, 0)
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
        curvature = np.maximum(reduced_costs(at, lam), 0.0) + shift
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
        return np.asarray(scaled - self._diagonal * (self._s.T @ pulled))

    def schur(self) -> Array:
        """sum_j H_j^{-1}, (B, M, M)."""
        rows = np.arange(self._diagonal.shape[1])
        total = np.zeros((len(self._diagonal), rows.size, rows.size))
        for symbol, likely in enumerate(self._s):
            seen = self._s.T @ np.swapaxes(self._core[:, :, symbol], 1, 2)
            total -= likely[:, None] * (self._felt @ np.swapaxes(self._felt * seen, 1, 2))
        total[:, rows, rows] += self._diagonal.sum(axis=-1)
        return total


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
    return np.asarray(np.maximum(cells, _LEAST_CELL))


#: Largest rise of I(S;Y) in an accepted step: its own rounding.
RISE = 1e-14
#: Largest distance of I(X;Y) below R.
SHORTFALL = 1e-13
_SHORTEST = 0.01
_HALVINGS = 30
_LONGER = 4.0 ** np.arange(1, 7)


def value_of(u: Array, s: Array) -> Array:
    """-H(S|Y): I(S;Y) up to a constant, (B,)."""
    joint = s @ u
    mass = u.sum(axis=-2)
    return over_cells(joint, np.log(np.maximum(joint / mass[:, None, :], 1e-300)))


def rate_of(u: Array) -> tuple[Array, Array]:
    """``sum u log w``, (B,), and log w."""
    log_w = np.log(u / u.sum(axis=-2)[:, None, :])
    return over_cells(u, log_w), log_w


def feasible_rows(log_u: Array, p: Array, target: float) -> Array:
    """The rows tilted by their own log w until I(X;Y) >= R: the u block with phi + log r replaced by log u."""
    log_r = closed_form.marginal(log_u)
    tilted, _ = closed_form.mechanism(closed_form.posterior(log_u, log_r), log_r, log_u - log_r[:, None, :], p, target)
    return tilted


class LineSearch:
    """Backtracking, and lengthening, along a direction; cells lose at most 99% a step, so that none blocks the rest."""

    def __init__(self, at: Point, towards: Direction, p: Array, s: Array, target: float) -> None:
        self._at, self._towards = at, towards
        self._p, self._s, self._target = p, s, target
        self._before = value_of(at.u, s)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            worst = (towards.step / at.u).reshape(len(at.u), -1).min(axis=-1)
            self._room = np.minimum(1.0, 0.99 / np.maximum(-worst, 0.99))
        finite = np.isfinite(towards.step).all(axis=(-2, -1)) & np.isfinite(towards.lift).all(axis=(-2, -1))
        self._usable = finite & (towards.slope <= RISE)

    def run(self, newton: Array) -> tuple[Array, Array, Flags]:
        """The new u, the accepted length, 0 where none was, and whether one was accepted."""
        best, value, length = self._at.u.copy(), self._before.copy(), np.zeros(len(newton))
        fall = 1e-4 * np.minimum(self._towards.slope, 0.0)
        todo = np.flatnonzero(self._usable)
        # Lengths to try in turn: 1, then geometric from where no cell dies; 0 where too short.
        powers = np.where(newton > 0.0, 0.25, 0.5) ** np.arange(_HALVINGS)[:, None]
        ladder = np.concatenate([np.ones((1, len(newton))), np.clip(self._room, 0.1, 0.5) * powers])
        for tried in np.where(ladder >= _SHORTEST * self._room, ladder, 0.0):
            todo = todo[tried[todo] > 0.0]
            if not todo.size:
                break
            u, reached, feasible = self._trial(todo, tried[todo])
            good = feasible & (reached <= self._before[todo] + tried[todo] * fall[todo] + RISE)
            won = todo[good]
            best[won], value[won], length[won] = u[good], reached[good], tried[won]
            todo = todo[~good]
        # Four times the length while I(S;Y) falls: the convex-concave model is too cautious along a valley.
        work = np.flatnonzero((length == 1.0) & (newton == 0.0))
        for longer in _LONGER:
            if not work.size:
                break
            u, reached, feasible = self._trial(work, np.full(work.size, longer))
            good = feasible & (reached < value[work] - RISE)
            work = work[good]
            best[work], value[work], length[work] = u[good], reached[good], longer
        return best, length, length > 0.0

    def _trial(self, work: IntArray, length: Array) -> tuple[Array, Array, Flags]:
        """u + length d, the slack spent again along -lift: the new u, its value, and whether it is feasible."""
        old, lift = self._at.u[work], self._towards.lift[work]
        u = np.maximum(old + length[:, None, None] * self._towards.step[work], 0.01 * old)
        u = mechanism_of(u, self._p)
        value, (rate, log_w) = value_of(u, self._s), rate_of(u)
        # I(X;Y) is convex: giving up its excess along its tangent at u cannot make it infeasible.
        gain = over_cells(log_w, lift)
        spend = (rate - self._target) / np.where(gain > 0.0, gain, np.inf)
        spend = np.where((spend > 0.0) & (self._towards.lam[work] > 0.0), spend, 0.0)
        share = spend * (lift / u).reshape(len(u), -1).max(axis=-1)
        spend *= np.minimum(1.0, 0.9 / np.maximum(share, 0.9))
        spent = mechanism_of(u - spend[:, None, None] * lift, self._p)
        lower = value_of(spent, self._s)
        better = lower < value
        u = np.where(better[:, None, None], spent, u)
        return u, np.where(better, lower, value), rate_of(u)[0] >= self._target - SHORTFALL
