"""The exactness with which a node solves its step, and the noise that covers the remaining error.

The analysis of objective perturbation is about exact minimisers, that of output perturbation about their distance. A
computer finds f + e, and e may tell of the data. The objective is strongly convex with modulus mu_i, so that
||e|| <= left/mu_i, where `left` is a public bound of the gradient at what was found; that it holds is checked, with
what rounding may do to the gradient at worst. Given f, a record moves f + e by at most 2 left/mu_i. So f + e is
released on a grid with noise of that sensitivity more (`cvxpriv.privacy.grid`).
"""

import contextlib
from dataclasses import replace

import numpy as np

from cvxpriv.errors import NotConverged, PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.rounding import UNIT, sum_rounding
from cvxpriv.privacy.sampling import BALL_ERROR

from .blocks import OddStep, minimised
from .problem import Problem

#: Rounding of a gradient, as a part of the sizes of its terms; more where a node has very many rows.
PART = 2.0**-34
UNSOLVED = (
    "a node could not solve its step exactly enough, and nothing of this pass was released; what was released in "
    "passes before it counts. Raise tol or reg, or scale the columns to norms near 1"
)


def gradient_left(
    problem: Problem, tol: float, row_bound: float, spread: Array, dual: Array, pulled: Array, bend: Array
) -> Array:
    """Return the public bound of each node's gradient, (N,).

    `tol`: Exactness with which a node minimises, as requested of `solve_private`.
    `spread`, (N,): The size that noise in the objective usually has; 0 for none.
    `dual`, `pulled`, (N, d): lambda, and `graph.pull` of what was published.
    `bend`, (N,): rho/N and twice the penalties. A minimiser is no longer than the sizes of the other terms over it, and
    the rows' gradients are rounded by the more the longer it is.
    """
    loss = problem.loss
    sizes = problem.C * loss.slope * row_bound + spread + _lengths(2.0 * dual) + _lengths(pulled)
    sizes = sizes * (1.0 + problem.C * loss.smoothness * row_bound * row_bound / bend)
    return np.asarray(tol + np.maximum(PART, 8.0 * _sums(problem)) * sizes)


def private_odd_step(
    problem: Problem, slope: Array, bend: Array, start: Array, left: Array, row_bound: float
) -> OddStep:
    """Return `blocks.minimised` to within a quarter of `left`, (N,), from `start` or, if that is too far out, from 0.

    A minimiser is no longer than the other terms over `bend`. Numbers beyond what its predictions reach have the
    largest slope there, and are brought to where they begin to: else a loss of 1e49 would hide all others.

    Raises PrivacyError: Newton's method found no minimiser.
    """
    far = 2.0 + row_bound * (problem.C * problem.loss.slope * row_bound + _lengths(slope)) / bend
    most = np.repeat(far, problem.rows.counts)
    problem = replace(problem, y=np.clip(problem.y, -most, most))
    for first in (start, np.zeros_like(start)):
        with contextlib.suppress(NotConverged):  # which tells a number
            return minimised(problem, slope, bend, first, 0.25 * left)
    raise PrivacyError(UNSOLVED)


def require_solved(
    problem: Problem,
    found: OddStep,
    left: Array,
    row_bound: float,
    linear: Array,
    dual: Array,
    pulled: Array,
    bend: Array,
) -> None:
    """Refuse a step whose gradient is not known to be within its public bound.

    `left`: (N,).
    `linear`, (N, d): The noise in the objective, each row within `BALL_ERROR` of its norm.
    `dual`, `pulled`: (N, d).
    `bend`, (N,): rho/N and twice the penalties.
    """
    lengths, loss = _lengths(found.f), problem.loss
    of_rows = problem.C * (loss.slope * row_bound + loss.smoothness * row_bound * row_bound * lengths)
    of_terms = bend * lengths + _lengths(2.0 * dual) + _lengths(pulled)
    rounding = 2.0 * _sums(problem) * of_rows + 8.0 * UNIT * of_terms + (BALL_ERROR + 8.0 * UNIT) * _lengths(linear)
    if not (found.residual + rounding <= left).all():
        raise PrivacyError(UNSOLVED)


def _sums(problem: Problem) -> Array:
    """Return the rounding of sums over each node's rows, and over the features, as a part of their terms."""
    return np.array([sum_rounding(int(count) + problem.features + 16) for count in problem.rows.counts])


def _lengths(rows: Array) -> Array:
    return np.asarray(np.linalg.norm(rows, axis=1))
