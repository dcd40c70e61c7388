"""Residuals of the whole problem IAS (1), and a certified gap for the joint problem (10). No solver is trusted.

With m = P_Y' P(U|Y) and D from a posterior P(S|U),

    s_yu = -beta f_x(p_yu, m_u) - beta sum_y' p(y') f_q(p_y'u, m_u) - D_yu

is the derivative of F in p_yu, divided by p(y). At the mechanism's own posterior a mechanism is a first-order point of
(1) iff for some nu every |min(p - floor, nu_y - s_yu)| is 0. F is concave for a given posterior, so that its optimum
over mechanisms is at most

    F + sum_y p(y) [(1 - |U| floor) max_u s + floor sum_u s - sum_u p s],

whatever solver, or none, the mechanism comes from. Any tangents of f give such a bound: at a kink the best ones between
the one-sided derivatives are taken (`joint` where f is made of straight pieces), at a symbol that is
never sent the best ones there are (`unused_symbols`).

Where cells stand at kinks of f the best subgradient is a linear program for each start. At q/p = kink every b between
the one-sided f' belongs to a tangent of p f(q/p): f_x = f - kink b and f_q = b. Its choice moves the cell's own s one
way and every s of its column the other way. A mechanism is a first-order point iff some choice makes it one, and that
is the choice that minimises the bound on F. The tangent holds for all p and q: a bound may take it at cells that stand
elsewhere, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import block_array, csr_array, diags_array, eye_array, kron

from cvxpriv.bounds import linear_pieces
from cvxpriv.divergences.sides import TINY, slopes_of
from cvxpriv.numerics.arrays import Array, worst

from . import closed_form, joint, measures
from .problem import Problem
from .simplex_rows import jump_at, row_roots


class Kinks(NamedTuple):
    """Cells at kinks, arrays (B, |Y|, |U|) each.

    `distance` is |p - q/kink| to the nearest kink; `fall` is by how much f' is less on its left; `rise` is by how much
    f_x is more there.
    """

    near: npt.NDArray[np.bool_]
    distance: Array
    in_x: Array
    in_q: Array
    fall: Array
    rise: Array


def kinks_near(problem: Problem, mechanism: Array, within: float) -> Kinks:
    """Return the cells at most `within` from a kink, with the derivatives f_x and f_q from the right of it."""
    m = (problem.p_y @ mechanism)[..., None, :]
    kinks = np.array(problem.divergence.kinks, dtype=float)
    sides = np.array([jump_at(problem.divergence, kink) for kink in kinks])
    value = np.asarray(problem.divergence.f(kinks))
    distance = np.abs(mechanism[..., None] - m[..., None] / kinks)
    which = distance.argmin(axis=-1)
    nearest = np.take_along_axis(distance, which[..., None], axis=-1)[..., 0]
    right, rise = (value - sides[:, 0]) / kinks, sides[:, 1] - sides[:, 0]
    return Kinks(
        (nearest <= within) & (m > 0.0), nearest, sides[which, 0], right[which], (rise / kinks)[which], rise[which]
    )


def least_at_kinks(problem: Problem, kinks: Kinks, s: Array) -> Array:
    """Return s with f' at kinks chosen so that sum_y p(y) [(1 - |U| floor) max_u s + floor sum_u s] is least.

    `s`, (B, |Y|, |U|): Slopes, with the derivative from the right at kinks; NaN at symbols that are never sent, which
    stay.
    """
    result = s.copy()
    for start in np.flatnonzero(kinks.near.any(axis=(1, 2))):
        result[start] += _least(problem, kinks.near[start], s[start], kinks.fall[start], kinks.rise[start])
    return result


def _least(problem: Problem, near: Array, s: Array, fall: Array, rise: Array) -> Array:
    """The best change of s, (|Y|, |U|), over each cell's share fallen, each column's rise and each row's highest s."""
    n_y, n_u = s.shape
    if np.isposinf(s).any():
        return np.zeros_like(s)
    live = np.flatnonzero(s.ravel() > -np.inf)  # a symbol that excludes an s of the row is never its highest
    own = diags_array((-problem.beta * rise * near).ravel())
    column = kron(np.ones((n_y, 1)), eye_array(n_u))
    highest = kron(eye_array(n_y), np.ones((n_u, 1)))
    shares = problem.beta * problem.p_y[:, None] * fall * near
    summed = csr_array(kron(np.ones((1, n_y)), eye_array(n_u)) @ diags_array(shares.ravel()))
    change = csr_array(block_array([[own, column]]))
    price = np.zeros(n_y * n_u)
    price[live] = np.repeat(problem.p_y, n_u)[live] * problem.floor
    cost = np.concatenate([change.T @ price, (1.0 - n_u * problem.floor) * problem.p_y])
    bounds: list[tuple[float | None, float | None]] = [(0.0, 1.0)] * (n_y * n_u) + [(None, None)] * (n_u + n_y)
    found = linprog(  # type: ignore[call-overload]
        cost,
        csr_array(block_array([[own, column, -highest]]))[live],
        -s.ravel()[live],
        csr_array(block_array([[summed, -eye_array(n_u), csr_array((n_u, n_y))]])),
        np.zeros(n_u),
        bounds=bounds,
        method="highs",
    )
    if found.x is None:
        return np.zeros_like(s)
    share = np.clip(found.x[: n_y * n_u], 0.0, 1.0)
    return np.asarray(own @ share + column @ (summed @ share)).reshape(s.shape)


