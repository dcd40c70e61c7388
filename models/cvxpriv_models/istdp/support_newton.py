"""Newton steps on the coefficients other than zero, which make GIST's last digits cheap.

Once the zeros are known, (2) is smooth in the other coefficients, and few: d matters no more. A step that would change
a sign stops there, at zero, and that coefficient leaves the support. MCP and SCAD make F bend down: where its Hessian
is not positive definite the penalty's own bend is left out, which bounds F from above (the penalty is concave in
|theta|), so every step goes down. A step is taken only if F falls; the next pass of GIST, over all coordinates, decides
who enters the support. Where they end is kept only if F is below that of every recent point: a pass may raise F, and
Newton steps that lead back to where it began would repeat it without end. Dense columns take a Cholesky factor, sparse
ones conjugate gradients: their factor would fill up, and with denormal numbers, which are slow.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import lapack

from cvxpriv.numerics.arrays import Array, Values, each_start
from cvxpriv.schedules.steps import Update

from .gist import ROUNDING
from .problem import Design, Problem

#: Largest number of Newton steps after a pass, and of halvings of each.
STEPS, HALVINGS = 30, 20
#: Sizes of supports: the Hessian of one larger than the first costs more than a pass, so it must have stayed the same
#: over one; none is larger than the second.
SMALL, LARGEST = 150, 2000
#: Share of the slope that a step's decrease must reach (Armijo).
DECREASE = 1e-4
#: Largest ratio of a step to the point's own size: a loss that is flat at the point has a direction without scale.
WILD = 1e6
#: Part of the support's average diagonal that is added: it makes a nearly singular Hessian factorable.
RIDGE = 1e-10
#: Conjugate gradients: products at most, and the bend, as a part of the diagonal's, that counts as none.
PRODUCTS, FLAT = 200, 1e-14


def suits(problem: Problem) -> bool:
    """Return whether a penalty has what Newton steps need beside the contract: p' and p'' of |theta|, by coordinate."""
    return all(hasattr(problem.penalty, part) for part in ("slope", "bend"))


def support_newton(problem: Problem, tol: float) -> Update:
    """Return the part of a pass that follows its search: Newton steps on the trial's support, to a tenth of tol.

    Where the search found nothing they begin at theta.
    """

    def one(at: Values) -> Values:
        found = at["shortfall"] <= 0.0
        begun = at["trial"] if found else at["theta"]
        size = np.count_nonzero(begun)
        if size <= SMALL or (size <= LARGEST and (np.sign(begun) == np.sign(at["theta"])).all()):
            steps, theta, z, value = _refined(problem, begun, 0.1 * tol)
            if steps and _lower(value, at["recent"]) and not np.array_equal(theta, at["theta"]):
                ended = {"trial": theta, "trial_z": z, "height": value, "newton": float(steps)}
                return {**{name: np.asarray(entry) for name, entry in ended.items()}, "shortfall": np.asarray(0.0)}
        return {**{name: at[name] for name in writes}, "newton": np.asarray(0.0)}

    writes = frozenset({"trial", "trial_z", "height", "shortfall", "newton"})
    return Update("newton", each_start(one), writes | {"theta", "recent"}, writes)


@dataclass(frozen=True)
class _Point:
    """A point of the support's problem: coefficients, predictions, F, and the slope of F by coefficient."""

    v: Array
    z: Array
    value: float
    slope: Array


def _refined(problem: Problem, theta: Array, tol: float) -> tuple[int, Array, Array, float]:
    """Return the number of Newton steps from theta, and where they end: theta, its predictions, F."""
    support = np.flatnonzero(theta)
    if problem.size > problem.features:
        support = np.union1d(support, [problem.features])
    columns, v, steps = problem.columns(support), theta[support], 0
    point = _point(problem, columns, support, v, *_value(problem, columns, support, v))
    while steps < STEPS and point.slope.size and np.abs(point.slope).max() > tol:
        after = _newton_step(problem, columns, support, point)
        if after is None:
            break
        steps += 1
        support, columns, point = after
    refined = np.zeros_like(theta)
    refined[support] = point.v
    return steps, refined, point.z, point.value


def _lower(value: float, recent: Array) -> bool:
    """Return whether F is below that of the recent points, within its rounding."""
    least = float(recent.min())
    return bool(value <= least + ROUNDING * abs(least))


def _value(problem: Problem, columns: Design, support: npt.NDArray[np.intp], v: Array) -> tuple[Array, float]:
    z = columns @ v
    penalised = v[: np.searchsorted(support, problem.features)]
    return z, problem.average_loss(z) + problem.penalty.value(penalised)


def _point(
    problem: Problem, columns: Design, support: npt.NDArray[np.intp], v: Array, z: Array, value: float
) -> _Point:
    slope = columns.T @ (problem.loss.gradient(z, problem.y) / problem.rows)
    penalised = np.searchsorted(support, problem.features)
    slope[:penalised] += np.sign(v[:penalised]) * cast(Any, problem.penalty).slope(v[:penalised])
    return _Point(v, z, value, slope)


