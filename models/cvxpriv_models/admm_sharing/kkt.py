"""First-order residuals of SHARING (1), from the columns alone, whatever the solver, scheme and penalty.

A point (x, z, y) is optimal for a convex loss iff S = z, -D_m'y lies in lam dR_m(x_m) for every party, and y_i lies in
weight_i dl(z_i) for every sample.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvxpriv.numerics.arrays import Array, Values, relative_residual, worst
from cvxpriv.penalties.contract import distance
from cvxpriv.penalties.loss_steps import in_pieces

from .blocks import total_share
from .factor import Factor
from .problem import Problem

#: Distance from a kink of the loss that counts as on it: rounding leaves as much of a z that was put there.
AT_KINK = 1e-9
#: KKT residual and certified gap, as a part of the objective, at which a run ends unless told otherwise.
TOL, GAP = 1e-7, 1e-6
#: Distance of y from the slopes of the loss, relative to its norm, that an exact z step leaves.
EXACT = 1e-9
#: Rounding error of a sum of products, relative to the sum of their sizes.
ROUNDING = 8.0 * np.finfo(float).eps


@dataclass(frozen=True)
class SharingResiduals:
    """Distances of a point from optimality.

    `primal`: ||sum_m D_m x_m - z||.
    `stationarity`: The distances dist(-D_m'y, lam dR_m(x_m)), one per party.
    `fit`: The distance dist(y, weight dl(z)).
    `scales`: Scales of the three: ||z||, the largest ||D_m'y||, and ||y||, each at least 1.
    """

    primal: float
    stationarity: tuple[float, ...]
    fit: float
    scales: tuple[float, float, float]

    @property
    def largest(self) -> float:
        """The largest of the three, each relative to its scale; `tol` bounds it."""
        figures = (self.primal, worst(self.stationarity), self.fit)
        return relative_residual(figures, self.scales)


def residuals(problem: Problem, factors: Sequence[Factor], state: Values) -> SharingResiduals:
    """Return the residuals of one start of a state (x/0.., v/0.., z, y)."""
    y, parties = state["y"], problem.parties
    pulled = [factors[m].pull_dual(y) for m in range(parties)]
    stationarity = [distance(problem.penalties[m], state[f"x/{m}"], pulled[m], problem.lam) for m in range(parties)]
    return residuals_of_parts(problem, state, stationarity, [float(np.linalg.norm(each)) for each in pulled])


def residuals_of_parts(
    problem: Problem, state: Values, stationarity: Sequence[float], pulled: Sequence[float]
) -> SharingResiduals:
    """Return the residuals of one start, where each party has told its distance from stationarity and ||D_m'y||."""
    z, y, norm = state["z"], state["y"], np.linalg.norm
    scales = float(norm(z)), max(pulled), float(norm(y))
    primal = float(norm(total_share(state, problem.parties) - z))
    return SharingResiduals(primal, tuple(stationarity), _fit(problem, z, y), scales)


def duality_gap(problem: Problem, state: Values) -> float | None:
    """Return an upper bound on objective(x) - optimum, at one start of a state.

    For a convex loss and R_m = (c/2)||x||^2 it is exact duality at the slopes of the loss at z: their conjugate is y'z
    - l(z). A bound of the rounding is added. None for other penalties, for lam = 0, for a loss that is not convex, and
    at a point so far off that the bound is not finite.
    """
    y = dual_within(problem, state)
    parts = [part_of_gap(problem, m, state[f"x/{m}"], y) for m in range(problem.parties)]
    return gap_of_parts(problem, state, y, parts)


def part_of_gap(problem: Problem, m: int, x: Array, y: Array) -> float:
    """Return (c/2)||x_m + D_m'y/c||^2 with c = lam times the ridge of party m; 0 where c is."""
    curvature = problem.lam * (problem.penalties[m].ridge or 0.0)
    off = x + (problem.parts[m].T @ y) / curvature if curvature > 0.0 else np.zeros(0)
    return 0.5 * curvature * float(off @ off)


def has_gap(problem: Problem) -> bool:
    """Return whether `duality_gap` is finite: a convex loss, and squares of all coefficients.

    The product of lam and a ridge is asked: it is 0 where both are tiny.
    """
    return problem.loss.convex and all(problem.lam * (one.ridge or 0.0) > 0.0 for one in problem.penalties)


def gap_asked(problem: Problem, gap: float | None, tol: float) -> float:
    """Return the gap that ends a run: the usual one with the usual `tol`, else none, which is 0."""
    usual = GAP if tol == TOL else 0.0
    return (usual if gap is None else gap) if has_gap(problem) else 0.0


def relative_gap(problem: Problem, state: Values, found: SharingResiduals, objective: float, asked: float) -> float:
    """Return `duality_gap` as a part of the objective, from the residuals; NaN where it is not near `asked`.

    The loss is evaluated only where the parties' parts, a square of their stationarity, are small enough. y is the
    slope of the loss at z, after an exact z step.
    """
    curved = [problem.lam * (one.ridge or 0.0) for one in problem.penalties]
    parts = [off**2 / (2.0 * curvature) for off, curvature in zip(found.stationarity, curved, strict=True)]
    exact = found.fit <= EXACT * max(1.0, found.scales[2])
    if not exact or not objective > 0.0 or not sum(parts) <= asked * objective:
        return float("nan")
    gap = gap_of_parts(problem, state, state["y"], parts)
    return float("nan") if gap is None else gap / objective


def dual_within(problem: Problem, state: Values) -> Array:
    """Return y, (N,), within the slopes of the loss at z."""
    low, high = problem.loss.slopes(state["z"], problem.y, within=AT_KINK)
    return np.asarray(np.clip(state["y"], problem.weights * low, problem.weights * high))


def gap_of_parts(problem: Problem, state: Values, y: Array, parts: Sequence[float]) -> float | None:
    """Return `duality_gap`, where each party has told its `part_of_gap`."""
    if not has_gap(problem):
        return None
    z, loss, weights, labels = state["z"], problem.loss, problem.weights, problem.y
    total = total_share(state, problem.parties)
    here, there = loss.value(total, labels), loss.value(z, labels)
    gap = float(weights @ (here - there) - y @ (total - z))
    gap += ROUNDING * float(weights @ (np.abs(here) + np.abs(there)) + np.abs(y) @ (np.abs(total) + np.abs(z)))
    gap = sum(parts, gap)
    return gap if np.isfinite(gap) else None


def _fit(problem: Problem, z: Array, y: Array) -> float:
    def off(z: Array, y: Array, labels: Array, weights: Array) -> Array:
        low, high = problem.loss.slopes(z, labels, within=AT_KINK)
        if low is high:  # no kink
            return weights * low - y
        return np.maximum(np.maximum(weights * low - y, y - weights * high), 0.0)

    return float(np.linalg.norm(in_pieces(off)(z, y, problem.y, problem.weights)))
