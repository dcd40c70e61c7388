"""Feasible, strictly positive starts for the privacy funnel.

The start that the paper prints, ``u = 1{i = j} / M``, is infeasible unless P(x) is uniform, is a fixed point,
and gives NaN for N > M (docs/errata.md); a plain Dirichlet start rarely leaves a root of G. Here each start is

    u = p [(1 - t) deterministic + t Dirichlet],

with a random deterministic map of entropy at least R and the largest t on a bisection path for which
I(X;Y) >= R. Feasible starts keep a root of G (or lam = 0) at every later step, since sum_i p_i max_j log w_ij
is at least I(X;Y) - H(X).
"""

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.sizes import in_time
from cvxpriv.tables.information import entropy

from .closed_form import FLOOR
from .columns import utility

Labels = npt.NDArray[np.int64]

#: The Dirichlet parameter of a start is drawn log-uniformly from here: from nearly deterministic to even rows.
CONCENTRATIONS = (0.1, 1.0)
BISECTIONS = 60
_ROOM = 1e-6
_ATTEMPTS = 30
_ROUNDING = 1e-12
_TINY = float(np.finfo(np.float64).tiny)


def feasible_starts(p: Array, rate: float, size_y: int, count: int, seed: int = 0) -> Array:
    """Random starts with I(X;Y) >= ``rate``, every cell positive.

    `p`: P(x) > 0, (M,).
    `rate`: R in nats, ``0 <= R <= H(X)``.
    `size_y`: N, the number of released symbols, at least 1.
    `count`: Number of starts; fewer come back where it gets `late`.
    `seed`: Start k depends on the seed and on k alone.
    Returns: log u, (count, M, N), rows of u summing to p. At R = H(X) a start is an injective map with its other cells
    at ``FLOOR``.
    Raises ModelError: No deterministic map onto ``size_y`` symbols that reaches the rate was found.

    Examples
    --------
    >>> p = np.array([0.5, 0.3, 0.2])
    >>> log_u = feasible_starts(p, rate=0.6, size_y=4, count=2)
    >>> log_u.shape, bool(np.allclose(np.exp(log_u).sum(axis=2), p))
    ((2, 3, 4), True)
    """
    children = np.random.SeedSequence(seed).spawn(count)
    even, starts = np.full((len(p), size_y), 1.0 / size_y), list[Array]()
    for child in in_time(children):
        rng, sharp = np.random.default_rng(child), np.zeros((len(p), size_y))
        sharp[np.arange(len(p)), deterministic_map(p, rate, size_y, rng)] = 1.0
        concentration = float(np.exp(rng.uniform(*np.log(CONCENTRATIONS))))
        soft = 0.99 * rng.dirichlet(np.full(size_y, concentration), size=len(p)) + 0.01 * even
        starts.append(softened(p, rate, sharp, soft))
    return np.stack(starts)


def entropy_of_map(labels: Labels, p: Array, size_y: int) -> float:
    """H(Y) = I(X;Y) of the deterministic map x -> labels[x], in nats."""
    return entropy(np.bincount(labels, p, size_y).astype(np.float64))


def deterministic_map(p: Array, rate: float, size_y: int, rng: np.random.Generator) -> Labels:
    """A random map X -> Y with H(Y) >= ``rate``, (M,): drawn, then its shared symbols split until it fits.

    Some room above the rate is sought too, since a map of entropy R exactly has no feasible neighbours to start from.
    """
    labels: Labels = rng.integers(0, size_y, size=len(p))
    needed = rate + _ROOM
    if entropy_of_map(labels, p, size_y) >= needed:
        return labels
    if size_y >= len(p):
        return _split_until(labels, p, needed, size_y, rng)
    first_guesses = [labels, _longest_first(p, size_y), *rng.integers(0, size_y, size=(_ATTEMPTS, len(p)))]
    for guess in first_guesses:
        balanced = _balance(guess, p, needed, size_y)
        if entropy_of_map(balanced, p, size_y) > entropy_of_map(labels, p, size_y):
            labels = balanced
        if entropy_of_map(labels, p, size_y) >= needed:
            return labels
    reached = entropy_of_map(labels, p, size_y)
    if reached < rate - _ROUNDING:
        raise ModelError(
            f"size_y={size_y} is too small for rate={rate:.6g} nats: the best map found onto {size_y} symbols has "
            f"I(X;Y)={reached:.6g}; choose size_y={len(p)} or more, or a rate of at most {reached:.6g} nats"
        )
    return labels


def softened(p: Array, rate: float, sharp: Array, soft: Array) -> Array:
    """A start from a mechanism that has zeros: mixed with one that has none as far as the rate allows.

    I is convex in the part t of the soft one and at least R at t = 0, so the feasible t from 0 on are an interval:
    bisection finds its end.

    `p`: P(x) > 0, (M,). `rate`: R in nats. `sharp`: A mechanism P(y | x) with I(X;Y) >= R, (M, N). `soft`: (M, N).
    Returns: log u, (M, N).
    """
    low, high = 0.0, 1.0
    if utility(p, sharp) <= rate + _ROUNDING and rate > 0.0:
        high = 0.0
    elif utility(p, soft) >= rate:
        low = 1.0
    for _ in range(BISECTIONS if low < high else 0):
        middle = 0.5 * (low + high)
        enough = utility(p, (1.0 - middle) * sharp + middle * soft) >= rate
        low, high = (middle, high) if enough else (low, middle)
    rows = (1.0 - low) * sharp + low * soft
    return np.asarray(np.maximum(np.log(np.maximum(p[:, None] * rows, _TINY)), FLOOR))


def _split_until(labels: Labels, p: Array, needed: float, size_y: int, rng: np.random.Generator) -> Labels:
    """Move one x of a shared symbol to an unused one, at random, until the entropy is enough (N >= M: it will be)."""
    labels = labels.copy()
    while entropy_of_map(labels, p, size_y) < needed:
        counts = np.bincount(labels, minlength=size_y)
        shared = np.flatnonzero(counts[labels] > 1)
        if not shared.size:
            break
        labels[rng.choice(shared)] = rng.choice(np.flatnonzero(counts == 0))
    return labels


def _longest_first(p: Array, size_y: int) -> Labels:
    """Largest x first, each to the lightest symbol so far."""
    labels = np.zeros(len(p), dtype=np.int64)
    mass = np.zeros(size_y)
    for x in np.argsort(-p, kind="stable"):
        labels[x] = mass.argmin()
        mass[labels[x]] += p[x]
    return labels


def _balance(labels: Labels, p: Array, needed: float, size_y: int) -> Labels:
    """Take the best swap of two x, again and again, until the entropy of the symbols is enough or none helps.

    An x without mass stands at each symbol, so that to move an x is to swap it too.
    """
    size, p = len(p), np.append(p, np.zeros(size_y))
    labels = np.append(labels, np.arange(size_y))
    while entropy(mass := np.bincount(labels, p, size_y).astype(np.float64)) < needed:
        here, moved = mass[labels], p[:, None] - p
        after = entr(np.maximum(here[:, None] - moved, 0.0)) + entr(np.maximum(here + moved, 0.0))
        gain = np.where(labels[:, None] == labels, -np.inf, after - entr(here)[:, None] - entr(here))
        x, other = np.unravel_index(gain.argmax(), gain.shape)
        if gain[x, other] <= _ROUNDING:
            break
        labels[[x, other]] = labels[[other, x]]
    return labels[:size]