def _newton_step(
    problem: Problem, columns: Design, support: npt.NDArray[np.intp], point: _Point
) -> tuple[npt.NDArray[np.intp], Design, _Point] | None:
    """Return the next support, its columns and the point there; None where F falls no more."""
    direction = _direction(problem, columns, support, point)
    if direction is None:
        return None
    free = support == problem.features
    fall = float(point.slope @ direction)
    length = 1.0
    for _ in range(HALVINGS):
        v = point.v + length * direction
        v[(np.sign(v) != np.sign(point.v)) & ~free] = 0.0
        z, value = _value(problem, columns, support, v)
        falls = value <= point.value + DECREASE * length * fall
        # Near the end the fall is below the rounding of F: then the slope must shrink.
        if falls or value <= point.value + ROUNDING * abs(value):
            kept = (v != 0.0) | free
            left, own = (support, columns) if kept.all() else (support[kept], columns[:, kept])
            after = _point(problem, own, left, v[kept], z, value)
            if falls or (left.size and np.abs(after.slope).max() <= 0.5 * np.abs(point.slope).max()):
                return left, own, after
        length *= 0.5
    return None


def _direction(problem: Problem, columns: Design, support: npt.NDArray[np.intp], point: _Point) -> Array | None:
    """Return -H^-1 slope with the Hessian of F, or without its downward bends; None if neither has a solution."""
    weight = problem.loss.curvature(point.z, problem.y) / problem.rows
    penalised = np.searchsorted(support, problem.features)
    bend = np.zeros(support.size)
    bend[:penalised] = cast(Any, problem.penalty).bend(point.v[:penalised])
    if isinstance(columns, np.ndarray):
        directions = _by_factor(columns, weight, bend, point.slope)
    else:
        directions = _by_products(columns, weight, bend, point.slope)
    for direction in directions:
        if np.abs(direction).max() <= WILD * (1.0 + np.abs(point.v).max()):
            return direction
    return None


def _by_factor(columns: Array, weight: Array, bend: Array, slope: Array) -> Iterator[Array]:
    """Yield the directions of the Hessian and of the upward one that have a Cholesky factor."""
    hessian = _weighted(columns, weight)
    yield from _factored(hessian, bend, slope)
    size = max(float(np.trace(hessian)) / slope.size, np.finfo(float).tiny)
    upward = hessian if weight.min() >= 0.0 else _weighted(columns, np.maximum(weight, 0.0))
    yield from _factored(upward, np.maximum(bend, 0.0) + RIDGE * size, slope)


def _factored(matrix: Array, diagonal: Array, slope: Array) -> Iterator[Array]:
    """Yield -(matrix + diag(diagonal))^-1 slope, where that is positive definite."""
    matrix = matrix.copy(order="F")
    matrix.reshape(-1, order="F")[:: slope.size + 1] += diagonal
    factor, failed = lapack.dpotrf(matrix, overwrite_a=1, clean=0)
    if not failed:
        yield -lapack.dpotrs(factor, slope)[0]


def _weighted(columns: Array, weight: Array) -> Array:
    return np.asarray(columns.T @ (weight[:, None] * columns))


def _by_products(columns: sparse.csr_array, weight: Array, bend: Array, slope: Array) -> Iterator[Array]:
    """Yield the same by conjugate gradients, to a part of the slope: few products, where a factor would fill up."""
    across = sparse.csr_array(columns.T)
    squares = across.copy()
    squares.data **= 2
    upward = np.maximum(weight, 0.0)
    diagonal = squares @ upward
    straight = np.maximum(bend, 0.0) + RIDGE * max(float(diagonal.mean()), np.finfo(float).tiny)
    for weights, own in ((weight, bend), (upward, straight)):
        found = _conjugate(partial(_product, columns, across, weights, own), diagonal + straight, slope)
        if found is not None:
            yield found


def _product(columns: sparse.csr_array, across: sparse.csr_array, weight: Array, bend: Array, d: Array) -> Array:
    return np.asarray(across @ (weight * (columns @ d)) + bend * d)


def _conjugate(product: Callable[[Array], Array], scale: Array, slope: Array) -> Array | None:
    """Return about -H^-1 slope by conjugate gradients on H / scale; None where H bends down along a direction."""
    found, left = np.zeros_like(slope), -slope
    along = left / scale
    height = float(left @ along)
    goal = min(0.01, height**0.5) * height
    for _ in range(PRODUCTS):
        image = product(along)
        bend = float(along @ image)
        if not bend > FLAT * float(along @ (scale * along)):
            return None
        found = found + height / bend * along
        left = left - height / bend * image
        before, height = height, float(left @ (left / scale))
        if height <= goal:
            break
        along = left / scale + height / before * along
    return found
