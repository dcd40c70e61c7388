"""The end of a constrained funnel: Newton's method on the constraints that bind.

The convex-concave procedure finds out which constraints bind, and then only crawls: it knows nothing of the curvature
of I(X;Y). Here a convex quadratic model, with every linear constraint exact, names the binding ones and their
multipliers (`faces.py`); then Newton's method solves the first-order conditions of PF (1) with these as equations
(`corrected`). What it gives is checked: feasible, no more leakage, else None, and the procedure goes on.

Released symbols that nobody uses have no posterior, so that their slopes say nothing. Each gets a trace of mass with
that of a live one, where the user's constraints treat both alike (`copied`); else with the posterior that would bring
the Lagrangian down most (`priced`).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.linalg import null_space

from cvxpriv.blocks.declaration import Constraint
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.numerics.sizes import late
from cvxpriv.schedules.steps import Accelerator

from . import closed_form
from .closed_form import FLOOR
from .faces import ASIDE, ConstraintRows, Face, Indices, Live, curvature, linear_rows, predicted, slopes
from .problem import Problem

_PASSES = 5
_LARGEST = 2000
_STILL = 1e-10
_STEPS = 25
_ENOUGH = 1e-13
_SMALL = 1e-4
_CURVED = 1e-7
_FEASIBLE = 1e-9
_RISE = 1e-8
_DESCENTS = 2000
_ALIKE = 1e-12


def newton_on_the_face(
    problem: Problem, constraints: tuple[tuple[str, Constraint], ...], residual: Callable[[Values], float]
) -> Accelerator:
    """Return an accelerator: a few passes, then Newton's method on the constraints that bind.

    Where a constraint is not linear there are only passes. Points with more than 2000 cells alive are left to the
    passes too.

    `residual`: One start of the state to its KKT residual; it says whether unused symbols are rightly so.
    """
    rows = linear_rows(problem, constraints)

    def accelerate(body: Callable[[Values], dict[str, Array]], state: dict[str, Array], iteration: int) -> Values:
        for _ in range(_PASSES):
            before, state = np.exp(state["log_u"]), body(state)
            if np.abs(np.exp(state["log_u"]) - before).max() <= _STILL or late():
                break
        if rows is None:
            return state
        log_u, lam = state["log_u"].copy(), state["lam"].copy()
        for start, u in enumerate(np.exp(state["log_u"])):
            if late():
                break
            if found := polished(u, problem, rows):
                plain = len(found) == 1 or residual(found[0]) <= _RISE
                log_u[start], lam[start] = (found[0] if plain else found[1])["log_u"], found[0]["lam"]
        return {**state, **closed_form.complete(log_u, problem.p_s_given_x, lam)}

    return accelerate


def polished(u: Array, problem: Problem, constraints: ConstraintRows) -> list[dict[str, Array]]:
    """Return a stationary point near u, a local minimum on its face; nothing where none was found from here.

    `u`, (|X|, |Y|): P(X,Y), feasible to a solver's accuracy.
    Returns: States without a leading axis, feasible to 1e-9 and with no more leakage than u, to 1e-8. If symbols are
    unused there is a second one, from which a pass can bring them back.
    """
    live = Live.of(u, problem, constraints)
    if live.rows.size > _LARGEST:
        return []
    face = predicted(u[live.rows, live.columns], problem, live)
    face = face if face is None else corrected(face, problem, live)
    if face is None or not _holds(face, u, problem, live):
        return []
    found = live.table(face.x)
    ways = [copied(found, u)]
    if unused(found).size:
        ways.append(priced(found, face, problem, live, constraints))
    lam = np.array([face.lam])
    return [single(closed_form.complete(way[None], problem.p_s_given_x, lam), 0) for way in ways]


def corrected(face: Face, problem: Problem, live: Live) -> Face | None:
    """Return the face's stationary point by Newton's method, or None where there is none near.

    The Hessian is shifted by the error that is left (Levenberg and Marquardt): steps stay quadratic, and two columns of
    one posterior, between which mass moves freely, keep theirs. A small cell that would fall below 0 is put there.
    """
    for _ in range(_STEPS):
        system = _System(face, problem, live)
        if system.error <= _ENOUGH:
            return face if system.is_minimum() else None
        try:
            move, lam, prices = system.step()
        except np.linalg.LinAlgError:
            return None
        here, cells = face.x[face.free], face.free < live.rows.size
        lost = cells & (move <= -here) & (here < _SMALL)
        if lost.any():
            emptied = face.x.copy()
            emptied[face.free[lost]] = 0.0
            face = replace(face, x=emptied, free=face.free[~lost])
            continue
        length = min(1.0, 0.9 / max(float((-move[cells] / here[cells]).max(initial=0.0)), 0.9))
        moved = face.x.copy()
        moved[face.free] += length * move
        face = Face(moved, face.free, face.binding, face.prices + length * prices, face.lam + lam)
    return None


class _System:
    """The first-order conditions on a face, and Newton's step for them, cells scaled by the root of their mass."""

    def __init__(self, face: Face, problem: Problem, live: Live) -> None:
        self._face, self._problem, self._live = face, problem, live
        self._rows = live.matrix[face.binding][:, face.free].toarray()
        cells, here = face.free[face.free < live.rows.size], face.x[face.free]
        own = np.zeros(face.free.size - cells.size)  # the slopes along the constraints' own variables
        at = live.rows[cells], live.columns[cells]
        rise, log_w = (np.append(part[at], own) for part in slopes(live.table(face.x), problem))
        self._log_w, self._scale = log_w, np.append(np.sqrt(face.x[cells]), own + 1.0)
        self._slope = rise - face.lam * log_w + self._rows.T @ face.prices
        self._gaps = np.append(self._rows @ here - live.bound[face.binding], problem.target - float(here @ log_w))
        parts = (self._scale * self._slope, self._gaps)
        #: The worst of stationarity (scaled as the cells are) and of the equations, in nats and masses.
        self.error = max(float(np.abs(part).max(initial=0.0)) for part in parts)

    @cached_property
    def _matrices(self) -> tuple[Array, Array, Array]:
        """The Lagrangian's Hessian, the rows, of unit length, and their lengths."""
        face, scale = self._face, self._scale
        bent = curvature(face.x, face.free, face.lam, self._problem, self._live, scale)
        rows = np.vstack([self._rows, -self._log_w]) * scale
        size = np.maximum(np.linalg.norm(rows, axis=1), 1e-12)
        return bent, rows / size[:, None], size

    def is_minimum(self) -> bool:
        """Whether no direction on the face curves downwards: else the point is a saddle or worse."""
        bent, rows, _ = self._matrices
        along = null_space(rows, rcond=1e-9)
        return not along.size or float(np.linalg.eigvalsh(along.T @ bent @ along)[0]) >= -_CURVED

    def step(self) -> tuple[Array, float, Array]:
        """Return what to add to x at its free places, to lam and to the prices."""
        scale, (bent, rows, size) = self._scale, self._matrices
        count, shift = scale.size, float(np.clip(self.error, 1e-12, 1e-2))
        # Binding rows may repeat each other: their block is not quite zero.
        whole = np.block([[bent + shift * np.eye(count), rows.T], [rows, -1e-12 * np.eye(size.size)]])
        right = -np.concatenate([scale * self._slope, self._gaps / size])
        found = np.linalg.solve(whole, right)
        found += np.linalg.solve(whole, right - whole @ found)
        prices = found[count:] / size
        return scale * found[:count], float(prices[-1]), prices[:-1]


