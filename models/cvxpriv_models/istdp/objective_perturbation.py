"""Objective perturbation (Chaudhuri, Monteleoni and Sarwate 2011, Algorithm 2): a random linear term in F.

The exact minimiser of J = (1/m) sum_i l(x_i theta, y_i) + (lam + more)/2 ||theta||^2 + b'theta/m, b of
density proportional to exp(-rate ||b||), is private. Exactly one b leads to each theta, and the density of theta is
that of b there times the determinant of the Hessian of J:

* b moves by at most G between neighbours: slope row_bound where a row is added or removed, twice that where it is
  replaced. That costs rate G.
* The Hessian that neighbours share is at least (lam + more) I. The row that they do not share adds a matrix of rank one
  and of norm at most smoothness row_bound^2 / m, on either side. So the determinants have a ratio of at most
  1 + smoothness row_bound^2 / (m (lam + more)), whose logarithm is the other cost. (Chaudhuri's is twice as large.)

`more` is there where that logarithm is above half of epsilon. The argument needs a loss and a penalty whose second
derivatives are continuous. It is no Gaussian release: b is not added to what is released. The guarantee is pure
epsilon.

**As executed.** A computer finds no exact minimiser, and b is a double: how far it ends from theta may tell of the
data. It finds theta + e with ||e|| <= t, a public number: J is strongly convex, and its gradient there is computed with
a bound of its rounding. Given theta, data and neighbour differ in e alone, by at most 2 t. So theta + e is released on
a grid, with noise of a ball for the sensitivity 2 t (`cvxpriv.privacy.grid`). That is a second release, of `COVER`
times epsilon, and the two compose. Its noise is far below that of theta. Whether t is reached must not tell of a row:
t allows for the rounding at the longest theta that any rows have, where J is at most what it is at 0.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from cvxpriv.errors import ModelError, PrivacyError
from cvxpriv.learning.matrices import shortened
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.rounding import UNIT, sum_rounding
from cvxpriv.penalties import LOSSES, Loss
from cvxpriv.privacy import BallNoise, Noise, Release
from cvxpriv.privacy.sampling import BALL_ERROR

from .clipping import ADJACENCIES, MOST_ROWS, row_blocks, sum_error, summed
from .noisy_descent import smooth_weight
from .output_perturbation import require_bounded_slope
from .private_options import Divisor
from .problem import Design, Problem
from .run import PrivateSettings, PrivateSparseRun

#: Largest remaining gradient of J beside rounding, as a part of the sizes of its two random and private terms.
EXACT = 2.0**-38
#: Part of epsilon that covers the inexactness of computing.
COVER = 2.0**-8
#: Largest ratio of the curvature of a row's loss to lam, which is raised to it: up to ten times this Newton's method
#: ended on all rows of a search, and whether it ends must not tell of a row.
FLATTEST = 1e6


@dataclass(frozen=True)
class Spending:
    """The split of epsilon.

    `rate`: Rate of the density exp(-rate ||b||).
    `more`: The amount that is added to lam.
    `determinant`: The epsilon that the Hessian costs.
    """

    rate: float
    more: float
    determinant: float


def spend(epsilon: float, lam: float, bend: float, moved: float) -> Spending:
    """Return the split of epsilon between b and the Hessian; b gets half of it at least.

    `lam`: Weight of the l2 penalty.
    `bend`: The number smoothness row_bound^2 / m.
    `moved`: Largest distance of b between neighbours.
    """
    half = 0.5 * epsilon
    least = bend * float(np.exp(-half) / -np.expm1(-half))  # bend / (e^half - 1), which overflows
    more = max(least - lam, 0.0)
    determinant = half if lam <= least else float(np.log1p(bend / lam))
    return Spending((epsilon - determinant) / moved, more, determinant)


def require_smooth(problem: Problem) -> float:
    """Return the weight of the l2 penalty."""
    if problem.loss is not LOSSES["logistic"]:
        raise ModelError(
            f"loss={problem.loss.name!r}: objective perturbation is proven for a loss that is convex and twice "
            "differentiable, with bounded slope; pass loss='logistic', or method='istdp'"
        )
    require_bounded_slope(problem)
    return smooth_weight(problem.penalty)


def solve_objective_perturbation(
    problem: Problem, divided: Divisor, row_bound: float, adjacency: str, noise: Noise
) -> PrivateSparseRun:
    """Minimise J over rows of norm at most `row_bound`, exactly."""
    lam, divisor, epsilon = require_smooth(problem), divided.number, divided.left
    slope, smoothness = problem.loss.slope, problem.loss.smoothness
    longest = row_bound * (1.0 + sum_rounding(problem.size + 16))  # as rows are shortened in doubles
    moved = ADJACENCIES[adjacency] * slope * longest
    given, lam = lam, max(lam, smoothness * longest**2 / FLATTEST)
    spent = spend((1.0 - COVER) * epsilon, lam, smoothness * longest**2 / divisor, moved)
    left = gradient_left(problem, spent, lam, divisor, row_bound, MOST_ROWS if adjacency == "add-remove" else 1)
    cover = BallNoise.within(2.0 * left / (lam + spent.more), COVER * epsilon, problem.size)
    b = noise.gamma_ball(problem.size, spent.rate, 1)[0]
    tilted = Tilted(problem, shortened(problem.design, row_bound), lam + spent.more, b, divisor, row_bound)
    theta = cover.release(tilted.minimiser(left), noise)
    note = f"pure; {spent.determinant:.3g} of it for the Hessian, {lam + spent.more - given:.3g} added to lam"
    ledger = (*divided.ledger, Release(epsilon=epsilon, step="coefficients", iteration=1, note=note))
    settings = PrivateSettings(
        "objective-perturbation", 1, slope * row_bound, "none", adjacency, "last", 1.0 / spent.rate, step_limit=0.0
    )
    return PrivateSparseRun.of(problem, theta, settings, ledger, divisor, secure=noise.secure)


def gradient_left(problem: Problem, spent: Spending, lam: float, divisor: int, row_bound: float, times: int) -> float:
    """Return a gradient of J, in Euclidean norm, below which the computed one gets whatever the rows are: see `EXACT`.

    `times`: Largest ratio of the number of rows to the divisor.
    """
    loss, size, lam = problem.loss, problem.size, lam + spent.more
    # ||b|| is the sum of `size` exponentials over the rate: it exceeds this with a probability below 1e-30.
    tilt = (2.0 * size + 90.0) / (spent.rate * divisor)
    # J(theta) <= J(0): lam/2 ||theta||^2 <= times log 2 + ||theta|| tilt.
    longest = (tilt + np.sqrt(tilt**2 + 2.0 * lam * times * np.log(2.0))) / lam
    rounding = rounding_of(loss, times * divisor, size, row_bound, lam, divisor, longest, tilt)
    return float(EXACT * (times * loss.slope * row_bound + size / (spent.rate * divisor)) + 4.0 * rounding)


def rounding_of(
    loss: Loss, rows: int, size: int, row_bound: float, lam: float, divisor: int, length: float, tilt: float
) -> float:
    """Return a bound, in Euclidean norm, of the distance between the computed gradient and that of the real J.

    `length`: ||theta||.
    `tilt`: ||b|| / divisor.
    """
    of_rows = loss.slope * row_bound + loss.smoothness * row_bound**2 * length
    of_sums = 2.0 * sum_error(rows, size) * of_rows * rows / divisor
    return float(of_sums + 4.0 * UNIT * lam * length + (BALL_ERROR + 4.0 * UNIT) * tilt)


#: Largest number of Newton steps, and of halvings of each.
STEPS, HALVINGS = 100, 50
#: Part of the fall that the slope promises by which J must fall.
FALL = 1e-4


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
        """Return `rounding_of` the gradient there."""
        length, tilt = float(np.linalg.norm(theta)), float(np.linalg.norm(self.b)) / self.divisor
        count, size = self.rows.shape
        return rounding_of(self.problem.loss, count, size, self.row_bound, self.lam, self.divisor, length, tilt)

    def minimiser(self, left: float) -> Array:
        """Return theta, (d,), where the real gradient of J has norm at most `left`: within left/lam of the minimum.

        It takes Newton steps, shortened until J falls, down to half of `left`: the rest is for rounding.
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
        length, before, slope = 1.0, self.value(theta), float(gradient @ direction)
        rounding = 2.0**-44 * (abs(before) + float(np.linalg.norm(self.b) * np.linalg.norm(theta)) / self.divisor)
        for _ in range(HALVINGS):
            trial = theta + length * direction
            value = self.value(trial)
            # A fall that is too small would let steps come back. Within the rounding of J the gradient must fall.
            if value <= before + FALL * length * slope or (
                value <= before + rounding and np.linalg.norm(self.gradient(trial)) < np.linalg.norm(gradient)
            ):
                break
            length *= 0.5
        return np.asarray(trial)

    @cached_property
    def _blocks(self) -> tuple[Array | sp.csc_array, ...]:
        return row_blocks(self.rows)
