"""Generalised Jacobians of atoms that mix the entries of their argument: norms, extremes, quadratics, means."""

from collections.abc import Callable, Sequence

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.geo_mean import GeoMean
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.norm_inf import norm_inf
from cvxpy.atoms.pnorm import Pnorm

from cvxpriv.kkt.jacobian_sets import DerivativeError, Local, broadcast_rows, intervals
from cvxpriv.numerics.arrays import Array

WELL_INSIDE = 1e-3
"""Ratio of eigenvalues from which on the slope of a matrix's entropy is that of its neighbours to six digits."""


def groups(atom: cp.Expression, shape: tuple[int, ...]) -> np.ndarray:
    """Return for each entry of an axis atom's argument (column-major) the entry of the result that it goes into."""
    axis = atom.axis
    if axis is None:
        return np.zeros(int(np.prod(shape, dtype=int)), dtype=int)
    axes = tuple(a % len(shape) for a in np.atleast_1d(axis))
    kept = tuple(1 if k in axes else size for k, size in enumerate(shape))
    return broadcast_rows(kept, shape)


def _flat(value: Array) -> Array:
    return np.asarray(value, dtype=float).ravel(order="F")


def _norm1(atom: cp.Expression, values: Sequence[Array], kink: float, floor: float) -> list[Local]:
    x = _flat(values[0])
    low, high = np.where(x > kink, 1.0, -1.0), np.where(x < -kink, -1.0, 1.0)
    return [intervals(groups(atom, values[0].shape), np.arange(x.size), low, high)]


def _pnorm(atom: cp.Expression, values: Sequence[Array], kink: float, floor: float) -> list[Local] | None:
    """Euclidean and other p-norms; at zero the dual ball is replaced by its box, which is exact in one dimension."""
    p = float(atom.p)
    if p <= 1.0:
        return None
    x, group = _flat(values[0]), groups(atom, values[0].shape)
    largest = np.zeros(atom.size)
    np.maximum.at(largest, group, np.abs(x))
    zero = largest <= kink
    scaled = np.abs(x) / np.where(zero, 1.0, largest)[group]
    norm = np.bincount(group, scaled**p, minlength=atom.size) ** (1.0 / p)
    slope = np.sign(x) * (scaled / np.where(zero, 1.0, norm)[group]) ** (p - 1.0)
    low, high = np.where(zero[group], -1.0, slope), np.where(zero[group], 1.0, slope)
    exact = not (zero.any() and np.bincount(group)[zero].max() > 1)
    return [intervals(group, np.arange(x.size), low, high, exact)]


def _tied(m: int, group: np.ndarray, score: Array, sign: Array, kink: float) -> Local:
    """Return the entry of largest score in each group, times its sign; ties mix by one weight in [0, 1] per rival."""
    top = np.full(m, -np.inf)
    np.maximum.at(top, group, score)
    tied = np.flatnonzero(score >= top[group] - kink)
    leaders, first = np.unique(group[tied], return_index=True)
    leader = np.zeros(m, dtype=int)
    leader[leaders] = tied[first]
    rivals = np.setdiff1d(tied, leader[leaders])
    count, back = np.arange(rivals.size), leader[group[rivals]]
    return Local(
        (leaders, leader[leaders], sign[leader[leaders]]),
        (group[rivals], count, np.ones(rivals.size)),
        (np.tile(count, 2), np.concatenate([rivals, back]), np.concatenate([sign[rivals], -sign[back]])),
        np.zeros(rivals.size),
        np.ones(rivals.size),
        not rivals.size or int(np.bincount(group[rivals]).max()) == 1,
    )


def _extreme(atom: cp.Expression, values: Sequence[Array], kink: float, floor: float) -> list[Local]:
    x = _flat(values[0])
    score = x if isinstance(atom, cp.max) else -x
    return [_tied(atom.size, groups(atom, values[0].shape), score, np.ones(x.size), kink)]


def _norm_inf(atom: cp.Expression, values: Sequence[Array], kink: float, floor: float) -> list[Local]:
    x, group = _flat(values[0]), groups(atom, values[0].shape)
    top = np.zeros(atom.size)
    np.maximum.at(top, group, np.abs(x))
    if (top > kink).all():
        return [_tied(atom.size, group, np.abs(x), np.sign(x), kink)]
    exact = x.size == 1
    ones = np.ones(x.size)
    return [intervals(group, np.arange(x.size), -ones, ones, exact)]


def _quad_over_lin(atom: cp.Expression, values: Sequence[Array], kink: float, floor: float) -> list[Local]:
    x, y = _flat(values[0]), float(_flat(values[1])[0])
    group = groups(atom, values[0].shape)
    squares = np.bincount(group, x * x, minlength=atom.size)
    entries, every, first = np.arange(x.size), np.arange(atom.size), np.zeros(atom.size, dtype=int)
    if y > 0:
        slope, fall = 2.0 * x / y, -squares / (y * y)
        return [intervals(group, entries, slope, slope), intervals(every, first, fall, fall)]
    if y < 0 or squares.any():
        raise DerivativeError(
            f"atom 'quad_over_lin': the denominator is {y:.3g}; it must be positive: repair the point"
        )
    endless = np.full(x.size, np.inf)
    return [
        intervals(group, entries, -endless, endless, False),
        intervals(every, first, np.full(atom.size, -np.inf), np.zeros(atom.size), False),
    ]