def _holds(face: Face, before: Array, problem: Problem, live: Live) -> bool:
    """Whether a face's point is feasible, its multipliers have the right sign, and it leaks no more than before."""
    constrained = face.prices[live.equalities :]
    if face.x[: live.rows.size].min(initial=0.0) < 0.0 or face.lam < 0.0 or constrained.min(initial=0.0) < -_FEASIBLE:
        return False
    left = live.bound - live.matrix @ face.x
    if np.abs(left[: live.equalities]).max(initial=0.0) > _FEASIBLE or left.min(initial=0.0) < -_FEASIBLE:
        return False
    after, told = live.table(face.x) / problem.p_x[:, None], problem.rate - _FEASIBLE
    return problem.utility(after) >= told and problem.leakage(after) <= (
        problem.leakage(before / problem.p_x[:, None]) + _RISE
    )


def unused(u: Array) -> Indices:
    """Return the indices of the columns of u, (|X|, |Y|), without mass."""
    return np.asarray(np.flatnonzero(u.sum(axis=0) <= 0.0))


def copied(u: Array, before: Array) -> Array:
    """Return log u where each unused column has the posterior of the live one nearest to its own.

    `u`, `before`, (|X|, |Y|): P(X,Y) with and without its unused columns set to 0.
    Returns (|X|, |Y|).
    """
    live = np.flatnonzero(u.sum(axis=0) > 0.0)
    log_u = np.log(np.maximum(u, np.exp(FLOOR)))
    posterior = np.log(np.maximum(u[:, live], ASIDE) / u[:, live].sum(axis=0))
    for column in unused(u):
        near = live[int((-before[:, column] @ posterior).argmin())]
        log_u[:, column] = np.maximum(log_u[:, near] + np.log(ASIDE), FLOOR)
    return log_u


def priced(u: Array, face: Face, problem: Problem, live: Live, constraints: ConstraintRows) -> Array:
    """Return log u where each unused column has a posterior of least price among those near a live one's.

    The price of a posterior w is ``sum_i w_i (rise_i - lam log w_i + c_i)``, c_i what a unit of mass in that cell costs
    at the multipliers of the row sums and the constraints: what the column would add to the Lagrangian. Exponentiated
    gradient steps of length 1 lower it, as those of PF Algorithm 1 do.
    Returns (|X|, |Y|).
    """
    s, log_u = problem.p_s_given_x, np.log(np.maximum(u, np.exp(FLOOR)))
    starts = u[:, u.sum(axis=0) > 0.0]
    starts = 0.99 * starts / starts.sum(axis=0) + 0.01 * problem.p_x[:, None]
    costs = _costs(face, problem, live, constraints)
    for column in unused(u):
        log_w = np.log(starts)
        for _ in range(_DESCENTS):
            w = np.exp(log_w)
            slope = s.T @ np.log(s @ w) - face.lam * log_w + costs[:, [column]]
            price = np.sum(w * slope, axis=0)
            moved = np.maximum(log_w - (slope - price), FLOOR)
            log_w = moved - np.log(np.exp(moved).sum(axis=0))
            if np.abs(np.exp(log_w) - w).max() <= _ALIKE:
                break
        log_u[:, column] = np.maximum(log_w[:, int(price.argmin())] + np.log(ASIDE), FLOOR)
    return log_u


def _costs(face: Face, problem: Problem, live: Live, constraints: ConstraintRows) -> Array:
    """Return the cost of a unit of mass in each cell at the multipliers of row sums and constraints, (|X|, |Y|)."""
    rows = problem.p_x.size
    prices = np.zeros(live.bound.size)
    prices[face.binding] = face.prices
    of_constraints = np.concatenate([prices[rows : live.equalities], prices[live.equalities + live.rows.size :]])
    of_cells = (constraints.matrix.T @ of_constraints)[: rows * live.shape[1]]
    return np.asarray(prices[:rows, None] + of_cells.reshape(live.shape))
