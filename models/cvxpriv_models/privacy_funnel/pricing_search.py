"""Local pricing: down phi on faces from many starts, and for two private symbols to the least value on every edge.

At fixed P(S|y) with |S| = 2 the priced function is concave in the posterior, so a best posterior has at most two
symbols i, j. On the edge ``(1 - x) e_i + x e_j``, with a = P(S=1|X), t = a_i + d x and d = a_j - a_i,

    phi(x) = -h(t) + lam h(x) - (1 - x) nu_i - x nu_j,      phi'' = d^2 / (t (1 - t)) - lam / (x (1 - x)),

whose sign is that of a quadratic: concave, convex, concave. The least value is at an end or at the one root of phi'
in the convex stretch. Everything is computed in z = logit(x), which keeps both x and 1 - x to full precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from scipy.special import expit, xlogy

from cvxpriv.numerics.arrays import Array, Flags, IntArray, parts

STEPS = 60
#: The largest |logit|: x = 1e-304.
FARTHEST = 700.0
#: Rounding error of phi and of phi' per unit of their largest term: under a hundred operations of 2.2e-16 each.
ROUNDING = 2e-14


def edge_minima(
    a: Array, lam: float, nu: Array, first: IntArray, second: IntArray
) -> tuple[IntArray, Array, Array, float]:
    """Minimise phi inside edges.

    `a`: P(S=1|X).
    `lam`: The multiplier of the rate, >= 0.
    `nu`: The multipliers of P(X).
    `first`, `second`: The edges.
    Returns: The inner minima: the symbols of each edge that has one, (n, 2); their probabilities, (n, 2), each exact
    where it is next to 0; and phi there, (n,). Last a number that phi on no edge is below, rounding included; vertices
    are not edges.
    """
    low, high, some = _convex_stretch(a[first], a[second], lam)
    supports, low, high = np.stack([first, second])[:, some], low[some], high[some]
    edge = _Edges(a[supports], lam, nu[supports])
    inside = (edge.slope(low) < 0.0) & (edge.slope(high) > 0.0)
    supports = supports[:, inside]
    edge = _Edges(a[supports], lam, nu[supports])
    z = edge.root(low[inside], high[inside])
    value, slope = edge.value(z), edge.slope(z)
    # A tangent at z bounds phi on the whole convex stretch, whose length is at most 1; outside of it phi is concave.
    margin = ROUNDING * (1.0 + np.abs(nu).max(initial=0.0) + lam) + ROUNDING * (1.0 + lam) * np.abs(z)
    least = float((value - np.abs(slope) - margin).min(initial=np.inf))
    return supports.T, np.stack([expit(-z), expit(z)], axis=1), value, least


def _convex_stretch(a_i: Array, a_j: Array, lam: float) -> tuple[Array, Array, Flags]:
    """Ends of the convex stretch in logits, and whether there is one.

    With odds w = x / (1 - x) the quadratic is ``lam a_j (1 - a_j) w^2 - (d^2 - lam m) w + lam a_i (1 - a_i) < 0``,
    m = a_i (1 - a_j) + a_j (1 - a_i).
    """
    d = a_j - a_i
    square, constant = lam * a_j * (1.0 - a_j), lam * a_i * (1.0 - a_i)
    middle = d * d - lam * (a_i * (1.0 - a_j) + a_j * (1.0 - a_i))
    discriminant = middle * middle - 4.0 * square * constant
    some = (middle > 0.0) & (discriminant > 0.0)
    larger = 0.5 * (middle + np.sqrt(np.maximum(discriminant, 0.0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = np.log(constant / larger), np.log(larger / square)
    return np.clip(low, -FARTHEST, FARTHEST), np.clip(high, -FARTHEST, FARTHEST), some


@dataclass(frozen=True)
class _Edges:
    """Edges with both ends' a and nu, (2, n)."""

    a: Array
    lam: float
    nu: Array

    def _mixed(self, z: Array) -> tuple[Array, Array, Array, Array]:
        """Return x, 1 - x, t, 1 - t, each a sum of positive terms."""
        x, y = expit(z), expit(-z)
        return x, y, self.a[0] * y + self.a[1] * x, (1.0 - self.a[0]) * y + (1.0 - self.a[1]) * x

    def value(self, z: Array) -> Array:
        x, y, t, u = self._mixed(z)
        concave = -self.lam * (xlogy(x, x) + xlogy(y, y))
        return np.asarray(xlogy(t, t) + xlogy(u, u) + concave - y * self.nu[0] - x * self.nu[1])

    def slope(self, z: Array) -> Array:
        _, _, t, u = self._mixed(z)
        return np.asarray((self.a[1] - self.a[0]) * (np.log(t) - np.log(u)) - self.lam * z - (self.nu[1] - self.nu[0]))

    def root(self, low: Array, high: Array) -> Array:
        """The root of the slope, which rises on the stretch: Newton's method in z inside a shrinking bracket."""
        z = 0.5 * (low + high)
        for _ in range(STEPS):
            slope, (x, y, t, u) = self.slope(z), self._mixed(z)
            low, high = np.where(slope <= 0.0, z, low), np.where(slope >= 0.0, z, high)
            rise = (self.a[1] - self.a[0]) ** 2 * x * y / (t * u) - self.lam
            step = np.divide(slope, rise, out=np.full_like(slope, np.inf), where=rise > 0.0)
            inside = (z - step > low) & (z - step < high)
            moved = np.where(inside, z - step, 0.5 * (low + high))
            if np.abs(moved - z).max(initial=0.0) <= 1e-14 * max(1.0, np.abs(z).max(initial=0.0)):
                return moved
            z = moved
        return z


