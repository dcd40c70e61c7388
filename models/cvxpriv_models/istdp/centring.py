"""Private centring: the rows' mean and second moment are released, and the fit is of rows without their mean.

The mean direction holds much of the rows' energy, and so of each gradient's clip and noise, but an intercept fits it.
Rows are shortened to a public norm R and divided by it. Their mean m and second moment S are one Gaussian release, the
entries of S beside the diagonal once, times sqrt(2), so that its Euclidean norm is that of (m, S).

**Sensitivity.** Where u becomes v, both of norm at most 1, with cosine c, the sums move by ||u - v||^2 + ||u u' -
v v'||^2 = a^2 + b^2 - 2 a b c + a^4 + b^4 - 2 a^2 b^2 c^2, squared, a and b the norms. It is greatest at c = -1/(2 a b)
where that is a cosine: a^2 + b^2 + a^4 + b^4 + 1/2, at most **4.5**; else at c = -1, where a b < 1/2 keeps it below. A
row that is added or removed moves them by a^2 + a^4, at most **2**. Both are divided by n.

What follows reads the released numbers alone. The rows lose m, and a last column of one number stands for the
intercept. The clip is a part of the radius of S - m m', and the step is 1/L with its largest eigenvalue. Noise alone
has eigenvalues up to e = deviation sqrt(2 d), and lifts one of size t > e/2 to t + e^2/(4 t) (Benaych-Georges and
Nadakuditi 2011): that is taken back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxpriv.errors import ModelError
from cvxpriv.learning.matrices import shortened
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.rounding import sum_rounding
from cvxpriv.penalties import Loss
from cvxpriv.privacy import GaussianNoise, Noise, Release

from .clipping import MOST_ROWS
from .problem import Design, Problem

#: Part of mu^2 that the moments get.
SHARE = 0.1
#: The clip, and the intercept's column, as parts of the released radius.
CLIP, COLUMN = 0.7, 0.25
#: Least radius as a part of R: noise may hide what is less.
LEAST = 0.05
#: Squares of the sensitivity times n, by neighbour relation.
SQUARES = {"replace-one": 4.5, "add-remove": 2.0}
#: Noise of the second moment, as a part of R^2 and in any direction, up to which centring is the default.
RESOLVED = 0.4
#: Most columns, and most entries of the dense centred rows for which it is the default.
MOST_COLUMNS, MOST_ENTRIES = 1000, 100_000_000
CENTRES = ("auto", "private", "none")
STEP = "mean and second moment"


@dataclass(frozen=True, eq=False)
class Centre:
    """The released moments of the columns, in the units of these.

    `mean`: (d,).
    `spread`, (d, d): Second moment about the mean. Noise may leave it with negative eigenvalues.
    `bound`: The norm R to which rows were shortened.
    `deviation`: Standard deviation of the noise in an entry on the diagonal of `spread`.
    `left`: The mu that is left.
    """

    mean: Array
    spread: Array
    bound: float
    deviation: float
    release: Release
    left: float

    def of_columns(self, chosen: npt.NDArray[np.intp]) -> Centre:
        """Return the same of some columns."""
        return replace(self, mean=self.mean[chosen], spread=self.spread[np.ix_(chosen, chosen)])

    @property
    def radius(self) -> float:
        """Root of the mean square of a centred row's norm, between `LEAST` and 1 times the bound."""
        return float(np.sqrt(np.clip(np.trace(self.spread), (LEAST * self.bound) ** 2, self.bound**2)))

    @property
    def column(self) -> float:
        """The number of which the intercept's column consists."""
        return COLUMN * self.radius

    @property
    def largest(self) -> float:
        """Greatest second moment of a centred row in any direction, the intercept's among them."""
        found, edge = float(np.linalg.eigvalsh(self.spread)[-1]), self.deviation * float(np.sqrt(2.0 * len(self.mean)))
        without = 0.5 * (found + np.sqrt(found**2 - edge**2)) if found > edge else 0.5 * edge
        least = max(self.radius**2 / len(self.mean), self.column**2)
        return float(np.clip(without, least, self.bound**2))

    def clip(self, loss: Loss) -> float:
        """Return the clipping bound of a centred row's gradient."""
        return CLIP * self.radius * loss.slope

    def step_limit(self, loss: Loss) -> float:
        """Return the greatest step, 1/L."""
        return float(1.0 / (loss.smoothness * self.largest))

    def centred(self, problem: Problem) -> Problem:
        """Return the rows without their mean, and with the intercept's column last."""
        rows = problem.design[:, : problem.features]
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        column = np.full(problem.rows, self.column)
        return replace(problem, design=np.asfortranarray(np.column_stack([dense - self.mean, column])))

    def original(self, theta: Array) -> Array:
        """Return the coefficients of the rows as they were, with their intercept last, (d + 1,)."""
        inner = theta[:-1]
        return np.append(inner, self.column * theta[-1] - self.mean @ inner)


