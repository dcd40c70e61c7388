"""Divergences whose f is made of straight pieces (total variation, hockey-stick): the scalar equations in closed form.

Both equations have a left side that rises along straight pieces and jumps at the kinks. Such a root is a sum over the
pieces: the part of each that lies below the level. A row's nu is found among the levels where a cell enters or leaves
a piece.
"""

from functools import lru_cache

import numpy as np

from cvxpriv.divergences import FDivergence
from cvxpriv.numerics.arrays import Array

#: Distance beside a kink at which the slopes of its two pieces are read.
BESIDE = 1e-6
#: The same, relative, where f need not be straight beside it.
BESIDE_HINGE = 1e-9


class Pieces:
    """The pieces of f in t, from 0 to infinity.

    `kinks`, (K,): Rising.
    `slopes`, (K + 1,): f' on each piece.
    `intercepts`, (K + 1,): f(t) - t f'(t) on each piece: f_x.
    """

    def __init__(self, divergence: FDivergence) -> None:
        self.kinks = np.array(sorted(divergence.kinks), dtype=float)
        inside = np.concatenate([self.kinks * (1.0 - BESIDE), self.kinks[-1:] * (1.0 + BESIDE)])
        self.slopes = divergence.derivative(inside)
        self.intercepts = np.asarray(divergence.f(inside)) - inside * self.slopes


@lru_cache(maxsize=64)
def pieces_of(divergence: FDivergence) -> Pieces | None:
    """Return the pieces of a kinked f that is straight between its kinks, else None."""
    if divergence.smooth:
        return None
    pieces = Pieces(divergence)
    t = np.geomspace(1e-3, 1e3, 401)
    piece = np.searchsorted(pieces.kinks, t)
    line = pieces.intercepts[piece] + t * pieces.slopes[piece]
    return pieces if np.allclose(divergence.f(t), line, rtol=1e-12, atol=1e-12) else None


class Hinges:
    """The kinks of f apart from it: f less sum_k rise_k (1 - t/kink_k)_+ has a continuous slope.

    `kinks`, `rises`, (K,): The last are by how much f - t f' is more just below a kink.
    `straight`: Whether nothing that bends is left.
    """

    def __init__(self, divergence: FDivergence) -> None:
        self.divergence, self.kinks = divergence, np.array(sorted(divergence.kinks), dtype=float)
        beside = np.array([1.0 - BESIDE_HINGE, 1.0 + BESIDE_HINGE])[:, None] * self.kinks
        low, high = np.asarray(divergence.derivative(beside))
        self.rises = self.kinks * np.maximum(high - low, 0.0)
        self.straight = pieces_of(divergence) is not None

    def plane(self, t: Array) -> tuple[Array, Array]:
        """Return f - t f' and f' of the rest at t, or beside a kink that t is at."""
        for kink in self.kinks:
            t = np.where(np.abs(t - kink) <= BESIDE_HINGE * kink, kink * (1.0 + BESIDE_HINGE), t)
        below = self.rises * (t[..., None] < self.kinks)
        slope = np.asarray(self.divergence.derivative(t))
        intercept = np.asarray(self.divergence.f(t)) - t * slope
        return intercept - below.sum(axis=-1), slope + (below / self.kinks).sum(axis=-1)

    def lines(self, ratios: Array) -> Array:
        """Return the lines whose positive parts the kinks cost, (|Y|, W K), for lines of ratios, (|Y|, W)."""
        return np.asarray((ratios[:, :, None] - 1.0 / self.kinks).reshape(len(ratios), -1))


def row_roots(pieces: Pieces, level: Array, q: Array, weight: Array | float, beta: float) -> Array:
    """The root x >= 0 of beta f_x(x, q) + weight x = level; shapes broadcast."""
    ends = [np.inf, *(q / kink for kink in pieces.kinks), np.zeros_like(q)]
    x = np.zeros(np.broadcast_shapes(np.shape(level), np.shape(q)))
    for intercept, upper, lower in zip(pieces.intercepts, ends[:-1], ends[1:], strict=True):
        x += np.clip((level - beta * intercept) / weight, lower, upper) - lower
    return x


def simplex_rows(pieces: Pieces, kappa: Array, q: Array, weight: float, beta: float, floor: float) -> Array:
    """The rows x >= floor, (B, |U|), with beta f_x(x, q) + weight x = kappa - nu wherever x > floor, and sum x = 1.

    As nu falls, a cell grows along one piece after the other; between two levels where a cell enters or leaves a
    piece, the row's sum grows straight.
    """
    cap = np.maximum(1.0 - (kappa.shape[-1] - 1) * floor, floor)
    ends = np.stack([np.full_like(q, np.inf), *(q / kink for kink in pieces.kinks), np.zeros_like(q)], axis=-2)
    ends = np.clip(ends, floor, cap)
    upper, lower = ends[..., :-1, :], ends[..., 1:, :]
    level = kappa[..., None, :] - beta * pieces.intercepts[:, None]
    events = np.concatenate([level - weight * lower, level - weight * upper], axis=-2).reshape(len(kappa), -1)
    signs = np.broadcast_to(np.repeat([1, -1], upper[0].size), events.shape)
    order = (-events).argsort(axis=-1, kind="stable")
    events = np.take_along_axis(events, order, axis=-1)
    growing = np.cumsum(np.take_along_axis(signs, order, axis=-1), axis=-1)
    mass = np.cumsum(growing[:, :-1] * (events[:, :-1] - events[:, 1:]), axis=-1) / weight
    room = 1.0 - kappa.shape[-1] * floor
    mass = np.concatenate([np.zeros((len(kappa), 1)), mass], axis=-1)
    at = np.maximum((mass < room).sum(axis=-1, keepdims=True) - 1, 0)
    start, reached, count = (np.take_along_axis(one, at, axis=-1) for one in (events, mass, growing))
    nu = start - weight * (room - reached) / np.maximum(count, 1)
    x = np.clip((level - nu[..., None]) / weight, lower, upper)
    moving = ((x > lower) & (x < upper)).any(axis=-2)
    x = (x - lower).sum(axis=-2) + floor
    missing = 1.0 - x.sum(axis=-1, keepdims=True)  # what rounding in nu left
    return np.asarray(np.maximum(x + missing * moving / np.maximum(moving.sum(axis=-1, keepdims=True), 1), floor))


def marginal_roots(pieces: Pieces, mechanism: Array, level: Array, p_y: Array, beta: float, rho: float) -> Array:
    """The root q >= 0 of beta sum_y p(y) f_q(p(u|y), q) + rho q = level, (B, |U|)."""
    at = np.concatenate([kink * mechanism for kink in pieces.kinks], axis=-2)
    jumps = np.concatenate([jump * p_y for jump in np.diff(pieces.slopes)])
    order = at.argsort(axis=-2)
    ends = np.take_along_axis(at, order, axis=-2)
    risen = pieces.slopes[0] + np.cumsum(jumps[order], axis=-2)
    lower = np.concatenate([np.zeros_like(ends[..., :1, :]), ends], axis=-2)
    upper = np.concatenate([ends, np.full_like(ends[..., :1, :], np.inf)], axis=-2)
    slope = np.concatenate([np.full_like(ends[..., :1, :], pieces.slopes[0]), risen], axis=-2)
    reached = np.clip((level[..., None, :] - beta * slope) / rho, lower, upper)
    return np.asarray((reached - lower).sum(axis=-2))
