"""The public numbers of a private solve, checked before anything reads the data: bounds, step, and number of rows.

Where the number of rows is private, their number with noise divides the sum of gradients. That count is a release of
its own, before all others: it has a hundredth of mu^2, or a fiftieth of a pure epsilon. What follows may depend on it
as on any public number.

Choices that follow from public numbers alone cost no privacy. These are n, d, epsilon, delta, the clip and the step.
Let c = sensitivity / mu be the noise of one release that spends the whole budget. Then each of T releases has noise of
deviation c sqrt(T).

**How many.** Along a direction in which the average loss has curvature h, T steps of length 1/L from 0 leave (h/2) R^2
exp(-2 T h / L) of the excess, at most R^2 L / (4 e T) over all h; R is the distance of the solution. Noise adds T c^2 /
(4 L) at most in each of d directions. Both are equal at T = R L / (c sqrt(e d)). R is not public: two of the longest
steps there are, 2 clip/L, stand for it. That is 8 for logistic loss and rows of norm 1, and was chosen on German
credit, COMPAS and synthetic data. For one row replaced T is n mu / sqrt(e d), free of the clip and of the scale of X.

Steps along centred rows are longer, and what they leave falls like T^-2 rather than T^-1 where the solution lies along
large curvatures. Then the balance is at a number that grows like T^(2/3); it is T at `LIKE` = 40, chosen on COMPAS,
German credit, digits and synthetic data.

**When to give up.** Noise of one release of the whole budget has norm c sqrt(d), and no gradient is longer than the
clip. Where the first exceeds a tenth of the second, fits of breast cancer's 426 rows, German credit and 300 rows of
COMPAS were at most .02 better in log loss than the majority's share, most of them worse: then a fit warns.

**How much penalty.** Over the whole run, T/L long, noise alone moves a coefficient by c T / L. With alpha = T/L and lam
= c sqrt(log(2 d) / 2), MCP shrinks coefficients below alpha lam, half of the largest of d such moves, and leaves larger
ones alone.
"""

from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import PrivacyError
from cvxpriv.penalties import MCP
from cvxpriv.privacy import BallNoise, GaussianNoise, Noise, Release

from .problem import Problem

#: Largest number of gradients: noise would hide what more of them could gain.
MOST_ITERATIONS = 2000
#: Least alpha: MCP needs alpha > 1, and rows of large norm have short steps.
LEAST_ALPHA = 1.5

#: The number of noisy gradients that is the same for centred rows.
LIKE = 40

#: Part of the clip that the noise of the whole budget may have in one gradient, before a fit warns.
LOUD = 0.1


def drowned(rows: int, size: int, mu: float, moved: float) -> str:
    """Return a warning where noise is likely to drown the signal, by public numbers alone; else an empty text.

    `rows`: The divisor of the sum of gradients.
    `size`: Number d of coefficients.
    `moved`: Number of clipped gradients by which neighbours differ.

    Examples
    --------
    >>> from cvxpriv.privacy import gaussian_mu
    >>> drowned(426, 31, gaussian_mu(1.0, 1e-6), 2.0)[:40], drowned(5000, 31, gaussian_mu(1.0, 1e-6), 2.0)
    ('privacy is likely to drown the signal: t', '')
    """
    share = moved * float(np.sqrt(size)) / (rows * mu)
    if share <= LOUD:
        return ""
    return (
        f"privacy is likely to drown the signal: the noise of this budget in one gradient is {share:.2f} of the clip "
        f"for {rows} rows and {size} coefficients, and beyond {LOUD:g} fits hardly beat the share of the larger class; "
        "take more rows, fewer columns or a larger epsilon"
    )


def centred_iterations(usual: int) -> int:
    """Return the number of noisy gradients of centred rows, where it is `usual` for rows as they are.

    >>> centred_iterations(40), centred_iterations(320)
    (40, 160)
    """
    return max(round(float(LIKE ** (1.0 / 3.0) * usual ** (2.0 / 3.0))), 1)


def public_iterations(clip: float, sensitivity: float, mu: float, size: int) -> int:
    """Return the number of noisy gradients, T = 2 clip mu / (sensitivity sqrt(e d)), in [1, MOST_ITERATIONS].

    `clip`: Clipping bound of one row's gradient.
    `sensitivity`: Sensitivity of the average gradient.
    `mu`: The mu of the whole budget (`gaussian_mu`).
    `size`: Number d of coefficients, with 1 for an intercept.

    Examples
    --------
    >>> from cvxpriv.privacy import gaussian_mu
    >>> public_iterations(1.0, 2.0 / 1000, gaussian_mu(1.0, 1e-5), size=20)
    36
    """
    return int(np.clip(round(2.0 * clip * mu / (sensitivity * np.sqrt(np.e * size))), 1, MOST_ITERATIONS))


