"""Newton's method on posteriors, weights and multipliers together: where column generation is going.

Pricing at fixed multipliers finds each posterior exactly, and the multipliers move after it: a dozen passes for the
last digits. The optimality conditions of the columns in use are smooth equations in u = P(X, Y) on their cells,

    (A' log t_y)_i - lam log pi_iy = nu_i,   sum_y u_iy = P_X(i),   I(X;Y) = R,

and Newton's method solves them in a few steps. What it ends at are columns like any others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.information import entropy

from .pricing_search import TINY

MOST_CELLS = 150
"""Most cells of the columns in use: a step takes a millisecond then."""

ALIKE = 0.05
"""Columns on the same symbols that are nearer than this are one: the linear program mixes them to stand for it."""

LIGHT = 1e-12
"""Least weight of a column in use: a lighter one leaves no digits to a step."""

STEPS, SOLVED = 10, 1e-11

AHEAD = 2e-14
"""Distance above the rate at which the columns are designed, in nats: they keep the rate after rounding too."""

LONGEST = 0.8
"""Longest step towards an empty cell."""


@dataclass(frozen=True)
class Solved:
    """A solution of the optimality conditions.

    `columns`, (|X|, n): The posteriors.
    `weights`: (n,).
    `duals`, (|X| + 1,): nu, and -lam last.
    """

    columns: Array
    weights: Array
    duals: Array


def joint_newton(
    a: Array, p_x: Array, told: float, active: Array, lam: float, nu: Array, weights: Array | None = None
) -> Solved | None:
    """Return what solves the optimality conditions near the active posteriors, or None.

    `a`: P(S|X), ``(|S|, |X|)``.
    `told`: R - H(X): what sum u log pi has to be, nats.
    `active`: The columns in use, ``(|X|, k)``; `lam`, `nu` are their multipliers, and `weights` theirs, if known.
    """
    u = _merged(active, _weights(active, p_x, told) if weights is None else weights)
    if u is None or lam <= 0.0:
        return None
    rows, columns = np.nonzero(u)
    x, count, size = u[rows, columns], len(rows), len(p_x)
    if count > MOST_CELLS:
        return None
    own = a[:, rows]
    same = columns[:, None] == columns
    at = np.arange(count)
    system = np.zeros((count + size + 1, count + size + 1))
    system[at, count + rows] = -1.0
    system[count + rows, at] = 1.0
    missing = np.empty(len(system))
    solved = False
    for _ in range(STEPS):
        u[rows, columns] = x
        mass = u.sum(axis=0)
        t = a @ u
        held = np.maximum(t, TINY)  # where t = 0, A is too
        log_pi = np.log(x / mass[columns])
        missing[:count] = (a.T @ np.log(held / mass))[rows, columns] - lam * log_pi - nu[rows]
        missing[count:-1] = u.sum(axis=1) - p_x
        missing[-1] = x @ log_pi - told - AHEAD
        if solved:  # and one step more
            return Solved(u / mass, mass, np.append(nu, -lam))
        solved = bool(np.abs(missing).max() <= SOLVED)
        scaled = own / np.sqrt(held)[:, columns]
        system[:count, :count] = (scaled.T @ scaled - (1.0 - lam) / mass[columns]) * same
        system[at, at] -= lam / x
        system[:count, -1], system[-1, :count] = -log_pi, log_pi
        try:
            move = np.linalg.solve(system, -missing)
        except np.linalg.LinAlgError:
            return None
        falling = move[:count] < 0.0
        step = min(1.0, LONGEST * float((-x[falling] / move[:count][falling]).min(initial=np.inf)))
        x = x + step * move[:count]
        nu, lam = nu + step * move[count:-1], lam + step * float(move[-1])
        if not np.isfinite(move).all() or lam <= 0.0:
            return None
    return None


def _weights(active: Array, p_x: Array, told: float) -> Array:
    """The weights that make P(X) of the active columns; zeros where none do."""
    rows = np.vstack([active, entropy(active, axis=0)])
    weights = np.linalg.lstsq(rows, np.append(p_x, -told), rcond=None)[0]
    return np.asarray(weights if np.abs(active @ weights - p_x).max() <= ALIKE else np.zeros_like(weights))


def _merged(active: Array, weights: Array) -> Array | None:
    """P(X, Y) on the active columns, like ones merged; None where a weight is too light."""
    if not (weights > LIGHT).all():
        return None
    kept: list[Array] = []
    alike: dict[bytes, list[Array]] = {}  # by support
    for column in (active * weights).T:
        near = alike.setdefault((column > 0.0).tobytes(), [])
        for other in near:
            if np.abs(other / other.sum() - column / column.sum()).max() < ALIKE:
                other += column
                break
        else:
            near.append(column.copy())
            kept.append(near[-1])
    return np.array(kept).T