TINY = float(np.finfo(np.float64).tiny)
#: Newton's method ends with a step that gains less than this everywhere, nats.
SETTLED = 1e-13


#: A weight below this leaves the support.
LEAST_WEIGHT = 1e-14


@dataclass(frozen=True)
class FaceFunction:
    """phi(pi) = -H(A pi) + lam H(pi) - nu.pi on faces, one per row.

    `a`: P(S|X) of each face's symbols.
    """

    a: Array
    lam: float
    nu: Array

    @classmethod
    def on(cls, p_s_given_x: Array, lam: float, nu: Array, supports: IntArray) -> FaceFunction:
        """The function on the faces that `supports` lists, (n, F)."""
        return cls(p_s_given_x[:, supports].transpose(1, 0, 2), lam, nu[supports])

    def private(self, w: Array) -> Array:
        """A pi, (n, |S|)."""
        return np.asarray(np.einsum("nsf,nf->ns", self.a, w))

    def value(self, w: Array) -> Array:
        """phi, (n,)."""
        t = self.private(w)
        return np.asarray(xlogy(t, t).sum(axis=1) - self.lam * xlogy(w, w).sum(axis=1) - (self.nu * w).sum(axis=1))

    def slopes(self, w: Array) -> Array:
        """A' log t - lam log pi - nu, (n, F): the gradient without its constant; its mean under pi is phi."""
        log_t = np.log(np.maximum(self.private(w), TINY))
        return np.asarray(np.einsum("nsf,ns->nf", self.a, log_t) - self.lam * np.log(np.maximum(w, TINY)) - self.nu)


def descend(slopes: Callable[[Array], Array], w: Array, steps: int = 30) -> Array:
    """Exponentiated gradient, ``w <- w exp(-eta g)``, with a step per start that grows and shrinks.

    `slopes`: Maps posteriors (n, F) to the gradient of phi, (n, F), whose mean under each is phi.
    `w`, (n, F): Where to start.
    Returns (n, F): phi there is never above where it started.
    """
    g = slopes(w)
    value, eta = np.sum(w * g, axis=1), np.ones(len(w))
    for _ in range(steps):
        trial = w * np.exp(np.maximum(-eta[:, None] * (g - g.min(axis=1, keepdims=True)), -50.0))
        trial /= trial.sum(axis=1, keepdims=True)
        steep = slopes(trial)
        new = np.sum(trial * steep, axis=1)
        better = new < value
        w, g = np.where(better[:, None], trial, w), np.where(better[:, None], steep, g)
        value, eta = np.where(better, new, value), np.where(better, 1.5 * eta, 0.3 * eta)
    return w