def noise_level_penalty(sensitivity: float, mu: float, travel: float, features: int) -> MCP:
    """Return the MCP that shrinks coefficients that noise alone could have moved, and no larger ones.

    `sensitivity`, `mu`: See `public_iterations`.
    `travel`: Number of iterations times the greatest step.
    `features`: Number d of features, without an intercept.
    """
    return MCP(float(sensitivity / mu * np.sqrt(0.5 * np.log(2.0 * features))), max(float(travel), LEAST_ALPHA))


#: Bounds of a row whose products and quotients with counts and steps are doubles: a sensitivity must not round to 0.
SMALLEST, LARGEST = 1e-100, 1e100


def public_step_limit(problem: Problem, row_bound: float) -> float:
    """Return the greatest step, 1/L: up to it a step without noise lowers F, whatever the penalty.

    L = smoothness row_bound^2 bounds the Lipschitz constant of the average gradient; ||X||^2 would be smaller, but it
    is a fact about the data. Beyond 1/weak_convexity the proximal step is still the exact minimiser, but thresholds
    hard.
    """
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        limit = float(1.0 / (problem.loss.smoothness * np.square(row_bound)))
    if not 0.0 < limit < np.inf:
        raise PrivacyError(
            f"row_bound={row_bound!r} gives a step of {limit:g}: scale the columns of X, so that its rows have norms "
            "near 1"
        )
    return limit


def require_bounds(problem: Problem, clip: float | None, row_bound: float | None) -> tuple[float, float]:
    """Return the clip and the row bound; either follows from the other by the loss's greatest slope."""
    slope = problem.loss.slope
    if clip is None and (row_bound is None or not np.isfinite(slope)):
        raise PrivacyError(
            "clip is missing, and no noise hides an unbounded row: pass the most that its gradient counts"
            + (", or row_bound, a public bound of the rows' norms" if np.isfinite(slope) else "")
        )
    if row_bound is None and not np.isfinite(slope):
        raise PrivacyError(
            f"row_bound is missing: the step is 1/L, and the slope of loss={problem.loss.name!r} has no bound that L "
            "follows from; pass row_bound, a public bound of the rows' norms, for example that of scaled columns"
        )
    most = slope * row_bound if clip is None and row_bound is not None else clip
    assert most is not None
    if not SMALLEST <= most <= LARGEST:
        name = "row_bound" if clip is None else "clip"
        raise PrivacyError(
            f"{name}={row_bound if clip is None else clip!r} gives a step of no size, or noise of none: scale the "
            "columns of X, so that its rows have norms near 1"
        )
    return float(most), float(most / slope if row_bound is None else row_bound)


def column_bound(problem: Problem, row_bound: float | None) -> float | None:
    """Return the bound of the rows' norms without the 1 of an intercept; None where none was given."""
    if row_bound is None or not problem.intercept or not row_bound > 1.0:
        return row_bound
    return float(np.sqrt(row_bound**2 - 1.0))


#: Share of mu, and of a pure epsilon, that the count gets.
PART, PURE_PART = 0.1, 0.02
LEAST = 2
STEP = "number of rows"


@dataclass(frozen=True)
class Divisor:
    """The divisor of a sum over the rows.

    `left`: Remaining budget, a mu or a pure epsilon.
    `ledger`: The count, where one was released.
    """

    number: int
    left: float
    ledger: tuple[Release, ...] = ()


def public_divisor(problem: Problem, adjacency: str, public_rows: int | None) -> int | None:
    """Return n where it is public, or the public number that stands for it; None where there is neither."""
    if adjacency == "add-remove":
        known = problem.schema.rows if public_rows is None and problem.schema is not None else public_rows
        return None if known is None else int(known)
    if public_rows is not None:
        raise PrivacyError(f"public_rows={public_rows!r} is for adjacency='add-remove': replacing a row keeps n public")
    return problem.rows


def counted_rows(rows: int, budget: float, noise: Noise, *, pure: bool) -> Divisor:
    """Return the number of rows with noise, for a part of the budget: a mu, or a pure epsilon.

    >>> found = counted_rows(1000, 0.5, Noise(np.random.default_rng(0)), pure=False)
    >>> 850 < found.number < 1150, round(found.left**2 + found.ledger[0].mu**2, 12)
    (True, 0.25)
    """
    query = np.array([float(rows)])
    if pure:
        cost = PURE_PART * budget
        ball = BallNoise.within(1.0, cost, 1)
        released, entry, left = ball.release(query, noise), Release(epsilon=cost, step=STEP), budget - cost
    else:
        gaussian = GaussianNoise(1.0, PART * budget, 1)
        released, entry = gaussian.release(query, noise), Release(mu=gaussian.mu, step=STEP)
        left = budget * float(np.sqrt(1.0 - PART**2))
    return Divisor(max(round(float(released[0])), LEAST), left, (entry,))