#: A bound takes the tangent of an empty cell at this share of p(u) instead of 0, where it may be vertical.
EMPTY = 1e-13
#: A cell this near to q/kink counts as standing at the kink; an exact update puts it there to the second.
AT_KINK, AT_ONCE = 1e-6, 1e-11


@dataclass(frozen=True)
class ServiceResiduals:
    """Residuals of IAS (1), one entry per start, (B,).

    `stationarity`: max_yu |min(p - floor, nu_y - s_yu)| over the symbols that are sent, nu the best one for each row.
    `feasibility`: The worst row sum, or cell below the floor.
    `unused`: Symbols that no row sends. F has no derivative there, and they are left out of `stationarity`: a mechanism
    is judged among those on the symbols that it uses.
    """

    stationarity: Array
    feasibility: Array
    unused: npt.NDArray[np.intp]

    @property
    def largest(self) -> Array:
        """The larger of the two, (B,)."""
        return np.maximum(self.stationarity, self.feasibility)

    def of(self, start: int) -> PointResiduals:
        """Return one start's."""
        return PointResiduals(float(self.stationarity[start]), float(self.feasibility[start]), int(self.unused[start]))


@dataclass(frozen=True)
class PointResiduals:
    """Residuals of IAS (1) at one mechanism, in nats; see `ServiceResiduals`."""

    stationarity: float
    feasibility: float
    unused: int

    @property
    def largest(self) -> float:
        """The larger of stationarity and feasibility."""
        return worst((self.stationarity, self.feasibility))


def slopes(problem: Problem, mechanism: Array, posterior: Array, kinks: Kinks | None = None) -> Array:
    """s_yu, (B, |Y|, |U|): exact limits at empty cells, NaN at symbols that are never sent.

    It is inf where f_x falls to -inf at an empty cell, as that of -log t does: such a cell is never optimal. It is -inf
    where D is infinite. At the cells of `kinks` the derivative is that from the right of the kink.
    """
    p_y, beta = problem.p_y, problem.beta
    m = (p_y @ mechanism)[..., None, :]
    with np.errstate(all="ignore"):
        in_x, _ = slopes_of(problem.divergence).in_x(mechanism, m)
        in_q, _ = slopes_of(problem.divergence).in_q(mechanism, m)
        if kinks is not None:
            in_x, in_q = np.where(kinks.near, kinks.in_x, in_x), np.where(kinks.near, kinks.in_q, in_q)
        price = closed_form.cost(posterior, problem.p_s_given_y)
        s = np.where(np.isinf(price), -np.inf, -beta * (in_x + (p_y @ in_q)[..., None, :]) - price)
    return np.asarray(np.where(m > 0.0, s, np.nan))


def residuals(problem: Problem, mechanism: Array) -> ServiceResiduals:
    """Residuals of IAS (1) at mechanisms (B, |Y|, |U|), or one (|Y|, |U|), each at its own posterior (9).

    A cell near a kink of f counts as standing there, and its distance as a residual: near is `AT_KINK`, or `AT_ONCE`
    where that leaves less.
    """
    mechanism = np.asarray(mechanism, dtype=float).reshape(-1, problem.p_y.size, problem.size_u)
    own = closed_form.posterior(mechanism, problem.p_y, problem.p_s_given_y)
    s, beside = _chosen_slopes(problem, mechanism, own, AT_KINK)
    room = mechanism - problem.floor
    stationarity = np.maximum(_stationarity(room, s), beside)
    if (close := np.flatnonzero(np.greater(beside, AT_ONCE))).size:
        nearer, beside = _chosen_slopes(problem, mechanism[close], own[close], AT_ONCE)
        stationarity[close] = np.minimum(stationarity[close], np.maximum(_stationarity(room[close], nearer), beside))
    return ServiceResiduals(
        stationarity,
        np.maximum(np.abs(mechanism.sum(axis=-1) - 1.0).max(axis=-1), np.maximum(-room, 0.0).max(axis=(-2, -1))),
        np.isnan(s).all(axis=-2).sum(axis=-1),
    )


