"""Newton's method where R has kinks: the odd step of one node, and the centralised optimum, by semi-smooth steps."""

from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy import linalg

from cvxpriv.errors import NotConverged
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import Box, Loss, Penalty
from cvxpriv.penalties.contract import Separable
from cvxpriv.penalties.convex import Within, by_coordinate

from .newton import CONTRACTION, HALF, HALVINGS, LIMIT, Pooled
from .rows import Rows

#: Rounding of a proximal step, as a part of the terms that cancel; the part of a centre by which it is probed; and what
#: makes a system solvable where the minimiser is not unique.
PRECISION, PROBE, TINY = 1e-14, 1e-7, 1e-15
#: Part of the objective by which it may rise where the move is halved: no more than rounding.
LEVEL = 1e-9


def centralised_kinked(rows: Rows, y: Array, loss: Loss, weights: Array, penalty: Penalty, lam: float) -> Array:
    """Return the least of sum_n weight_n l(x_n'f, y_n) + lam R(f) over the rows of all nodes, (d,)."""
    pooled, nothing = Pooled(rows), np.zeros(rows.features)
    bends = steepest(pooled.grams(weights, np.ones(1, dtype=bool))[0], loss, penalty)
    return Kinked(pooled, y, loss, weights, penalty, lam, nothing, 0.0, bends).least(nothing)


def steepest(gram: Array, loss: Loss, penalty: Penalty) -> Array:
    """Return D, (d,), such that no Hessian of the loss is above diag(D); `gram`, (d, d), is that of weighted rows.

    It follows the columns' scales where R takes a step for each coordinate, and is one number else.
    """
    scales = np.diag(gram) if by_coordinate(penalty) else np.ones(len(gram))
    scales = np.where(scales > 0.0, scales, 1.0)
    roots = np.sqrt(scales)
    most = float(np.linalg.eigvalsh(gram / roots[:, None] / roots)[-1])
    return loss.smoothness * max(most, TINY) * scales


@dataclass(frozen=True, eq=False)
class Kinked:
    """The objective of one group of rows, sum_n weight_n l(x_n'f, y_n) + lam R(f) + slope'f + (bend/2)||f||^2.

    `steepest`, (d,): Curvatures that all terms but R never exceed: see the function of that name.
    """

    rows: Rows | Pooled
    y: Array
    loss: Loss
    weights: Array
    penalty: Penalty
    lam: float
    slope: Array
    bend: float
    steepest: Array

    def height(self, f: Array) -> float:
        """Return the objective at f, (d,)."""
        of_rows = float(self.weights @ self.loss.value(self.rows.predictions(f[None]), self.y))
        return of_rows + self.lam * self.penalty.value(f) + float(self.slope @ f + 0.5 * self.bend * f @ f)

    def move(self, f: Array) -> Array:
        """Return a proximal gradient step from f, (d,): lower, and with coordinates exactly on the kinks of R."""
        return self._at(f)[-1]

    def least(self, start: Array) -> Array:
        """Return the minimiser, (d,), by Newton's method on f = move(f).

        Its derivative has 0 for coordinates that rest on a kink. A step is halved until a move from its end lowers the
        objective, or halves the least move so far at the same height: far away, where losses are flat, moves are small.
        A plain move is always lower.

        Raises NotConverged: It still moves.
        """
        f, z, of_rows, centre, moved = start, *self._at(start)
        best, before, one, probed, root = np.inf, 0.0, np.eye(start.size), np.zeros(0), np.sqrt(self.steepest)
        height = self.height(moved)
        for _ in range(LIMIT):
            size, terms = _length(root * (moved - f)), _length(of_rows / root) + _length(self.slope / root)
            if size <= PRECISION * (_length(root * f) + terms):
                return moved
            known, probed, stale = probed, self._probed(centre), size > CONTRACTION * before
            if stale:
                hessian = self.rows.grams(self.weights * self.loss.curvature(z, self.y), np.ones(1, dtype=bool))[0]
                ahead = (1.0 - self.bend / self.steepest) * one - hessian / self.steepest[:, None]
            if stale or not np.allclose(probed, known, 1e-6, 1e-6):
                turned = probed[:, None] * ahead if probed.ndim == 1 else probed @ ahead
                factors = linalg.lu_factor((1.0 + TINY) * one - turned, check_finite=False)
            best, before, low = min(best, size), size, moved
            beyond = f - low + linalg.lu_solve(factors, low - f, check_finite=False)
            for part in (*0.5 ** np.arange(HALVINGS), 0.0):
                f = low + part * beyond
                z, of_rows, centre, moved = self._at(f)
                near = _length(root * (moved - f)) <= HALF * best
                there = self.height(moved)
                if there < height + (LEVEL * abs(height) if near else 0.0):
                    break
            height = there
        raise NotConverged(f"a proximal step still moves by {size:.1e} after {LIMIT} Newton steps: raise eta or reg")

    def _at(self, f: Array) -> tuple[Array, Array, Array, Array]:
        """Return the predictions, the rows' gradient, the centre of the proximal step, and its end."""
        z = self.rows.predictions(f[None])
        of_rows = self.rows.back(self.weights * self.loss.gradient(z, self.y))[0]
        centre = f - (of_rows + self.slope + self.bend * f) / self.steepest
        return z, of_rows, centre, self._prox(centre)

    def _prox(self, centre: Array) -> Array:
        steps = self.lam / self.steepest
        return self.penalty.prox(centre, cast(float, steps) if by_coordinate(self.penalty) else float(steps[0]))

    def _probed(self, centre: Array) -> Array:
        """Return the derivative of R's proximal step, (d,) or (d, d), by differences: it is linear but for kinks."""
        h = PROBE * (np.abs(centre) + self.lam / self.steepest + TINY)
        if isinstance(self.penalty, (Separable, Box, Within)):  # coordinate by coordinate
            return np.asarray((self._prox(centre + h) - self._prox(centre - h)) / (2.0 * h))
        h = np.full(centre.size, h.max())
        return np.stack(
            [(self._prox(centre + one) - self._prox(centre - one)) / (2.0 * h) for one in np.diag(h)], axis=1
        )


def _length(vector: Array) -> float:
    return float(np.linalg.norm(vector))