def moments(design: Design, divisor: int) -> Array:
    """Return mean and second moment of rows of norm at most 1 as one vector, (d + d (d + 1)/2,)."""
    gram = design.T @ design
    second = np.asarray(gram if isinstance(gram, np.ndarray) else gram.toarray())
    upper = np.triu_indices(second.shape[0])
    weights = np.where(upper[0] == upper[1], 1.0, np.sqrt(2.0))
    return np.concatenate([np.asarray(design.sum(axis=0)).ravel(), weights * second[upper]]) / divisor


def moments_sensitivity(divisor: int, features: int, adjacency: str) -> float:
    """Return the largest Euclidean norm by which a neighbour moves `moments`, as they are computed.

    Each computed entry is a sum of rounded products; all of them together have size at most 2 a row.
    """
    rows = divisor * (MOST_ROWS if adjacency == "add-remove" else 1)
    rounding = 4.0 * sum_rounding(rows + features + 16) * rows / divisor
    return float(np.sqrt(SQUARES[adjacency]) / divisor + rounding)


def resolves(problem: Problem, divisor: int, mu: float, adjacency: str) -> bool:
    """Return whether centring is the default: by public numbers, the moments' noise is small beside R^2."""
    features = problem.features
    if not (problem.intercept and np.isfinite(problem.loss.slope) and features <= MOST_COLUMNS):
        return False
    if divisor * features > MOST_ENTRIES:
        return False
    deviation = moments_sensitivity(divisor, features, adjacency) / (mu * np.sqrt(SHARE))
    return bool(deviation * np.sqrt(2.0 * features) <= RESOLVED)


def require_centring(problem: Problem) -> None:
    """Refuse what has no intercept, or no bound of a row's slope."""
    if not problem.intercept:
        raise ModelError(
            "centre='private' needs intercept=True: only an intercept makes coefficients of rows without their mean "
            "those of the rows; make the model with intercept=True, or pass centre='none'"
        )
    if not np.isfinite(problem.loss.slope):
        raise ModelError(
            f"centre='private': the slope of loss={problem.loss.name!r} has no bound that a clip follows from; pass "
            "centre='none'"
        )
    if problem.features > MOST_COLUMNS:
        raise ModelError(
            f"centre='private' releases a second moment of {problem.features} x {problem.features} entries, and at "
            f"most {MOST_COLUMNS} columns are covered; pass centre='none'"
        )


def release_centre(problem: Problem, row_bound: float, divisor: int, mu: float, adjacency: str, noise: Noise) -> Centre:
    """Release the moments of rows shortened to `row_bound`, the intercept's column left out, for a part of mu."""
    features = problem.features
    rows = problem.design[:, :features]
    short = shortened(rows if isinstance(rows, np.ndarray) else sp.csr_array(rows), row_bound)
    short = short / row_bound if isinstance(short, np.ndarray) else sp.csr_array(short / row_bound)
    sensitivity = moments_sensitivity(divisor, features, adjacency)
    gaussian = GaussianNoise(sensitivity, mu * float(np.sqrt(SHARE)), features + features * (features + 1) // 2)
    mean, spread = _unpacked(gaussian.release(moments(short, divisor), noise), features)
    return Centre(
        row_bound * mean,
        row_bound**2 * spread,
        row_bound,
        row_bound**2 * gaussian.scale,
        Release(mu=gaussian.mu, step=STEP),
        mu * float(np.sqrt(1.0 - SHARE)),
    )


def _unpacked(released: Array, features: int) -> tuple[Array, Array]:
    """Return the mean, (d,), and the second moment about it, (d, d)."""
    mean, packed = released[:features], released[features:]
    second = np.zeros((features, features))
    second[np.triu_indices(features)] = packed
    off = np.triu(second, 1) / np.sqrt(2.0)
    return mean, np.diag(np.diag(second)) + off + off.T - np.outer(mean, mean)