def newton(function: FaceFunction, w: Array, steps: int = 6) -> Array:
    """Newton's method on each face from w, (n, F), kept inside it; a step is taken only where phi falls."""
    value, size = function.value(w), w.shape[1]
    if size == 1:
        return w
    basis = np.vstack([np.eye(size - 1), -np.ones(size - 1)])
    for _ in range(steps):
        t = np.maximum(function.private(w), TINY)
        hessian = np.einsum("nsf,ns,nsg->nfg", function.a, 1.0 / t, function.a)
        hessian[:, np.arange(size), np.arange(size)] -= function.lam / np.maximum(w, LEAST_WEIGHT)
        inner = basis.T @ hessian @ basis
        slope = function.slopes(w) @ basis
        inner[:, np.arange(size - 1), np.arange(size - 1)] += 1e-13 * np.abs(inner).max(axis=(1, 2))[:, None] + TINY
        try:
            move = -np.linalg.solve(inner, slope[:, :, None])[:, :, 0] @ basis.T
        except np.linalg.LinAlgError:
            break
        move[~np.isfinite(move).all(axis=1)] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(move < 0.0, -w / move, np.inf).min(axis=1)
        trial = np.maximum(w + np.minimum(1.0, 0.9 * room)[:, None] * move, 0.0)
        trial /= trial.sum(axis=1, keepdims=True)
        new = function.value(trial)
        better, gain = new < value, float((value - new).max())
        w, value = np.where(better[:, None], trial, w), np.where(better, new, value)
        if gain <= SETTLED:
            break
    return w


Found: TypeAlias = tuple[IntArray, Array]

#: Starts spread over the simplex.
SCATTERED = 100
#: Starts between two columns in use whose P(S|y) are near.
MIXED = 200
#: Starts at a column in use, with some weight for every symbol.
OPENED = 100
#: Parameter of the Dirichlet distribution of scattered weights: a few symbols hold most of it.
SPARSE = 0.05
#: Share of chance in the choice of a near column, in the distance between two P(S|y).
FAR = 0.3
#: Steps over the whole simplex, and as many on the face.
WIDE_STEPS = 15


def wide_search(a: Array, lam: float, nu: Array, active: Array, rng: np.random.Generator) -> Iterator[Found]:
    """Search phi(pi) = -H(A pi) + lam H(pi) - nu.pi for low posteriors.

    `a`: P(S|X).
    `active`: The columns in use, k >= 1.

    Yields (supports, weights): Posteriors by their symbols and probabilities, (n, F); F = min(|S|, |X|).
    """
    size = min(a.shape)
    for part in parts(*active.shape):
        supports, w = _largest(active.T[part], size)
        yield supports, newton(FaceFunction.on(a, lam, nu, supports), w)
    starts = _starts(a, active.T, rng)
    for part in parts(a.shape[1], len(starts)):  # their arrays stay in the processor's cache
        supports, w = _largest(descend(partial(slopes, a, lam, nu), starts[part], WIDE_STEPS), size)
        face = FaceFunction.on(a, lam, nu, supports)
        yield supports, newton(face, descend(face.slopes, w, WIDE_STEPS))


def _starts(a: Array, active: Array, rng: np.random.Generator) -> Array:
    """Posteriors to begin with, (n, |X|)."""
    size_x, count = a.shape[1], len(active)
    spread = np.full(size_x, SPARSE)
    scattered = rng.dirichlet(spread, SCATTERED)
    opening = rng.uniform(0.1, 0.5, OPENED)[:, None]
    opened = (1.0 - opening) * active[rng.integers(0, count, OPENED)] + opening * rng.dirichlet(spread, OPENED)
    if count == 1:
        return np.concatenate([scattered, opened])
    private = active @ a.T
    one = rng.integers(0, count, MIXED)
    apart = FAR * rng.random((MIXED, count))
    for symbol in private.T:
        apart += np.abs(symbol[one][:, None] - symbol)
    apart[np.arange(MIXED), one] = np.inf
    share = rng.random(MIXED)[:, None]
    mixed = share * active[one] + (1.0 - share) * active[apart.argmin(axis=1)]
    return np.concatenate([scattered, opened, mixed])


def slopes(a: Array, lam: float, nu: Array, w: Array, spread: Array | None = None) -> Array:
    """A' log t - lam log pi - nu, (n, |X|): the gradient without its constant; its mean under w is phi.

    With `spread` w are weights of its columns, posteriors: pi = spread w, and `a` is P(S) given each of them.
    """
    log_t = np.log(np.maximum(w @ a.T, TINY))
    kept = np.log(np.maximum(w if spread is None else w @ spread.T, TINY))
    return np.asarray(log_t @ a - lam * (kept if spread is None else kept @ spread) - nu)


def _largest(w: Array, size: int) -> tuple[IntArray, Array]:
    """The symbols with the largest weights, (n, size), and their probabilities."""
    supports = np.argpartition(-w, size - 1, axis=1)[:, :size]
    kept = np.take_along_axis(w, supports, axis=1)
    return supports, kept / kept.sum(axis=1, keepdims=True)