def joint_gap(problem: Problem, mechanism: Array, posterior: Array) -> Array:
    """Return a certified bound of how far F of (10) at `mechanism` is below its optimum at `posterior`, (B,).

    `mechanism`: (B, |Y|, |U|). `posterior`: (B, |S|, |U|).
    """
    pieces = linear_pieces.pieces_of(problem.divergence)
    if pieces is not None:
        return joint.joint_gap(problem, pieces, mechanism, posterior)
    inside = np.maximum(mechanism, EMPTY * (problem.p_y @ mechanism)[..., None, :])
    s, _ = _chosen_slopes(problem, inside, posterior, AT_KINK)
    if np.isnan(s).any():
        s = least_unused(problem, s, posterior)
    room = 1.0 - problem.size_u * problem.floor
    best = room * s.max(axis=-1)
    if problem.floor > 0.0:  # without one s may be -inf, where a symbol excludes an s
        best = best + problem.floor * s.sum(axis=-1)
    reached = measures.surrogate(
        mechanism, posterior, problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence
    )
    information = measures.information(problem.p_y, problem.p_s_given_y)
    return np.asarray(best @ problem.p_y + information - reached)


def _chosen_slopes(problem: Problem, mechanism: Array, posterior: Array, within: float) -> tuple[Array, Array | float]:
    """s with the best derivatives at kinks, and how far cells that count as standing at one are from it."""
    if not problem.divergence.kinks:
        return slopes(problem, mechanism, posterior), 0.0
    kinks = kinks_near(problem, mechanism, within)
    s = least_at_kinks(problem, kinks, slopes(problem, mechanism, posterior, kinks))
    return s, np.where(kinks.near, kinks.distance, 0.0).max(axis=(-2, -1))


def _stationarity(room: Array, s: Array) -> Array:
    """max_y min_nu max_u |min(room, nu - s)|, (B,).

    With nu = max s - e the highest cell needs e, and every other one e >= min(room, (max s - s)/2).
    """
    top = np.nanmax(s, axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        behind = np.where(s == top, 0.0, top - s)
    needed = np.where(np.isnan(s), 0.0, np.minimum(np.abs(room), 0.5 * behind))
    return np.asarray(needed.max(axis=(-2, -1)))


#: Keeps w finite where f_x is bounded from above; the tangents at such a w hold all the same.
WEIGHT, LIMIT = 1e-9, 200


def least_unused(problem: Problem, s: Array, posterior: Array) -> Array:
    """Return s, (B, |Y|, |U|), with its NaN columns filled by the least slopes that bound F."""
    result = s.copy()
    start, symbol = np.nonzero(np.isnan(s).any(axis=-2))
    price = closed_form.cost(posterior, problem.p_s_given_y)[start, :, symbol]
    d = np.minimum(price, np.finfo(float).max)
    w = np.maximum(_first_drops(problem, np.nanmax(s, axis=-1)[start], d), TINY)
    slopes, one = slopes_of(problem.divergence), np.ones_like(w)
    with np.errstate(all="ignore"):
        in_x, in_q = slopes.in_x(w, one)[0], slopes.in_q(w, one)[0]
    result[start, :, symbol] = -problem.beta * (in_x + (in_q @ problem.p_y)[:, None]) - d
    return result


def _first_drops(problem: Problem, bar: Array, d: Array) -> Array:
    """The w = p/q of n symbols, (n, |Y|), from their D_y and the rows' bars, (n, |Y|) each: sum_y p(y) w_y = 1."""
    one = np.ones_like(d)
    with np.errstate(all="ignore"):
        flat = -(bar + d) - problem.beta * slopes_of(problem.divergence).in_x(one, one)[0]
        # w >= 1 everywhere, w <= 1 everywhere
        low, high = flat.min(axis=-1, keepdims=True) - 1.0, flat.max(axis=-1, keepdims=True) + 1.0
        for _ in range(LIMIT):
            middle = 0.5 * (low + high)
            w = row_roots(problem.divergence, -(bar + d) - middle, one, WEIGHT, problem.beta)
            above = (w @ problem.p_y)[:, None] > 1.0
            low, high = np.where(above, middle, low), np.where(above, high, middle)
            if (high - low <= 1e-15 * np.maximum(np.abs(low), np.abs(high))).all():
                break
    return w
