"""The tilted objective of objective perturbation, and its minimiser with an error bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from cvxpriv.errors import PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.rounding import UNIT
from cvxpriv.privacy.sampling import BALL_ERROR

from .clipping import row_blocks, sum_error, summed
from .design import Design
from .problem import Problem

#: Largest number of Newton steps, and of halvings of each.
STEPS, HALVINGS = 100, 50


@dataclass(frozen=True, eq=False)
class Tilted:
    """J(theta) = (1/divisor) sum_i l(x_i theta, y_i) + (lam/2) ||theta||^2 + b'theta/divisor.

    `problem`: The problem, with loss and labels.
    `rows`, (n, d): The rows, of norm at most `row_bound`.
    `lam`: Weight of the square, > 0.
    `b`, (d,): A double vector, within `BALL_ERROR` of a real one relative to its norm.
    """

    problem: Problem
    rows: Design
    lam: float
    b: Array
    divisor: int
    row_bound: float

    def value(self, theta: Array) -> float:
        """Return J."""
        losses = self.problem.loss.value(self.rows @ theta, self.problem.y)
        return float(losses.sum() / self.divisor + 0.5 * self.lam * theta @ theta + self.b @ theta / self.divisor)

    def gradient(self, theta: Array) -> Array:
        """Return the gradient of J, (d,)."""
        slopes = self.problem.loss.gradient(self.rows @ theta, self.problem.y) / self.divisor
        return np.asarray(summed(self._blocks, slopes) + self.lam * theta + self.b / self.divisor)

    def rounding(self, theta: Array) -> float:
        """Return a bound, in Euclidean norm, of the distance between the computed gradient and that of the real J."""
        loss, count = self.problem.loss, self.rows.shape[0]
        length, tilt = float(np.linalg.norm(theta)), float(np.linalg.norm(self.b)) / self.divisor
        of_rows = loss.slope * self.row_bound + loss.smoothness * self.row_bound**2 * length
        of_sums = 2.0 * sum_error(count, theta.size) * of_rows * count / self.divisor
        return float(of_sums + 4.0 * UNIT * self.lam * length + (BALL_ERROR + 4.0 * UNIT) * tilt)

    def minimiser(self, left: float) -> Array:
        """Return theta, (d,), where the real gradient of J has norm at most `left`: within left/lam of the minimum.

        It takes Newton steps, shortened until J falls, down to half of `left`: the rest is for rounding.

        Raises PrivacyError: The minimiser is not known to be there.
        """
        theta = np.zeros(self.rows.shape[1])
        for _ in range(STEPS):
            gradient = self.gradient(theta)
            size = float(np.linalg.norm(gradient))
            if size <= 0.5 * left and size + self.rounding(theta) <= left:
                return theta
            theta = self._next(theta, gradient)
        raise PrivacyError(
            "J was not solved exactly enough for its noise to cover the rest, and nothing was released: raise lam of "
            "the penalty, or pass method='istdp'"
        )

    def _next(self, theta: Array, gradient: Array) -> Array:
        weight = self.problem.loss.curvature(self.rows @ theta, self.problem.y) / self.divisor
        rows = self.rows
        weighted = rows * weight[:, None] if isinstance(rows, np.ndarray) else rows.multiply(weight[:, None])
        hessian = rows.T @ weighted
        dense = np.asarray(hessian if isinstance(hessian, np.ndarray) else hessian.toarray())
        direction = -cho_solve(cho_factor(dense + self.lam * np.eye(theta.size)), gradient)
        length, before = 1.0, self.value(theta)
        for _ in range(HALVINGS):
            trial = theta + length * direction
            # Near the end J falls by less than its rounding: then the gradient must.
            if self.value(trial) < before or np.linalg.norm(self.gradient(trial)) < np.linalg.norm(gradient):
                break
            length *= 0.5
        return np.asarray(trial)

    @cached_property
    def _blocks(self) -> tuple[Array | sp.csc_array, ...]:
        return row_blocks(self.rows)
