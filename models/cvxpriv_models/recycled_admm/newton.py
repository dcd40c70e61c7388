"""The exact odd step, RADMM (12), (14), (18), of all nodes at once, and the centralised optimum, by one Newton method.

Both are: minimise, for each group of rows by itself, sum_n weight_n l(x_n'f, y_n) + (bend/2)||f||^2 + slope'f, which is
smooth and, with bend > 0, strongly convex. For a penalty that has kinks there is `kinked`.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas, lapack

from cvxpriv.errors import NotConverged
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import Loss

from .rows import Rows

LIMIT = 200
#: A residual of this many roundings of its largest term is 0 to working precision.
ROUNDINGS = 4.0
#: So is one this small, relative to that term, where a step no longer halves it: the rounding of many rows.
GOOD = 1e-12
#: Matrices are kept while a step with them cuts the residual to this part; a fresh one costs as much as many gradients.
CONTRACTION = 0.1
#: Steps are halved until this part of the predicted decrease is there.
ARMIJO, HALVINGS = 1e-4, 60
#: Part of the least residual so far at which a full step is taken without one look at the objective.
HALF = 0.5


def centralised(rows: Rows, y: Array, loss: Loss, weights: Array, bend: float) -> Array:
    """Return the least of sum_n weight_n l(x_n'f, y_n) + (bend/2)||f||^2 over the rows of all nodes, (d,)."""
    found = least(Pooled(rows), y, loss, weights, np.array([bend]), np.zeros((1, rows.features)))
    return np.asarray(found.f[0])


@dataclass(frozen=True, eq=False)
class Pooled:
    """All nodes' rows as those of one, without a copy."""

    rows: Rows

    @property
    def offsets(self) -> npt.NDArray[np.intp]:
        return self.rows.offsets[[0, -1]]

    @property
    def norms(self) -> Array:
        return self.rows.norms

    def predictions(self, f: Array) -> Array:
        return self.rows.predictions(np.repeat(f, len(self.rows.parts), axis=0))

    def back(self, values: Array) -> Array:
        return np.asarray(self.rows.back(values).sum(axis=0, keepdims=True))

    def grams(self, weights: Array, which: npt.NDArray[np.bool_]) -> Array:
        every = np.ones(len(self.rows.parts), dtype=bool)
        return np.asarray(self.rows.grams(weights, every).sum(axis=0, keepdims=True))


@dataclass(frozen=True, eq=False)
class Least:
    """A minimiser of each group, and the measurements there: l of every row, and the gradient of their sums."""

    f: Array
    values: Array
    of_rows: Array
    residual: Array
    iterations: int


@dataclass(frozen=True, eq=False)
class _At:
    """A point of every group and its predictions, with the gradients there, of the rows alone and of all.

    `scale`, (m,): The largest of the terms that cancel in a gradient.
    """

    f: Array
    z: Array
    of_rows: Array
    gradient: Array
    residual: Array
    scale: Array


@dataclass(frozen=True, eq=False)
class _Groups:
    """The objective of every group, (m,): sum_n weight_n l(x_n'f, y_n) + (bend/2)||f||^2 + slope'f."""

    rows: Rows | Pooled
    y: Array
    loss: Loss
    weights: Array
    bend: Array
    slope: Array

    def sums(self, values: Array) -> Array:
        return np.asarray(np.add.reduceat(values, self.rows.offsets[:-1]))

    def at(self, f: Array, z: Array) -> _At:
        """The gradients at a point of every group, whose predictions are z."""
        slopes = self.weights * self.loss.gradient(z, self.y)
        of_rows = self.rows.back(slopes)
        gradient = of_rows + self.bend[:, None] * f + self.slope
        scale = np.maximum(self.sums(np.abs(slopes) * self.rows.norms), self._pulled)
        return _At(f, z, of_rows, gradient, _lengths(gradient), np.maximum(scale, self.bend * _lengths(f)))

    def rounding(self, at: _At) -> Array:
        """The part of the gradients' lengths that the rounding of predictions can make, (m,)."""
        bent = self.weights * self.loss.curvature(at.z, self.y) * self.rows.norms**2
        return ROUNDINGS * np.finfo(float).eps * self.sums(bent) * _lengths(at.f)

    @cached_property
    def _pulled(self) -> Array:
        """||slope|| of each group, (m,)."""
        return _lengths(self.slope)

    def values(self, f: Array, z: Array) -> tuple[Array, Array]:
        """The objectives, and the sizes of what they are sums of."""
        of_rows = self.sums(self.weights * self.loss.value(z, self.y))
        square = 0.5 * self.bend * (f * f).sum(axis=1)
        linear = self.slope * f
        return of_rows + square + linear.sum(axis=1), of_rows + square + np.abs(linear).sum(axis=1)

    def roots(self, z: Array, which: npt.NDArray[np.bool_]) -> list[Array]:
        """The Cholesky factors of the Hessians of some groups, each (d, d)."""
        hessians = self.rows.grams(self.weights * self.loss.curvature(z, self.y), which)
        every = np.arange(self.slope.shape[1])
        hessians[:, every, every] += self.bend[which, None]
        found = [lapack.dpotrf(hessian.T, lower=1, overwrite_a=1, clean=0) for hessian in hessians]
        if any(failed for _, failed in found):
            raise NotConverged("a Hessian is singular, and the optimum is not unique: choose reg > 0")
        return [root for root, _ in found]

    def moved(self, at: _At, step: Array, best: Array) -> _At:
        """Return the points at length 1 along the steps, halved until the objective falls, or stands still to rounding.

        Predictions are linear along a step: a trial costs no product with the rows. A full step that halves the least
        residual so far is taken without a look at the objective, which costs as much as a gradient's slopes. It can
        happen only so often, and all other steps fall.
        """
        along = self.rows.predictions(step)
        there = self.at(at.f + step, at.z + along)
        short = ~(there.residual <= HALF * best)
        if not short.any():
            return there
        value, terms = self.values(at.f, at.z)
        descent, slack = (step * at.gradient).sum(axis=1), ROUNDINGS * np.finfo(float).eps * terms
        size, f, z = np.ones(len(step)), there.f, there.z
        for _ in range(HALVINGS):
            short &= ~(self.values(f, z)[0] <= value + ARMIJO * size * descent + slack)
            if not short.any():
                break
            size[short] *= 0.5
            f, z = at.f + size[:, None] * step, at.z + np.repeat(size, np.diff(self.rows.offsets)) * along
        return there if size.min() == 1.0 else self.at(f, z)


def _lengths(vectors: Array) -> Array:
    """Euclidean norms of rows, (m,): np.linalg.norm takes four times as long on a few."""
    return np.asarray(np.sqrt(np.vecdot(vectors, vectors)))


def least(
    rows: Rows | Pooled,
    y: Array,
    loss: Loss,
    weights: Array,
    bend: Array,
    slope: Array,
    start: Array | None = None,
    enough: Array | float = 0.0,
) -> Least:
    """Return the least of every group's objective by Newton's method, with matrices kept while they serve.

    No group's numbers depend on another one: a node by itself finds the same bits.

    `enough`, (m,): A residual that will do where a step no longer halves it.
    Raises NotConverged: The residual is neither 0 to working precision nor that small.
    """
    groups = _Groups(rows, y, loss, weights, bend, slope)
    f = np.zeros_like(groups.slope) if start is None else start
    at = groups.at(f, groups.rows.predictions(f))
    roots, stale = np.empty(len(f), dtype=object), np.ones(len(f), dtype=bool)
    before, best = np.full(len(f), np.inf), at.residual
    for iteration in range(LIMIT):
        done = at.residual <= ROUNDINGS * np.finfo(float).eps * at.scale
        stands = ~done & (at.residual >= 0.5 * before)
        done |= stands & (at.residual <= np.maximum(GOOD * at.scale, enough))
        if (stands & ~done).any():
            done |= stands & (at.residual <= groups.rounding(at))
        if done.all():
            return Least(at.f, groups.loss.value(at.z, groups.y), at.of_rows, at.residual, iteration)
        if iteration:
            stale = ~done & (at.residual > CONTRACTION * before)
        if stale.any():
            for node, root in zip(np.flatnonzero(stale), groups.roots(at.z, stale), strict=True):
                roots[node] = root
        step = -at.gradient
        step[done] = 0.0
        for node in np.flatnonzero(~done):
            half = blas.dtrsv(roots[node], step[node], lower=1)  # two thirds of dpotrs, which is for many sides
            step[node] = blas.dtrsv(roots[node], half, lower=1, trans=1)
        before = at.residual
        at = groups.moved(at, step, np.where(done, np.inf, best))
        best = np.minimum(best, at.residual)
    raise NotConverged(f"Newton's method left a residual of {at.residual.max():.2e} after {LIMIT} steps: raise reg")
