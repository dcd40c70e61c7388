"""The end of a constrained funnel: Newton's method on the constraints that bind.

The convex-concave procedure finds out which constraints bind, and then only crawls: it knows nothing of the curvature
of I(X;Y). Here a convex quadratic model, with every linear constraint exact, names the binding ones and their
multipliers (`faces.py`); then Newton's method solves the first-order conditions of PF (1) with these as equations
(`corrected`). What it gives is checked: feasible, no more leakage, else None, and the procedure goes on.

Released symbols that nobody uses are set aside: each takes the posterior of its nearest live one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.linalg import null_space

from cvxpriv.blocks.declaration import Constraint
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.schedules.steps import Accelerator

from . import closed_form
from .faces import ConstraintRows, Face, Live, curvature, linear_rows, predicted, slopes
from .problem import Problem
from .unused_columns import copied, priced, unused

_PASSES = 5
_LARGEST = 2000
_STILL = 1e-10
_STEPS = 25
_ENOUGH = 1e-13
_SMALL = 1e-4
_CURVED = 1e-7
_FEASIBLE = 1e-9
_RISE = 1e-8


def newton_on_the_face(
    problem: Problem, constraints: tuple[tuple[str, Constraint], ...], residual: Callable[[Values], float]
) -> Accelerator | None:
    """Return an accelerator: a few passes, then Newton's method on the constraints that bind.

    None where a constraint is not linear: then there are only passes. Points with more than 2000 cells alive are left
    to the passes too.

    `residual`: One start of the state to its KKT residual; it says whether unused symbols are rightly so.
    """
    rows = linear_rows(problem, constraints)
    if rows is None:
        return None

    def accelerate(body: Callable[[Values], dict[str, Array]], state: dict[str, Array], iteration: int) -> Values:
        for _ in range(_PASSES):
            before, state = np.exp(state["log_u"]), body(state)
            if np.abs(np.exp(state["log_u"]) - before).max() <= _STILL:
                break
        log_u, lam = state["log_u"].copy(), state["lam"].copy()
        for start, u in enumerate(np.exp(state["log_u"])):
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
            cells, extra, lam, prices = system.step()
        except np.linalg.LinAlgError:
            return None
        here = face.x[face.free]
        lost = (cells <= -here) & (here < _SMALL)
        if lost.any():
            emptied = face.x.copy()
            emptied[face.free[lost]] = 0.0
            face = replace(face, x=emptied, free=face.free[~lost])
            continue
        length = min(1.0, 0.9 / max(float((-cells / here).max(initial=0.0)), 0.9))
        moved = face.x.copy()
        moved[face.free] += length * cells
        face = Face(
            moved, face.t + length * extra, face.free, face.binding, face.prices + length * prices, face.lam + lam
        )
    return None


class _System:
    """The first-order conditions on a face, and Newton's step for them, cells scaled by the root of their mass."""

    def __init__(self, face: Face, problem: Problem, live: Live) -> None:
        self._face, self._problem, self._live = face, problem, live
        self._cells = live.matrix[face.binding][:, face.free].toarray()
        self._extra = live.extra[face.binding].toarray()
        at = live.rows[face.free], live.columns[face.free]
        rise, self._log_w = (part[at] for part in slopes(live.table(face.x), problem))
        self._scale = np.sqrt(face.x[face.free])
        self._slope = rise - face.lam * self._log_w + self._cells.T @ face.prices
        self._pull = self._extra.T @ face.prices
        here = face.x[face.free]
        missing = problem.target - float(here @ self._log_w)
        self._gaps = np.r_[self._cells @ here + self._extra @ face.t - live.bound[face.binding], missing]
        parts = (self._scale * self._slope, self._pull, self._gaps)
        #: The worst of stationarity (scaled as the cells are) and of the equations, in nats and masses.
        self.error = max(float(np.abs(part).max(initial=0.0)) for part in parts)

    @cached_property
    def _matrices(self) -> tuple[Array, Array, Array]:
        """The Lagrangian's Hessian in the free cells, the rows in cells and t, of unit length, and their lengths."""
        face, scale = self._face, self._scale
        bent = curvature(face.x, face.free, face.lam, self._problem, self._live, scale)
        beside = np.zeros((1, self._extra.shape[1]))
        rows = np.block([[self._cells * scale, self._extra], [(-self._log_w * scale)[None], beside]])
        size = np.maximum(np.linalg.norm(rows, axis=1), 1e-12)
        return bent, rows / size[:, None], size

    def is_minimum(self) -> bool:
        """Whether no direction on the face curves downwards: else the point is a saddle or worse."""
        bent, rows, _ = self._matrices
        along = null_space(rows, rcond=1e-9)[: len(bent)]
        return not along.size or float(np.linalg.eigvalsh(along.T @ bent @ along)[0]) >= -_CURVED

    def step(self) -> tuple[Array, Array, float, Array]:
        """Return what to add to the free cells, to t, to lam and to the prices."""
        scale, (bent, rows, size) = self._scale, self._matrices
        count, extra = scale.size, self._extra.shape[1]
        shift = float(np.clip(self.error, 1e-12, 1e-2))
        whole = np.zeros((count + extra + size.size,) * 2)
        whole[:count, :count] = bent
        primal = np.arange(count + extra)
        whole[primal, primal] += shift
        whole[count + extra :, : count + extra] = rows
        whole[: count + extra, count + extra :] = rows.T
        dual = np.arange(count + extra, len(whole))
        whole[dual, dual] = -1e-12  # binding rows may repeat each other
        right = -np.concatenate([scale * self._slope, self._pull, self._gaps / size])
        found = np.linalg.solve(whole, right)
        found += np.linalg.solve(whole, right - whole @ found)
        prices = found[count + extra :] / size
        return scale * found[:count], found[count : count + extra], float(prices[-1]), prices[:-1]


def _holds(face: Face, before: Array, problem: Problem, live: Live) -> bool:
    """Whether a face's point is feasible, its multipliers have the right sign, and it leaks no more than before."""
    constrained = face.prices[live.equalities :]
    if face.x.min(initial=0.0) < 0.0 or face.lam < 0.0 or constrained.min(initial=0.0) < -_FEASIBLE:
        return False
    left = live.bound - live.matrix @ face.x - live.extra @ face.t
    if np.abs(left[: live.equalities]).max(initial=0.0) > _FEASIBLE or left.min(initial=0.0) < -_FEASIBLE:
        return False
    after, told = live.table(face.x) / problem.p_x[:, None], problem.rate - _FEASIBLE
    return problem.utility(after) >= told and problem.leakage(after) <= (
        problem.leakage(before / problem.p_x[:, None]) + _RISE
    )