def _geo_mean(atom: cp.Expression, values: Sequence[Array], kink: float, floor: float) -> list[Local] | None:
    """``prod x_i^w_i``: steep in a single zero factor; with several zeros the slopes fill the nonnegative box."""
    if atom.axis is not None:
        return None
    x = np.maximum(_flat(values[0]), floor)
    if x.min(initial=0.0) < 0:
        raise DerivativeError(
            f"atom 'geo_mean': an argument is {x.min():.3g}; it must not be negative: repair the point"
        )
    weights = np.zeros(x.size)
    weights[np.flatnonzero(atom._keep)] = [float(w) for w in atom.w]
    zero = (x == 0) & (weights > 0)
    high = np.zeros(x.size)
    if not zero.any():
        mean = np.exp((weights[weights > 0] * np.log(x[weights > 0])).sum())
        high[weights > 0] = mean * weights[weights > 0] / x[weights > 0]
    else:
        high[zero] = np.inf
    alone = zero.sum() <= 1
    low = high if alone else np.zeros(x.size)
    return [intervals(np.zeros(x.size, dtype=int), np.arange(x.size), low, high, bool(alone))]


def _quad_form(atom: cp.Expression, values: Sequence[Array], kink: float, floor: float) -> list[Local]:
    """``x'Px`` with a constant ``P``, of which cvxpy's own derivative covers the first argument only."""
    x, P = _flat(values[0]), values[1]
    return [Local.smooth(((P + P.T) @ x)[None]), Local.smooth(sp.coo_array((1, 0)))]


def _von_neumann_entr(atom: cp.Expression, values: Sequence[Array], kink: float, floor: float) -> list[Local] | None:
    """``-log X - I``; none beside a singular matrix, where the slope of a solver's point says nothing."""
    own = _well_inside(values[0])
    return None if own is None else [Local.smooth(-_flat(own[2] + np.eye(len(own[2])))[None])]


def _well_inside(value: Array) -> tuple[Array, Array, Array] | None:
    """Return eigenvalues, vectors and logarithm of a symmetric matrix; None beside a singular one."""
    eigenvalues, vectors = np.linalg.eigh(value)
    if eigenvalues[0] <= WELL_INSIDE * eigenvalues[-1]:
        return None
    return eigenvalues, vectors, (vectors * np.log(eigenvalues)) @ vectors.T


def _quantum_rel_entr(atom: cp.Expression, values: Sequence[Array], kink: float, floor: float) -> list[Local] | None:
    """``log X - log Y + I``, and for ``Y`` the divided differences of its logarithm, times ``-X``."""
    first, second = map(_well_inside, values)
    if first is None or second is None:
        return None
    a, V, log = second
    with np.errstate(all="ignore"):
        differences = np.subtract.outer(np.log(a), np.log(a)) / np.subtract.outer(a, a)
    near = np.abs(np.subtract.outer(a, a)) <= 1e-6 * a
    middle = np.where(near, 2.0 / np.add.outer(a, a), differences)
    pull = -V @ ((V.T @ values[0] @ V) * middle) @ V.T
    return [Local.smooth(_flat(one)[None]) for one in (first[2] - log + np.eye(a.size), pull)]


RULES: dict[type, Callable[[cp.Expression, Sequence[Array], float, float], list[Local] | None]] = {
    norm1: _norm1,
    Pnorm: _pnorm,
    norm_inf: _norm_inf,
    cp.max: _extreme,
    cp.min: _extreme,
    cp.quad_over_lin: _quad_over_lin,
    GeoMean: _geo_mean,
    cp.QuadForm: _quad_form,
    cp.von_neumann_entr: _von_neumann_entr,
    cp.quantum_rel_entr: _quantum_rel_entr,
}


def vector_rule(atom: cp.Expression, values: Sequence[Array], kink: float, floor: float) -> list[Local] | None:
    """Return the rule of an atom, or None if there is none or it does not cover the case."""
    for kind, rule in RULES.items():
        if isinstance(atom, kind):
            return rule(atom, values, kink, floor)
    return None


def extreme_of_stacked(atom: cp.Expression, values: Sequence[Array], kink: float) -> Local:
    """``maximum`` and ``minimum`` as a function of all arguments' entries, flat, stacked one after the other.

    One function of one stack, since a tie mixes two arguments' Jacobians by a single weight.
    """
    sign = 1.0 if isinstance(atom, cp.maximum) else -1.0
    score, size = sign * np.concatenate(list(values)), values[0].size
    return _tied(size, np.tile(np.arange(size), len(values)), score, np.ones(score.size), kink)
