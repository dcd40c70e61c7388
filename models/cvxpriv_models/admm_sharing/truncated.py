"""Newton's method on all parties' columns by products alone, where a party's own system would cost far more.

A party's system takes about as many products as it has columns, and each new penalty takes as many again. With
squares and a smooth loss the problem itself can be minimised without any: each Newton step by conjugate gradients, no
further than it pays (Dembo and Steihaug 1983), and as long as the line falls: its search takes no product. The rows
that bend most carry most of the Hessian once predictions are of use; its inverse with these rows alone, by the identity
of Woodbury, makes the rest short.

It needs all columns in one place.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy import linalg, sparse

from cvxpriv.learning.matrices import row_norms
from cvxpriv.numerics.arrays import Array

from . import kkt
from .factor import Factor
from .problem import Problem

#: Products of all parties' systems, for each entry of their columns, from which it is worth its while.
COSTLY = 1000
#: Rows of the preconditioner, and the most entries that they may have.
ROWS, ENTRIES = 300, 20_000_000
#: Most products with all columns before it gives up.
MOST = 1000
#: Part of the gradient, in the norm of the preconditioner, that a step leaves at most, and the part of a certified gap
#: or residual that is aimed at.
LOOSE, AIM = 0.35, 0.5
#: Largest norm of predictions on the way, as a multiple of theirs, beyond which they are made anew.
FAR = 100.0
#: Part of the first slope on a step at which the search for its length ends, and its most trials.
FLAT, TRIALS = 0.1, 40
#: Curvature of the chosen rows beside the squares above which the identity of Woodbury loses too many digits.
STIFF = 1e8


def may_begin(problem: Problem) -> bool:
    """Return whether a run may begin with it: a smooth loss, squares, and systems that cost far more than products."""
    shapes = [part.shape for part in problem.parts]
    systems = sum(float(min(shape)) ** 2 * max(shape) for shape in shapes)
    entries = sum(part.nnz if sparse.issparse(part) else part.size for part in problem.parts)
    return kkt.has_gap(problem) and bool(np.isfinite(problem.loss.smoothness)) and systems > COSTLY * entries


class Truncated:
    """The problem as one of all coefficients side by side, (d,)."""

    def __init__(self, problem: Problem, factors: Sequence[Factor]) -> None:
        self.problem, self.factors = problem, factors
        ridges = [problem.lam * float(one.ridge or 0.0) for one in problem.penalties]
        self.ridge = np.repeat(ridges, [part.shape[1] for part in problem.parts])
        self.squares = np.sum([row_norms(part) ** 2 for part in problem.parts], axis=0)
        self.spent = 0

    def minimised(self, x: Array, tol: float, gap: float) -> Array | None:
        """Return x from a start, with a residual of `tol` or a certified gap of `gap`, or None: products run out."""
        problem, share, farthest = self.problem, self._share(x), 0.0
        while self.spent < MOST:
            pulled = self._pull(problem.weights * problem.loss.gradient(share, problem.y))
            gradient, value = pulled + self.ridge * x, self._value(share, x)
            certified = 0.5 * float(gradient @ (gradient / self.ridge))
            scale = max(1.0, *(float(np.linalg.norm(one)) for one in problem.split(pulled)))
            off = float(np.linalg.norm(gradient)) / scale
            if off <= AIM * tol or certified <= AIM * gap * value:
                return x
            if not np.isfinite(certified):
                return None
            enough = max(np.sqrt(AIM * gap * value / certified), AIM * tol / off)
            step, moved = self._newton(share, gradient, max(min(LOOSE, np.sqrt(certified / value)), 0.5 * enough))
            if not float(gradient @ step) < 0.0:
                return None
            length = self._length(x, share, step, moved, abs(float(gradient @ step)))
            x, share = x + length * step, share + length * moved
            farthest = max(farthest, float(np.linalg.norm(share)))
            if farthest > FAR * np.linalg.norm(share):  # what rounding there left in them
                share, farthest = self._share(x), 0.0
        return None

    def _length(self, x: Array, share: Array, step: Array, moved: Array, slope: float) -> float:
        """Return the length of a step where its slope has all but vanished; longer than 1 where curvature falls."""
        low, high, length = 0.0, np.inf, 1.0
        for _ in range(TRIALS):
            pulled = self.problem.weights * self.problem.loss.gradient(share + length * moved, self.problem.y)
            here = float(pulled @ moved + (self.ridge * (x + length * step)) @ step)
            if abs(here) <= FLAT * slope:
                break
            low, high = (length, high) if here < 0.0 else (low, length)
            length = 0.5 * (low + high) if np.isfinite(high) else 2.0 * length
        return length

    def _newton(self, share: Array, gradient: Array, left: float) -> tuple[Array, Array]:
        """Return a step and its share, by conjugate gradients until a part of the gradient is `left`."""
        problem = self.problem
        bend = problem.weights * problem.loss.curvature(share, problem.y)
        inverse = self._inverse(bend)
        step, moved, rest = np.zeros_like(gradient), np.zeros_like(share), -gradient
        way = inverse(rest)
        first = size = float(rest @ way)
        while size > left**2 * first and self.spent < MOST:
            along = self._share(way)
            bent = self._pull(bend * along) + self.ridge * way
            length = size / float(way @ bent)
            step, moved, rest = step + length * way, moved + length * along, rest - length * bent
            turned = inverse(rest)
            before, size = size, float(rest @ turned)
            way = turned + size / before * way
        return step, moved

    def _inverse(self, bend: Array) -> Callable[[Array], Array]:
        """Return the map by the inverse of the Hessian that has only the rows of largest curvature."""
        root, split = np.sqrt(self.ridge), self.problem.split
        count = min(ROWS, bend.size, max(1, ENTRIES // self.ridge.size))
        chosen = np.sort(np.argpartition(-bend * self.squares, count - 1)[:count])
        rows, heights = np.empty((count, root.size)), np.sqrt(bend[chosen])[:, None]
        for part, own, to in zip(self.problem.parts, split(root), split(rows.T), strict=True):
            dense = part[chosen].toarray() if sparse.issparse(part) else part[chosen]
            np.multiply(dense, heights / own, out=to.T)
        system = rows @ rows.T
        if np.trace(system) > STIFF:
            return _by_singular_vectors(rows, root)
        system[np.diag_indices_from(system)] += 1.0
        factored = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)

        def inverse(v: Array) -> Array:
            whole = v / root
            return np.asarray((whole - rows.T @ linalg.cho_solve(factored, rows @ whole, check_finite=False)) / root)

        return inverse

    def _share(self, x: Array) -> Array:
        self.spent += 1
        parts = zip(self.factors, self.problem.split(x), strict=True)
        return np.asarray(np.sum([factor.share(own) for factor, own in parts], axis=0))

    def _pull(self, u: Array) -> Array:
        self.spent += 1
        return np.concatenate([factor.pull(u) for factor in self.factors])

    def _value(self, share: Array, x: Array) -> float:
        return self.problem.fit_value(share) + 0.5 * float(x @ (self.ridge * x))


def _by_singular_vectors(rows: Array, root: Array) -> Callable[[Array], Array]:
    """Return the inverse of I + rows' rows between 1/root, positive definite to rounding whatever the rows' size."""
    _, values, basis = linalg.svd(rows, full_matrices=False, check_finite=False)
    shrunk = 1.0 / (1.0 + values**2)

    def inverse(v: Array) -> Array:
        whole = v / root
        inside = basis @ whole
        outside = whole - basis.T @ inside
        outside -= basis.T @ (basis @ outside)  # what rounding left inside is larger than the inverse there
        return np.asarray((outside + basis.T @ (shrunk * inside)) / root)

    return inverse
