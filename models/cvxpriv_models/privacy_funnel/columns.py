"""Columns, posteriors P(X|y): those that column generation begins with, where it is going, and the mechanism they make.

Pricing at fixed multipliers finds each posterior exactly, and the multipliers move after it: a dozen passes for the
last digits. The optimality conditions of the columns in use are smooth equations in u = P(X, Y) on their cells,

    (A' log t_y)_i - lam log pi_iy = nu_i,   sum_y u_iy = P_X(i),   I(X;Y) = R,

and Newton's method (`joint_newton`) solves them in a few steps. What it ends at are columns like any others.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from cvxpriv.numerics.arrays import Array, IntArray, parts
from cvxpriv.numerics.simplex import edge_pairs, simplex_grid
from cvxpriv.tables.information import entropy, mutual_information

from . import closed_form
from .interior import feasible_rows
from .pricing_search import TINY

HALVINGS = 60

#: A symbol with less posterior probability leaves a column: the column is then another, still exact one.
NEGLIGIBLE_WEIGHT = 1e-10
#: Number of public symbols up to which posteriors on a grid are the first columns.
SMALL_X = 6
#: Most points of the grid: the first program is then solved in less than a millisecond, near the optimum.
GRID_POINTS = 600
#: Merged pairs to begin with, for each symbol of X; more of them only make the first programs larger.
FIRST_PAIRS = 3
#: Most cells of the columns in use: a step takes a millisecond then.
MOST_CELLS = 150
#: Columns on the same symbols that are nearer than this are one: the linear program mixes them to stand for it.
ALIKE = 0.05
#: Least weight of a column in use: a lighter one leaves no digits to a step.
LIGHT = 1e-12
STEPS, SOLVED = 10, 1e-11
#: Least gain for which a column enters a small program, in nats.
PAYS = 1e-10
MOST_PIVOTS, SMALLEST_PIVOT = 200, 1e-11

#: Distance above the rate at which the columns are designed, in nats: they keep the rate after rounding too.
AHEAD = 2e-14
#: Distance below the rate, in nats, that rounding explains.
ROUNDED = 1e-9
#: Distance above the rate to which a mechanism is tilted, in nats: thrice the accuracy of the tilting.
TILTED = 3e-13
#: Longest step towards an empty cell.
LONGEST = 0.8


def on_all_symbols(size: int, supports: IntArray, weights: Array) -> Array:
    """Columns (size, n) from supports (n, F) and weights (n, F); negligible weights leave, sums are 1."""
    kept = np.where(weights < NEGLIGIBLE_WEIGHT, 0.0, weights)
    kept = kept / kept.sum(axis=1, keepdims=True)
    columns = np.zeros((size, len(supports)))
    columns[supports.T, np.arange(len(supports))] = kept.T
    return columns


def utility(p_x: Array, mechanism: Array) -> float:
    """I(X;Y) in nats of P(Y|X), (|X|, |Y|)."""
    return mutual_information(p_x[:, None] * mechanism)


def mechanism_of(columns: Array, weights: Array, p_x: Array) -> Array:
    """P(Y|X), (|X|, |Y|), whose posteriors are the columns (|X|, k), as nearly as rows that sum to 1 allow.

    Equal columns become one symbol. A symbol of X that no column holds is released as it is.

    >>> mechanism_of(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    array([[1., 0.],
           [0., 1.]])
    """
    places = dict[bytes, int]()
    some = [np.flatnonzero(column) for column in columns.T]
    keys = [kept.tobytes() + column[kept].tobytes() for kept, column in zip(some, columns.T, strict=True)]
    where = [places.setdefault(key, len(places)) for key in keys]
    first = np.unique(where, return_index=True)[1]
    joint = columns[:, first]
    joint *= np.bincount(where, weights, len(first))
    lost = np.flatnonzero(joint.sum(axis=1) <= 0.0)
    if lost.size:
        joint = np.concatenate([joint, np.diag(p_x)[:, lost]], axis=1)
    if not (used := joint.sum(axis=0) > 0.0).all():
        joint = joint[:, used]
    joint /= joint.sum(axis=1, keepdims=True)
    return joint


def posteriors_of(mechanism: Array, p_x: Array) -> Array:
    """P(X|y), (|X|, |Y|), of P(Y|X) whose symbols all have mass."""
    columns = mechanism * p_x[:, None]
    columns /= columns.sum(axis=0)
    return columns


def tilted_to_rate(log_u: Array, p_x: Array, rate: float) -> Array:
    """log P(X, Y), (|X|, |Y|), its own posteriors sharpened where no more than rounding is missing from the rate."""
    short = rate - utility(p_x, closed_form.rows_of(log_u))
    if 0.0 < short <= ROUNDED < entropy(p_x) - rate:
        tilted: Array = feasible_rows(log_u[None], p_x, rate - entropy(p_x) + TILTED)[0]
        if utility(p_x, closed_form.rows_of(tilted)) >= rate:
            return tilted
    return log_u


def mixed_to_rate(mechanism: Array, p_x: Array, rate: float) -> Array:
    """The mechanism, mixed with the release of X itself by no more than I(X;Y) >= `rate` takes.

    With probability 1 - t the output is that of `mechanism`, with probability t it is X, under symbols of its own. At
    `rate` = H(X) it is the identity. What rounding took from the rate is made up for without other symbols.
    """
    if utility(p_x, mechanism) >= rate:
        return mechanism
    mechanism = closed_form.rows_of(tilted_to_rate(closed_form.log_joint(p_x, mechanism), p_x, rate))
    if utility(p_x, mechanism) >= rate:
        return mechanism
    identity, low, high = np.eye(len(p_x)), 0.0, 1.0
    for _ in range(HALVINGS):
        t = 0.5 * (low + high)
        enough = utility(p_x, np.concatenate([(1.0 - t) * mechanism, t * identity], axis=1)) >= rate
        low, high = (low, t) if enough else (t, high)
    if high == 1.0:
        return identity
    mixed: Array = np.concatenate([(1.0 - high) * mechanism, high * identity], axis=1)
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


def first_columns(p_x: Array, a: Array) -> Iterator[Array]:
    """Yield singletons, P(X), pairs merged at their prior weights, and for a small X a grid of posteriors, (|X|, n).

    `p_x`: ``(|X|,)``. `a`, ``(|S|, |X|)``: P(S|X).
    """
    size_s, size_x = a.shape
    yield np.eye(size_x)
    yield p_x[:, None]
    yield from _merged_pairs(p_x, a)
    if size_s > 2 and 2 < size_x <= SMALL_X:
        yield _grid(size_x)


def _merged_pairs(p_x: Array, a: Array) -> Iterator[Array]:
    """Each symbol merged, at prior weights, with those for which leakage falls most for what is lost of I(X;Y)."""
    size = len(p_x)
    i, j = edge_pairs(size)
    if len(i) > FIRST_PAIRS * size:
        told, found = p_x * entropy(a, axis=0), []
        for one in range(size):
            mass = p_x + p_x[one]
            saved = mass * entropy((a * p_x + (a[:, one] * p_x[one])[:, None]) / mass, axis=0) - told - told[one]
            saved /= mass * entropy(np.stack([p_x, np.full(size, p_x[one])]) / mass, axis=0)
            saved[one] = -np.inf
            found.append(np.argpartition(-saved, FIRST_PAIRS)[:FIRST_PAIRS])
        every = np.stack([np.repeat(np.arange(size), FIRST_PAIRS), np.concatenate(found)])
        i, j = np.unique(np.sort(every, axis=0), axis=1)
    for part in parts(size, len(i)):
        weights = np.stack([p_x[i[part]], p_x[j[part]]], axis=1)
        supports = np.stack([i[part], j[part]], axis=1)
        yield on_all_symbols(size, supports, weights / weights.sum(axis=1, keepdims=True))


@cache
def _grid(size: int) -> Array:
    """The points of the simplex whose coordinates are multiples of 1/n, without its corners, (size, points)."""
    n = 2
    while math.comb(n + size, size - 1) <= GRID_POINTS:
        n += 1
    points = simplex_grid(size, n)
    grid: Array = points[:, points.max(axis=0) < 1.0]
    grid.flags.writeable = False
    return grid


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
    if weights is None:  # those that make P(X) of the active columns
        weights = np.linalg.lstsq(np.vstack([active, entropy(active, axis=0)]), np.append(p_x, -told), rcond=None)[0]
        if not np.abs(active @ weights - p_x).max() <= ALIKE:
            return None
    u = _merged(active, weights)
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


def small_program(costs: Array, rows: Array, right: Array) -> tuple[IntArray, Array, Array] | None:
    """Solve the program over a few columns; return those in use, their weights, and the multipliers (|X| + 1,).

    A simplex method on a few rows: `Master` would take longer to be set up than this takes to end.

    `costs`, (n,), `rows`, (|X| + 1, n): Those of the columns; the first |X| are single symbols, of entropy 0.
    `right`, (|X| + 1,): P(X), and the most that the mean entropy of the columns may be.
    Returns: None where it does not end.
    """
    size = len(right)
    costs = np.append(costs, 0.0)
    matrix = np.concatenate([rows, np.eye(size)[:, -1:]], axis=1)  # the room that is left below the last row's end
    basis = np.append(np.arange(size - 1), len(costs) - 1)
    inverse, weights = np.eye(size), right.copy()
    for _ in range(MOST_PIVOTS):
        duals = costs[basis] @ inverse
        reduced = costs - duals @ matrix
        enters = int(reduced.argmin())
        if reduced[enters] >= -PAYS:
            used = (basis < len(costs) - 1) & (weights > 0.0)
            return basis[used], weights[used], duals
        column = inverse @ matrix[:, enters]
        falling = np.flatnonzero(column > SMALLEST_PIVOT)
        if not len(falling):
            return None
        leaves = int(falling[(weights[falling] / column[falling]).argmin()])
        inverse[leaves] /= column[leaves]
        weights[leaves] /= column[leaves]
        column[leaves] = 0.0
        inverse -= column[:, None] * inverse[leaves]
        weights = np.maximum(weights - column * weights[leaves], 0.0)
        basis[leaves] = enters
    return None


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
