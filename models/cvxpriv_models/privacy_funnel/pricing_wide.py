"""Local pricing for many private symbols: descents over the whole simplex, then over faces of |S| symbols.

With |S| symbols of S a best posterior may hold as many symbols of X, and a random face of that size rarely holds the
right ones. A descent over the whole simplex chooses them: exponentiated gradient drives the weights that do not pay
to zero. At fixed A pi the priced function is concave, so the |S| largest weights are enough to begin the descent on
a face with.
"""

from functools import partial
from typing import TypeAlias

import numpy as np

from cvxpriv.numerics.arrays import Array, IntArray

from .pricing_search import TINY, FaceFunction, descend, newton

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
STEPS = 15
#: Weights worked on at once: their arrays stay in the processor's cache.
AT_ONCE = 200_000


def wide_search(a: Array, lam: float, nu: Array, active: Array, rng: np.random.Generator) -> list[Found]:
    """Search phi(pi) = -H(A pi) + lam H(pi) - nu.pi for low posteriors.

    `a`: P(S|X).
    `active`: The columns in use, k >= 1.

    Returns (supports, weights): Posteriors by their symbols and probabilities, (n, F); F = min(|S|, |X|).
    """
    size = min(a.shape)
    supports, w = _largest(active.T, size)
    found = [(supports, newton(FaceFunction.on(a, lam, nu, supports), w))]
    starts = _starts(a, active.T, rng)
    chunk = max(1, AT_ONCE // a.shape[1])
    for first in range(0, len(starts), chunk):
        supports, w = _largest(descend(partial(slopes, a, lam, nu), starts[first : first + chunk], STEPS), size)
        face = FaceFunction.on(a, lam, nu, supports)
        found.append((supports, newton(face, descend(face.slopes, w, STEPS))))
    return found


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
    apart = np.abs(private[one][:, None] - private).sum(axis=2) + FAR * rng.random((MIXED, count))
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
