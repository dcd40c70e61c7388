"""The best subgradient of the leakage where cells stand at kinks of f: a linear program for each start.

At q/p = kink every b between the one-sided f' belongs to a tangent of p f(q/p): f_x = f - kink b and f_q = b. Its
choice moves the cell's own s one way and every s of its column the other way. A mechanism is a first-order point iff
some choice makes it one, and that is the choice that minimises the bound on F. The tangent holds for all p and q:
a bound may take it at cells that stand elsewhere, too.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import block_array, csr_array, diags_array, eye_array, kron

from cvxpriv.numerics.arrays import Array

from .problem import Problem
from .row_roots import jump_at


class Kinks(NamedTuple):
    """Cells at kinks, arrays (B, |Y|, |U|) each. `distance` is |p - q/kink| to the nearest kink; `fall` is by how much
    f' is less on its left; `rise` is by how much f_x is more there.
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
    """Return s with f' at kinks chosen so that sum_y p(y) [(1 - |U| floor) max_u s + floor sum_u s] is least. `s`, (B,
    |Y|, |U|): Slopes, with the derivative from the right at kinks; NaN at symbols that are never sent, which stay.
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
